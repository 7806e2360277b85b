/* What must not happen in a simulated cell, whatever goes wrong.  The checks of the first kind look
 * from outside, as users could; those of the second look into the journal and at the servers.  With
 * `outside_only` only the first are made, which shows what they find by themselves.
 *
 * From outside:
 *   I15        No two clients believe at once, within their deadlines, that they hold locks that
 *              exclude each other.
 *   fences     A grant that was asked for after another of the name was answered has a larger
 *              fence.
 *   order      The histories of the names "try..." are linearizable (linearize.h).
 *   progress   Once the faults are over, every lock can be had within the time that is promised.
 *
 * From inside:
 *   kept       What a client believes to hold, it holds in the state after the journal's last
 *              entry.
 *   N1..N5     As node.h has them, as far as a neighbour can see.
 *   replicas   Servers that have applied the same entries have the same digest; entries form a
 *              chain; the state's own invariants hold (cell_state_check).
 *   deadlocks  A request is refused for a cycle if and only if a graph that is drawn here has one.
 */
#ifndef HF_SIM_CELL_CHECK_H
#define HF_SIM_CELL_CHECK_H

#include "sim/cell_world.h"
#include "sim/linearize.h"

/* A lock that a client believes to hold. */
struct belief {
    int client;
    int64_t session;
    struct cell_owner owner;
    const char *name;
    enum cell_mode mode;
    uint32_t slots;
    int64_t fence;
};
/* All of them at this moment (cell_clients.c). */
size_t clients_beliefs(const struct cell_world *w, struct belief *ret, size_t max);
#define BELIEFS_MAX 256

/* What a run has seen, to know what the seeds try. */
struct cell_counts {
    uint64_t events, entries, epochs, grants, waits, deadlocks, expired, withdrawn, restored,
        resigned;
    uint64_t found, repeated, two_leaders, cached, linear_ops, linear_given_up, digests;
};
extern struct cell_counts cell_counts;

void check_open(struct cell_world *w);
void check_end(struct cell_world *w);
void check_close(struct cell_world *w);

/* Prints who holds and awaits what, as the journal has it. */
void check_print(const struct cell_world *w);

void check_server_started(struct cell_server *s);
void check_call_sent(struct cell_world *w, struct cell_server *s, const struct journal_call *call);
void check_call_done(struct cell_world *w, struct cell_server *s, const struct journal_call *call);
/* After every step of a node. */
void check_server(struct cell_world *w, struct cell_server *s);
/* A server answers. */
void check_answered(struct cell_world *w, const struct exchange *x);
/* A client has a grant: it asked at asked_us for the first time. */
void check_granted(struct cell_world *w, const struct belief *b, int64_t asked_us);

/* The history of a root name whose locks are only tried; NULL: the name is of another kind. */
linear_history *check_history(struct cell_world *w, const char *name);

/* cell_check_graph.c: would waiting close a cycle?  `c` is an acquisition that the state does not
 * know yet.  `any_slot`: a waiter for one of several slots waits for each of their holders. */
bool check_graph_has_cycle(const struct cell_state *s, const struct cell_command *c, bool any_slot);

#endif
