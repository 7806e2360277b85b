/* Scripted interleavings that need no luck: what goes wrong without a protection, and that it does
 * not with it, step by step on a real PostgreSQL and a real Redis.  One file each (anomaly_*.c);
 * scene.h has what a script is written with.
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
    const char *actors[ANOMALY_ACTORS_MAX + 1]; /* from left to right, ends with NULL */
    /* Without protection, which is to end violated, and with it. */
    const char *strategies[ANOMALY_SIDES];
    void (*play)(struct scene *s, bool is_protected);
};
extern const struct anomaly *const anomalies[ANOMALY_COUNT];
extern const char *const anomaly_side_names[ANOMALY_SIDES];

struct anomaly_told {
    const struct anomaly *anomaly;
    struct anomaly_side sides[ANOMALY_SIDES];
};

struct anomalies_result {
    int64_t at_ms; /* since 1970 */
    struct anomaly_told told[ANOMALY_COUNT];
    size_t n;
    bool ok; /* every side ended as it should */
};

/* All of them, or the one of this name.  HF_INVALID_REQUEST: there is none; HF_LEDGER_UNAVAILABLE:
 * a server cannot be had.  `ret` is to be closed after HF_OK. */
HF_MUST_USE enum hf_status anomalies_run(const char *only, struct anomalies_result *ret,
                                         struct hf_err *err);
void anomalies_close(struct anomalies_result *result);
/* "violated" or "protected". */
const char *anomaly_verdict(const struct anomaly_side *side);
/* {"object":"lab.anomalies",...} and no newline. */
void anomalies_json(const struct anomalies_result *result, struct buf *out);

#endif
