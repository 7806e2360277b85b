/* Rendered documents that many readers share by reference count, such as the newest map of an
 * event: bytes that nothing here looks into.  One thread renders the maps (engine/drawer.h); any
 * thread reads.
 *
 * A document lives until its last reader is done, so slow readers can keep many versions of it
 * alive.  A list has the versions of one document that are alive, and has few of them: where
 * there is no room for another, the readers of the oldest are to be cut off (base/pin.h). */
#ifndef HF_VIEW_SNAPSHOT_H
#define HF_VIEW_SNAPSHOT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/lock.h"
#include "base/pin.h"

#define SNAPSHOT_VERSIONS_MAX 4
/* While all versions together take less than this, there may be more of them. */
#define SNAPSHOT_BYTES_FREE ((size_t)8 << 20)
/* How long the readers of a version have at least. */
#define SNAPSHOT_STAY_US INT64_C(2000000)

struct event;
struct snapshot_versions;

/* Never changes once it is shared, but for `packed`, which is added once, and what the list has
 * of it. */
struct snapshot {
    _Atomic int refs;
    int64_t seq; /* the map is exactly of this seq */
    struct buf text;
    atomic_bool is_packed; /* `packed` may be read */
    struct buf packed;     /* gzip */
    struct pin pin;        /* of its slow readers */

    /* under the list's lock */
    struct snapshot_versions *versions; /* that lists it; NULL: none */
    struct snapshot *older, *newer;     /* in the list */
    int64_t listed_us, revoked_us;      /* when it was put there; when its readers had to leave */
};

/* An empty snapshot with one reference. */
struct snapshot *snapshot_new(int64_t seq);
struct snapshot *snapshot_ref(struct snapshot *s);
void snapshot_unref(struct snapshot *s); /* accepts NULL */

/* Lives as long as its owner or one of its documents.  Any thread. */
struct snapshot_versions {
    struct lock lock;
    size_t refs;                      /* the owner's, and one for each document */
    struct snapshot *newest, *oldest; /* of those that are alive; no references */
    size_t n;
};

struct snapshot_versions *versions_new(void);
/* The owner needs it no more; accepts NULL. */
void versions_leave(struct snapshot_versions *versions);
/* Puts a document that is not shared yet on the versions, where it stays as long as it lives. */
void versions_put(struct snapshot_versions *versions, struct snapshot *s, int64_t now_us);
/* A reference to the newest document that is alive; NULL: there is none. */
struct snapshot *versions_newest(struct snapshot_versions *versions);
/* May another version be made?  If not, *ret_wait_us says when to ask again: when the oldest
 * version has had its time, or when its readers have been cut off, which this asks for.  Readers
 * that do not go are not waited for longer than SNAPSHOT_STAY_US. */
bool versions_have_room(struct snapshot_versions *versions, int64_t now_us, int64_t *ret_wait_us);

/* A reference to the event's plan: compressed, once it has been kept; plain, while somebody reads
 * it.  Else NULL. */
struct snapshot *event_plan(struct event *e, bool packed);
/* Keeps the compressed plan, which never changes; takes over the reference. */
void event_keep_plan(struct event *e, struct snapshot *s);

/* A reference to the event's newest snapshot if it is of the event's very seq, and packed if that
 * is asked for; else NULL. */
struct snapshot *event_snapshot(struct event *e, bool packed);
/* Makes it the newest; takes over the reference. */
void event_keep_snapshot(struct event *e, struct snapshot *s, int64_t now_us);

#endif
