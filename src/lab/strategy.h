/* The field's ways of selling seats, side by side: one small file each, written as the best-known
 * articles write them, with libpq, hiredis and sqlite3 and nothing of src/db, src/lease or
 * src/engine.  They are the peers of `make bench` and something to learn from; no server of ours
 * runs them.  The last is Holdfast itself, asked over HTTP (holdfastd.c).
 *
 * All but that one sell the rows of one table, a row a seat (stage.h has the schema).  A seat
 * becomes HELD; the periodic sweep that gives it back after held_until is the same for all and not
 * part of a strategy.
 *
 * A desk is one worker: its own connections, one thread at a time.  Strategies keep no other state,
 * except the queues, whose lines are the process's (line.h). */
#ifndef HF_LAB_STRATEGY_H
#define HF_LAB_STRATEGY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define STRATEGY_SEATS_MAX 50

enum strategy_verdict { STRATEGY_WON, STRATEGY_LOST, STRATEGY_ERROR };

/* What one buyer asks for: all of it or nothing. */
struct strategy_want {
    const char *user, *event;
    const char *const *seats; /* each named once */
    size_t n_seats;           /* 1 to STRATEGY_SEATS_MAX */
};

struct strategy_outcome {
    enum strategy_verdict verdict; /* an error in a COMMIT may have sold the seats all the same */
    unsigned sql_trips;            /* exchanges with PostgreSQL, or statements run by SQLite;
                                      preparing one is none */
    unsigned commits;              /* transactions, as pg_stat_database.xact_commit counts; SQLite:
                                      those that wrote */
    unsigned redis_trips;
    char why[256]; /* of an error */
};

struct strategy_settings {
    const char *postgres;   /* anything that PQconnectdb takes */
    const char *redis;      /* redis://HOST:PORT or unix:PATH */
    const char *sqlite;     /* the path of a database file */
    const char *server;     /* of Holdfast, http://HOST:PORT */
    uint64_t seed;          /* of the pauses; 0: the system's */
    int hold_s;             /* how long a buyer has the seat */
    int lease_ms;           /* how long a lock in Redis lives */
    int retries_max;        /* of an attempt that found the seat locked or changed */
    int retry_pause_ms;     /* before such a retry */
    void (*window)(void *); /* called between reading and writing: where another buyer fits in; */
    void *window_ctx;       /* NULL: not called */
};
/* The articles' numbers: 480 s, 30 s, 3 retries of 100 ms. */
#define STRATEGY_SETTINGS_USUAL                                                                    \
    .hold_s = 480, .lease_ms = 30000, .retries_max = 3, .retry_pause_ms = 100

enum {
    STRATEGY_NEEDS_POSTGRES = 1,
    STRATEGY_NEEDS_REDIS = 2,
    STRATEGY_NEEDS_SQLITE = 4,
    STRATEGY_NEEDS_SERVER = 8,
};

struct desk;

struct strategy {
    const char *name;
    const char *summary; /* one sentence */
    bool correct;        /* never two winners of a seat ... */
    const char *unless;  /* ... but for this; NULL: never */
    unsigned needs;      /* STRATEGY_NEEDS_* */
    bool chooses;        /* takes any n_seats seats of the event, whichever were named */

    HF_MUST_USE bool (*open)(const struct strategy *strategy,
                             const struct strategy_settings *settings, struct desk **ret,
                             struct hf_err *err);
    void (*close)(struct desk *desk); /* accepts NULL */
    /* True: won.  False: lost, or failed if the desk says so; a transaction that it leaves open is
     * rolled back.  To be called by strategy_attempt. */
    bool (*attempt)(struct desk *desk, const struct strategy_want *want);
};

/* Each ends with NULL.  A strategy has the same name in both; what SQLite cannot do is not there.
 */
extern const struct strategy *const strategies[]; /* PostgreSQL, some with Redis */
extern const struct strategy *const strategies_sqlite[];
extern const struct strategy strategy_holdfast;
const struct strategy *strategy_find(const char *name); /* of `strategies` */

/* One buyer's request from beginning to end; blocks. */
void strategy_attempt(const struct strategy *strategy, struct desk *desk,
                      const struct strategy_want *want, struct strategy_outcome *ret);

#endif
