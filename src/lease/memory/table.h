/* The table behind the memory driver: entries by key, each with its holders and its queue.  Every
 * function here is called with the table's mutex held.
 *
 * An entry exists while its key is held or waited for, and for a while afterwards: keys are often
 * used again, so empty entries stay while there are few, and ended claims are kept for reuse.  One
 * counter gives the fences of the whole table, so that a key whose entry was dropped still gets a
 * larger fence.  The next caller that touches an entry drops what has run out in it; each new entry
 * also looks through two buckets, so that keys that are never touched again do not pile up.
 *
 * Waking.  A thread in wait() sleeps until its claim can be granted.  The first sleeper in the
 * queue is the watcher: only it sets an alarm, for the moment at which a lease or the place of a
 * silent waiter before it runs out.  It is woken early to set a new alarm when that moment has come
 * nearer, and a sleeper is woken when it becomes the watcher.  A change thus wakes those whose turn
 * it is and at most one more, however many wait.
 *
 * Turns.  A waiter whose claim can be granted is called.  If it has not claimed its turn after
 * WAITER_CLAIM_MS it is passed over: the others are served as if it were not there.  It keeps its
 * place, and counts again from the moment at which it asks again. */
#ifndef HF_LEASE_MEMORY_TABLE_H
#define HF_LEASE_MEMORY_TABLE_H

#include <pthread.h>

#include "base/table.h"
#include "lease/lease.h"
#include "lease/sleeper.h"

/* A thread inside wait(); it lives on that thread's stack. */
struct claim_sleeper {
    struct sleeper sleeper;
    struct claim *claim; /* NULL once the claim has ended */
    int64_t alarm_us;    /* INT64_MAX: it is not the watcher */
    struct claim_sleeper *next;
};

/* A holder or a waiter. */
struct claim {
    struct claim *next;
    uint8_t owner[LEASE_OWNER_SIZE];
    enum hf_mode mode;
    int priority;
    int64_t fence;    /* 0: a waiter */
    int64_t until_us; /* the end of the lease; of a place, unless it has sleepers */
    int64_t since_us; /* of a holder: when it was granted; of a waiter: when it was called, or 0 */
    unsigned slot;    /* of an exclusive holder */
    bool passed_over; /* of a waiter */
    struct claim_sleeper *sleepers;
    char label[LEASE_LABEL_MAX + 1];
};

/* How many waiters there are of each mode. */
struct waiter_count {
    size_t exclusive, shared;
};

struct memory_entry {
    struct table_node node;
    struct claim *holders;        /* exclusive ones in the order of their slots */
    struct claim *waiters;        /* in the order of service */
    struct claim *last_waiter;    /* NULL: no waiters */
    size_t n_exclusive, n_shared; /* holders */
    struct waiter_count waiting;  /* those that were not passed over */
    int64_t due_us;               /* nothing runs out before */
    unsigned slots;
    int64_t last_fence;
    size_t key_len;
    char key[];
};

struct lease_table {
    pthread_mutex_t lock; /* guards everything below */
    const struct clock *clock;
    size_t refs; /* handles */
    int64_t fence;
    size_t n_claims;
    struct claim *spare; /* ended claims, to be used again */
    size_t n_spare;
    struct table entries; /* by key */
    uint64_t swept;       /* the bucket to look through next */
};

struct claim *claim_new(struct lease_table *t, const struct lease_request *r);
/* The place in the list of the owner's claim; NULL: it has none. */
struct claim **claim_find(struct claim **list, const uint8_t owner[LEASE_OWNER_SIZE]);

/* The waiters before `upto` in the queue that have not been passed over.  With NULL: those that a
 * newcomer of this priority would stand behind. */
struct waiter_count entry_ahead_of(const struct memory_entry *e, const struct claim *upto,
                                   int priority);
/* Can a claim be granted that has these waiters before it?  A waiter that cannot be granted stops
 * every later one, of either mode. */
bool entry_is_free_for(const struct memory_entry *e, enum hf_mode mode,
                       const struct waiter_count *ahead);
/* When the first lease ends; INT64_MAX: there is no holder. */
int64_t entry_first_end_us(const struct memory_entry *e);
/* The watcher's claim, or NULL, and the time of its alarm. */
struct claim *entry_watcher(const struct memory_entry *e, int64_t *ret_alarm_us);
/* To be called after a change: calls the waiters whose turn it is, wakes those of them that sleep,
 * and the watcher if its alarm would be too late. */
void entry_wake(struct memory_entry *e, int64_t now_us);
void entry_grant(struct lease_table *t, struct memory_entry *e, struct claim *c, int64_t ttl_us,
                 int64_t now_us);
/* The waiter is there: it counts again if it was passed over. */
void entry_note_alive(struct memory_entry *e, struct claim *c);
void entry_enqueue(struct memory_entry *e, struct claim *c);
/* Takes a waiter out of the queue, to be granted. */
struct claim *entry_dequeue(struct memory_entry *e, struct claim **at);
/* End a lease or a place; its sleepers wake up without a claim. */
void entry_end_holder(struct lease_table *t, struct memory_entry *e, struct claim **at);
void entry_end_waiter(struct lease_table *t, struct memory_entry *e, struct claim **at);
/* Sets the claim's end, so that entry_tidy knows of it. */
void entry_set_until(struct memory_entry *e, struct claim *c, int64_t until_us);
bool entry_is_empty(const struct memory_entry *e);
/* Drops leases and places that have run out, and passes over waiters that did not claim their turn.
 * O(1) before due_us. */
void entry_tidy(struct lease_table *t, struct memory_entry *e, int64_t now_us);

struct lease_table *lease_table_new(const struct clock *clock);
void lease_table_free(struct lease_table *t);
/* The key's entry, tidied and possibly empty; NULL: there is none. */
struct memory_entry *entry_find(struct lease_table *t, const char *key, size_t len, int64_t now_us);
/* As entry_find, but makes the entry if there is none. */
struct memory_entry *entry_get(struct lease_table *t, const char *key, size_t len, int64_t now_us);
/* To be called for every entry that was found or made, after its use.  Accepts NULL. */
void entry_drop_if_empty(struct lease_table *t, struct memory_entry *e);

#endif
