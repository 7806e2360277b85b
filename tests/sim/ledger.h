/* A shared SQL ledger in memory, for tests that take the workers' turns themselves.  It implements
 * ledger/ledger.h, so a test that links it gets batch_memory.c alone of src/ledger.  Servers open
 * the URL "sim:NAME"; all their connections share the tables of the sim_ledger of that name.
 *
 * What it keeps of a database:
 *   - A transaction's writes are staged: other connections see them once it commits.
 *   - Clock rows are locked in ascending order until the transaction ends.  Everything runs on one
 *     thread, so a call that would have to wait for a lock fails with HF_CONFLICT.
 *   - Every write has the condition of its statement in ledger/statements.h.  If a row does not
 *     meet it, ledger_write fails with HF_SURPRISE and err->msg is the table's name.
 *   - Writing rows of an event whose clock row is not locked by the transaction ends the test.
 *   - A transaction that began with ledger_batch_assume runs as a whole when it commits.
 *   - Time is the wall clock of the `clock` it was made with, and never before a locked clock row.
 *
 * Not simulated: notifications between servers (see follower.h) and the advisory lock. */
#ifndef HF_TESTS_SIM_LEDGER_H
#define HF_TESTS_SIM_LEDGER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"

struct sim_ledger;

/* `name` is a short literal.  `has_others` is what ledger_has_others answers. */
struct sim_ledger *sim_ledger_new(const char *name, const struct clock *clock, bool has_others);
/* Every connection must have been closed.  Accepts NULL. */
void sim_ledger_free(struct sim_ledger *sim);

/* The calls that can be made to fail. */
enum sim_call {
    SIM_BEGIN,
    SIM_BATCH_READ, /* ledger_batch_read */
    SIM_WRITE,
    SIM_COMMIT,
    SIM_RESOLVE,
    SIM_READ, /* reads and chores outside of batches, and ledger_lock */
    SIM_PROBE,
    SIM_CALLS
};

enum sim_fault {
    SIM_UNAVAILABLE,   /* the call fails with HF_STORE_UNAVAILABLE and has no effect */
    SIM_CONFLICT,      /* the call fails with HF_CONFLICT and has no effect */
    SIM_LOST_STORED,   /* SIM_COMMIT: stored, but the answer is HF_OUTCOME_UNKNOWN */
    SIM_LOST_UNSTORED, /* SIM_COMMIT: not stored, and the answer is HF_OUTCOME_UNKNOWN */
    SIM_STUCK /* this call and all later ones of the connection fail with HF_STORE_UNAVAILABLE;
                 its transaction stays open until the connection is closed */
};

/* The n-th call of this kind from now on (1: the next), on any connection, fails.  Replaces an
 * earlier fault of the same kind of call. */
void sim_ledger_fail(struct sim_ledger *sim, enum sim_call call, int n, enum sim_fault fault);
/* Takes back every fault that has not happened yet. */
void sim_ledger_heal(struct sim_ledger *sim);

/* Calls `hook` at the beginning of every call that can fail; NULL: none.  The hook may take another
 * server's turn, which then happens in the middle of the caller's transaction.  It is not called
 * again while it runs. */
void sim_ledger_hook(struct sim_ledger *sim, void (*hook)(void *ctx, enum sim_call call),
                     void *ctx);

#endif
