/* What the engine's own files share: the engine, its threads, its metrics. */
#ifndef HF_ENGINE_INTERNAL_H
#define HF_ENGINE_INTERNAL_H

#include "engine/engine.h"
#include "engine/key_filter.h"
#include "engine/lane.h"
#include "gate/gate.h"
#include "ledger/ledger.h"
#include "rules/catch_up.h"
#include "rules/decide.h"

/* Of these the last reads what may take long, so that nobody who looks up a hold waits behind a
 * page of the log. */
#define READERS 3
/* Other due holds ended by one batch: as many as cost a millisecond or two, fewer when somebody
 * waits for the batch, so that nobody notices when a whole sale's holds fall due at once. */
#define EXPIRE_MAX 64
#define EXPIRE_MAX_BUSY 16
#define SWEEP_EVERY_US 60000000 /* the ledger's own list of due holds, for what the heap missed */
#define SWEEP_SLICE 100
#define PRUNE_SLICE 1000      /* stored answers forgotten at once */
#define SWEEP_AGAIN_US 100000 /* while there is more */
#define IDLE_WAIT_US 250000   /* longest sleep of the worker */
#define PROBE_EVERY_US 500000 /* while the ledger fails */
#define SAY_EVERY_US 1000000  /* that it fails */
#define SETTLE_TRIES 100      /* to find out about a lost COMMIT: 5 s in all */
#define SETTLE_PAUSE_NS 50000000
#define CONFLICT_TRIES 5     /* of a batch that met others' transactions */
#define REFUSE_MARGIN_MS 250 /* a hold that ends sooner is no reason to refuse from the view */
/* Where others write too, a view that has not been compared with the ledger for so long refuses
 * nobody by itself. */
#define FRESH_MS 1000
#define POLL_EVERY_MS 400    /* how often the follower compares */
#define CONTACT_MS 3000      /* a shared ledger that has not answered for so long does not */
#define ANNOUNCE_EVERY_MS 50 /* what changed here, to the other servers */
#define CHECKPOINT_EVERY_ROWS 16384
/* A hold's entry in the gate ends so much before the hold, so that whoever comes for an expired
 * seat is not refused by an entry that was set late. */
#define GATE_EARLY_MS 50
/* Where many may write, events are dealt out to so many workers, by their number. */
#define WORKERS_MAX 4

enum result { RESULT_GRANTED, RESULT_TAKEN, RESULT_SOLD_OUT, RESULT_ERROR, RESULT_COUNT };

/* What the reconciler puts right. */
enum repair {
    REPAIR_VIEW,
    REPAIR_GATE_STALE,
    REPAIR_GATE_MISSING,
    REPAIR_GATE_COUNT,
    REPAIR_GATE_STRANGE,
    REPAIRS
};
extern const char *const repair_names[REPAIRS];

struct engine_metrics {
    struct counter *requests_view_taken, *requests_view_sold_out; /* by="view" */
    struct counter *requests_gate_taken, *requests_gate_sold_out; /* by="gate" */
    struct counter *requests[RESULT_COUNT];                       /* by="ledger" */
    struct counter *ledger_exchanges, *gate_exchanges;            /* of batches */
    struct counter *gate_errors, *conflicts, *repairs[REPAIRS];
    struct histogram *hold_seconds, *batch_commands, *commit_seconds;
    struct gauge *holds_active, *queue_depth;
    struct counter *holds_expired, *surprises, *sale_conflicts, *bookings_confirmed;
    struct counter *renewals_ok, *renewals_refused;
};

struct worker {
    struct engine *engine;
    int index;
    pthread_t thread;
    struct lane work;
    struct view *view; /* its own events: those whose key leaves `index` when divided by workers */
    struct ledger *ledger;
    struct random random;
    struct batch_read read;
    /* the gate's part of a batch */
    struct gate *gate; /* NULL: none */
    uint8_t token[GATE_TOKEN_SIZE];
    VEC(struct gate_claim) claims;
    VEC(struct gate_area) claim_areas;
    VEC(struct command *) claimed; /* whose claim it is; NULL: refused */
    VEC(struct gate_seat) gate_seats;
    VEC(struct gate_count) gate_counts;
    struct decision decision;
    struct command **commands, **deferred, **late; /* batch_len_max each */
    size_t n_deferred, n_late;                     /* for the next batch; together no more */
    struct key_row *stored;
    struct hold *due[EXPIRE_MAX];
    int64_t next_sweep_us, next_probe_us, next_say_us;
    size_t unsaid;    /* commands that failed since the log last said so */
    bool failing;     /* the ledger did not take what this one last had for it */
    int64_t noted_ms; /* ledger time last written for its own sake */
    size_t rows_since_checkpoint;
    const struct event_def *created; /* by this batch, the last one; NULL: none */
    _Atomic int64_t first_due_ms;    /* when the next live hold runs out */
    int64_t holds_shown;             /* by the metric */
};

struct engine {
    struct engine_config config;
    bool has_others; /* other servers may write to the ledger */
    struct key_filter filter;
    struct engine_metrics metrics;
    struct lane read, search, load, draw;
    struct worker workers[WORKERS_MAX];
    int n_workers;
    struct ledger *loader, *readers[READERS], *keeper;
    pthread_t loader_thread, reader_threads[READERS], keeper_thread, drawer_thread;
    int threads_running;           /* how far engine_start came */
    struct follower *follower;     /* NULL: nobody else writes */
    struct reconciler *reconciler; /* likewise */

    _Atomic int64_t now_offset_ms; /* ledger time minus boot time */
    _Atomic bool gate_up;          /* it answered when last asked */
    _Atomic int64_t reached_us;    /* see db_options; of all connections to a shared ledger */
    _Atomic int64_t give_up_us;    /* likewise */
    _Atomic int64_t contact_ms;    /* boot time when a shared ledger last answered */

    pthread_mutex_t lock; /* of the rest */
    pthread_cond_t keeper_wake;
    bool checkpoint_due, stopping;
    _Atomic int n_failing; /* workers; the ledger answers when it answers them all */
    char why[256];         /* one of them fails */
};

static inline struct worker *engine_worker(struct engine *e, int64_t event)
{
    return &e->workers[event % e->n_workers];
}

/* worker.c */
void *worker_main(void *worker);
/* The ledger did not take something, or did. */
void worker_failed(struct worker *w, const char *why);
void worker_succeeded(struct worker *w);
/* Store the ledger's time, for the next start.  Every sweep, and at the end. */
void worker_note_time(struct worker *w);
/* After holds came or went. */
void worker_note_holds(struct worker *w);

/* batch.c: walk `n` commands through the ledger and answer them; expire what is due. */
void batch_run(struct worker *w, struct command **commands, size_t n);
/* Count them and hand them back. */
void batch_answer(struct worker *w, struct command *const *commands, size_t n);

/* batch_gate.c: before the ledger, and after.  Commands that the gate refuses outright are answered
 * and taken out of `commands`. */
void batch_claim(struct worker *w, struct command **commands, size_t *n);
/* Put together what the gate is to hear, while the commands are still ours; then tell it.  True:
 * somebody's place is free again, which the gate must know before they are answered. */
bool batch_settle_prepare(struct worker *w, bool committed);
void batch_settle(struct worker *w);
void engine_gate_failed(struct engine *e, const struct hf_fault *fault);

/* follow.c: the thread that hears of other servers' changes and tells them of ours */
HF_MUST_USE enum hf_status follower_start(struct engine *e, struct hf_err *err);
void follower_stop(struct engine *e); /* while the workers still run */
void follower_free(struct engine *e); /* when they do not */
/* This server changed the event; the others will hear of it soon. */
void follower_announce(struct engine *e, struct event *event);

/* reconcile.c: the thread that compares gate, view and ledger, and asks whether a lost gate is back
 */
HF_MUST_USE enum hf_status reconciler_start(struct engine *e, struct hf_err *err);
void reconciler_ask_to_stop(struct engine *e); /* without waiting for it */
void reconciler_stop(struct engine *e);        /* likewise */
void reconciler_free(struct engine *e);
/* On the worker's thread, for the reconciler: a slice of an event's seats against the ledger. */
void reconcile_compare(struct worker *w, struct command *c);

/* load.c: the loader's and the readers' threads */
void *loader_main(void *engine);
void *reader_main(void *engine);
/* Bring an installed event's seats and holds back in line with the ledger, inside the worker's
 * transaction. */
HF_MUST_USE enum hf_status load_again(struct ledger *ledger, struct view *view, struct event *e,
                                      struct hf_err *err);
/* Ask the loader for an event that nobody has named yet. */
void load_in_background(struct engine *e, int64_t event);

/* snapshot.c */
void *drawer_main(void *engine);

/* engine.c */
/* For a connection of any thread to the ledger. */
struct db_options engine_db_options(struct engine *e);
/* The time that engine_hurry gave is over. */
bool engine_gave_up(const struct engine *e);
void engine_finish(struct engine *e, struct command *command);
void engine_wants_checkpoint(struct engine *e);
/* Every event of every worker's view; vec_close what it lists. */
struct loaded {
    VEC(struct event *) events;
};
void engine_list_loaded(const struct engine *e, struct loaded *ret);

#endif
