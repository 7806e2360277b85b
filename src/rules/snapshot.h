/* The newest rendered map of an event, shared by reference count: bytes that nothing here looks
 * into.  One thread renders (engine/drawer.h); any thread reads. */
#ifndef HF_RULES_SNAPSHOT_H
#define HF_RULES_SNAPSHOT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

struct event;

/* Never changes once it is shared, but for `packed`, which is added once. */
struct snapshot {
    _Atomic int refs;
    int64_t seq; /* the map is exactly of this seq */
    struct buf text;
    atomic_bool is_packed; /* `packed` may be read */
    struct buf packed;     /* gzip */
    struct event *lender;  /* the event that forgets it with its last reference; NULL: none */
};

/* An empty snapshot with one reference. */
struct snapshot *snapshot_new(int64_t seq);
struct snapshot *snapshot_ref(struct snapshot *s);
void snapshot_unref(struct snapshot *s); /* accepts NULL */

/* A reference to the event's plan: compressed, once it has been kept; plain, while it is lent to
 * somebody.  Else NULL. */
struct snapshot *event_plan(struct event *e, bool packed);
/* Keeps the compressed plan, which never changes; takes over the reference. */
void event_keep_plan(struct event *e, struct snapshot *s);
/* Lends the plain plan to whoever asks while somebody has a reference; takes none. */
void event_lend_plan(struct event *e, struct snapshot *s);

/* A reference to the event's newest snapshot if it is of the event's very seq, and packed if that
 * is asked for; else NULL. */
struct snapshot *event_snapshot(struct event *e, bool packed);
/* Makes it the newest; takes over the reference. */
void event_keep_snapshot(struct event *e, struct snapshot *s);

#endif
