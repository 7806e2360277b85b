/* What other threads hand to the cell's thread: requests, that the client of one has gone, and that
 * the service ends.
 *
 *   any thread          put, end, gone; retire, refuse, stop
 *   the cell's thread   take, take_gone; sleep, gather, goes_on
 *   the thread that     take, after refuse
 *   ends the service
 *
 * A request is lent from cell_inbox_put until cell_inbox_end.  The queue is bounded, but for
 * keep-alives (N5). */
#ifndef HF_CELL_CELL_INBOX_H
#define HF_CELL_CELL_INBOX_H

#include <pthread.h>

#include "cell/node.h"

struct cell_inbox {
    size_t queue_max;
    pthread_mutex_t lock;              /* of all that follow; held for a few instructions */
    pthread_cond_t wake;               /* of the thread */
    struct cell_request *first, **end; /* oldest first */
    size_t n_queued;                   /* of which are no keep-alives */
    size_t n_wanted;           /* the thread sleeps until so many are queued; 0: it does not */
    struct cell_request *gone; /* lent requests whose clients have gone */
    bool sleeps;
    bool retires, refuses, stops;
};
void cell_inbox_init(struct cell_inbox *in, size_t queue_max);
void cell_inbox_close(struct cell_inbox *in);

static inline bool cell_inbox_is_queued(const struct cell_request *r)
{
    return r->kind != CELL_REQUEST_KEEPALIVE;
}

/* CELL_DONE: the request is in the inbox.  CELL_OVERLOADED, CELL_STOPPING: it is not. */
HF_MUST_USE enum cell_result cell_inbox_put(struct cell_inbox *in, struct cell_request *r);
/* The client of the request has gone.  Harmless if the request is not lent any more. */
void cell_inbox_gone(struct cell_inbox *in, struct cell_request *r);
/* The request, also one that cell_inbox_put has not taken, is about to be given back. */
void cell_inbox_end(struct cell_inbox *in, struct cell_request *r);

/* All requests, oldest first, by ->next. */
struct cell_request *cell_inbox_take(struct cell_inbox *in);
/* A lent request whose client has gone; NULL: there is none, or not any more. */
struct cell_request *cell_inbox_take_gone(struct cell_inbox *in);

void cell_inbox_retire(struct cell_inbox *in); /* from now on only stale looks are taken */
void cell_inbox_refuse(struct cell_inbox *in); /* nothing is taken */
void cell_inbox_stop(struct cell_inbox *in);   /* the thread ends */
/* Returns false if the thread is to end. */
HF_MUST_USE bool cell_inbox_goes_on(struct cell_inbox *in, bool *ret_retires);

/* Sleeps until there is something to do that the thread, which knows of `retires`, has not seen. */
void cell_inbox_sleep(struct cell_inbox *in, bool retires, int64_t until_us);
/* Sleeps until most of the clients that were just answered have asked again.  Returns false if more
 * than half of them have not. */
HF_MUST_USE bool cell_inbox_gather(struct cell_inbox *in, size_t n_answered, int64_t until_us);

#endif
