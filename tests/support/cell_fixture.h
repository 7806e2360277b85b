/* For unit tests of the lock service's state: commands are written in short, take the way
 * through an entry's bytes as in a cell, and are applied.  After every command the invariants are
 * checked, and the state is replaced by one restored from its own snapshot, so that everything that
 * a test sees survives that, too. */
#ifndef HF_TESTS_SUPPORT_CELL_FIXTURE_H
#define HF_TESTS_SUPPORT_CELL_FIXTURE_H

#include "cell/entry.h"
#include "cell/state.h"

struct cell_fixture {
    struct cell_state *state;
    struct cell_verdict verdict; /* of the last command */
    struct buf effects;          /* of the last command: "granted a 1, queued b 2, ..." */
    bool keeps_state;            /* the state is not replaced, and not checked: for loads */
    /* Called, if it is set, after each command while its effects are there. */
    void (*on_applied)(struct cell_fixture *d, void *context);
    void *context;
};
void cell_fixture_open(struct cell_fixture *d);
void cell_fixture_close(struct cell_fixture *d);

/* Applies any command. */
const struct cell_verdict *cell_fixture_apply(struct cell_fixture *d, const struct cell_command *c);

/* The commands of clients.  Session `n` has the key n, the label "s<n>" and a secret of its own. */
struct cell_ask {
    int64_t session;
    const char *owner, *name, *agent, *value,
        *label; /* the owner is "1" unless it says otherwise */
    enum cell_mode mode;
    uint32_t slots, delay_ms;
    int32_t priority;
    bool no_queue, cached;
    bool is_old; /* as older versions stored it: see finds_knots in cell/command.h */
    int64_t fence;
};
struct cell_command cell_fixture_command(enum cell_kind kind, const struct cell_ask *ask);
#define cell_fixture_ask(d, kind, ...)                                                             \
    cell_fixture_apply((d), &(struct cell_command[]){                                              \
                                cell_fixture_command((kind), &(struct cell_ask){__VA_ARGS__})}[0])

/* Who holds and who awaits a name: "s1:7 s2:9 | s3 s4", holders with their fences, delayed ones as
 * "-", waiters that were passed over in brackets.  Valid until the next call. */
const char *cell_fixture_line(const struct cell_fixture *d, const char *name);

#endif
