/* Scripted interleavings that need no luck: what goes wrong without a protection, and that it does
 * not with it, step by step on a real PostgreSQL and a real Redis; where one of them is missing, on
 * SQLite, as far as it can be played there.  One file each (anomaly_*.c); scene.h has what a script
 * is written with.
 *
 * A script branches on the answers it gets, as a client would, and the verdict is read from the
 * database afterwards: nothing here says how a side ends, only how it should.
 *
 * Main thread only: it starts servers (see servers.h). */
#ifndef HF_LAB_ANOMALIES_H
#define HF_LAB_ANOMALIES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/status.h"
#include "base/vec.h"

#define ANOMALY_ACTORS_MAX 5
#define ANOMALY_SIDES 2
#define ANOMALY_COUNT 6

/* One line of the story: an arrow, its answer, and what the sender makes of it. */
struct anomaly_step {
    int64_t at_us;         /* since the side began */
    const char *from, *to; /* the same: something that happens to an actor alone */
    char *text;
    char *answer; /* NULL: none, or none yet */
    char *thinks; /* `from`; NULL: nothing worth telling */
};

struct anomaly_side {
    VEC(struct anomaly_step) steps;
    bool violated;
    char *evidence; /* what the rows say */
};

struct scene;
struct anomaly {
    const char *name, *title, *moral;
    /* From left to right, ends with NULL.  Redis is needed if it is one of them. */
    const char *actors[ANOMALY_ACTORS_MAX + 1];
    /* The same on SQLite; nobody: it cannot be played there, for this reason. */
    const char *actors_sqlite[ANOMALY_ACTORS_MAX + 1], *not_on_sqlite;
    /* Without protection, which is to end violated, and with it. */
    const char *strategies[ANOMALY_SIDES];
    void (*play)(struct scene *s, bool is_protected);
};
extern const struct anomaly *const anomalies[ANOMALY_COUNT];
extern const char *const anomaly_side_names[ANOMALY_SIDES];

struct anomaly_told {
    const struct anomaly *anomaly;
    const char *const *actors; /* of the two, those who played */
    struct anomaly_side sides[ANOMALY_SIDES];
};

struct anomalies_result {
    int64_t at_ms; /* since 1970 */
    struct anomaly_told told[ANOMALY_COUNT];
    size_t n;
    const struct anomaly *left_out[ANOMALY_COUNT]; /* which not_on_sqlite is why */
    size_t n_left_out;
    char note[160]; /* what is missing; "": nothing that was needed */
    bool ok;        /* every side that was played ended as it should */
};

/* All of them, or the one of this name.  HF_INVALID_REQUEST: there is none; HF_LEDGER_UNAVAILABLE:
 * a server cannot be had, and SQLite will not do.  `ret` is to be closed after HF_OK. */
HF_MUST_USE enum hf_status anomalies_run(const char *only, struct anomalies_result *ret,
                                         struct hf_err *err);
void anomalies_close(struct anomalies_result *result);
/* "violated" or "protected". */
const char *anomaly_verdict(const struct anomaly_side *side);
/* {"object":"lab.anomalies",...} and no newline. */
void anomalies_json(const struct anomalies_result *result, struct buf *out);

#endif
