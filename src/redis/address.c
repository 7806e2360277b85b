/* See address.h. */
#include "redis/address.h"

#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "base/status.h"

#define PORT_DEFAULT 6379
#define SENTINEL_PORT_DEFAULT 26379
#define DB_MAX 1000000
#define HOST_LEN_MAX 255
#define REPLICAS_MAX 1000
#define REPLICAS_TIMEOUT_MAX_MS 3600000

static enum hf_result bad(struct hf_fault *fault, const char *what)
{
    return fault_set(fault, HF_BAD_REQUEST, "the Redis URL: %s", what);
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

static int hex(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Decodes %XX.  Returns NULL if a % is not followed by two hex digits, or is %00. */
static char *decoded(const char *text, size_t len)
{
    char *out = hf_alloc(len + 1);
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        if (c == '%') {
            int high = i + 2 < len ? hex(text[i + 1]) : -1;
            int low = i + 2 < len ? hex(text[i + 2]) : -1;
            c = high < 0 || low < 0 ? '\0' : (char)(16 * high + low);
            i += 2;
        }
        if (c == '\0') {
            free(out);
            return NULL;
        }
        out[n++] = c;
    }
    return out;
}

static enum hf_result parse_login(const char *text, size_t len, struct redis_address *a,
                                  struct hf_fault *fault)
{
    const char *colon = memchr(text, ':', len);
    if (!colon)
        return bad(fault, "before @ comes user:password or :password");
    size_t user_len = (size_t)(colon - text);
    a->user = user_len ? decoded(text, user_len) : NULL;
    a->password = decoded(colon + 1, len - user_len - 1);
    if (!a->password || (user_len && !a->user))
        return bad(fault, "a % in user or password is not followed by two hex digits");
    if (!*a->password)
        return bad(fault, "the password is empty");
    return HF_DONE;
}

/* Reads host, host:port, [v6] or [v6]:port. */
static enum hf_result parse_host(const char *text, size_t len, int port_default,
                                 struct redis_node *ret, struct hf_fault *fault)
{
    const char *host = text, *end = text + len, *after;
    if (len > 0 && *text == '[') {
        host = text + 1;
        after = memchr(text, ']', len);
        if (!after)
            return bad(fault, "a [ without ]");
        len = (size_t)(after++ - host);
    } else {
        after = memchr(text, ':', len);
        after = after ? after : end;
        len = (size_t)(after - host);
    }
    if (len == 0 || len > HOST_LEN_MAX)
        return bad(fault, "there is no host, or it is too long");
    ret->port = port_default;
    if (after < end) {
        ret->port = *after == ':' ? number(after + 1, (size_t)(end - after - 1), 65535) : -1;
        if (ret->port <= 0)
            return bad(fault, "the port is not a number from 1 to 65535 (IPv6 goes in brackets)");
    }
    ret->host = hf_strndup(host, len);
    return HF_DONE;
}

/* ---- parameters ---- */

static enum hf_result parse_text(const char *value, size_t len, char **ret, struct hf_fault *fault)
{
    char *text = decoded(value, len);
    if (!text || !*text) {
        free(text);
        return bad(fault, "a parameter is empty, or a % in it is not followed by two hex digits");
    }
    free(*ret);
    *ret = text;
    return HF_DONE;
}

static enum hf_result parse_number(const char *value, size_t len, int max, int *ret,
                                   struct hf_fault *fault)
{
    int n = number(value, len, max);
    if (n < 0)
        return bad(fault, "the parameters db, min_replicas and replicas_timeout are numbers");
    *ret = n;
    return HF_DONE;
}

/* Reads one NAME=VALUE. */
static enum hf_result parse_parameter(const char *text, size_t len, struct redis_address *a,
                                      struct hf_fault *fault)
{
    const struct {
        const char *name;
        bool allowed;
        char **ret;
    } texts[] = {
        {"cacert=", a->tls, &a->cacert},
        {"cert=", a->tls, &a->cert},
        {"key=", a->tls, &a->key},
        {"sentinel_user=", a->n_sentinels > 0, &a->sentinel_user},
        {"sentinel_password=", a->n_sentinels > 0, &a->sentinel_password},
    };
    int timeout_ms = 0;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        size_t n = strlen(texts[i].name);
        if (len >= n && memcmp(text, texts[i].name, n) == 0 && texts[i].allowed)
            return parse_text(text + n, len - n, texts[i].ret, fault);
    }
    if (len >= 3 && memcmp(text, "db=", 3) == 0)
        return parse_number(text + 3, len - 3, DB_MAX, &a->db, fault);
    if (len >= 13 && memcmp(text, "min_replicas=", 13) == 0)
        return parse_number(text + 13, len - 13, REPLICAS_MAX, &a->min_replicas, fault);
    if (len < 17 || memcmp(text, "replicas_timeout=", 17) != 0)
        return bad(fault, "the parameters after ? are db=N, min_replicas=N and "
                          "replicas_timeout=MS; with rediss: also cacert=, cert= and key=; with "
                          "sentinels also sentinel_user= and sentinel_password=");
    enum hf_result result =
        parse_number(text + 17, len - 17, REPLICAS_TIMEOUT_MAX_MS, &timeout_ms, fault);
    if (result == HF_DONE && timeout_ms == 0)
        return bad(fault, "replicas_timeout is 0");
    if (result == HF_DONE)
        a->replicas_timeout_ms = timeout_ms;
    return result;
}

/* Reads ?NAME=VALUE[&NAME=VALUE...]; "" means no parameters. */
static enum hf_result parse_query(const char *query, struct redis_address *a,
                                  struct hf_fault *fault)
{
    a->replicas_timeout_ms = REDIS_REPLICAS_TIMEOUT_MS;
    while (*query) {
        const char *end = strchrnul(query + 1, '&');
        enum hf_result result = parse_parameter(query + 1, (size_t)(end - query - 1), a, fault);
        if (result != HF_DONE)
            return result;
        query = end;
    }
    return !a->cert == !a->key ? HF_DONE
                               : bad(fault, "the parameters cert and key belong together");
}

/* ---- the parts before ? ---- */

/* Reads the login before an @, if there is one before `end`, and moves *rest behind the @. */
static enum hf_result parse_before_at(const char **rest, const char *end, struct redis_address *a,
                                      struct hf_fault *fault)
{
    const char *at = memrchr(*rest, '@', (size_t)(end - *rest));
    if (!at)
        return HF_DONE;
    const char *login = *rest;
    *rest = at + 1;
    return parse_login(login, (size_t)(at - login), a, fault);
}

/* Reads host[:port],... into the sentinels. */
static enum hf_result parse_sentinels(const char *text, const char *end, struct redis_address *a,
                                      struct hf_fault *fault)
{
    for (;;) {
        const char *comma = memchr(text, ',', (size_t)(end - text));
        const char *stop = comma ? comma : end;
        if (a->n_sentinels == REDIS_SENTINELS_MAX)
            return bad(fault, "there are more than 16 sentinels");
        struct redis_node *node = &a->sentinels[a->n_sentinels];
        enum hf_result result =
            parse_host(text, (size_t)(stop - text), SENTINEL_PORT_DEFAULT, node, fault);
        if (result != HF_DONE)
            return result;
        a->n_sentinels++;
        if (!comma)
            return HF_DONE;
        text = comma + 1;
    }
}

static enum hf_result parse_sentinel_url(const char *rest, struct redis_address *a,
                                         struct hf_fault *fault)
{
    const char *end = strchrnul(rest, '/');
    enum hf_result result = parse_before_at(&rest, end, a, fault);
    if (result == HF_DONE && *end != '/')
        return bad(fault, "after the sentinels comes / and the name of the primary");
    if (result == HF_DONE)
        result = parse_sentinels(rest, end, a, fault);
    if (result != HF_DONE)
        return result;
    const char *query = strchrnul(end, '?');
    size_t len = (size_t)(query - end - 1);
    a->primary = len > 0 ? decoded(end + 1, len) : NULL;
    if (!a->primary || strchr(a->primary, '/'))
        return bad(fault, "after the sentinels' / comes the name of the primary");
    return parse_query(query, a, fault);
}

static enum hf_result parse_tcp(const char *rest, struct redis_address *a, struct hf_fault *fault)
{
    const char *end = strchrnul(rest, '/');
    enum hf_result result = parse_before_at(&rest, end, a, fault);
    if (result != HF_DONE)
        return result;
    const char *query = strchrnul(rest, '?');
    result = parse_query(query, a, fault);
    if (result != HF_DONE)
        return result;
    end = query < end ? query : end;
    if (*end == '/' && end + 1 < query) {
        a->db = number(end + 1, (size_t)(query - end - 1), DB_MAX);
        if (a->db < 0)
            return bad(fault, "after the host's / comes the number of the database (a / in a "
                              "password is %2F)");
    }
    struct redis_node node = {0};
    result = parse_host(rest, (size_t)(end - rest), PORT_DEFAULT, &node, fault);
    a->host = node.host;
    a->port = node.port;
    return result;
}

/* Reads PATH or //[login@]/PATH.  Without a login the // counts as a part of the path. */
static enum hf_result parse_unix(const char *rest, struct redis_address *a, struct hf_fault *fault)
{
    if (strncmp(rest, "//", 2) == 0) {
        const char *after = rest + 2;
        enum hf_result result = parse_before_at(&after, strchrnul(after, '/'), a, fault);
        if (result != HF_DONE)
            return result;
        if (a->password && *after != '/')
            return bad(fault, "after @ comes the socket's path, which begins with /");
        rest = a->password ? after : rest;
    }
    const char *query = strrchr(rest, '?');
    query = query ? query : rest + strlen(rest);
    enum hf_result result = parse_query(query, a, fault);
    if (result != HF_DONE)
        return result;
    size_t len = (size_t)(query - rest);
    if (len == 0 || len >= sizeof((struct sockaddr_un *)0)->sun_path)
        return bad(fault, "the socket's path is empty or longer than 107 bytes");
    a->path = hf_strndup(rest, len);
    return HF_DONE;
}

static const struct {
    const char *scheme;
    bool tls;
    enum hf_result (*parse)(const char *rest, struct redis_address *a, struct hf_fault *fault);
} forms[] = {
    {"redis://", false, parse_tcp},
    {"rediss://", true, parse_tcp},
    {"redis+unix:", false, parse_unix},
    {"unix:", false, parse_unix},
    {"redis+sentinel://", false, parse_sentinel_url},
    {"rediss+sentinel://", true, parse_sentinel_url},
};

enum hf_result redis_address_parse(const char *url, struct redis_address *ret,
                                   struct hf_fault *fault)
{
    struct redis_address a = {0};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        size_t len = strlen(forms[i].scheme);
        if (strncmp(url, forms[i].scheme, len) != 0)
            continue;
        a.tls = forms[i].tls;
        enum hf_result result = forms[i].parse(url + len, &a, fault);
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

static void free_secret(char *secret)
{
    if (secret)
        explicit_bzero(secret, strlen(secret));
    free(secret);
}

void redis_address_close(struct redis_address *a)
{
    free(a->host);
    free(a->path);
    free(a->user);
    free_secret(a->password);
    free(a->cacert);
    free(a->cert);
    free(a->key);
    free(a->primary);
    free(a->sentinel_user);
    free_secret(a->sentinel_password);
    for (size_t i = 0; i < a->n_sentinels; i++)
        free(a->sentinels[i].host);
    *a = (struct redis_address){0};
}
