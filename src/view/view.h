/* The view: the in-process picture of every seat of every loaded event; the audit log, folded.
 *
 * Which thread touches what:
 *   def, rows (names, layout)      immutable once the event is in the view: any thread, no lock
 *   terms (prices, limits)         immutable and replaced as a whole at publish; the worker uses
 *                                  e->terms, other threads event_terms_take
 *   seat.shown, event.shown        written by the worker at publish, read by any thread (atomics,
 *                                  but for shown.terms)
 *   shown.terms, feed, the head of a seat    written by the worker at publish, under `lock`
 *   sync, heat                     any thread (atomics); heat.since is set before view_install
 *   documents                      any thread; see snapshot.h
 *   everything else of a seat, holds, the heap    only the worker
 * The worker decides on its own fields and shows them to other threads only after the commit, so no
 * answer is ever given from state that is not durable (I7).  `lock` makes a change of many seats
 * and of seq one step for readers of the whole map.  These locks are held for copying only; nothing
 * in this folder starts a thread or waits for one.
 *
 * Events are loaded on their first use and leave when nobody has asked for them for a while; see
 * registry.h for how other threads keep an event while they use it.  A seat takes 24 bytes, a live
 * hold about 160. */
#ifndef HF_VIEW_VIEW_H
#define HF_VIEW_VIEW_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/heap.h"
#include "base/lock.h"
#include "base/table.h"
#include "model/rows.h"
#include "view/feed.h"
#include "view/heat.h"
#include "view/registry.h"

struct seat {
    _Atomic uint64_t shown;           /* seat_shown(): expiry in ms << 2 | status */
    uint64_t owner : HOLD_FENCE_BITS; /* first fence of the owning hold; 0: none */
    uint64_t pending : 24; /* 1 + index of this batch's seat_write; 0: the batch did not touch it */
    uint32_t head_low;     /* see seat_head() */
    uint8_t head_high;
    uint8_t status;  /* enum seat_status, as decided */
    uint8_t channel; /* what it is blocked for unless a hold or a booking has it; 0: none */
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
    struct table_node node; /* in the table of holds, by key */
    int64_t key, fence, expires_at, max_expires_at;
    int64_t last_seq; /* of its last row in the log, as decided */
    struct event *event;
    struct heap_node due; /* in the heap of deadlines; its key is expires_at */
    uint64_t client; /* the address that it counts against, see base/client_number.h; 0: none */
    uint64_t owner;  /* owner_hash() of its owner; 0: none */
    struct hold *owner_next;  /* among the live holds of the same owner; see view_owner_holds */
    int64_t payment;          /* number of the payment of its pending booking; 0: none */
    int64_t wait;             /* the entry of the waiting list that it is offered to; 0: none */
    struct area_claim *areas; /* stored behind the seats */
    uint32_t pending;         /* 1 + index of this batch's hold_write; 0: none */
    uint32_t n_seats;
    uint16_t n_areas;
    uint8_t status;  /* enum hold_status, as decided */
    uint8_t channel; /* see hold_row.channel */
    uint32_t seats[];
};

/* General admission: places are counted, not numbered. */
struct area {
    int64_t held, booked;      /* as decided */
    int64_t blocked;           /* as decided: the sum of `blocks` */
    struct area_blocks blocks; /* as decided */
    /* as shown: those of the last commit */
    _Atomic int64_t available, booked_shown, blocked_shown;
    uint32_t pending; /* 1 + index of this batch's area_write; 0: not touched */
};

/* How many places pass from one status to another; `channel` says for whom the blocked ones of them
 * are blocked. */
struct area_passage {
    int64_t quantity;
    enum seat_status from, to;
    uint32_t channel;
};
void area_pass(struct area *area, const struct area_passage *p);
/* How many places of the area are blocked for the channel. */
int64_t area_blocked_for(const struct area *area, uint32_t channel);

struct row {
    const char *name; /* borrowed from the definition */
    size_t name_len;
    uint32_t section, first, n_seats;
};

/* All rows of all sections, in seat order, and an open-addressed index of them by name.  Where
 * seats have names of their own, rows are not indexed. */
struct event_rows {
    struct row *list;
    uint32_t n, index_mask;
    uint32_t *index; /* 1 + row; NULL: none */
};

/* The event as of the last commit, as other threads see it, beside `shown` of its seats and areas.
 * The worker writes it at publish. */
struct event_shown {
    _Atomic int64_t seq;        /* of the last change */
    _Atomic uint32_t counts[4]; /* seats in each status */
    _Atomic int status;         /* enum event_status */
    _Atomic int32_t max_per_hold;
    _Atomic int64_t hold_ttl_ms;
    _Atomic int64_t sales_open_at, sales_end; /* 0: none */
    _Atomic bool has_types;                   /* the terms have ticket types */
    const struct event_terms *terms;          /* under event.lock; see event_terms_take */
};

/* Used where other servers write too. */
struct event_sync {
    _Atomic int64_t confirmed_ms; /* ledger time when the view was last known to be exact */
    _Atomic bool following;       /* the worker has been asked to catch up */
    _Atomic bool announced;       /* the follower has been asked to tell other servers */
};

/* When the event was last asked for: idle.c of the engine lets unused events leave. */
struct event_usage {
    uint32_t seen;   /* slot_uses() when the worker last looked */
    uint32_t lately; /* how many were new to it then */
    int64_t last_us; /* when it last found new ones */
};

struct owner_places {
    uint64_t owner;
    uint32_t places;
};

/* What was read with the event, until view_install or view_reloaded takes it over. */
struct event_loading {
    struct table_node *holds;        /* a chain of live holds, as they came: by deadline */
    struct table_node *last_hold;    /* of the chain */
    size_t n_holds;                  /* in it */
    VEC(struct owner_places) owners; /* booked places */
    uint8_t *heads;                  /* HEAD_SIZE bytes per seat; NULL: none */
};

/* What is rendered of the event; see snapshot.h. */
struct event_documents {
    struct lock lock;
    struct snapshot *map;                  /* the newest; under `lock` */
    struct snapshot *plan;                 /* compressed; under `lock` */
    struct snapshot_versions *maps;        /* those that are still being read */
    struct snapshot_versions *plain_plans; /* the plan, not compressed, while somebody reads it */
    int64_t draw_at_us;                    /* the drawer's: when its allowance is full again */
};

struct event {
    /* Never changed: the layout, and where its seats and areas are. */
    struct event_def *def; /* owned.  Its status and terms are those that it was created or read
                              with */
    struct seat *seats;
    struct area *areas; /* def->areas.n of them */
    struct event_rows rows;
    char id_text[ID_TEXT_SIZE];

    /* Any thread, as each of them says. */
    struct event_shown shown;
    struct event_sync sync;
    struct lock lock;
    struct feed feed; /* what changed lately, under `lock` */
    struct heat heat;

    /* The worker's own fields.  What it has decided is ahead of `shown`. */
    struct clock_row clock;          /* as of the last commit */
    struct clock_row draft;          /* as decided in this batch; equals clock between batches */
    const struct event_terms *terms; /* as decided; a reference of its own */
    enum event_status status_draft;  /* as decided */
    uint32_t n_holds;                /* live holds in the view */
    uint32_t unmoved;                /* batches in a row before which nobody else had changed it */
    bool in_batch;
    bool stale;                    /* differs from the ledger: load again before deciding */
    bool heads_due;                /* the next batch stores the heads of all seats */
    bool has_owners;               /* booked places of owners are counted */
    uint64_t swept_batch;          /* the batch that last ended all due holds of this event */
    struct free_seats *free_seats; /* where they stand together; see free_seats.h */
    struct waitlist *waitlist;     /* NULL: nobody has ever waited; see waitlist.h */
    struct event_registration registered; /* `slot`: any thread that has pinned it */
    struct event_usage usage;
    struct event_loading loading; /* before it is installed: of the thread that builds it */

    struct event_documents documents; /* any thread, as each of them says */
};

struct view;

struct view *view_new(void);
void view_free(struct view *v);
/* From now on counts the places of addresses together with `first`, which must outlive `v`. */
void view_share_clients(struct view *v, struct view *first);

/* ---- any thread ---- */

/* The event if it is loaded, else NULL: for the worker, and for a thread that has pinned it.
 * Lock-free. */
struct event *view_event(const struct view *v, int64_t event);
/* Where events are looked up and pinned by other threads. */
const struct registry *view_registry(const struct view *v);
/* Another pin of an event that the caller has pinned, or whose worker the caller is. */
struct event *event_share(struct event *e);
/* Gives a pin back; accepts NULL, and an event that is not installed. */
void event_give(struct event *e);
/* About how many bytes the event takes, with its documents.  Any thread that has pinned it. */
size_t event_memory(struct event *e);
/* Finds the seat of that id, which is `<section>-<row>-<number>` where rows are counted; false if
 * there is none.  O(1). */
bool event_seat_find(const struct event *e, const char *name, size_t len, uint32_t *ret_index);
/* Appends the seat's id.  O(log rows). */
void event_seat_name(const struct event *e, uint32_t index, struct buf *out);
/* The row that the seat stands in.  O(log rows). */
const struct row *event_row_of(const struct event *e, uint32_t index);
/* Makes the index by which event_seat_find finds rows.  Seats of a venue have ids instead. */
void event_index_rows(struct event *e);
const char *event_id_text(const struct event *e);
/* The index of the area or category of that name, or of the first section; -1 if there is none.
 * O(areas), O(sections), O(categories). */
int64_t event_category_find(const struct event *e, const char *name, size_t len);
int64_t event_area_find(const struct event *e, const char *name, size_t len);
int64_t event_section_find(const struct event *e, const char *name, size_t len);

static inline enum seat_status seat_shown_status(uint64_t shown) { return shown & 3; }
static inline int64_t seat_shown_until(uint64_t shown) { return (int64_t)(shown >> 2); }
static inline uint64_t seat_shown(const struct event *e, uint32_t index)
{
    return atomic_load_explicit(&e->seats[index].shown, memory_order_acquire);
}

/* The event's terms as of the last commit.  event_terms_give gives the reference back. */
const struct event_terms *event_terms_take(struct event *e);
void event_terms_give(const struct event_terms *terms); /* accepts NULL */
/* Another reference to terms that the caller has one to. */
const struct event_terms *event_terms_share(const struct event_terms *terms);
/* Takes over `terms` and returns the first reference to them. */
const struct event_terms *event_terms_new(struct event_terms *terms);
/* Index in event_terms.prices of the seat's category; O(log rows). */
uint32_t event_seat_category(const struct event *e, uint32_t index);
/* Index in event_terms.prices of the area. */
static inline uint32_t event_area_price(const struct event *e, uint32_t area)
{
    return (uint32_t)event_def_categories(e->def) + area;
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
void event_read_counts(struct event *e, struct event_counts *ret);

/* The state of every seat and area at one moment. */
struct seat_map {
    int64_t seq;
    int64_t at;         /* the past moment; 0: now */
    uint8_t *seats;     /* an enum seat_status for each, in seat order */
    int64_t *available; /* places left in each area */
    enum event_status status;
    const struct event_terms *terms; /* a reference */
};
/* Copies the states under the event's lock.  O(seats).  seat_map_close frees the copy. */
void event_map_read(struct event *e, struct seat_map *ret);
/* The same as of the time `at`, if nothing has changed since: seats of holds that were due at that
 * time count as available. */
void event_map_read_at(struct event *e, int64_t at, struct seat_map *ret);
void seat_map_close(struct seat_map *map);

/* ---- loading: build anywhere, install on the worker ---- */

/* Takes over `def` (numbered).  Every seat is available until event_load_seat says otherwise. */
struct event *event_new(struct event_def *def, const struct clock_row *clock);
void event_load_seat(struct event *e, uint32_t index, enum seat_status status, int64_t hold);
void event_load_channel(struct event *e, uint32_t index, uint32_t channel);
/* `blocks` is copied; NULL: none. */
void event_load_area(struct event *e, uint32_t index, int64_t held, int64_t booked,
                     const struct area_blocks *blocks);
/* Replaces the worker's terms; publish_end or view_reloaded shows them. */
void event_set_terms(struct event *e, const struct event_terms *terms);
/* The hold's seats become held. */
void event_load_hold(struct event *e, const struct hold_row *row);
/* Tells the holds that have been loaded which payments their pending bookings wait for.  `list` is
 * ascending by hold. */
struct hold_payment {
    int64_t hold, payment;
};
void event_load_payments(struct event *e, const struct hold_payment *list, size_t n);
/* The seq of the seat's last row in the log; 0 unless it is loaded. */
void event_load_head(struct event *e, uint32_t index, int64_t seq);
/* Does the event have every seat and area that the row lists? */
bool event_fits_hold(const struct event *e, const struct hold_row *row);
void event_free(struct event *e);
/* Frees what was loaded and is of no use once the event is installed. */
void event_drop_loaded(struct event *e);
/* Puts the event and its holds into the view and returns it; if another copy was there first,
 * frees this one and returns the other.  Returns NULL, and frees the event, if it has been in
 * memory and left again since it was read: it must be read anew. */
struct event *view_install(struct view *v, struct event *e);
/* Frees the event and returns true, unless it has live holds, or entries that wait, or somebody has
 * pinned it.  Between
 * batches only.  Nothing is lost: what is in the view of an event without live holds is in the
 * ledger, too. */
bool view_leave(struct view *v, struct event *e);
/* Forgets every seat's state and every hold of an installed event, to load them anew. */
void view_forget(struct view *v, struct event *e);
/* After view_forget and event_load_*: takes the holds in and shows all seats as of `clock`. */
void view_reloaded(struct view *v, struct event *e, const struct clock_row *clock);

/* ---- the worker's part ---- */

struct hold *view_hold(const struct view *v, int64_t key);
/* Puts `after` in the place of `before`, a live hold of the same key, which the caller frees or
 * puts back.  O(log n). */
void view_hold_replace(struct view *v, struct hold *before, struct hold *after);
/* A hold like `before` but for its places; to be put into the view by view_hold_replace, or freed.
 */
struct hold *hold_with_places(const struct hold *before, const uint32_t *seats, uint32_t n_seats,
                              const struct area_claim *areas, uint32_t n_areas);
/* Adds a live hold, as the row says, and its deadline. */
struct hold *view_hold_add(struct view *v, struct event *e, const struct hold_row *row);
void view_hold_remove(struct view *v, struct hold *h);
size_t view_holds_len(const struct view *v);
/* How many places the live holds of one address have, in loaded events.  O(1). */
uint32_t view_client_places(const struct view *v, uint64_t client);

/* Owners.  An owner of an event is known by a hash of the label; 0 is no owner.  The number of
 * places that it has held is counted for every event, that of booked places only where
 * max_per_owner is set. */
uint64_t owner_hash(const struct event *e, const char *owner, size_t len);
/* The first of the owner's live holds, or NULL; the others follow by owner_next.  O(1). */
struct hold *view_owner_holds(const struct view *v, uint64_t owner);
/* Places that the owner has held and booked. */
int64_t view_owner_places(const struct view *v, uint64_t owner);
/* Counts places that the owner has booked, or has no longer if `places` is negative. */
void view_owner_booked(struct view *v, int64_t event, uint64_t owner, int64_t places);
/* While the event is loaded: counts what view_install and view_reloaded take over. */
void event_load_owner(struct event *e, uint64_t owner, uint32_t places);

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
/* Shows the decided status and terms; the caller holds e->lock. */
void event_show_terms(struct event *e);

#endif
