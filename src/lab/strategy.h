/* The field's ways of selling seats, side by side.  Each is one small file, written as the
 * best-known articles write it, with libpq, hiredis and sqlite3 alone, so that it can be read
 * without the rest of this project.  `make bench` races them, too; no server of ours uses them. The
 * last strategy is Holdfast itself, asked over HTTP (holdfastd.c).
 *
 * All but the last sell the rows of one table, one row per seat (stage.c has the schema).  A seat
 * becomes HELD; the periodic sweep that frees it after held_until would be the same for all and is
 * not part of a strategy.
 *
 * A runner is one worker with connections of its own; one thread at a time uses it.  Strategies
 * keep no other state, except for the queues, whose lines belong to the process (line.h), and for
 * counter-async, whose list of sales does. */
#ifndef HF_LAB_STRATEGY_H
#define HF_LAB_STRATEGY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define STRATEGY_SEATS_MAX 50

enum strategy_verdict { STRATEGY_WON, STRATEGY_LOST, STRATEGY_ERROR };

/* The seats that one buyer asks for, all or nothing. */
struct strategy_want {
    const char *user, *event;
    const char *const *seats; /* no seat is named twice */
    size_t n_seats;           /* 1 to STRATEGY_SEATS_MAX */
};

struct strategy_outcome {
    enum strategy_verdict verdict; /* after an error in COMMIT the seats may be sold nevertheless */
    unsigned sql_trips;            /* exchanges with PostgreSQL, or statements run by SQLite;
                                      preparing a statement does not count */
    unsigned commits;              /* transactions, as pg_stat_database.xact_commit counts them; on
                                      SQLite only those that wrote */
    unsigned redis_trips;
    unsigned retries; /* see settings.retries_max */
    char why[256];    /* the reason for STRATEGY_ERROR */
};

struct strategy_settings {
    const char *postgres; /* for PQconnectdb */
    const char *redis;    /* redis://HOST:PORT or unix:PATH */
    const char *sqlite;   /* the path of a database file */
    const char *server;   /* the URL of a holdfastd, http://ADDRESS:PORT */
    uint64_t seed;        /* for the length of pauses; 0 means random */
    int hold_s;           /* how long a buyer may keep the seat */
    int lease_ms;         /* the TTL of a lock in Redis */
    int retries_max;      /* of an attempt that found the seat locked or changed; 0: fail-fast */
    int retry_pause_ms;   /* before such a retry */
    /* Called between reading and writing, where another buyer's write fits in; may be NULL. */
    void (*window)(void *);
    void *window_ctx;
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

struct runner;

struct strategy {
    const char *name;
    const char *summary; /* one sentence */
    bool correct;        /* promises never to sell a seat twice */
    /* The condition under which it breaks this promise; NULL if there is none. */
    const char *unless;
    unsigned needs; /* STRATEGY_NEEDS_* */
    /* Keeps its promise also if several application servers sell the same seats. */
    bool several;
    /* Tells the buyer before the sale is in the table; `close` waits until it is. */
    bool tells_first;
    bool retries; /* tries again up to settings.retries_max times */
    bool chooses; /* takes any n_seats seats of the event, not those that were named */

    HF_MUST_USE bool (*open)(const struct strategy *strategy,
                             const struct strategy_settings *settings, struct runner **ret,
                             struct hf_err *err);
    void (*close)(struct runner *runner); /* accepts NULL */
    /* Returns true if the buyer won, and false if it lost or, as runner_failed then says, an error
     * ended the attempt.  strategy_attempt calls it and rolls back a transaction left open. */
    bool (*attempt)(struct runner *runner, const struct strategy_want *want);
};

/* On PostgreSQL, some with Redis; ends with NULL. */
extern const struct strategy *const strategies[];
/* On SQLite, under the same names, as far as SQLite can do them; ends with NULL. */
extern const struct strategy *const strategies_sqlite[];
extern const struct strategy strategy_holdfast;
/* Looks in `strategies`; NULL if there is none of this name. */
const struct strategy *strategy_find(const char *name);

/* Serves one buyer's request from beginning to end; blocks. */
void strategy_attempt(const struct strategy *strategy, struct runner *runner,
                      const struct strategy_want *want, struct strategy_outcome *ret);

#endif
