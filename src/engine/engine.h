/* The engine: queues, workers, readers, loader, drawer and the view behind a few calls.
 *
 *   HTTP threads --engine_submit--> queue --> worker   one batch per transaction
 *                               \-> readers            GETs that the view cannot answer
 *                               \-> loader             events on their first use, lists of events
 *                               \-> drawer             maps
 *                               \-> preparer           new events, plans
 * An engine on SQLite has one worker, an engine on PostgreSQL several.  For every command that
 * engine_submit takes, pending_done is called exactly once, on a thread of the engine. */
#ifndef HF_ENGINE_ENGINE_H
#define HF_ENGINE_ENGINE_H

#include "base/clock.h"
#include "base/metrics.h"
#include "engine/command.h"
#include "engine/drawer.h"

struct engine;

/* How the message of a gate's URL that is wrong begins. */
#define ENGINE_GATE_ERROR "the gate: "

/* The texts that the engine stores or shares and never reads: its user writes them. */
struct engine_texts {
    /* Appends the body of a successful answer and returns the number that is stored with it.  The
     * worker calls it for commands with an idempotency key, whose answers are stored with their
     * effect (I8). */
    int (*answer)(const struct command *command, struct buf *out);
    /* Rewrites a stored answer without what it says of its hold's owner; see struct erasure.  NULL:
     * no owner is ever erased. */
    bool (*erase)(const char *body, size_t len, const struct erasure *x, bool is_own,
                  struct buf *out);
    render_map_fn map; /* appends the map of an event; see drawer.h */
};

struct engine_config {
    const char *ledger_url; /* sqlite:PATH or postgres://... */
    const char
        *gate_url; /* redis://...; NULL: none.  Useful where several servers share a ledger */
    int64_t reconcile_every_ms; /* 0: 30 s */
    int workers;                /* 0: one if one process owns the ledger, else WORKERS_MAX */
    const struct clock *clock;
    uint64_t random_seed;       /* 0: the system's randomness */
    size_t queue_len_max;       /* commands queued, per lane; 0: 16384 */
    size_t batch_len_max;       /* 0: 1024 */
    int64_t keep_ms;            /* how long what archived events do not need is kept; 0: forever */
    int64_t keep_holds_ms;      /* how long finished holds that sold nothing are kept; 0: forever */
    int64_t event_idle_ms;      /* events that nobody asks for leave memory then; 0: they stay */
    int64_t event_memory_max;   /* bytes of events in memory, see idle.h; 0: no limit */
    uint32_t public_places_max; /* places that one keyless address may hold at once; 0: no limit */
    struct metrics *metrics;
    struct engine_texts texts;
    unsigned notices; /* 1 << enum notice: what the shop is told of */
    /* Called by workers after the commit of a batch that made or changed jobs, with those that it
     * made; must not block.  NULL: nobody runs them. */
    void (*jobs_made)(void *context, const struct job_row *jobs, size_t n);
    void *jobs_context;
    /* Called by workers after a commit, of this server or of another one, that changed entries of
     * waiting lists; must not block.  NULL: nobody follows them. */
    void (*waits_changed)(void *context, const struct wait_news *news, size_t n);
    void *waits_context;
    bool hands_jobs_over; /* jobs that create intents are run by this server without being taken */
};

HF_MUST_USE enum hf_status engine_start(const struct engine_config *config, struct engine **ret,
                                        struct hf_err *err);
/* The end is near: after `ms` no thread waits for a ledger on another machine any longer, and
 * commands that waited for it are told that it did not answer, or that the outcome is unknown.
 * Until then everything goes on. */
void engine_hurry(struct engine *e, int64_t ms);
/* Finishes what was accepted and stops the threads; from now on engine_submit answers HF_DRAINING.
 * The view stays.  May be called twice. */
void engine_drain(struct engine *e);
/* Drains, then closes the ledger and frees everything.  Accepts NULL. */
void engine_stop(struct engine *e);

/* HF_OK: queued, and pending_done will be called.  HF_OVERLOADED or HF_DRAINING: not taken. */
HF_MUST_USE enum hf_status engine_submit(struct engine *e, struct command *command);

/* On the HTTP thread, before a CMD_HOLD_CREATE is submitted.  Returns true if the view alone is
 * reason enough to refuse (a seat is booked, blocked, or held for 250 ms more) and no stored key
 * could say otherwise; verdict and shortage are then filled in.  Lock-free. */
bool engine_refuse(struct engine *e, struct command *command);

/* May something be stored under the key?  False is certain.  Lock-free. */
bool engine_key_maybe(const struct engine *e, const struct idempotency *key);

/* Returns true if other servers may write to the ledger, too. */
bool engine_is_shared(const struct engine *e);
/* Pins the event if it is loaded, else returns NULL.  The event stays where it is until event_give
 * (view/view.h) gives the pin back.  Lock-free. */
struct event *engine_event_take(const struct engine *e, int64_t event);
/* Ledger time as this process knows it. */
int64_t engine_now_ms(const struct engine *e);
/* False while the ledger cannot be written; `why` (may be NULL) gets the reason. */
bool engine_ready(struct engine *e, char *why, size_t why_size);
/* False while nothing can be read: the ledger does not answer, and no event is loaded. */
bool engine_ready_for_reads(struct engine *e);
/* True if every worker has ended a turn since the last call that returned true: a worker that hangs
 * makes this false for good.  An idle worker takes several turns per second.  For one caller. */
bool engine_turned(struct engine *e);
/* False while there is a gate and it does not answer: everything works, but the ledger has more to
 * do. */
bool engine_gate_up(const struct engine *e);

#endif
