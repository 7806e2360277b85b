/* The engine: queue, worker, readers, loader and view behind four calls.
 *
 *   HTTP threads --engine_submit--> queue --> worker   one batch a transaction (SQLite: one worker)
 *                               \-> readers            GETs the view cannot answer
 *                               \-> loader             events on first use
 * Every submitted command comes back through config.done exactly once, on an engine thread. */
#ifndef HF_ENGINE_ENGINE_H
#define HF_ENGINE_ENGINE_H

#include "base/metrics.h"
#include "engine/command.h"

struct engine;

/* How the message of a gate's URL that is wrong begins. */
#define ENGINE_GATE_ERROR "the gate: "

struct engine_config {
    const char *ledger_url; /* sqlite:PATH, postgres://... */
    const char
        *gate_url; /* redis://...; NULL: none.  Of use where several servers share a ledger */
    int64_t reconcile_every_ms; /* 0: 30 s */
    int workers;                /* 0: one where one process owns the ledger, else WORKERS_MAX */
    const struct clock *clock;
    uint64_t random_seed;       /* 0: the system's randomness */
    size_t queue_len_max;       /* commands queued, per lane; 0: 16384 */
    size_t batch_len_max;       /* 0: 1024 */
    uint32_t public_places_max; /* that one keyless address may hold at once; 0: no limit */
    struct metrics *metrics;
    /* Called on an engine thread when the command is answered; it is the caller's again. */
    void (*done)(struct command *command);
    /* Append the body of a successful answer (2xx) to out and return its HTTP status.  The worker
     * calls it for commands with a key, whose bytes are stored with their effect (I8). */
    int (*render)(const struct command *command, struct buf *out);
};

HF_MUST_USE enum hf_status engine_start(const struct engine_config *config, struct engine **ret,
                                        struct hf_err *err);
/* The end is near: in `ms` nobody waits for a ledger on another machine any more, and who waited is
 * told that it did not answer, or that the outcome is unknown.  Until then all goes on. */
void engine_hurry(struct engine *e, int64_t ms);
/* Finish what was accepted and stop the threads; from now on engine_submit answers HF_DRAINING.
 * The view stays.  May be called twice. */
void engine_drain(struct engine *e);
/* Drain, then close the ledger and free everything. */
void engine_stop(struct engine *e);

/* HF_OK: queued, `done` will come.  HF_OVERLOADED or HF_DRAINING: not taken. */
HF_MUST_USE enum hf_status engine_submit(struct engine *e, struct command *command);

/* On the HTTP thread, before submitting a CMD_HOLD_CREATE: true when the view alone is reason
 * enough to refuse (a seat booked, blocked, or held for 250 ms more) and no stored key could say
 * otherwise; then status and taken are filled.  Lock-free. */
bool engine_refuse(struct engine *e, struct command *command);

/* May something be stored under the command's key?  False is sure.  Lock-free. */
bool engine_key_maybe(const struct engine *e, const struct command *command);

/* The event if it is loaded, else NULL.  Lock-free. */
struct event *engine_event(const struct engine *e, int64_t event);
/* Ledger time as this process knows it. */
int64_t engine_now_ms(const struct engine *e);
/* False while the ledger cannot be written; `why` (may be NULL) gets the reason. */
bool engine_ready(struct engine *e, char *why, size_t why_size);
/* False while there is a gate and it does not answer: everything works, with more to do for the
 * ledger. */
bool engine_gate_up(const struct engine *e);

#endif
