/* The URL of the Redlock driver.  Each server becomes a redis:// URL of its own, which src/redis
 * parses.  No state; any thread. */
#include <inttypes.h>
#include <string.h>

#include "base/duration.h"
#include "lease/redlock/redlock.h"

#define SCHEME "redlock://"
#define SCHEME_TLS "redlocks://"
#define PARAMETER_MAX 32

/* What all servers have in common. */
struct shared {
    bool tls;
    struct buf db;    /* the parameter db=N, or empty */
    struct buf files; /* the parameters for TLS, each with an & before it */
};

static enum hf_result bad(struct hf_fault *fault, const char *what)
{
    return fault_set(fault, HF_BAD_REQUEST, "the Redlock URL: %s", what);
}

static bool is_file(const char *text)
{
    return strncmp(text, "cacert=", 7) == 0 || strncmp(text, "cert=", 5) == 0 ||
           strncmp(text, "key=", 4) == 0;
}

/* Reads one parameter, NAME=VALUE. */
static enum hf_result parse_parameter(const char *text, size_t len, struct redlock_url *u,
                                      struct shared *shared, struct hf_fault *fault)
{
    char copy[PARAMETER_MAX] = {0};
    if (is_file(text)) {
        buf_char(&shared->files, '&');
        buf_put(&shared->files, text, len);
        return shared->tls ? HF_DONE : bad(fault, "cacert, cert and key are for redlocks://");
    }
    if (len >= sizeof copy)
        return bad(fault, "a parameter after ? is too long; there are max_ttl=TIME and db=N");
    memcpy(copy, text, len);
    if (strncmp(copy, "db=", 3) == 0) {
        shared->db.len = 0;
        buf_put(&shared->db, copy, len);
        return HF_DONE;
    }
    if (strncmp(copy, "max_ttl=", 8) != 0)
        return bad(fault, "after ? come max_ttl=TIME and db=N, joined by &; with redlocks: also "
                          "cacert=, cert= and key=");
    u->max_ttl_ms = duration_parse_ms(copy + 8);
    if (u->max_ttl_ms < LEASE_TTL_MIN_MS || u->max_ttl_ms > LEASE_TTL_MAX_MS)
        return bad(fault, "max_ttl is a time from 100ms to 7d, such as 60s");
    return HF_DONE;
}

static enum hf_result parse_query(const char *query, struct redlock_url *u, struct shared *shared,
                                  struct hf_fault *fault)
{
    while (*query) {
        const char *text = query + 1, *end = strchrnul(text, '&');
        enum hf_result result = parse_parameter(text, (size_t)(end - text), u, shared, fault);
        if (result != HF_DONE)
            return result;
        query = end;
    }
    return HF_DONE;
}

static bool is_known(const struct redlock_url *u, const struct redis_address *a)
{
    for (size_t i = 0; i < u->n; i++)
        if (u->addresses[i].port == a->port && strcmp(u->addresses[i].host, a->host) == 0)
            return true;
    return false;
}

/* Adds the server HOST[:PORT]; `login` is empty or ends with @. */
static enum hf_result add_server(const struct buf *login, const char *host, size_t len,
                                 const struct shared *shared, struct redlock_url *u,
                                 struct hf_fault *fault)
{
    if (u->n == SERVERS_MAX)
        return bad(fault, "it has more than 15 servers");
    if (len == 0)
        return bad(fault, "a server is empty; they are joined by commas");
    struct buf url = {0};
    buf_str(&url, shared->tls ? "rediss://" : "redis://");
    buf_put(&url, login->data, login->len);
    buf_put(&url, host, len);
    if (shared->db.len > 0)
        buf_printf(&url, "?%.*s", (int)shared->db.len, shared->db.data);
    size_t files = url.len;
    buf_put(&url, shared->files.data, shared->files.len);
    if (shared->files.len > 0 && shared->db.len == 0)
        url.data[files] = '?';
    buf_char(&url, '\0');
    struct redis_address a;
    enum hf_result result = redis_address_parse(url.data, &a, fault);
    explicit_bzero(url.data, url.len);
    buf_close(&url);
    if (result != HF_DONE)
        return result;
    if (!is_known(u, &a)) {
        u->addresses[u->n++] = a;
        return HF_DONE;
    }
    redis_address_close(&a);
    return bad(fault, "a server is named twice; a majority of servers must be independent ones");
}

static enum hf_result parse_servers(const char *text, const char *end, const struct shared *shared,
                                    struct redlock_url *u, struct hf_fault *fault)
{
    const char *at = memrchr(text, '@', (size_t)(end - text));
    struct buf login = {0};
    if (at) {
        buf_put(&login, text, (size_t)(at + 1 - text));
        text = at + 1;
    }
    enum hf_result result = HF_DONE;
    for (bool more = true; more && result == HF_DONE;) {
        const char *comma = memchr(text, ',', (size_t)(end - text));
        const char *stop = comma ? comma : end;
        result = add_server(&login, text, (size_t)(stop - text), shared, u, fault);
        more = comma != NULL;
        text = stop + 1;
    }
    if (login.data)
        explicit_bzero(login.data, login.len);
    buf_close(&login);
    if (result == HF_DONE && u->n < SERVERS_MIN)
        return bad(fault, "at least three servers, HOST:PORT,HOST:PORT,HOST:PORT");
    return result;
}

enum hf_result redlock_url_parse(const char *url, struct redlock_url *ret, struct hf_fault *fault)
{
    struct redlock_url u = {.max_ttl_ms = MAX_TTL_MS};
    struct shared shared = {.tls = strncmp(url, SCHEME_TLS, sizeof SCHEME_TLS - 1) == 0};
    const char *servers = url + (shared.tls ? sizeof SCHEME_TLS : sizeof SCHEME) - 1;
    const char *query = strchrnul(servers, '?');
    enum hf_result result = parse_query(query, &u, &shared, fault);
    if (result == HF_DONE && memchr(servers, '/', (size_t)(query - servers)))
        result = bad(fault, "there is no / after the servers (in a password it is %2F); the "
                            "database is ?db=N");
    if (result == HF_DONE)
        result = parse_servers(servers, query, &shared, &u, fault);
    buf_close(&shared.db);
    buf_close(&shared.files);
    if (result == HF_DONE)
        *ret = u;
    else
        redlock_url_close(&u);
    return result;
}

void redlock_url_close(struct redlock_url *u)
{
    for (size_t i = 0; i < u->n; i++)
        redis_address_close(&u->addresses[i]);
    u->n = 0;
}
