/* See snapshot.h. */
#include "view/snapshot.h"

#include <stdlib.h>

#include "view/view.h"

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
static void take_down(struct snapshot_versions *versions, struct snapshot *s)
{
    *(s->older ? &s->older->newer : &versions->oldest) = s->newer;
    *(s->newer ? &s->newer->older : &versions->newest) = s->older;
    versions->n--;
}

/* A document that is listed loses its last reference under the list's lock, so whatever
 * versions_newest finds is alive. */
void snapshot_unref(struct snapshot *s)
{
    if (!s)
        return;
    struct snapshot_versions *versions = s->versions;
    if (versions)
        lock_take(&versions->lock);
    bool is_last = atomic_fetch_sub(&s->refs, 1) == 1;
    if (versions && is_last)
        take_down(versions, s);
    if (versions)
        lock_give(&versions->lock);
    if (!is_last)
        return;
    snapshot_free(s);
    versions_leave(versions);
}

/* ---- the versions of a document ---- */

struct snapshot_versions *versions_new(void)
{
    struct snapshot_versions *versions = hf_alloc(sizeof *versions);
    lock_init(&versions->lock);
    versions->refs = 1;
    return versions;
}

void versions_leave(struct snapshot_versions *versions)
{
    if (!versions)
        return;
    lock_take(&versions->lock);
    bool is_last = --versions->refs == 0;
    lock_give(&versions->lock);
    if (!is_last)
        return;
    lock_close(&versions->lock);
    free(versions);
}

void versions_put(struct snapshot_versions *versions, struct snapshot *s, int64_t now_us)
{
    lock_take(&versions->lock);
    s->versions = versions;
    s->listed_us = now_us;
    s->newer = NULL;
    s->older = versions->newest;
    *(s->older ? &s->older->newer : &versions->oldest) = s;
    versions->newest = s;
    versions->n++;
    versions->refs++;
    lock_give(&versions->lock);
}

struct snapshot *versions_newest(struct snapshot_versions *versions)
{
    lock_take(&versions->lock);
    struct snapshot *s = versions->newest;
    if (s)
        snapshot_ref(s);
    lock_give(&versions->lock);
    return s;
}

/* Under the lock.  Versions of a document are about equally long. */
static bool is_full(const struct snapshot_versions *versions)
{
    return versions->n >= SNAPSHOT_VERSIONS_MAX &&
           versions->n * versions->newest->text.cap >= SNAPSHOT_BYTES_FREE;
}

/* Under the lock.  Returns how long to wait for the readers of the oldest version; 0: no longer. */
static int64_t revoke(struct snapshot *oldest, int64_t now_us)
{
    int64_t stays_us = oldest->listed_us + SNAPSHOT_STAY_US - now_us;
    if (stays_us > 0)
        return stays_us;
    if (!atomic_exchange(&oldest->pin.revoked, true))
        oldest->revoked_us = now_us;
    return now_us - oldest->revoked_us < SNAPSHOT_STAY_US ? CUT_OFF_US : 0;
}

bool versions_have_room(struct snapshot_versions *versions, int64_t now_us, int64_t *ret_wait_us)
{
    lock_take(&versions->lock);
    int64_t wait_us = is_full(versions) ? revoke(versions->oldest, now_us) : 0;
    lock_give(&versions->lock);
    if (wait_us > 0)
        *ret_wait_us = wait_us;
    return wait_us == 0;
}

/* ---- events ---- */

struct snapshot *event_plan(struct event *e, bool packed)
{
    if (!packed)
        return versions_newest(e->documents.plain_plans);
    lock_take(&e->documents.lock);
    struct snapshot *s = e->documents.plan;
    if (s)
        snapshot_ref(s);
    lock_give(&e->documents.lock);
    return s;
}

void event_keep_plan(struct event *e, struct snapshot *s)
{
    lock_take(&e->documents.lock);
    struct snapshot *old = e->documents.plan;
    e->documents.plan = s;
    lock_give(&e->documents.lock);
    snapshot_unref(old);
}

struct snapshot *event_snapshot(struct event *e, bool packed)
{
    lock_take(&e->documents.lock);
    struct snapshot *s = e->documents.map;
    if (s && (s->seq != atomic_load_explicit(&e->shown.seq, memory_order_acquire) ||
              (packed && !atomic_load_explicit(&s->is_packed, memory_order_acquire))))
        s = NULL;
    if (s)
        snapshot_ref(s);
    lock_give(&e->documents.lock);
    return s;
}

void event_keep_snapshot(struct event *e, struct snapshot *s, int64_t now_us)
{
    versions_put(e->documents.maps, s, now_us);
    lock_take(&e->documents.lock);
    struct snapshot *old = e->documents.map;
    e->documents.map = s;
    lock_give(&e->documents.lock);
    snapshot_unref(old);
}
