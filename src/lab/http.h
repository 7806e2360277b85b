/* As much of an HTTP/1.1 client as the lab needs: one connection that is kept, one request at a
 * time, answers with a Content-Length. */
#ifndef HF_LAB_HTTP_H
#define HF_LAB_HTTP_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/status.h"

struct http {
    int socket; /* 0: none; a zeroed struct is closed */
    struct buf in;
};

/* Connects to http://HOST:PORT, HOST in numbers, unless it is connected. */
HF_MUST_USE bool http_ready(struct http *h, const char *url, int timeout_s, struct hf_err *err);
void http_close(struct http *h);
/* The status, and the body with a NUL after it, until the next call; `body` NULL: none.  0: no
 * answer could be had, and the connection is closed. */
int http_call(struct http *h, const char *method, const char *path, const struct buf *body,
              const char **ret_body);

#endif
