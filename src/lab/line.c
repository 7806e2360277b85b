/* See line.h. */
#include "lab/line.h"

#include <pthread.h>

#define LINES 64 /* as many bits as the set of them below */

/* Somebody in a line, on its own stack: who is done wakes the next one and nobody else. */
struct place {
    pthread_cond_t served;
    bool is_served;
    struct place *behind;
};

static struct line {
    pthread_mutex_t lock;
    bool is_taken;
    struct place *first, *last;
} lines[LINES] = {[0 ... LINES - 1] = {.lock = PTHREAD_MUTEX_INITIALIZER}};

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
    struct place place = {.served = PTHREAD_COND_INITIALIZER};
    pthread_mutex_lock(&l->lock);
    if (l->is_taken) {
        *(l->first ? &l->last->behind : &l->first) = &place;
        l->last = &place;
        while (!place.is_served)
            pthread_cond_wait(&place.served, &l->lock);
    }
    l->is_taken = true;
    pthread_mutex_unlock(&l->lock);
}

/* The line stays taken if it passes to the next. */
static void line_leave(struct line *l)
{
    pthread_mutex_lock(&l->lock);
    struct place *next = l->first;
    if (next) {
        l->first = next->behind;
        next->is_served = true;
        pthread_cond_signal(&next->served);
    } else {
        l->is_taken = false;
    }
    pthread_mutex_unlock(&l->lock);
}

uint64_t lines_enter(const struct strategy_want *want)
{
    uint64_t mine = 0; /* entered from the first to the last, so that no two wait in a circle */
    for (size_t i = 0; i < want->n_seats; i++)
        mine |= UINT64_C(1) << line_of(want->event, want->seats[i]);
    for (unsigned i = 0; i < LINES; i++)
        if (mine >> i & 1)
            line_enter(&lines[i]);
    return mine;
}

void lines_leave(uint64_t mine)
{
    for (unsigned i = 0; i < LINES; i++)
        if (mine >> i & 1)
            line_leave(&lines[i]);
}
