/* The race: for each strategy and each number of users, all of them want the same seats at once, on
 * a fresh event.  What the winners were told is compared with each other and with the table.
 *
 * Up to RACE_DESKS users have a connection and a thread each; more than that wait in one line for
 * RACE_DESKS of them, as they would for any server's pool.  A latency is what a buyer feels: from
 * the start signal, which is everybody's click, to the answer, waiting in that line included.
 *
 * Main thread only: it starts servers (see servers.h). */
#ifndef HF_LAB_RACE_H
#define HF_LAB_RACE_H

#include <signal.h>

#include "base/buf.h"
#include "lab/machine.h"
#include "lab/strategy.h"

#define RACE_DESKS 64
#define RACE_USERS_MAX 100000
#define RACE_SEATS_MAX 10000
#define RACE_QUANTILES 101 /* 0 % to 100 % */

enum race_verdict {
    RACE_CORRECT,   /* promised it and kept it */
    RACE_BROKEN,    /* promised it and did not */
    RACE_CAUGHT,    /* did not promise it, and sold a seat twice */
    RACE_NOT_CAUGHT /* did not promise it, and was lucky */
};
const char *race_verdict_text(enum race_verdict verdict); /* "not caught" */

struct race_latency {
    size_t n; /* 0: nobody, and the rest says nothing */
    double avg_ms, p50_ms, p99_ms, quantiles_ms[RACE_QUANTILES];
};

struct race_run {
    const struct strategy *strategy;
    int users, seats;
    int tries; /* races it took to catch a strategy that promises nothing; the last is told here */
    int winners, errors;
    int double_sold;   /* sales of a seat that was sold already: winners' seats that another winner
                          was told too, or that the table does not give to them */
    double seconds;    /* from the start signal to the last answer */
    double throughput; /* users answered a second */
    struct race_latency winners_ms, losers_ms;
    /* Holdfast's by its own metrics, of the workers that serve the requests. */
    double round_trips_per_request; /* with the database; SQLite: statements */
    double gate_trips_per_request;  /* with Redis */
    double commits_per_request;
    enum race_verdict verdict;
    char why[256]; /* the first error, or what is broken beside double sales; "": nothing */
};

struct race_skip {
    const char *strategy, *why;
};

struct race_result {
    int64_t at_ms; /* since 1970 */
    struct machine machine;
    struct versions versions;
    bool on_postgres, with_gate; /* else SQLite; else no Redis */
    char note[256];              /* why SQLite, if nobody asked for it; "": as asked */
    struct race_run *runs;
    size_t n_runs;
    struct race_skip *skips; /* strategies that cannot run there */
    size_t n_skips;
    bool ok; /* promises were kept, and who made none was caught at least once (if it ran) */
};

struct race_progress {
    const char *strategy; /* NULL: `what` is being done */
    const char *what;     /* "starting PostgreSQL" */
    int users, done, try_number, tries;
    size_t run, n_runs; /* from 0 */
};

struct race_settings {
    const char *strategies; /* names with commas between, or "all" */
    const int *users;
    size_t n_users;
    int seats;
    const char *ledger, *gate; /* URLs; NULL: throwaway servers.  The ledger gets schemas (or files)
                                  of the lab's own, dropped at the end; the gate must be empty */
    uint64_t seed;             /* of pauses and of who wants which seat; 0: the system's */
    int tries;                 /* at most so many, for each strategy that promises nothing */
    void (*progress)(void *ctx, const struct race_progress *progress); /* may be NULL; ten a s */
    void *progress_ctx;
    const volatile sig_atomic_t *stop; /* becomes true: end soon; NULL: never */
};
#define RACE_SETTINGS_USUAL .strategies = "all", .seats = 1, .tries = 20

/* HF_INVALID_REQUEST: an option cannot be; HF_DRAINING: stopped; else a server is at fault.  `ret`
 * is to be closed after HF_OK. */
HF_MUST_USE enum hf_status race_run(const struct race_settings *settings, struct race_result *ret,
                                    struct hf_err *err);
void race_result_close(struct race_result *result);
/* {"object":"lab.race",...} and no newline. */
void race_json(const struct race_result *result, struct buf *out);

#endif
