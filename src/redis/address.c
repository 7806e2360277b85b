/* See address.h. */
#include "redis/address.h"

#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "base/status.h"

#define PORT_DEFAULT 6379
#define DB_MAX 1000000
#define HOST_LEN_MAX 255

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
static enum hf_result parse_host(const char *text, size_t len, struct redis_address *a,
                                 struct hf_fault *fault)
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
    a->port = PORT_DEFAULT;
    if (after < end) {
        a->port = *after == ':' ? number(after + 1, (size_t)(end - after - 1), 65535) : -1;
        if (a->port <= 0)
            return bad(fault, "the port is not a number from 1 to 65535 (IPv6 goes in brackets)");
    }
    a->host = hf_strndup(host, len);
    return HF_DONE;
}

/* Reads ?db=N, the only parameter; "" means none. */
static enum hf_result parse_query(const char *query, struct redis_address *a,
                                  struct hf_fault *fault)
{
    if (!*query)
        return HF_DONE;
    if (strncmp(query, "?db=", 4) != 0)
        return bad(fault, "db=N is the only parameter that can come after ?");
    a->db = number(query + 4, strlen(query + 4), DB_MAX);
    return a->db < 0 ? bad(fault, "after ?db= comes the number of the database") : HF_DONE;
}

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
    return parse_host(rest, (size_t)(end - rest), a, fault);
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

enum hf_result redis_address_parse(const char *url, struct redis_address *ret,
                                   struct hf_fault *fault)
{
    struct redis_address a = {0};
    enum hf_result result;
    if (strncmp(url, "redis://", 8) == 0)
        result = parse_tcp(url + 8, &a, fault);
    else if (strncmp(url, "redis+unix:", 11) == 0)
        result = parse_unix(url + 11, &a, fault);
    else if (strncmp(url, "unix:", 5) == 0)
        result = parse_unix(url + 5, &a, fault);
    else
        result = bad(fault, "it begins with none of redis://, redis+unix: and unix:");
    if (result == HF_DONE)
        *ret = a;
    else
        redis_address_close(&a);
    return result;
}

static char *copy(const char *text) { return text ? hf_strndup(text, strlen(text)) : NULL; }

void redis_address_copy(const struct redis_address *from, struct redis_address *ret)
{
    *ret = (struct redis_address){copy(from->host),     copy(from->path), copy(from->user),
                                  copy(from->password), from->port,       from->db};
}

void redis_address_close(struct redis_address *a)
{
    if (a->password)
        explicit_bzero(a->password, strlen(a->password));
    free(a->host);
    free(a->path);
    free(a->user);
    free(a->password);
    *a = (struct redis_address){0};
}
