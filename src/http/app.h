/* The application that a server serves: what src/http needs to know about its user, and no more.
 * The application's part of a request is a struct of its own that begins with a struct request:
 *
 *   struct call {
 *       struct request http;      first
 *       ...                       whatever the handlers keep between their steps
 *   };
 *
 * Requests are taken from free lists and go back to them, so the application's part is zeroed once,
 * when it is allocated; `release` has to leave it as a new request is to find it. */
#ifndef HF_HTTP_APP_H
#define HF_HTTP_APP_H

#include <stddef.h>

struct problem;
struct request;
struct route;
struct stream_source;

struct http_app {
    size_t request_size;        /* of the whole struct */
    const struct route *routes; /* the table, which ends with a row without a path */
    const struct stream_source
        *streams; /* what routes with `streams` tell of; NULL: there are none */
    void (*release)(struct request *); /* before the request goes back to its free list */
    /* Writes what the transport refuses by itself (an unknown path, a body that is too large) in
     * the application's own format.  NULL: as a problem document.  `detail` may be NULL. */
    void (*refuse)(struct request *, const struct problem *, const char *detail);
    void *context; /* the application's own; server_context() returns it */
};

#endif
