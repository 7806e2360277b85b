/* What changed lately in an event, for streams: a bounded ring of changes, of which the oldest are
 * dropped first.  The worker appends while it publishes a batch, under the event's lock, so that
 * the ring, the seats and `seq` are always of one moment (I13).  A reader asks for everything after
 * a seq and gets each seat or area once, in its newest state, or learns that it asked too late. */
#ifndef HF_VIEW_FEED_H
#define HF_VIEW_FEED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

struct event;

/* What a change is about.  Changes are listed in this order. */
enum change_kind { CHANGE_SEAT, CHANGE_AREA, CHANGE_EVENT };

/* One seat or area, or the event's status and terms, and where it stood at `seq`. */
struct change {
    int64_t seq;    /* of the last row of the batch that changed it */
    uint32_t item;  /* index of the seat or area; 0 of the event */
    uint32_t state; /* a seat: enum seat_status; an area: places available; the event: 0 */
    enum change_kind kind;
};

struct feed {
    struct change *ring;
    uint32_t cap, cap_max, first, n; /* cap grows to cap_max, powers of two */
    int64_t floor;                   /* every change after this seq is in the ring */
};

/* The seq after which an event that is at `seq` may have changes that the feed does not know: the
 * first row of the log is the event's creation, which changes no seat. */
static inline int64_t feed_floor(int64_t seq) { return seq > 1 ? seq : 0; }

/* Begins with no changes after `seq`.  Keeps at most `len_max` changes, rounded up to a power of
 * two. */
void feed_init(struct feed *f, int64_t seq, uint32_t len_max);
void feed_close(struct feed *f); /* accepts a zeroed struct */
/* Appends a change; seqs never fall.  Amortised O(1).  The caller holds the event's lock. */
void feed_put(struct feed *f, const struct change *change);
/* Forgets all changes: the event was read again from the ledger, and what changed meanwhile is not
 * known. */
void feed_reset(struct feed *f, int64_t seq);

struct changes {
    int64_t seq; /* every change up to this seq is in the list */
    VEC(struct change) list;
};
/* Any thread: the net changes after `after` up to the event's seq, each seat and area once, ordered
 * by kind, then item.  Returns false if `after` is before the ring's floor, or beyond the
 * event's seq, which only a seq from elsewhere can be: the snapshot must then be read again.
 * O(changes log changes), of which only the copying happens under the lock. */
bool event_changes(struct event *e, int64_t after, struct changes *ret);
void changes_close(struct changes *c);

#endif
