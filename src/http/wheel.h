/* A timer wheel: the deadlines of many connections, each of which moves often and passes seldom.
 * Moving a deadline to a later time is one store; the timer is put into its new slot only when its
 * old one comes round.  Deadlines are kept to WHEEL_TICK_US, never early.  One thread's own; time
 * is whatever the caller says it is. */
#ifndef HF_HTTP_WHEEL_H
#define HF_HTTP_WHEEL_H

#include <stdbool.h>
#include <stdint.h>

#define WHEEL_SLOTS 512
#define WHEEL_TICK_US 100000 /* once round takes 51 s; later deadlines go round more than once */

struct timer {
    struct timer *prev, *next;
    int64_t due_us;
    int64_t tick; /* of the slot it is in; 0: it is in none */
};

struct wheel {
    struct timer *slots[WHEEL_SLOTS];
    uint64_t used[WHEEL_SLOTS / 64]; /* a bit for each slot that has timers */
    int64_t tick;                    /* the first that has not been looked at */
};

void wheel_open(struct wheel *w, int64_t now_us);
/* Sets or moves a timer, whose struct is zeroed before its first use. */
void wheel_set(struct wheel *w, struct timer *t, int64_t due_us);
void wheel_cancel(struct wheel *w, struct timer *t); /* does nothing for one that is not set */
/* Takes a timer whose time has come out of the wheel; NULL: there is none left. */
struct timer *wheel_pop(struct wheel *w, int64_t now_us);
/* When to look again; -1: no timer is set.  It may be earlier than the earliest deadline. */
int64_t wheel_next_us(const struct wheel *w);

#endif
