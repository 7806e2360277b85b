/* See snapshot.h. */
#include "rules/snapshot.h"

#include <stdlib.h>

#include "rules/view.h"

#define CUT_OFF_US 50000 /* how soon readers that have to leave may be gone */

struct snapshot *snapshot_new(int64_t seq)
{
    struct snapshot *s = hf_alloc(sizeof *s);
    s->refs = 1;
    s->seq = seq;
    return s;
}

struct snapshot *snapshot_ref(struct snapshot *s)
{
    atomic_fetch_add(&s->refs, 1);
    return s;
}

static void snapshot_free(struct snapshot *s)
{
    buf_close(&s->text);
    buf_close(&s->packed);
    free(s);
}

/* Under the lock. */
static void take_down(struct shelf *shelf, struct snapshot *s)
{
    *(s->older ? &s->older->newer : &shelf->oldest) = s->newer;
    *(s->newer ? &s->newer->older : &shelf->newest) = s->older;
    shelf->n--;
}

/* A document on a shelf loses its last reference under the shelf's lock, so whatever shelf_newest
 * finds is alive. */
void snapshot_unref(struct snapshot *s)
{
    if (!s)
        return;
    struct shelf *shelf = s->shelf;
    if (shelf)
        lock_take(&shelf->lock);
    bool is_last = atomic_fetch_sub(&s->refs, 1) == 1;
    if (shelf && is_last)
        take_down(shelf, s);
    if (shelf)
        lock_give(&shelf->lock);
    if (!is_last)
        return;
    snapshot_free(s);
    shelf_leave(shelf);
}

/* ---- shelves ---- */

struct shelf *shelf_new(void)
{
    struct shelf *shelf = hf_alloc(sizeof *shelf);
    lock_init(&shelf->lock);
    shelf->refs = 1;
    return shelf;
}

void shelf_leave(struct shelf *shelf)
{
    if (!shelf)
        return;
    lock_take(&shelf->lock);
    bool is_last = --shelf->refs == 0;
    lock_give(&shelf->lock);
    if (!is_last)
        return;
    lock_close(&shelf->lock);
    free(shelf);
}

void shelf_put(struct shelf *shelf, struct snapshot *s, int64_t now_us)
{
    lock_take(&shelf->lock);
    s->shelf = shelf;
    s->shelved_us = now_us;
    s->newer = NULL;
    s->older = shelf->newest;
    *(s->older ? &s->older->newer : &shelf->oldest) = s;
    shelf->newest = s;
    shelf->n++;
    shelf->refs++;
    lock_give(&shelf->lock);
}

struct snapshot *shelf_newest(struct shelf *shelf)
{
    lock_take(&shelf->lock);
    struct snapshot *s = shelf->newest;
    if (s)
        snapshot_ref(s);
    lock_give(&shelf->lock);
    return s;
}

/* Under the lock.  Versions of a document are about equally long. */
static bool is_full(const struct shelf *shelf)
{
    return shelf->n >= SHELF_VERSIONS_MAX && shelf->n * shelf->newest->text.cap >= SHELF_BYTES_FREE;
}

/* Under the lock.  Returns how long to wait for the readers of the oldest version; 0: no longer. */
static int64_t revoke(struct snapshot *oldest, int64_t now_us)
{
    int64_t stays_us = oldest->shelved_us + SHELF_STAY_US - now_us;
    if (stays_us > 0)
        return stays_us;
    if (!atomic_exchange(&oldest->pin.revoked, true))
        oldest->revoked_us = now_us;
    return now_us - oldest->revoked_us < SHELF_STAY_US ? CUT_OFF_US : 0;
}

bool shelf_has_room(struct shelf *shelf, int64_t now_us, int64_t *ret_wait_us)
{
    lock_take(&shelf->lock);
    int64_t wait_us = is_full(shelf) ? revoke(shelf->oldest, now_us) : 0;
    lock_give(&shelf->lock);
    if (wait_us > 0)
        *ret_wait_us = wait_us;
    return wait_us == 0;
}

/* ---- events ---- */

struct snapshot *event_plan(struct event *e, bool packed)
{
    if (!packed)
        return shelf_newest(e->plain_plans);
    lock_take(&e->snapshot_lock);
    struct snapshot *s = e->plan;
    if (s)
        snapshot_ref(s);
    lock_give(&e->snapshot_lock);
    return s;
}

void event_keep_plan(struct event *e, struct snapshot *s)
{
    lock_take(&e->snapshot_lock);
    struct snapshot *old = e->plan;
    e->plan = s;
    lock_give(&e->snapshot_lock);
    snapshot_unref(old);
}

struct snapshot *event_snapshot(struct event *e, bool packed)
{
    lock_take(&e->snapshot_lock);
    struct snapshot *s = e->snapshot;
    if (s && (s->seq != atomic_load_explicit(&e->seq, memory_order_acquire) ||
              (packed && !atomic_load_explicit(&s->is_packed, memory_order_acquire))))
        s = NULL;
    if (s)
        snapshot_ref(s);
    lock_give(&e->snapshot_lock);
    return s;
}

void event_keep_snapshot(struct event *e, struct snapshot *s, int64_t now_us)
{
    shelf_put(e->maps, s, now_us);
    lock_take(&e->snapshot_lock);
    struct snapshot *old = e->snapshot;
    e->snapshot = s;
    lock_give(&e->snapshot_lock);
    snapshot_unref(old);
}
