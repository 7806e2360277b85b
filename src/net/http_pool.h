/* Many HTTP requests at once on one thread, over libcurl's multi interface.  The caller decides
 * when to wait; requests, responses and failures are those of net/http_client.h, and so are the
 * limits.
 *
 *   start   hands a request over; it runs while the thread is in turn
 *   turn    waits for sockets, moves every request on, and calls `done` of those that have ended
 *   wake    ends the wait of a turn, from any other thread
 *
 * A pool belongs to one thread, except for http_pool_wake.  It opens a connection for each request
 * that finds no idle one, so the caller bounds the number of requests in flight; at most
 * connections_max connections are kept for later requests. */
#ifndef HF_NET_HTTP_POOL_H
#define HF_NET_HTTP_POOL_H

#include "net/http_client.h"

struct http_pool;

/* `options` may be NULL. */
struct http_pool *http_pool_new(const struct http_client_options *options);
/* Closes all connections.  Requests in flight are dropped without a call of `done`; the servers may
 * have acted on them.  Accepts NULL. */
void http_pool_free(struct http_pool *pool);

/* Starts a request.  `x` belongs to the caller and stays where it is, with everything its request
 * points to, until `done` has been called, which happens within a later http_pool_turn, also for a
 * malformed request.  `done` may start further requests, including `x` again, or free `x`; it may
 * not call http_pool_turn or http_pool_free.  `done` may be NULL. */
void http_pool_start(struct http_pool *pool, struct http_exchange *x,
                     void (*done)(struct http_exchange *x));

/* Drops a request of which `done` has not been called, and closes its connection.  `done` is not
 * called any more; the server may have acted on the request. */
void http_pool_cancel(struct http_pool *pool, struct http_exchange *x);

/* Waits until a socket is ready, http_pool_wake is called, or `wait_us` have passed; a negative
 * `wait_us` sets no limit.  It may return earlier, with nothing done. */
void http_pool_turn(struct http_pool *pool, int64_t wait_us);
/* As http_pool_turn, and it ends when `fd` is readable, too; -1: no such file. */
void http_pool_turn_or(struct http_pool *pool, int64_t wait_us, int fd);

/* Makes the current turn, or else the next one, return without waiting.  Any thread. */
void http_pool_wake(struct http_pool *pool);

/* The number of requests whose `done` is still to come. */
size_t http_pool_running(const struct http_pool *pool);

#endif
