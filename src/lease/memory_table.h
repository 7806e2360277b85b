/* The table behind memory.c: entries by key, in each the holders and the queue.  Everything here is
 * called with the table's mutex held.
 *
 * An entry exists while its key is held or waited for, and a while longer: a key is often wanted
 * again, so an empty entry stays as long as there are not many, and ended claims are kept for
 * reuse.  The fence is one counter for the whole table, so a key that comes back still gets a
 * larger one.  What has run out is dropped by whoever next touches the entry; two buckets are
 * looked through for each entry made, so keys that nobody touches again do not pile up.
 *
 * Waking.  A thread in wait() sleeps on a condition of its own.  It is woken when its claim could
 * be granted; besides, the first sleeper in the queue keeps watch: it alone sleeps no longer than
 * until a lease or a silent waiter's place before it runs out, and is woken to set its alarm anew
 * when that moment has come nearer or the watch falls to it.  A change thus wakes those whose turn
 * it is and at most one more, however many wait. */
#ifndef HF_LEASE_MEMORY_TABLE_H
#define HF_LEASE_MEMORY_TABLE_H

#include <pthread.h>

#include "lease/lease.h"

/* A thread inside wait(), on its stack.  `claim` becomes NULL when the claim ends. */
struct sleeper {
    pthread_cond_t cond;
    struct claim *claim;
    int64_t alarm_us;
    struct sleeper *next;
};

/* A holder or, with fence 0, a waiter. */
struct claim {
    struct claim *next;
    uint8_t owner[LEASE_OWNER_SIZE];
    enum hf_mode mode;
    int priority;
    int64_t fence;
    int64_t until_us; /* the lease ends; the place is lost, unless there are sleepers */
    struct sleeper *sleepers;
    char label[LEASE_LABEL_MAX + 1];
};

/* Waiters by mode. */
struct ahead {
    size_t exclusive, shared;
};

struct entry {
    struct entry *next;
    uint64_t hash;
    struct claim *holders, *waiters; /* waiters in the order they are served */
    struct claim *last_waiter;       /* NULL: no waiters */
    size_t n_exclusive, n_shared;    /* holders */
    struct ahead waiting;            /* waiters */
    int64_t due_us;                  /* nothing runs out before */
    unsigned slots;
    int64_t last_fence;
    size_t key_len;
    char key[];
};

struct table {
    pthread_mutex_t lock; /* everything below */
    const struct clock *clock;
    size_t refs; /* handles */
    int64_t fence;
    size_t n_claims, n_entries;
    struct claim *spare; /* claims to be used again */
    size_t n_spare;
    struct entry **buckets;
    size_t n_buckets, swept; /* a power of two; the bucket to look through next */
};

struct claim *claim_new(struct table *t, const struct lease_request *r);
/* Where in a list the owner's is, or NULL. */
struct claim **claim_find(struct claim **list, const uint8_t owner[LEASE_OWNER_SIZE]);

/* Those before `upto` in the queue; before a newcomer (NULL) are all of its priority and above. */
struct ahead entry_ahead_of(const struct entry *e, const struct claim *upto, int priority);
/* A claim that cannot be granted stops every later one, of either mode. */
bool entry_is_free_for(const struct entry *e, enum hf_mode mode, const struct ahead *ahead);
/* When the first lease ends; INT64_MAX: there is none. */
int64_t entry_first_end_us(const struct entry *e);
/* The claim that keeps watch, and until when it may sleep: nobody before it is asleep. */
struct claim *entry_watch(const struct entry *e, int64_t *ret_us);
/* After a change: wake those whose turn it is, and the watch if its alarm would be too late. */
void entry_rouse(struct entry *e);
void entry_grant(struct table *t, struct entry *e, struct claim *c, int64_t until_us);
void entry_enqueue(struct entry *e, struct claim *c);
/* Out of the queue, to be granted. */
struct claim *entry_dequeue(struct entry *e, struct claim **at);
/* Give up a lease or a place; those asleep for it learn that it has ended. */
void entry_end_holder(struct table *t, struct entry *e, struct claim **at);
void entry_end_waiter(struct table *t, struct entry *e, struct claim **at);
/* The claim's time, which entry_tidy is to know of. */
void entry_set_until(struct entry *e, struct claim *c, int64_t until_us);
bool entry_is_empty(const struct entry *e);
/* Drop leases and places that have run out.  O(1) while nothing can have. */
void entry_tidy(struct table *t, struct entry *e, int64_t now_us);

struct table *table_new(const struct clock *clock);
void table_free(struct table *t);
/* The key's entry, tidied: maybe empty.  NULL: there is none. */
struct entry *table_find(struct table *t, const char *key, size_t len, int64_t now_us);
/* The same, made if there is none. */
struct entry *table_get(struct table *t, const char *key, size_t len, int64_t now_us);
/* For every entry that was found or made.  Accepts NULL. */
void table_drop_if_empty(struct table *t, struct entry *e);

#endif
