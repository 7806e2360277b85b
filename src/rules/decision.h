/* A batch while it is decided.  The rules change the worker's side of the view as they go, since
 * the next command must see what this one took, and write every change into `batch`, which is three
 * things at once: what to store, what to show after the commit (decision_publish), and how to take
 * it all back when the commit fails (decision_undo).  Belongs to one worker's thread. */
#ifndef HF_RULES_DECISION_H
#define HF_RULES_DECISION_H

#include "base/random.h"
#include "view/view.h"

/* Slots of the set of keys that this batch stores: a power of two, more than twice a batch. */
#define KEYS_STORED_SLOTS 8192

/* What decision_undo needs to take back an event's terms. */
struct terms_before {
    struct event *event;
    const struct event_terms *terms; /* a reference */
};
/* What decision_undo needs to take back places that an owner has booked. */
struct owner_change {
    int64_t event;
    uint64_t owner;
    int64_t places;
};

/* How many entries of waiting lists one batch offers a hold, or ends by itself: an unblock of
 * millions of seats is many short commits. */
#define WAIT_TURNS_MAX 256

struct decision {
    struct view *view;
    struct random *random;
    int64_t now; /* ledger time of the batch */
    /* The actor of what is decided next; it outlives the batch.  Holds that run out on the way have
     * ACTOR_TIMER. */
    const char *actor;
    struct ledger_batch batch;
    VEC(struct event *) events; /* locked for this batch, ascending by key */
    /* Holds whose row or booking this batch has changed in a way that only the next batch can read:
     * what else is asked about them waits for it. */
    VEC(int64_t) unreadable;
    /* Entries of the view that change_places replaced: freed at publish, put back by undo. */
    VEC(struct hold *) replaced;
    /* The terms that events had before the batch. */
    VEC(struct terms_before) terms;
    VEC(struct hold *) due;          /* scratch */
    VEC(struct owner_change) owners; /* places booked, or cancelled, by this batch */
    VEC(void *) offers;              /* seats and prices of offered holds; freed with the batch */
    struct buf heads;                /* the heads that batch.heads points to */
    uint64_t batch_no;
    struct {
        uint64_t batch_no; /* the slot is in use if this is the decision's own */
        uint8_t hash[KEY_HASH_SIZE];
    } keys_stored[KEYS_STORED_SLOTS];
    uint64_t expired;           /* how many holds this batch expired, for the metrics */
    uint32_t wait_changes;      /* changes of entries of waiting lists in this batch */
    uint32_t wait_turns;        /* of them, offers and ends that settling made */
    uint32_t wait_turns_max;    /* how many one batch makes; 0: WAIT_TURNS_MAX */
    uint32_t client_places_max; /* places that one address may hold; 0: no limit */
    int64_t job_lease_ms;       /* new intents are made by this server: it leases their jobs for so
                                   long; 0: whoever takes them first */
    unsigned notices;           /* 1 << enum notice: what the shop is told of */
};

/* Begins a batch, with ACTOR_SERVER.  The caller adds events with decision_add_event before it
 * locks them, and sets `now` and each event's draft clock after that. */
void decision_begin(struct decision *d);
/* Adds the event unless it is in already; keeps the order of keys. */
void decision_add_event(struct decision *d, struct event *e);
void decision_close(struct decision *d);

/* Is there anything to write? */
bool decision_has_effects(const struct decision *d);
/* After the last command and before ledger_write: puts the writes in the order of their keys, adds
 * the clock rows and, when it is time for them, stored heads. */
void decision_seal(struct decision *d);
/* After the commit: shows the changes to other threads. */
void decision_publish(struct decision *d);
/* After a failure: takes every change back, as if the batch had never been. */
void decision_undo(struct decision *d);

#endif
