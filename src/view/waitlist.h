/* The waiting list of one event, as the event's worker has decided it: its live entries, in one
 * queue for each wish.  Part of the view; only the worker's thread calls these.
 *
 * All entries of a queue want the same, but for ticket types, so if the first of them finds nothing
 * that fits, no other does: the queue is shut.  A place that becomes free opens the queues that it
 * can serve, and other terms open all.  The rules try the first entries of the open queues in the
 * order of their ranks (rules/decide_wait.h), and shut a queue that finds nothing.
 *
 * Entries that were offered a hold are in no queue: they wait for the end of that hold.
 *
 * Cost: a free place is noted in O(1), but O(log rows) for a seat; opening costs O(queues), once per
 * settling; adding an entry, its turn and its leaving O(log entries).  An entry takes at most 200
 * bytes, a wish that nobody else has as much again. */
#ifndef HF_VIEW_WAITLIST_H
#define HF_VIEW_WAITLIST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/heap.h"
#include "base/slots.h"
#include "base/table.h"
#include "model/rows.h"

struct event;

struct wait_queue {
    struct table_node node; /* in waitlist.queues, by wish */
    struct heap_node open;  /* in waitlist.open, by the rank of its first entry; not in it: shut */
    struct heap turns;      /* its entries that wait, by rank */
    uint32_t n;             /* entries that have this wish, those that were offered a hold too */
    struct wait_wish wish;  /* untyped */
};

/* Ticket types that entries name. */
struct wait_types {
    struct table_node node; /* in waitlist.types */
    uint32_t n;             /* entries that name these */
    uint16_t places[TYPES_MAX];
};

struct wait_entry {
    struct table_node node; /* in waitlist.entries, by key */
    struct heap_node turn;  /* in its queue while it waits */
    struct heap_node due;   /* in waitlist.due while it waits: when it ends by itself */
    struct wait_queue *queue;
    struct wait_types *types; /* NULL: all places are of the first */
    int64_t key, number, rank, until, read_at, last_seq;
    int64_t hold; /* that it is offered; 0: none */
    uint64_t client, owner;
    uint32_t pending; /* 1 + index of this batch's wait_write; 0: the batch did not touch it */
    uint8_t status;   /* enum wait_status, as decided */
};

/* Where a place has become free: a section and a category, or an area (-1: not of an area). */
struct freed_places {
    int32_t area;
    uint32_t section, category;
};
#define FREED_KINDS_MAX 32 /* beyond, every queue is opened */

struct waitlist {
    struct event *event;
    struct table entries; /* live ones, and those that the batch has ended */
    struct table queues, types;
    struct heap open, due;
    VEC(struct freed_places) freed; /* since the queues were last opened for them */
    bool frees_all;                 /* every queue is to be opened */
    /* There may be more to offer, or to end, than the last batch did: the next one is due. */
    bool unsettled;
    struct heap_node next; /* in the view's heap of lists: when the event's worker has to look */
    int64_t looked_at;     /* ledger time when it last did, as far as it is stored; 0: never */
    struct slots owners, clients; /* how many live entries each of them has */
    uint32_t n_waiting, n_offered;
    int64_t last_number; /* of the entry that came last, as decided */
};

/* The event's list; makes an empty one if it has none. */
struct waitlist *waitlist_get(struct event *e);
void waitlist_free(struct waitlist *w); /* accepts NULL */

/* Adds a live entry as the row says; `owner` is owner_hash() of its owner. */
struct wait_entry *waitlist_add(struct event *e, const struct wait_row *row, uint64_t owner);
/* Takes the entry out and frees it. */
void waitlist_remove(struct event *e, struct wait_entry *x);
/* The entry of that key, or NULL. */
struct wait_entry *waitlist_find(const struct waitlist *w, int64_t key);
/* Gives an entry another status, rank, time of its last reading, or hold.  Puts it into its queue,
 * and counts it, exactly while it is live. */
struct wait_state {
    enum wait_status status;
    int64_t rank, read_at, hold, last_seq;
};
void waitlist_set(struct event *e, struct wait_entry *x, const struct wait_state *to);
/* When the waiting entry ends by itself; INT64_MAX: never. */
int64_t waitlist_entry_due(const struct event *e, const struct wait_entry *x);

/* How many live entries the owner or the address has; 0 for owner or address 0. */
uint32_t waitlist_of_owner(const struct waitlist *w, uint64_t owner);
uint32_t waitlist_of_client(const struct waitlist *w, uint64_t client);

/* ---- what may fit ---- */

/* A seat, or places of an area, may have become free; all places may: other terms, or a list that
 * was just loaded.  They do nothing where nobody waits. */
void waitlist_freed_seat(struct event *e, uint32_t seat);
void waitlist_freed_area(struct event *e, uint32_t area);
void waitlist_freed_all(struct event *e);
/* May something fit that was not tried yet?  O(1). */
bool waitlist_is_open(const struct waitlist *w);
/* Opens the queues that what was freed can serve. */
void waitlist_open_freed(struct event *e);
/* The open queue whose first entry has the smallest rank; NULL: none is open. */
struct wait_queue *waitlist_first_open(const struct waitlist *w);
/* The first entry of the queue, which is not empty if it is open. */
struct wait_entry *wait_queue_first(const struct wait_queue *q);
void waitlist_shut(struct waitlist *w, struct wait_queue *q);
/* Can a place there serve the wish?  Says nothing about whether enough are free. */
bool waitlist_serves(const struct event *e, const struct wait_wish *wish,
                     const struct freed_places *place);
/* The terms are others: they may say otherwise how long an unread entry lives, and what may fit.
 * O(entries). */
void waitlist_terms_changed(struct event *e);
/* Lists up to `max` waiting entries that are due at `now`; returns how many.  O(max). */
size_t waitlist_list_due(const struct waitlist *w, int64_t now, struct wait_entry **ret,
                         size_t max);
/* Lists up to `max` waiting entries; returns how many.  O(queues + max). */
size_t waitlist_list_waiting(const struct waitlist *w, struct wait_entry **ret, size_t max);
/* About how many bytes the list takes.  O(1). */
size_t waitlist_memory(const struct waitlist *w);

#endif
