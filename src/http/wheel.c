/* See wheel.h. */
#include "http/wheel.h"

#include <stddef.h>

#define ROUND (WHEEL_SLOTS - 2) /* so that a slot that is being emptied gets no timer */

static struct timer **slot_of(struct wheel *w, int64_t tick)
{
    return &w->slots[tick % WHEEL_SLOTS];
}

static uint64_t *word_of(struct wheel *w, int64_t tick)
{
    return &w->used[tick % WHEEL_SLOTS / 64];
}

static uint64_t bit_of(int64_t tick) { return UINT64_C(1) << (tick % WHEEL_SLOTS % 64); }

/* The tick at whose beginning the deadline has passed, less than one round from now. */
static int64_t tick_for(const struct wheel *w, int64_t due_us)
{
    int64_t tick = due_us / WHEEL_TICK_US + 1;
    if (tick < w->tick)
        return w->tick;
    return tick < w->tick + ROUND ? tick : w->tick + ROUND;
}

static void insert(struct wheel *w, struct timer *t)
{
    t->tick = tick_for(w, t->due_us);
    struct timer **slot = slot_of(w, t->tick);
    t->prev = NULL;
    t->next = *slot;
    if (t->next)
        t->next->prev = t;
    *slot = t;
    *word_of(w, t->tick) |= bit_of(t->tick);
}

void wheel_open(struct wheel *w, int64_t now_us)
{
    *w = (struct wheel){.tick = now_us / WHEEL_TICK_US + 1};
}

void wheel_set(struct wheel *w, struct timer *t, int64_t due_us)
{
    t->due_us = due_us;
    if (t->tick && tick_for(w, due_us) >= t->tick)
        return;
    wheel_cancel(w, t);
    insert(w, t);
}

void wheel_cancel(struct wheel *w, struct timer *t)
{
    if (!t->tick)
        return;
    if (t->next)
        t->next->prev = t->prev;
    if (t->prev)
        t->prev->next = t->next;
    else
        *slot_of(w, t->tick) = t->next;
    if (!*slot_of(w, t->tick))
        *word_of(w, t->tick) &= ~bit_of(t->tick);
    t->tick = 0;
}

/* The first tick from w->tick on whose slot has timers; -1: there is none. */
static int64_t next_tick(const struct wheel *w)
{
    const int64_t n_words = WHEEL_SLOTS / 64, first = w->tick % WHEEL_SLOTS;
    for (int64_t i = 0; i <= n_words; i++) {
        int64_t word = (first / 64 + i) % n_words;
        uint64_t bits = w->used[word];
        if (i == 0)
            bits &= ~UINT64_C(0) << first % 64;
        else if (i == n_words)
            bits &= ~(~UINT64_C(0) << first % 64);
        if (bits) {
            int64_t slot = word * 64 + __builtin_ctzll(bits);
            return w->tick + (slot - first + WHEEL_SLOTS) % WHEEL_SLOTS;
        }
    }
    return -1;
}

struct timer *wheel_pop(struct wheel *w, int64_t now_us)
{
    const int64_t now = now_us / WHEEL_TICK_US;
    for (;;) {
        int64_t tick = next_tick(w);
        if (tick < 0 || tick > now) {
            if (w->tick < now)
                w->tick = now;
            return NULL;
        }
        w->tick = tick;
        struct timer *t = *slot_of(w, tick);
        wheel_cancel(w, t);
        if (t->due_us <= now_us)
            return t;
        w->tick++; /* for the moment: a deadline that moved goes into a slot still to come */
        insert(w, t);
        w->tick--;
    }
}

int64_t wheel_next_us(const struct wheel *w)
{
    int64_t tick = next_tick(w);
    return tick < 0 ? -1 : tick * WHEEL_TICK_US;
}
