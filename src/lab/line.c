/* See line.h. */
#include "lab/line.h"

#include <pthread.h>
#include <string.h>

#include "base/hash.h"

#define LINES 64 /* one bit each in the sets of lines_enter */

/* A waiting thread's place in a line, on that thread's stack.  Each place has its own condition, so
 * that leaving a line wakes the next thread only. */
struct line_place {
    pthread_cond_t served;
    bool is_served;
    struct line_place *next;
};

static struct waiting_line {
    pthread_mutex_t lock;
    bool is_taken;
    struct line_place *first, *last;
} lines[LINES] = {[0 ... LINES - 1] = {.lock = PTHREAD_MUTEX_INITIALIZER}};

static unsigned line_of(const char *event, const char *seat)
{
    uint64_t hash = hash_more(HASH_START, event, strlen(event));
    return (unsigned)(hash_finish(hash_more(hash, seat, strlen(seat))) % LINES);
}

static void line_enter(struct waiting_line *l)
{
    struct line_place place = {.served = PTHREAD_COND_INITIALIZER};
    pthread_mutex_lock(&l->lock);
    if (l->is_taken) {
        *(l->first ? &l->last->next : &l->first) = &place;
        l->last = &place;
        while (!place.is_served)
            pthread_cond_wait(&place.served, &l->lock);
    }
    l->is_taken = true;
    pthread_mutex_unlock(&l->lock);
}

/* If a thread is waiting, the line passes to it without becoming free in between. */
static void line_leave(struct waiting_line *l)
{
    pthread_mutex_lock(&l->lock);
    struct line_place *head = l->first;
    if (head) {
        l->first = head->next;
        head->is_served = true;
        pthread_cond_signal(&head->served);
    } else {
        l->is_taken = false;
    }
    pthread_mutex_unlock(&l->lock);
}

uint64_t lines_enter(const struct strategy_want *want)
{
    uint64_t entered = 0;
    for (size_t i = 0; i < want->n_seats; i++)
        entered |= UINT64_C(1) << line_of(want->event, want->seats[i]);
    /* Every user enters lines in the order of their numbers, so that no two wait for each other. */
    for (unsigned i = 0; i < LINES; i++)
        if (entered >> i & 1)
            line_enter(&lines[i]);
    return entered;
}

void lines_leave(uint64_t entered)
{
    for (unsigned i = 0; i < LINES; i++)
        if (entered >> i & 1)
            line_leave(&lines[i]);
}
