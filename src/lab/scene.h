/* What the scripts of anomalies.h are written with: actors with connections of their own, steps
 * that are carried out and noted in one call, and the judge, who has a connection too and looks at
 * the rows when all is over.
 *
 * A refusal or an error of a server is an answer like any other, for the script to act on.  What
 * keeps a scene from being played at all (no connection) is noted once, and ends it. */
#ifndef HF_LAB_SCENE_H
#define HF_LAB_SCENE_H

#include "base/clock.h"
#include "lab/anomalies.h"
#include "lab/desk.h"

#define SCENE_POSTGRES "PostgreSQL"
#define SCENE_REDIS "Redis"
#define SCENE_SQLITE "SQLite"
/* The answer to a statement whose answer never came; the step has none. */
#define SCENE_LOST "connection lost"

struct scene {
    const struct strategy_settings *settings;
    const struct clock *clock;
    const char *const *actors;
    bool on_sqlite;
    const char *ledger, *locks; /* the actors that keep the rows and the locks */
    struct anomaly_side *side;
    int64_t began_us;
    struct desk *judge, *desks[ANOMALY_ACTORS_MAX];
    struct strategy_outcome unused; /* the desks count into it */
    struct hf_err err;              /* why it could not be played, if it failed */
    bool failed;
};

/* An empty stage: seats, both FREE, no tickets, no locks.  It is on SQLite if that is
 * one of the actors. */
HF_MUST_USE bool scene_open(struct scene *s, const struct strategy_settings *settings,
                            const char *const *actors, struct anomaly_side *side,
                            struct hf_err *err);
void scene_close(struct scene *s);

/* Each runs a text, exactly as it is shown, on the connection of `who`, and returns the answer as
 * shown, valid until the side is closed: "FREE", "1 row", "(nil)", "ERROR 40P01: ...". */
__attribute__((format(printf, 3, 4))) const char *scene_sql(struct scene *s, const char *who,
                                                            const char *fmt, ...);
__attribute__((format(printf, 3, 4))) const char *scene_redis(struct scene *s, const char *who,
                                                              const char *fmt, ...);
/* A command of Redis that is too long to be shown as it is, a script. */
const char *scene_redis_words(struct scene *s, const char *who, const char *shown, int n,
                              const char *const *words);
/* A statement that will have to wait for another's lock: returns once it does (or did not have
 * to).  scene_wait shows its answer as a step of its own. */
__attribute__((format(printf, 3, 4))) void scene_send(struct scene *s, const char *who,
                                                      const char *fmt, ...);
const char *scene_wait(struct scene *s, const char *who);
/* Something that happens to `who` alone, or from one to the other. */
__attribute__((format(printf, 3, 4))) void scene_note(struct scene *s, const char *who,
                                                      const char *fmt, ...);
__attribute__((format(printf, 4, 5))) void scene_arrow(struct scene *s, const char *from,
                                                       const char *to, const char *fmt, ...);
/* What the sender of the last step thinks now. */
__attribute__((format(printf, 2, 3))) void scene_think(struct scene *s, const char *fmt, ...);
static inline bool scene_is(const char *answer, const char *text)
{
    return strcmp(answer, text) == 0;
}

/* A transaction that will write. */
void scene_begin(struct scene *s, const char *who);

/* The lock of A-1, with a TTL: a key in Redis, or a row in SQLite.  The answer as shown, and NULL
 * if another has it; with_fence: the answer is the fence of this grant, minted in the same step. */
const char *scene_lock(struct scene *s, const char *who, int ttl_ms, bool with_fence);
/* Blindly, or on the condition that it is still theirs.  False: there was nothing to release. */
bool scene_unlock(struct scene *s, const char *who, bool is_blind);
/* Time goes by until the lock that `who` had has expired. */
void scene_await_expiry(struct scene *s, const char *who);
/* A new connection to PostgreSQL in place of the old one, through 127.0.0.1:port. */
void scene_reconnect(struct scene *s, const char *who, int port);
/* The connection of `who` ends; the next statement makes another. */
void scene_hang_up(struct scene *s, const char *who);

/* The connection of `who`; NULL: the scene has failed. */
PGconn *scene_pg(struct scene *s, const char *who);
/* What the judge runs before it begins, unseen. */
void scene_prepare(struct scene *s, const char *sql);
/* The scene cannot be played, for that reason; the first one counts. */
__attribute__((format(printf, 2, 3))) void scene_fail(struct scene *s, const char *fmt, ...);

/* The judge's question: the first value of the first row, for free(); NULL: none. */
char *scene_ask(struct scene *s, const char *sql);
/* The verdict: `harm` asks for a sentence on what went wrong, NULL if nothing did; `fine` for a
 * sentence on how things are then. */
void scene_judge(struct scene *s, const char *harm, const char *fine);
/* ... for a seat that more than one buyer has a ticket for. */
void scene_judge_tickets(struct scene *s);
/* Time goes by until that has happened; `what` is said if it never does. */
void scene_await(struct scene *s, bool (*happened)(struct scene *s, const char *who),
                 const char *who, const char *what);
/* Ends the actors' connections and returns when PostgreSQL has seen them go, their statistics
 * with them. */
void scene_dismiss(struct scene *s);

#endif
