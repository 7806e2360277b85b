/* See cors.h.  Origins are compared byte for byte with what browsers send.  An origin that no
 * browser sends (with a path, capitals or a default port) is refused at start, since it would never
 * match. */
#include "http/cors.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ORIGIN_LEN_MAX 255

const char cors_expose[] = "X-Request-Id, ETag, Date, Idempotency-Replayed, Retry-After, "
                           "Location, Holdfast-Stale";
const char cors_headers[] =
    "Authorization, Content-Type, Idempotency-Key, If-None-Match, Last-Event-ID";
const char cors_max_age[] = "600";

static bool ends_with(const char *text, size_t len, const char *end)
{
    size_t n = strlen(end);
    return len >= n && memcmp(text + len - n, end, n) == 0;
}

static bool all_of(const char *text, size_t len, const char *extra)
{
    for (size_t i = 0; i < len; i++)
        if (!islower((unsigned char)text[i]) && !isdigit((unsigned char)text[i]) &&
            !strchr(extra, text[i]))
            return false;
    return len > 0;
}

/* host or host:port, where the host may be an IPv6 address in brackets. */
static const char *authority_fault(const char *text, size_t len)
{
    const char *end = text + len, *host_end = end;
    const char *port = memrchr(text, ':', len);
    bool bracketed = len && *text == '[';
    if (bracketed) {
        const char *close = memchr(text, ']', len);
        if (!close || (close + 1 < end && close[1] != ':'))
            return "has brackets that do not match";
        host_end = close + 1;
        port = close + 1 < end ? close + 1 : NULL;
    } else if (port) {
        host_end = port;
    }
    size_t host_len = (size_t)(host_end - text);
    if (bracketed ? !all_of(text + 1, host_len - 2, ":.") : !all_of(text, host_len, "-._"))
        return "must be SCHEME://HOST[:PORT] in lower case, without a path";
    if (!port)
        return NULL;
    size_t digits = (size_t)(end - port) - 1;
    if (digits < 1 || digits > 5 || strspn(port + 1, "0123456789") < digits ||
        atoi(port + 1) > 65535 || port[1] == '0')
        return "has a port that is none";
    return NULL;
}

/* What is wrong with an origin; NULL if it is well-formed. */
static const char *origin_fault(const char *text, size_t len)
{
    if (len == 0)
        return "is empty";
    if (len > ORIGIN_LEN_MAX)
        return "is too long";
    const char *colon = memmem(text, len, "://", 3);
    if (!colon || !islower((unsigned char)*text) || !all_of(text, (size_t)(colon - text), "+-."))
        return "must be SCHEME://HOST[:PORT] in lower case, or * alone";
    bool http = strncmp(text, "http:", 5) == 0, https = strncmp(text, "https:", 6) == 0;
    if ((http && ends_with(text, len, ":80")) || (https && ends_with(text, len, ":443")))
        return "names the scheme's own port, which browsers leave out";
    return authority_fault(colon + 3, len - (size_t)(colon + 3 - text));
}

bool cors_parse(const char *text, struct cors *ret, struct hf_err *err)
{
    struct cors c = {.origins = hf_alloc(sizeof *c.origins * (CORS_ORIGINS_MAX + 1))};
    size_t n = 0;
    bool any = strcmp(text, "*") == 0;
    for (const char *p = text;; p++) {
        p += strspn(p, " \t");
        size_t len = strcspn(p, ","), used = len;
        while (used && (p[used - 1] == ' ' || p[used - 1] == '\t'))
            used--;
        const char *fault = n == CORS_ORIGINS_MAX ? "is one too many" : NULL;
        if (!fault && !any)
            fault = origin_fault(p, used);
        if (fault) {
            (void)hf_err_set(err, HF_INVALID_REQUEST, "'%.*s' %s", used > 100 ? 100 : (int)used, p,
                             fault);
            cors_close(&c);
            return false;
        }
        c.origins[n++] = hf_strndup(p, used);
        p += len;
        if (!*p)
            break;
    }
    *ret = c;
    return true;
}

void cors_close(struct cors *c)
{
    for (const char **origin = c->origins; origin && *origin; origin++)
        free((void *)(uintptr_t)*origin);
    free((void *)c->origins);
    c->origins = NULL;
}

bool cors_any(const struct cors *c) { return c->origins && c->origins[0][0] == '*'; }

const char *cors_match(const struct cors *c, const char *origin, size_t len)
{
    if (!c->origins)
        return NULL;
    if (cors_any(c))
        return c->origins[0];
    for (const char **o = c->origins; origin && *o; o++)
        if (strlen(*o) == len && memcmp(*o, origin, len) == 0)
            return *o;
    return NULL;
}
