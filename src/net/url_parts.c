/* See url_parts.h. */
#include "net/url_parts.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "base/status.h"

#define HOST_LEN_MAX 255

char *url_decoded(const char *text, size_t len)
{
    char *out = hf_alloc(len + 1);
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        if (c == '%') {
            int high = i + 2 < len ? hex_digit(text[i + 1]) : -1;
            int low = i + 2 < len ? hex_digit(text[i + 2]) : -1;
            c = high < 0 || low < 0 ? '\0' : (char)(16 * high + low);
            i += 2;
        }
        if ((unsigned char)c < ' ' || c == 0x7f) {
            explicit_bzero(out, n);
            free(out);
            return NULL;
        }
        out[n++] = c;
    }
    return out;
}

/* Returns 0 if the text is no number from 1 to 65535. */
static int parse_port(const char *text, size_t len)
{
    int port = 0;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9' || i == 5)
            return 0;
        port = 10 * port + (text[i] - '0');
    }
    return port <= 65535 ? port : 0;
}

/* A name, an IPv4 address, or an IPv6 address in brackets. */
static bool is_host(const char *text, size_t len)
{
    bool in_brackets = len > 2 && text[0] == '[' && text[len - 1] == ']';
    if (len == 0 || len > HOST_LEN_MAX)
        return false;
    for (size_t i = in_brackets; i < len - in_brackets; i++) {
        unsigned char c = (unsigned char)text[i];
        bool in_name = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       c == '-' || c == '.' || c == '_' || c >= 0x80;
        if (!in_name && !(in_brackets && (c == ':' || c == '%')))
            return false;
    }
    return true;
}

const char *url_origin(const char *text, size_t len, int default_port, bool is_tls,
                       char **ret_origin)
{
    const char *bracket = memchr(text, ']', len);
    const char *from = bracket ? bracket : text;
    const char *colon = memchr(from, ':', len - (size_t)(from - text));
    size_t host_len = colon ? (size_t)(colon - text) : len;
    int port = colon ? parse_port(colon + 1, len - host_len - 1) : default_port;
    if (!is_host(text, host_len))
        return "a host is missing or malformed (IPv6 goes in brackets, and there is no path after "
               "the hosts)";
    if (port == 0)
        return "the port is not a number from 1 to 65535 (IPv6 goes in brackets)";
    char whole[HOST_LEN_MAX + 32];
    (void)snprintf(whole, sizeof whole, "%s://%.*s:%d", is_tls ? "https" : "http", (int)host_len,
                   text, port);
    *ret_origin = hf_strndup(whole, strlen(whole));
    return NULL;
}
