/* See address.h. */
#include "redis/address.h"

#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "base/status.h"

#define DB_MAX 1000000
#define REPLICAS_MAX 1000
#define REPLICAS_TIMEOUT_MAX_MS 3600000

static const struct url_form tcp = {.kind = "the Redis URL",
                                    .scheme = "redis",
                                    .tls_scheme = "rediss",
                                    .port = 6379,
                                    .has_path = true};
static const struct url_form sentinel = {.kind = "the Redis URL",
                                         .scheme = "redis+sentinel",
                                         .tls_scheme = "rediss+sentinel",
                                         .port = 26379,
                                         .has_path = true};

static enum hf_result bad(struct hf_fault *fault, const char *what)
{
    return url_bad(&tcp, what, fault);
}

/* Returns -1 if the text is not a number from 0 to `max`. */
static int number(const char *text, size_t len, int max)
{
    int64_t n = 0;
    if (len == 0 || len > 9)
        return -1;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9')
            return -1;
        n = 10 * n + (text[i] - '0');
    }
    return n <= max ? (int)n : -1;
}

bool redis_address_set_db(struct redis_address *a, const char *text, size_t len)
{
    a->db = number(text, len, DB_MAX);
    return a->db >= 0;
}

enum hf_result redis_address_set_login(struct redis_address *a, const struct url *u,
                                       struct hf_fault *fault)
{
    enum hf_result result = url_login(u, &a->user, &a->password, fault);
    if (result == HF_DONE && u->login.text && !a->password)
        return url_bad(u->form, "before @ comes user:password or :password", fault);
    if (result == HF_DONE && a->password && !*a->password)
        return url_bad(u->form, "the password is empty", fault);
    return result;
}

static enum hf_result parse_parameters(const struct url *u, struct redis_address *a,
                                       struct hf_fault *fault)
{
    char *db = NULL, *min_replicas = NULL, *timeout = NULL;
    bool has_sentinels = u->form == &sentinel;
    const struct url_parameter known[] = {
        {"db", &db, true},
        {"min_replicas", &min_replicas, true},
        {"replicas_timeout", &timeout, true},
        {"cacert", &a->cacert, a->tls},
        {"cert", &a->cert, a->tls},
        {"key", &a->key, a->tls},
        {"sentinel_user", &a->sentinel_user, has_sentinels},
        {"sentinel_password", &a->sentinel_password, has_sentinels},
    };
    enum hf_result result =
        url_parameters(u, known, sizeof known / sizeof *known,
                       "the parameters after ? are db=N, min_replicas=N and replicas_timeout=MS; "
                       "with rediss: also cacert=, cert= and key=; with sentinels also "
                       "sentinel_user= and sentinel_password=",
                       fault);
    int timeout_ms = REDIS_REPLICAS_TIMEOUT_MS;
    if (min_replicas)
        a->min_replicas = number(min_replicas, strlen(min_replicas), REPLICAS_MAX);
    if (timeout)
        timeout_ms = number(timeout, strlen(timeout), REPLICAS_TIMEOUT_MAX_MS);
    a->replicas_timeout_ms = timeout_ms;
    bool are_numbers =
        (!db || redis_address_set_db(a, db, strlen(db))) && a->min_replicas >= 0 && timeout_ms >= 0;
    free(db);
    free(min_replicas);
    free(timeout);
    if (result == HF_DONE && !are_numbers)
        return bad(fault, "the parameters db, min_replicas and replicas_timeout are numbers");
    return result == HF_DONE && timeout_ms == 0 ? bad(fault, "replicas_timeout is 0") : result;
}

static enum hf_result parse_path(const struct url *u, struct redis_address *a,
                                 struct hf_fault *fault)
{
    struct url_part name = u->path;
    if (name.len > 0) {
        name.text++;
        name.len--;
    }
    if (u->form == &tcp)
        return name.len == 0 || redis_address_set_db(a, name.text, name.len)
                   ? HF_DONE
                   : bad(fault, "after the host's / comes the number of the database (a / in a "
                                "password is %2F)");
    a->primary = name.len ? url_decoded(name) : NULL;
    if (!a->primary || strchr(a->primary, '/'))
        return bad(fault, "after the sentinels comes / and the name of the primary");
    return HF_DONE;
}

static enum hf_result parse_hosts(const struct url *u, struct redis_address *a,
                                  struct hf_fault *fault)
{
    struct url_host hosts[URL_HOSTS_MAX];
    size_t n;
    enum hf_result result = url_hosts(u, hosts, &n, fault);
    if (result != HF_DONE)
        return result;
    if (u->form == &tcp) {
        a->host = hf_strndup(hosts[0].name.text, hosts[0].name.len);
        a->port = hosts[0].port;
        return n == 1 ? HF_DONE : bad(fault, "several hosts are for redis+sentinel://");
    }
    for (; a->n_sentinels < n; a->n_sentinels++) {
        const struct url_host *host = &hosts[a->n_sentinels];
        a->sentinels[a->n_sentinels] =
            (struct redis_node){hf_strndup(host->name.text, host->name.len), host->port};
    }
    return HF_DONE;
}

static enum hf_result parse_url(const char *url, const struct url_form *form,
                                struct redis_address *a, struct hf_fault *fault)
{
    struct url u;
    enum hf_result result = url_split(url, form, &u, fault);
    if (result != HF_DONE)
        return result;
    a->tls = u.is_tls;
    if ((result = redis_address_set_login(a, &u, fault)) == HF_DONE &&
        (result = parse_parameters(&u, a, fault)) == HF_DONE &&
        (result = parse_path(&u, a, fault)) == HF_DONE)
        result = parse_hosts(&u, a, fault);
    return result;
}

/* Reads PATH or //[login@]/PATH.  Without a login the // counts as a part of the path, and of
 * several ? the last one begins the parameters. */
static enum hf_result parse_unix(const char *path, struct redis_address *a, struct hf_fault *fault)
{
    struct url u = {.form = &tcp};
    bool has_slashes = strncmp(path, "//", 2) == 0;
    const char *at = has_slashes ? memrchr(path + 2, '@', strcspn(path + 2, "/")) : NULL;
    if (at) {
        u.login = (struct url_part){path + 2, (size_t)(at - path - 2)};
        path = at + 1;
    }
    const char *query = strrchr(path, '?');
    if (query)
        u.query = (struct url_part){query + 1, strlen(query + 1)};
    size_t len = query ? (size_t)(query - path) : strlen(path);
    enum hf_result result = redis_address_set_login(a, &u, fault);
    if (result == HF_DONE)
        result = parse_parameters(&u, a, fault);
    if (result != HF_DONE)
        return result;
    if (at && *path != '/')
        return bad(fault, "after @ comes the socket's path, which begins with /");
    if (len == 0 || len >= sizeof((struct sockaddr_un *)0)->sun_path)
        return bad(fault, "the socket's path is empty or longer than 107 bytes");
    a->path = hf_strndup(path, len);
    return HF_DONE;
}

enum hf_result redis_address_parse(const char *url, struct redis_address *ret,
                                   struct hf_fault *fault)
{
    static const struct {
        const char *prefix;
        const struct url_form *form; /* NULL: a socket's path */
    } forms[] = {
        {"redis://", &tcp},
        {"rediss://", &tcp},
        {"redis+unix:", NULL},
        {"unix:", NULL},
        {"redis+sentinel://", &sentinel},
        {"rediss+sentinel://", &sentinel},
    };
    struct redis_address a = {0};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        size_t len = strlen(forms[i].prefix);
        if (strncmp(url, forms[i].prefix, len) != 0)
            continue;
        enum hf_result result = forms[i].form ? parse_url(url, forms[i].form, &a, fault)
                                              : parse_unix(url + len, &a, fault);
        if (result == HF_DONE)
            *ret = a;
        else
            redis_address_close(&a);
        return result;
    }
    return bad(fault, "it begins with none of redis://, rediss://, redis+unix:, unix:, "
                      "redis+sentinel:// and rediss+sentinel://");
}

static char *copy(const char *text) { return text ? hf_strndup(text, strlen(text)) : NULL; }

void redis_address_copy(const struct redis_address *from, struct redis_address *ret)
{
    struct redis_address a = *from;
    a.host = copy(from->host);
    a.path = copy(from->path);
    a.user = copy(from->user);
    a.password = copy(from->password);
    a.cacert = copy(from->cacert);
    a.cert = copy(from->cert);
    a.key = copy(from->key);
    a.primary = copy(from->primary);
    a.sentinel_user = copy(from->sentinel_user);
    a.sentinel_password = copy(from->sentinel_password);
    for (size_t i = 0; i < a.n_sentinels; i++)
        a.sentinels[i].host = copy(from->sentinels[i].host);
    *ret = a;
}

void redis_address_close(struct redis_address *a)
{
    free(a->host);
    free(a->path);
    free(a->user);
    url_free_secret(a->password);
    free(a->cacert);
    free(a->cert);
    free(a->key);
    free(a->primary);
    free(a->sentinel_user);
    url_free_secret(a->sentinel_password);
    for (size_t i = 0; i < a->n_sentinels; i++)
        free(a->sentinels[i].host);
    *a = (struct redis_address){0};
}
