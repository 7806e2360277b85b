/* Answers that wait for their clients: what they cost, and how long they may wait.
 *
 * An answer that the socket takes at once is never here, so most answers cost nothing of this. From
 * the moment that a socket takes no more of an answer, the answer is in its loop's list, the oldest
 * first, and its memory counts against one budget of all loops: a body of its own by its size, a
 * body that many answers share (base/pin.h) once.  Before it is counted, the request gives back all
 * that sending its answer does not need, and a body that is equal to another's (bodies.h).
 *
 * A client is cut off, its connection reset so that the kernel keeps nothing for it either,
 *   - if it takes less than UNSENT_RATE bytes a second on average, after UNSENT_GRACE_US, which is
 *     also a deadline: n bytes are sent within UNSENT_GRACE_US and n / UNSENT_RATE seconds, or not
 *     at all,
 *   - if it takes nothing for UNSENT_STALL_US; it may have closed its socket if it has ended its
 *     direction, so it then has UNSENT_LEFT_US,
 *   - while the budget is exceeded, the answer of all loops that has waited longest first; but one
 *     that exceeds it by itself goes alone,
 *   - if the body that it reads has been revoked, because too many later ones are alive.
 *
 * A loop cuts off its own clients alone.  Where the oldest answer is another loop's, that loop is
 * woken, and until it acts the budget may be exceeded by an eighth; beyond that a loop takes its
 * own oldest.  All functions are for the thread of the loop. */
#ifndef HF_HTTP_UNSENT_H
#define HF_HTTP_UNSENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/metrics.h"

#define UNSENT_BYTES_MAX_DEFAULT ((size_t)256 << 20)
#define UNSENT_RATE 4096 /* bytes a second */
#define UNSENT_GRACE_US INT64_C(10000000)
#define UNSENT_STALL_US INT64_C(30000000)
#define UNSENT_LEFT_US INT64_C(2000000) /* the same for a client that will send no more */

struct conn;
struct loop;
struct pin;

/* Why a client was cut off. */
enum unsent_cut { CUT_SLOW, CUT_MEMORY, CUT_OUTDATED, UNSENT_CUTS };

/* The budget of all loops. */
struct unsent_budget {
    size_t max;
    atomic_size_t bytes;
    struct gauge *bytes_now;
    struct counter *cuts[UNSENT_CUTS];
};

/* One answer that waits; part of its request.  Zeroed while it does not. */
struct unsent {
    struct unsent *older, *newer;
    struct conn *conn;
    struct pin *pin;    /* of a shared body; NULL: the body is the request's own */
    size_t bytes;       /* of its own memory, as counted */
    int64_t begun_us;   /* when it began to wait */
    int64_t moved_us;   /* when the client was last seen to have taken something */
    int64_t taken;      /* bytes that the client has taken since then, when last looked at */
    int64_t taken_base; /* what the kernel said when it began to wait */
};

/* The answers of a loop that wait. */
struct unsent_list {
    struct unsent *oldest, *newest;
    _Atomic int64_t oldest_us; /* when the oldest began to wait; INT64_MAX: none waits */
    size_t n_shared;           /* of them with shared bodies */
    int64_t look_us;           /* when to look for revoked bodies again */
};

void unsent_budget_open(struct unsent_budget *b, size_t max, struct metrics *m);
void unsent_list_open(struct unsent_list *a);

/* ---- unsent.c ---- */

/* The answer begins to wait. */
void unsent_begin(struct conn *c);
/* Looks at how much the client has taken; does nothing unless its answer waits. */
void unsent_look(struct conn *c);
/* The answer has been sent, or its connection ends; does nothing for one that did not wait. */
void unsent_over(struct conn *c);
/* When the next turn has to come at the latest; -1: whenever it may. */
int64_t unsent_next_us(const struct unsent_list *a);

/* ---- unsent_cut.c ---- */

/* The socket takes no more of the connection's answer for now.  The connection may have been cut
 * off when this returns. */
void unsent_wait(struct conn *c);
/* The deadline that unsent_wait set has passed. */
void unsent_due(struct conn *c);
/* At the end of a turn: keeps to the budget, and cuts off readers of revoked bodies. */
void unsent_turn(struct loop *l);

#endif
