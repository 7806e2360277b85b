/* A worker carries out commands that change events: it takes what is queued as one batch, walks it
 * through gate and ledger (batch.h), installs events that were loaded, follows what other servers
 * did, and sweeps now and then.  It owns a writing connection to the ledger, one to the gate, and
 * its events' side of the view.
 *
 * Its thread does nothing but worker_sleep_us, wait and worker_turn; a test may take the turns
 * itself, without a thread. */
#ifndef HF_ENGINE_WORKER_H
#define HF_ENGINE_WORKER_H

#include <stdatomic.h>

#include "base/vec.h"
#include "engine/chores.h"
#include "engine/idle.h"
#include "engine/lane.h"
#include "gate/gate.h"
#include "ledger/ledger.h"
#include "rules/decision.h"
#include "view/view_waits.h"

struct engine;

/* Due holds that one batch ends beside those its commands name: as many as cost a millisecond or
 * two, so that requests are hardly delayed when a whole sale's holds fall due at once. */
#define EXPIRE_MAX 64
#define ASSUME_AFTER_MIN 4 /* of worker.assume_after */

struct worker {
    struct engine *engine;
    int index;
    pthread_t thread;
    struct lane work;
    struct view
        *view; /* its own events: those whose key leaves `index` when divided by n_workers */
    struct ledger *ledger;
    struct random random;

    /* ---- the batch ---- */
    struct batch_read read;
    struct decision decision;
    struct command **commands, **deferred, **late; /* batch_len_max each */
    size_t n_deferred, n_late;                     /* for the next batch; together no more */
    struct key_row *stored;                        /* of each command's key, as read */
    struct hold *due[EXPIRE_MAX];
    const struct event_def *created; /* the last event that this batch creates; NULL: none */
    bool assumed;                    /* the batch was decided without asking the ledger first */
    uint32_t assume_after;           /* how often its events must not have moved before that */
    int64_t offset_us;      /* ledger time less boot time, or a little less than that ... */
    int64_t offset_read_us; /* ... as of this boot time */

    /* ---- the gate's part of a batch (batch_gate.c) ---- */
    struct gate *gate; /* NULL: none */
    uint8_t token[GATE_TOKEN_SIZE];
    VEC(struct gate_claim) claims;
    VEC(struct gate_area) claim_areas;
    VEC(struct command *) claimed; /* whose claim it is; NULL: the gate refused it */
    VEC(struct gate_seat) gate_seats;
    VEC(struct gate_count) gate_counts;

    /* ---- chores ---- */
    struct chores chores;
    struct idle idle;
    int64_t swept_wait; /* events up to this one have been looked at for people who wait; 0: none */
    int64_t next_sweep_us, next_probe_us, next_log_us;
    size_t unlogged;                /* commands that failed since the log last said so */
    bool failing;                   /* the ledger did not store what this worker last had for it */
    int64_t noted_ms;               /* ledger time last written for its own sake */
    _Atomic int64_t first_due_ms;   /* when the next live hold runs out */
    int64_t holds_shown;            /* by the metric */
    struct wait_totals waits_shown; /* likewise */
    _Atomic unsigned turns;         /* ended so far; it may wrap */
};

/* `ledger` must be open; `gate` may be NULL.  The worker closes both. */
void worker_init(struct worker *w, struct engine *e, int index);
void worker_close(struct worker *w); /* accepts a zeroed struct */

/* Returns how long the worker may sleep before its next turn: 0 if commands are left over from the
 * last batch or events are to be freed, else until the first hold falls due or a slice of a chore
 * is to be done, at most IDLE_WAIT_US, and never 0 while the ledger fails. */
int64_t worker_sleep_us(const struct worker *w);
/* One turn: takes up to a batch of commands, waiting at most `wait_us` for the first, carries them
 * out and does the chores that are due.  Returns false once the queue is closed and empty. */
bool worker_turn(struct worker *w, int64_t wait_us);
void *worker_main(void *worker);
/* Stores the ledger's time for the next start: at every sweep, and at the end. */
void worker_note_time(struct worker *w);

/* ---- for its parts (state.c) ---- */

/* Counts the commands and hands them back. */
void worker_answer(struct worker *w, struct command *const *commands, size_t n);
/* The ledger stored nothing of what this worker had for it, or answers again. */
void worker_failed(struct worker *w, const char *why);
void worker_succeeded(struct worker *w);
/* When the first hold is due, or a waiting list is to be looked at; INT64_MAX: never. */
int64_t worker_due_ms(const struct worker *w);
/* Brings the metrics and first_due_ms up to date after holds came or went. */
void worker_note_holds(struct worker *w);

#endif
