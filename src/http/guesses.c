/* See guesses.h.  On HTTP threads.  A request with a key that is known costs a hash of 16 bytes and
 * one load; the lock is for wrong keys alone. */
#include "http/guesses.h"

#include <string.h>

#include "base/hash.h"
#include "base/log.h"

#define LOG_EVERY_US INT64_C(60000000)
#define KEY_HASHED 8 /* bytes of a digest that are as good as all of them here */

void guesses_open(struct guesses *g, struct metrics *m)
{
    lock_init(&g->lock);
    g->total = metrics_counter(m, "holdfast_wrong_keys_total", NULL,
                               "Requests with an access key that is none of this server.");
}

void guesses_close(struct guesses *g) { lock_close(&g->lock); }

/* ---- the log ---- */

static bool same(const struct address *a, const struct address *b)
{
    return a->v4 == b->v4 && memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

/* The address's entry, or one that can become it; NULL: all have been logged within a minute. */
static struct guesser *find(struct guesses *g, const struct address *a, int64_t now_us)
{
    struct guesser *free = NULL;
    for (int i = 0; i < GUESSES_LOGGED_MAX; i++) {
        struct guesser *one = &g->guessers[i];
        if (one->used && same(&one->address, a))
            return one;
        if (!one->used || now_us - one->logged_us >= LOG_EVERY_US)
            free = one;
    }
    if (!free)
        return NULL;
    g->n_others += free->n_unlogged;
    *free = (struct guesser){.address = *a, .logged_us = now_us - LOG_EVERY_US, .used = true};
    return free;
}

void guesses_note(struct guesses *g, const struct address *a, int64_t now_us)
{
    char client[ADDRESS_TEXT_SIZE];
    uint64_t n = 0, n_others = 0;
    counter_add(g->total, 1);
    lock_take(&g->lock);
    struct guesser *one = find(g, a, now_us);
    ++*(one ? &one->n_unlogged : &g->n_others);
    if (one && now_us - one->logged_us >= LOG_EVERY_US) {
        n = one->n_unlogged;
        n_others = g->n_others;
        one->n_unlogged = g->n_others = 0;
        one->logged_us = now_us;
    }
    lock_give(&g->lock);
    if (!n)
        return;
    address_text(a, client);
    log_write(LOG_WARN, "wrong access keys", "client", client, "count", LOG_INT(n), "from_others",
              LOG_INT(n_others), NULL);
}

/* ---- known keys ---- */

static uint64_t hash_of(const struct address *a, const uint8_t key[DIGEST_SIZE])
{
    uint64_t hash = hash_more(HASH_START, a->bytes, a->v4 ? 4 : 8);
    return hash_finish(hash_more(hash, key, KEY_HASHED)) | 1; /* 0: nothing */
}

static size_t slot_of(uint64_t hash) { return (hash >> 1) % GUESSES_KNOWN; }

bool guesses_know(const struct guesses *g, const struct address *a, const uint8_t key[DIGEST_SIZE])
{
    uint64_t hash = hash_of(a, key);
    return atomic_load_explicit(&g->known[slot_of(hash)], memory_order_relaxed) == hash;
}

void guesses_remember(struct guesses *g, const struct address *a, const uint8_t key[DIGEST_SIZE])
{
    uint64_t hash = hash_of(a, key);
    atomic_store_explicit(&g->known[slot_of(hash)], hash, memory_order_relaxed);
}
