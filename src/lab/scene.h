/* What the scripts of anomalies.h are written with: actors, each with a connection of its own,
 * steps that are run and recorded in one call, and a judge, who has a connection, too, and looks at
 * the rows at the end.
 *
 * A refusal or an error of a server is an answer like any other, for the script to act on.  A
 * failure that keeps a scene from being played (no connection) is recorded once and ends it.
 *
 * One thread plays all actors; only scene_send leaves an actor waiting for its answer. */
#ifndef HF_LAB_SCENE_H
#define HF_LAB_SCENE_H

#include "base/clock.h"
#include "lab/anomalies.h"
#include "lab/coordinators.h"
#include "lab/runner.h"

#define SCENE_POSTGRES "PostgreSQL"
#define SCENE_REDIS "Redis"
#define SCENE_SQLITE "SQLite"
/* What scene_sql returns if the connection broke before the answer came; the step has no answer. */
#define SCENE_LOST "connection lost"
/* The evidence of a side that sold nothing, which is not how a side should end. */
#define SCENE_NOTHING_SOLD "nothing was sold"

/* What a scene is played on. */
struct scene_place {
    const struct strategy_settings *settings;
    const struct servers *servers;   /* for the directory of processes that the scene starts */
    struct coordinator *coordinator; /* NULL if the anomaly needs none */
};

struct scene {
    const struct strategy_settings *settings;
    const struct servers *servers;
    struct coordinator *coordinator;
    const struct anomaly *anomaly;
    const struct clock *clock;
    const char *const *actors;
    bool on_sqlite;
    const char *ledger; /* the actor that keeps the rows */
    const char *locks;  /* the actor that keeps the locks */
    struct anomaly_side *side;
    int64_t began_us;
    struct runner *judge, *runners[ANOMALY_ACTORS_MAX];
    pid_t pids[ANOMALY_ACTORS_MAX]; /* processes of actors (scene_client.h); 0: none */
    struct strategy_outcome
        outcome;       /* what the runners record; only its reason for a failure is used */
    bool failed;       /* the scene could not be played */
    struct hf_err err; /* why, if it failed */
};

/* Sets an empty stage: seats, both FREE, no tickets, no locks.  The scene is on SQLite
 * if SQLite is one of the actors. */
HF_MUST_USE bool scene_open(struct scene *s, const struct scene_place *place,
                            const struct anomaly_played *played, struct anomaly_side *side,
                            struct hf_err *err);
void scene_close(struct scene *s);

/* Run a text, exactly as it is shown, on the connection of `who`, and return the answer as it is
 * shown: "FREE", "1 row", "(nil)", "ERROR 40P01: ...".  The answer is valid until the side is
 * closed. */
__attribute__((format(printf, 3, 4))) const char *scene_sql(struct scene *s, const char *who,
                                                            const char *fmt, ...);
__attribute__((format(printf, 3, 4))) const char *scene_redis(struct scene *s, const char *who,
                                                              const char *fmt, ...);
/* Runs a Redis command that is too long to be shown as it is, such as a script. */
const char *scene_redis_words(struct scene *s, const char *who, const char *shown, int n,
                              const char *const *words);
/* Sends a statement that will wait for another actor's lock.  Returns once PostgreSQL waits for the
 * lock, or has answered without waiting. */
__attribute__((format(printf, 3, 4))) void scene_send(struct scene *s, const char *who,
                                                      const char *fmt, ...);
/* Waits for the answer to scene_send and records it as a step of its own. */
const char *scene_wait(struct scene *s, const char *who);
/* Records something that happens to `who` alone. */
__attribute__((format(printf, 3, 4))) void scene_note(struct scene *s, const char *who,
                                                      const char *fmt, ...);
/* Records a message from one actor to another. */
__attribute__((format(printf, 4, 5))) void scene_arrow(struct scene *s, const char *from,
                                                       const char *to, const char *fmt, ...);
/* Records a request from one actor to another that scene_answer answers.  Returns its number. */
__attribute__((format(printf, 4, 5))) size_t scene_request(struct scene *s, const char *from,
                                                           const char *to, const char *fmt, ...);
/* Records the answer to a request, and returns it. */
__attribute__((format(printf, 3, 4))) const char *scene_answer(struct scene *s, size_t step,
                                                               const char *fmt, ...);
/* Where the process of an actor is kept. */
pid_t *scene_pid(struct scene *s, const char *who);
/* Records what the sender of the last step makes of its answer. */
__attribute__((format(printf, 2, 3))) void scene_think(struct scene *s, const char *fmt, ...);
static inline bool scene_is(const char *answer, const char *text)
{
    return strcmp(answer, text) == 0;
}

/* Begins a transaction that will write. */
void scene_begin(struct scene *s, const char *who);

/* Takes the lock of A-1 with a TTL: a key in Redis, or a row in SQLite.  Returns the answer as it
 * is shown, or NULL if another actor has the lock.  If `with_fence`, the answer is the fence of
 * this grant, issued in the same step. */
const char *scene_lock(struct scene *s, const char *who, int ttl_ms, bool with_fence);
/* Releases the lock, blindly or only if it still belongs to `who`.  Returns false if nothing was
 * released. */
bool scene_unlock(struct scene *s, const char *who, bool is_blind);
/* Asks who has the lock, and returns whether it is `who`. */
bool scene_owns_lock(struct scene *s, const char *who);
/* Gives the lock a new TTL, whoever has it or only if it still belongs to `who`.  Returns false if
 * nothing was renewed. */
bool scene_renew(struct scene *s, const char *who, int ttl_ms, bool is_blind);
/* Waits until the lock that `who` had has expired. */
void scene_await_expiry(struct scene *s, const char *who);
/* Replaces the connection to PostgreSQL by a new one through 127.0.0.1:port. */
void scene_reconnect(struct scene *s, const char *who, int port);
/* Closes the connection of `who`; the next statement opens another. */
void scene_disconnect(struct scene *s, const char *who);

/* The PostgreSQL connection of `who`; NULL if the scene has failed. */
PGconn *scene_pg(struct scene *s, const char *who);
/* Runs `sql` as the judge, without recording it, and starts the side's clock anew. */
void scene_prepare(struct scene *s, const char *sql);
/* Records why the scene cannot be played; the first reason is kept. */
__attribute__((format(printf, 2, 3))) void scene_fail(struct scene *s, const char *fmt, ...);

/* Asks as the judge.  Returns the first value of the first row, for free(), or NULL if there is
 * none. */
char *scene_ask(struct scene *s, const char *sql);
/* Decides the verdict: `harm` selects a sentence on what went wrong, and nothing if nothing did;
 * `fine` then selects a sentence on how things are. */
void scene_judge(struct scene *s, const char *harm, const char *fine);
/* The same for a seat that more than one buyer has a ticket for. */
void scene_judge_tickets(struct scene *s);
/* Sets the verdict and its evidence, for harm that no single statement can select. */
__attribute__((format(printf, 3, 4))) void scene_verdict(struct scene *s, bool is_violated,
                                                         const char *fmt, ...);
/* Asks Redis as the judge, and returns a number; 0 if there is none. */
__attribute__((format(printf, 2, 3))) long long scene_ask_redis(struct scene *s, const char *fmt,
                                                                ...);
/* Waits until `happened` returns true; if it never does, the scene fails and the message has
 * `what`. */
void scene_await(struct scene *s, bool (*happened)(struct scene *s, const char *who),
                 const char *who, const char *what);
/* Closes the actors' connections and returns when their backends have ended, and so have reported
 * their statistics. */
void scene_dismiss(struct scene *s);

#endif
