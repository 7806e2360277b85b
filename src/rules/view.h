/* The view: the in-process picture of every seat of every loaded event; the audit log, folded.
 *
 * Which thread touches what:
 *   layout (names, rows, prices)   immutable once the event is in the view: any thread, no lock
 *   seat.shown, counts, seq        written by the worker at publish, read by any thread (atomics)
 *   the head of a seat             written by the worker at publish, under the event's lock
 *   everything else of a seat, holds, the heap    only the worker
 * The worker decides on its own fields and shows them to other threads only after the commit, so no
 * answer is ever given from state that is not durable (I7).  `lock` makes a change of many seats
 * and of seq one step for readers of the whole map.  These locks are held for copying only; nothing
 * in this folder starts a thread or waits for one.
 *
 * Events are loaded on their first use and stay.  A seat takes 24 bytes, a live hold about 130. */
#ifndef HF_RULES_VIEW_H
#define HF_RULES_VIEW_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/heap.h"
#include "base/lock.h"
#include "model/rows.h"
#include "rules/feed.h"

struct seat {
    _Atomic uint64_t shown;           /* seat_shown(): expiry in ms << 2 | status */
    uint64_t owner : HOLD_FENCE_BITS; /* first fence of the owning hold; 0: none */
    uint64_t pending : 24; /* 1 + index of this batch's seat_write; 0: the batch did not touch it */
    uint32_t head_low;     /* see seat_head() */
    uint8_t head_high;
    uint8_t status; /* enum seat_status, as decided */
};
_Static_assert(sizeof(struct seat) == 24, "an event may have millions of seats");
#define SEAT_PENDING_MAX ((1u << 24) - 1)

/* The seq of the seat's last row in the log, as of the last commit; 0: none. */
static inline int64_t seat_head(const struct seat *seat)
{
    return (int64_t)seat->head_high << 32 | seat->head_low;
}
static inline void seat_set_head(struct seat *seat, int64_t seq)
{
    seat->head_low = (uint32_t)seq;
    seat->head_high = (uint8_t)(seq >> 32);
}

/* A live hold, or one that the current batch has ended. */
struct hold {
    int64_t key, fence, expires_at, max_expires_at;
    int64_t last_seq; /* of its last row in the log, as decided */
    struct event *event;
    struct hold *next;        /* in its bucket */
    struct heap_node due;     /* in the heap of deadlines; its key is expires_at */
    uint64_t client;          /* hash of the address that it counts against; 0: none */
    struct area_claim *areas; /* stored behind the seats */
    uint32_t pending;         /* 1 + index of this batch's hold_write; 0: none */
    uint32_t n_seats;
    uint16_t n_areas;
    uint8_t status; /* enum hold_status, as decided */
    uint32_t seats[];
};

/* General admission: places are counted, not numbered. */
struct area {
    int64_t held, booked;         /* as decided */
    _Atomic int64_t available;    /* as shown: capacity - held - booked of the last commit */
    _Atomic int64_t booked_shown; /* as shown: booked of the last commit */
    uint32_t pending;             /* 1 + index of this batch's area_write; 0: not touched */
};

/* Counts that `quantity` places of the area pass from one status to another. */
static inline void area_pass(struct area *area, int64_t quantity, enum seat_status from,
                             enum seat_status to)
{
    area->held += quantity * ((to == SEAT_HELD) - (from == SEAT_HELD));
    area->booked += quantity * ((to == SEAT_BOOKED) - (from == SEAT_BOOKED));
}

struct row {
    const char *name; /* borrowed from the definition */
    size_t name_len;
    uint32_t section, first, n_seats;
};

struct event {
    struct event_def *def; /* owned, never changed: the layout as created */
    char id_text[ID_TEXT_SIZE];
    /* all rows of all sections, in seat order, and an open-addressed index of them by name */
    struct row *rows;
    uint32_t n_rows, row_index_mask;
    uint32_t *row_index; /* 1 + row */

    _Atomic int64_t seq;        /* of the last change shown */
    _Atomic uint32_t counts[4]; /* seats shown in each status */
    _Atomic int status;         /* enum event_status */
    /* Used where other servers write too. */
    _Atomic int64_t confirmed_ms; /* ledger time when the view was last known to be exact */
    _Atomic bool following;       /* the worker has been asked to catch up */
    _Atomic bool announced;       /* the follower has been asked to tell other servers */
    struct lock lock;
    struct feed feed; /* what changed lately, under `lock` */

    /* the worker's own fields */
    struct clock_row clock; /* as of the last commit */
    struct clock_row draft; /* as decided in this batch; equals clock between batches */
    bool in_batch;
    bool stale;                     /* differs from the ledger: load again before deciding */
    bool heads_due;                 /* the next batch stores the heads of all seats */
    uint32_t n_holds;               /* live holds in the view */
    enum event_status status_draft; /* as decided */
    uint64_t swept_batch;           /* the batch that last ended all due holds of this event */
    struct seat *seats;
    struct area *areas;    /* def->areas.n of them */
    struct best *best;     /* where free seats stand together; see best.h */
    struct hold *loaded;   /* live holds read with the event, until view_install */
    uint8_t *loaded_heads; /* HEAD_SIZE bytes per seat, until view_install; NULL: none */

    struct lock snapshot_lock;
    struct snapshot *snapshot; /* the newest rendered map; under snapshot_lock, see snapshot.h */
    int64_t draw_at_us;        /* the drawer's: when its allowance is full again */
};

struct view;

struct view *view_new(void);
void view_free(struct view *v);
/* From now on counts the places of addresses together with `first`, which must outlive `v`. */
void view_share_clients(struct view *v, struct view *first);

/* ---- any thread ---- */

/* The event if it is loaded, else NULL.  Lock-free. */
struct event *view_event(const struct view *v, int64_t event);
/* Calls `event` for every loaded event. */
void view_each(const struct view *v, void (*event)(void *ctx, struct event *e), void *ctx);
/* Finds the seat named `<section>-<row>-<number>`; false if there is none.  O(1). */
bool event_seat_find(const struct event *e, const char *name, size_t len, uint32_t *ret_index);
/* Appends the seat's name.  O(log rows). */
void event_seat_name(const struct event *e, uint32_t index, struct buf *out);
/* The row that the seat stands in.  O(log rows). */
const struct row *event_row_of(const struct event *e, uint32_t index);
int64_t event_seat_price(const struct event *e, uint32_t index);
const char *event_id_text(const struct event *e);
/* The index of the area or section of that name; -1 if there is none.  O(areas), O(sections). */
int64_t event_area_find(const struct event *e, const char *name, size_t len);
int64_t event_section_find(const struct event *e, const char *name, size_t len);

static inline enum seat_status seat_shown_status(uint64_t shown) { return shown & 3; }
static inline int64_t seat_shown_until(uint64_t shown) { return (int64_t)(shown >> 2); }
static inline uint64_t seat_shown(const struct event *e, uint32_t index)
{
    return atomic_load_explicit(&e->seats[index].shown, memory_order_acquire);
}

/* The key of the hold that owns the seat, as decided; 0: none. */
static inline int64_t seat_hold(const struct event *e, uint32_t index)
{
    uint64_t fence = e->seats[index].owner;
    return fence ? HOLD_KEY(e->def->id.key, fence) : 0;
}
static inline void seat_set_hold(struct event *e, uint32_t index, int64_t hold)
{
    e->seats[index].owner =
        (uint64_t)HOLD_FIRST_FENCE(hold) & ((UINT64_C(1) << HOLD_FENCE_BITS) - 1);
}
/* Reads the seat's head and the event's seq of the same moment.  Any thread. */
int64_t event_seat_head(struct event *e, uint32_t index, int64_t *ret_seq);

/* Seats and area places together. */
struct event_counts {
    int64_t seq, available, held, booked, blocked;
};
void event_read_counts(struct event *e, struct event_counts *ret);

/* The state of every seat and area at one moment. */
struct seat_map {
    int64_t seq;
    uint8_t *seats;     /* an enum seat_status for each, in seat order */
    int64_t *available; /* places left in each area */
};
/* Copies the states under the event's lock.  O(seats).  seat_map_close frees the copy. */
void event_map_read(struct event *e, struct seat_map *ret);
void seat_map_close(struct seat_map *map);

/* ---- loading: build anywhere, install on the worker ---- */

/* Takes over `def` (numbered).  Every seat is available until event_load_seat says otherwise. */
struct event *event_new(struct event_def *def, const struct clock_row *clock);
void event_load_seat(struct event *e, uint32_t index, enum seat_status status, int64_t hold);
void event_load_area(struct event *e, uint32_t index, int64_t held, int64_t booked);
/* The hold's seats become held. */
void event_load_hold(struct event *e, const struct hold_row *row);
/* The seq of the seat's last row in the log; 0 unless it is loaded. */
void event_load_head(struct event *e, uint32_t index, int64_t seq);
/* Does the event have every seat and area that the row lists? */
bool event_fits_hold(const struct event *e, const struct hold_row *row);
void event_free(struct event *e);
/* Puts the event and its holds into the view and returns it; if another copy was there first,
 * frees this one and returns the other. */
struct event *view_install(struct view *v, struct event *e);
/* Forgets every seat's state and every hold of an installed event, to load them anew. */
void view_forget(struct view *v, struct event *e);
/* After view_forget and event_load_*: takes the holds in and shows all seats as of `clock`. */
void view_reloaded(struct view *v, struct event *e, const struct clock_row *clock);

/* ---- the worker's part ---- */

struct hold *view_hold(const struct view *v, int64_t key);
/* Adds a live hold, as the row says, and its deadline. */
struct hold *view_hold_add(struct view *v, struct event *e, const struct hold_row *row);
void view_hold_remove(struct view *v, struct hold *h);
size_t view_holds_len(const struct view *v);
/* How many places the live holds of one address have, in loaded events.  O(1). */
uint32_t view_client_places(const struct view *v, uint64_t client);
/* The live hold that falls due first, or NULL.  O(1). */
struct hold *view_first_due(const struct view *v);
/* Lists up to `max` holds that are due at `now`, in no promised order.  O(max). */
size_t view_due(const struct view *v, int64_t now, struct hold **ret_holds, size_t max);
/* To be called after expires_at was changed.  O(log n). */
void view_deadline_moved(struct view *v, struct hold *h);
/* Takes the hold out of the heap when it ends, or puts it back when that is undone.  O(log n). */
void view_deadline_drop(struct view *v, struct hold *h);
void view_deadline_put(struct view *v, struct hold *h);

/* Shows the decided state of a seat or an area; the caller holds e->lock. */
void event_show_seat(struct event *e, uint32_t index, int64_t until_ms);
void event_show_area(struct event *e, uint32_t index);

#endif
