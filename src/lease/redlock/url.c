/* The URL of the Redlock driver: one login, database and files for all servers.  No state; any
 * thread. */
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "lease/redlock/redlock.h"

static const struct url_form form = {
    .kind = "the Redlock URL", .scheme = "redlock", .tls_scheme = "redlocks", .port = 6379};

static enum hf_result bad(struct hf_fault *fault, const char *what)
{
    return url_bad(&form, what, fault);
}

static enum hf_result parse_parameters(const struct url *u, struct redis_address *common,
                                       int64_t *ret_max_ttl_ms, struct hf_fault *fault)
{
    char *max_ttl = NULL, *db = NULL;
    const struct url_parameter known[] = {
        {"max_ttl", &max_ttl, true},
        {"db", &db, true},
        {"cacert", &common->cacert, u->is_tls},
        {"cert", &common->cert, u->is_tls},
        {"key", &common->key, u->is_tls},
    };
    enum hf_result result =
        url_parameters(u, known, sizeof known / sizeof *known,
                       "the parameters are max_ttl=TIME and db=N; cacert=FILE, cert=FILE and "
                       "key=FILE are for redlocks://",
                       fault);
    int64_t max_ttl_ms = max_ttl ? duration_parse_ms(max_ttl) : MAX_TTL_MS;
    bool is_database = !db || redis_address_set_db(common, db, strlen(db));
    free(max_ttl);
    free(db);
    if (result != HF_DONE)
        return result;
    if (max_ttl_ms < LEASE_TTL_MIN_MS || max_ttl_ms > LEASE_TTL_MAX_MS)
        return bad(fault, "max_ttl is a time from 100ms to 7d, such as 60s");
    *ret_max_ttl_ms = max_ttl_ms;
    return is_database ? HF_DONE : bad(fault, "the parameter db is a number");
}

static bool is_known(const struct redlock_url *u, const struct url_host *host)
{
    for (size_t i = 0; i < u->n; i++)
        if (u->addresses[i].port == host->port && strlen(u->addresses[i].host) == host->name.len &&
            memcmp(u->addresses[i].host, host->name.text, host->name.len) == 0)
            return true;
    return false;
}

static enum hf_result add_servers(const struct url *u, const struct redis_address *common,
                                  struct redlock_url *ret, struct hf_fault *fault)
{
    struct url_host hosts[URL_HOSTS_MAX];
    size_t n;
    enum hf_result result = url_hosts(u, hosts, &n, fault);
    if (result != HF_DONE)
        return result;
    if (n > SERVERS_MAX)
        return bad(fault, "it has more than 15 servers");
    for (size_t i = 0; i < n; i++) {
        if (is_known(ret, &hosts[i]))
            return bad(fault, "a server is named twice; a majority of servers must be independent "
                              "ones");
        struct redis_address *a = &ret->addresses[ret->n++];
        redis_address_copy(common, a);
        a->host = hf_strndup(hosts[i].name.text, hosts[i].name.len);
        a->port = hosts[i].port;
    }
    return n >= SERVERS_MIN ? HF_DONE
                            : bad(fault, "at least three servers, HOST:PORT,HOST:PORT,HOST:PORT");
}

enum hf_result redlock_url_parse(const char *url, struct redlock_url *ret, struct hf_fault *fault)
{
    struct redlock_url r = {0};
    struct redis_address common = {0};
    struct url u;
    enum hf_result result = url_split(url, &form, &u, fault);
    if (result != HF_DONE)
        return result;
    common.tls = u.is_tls;
    if ((result = redis_address_set_login(&common, &u, fault)) == HF_DONE &&
        (result = parse_parameters(&u, &common, &r.max_ttl_ms, fault)) == HF_DONE)
        result = add_servers(&u, &common, &r, fault);
    redis_address_close(&common);
    if (result == HF_DONE)
        *ret = r;
    else
        redlock_url_close(&r);
    return result;
}

void redlock_url_close(struct redlock_url *u)
{
    for (size_t i = 0; i < u->n; i++)
        redis_address_close(&u->addresses[i]);
    u->n = 0;
}
