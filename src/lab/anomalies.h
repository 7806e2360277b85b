/* Scripted interleavings: each shows, step by step on real servers, what goes wrong without a
 * protection, and that it does not with it.  Scripts need no luck.  Where PostgreSQL or Redis is
 * not installed, those that SQLite can show are played there; an anomaly of another lock server is
 * left out if that is not installed.  Each script is one file (anomaly_*.c), written with
 * scene.h.
 *
 * A script branches on the answers that it gets, as a client would, and the verdict is read from
 * the database afterwards.  A script states how a side should end, never how it does.
 *
 * Main thread only: it starts servers (see servers.h). */
#ifndef HF_LAB_ANOMALIES_H
#define HF_LAB_ANOMALIES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/status.h"
#include "base/vec.h"
#include "lab/coordinators.h"

#define ANOMALY_ACTORS_MAX 6
#define ANOMALY_SIDES 2
#define ANOMALY_COUNT 19

/* One step of a script: a message, its answer, and what the sender makes of it. */
struct anomaly_step {
    int64_t at_us;         /* since the side began */
    const char *from, *to; /* equal for something that happens to one actor alone */
    char *text;
    char *answer; /* NULL if there is none, or none yet */
    char *thinks; /* what `from` thinks; may be NULL */
};

struct anomaly_side {
    VEC(struct anomaly_step) steps;
    bool violated;
    char *evidence; /* a sentence read from the rows */
};

struct scene;
struct anomaly {
    const char *name, *title, *moral;
    const char *more; /* where to read on: a page of docs/, an article by its title, or both */
    /* From left to right, ended by NULL.  Redis is needed if it is one of them. */
    const char *actors[ANOMALY_ACTORS_MAX + 1];
    /* The actors on SQLite; empty if the script cannot be played there. */
    const char *actors_sqlite[ANOMALY_ACTORS_MAX + 1];
    const char *not_on_sqlite;     /* why it cannot be played there; NULL if it can */
    const char *driver;            /* the lock driver that it needs; NULL: none */
    enum coordinator_kind servers; /* if it needs a driver: the lock servers to start */
    bool steps_clock;              /* it steps the clock of one of them */
    /* The actors that are lock servers, if the script asks or breaks them one by one. */
    const char *nodes[COORDINATOR_NODES_MAX];
    /* Side 0 is without protection and should end violated; side 1 is with it. */
    const char *strategies[ANOMALY_SIDES];
    void (*play)(struct scene *s, bool is_protected);
};
extern const struct anomaly *const anomalies[ANOMALY_COUNT];
extern const char *const anomaly_side_names[ANOMALY_SIDES];

struct anomaly_played {
    const struct anomaly *anomaly;
    const char *const *actors; /* anomaly->actors or anomaly->actors_sqlite */
    struct anomaly_side sides[ANOMALY_SIDES];
};

struct anomaly_left_out {
    const struct anomaly *anomaly;
    char why[COORDINATOR_WHY_SIZE];
};

struct anomalies_result {
    int64_t at_ms; /* when it began, since 1970 */
    struct anomaly_played played[ANOMALY_COUNT];
    size_t n;
    struct anomaly_left_out left_out[ANOMALY_COUNT];
    size_t n_left_out;
    char note[160]; /* which server is not installed; "" if none is missing */
    bool ok;        /* every side that was played ended as it should */
};

/* Plays all anomalies, or the one named `only`.  HF_INVALID_REQUEST if there is none of this name,
 * HF_UNAVAILABLE if a server cannot be started and SQLite cannot take its place.  After
 * HF_OK the caller closes `ret`. */
HF_MUST_USE enum hf_status anomalies_run(const char *only, struct anomalies_result *ret,
                                         struct hf_err *err);
void anomalies_close(struct anomalies_result *result);
/* "violated" or "protected". */
const char *anomaly_verdict(const struct anomaly_side *side);
/* Writes {"object":"lab.anomalies",...} without a newline. */
void anomalies_json(const struct anomalies_result *result, struct buf *out);

#endif
