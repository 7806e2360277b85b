/* A lock by hand in one process: a mutex, who holds it until when, and those in line, each with a
 * condition of its own.  No names, no modes, no table: the least that has an owner and an end. */
#ifndef HF_BENCH_LEASES_MEMORY_H
#define HF_BENCH_LEASES_MEMORY_H

#include <pthread.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/status.h"
#include "leases_side.h"

struct hand_place {
    pthread_cond_t turn;
    struct hand_place *next;
};
struct hand_lock {
    pthread_mutex_t mutex;
    bool held;
    uint8_t owner[OWNER_SIZE];
    int64_t until_us, fence;
    struct hand_place *head, **tail;
};
struct hand_memory {
    struct hand_lock *lock;
    bool own;
    struct hand_place place;
};

static void *hand_memory_open(const char *url, void *first)
{
    (void)url;
    struct hand_memory *m = hf_alloc(sizeof *m);
    m->own = first == NULL;
    m->lock = first ? ((struct hand_memory *)first)->lock : hf_alloc(sizeof *m->lock);
    if (m->own) {
        pthread_mutex_init(&m->lock->mutex, NULL);
        m->lock->tail = &m->lock->head;
    }
    pthread_cond_init(&m->place.turn, NULL);
    return m;
}

static void hand_memory_close(void *handle)
{
    struct hand_memory *m = handle;
    pthread_cond_destroy(&m->place.turn);
    if (m->own) {
        pthread_mutex_destroy(&m->lock->mutex);
        free(m->lock);
    }
    free(m);
}

static bool hand_memory_grant(struct hand_lock *k, const uint8_t *owner)
{
    int64_t now_us = clock_boot_us(&clock_system);
    if (k->held && k->until_us > now_us)
        return false;
    k->held = true;
    memcpy(k->owner, owner, OWNER_SIZE);
    k->until_us = now_us + 1000 * TTL_MS;
    k->fence++;
    return true;
}

static void hand_memory_leave(struct hand_lock *k, struct hand_place *place)
{
    struct hand_place **at = &k->head;
    while (*at != place)
        at = &(*at)->next;
    *at = place->next;
    if (!*at)
        k->tail = at;
}

static bool hand_memory_take(void *handle, const uint8_t *owner, atomic_bool *stop)
{
    struct hand_memory *m = handle;
    struct hand_lock *k = m->lock;
    pthread_mutex_lock(&k->mutex);
    bool mine = !k->head && hand_memory_grant(k, owner);
    if (!mine) {
        m->place.next = NULL;
        *k->tail = &m->place;
        k->tail = &m->place.next;
        while (!mine && !*stop) {
            struct timespec until;
            clock_gettime(CLOCK_REALTIME, &until);
            until.tv_sec++;
            pthread_cond_timedwait(&m->place.turn, &k->mutex, &until);
            mine = k->head == &m->place && hand_memory_grant(k, owner);
        }
        hand_memory_leave(k, &m->place);
    }
    pthread_mutex_unlock(&k->mutex);
    return mine;
}

static void hand_memory_give(void *handle, const uint8_t *owner)
{
    struct hand_lock *k = ((struct hand_memory *)handle)->lock;
    pthread_mutex_lock(&k->mutex);
    if (k->held && memcmp(k->owner, owner, OWNER_SIZE) == 0)
        k->held = false;
    if (!k->held && k->head)
        pthread_cond_signal(&k->head->turn);
    pthread_mutex_unlock(&k->mutex);
}

static void hand_memory_pair(void *handle, const uint8_t *owner)
{
    atomic_bool stop = true;
    if (!hand_memory_take(handle, owner, &stop))
        die("the mutex's lock was not granted");
    hand_memory_give(handle, owner);
}

static const struct side hand_memory = {
    .name = "mutex",
    .open = hand_memory_open,
    .close = hand_memory_close,
    .pair = hand_memory_pair,
    .take = hand_memory_take,
    .give = hand_memory_give,
};

#endif
