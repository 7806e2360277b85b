/* The server that a URL names.  No state; any thread. */
#ifndef HF_NET_HTTP_ORIGIN_H
#define HF_NET_HTTP_ORIGIN_H

#include <stdbool.h>

#include "base/status.h"

#define HTTP_ORIGIN_SIZE 128
struct http_origin {
    bool is_tls;
    bool is_loopback; /* localhost, 127.0.0.0/8 or ::1 */
    bool is_bare;     /* the URL is scheme, host and port: no user, path, query or final slash */
    char text[HTTP_ORIGIN_SIZE]; /* "https://host:443", cut if it is longer */
};
/* Returns false if the text is no http:// or https:// URL. */
HF_MUST_USE bool http_origin_parse(const char *url, struct http_origin *ret);

#endif
