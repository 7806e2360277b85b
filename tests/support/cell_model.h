/* A model of the lock service's state that is too simple to be wrong in the same way: one flat
 * array of acquisitions, and loops over all of it.  It knows nothing of trees, counts or lists:
 * what an acquisition of "a/b" locks is written down as pairs (a, intention), (a/b, mode), and
 * whether two acquisitions conflict is read off these pairs. */
#ifndef HF_TESTS_SUPPORT_CELL_MODEL_H
#define HF_TESTS_SUPPORT_CELL_MODEL_H

#include "cell/state.h"

#define MODEL_MAX 256
#define MODEL_NAMES_MAX 16
#define MODEL_SESSIONS_MAX 8

struct model_acquisition {
    bool exists, passed_over, cached;
    enum { MODEL_WAITING, MODEL_HELD, MODEL_DELAYED } stage;
    int name, session; /* the session of a delayed one is -1 */
    struct cell_owner owner;
    char agent[8];
    char value[8]; /* "": none */
    enum cell_mode mode;
    uint32_t slots, slot, delay_ms, overtaken;
    int32_t priority;
    int64_t arrival, fence;
};

struct model_ended {
    int name, session;
    struct cell_owner owner;
    bool is_old;
};

struct model {
    const char *const *names; /* ended by NULL */
    bool is_open[MODEL_SESSIONS_MAX];
    struct model_acquisition all[MODEL_MAX];
    int n; /* those behind the first n do not exist */
    VEC(struct model_ended) ended;
    struct {
        int64_t last_fence, value_fence;
        char value[8];
    } of_name[MODEL_NAMES_MAX];
    int64_t fence, arrival;
    /* of the last command */
    struct cell_verdict verdict; /* `people` only has its length, for CELL_TAKEN */
    struct buf effects;          /* as those of cell_fixture, without "wanted" */
    int n_wanted[MODEL_MAX];     /* how often each acquisition was told that it is wanted */
};

void model_open(struct model *m, const char *const *names);
void model_close(struct model *m);
/* Sessions have the keys 1 to MODEL_SESSIONS_MAX, and secrets as cell_fixture_command makes them.
 */
void model_apply(struct model *m, const struct cell_command *c);
bool model_is_blocker(const struct model *m, int waiter, int other);
bool model_is_wanted(const struct model *m, int holder);
/* In the order of the line, those that were passed over last; returns how many. */
int model_waiters(const struct model *m, int name, int ret[MODEL_MAX]);
int model_holders(const struct model *m, int name, int ret[MODEL_MAX]); /* by fence */

#endif
