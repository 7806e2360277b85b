/* One, two or three servers over one simulated ledger, on one thread.  Every server is a real
 * engine without its threads: nothing happens until the test takes a turn.  The database and each
 * server have clocks of their own, which run at the same rate and show different times. */
#ifndef HF_TESTS_SIM_WORLD_H
#define HF_TESTS_SIM_WORLD_H

#include "support/fixtures.h"

#include "base/clock.h"
#include "engine/engine_internal.h"
#include "sim/ledger.h"

#define SERVERS_MAX 3
#define WAIT_TURNS 2 /* offers of waiting lists, and ends, in one batch */

struct server {
    struct clock_fake clock;
    struct metrics *metrics;
    struct engine *engine; /* NULL: stopped */
    uint64_t seed;
};

struct world {
    struct clock_fake clock; /* the database's */
    struct sim_ledger *ledger;
    struct server servers[SERVERS_MAX];
    size_t n_servers;
};

/* A request and its answer.  Fill `ask` with an ask_* of fixtures.h; call_close it afterwards. */
struct call {
    struct ask ask;
    int answers;
};
void call_close(struct call *call);

/* Starts that many servers. */
void world_open(struct world *w, uint64_t seed, size_t n_servers);
void world_close(struct world *w);
void world_pass_ms(struct world *w, int64_t ms);

void server_start(struct server *s);
/* Answers what is queued, then closes the connections.  Harmless if the server is stopped. */
void server_stop(struct server *s);
/* Creates an event, which takes over `def`, and returns its key. */
int64_t server_create_event(struct server *s, struct event_def *def);
/* The event as this server sees it; loads it first if need be. */
struct event *server_event(struct server *s, int64_t key);

/* Queues the call. */
void server_put(struct server *s, struct call *call);
/* One turn of the loader and of every worker. */
void server_turn(struct server *s);
/* Queues the call and takes turns until it is answered. */
enum verdict server_ask(struct server *s, struct call *call);
/* Has every loaded event catch up with the ledger, in one turn. */
void server_catch_up(struct server *s);

#endif
