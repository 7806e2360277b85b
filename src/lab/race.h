/* The race: for each strategy and each number of users, all users want the same seats of a new
 * event at once.  What the winners were told is compared with each other and with the table.
 *
 * Up to RACE_RUNNERS users have a connection and a thread each; more users wait in one line for
 * RACE_RUNNERS connections, as they would wait for the pool of a server.  A latency is what a buyer
 * feels: from the start signal, when all users click, to the answer, waiting in that line
 * included.
 *
 * Main thread only: it starts servers (see servers.h). */
#ifndef HF_LAB_RACE_H
#define HF_LAB_RACE_H

#include <signal.h>

#include "base/buf.h"
#include "lab/machine.h"
#include "lab/strategy.h"

#define RACE_RUNNERS 64
#define RACE_USERS_MAX 100000
#define RACE_SEATS_MAX 10000
#define RACE_QUANTILES 101 /* 0 % to 100 % */

enum race_verdict {
    RACE_CORRECT,   /* promises to sell each seat once, and did */
    RACE_BROKEN,    /* promises it, and did not */
    RACE_CAUGHT,    /* promises nothing, and sold a seat twice */
    RACE_NOT_CAUGHT /* promises nothing, and was lucky */
};
/* For example "not caught". */
const char *race_verdict_text(enum race_verdict verdict);

struct race_latency {
    size_t n; /* of users; if 0, the rest means nothing */
    double avg_ms, p50_ms, p99_ms, quantiles_ms[RACE_QUANTILES];
};

struct race_run {
    const struct strategy *strategy;
    int users, seats;
    int tries; /* heats that it took to catch a strategy that promises nothing; this is the last */
    int winners, errors;
    int double_sold;   /* winners whose seat the table gives to another, and rows of a seat beyond
                          its first */
    double seconds;    /* from the start signal to the last answer */
    double throughput; /* users answered per second */
    struct race_latency winners_ms, losers_ms;
    int refused_at_once; /* losers who were answered without a retry */
    bool several; /* the strategy keeps its promise also if several servers sell on this ledger */
    /* Counted by the runners; for Holdfast by its own metrics, in the workers that serve
     * requests. */
    double round_trips_per_request; /* with the database; on SQLite statements */
    double gate_trips_per_request;  /* with Redis */
    double commits_per_request;
    enum race_verdict verdict;
    char why[256]; /* the first error, or what is wrong besides double sales; "" if nothing is */
};

struct race_skip {
    const char *strategy, *why;
};

struct race_result {
    int64_t at_ms; /* when it began, since 1970 */
    struct machine machine;
    struct versions versions;
    bool on_postgres; /* false: on SQLite */
    bool with_gate;   /* Redis took part */
    int retries;      /* as race_settings.retries */
    char note[256];   /* why a back end is missing; "" if none is */
    struct race_run *runs;
    size_t n_runs;
    struct race_skip *skips; /* strategies that cannot run there */
    size_t n_skips;
    bool ok; /* promises were kept, and a strategy that makes none was caught at least once */
};

struct race_progress {
    const char *strategy; /* NULL before the first heat; see `what` then */
    const char *what;     /* for example "starting PostgreSQL" */
    int users, done, try_number, tries;
    size_t run; /* from 0 */
    size_t n_runs;
};

struct race_settings {
    const char *strategies; /* names separated by commas, or "all" */
    const int *users;
    size_t n_users;
    int seats;
    /* URLs; NULL means a throwaway server.  In the ledger the lab creates schemas (or files) of its
     * own and drops them at the end; the gate must be empty. */
    const char *ledger, *gate;
    uint64_t seed; /* for pauses and for who wants which seat; 0 means random */
    int tries;     /* the most heats for a strategy that promises nothing */
    /* How often a buyer who finds the seat locked or changed tries again, by a strategy that does
     * so; 0 is fail-fast. */
    int retries;
    /* Called up to ten times a second; may be NULL. */
    void (*progress)(void *ctx, const struct race_progress *progress);
    void *progress_ctx;
    const volatile sig_atomic_t *stop; /* ends the race once it is not 0; may be NULL */
};
#define RACE_SETTINGS_USUAL .strategies = "all", .seats = 1, .tries = 20, .retries = 3
#define RACE_RETRIES_MAX 10

/* HF_INVALID_REQUEST if an option is wrong, HF_DRAINING if `stop` ended it; any other failure is
 * one of a server.  After HF_OK the caller closes `ret`. */
HF_MUST_USE enum hf_status race_run(const struct race_settings *settings, struct race_result *ret,
                                    struct hf_err *err);
void race_result_close(struct race_result *result);
/* Writes {"object":"lab.race",...} without a newline. */
void race_json(const struct race_result *result, struct buf *out);

#endif
