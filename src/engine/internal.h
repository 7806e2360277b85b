/* What the engine's own files share: the engine, its threads, its metrics. */
#ifndef HF_ENGINE_INTERNAL_H
#define HF_ENGINE_INTERNAL_H

#include "engine/decide.h"
#include "engine/engine.h"
#include "engine/key_filter.h"
#include "engine/lane.h"
#include "ledger/ledger.h"

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
#define SETTLE_TRIES 100      /* to find out about a lost COMMIT: 5 s in all */
#define SETTLE_PAUSE_NS 50000000
#define REFUSE_MARGIN_MS 250 /* a hold that ends sooner is no reason to refuse from the view */
#define CHECKPOINT_EVERY_ROWS 16384

enum result { RESULT_GRANTED, RESULT_TAKEN, RESULT_SOLD_OUT, RESULT_ERROR, RESULT_COUNT };

struct engine_metrics {
    struct counter *requests_view_taken, *requests_view_sold_out; /* by="view" */
    struct counter *requests[RESULT_COUNT];                       /* by="ledger" */
    struct histogram *hold_seconds, *batch_commands, *commit_seconds;
    struct gauge *holds_active, *queue_depth;
    struct counter *holds_expired, *surprises, *sale_conflicts, *bookings_confirmed;
    struct counter *renewals_ok, *renewals_refused;
};

struct worker {
    struct engine *engine;
    struct ledger *ledger;
    struct random random;
    struct decision decision;
    struct command **commands, **deferred; /* batch_len_max each */
    size_t n_deferred;
    struct key_row *stored;
    struct hold *due[EXPIRE_MAX];
    int64_t next_sweep_us, next_probe_us;
    int64_t noted_ms; /* ledger time last written for its own sake */
    size_t rows_since_checkpoint;
    bool inserted_event; /* in this batch */
};

struct engine {
    struct engine_config config;
    struct view *view;
    struct key_filter filter;
    struct engine_metrics metrics;
    struct lane work, read, search, load, draw;
    struct worker worker;
    struct ledger *loader, *readers[READERS], *keeper;
    pthread_t worker_thread, loader_thread, reader_threads[READERS], keeper_thread, drawer_thread;
    int threads_running; /* how far engine_start came */

    _Atomic int64_t now_offset_ms; /* ledger time minus boot time */
    _Atomic int64_t first_due_ms;  /* when the next live hold runs out */

    pthread_mutex_t lock; /* of the rest */
    pthread_cond_t keeper_wake;
    bool checkpoint_due, stopping;
    _Atomic bool ready;
    char why[256]; /* not ready */
};

/* worker.c */
void *worker_main(void *engine);
/* One turn: install what was loaded, run the rest as a batch, expire what is due. */
void worker_turn(struct worker *w, struct command **commands, size_t n);
/* Store the ledger's time, for the next start.  Every sweep, and at the end. */
void worker_note_time(struct worker *w);

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
void engine_finish(struct engine *e, struct command *command);
void engine_set_ready(struct engine *e, bool ready, const char *why);
void engine_wants_checkpoint(struct engine *e);

#endif
