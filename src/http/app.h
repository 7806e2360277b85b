/* The application that a server serves: what src/http needs to know about its user, and no more.
 * The application's part of a request is a struct of its own that begins with a struct request:
 *
 *   struct call {
 *       struct request http;      first
 *       ...                       whatever the handlers keep between their steps
 *   };
 *
 * Requests are taken from free lists and go back to them, so the application's part is zeroed once,
 * when it is allocated; `release` has to leave it as a new request is to find it.  It is called
 * when the request has been answered, and before that if the client does not take its answer:
 * whatever the answer needs is in the request by then.  So it may be called twice. */
#ifndef HF_HTTP_APP_H
#define HF_HTTP_APP_H

#include <stddef.h>

struct problem;
struct request;
struct route;

struct http_app {
    size_t request_size;               /* of the whole struct */
    const struct route *routes;        /* the table, which ends with a row without a path */
    void (*release)(struct request *); /* before the request goes back to its free list */
    /* Writes what the transport refuses by itself (an unknown path, a body that is too large) in
     * the application's own format.  NULL: as a problem document.  `detail` may be NULL. */
    void (*refuse)(struct request *, const struct problem *, const char *detail);
    /* QUOTA_APP_MAX names of what the application counts by its pace (quota.h), for metrics; NULL:
     * nothing. */
    const char *const *paces;
    void *context; /* the application's own; server_context() returns it */
};

#endif
