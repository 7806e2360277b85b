/* Queue: buyers of one seat stand in one line, and the first of it does a plain transaction.  The
 * articles give each key a worker with an inbox; here each buyer's own worker takes the place of
 * that one while it is at the head, so the order and the one-at-a-time are the same.
 *
 * Lines are by hash of event and seat, in the memory of this process: a second process has lines of
 * its own and sells the same seat again. */
#include <pthread.h>

#include "lab/desk.h"

#define LINES 64 /* as many bits as the set of them below */

static struct line {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    uint64_t next, serving; /* tickets */
} lines[LINES] = {
    [0 ... LINES - 1] = {.lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER}};

static unsigned line_of(const char *event, const char *seat)
{
    uint64_t hash = 14695981039346656037U;
    for (const char *c = event; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 1099511628211U;
    for (const char *c = seat; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 1099511628211U;
    return (unsigned)(hash >> 32) % LINES;
}

static void line_enter(struct line *l)
{
    pthread_mutex_lock(&l->lock);
    uint64_t ticket = l->next++;
    while (l->serving != ticket)
        pthread_cond_wait(&l->moved, &l->lock);
    pthread_mutex_unlock(&l->lock);
}

static void line_leave(struct line *l)
{
    pthread_mutex_lock(&l->lock);
    l->serving++;
    pthread_cond_broadcast(&l->moved);
    pthread_mutex_unlock(&l->lock);
}

static bool sell(struct desk *d, const struct strategy_want *want)
{
    if (!desk_do(d, "BEGIN") ||
        !desk_all_available(d, want->n_seats,
                            "SELECT status FROM seats WHERE event = $1 AND id = ANY ($2)",
                            want->event, d->ids.data, NULL))
        return false;
    desk_window(d);
    return desk_change(d,
                       "UPDATE seats SET status = 'HELD', holder = $3,"
                       " held_until = now() + $4::int * interval '1 second'"
                       " WHERE event = $1 AND id = ANY ($2)",
                       want->event, d->ids.data, want->user, d->hold_s,
                       NULL) == (long)want->n_seats &&
           desk_do(d, "COMMIT");
}

static bool attempt(struct desk *d, const struct strategy_want *want)
{
    uint64_t mine = 0; /* entered from the first to the last, so that no two wait in a circle */
    for (size_t i = 0; i < want->n_seats; i++)
        mine |= UINT64_C(1) << line_of(want->event, want->seats[i]);
    for (unsigned i = 0; i < LINES; i++)
        if (mine >> i & 1)
            line_enter(&lines[i]);
    bool won = sell(d, want);
    desk_end(d);
    for (unsigned i = 0; i < LINES; i++)
        if (mine >> i & 1)
            line_leave(&lines[i]);
    return won;
}

const struct strategy strategy_queue = {
    .name = "queue",
    .summary = "Lets the buyers of a seat through one at a time, in a line in this process.",
    .correct = true,
    .unless = "a second process sells the same seats",
    .needs = STRATEGY_NEEDS_POSTGRES,
    .open = desk_open,
    .attempt = attempt,
    .close = desk_close,
};
