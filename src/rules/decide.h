/* Step 4 of a batch: who gets what.  A pure function of (view, commands, time, randomness): it
 * touches no clock, no database and no socket, so the unit tests and the model drive the real one.
 *
 * It changes the worker's side of the view as it goes (the next command must see what this one
 * took) and writes every change into a struct ledger_batch, which is thus three things in one: what
 * to store, what to show after the commit (decide_publish), and how to take it all back when the
 * commit fails (decide_undo).
 *
 * Keeps I1, I3, I4, I5 (first line of defence), I6 and the gapless seq of I11. */
#ifndef HF_RULES_DECIDE_H
#define HF_RULES_DECIDE_H

#include "base/random.h"
#include "engine/command.h"

/* Slots of the set of keys that this batch has stored; a power of two, over twice a batch. */
#define KEYS_GRANTED_SLOTS 8192

struct decision {
    struct view *view;
    struct random *random;
    int64_t now;
    struct ledger_batch batch;
    VEC(struct event *) events; /* locked for this batch, ascending by key */
    VEC(int64_t) rescued;       /* holds confirmed by rescue in this batch */
    VEC(struct hold *) due;     /* scratch */
    uint64_t batch_no;
    struct {
        uint64_t batch_no;
        uint8_t hash[KEY_HASH_SIZE];
    } keys_granted[KEYS_GRANTED_SLOTS];
    uint64_t expired;           /* holds expired by this batch, and so on: for the metrics */
    uint32_t client_places_max; /* that one address may hold; 0: no limit */
};

/* Begin a batch.  The caller adds events with decide_add_event before locking them, and sets now
 * and each event's draft clock after. */
void decide_begin(struct decision *d);
void decide_add_event(struct decision *d, struct event *e); /* once each; sorts */
void decide_close(struct decision *d);

/* Expire those of the holds that are due now; each belongs to an event of the batch. */
void decide_expire(struct decision *d, struct hold *const *holds, size_t n);

/* UNDECIDED only from decide_stored; DEFERRED: it depends on what this very batch stores, so judge
 * it again in the next. */
enum decided { DECIDED, DEFERRED, UNDECIDED };

/* Is the answer kept under the command's key?  `stored` is the ledger's row, if it was found. */
enum decided decide_stored(struct decision *d, struct command *c, const struct key_row *stored);
/* Judge one command about holds: its key first, then the rules.  c->hold must have been read for
 * commands that name a hold (id.key 0: no such row), c->booking for confirms of a confirmed one. */
enum decided decide_command(struct decision *d, struct command *c, const struct key_row *stored);
/* Store the answer of a successful command under its key. */
void decide_keep_answer(struct decision *d, struct command *c);

/* No more commands: order the writes, add the clock rows.  Before ledger_write. */
void decide_seal(struct decision *d);

/* After the commit: show it.  After a failure: take it back. */
void decide_publish(struct decision *d);
void decide_undo(struct decision *d);
/* True when there is anything to write. */
bool decide_has_effects(const struct decision *d);

#endif
