/* See pg_url.h. */
#include "net/pg_url.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static bool percents_are_good(const char *text)
{
    for (; (text = strchr(text, '%')); text++)
        if (!isxdigit((unsigned char)text[1]) || !isxdigit((unsigned char)text[2]))
            return false;
    return true;
}

/* Where the host at `at` ends: at its colon, at the comma before the next host, or at `end`.  NULL
 * if a bracket is not closed. */
static const char *host_end(const char *at, const char *end)
{
    if (at < end && *at == '[') {
        at = memchr(at, ']', (size_t)(end - at));
        if (!at)
            return NULL;
    }
    while (at < end && *at != ':' && *at != ',')
        at++;
    return at;
}

/* Checks "host:port,host:port", each part of which may be missing. */
static const char *hosts_fault(const char *at, const char *end)
{
    while (at < end) {
        at = host_end(at, end);
        if (!at)
            return "a [ without ]";
        if (at < end && *at == ':') {
            size_t digits = strspn(++at, "0123456789");
            long port = strtol(at, NULL, 10);
            at += digits;
            if (digits > 5 || (digits && (port < 1 || port > 65535)) || (at < end && *at != ','))
                return "the port is not a number from 1 to 65535 (IPv6 goes in brackets)";
        }
        at++; /* the comma */
    }
    return NULL;
}

const char *pg_url_fault(const char *url)
{
    const char *rest = strncmp(url, "postgres://", 11) == 0     ? url + 11
                       : strncmp(url, "postgresql://", 13) == 0 ? url + 13
                                                                : NULL;
    if (!rest)
        return "it does not begin with postgres://";
    if (!percents_are_good(rest))
        return "a % is not followed by two hex digits (% itself is written %25)";
    const char *end = rest + strcspn(rest, "/?");
    const char *at = memchr(rest, '@', (size_t)(end - rest));
    if (at && memchr(at + 1, '@', (size_t)(end - at - 1)))
        return "it has two @ (one of a password is written %40)";
    return hosts_fault(at ? at + 1 : rest, end);
}
