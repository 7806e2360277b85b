/* struct engine: what the engine's threads share.  Only files of this folder include it, and tests
 * of the engine. */
#ifndef HF_ENGINE_ENGINE_INTERNAL_H
#define HF_ENGINE_ENGINE_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "engine/engine.h"
#include "engine/keeper.h"
#include "engine/key_filter.h"
#include "engine/lane.h"
#include "engine/metrics.h"
#include "engine/worker.h"

/* The last reader does the reads that may take long, so that the lookup of a hold never
 * waits behind a page of the log. */
#define READERS 3
#define JOBS_READER READERS /* takes jobs, on a connection of its own; see CMD_JOBS_TAKE */
/* Where many servers write, events are dealt out to this many workers, by their key. */
#define WORKERS_MAX 4

struct follower;
struct reconciler;

struct engine {
    struct engine_config config;
    bool has_others; /* other servers may write to the ledger */
    struct key_filter filter;
    struct engine_metrics metrics;
    struct lane read, search, load, draw, prepare, jobs;
    struct worker workers[WORKERS_MAX];
    int n_workers;
    struct ledger *loader, *readers[READERS + 1];
    pthread_t loader_thread, reader_threads[READERS + 1], drawer_thread, preparer_thread;
    struct keeper keeper;
    int threads_running;           /* how far start_threads came */
    struct follower *follower;     /* NULL: no other server writes */
    struct reconciler *reconciler; /* NULL: no other server writes */
    int64_t started_ms;            /* ledger time of the start */

    _Atomic int64_t now_offset_ms; /* ledger time minus boot time */
    _Atomic bool gate_up;          /* the gate answered when it was last asked */
    _Atomic int64_t reached_us;    /* see db_options; for all connections to a shared ledger */
    _Atomic int64_t give_up_us;    /* see db_options and engine_hurry; 0: no end in sight */
    _Atomic int64_t contact_ms;    /* boot time when a shared ledger last answered */
    _Atomic int n_failing;         /* workers whose ledger fails; it answers when this is 0 */
    _Atomic int64_t events_loaded, events_bytes; /* of all workers; see idle.h */

    unsigned turns_seen[WORKERS_MAX]; /* the workers' turns when engine_turned was last true */

    pthread_mutex_t lock; /* of the rest */
    bool stopping;
    char why[256]; /* the reason why a worker's ledger fails */
};

static inline struct worker *engine_worker(struct engine *e, int64_t event)
{
    return &e->workers[event % e->n_workers];
}

/* engine_start without the threads: nothing happens until the caller takes a worker's turns.  Ends
 * with engine_stop. */
HF_MUST_USE enum hf_status engine_open(const struct engine_config *config, struct engine **ret,
                                       struct hf_err *err);
/* Options for a connection of any thread to the ledger. */
struct db_options engine_db_options(struct engine *e);
/* Has the time that engine_hurry gave passed? */
bool engine_gave_up(const struct engine *e);
/* The command has been carried out: tells the waiter, or frees it if it is the engine's own. */
void engine_finish(struct command *command);

/* Counts the seats that a hold, or more places for one, was refused because of.  Any thread. */
void engine_note_heat(const struct command *command);

/* The event if it is loaded, else NULL: for its worker, and where the event is pinned. */
struct event *engine_event(const struct engine *e, int64_t event);
/* As engine_event_take, but the event does not count as asked for. */
struct event *engine_event_peek(const struct engine *e, int64_t event);

/* Every event of every worker's view, pinned without being asked for. */
struct loaded {
    VEC(struct event *) events;
};
void engine_list_loaded(const struct engine *e, struct loaded *ret);
void loaded_close(struct loaded *loaded);

#endif
