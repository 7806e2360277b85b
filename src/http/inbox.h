/* What other threads hand to a loop: requests that are done, and connections that were accepted for
 * it.  Two lists without locks, linked by the requests and connections themselves, and an eventfd
 * that wakes the loop, once however much is put in before it looks. */
#ifndef HF_HTTP_INBOX_H
#define HF_HTTP_INBOX_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/pending.h"

struct conn;
struct request;

struct loop_inbox {
    struct waker waker;
    int wake_fd; /* becomes readable */
    atomic_bool woken;
    _Atomic(struct request *) done;
    _Atomic(struct conn *) arrived;
};

/* Returns false if there is no eventfd; errno says why. */
bool inbox_open(struct loop_inbox *b);
void inbox_close(struct loop_inbox *b);

/* ---- on any thread ---- */

void inbox_wake(struct loop_inbox *b);
/* The request's pending is done.  Wakes the loop, at once or with others (base/pending.h). */
void inbox_put_done(struct loop_inbox *b, struct request *r);
/* Does not wake the loop. */
void inbox_put_arrived(struct loop_inbox *b, struct conn *c);

/* ---- on the loop's thread ---- */

/* The loop is awake; call this before the lists are taken. */
void inbox_awake(struct loop_inbox *b);
/* All that are there, linked by `next`; the requests in the order in which they were done. */
struct request *inbox_take_done(struct loop_inbox *b);
struct conn *inbox_take_arrived(struct loop_inbox *b);

#endif
