/* Leases by hand in one process, twice.  hand_memory does the minimum of what the driver does: a
 * table of names under one mutex with, for each name, the holder, its deadline and fence, and the
 * queue of waiters, each with its own condition variable.  A name without holder and waiters is
 * removed, and a release says whether the lease was still the caller's.  There are no modes, slots,
 * priorities, labels or checks.  hand_bare has one lock and no name, so it looks up and removes
 * nothing: it does not make the same calls but is a lower bound for them. */
#ifndef HF_BENCH_LEASES_MEMORY_H
#define HF_BENCH_LEASES_MEMORY_H

#include <pthread.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/status.h"
#include "leases_side.h"

#define HAND_BUCKETS 1024

struct hand_place {
    pthread_cond_t turn;
    struct hand_place *next;
};
struct hand_lock {
    bool held;
    uint8_t owner[OWNER_SIZE];
    int64_t until_us, fence;
    struct hand_place *head, **tail;
    struct hand_lock *next; /* in its bucket */
    size_t name_len;
    char name[];
};
struct hand_table {
    pthread_mutex_t mutex;
    int64_t fence;
    struct hand_lock *buckets[HAND_BUCKETS];
    struct hand_lock bare;
};
struct hand_memory {
    struct hand_table *table;
    bool own;
    struct hand_place place;
};

static void *hand_memory_open(const char *url, void *first)
{
    (void)url;
    struct hand_memory *m = hf_alloc(sizeof *m);
    m->own = first == NULL;
    m->table = first ? ((struct hand_memory *)first)->table : hf_alloc(sizeof *m->table);
    if (m->own) {
        pthread_mutex_init(&m->table->mutex, NULL);
        m->table->bare.tail = &m->table->bare.head;
    }
    pthread_cond_init(&m->place.turn, NULL);
    return m;
}

static void hand_memory_close(void *handle)
{
    struct hand_memory *m = handle;
    pthread_cond_destroy(&m->place.turn);
    if (m->own) {
        pthread_mutex_destroy(&m->table->mutex);
        free(m->table);
    }
    free(m);
}

/* ---- one lock; the caller holds the mutex ---- */

static bool hand_grant(struct hand_table *t, struct hand_lock *k, const uint8_t *owner)
{
    int64_t now_us = clock_boot_us(&clock_system);
    if (k->held && k->until_us > now_us)
        return false;
    k->held = true;
    memcpy(k->owner, owner, OWNER_SIZE);
    k->until_us = now_us + 1000 * TTL_MS;
    k->fence = ++t->fence;
    return true;
}

static void hand_leave(struct hand_lock *k, struct hand_place *place)
{
    struct hand_place **at = &k->head;
    while (*at != place)
        at = &(*at)->next;
    *at = place->next;
    if (!*at)
        k->tail = at;
}

static bool hand_take(struct hand_memory *m, struct hand_lock *k, const uint8_t *owner,
                      atomic_bool *stop)
{
    bool mine = !k->head && hand_grant(m->table, k, owner);
    if (mine || *stop)
        return mine;
    m->place.next = NULL;
    *k->tail = &m->place;
    k->tail = &m->place.next;
    while (!mine && !*stop) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec++;
        pthread_cond_timedwait(&m->place.turn, &m->table->mutex, &until);
        mine = k->head == &m->place && hand_grant(m->table, k, owner);
    }
    hand_leave(k, &m->place);
    return mine;
}

static void hand_give(struct hand_lock *k, const uint8_t *owner)
{
    if (k->held && memcmp(k->owner, owner, OWNER_SIZE) == 0)
        k->held = false;
    if (!k->held && k->head)
        pthread_cond_signal(&k->head->turn);
}

/* ---- the table ---- */

static struct hand_lock **hand_find(struct hand_table *t, const char *name, size_t len)
{
    uint64_t hash = 14695981039346656037U;
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (unsigned char)name[i]) * 1099511628211U;
    struct hand_lock **at = &t->buckets[(hash ^ hash >> 32) % HAND_BUCKETS];
    while (*at && !((*at)->name_len == len && memcmp((*at)->name, name, len) == 0))
        at = &(*at)->next;
    return at;
}

static struct hand_lock *hand_new(const char *name, size_t len)
{
    struct hand_lock *k = malloc(sizeof *k + len);
    if (!k)
        die("no memory");
    k->held = false;
    k->head = NULL;
    k->tail = &k->head;
    k->next = NULL;
    k->name_len = len;
    memcpy(k->name, name, len);
    return k;
}

static void hand_remove_if_idle(struct hand_lock **at)
{
    struct hand_lock *k = *at;
    if (k->held || k->head)
        return;
    *at = k->next;
    free(k);
}

static bool hand_take_named(void *handle, const char *name, const uint8_t *owner, atomic_bool *stop)
{
    struct hand_memory *m = handle;
    size_t len = strlen(name);
    pthread_mutex_lock(&m->table->mutex);
    struct hand_lock **at = hand_find(m->table, name, len);
    if (!*at)
        *at = hand_new(name, len);
    bool mine = hand_take(m, *at, owner, stop);
    if (!mine)
        hand_remove_if_idle(hand_find(m->table, name, len));
    pthread_mutex_unlock(&m->table->mutex);
    return mine;
}

static bool hand_give_named(void *handle, const char *name, const uint8_t *owner)
{
    struct hand_memory *m = handle;
    pthread_mutex_lock(&m->table->mutex);
    struct hand_lock **at = hand_find(m->table, name, strlen(name));
    bool mine = *at && (*at)->held && (*at)->until_us > clock_boot_us(&clock_system) &&
                memcmp((*at)->owner, owner, OWNER_SIZE) == 0;
    if (mine) {
        hand_give(*at, owner);
        hand_remove_if_idle(at);
    }
    pthread_mutex_unlock(&m->table->mutex);
    return mine;
}

static bool hand_memory_take(void *handle, const uint8_t *owner, atomic_bool *stop)
{
    return hand_take_named(handle, "hot", owner, stop);
}

static void hand_memory_give(void *handle, const uint8_t *owner)
{
    hand_give_named(handle, "hot", owner);
}

static void hand_memory_pair(void *handle, const uint8_t *owner)
{
    atomic_bool stop = true;
    if (!hand_take_named(handle, "bench", owner, &stop) || !hand_give_named(handle, "bench", owner))
        die("the table's lease was not granted");
}

/* ---- without a name ---- */

static bool hand_bare_take(void *handle, const uint8_t *owner, atomic_bool *stop)
{
    struct hand_memory *m = handle;
    pthread_mutex_lock(&m->table->mutex);
    bool mine = hand_take(m, &m->table->bare, owner, stop);
    pthread_mutex_unlock(&m->table->mutex);
    return mine;
}

static void hand_bare_give(void *handle, const uint8_t *owner)
{
    struct hand_memory *m = handle;
    pthread_mutex_lock(&m->table->mutex);
    hand_give(&m->table->bare, owner);
    pthread_mutex_unlock(&m->table->mutex);
}

static void hand_bare_pair(void *handle, const uint8_t *owner)
{
    atomic_bool stop = true;
    if (!hand_bare_take(handle, owner, &stop))
        die("the mutex's lock was not granted");
    hand_bare_give(handle, owner);
}

static const struct side hand_memory = {
    .name = "table",
    .open = hand_memory_open,
    .close = hand_memory_close,
    .pair = hand_memory_pair,
    .take = hand_memory_take,
    .give = hand_memory_give,
};
static const struct side hand_bare = {
    .name = "mutex",
    .open = hand_memory_open,
    .close = hand_memory_close,
    .pair = hand_bare_pair,
    .take = hand_bare_take,
    .give = hand_bare_give,
};

#endif
