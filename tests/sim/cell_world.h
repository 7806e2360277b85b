/* A cell in simulated time, on one thread and from one seed: real nodes (cell/node.h) on a
 * simulated journal, real clients (lease/holdfast/client.h) on a simulated network, and what
 * befalls them.
 *
 *   cell_world.c    the queue of events, clocks, the trace
 *   cell_servers.c  runs the nodes, and carries their calls to the journal and back
 *   cell_net.c      carries requests to the servers and answers to the clients
 *   cell_wire.c     makes messages of clients into requests, and keeps histories
 *   cell_clients.c  what clients do
 *   cell_faults.c   what goes wrong, and when
 *   cell_check.c    watches, and says what must not have happened; cell_check_graph.c draws its
 *                   waits-for graph
 *
 * `now_us` is the true time.  Servers and clients read clocks of their own, which run up to
 * CELL_CLOCK_PPM faster or slower.  A server or client that is paused does nothing; what happens to
 * it meanwhile reaches it afterwards, in any order.  Nothing depends on addresses or on real time,
 * so the same seed gives the same run. */
#ifndef HF_SIM_CELL_WORLD_H
#define HF_SIM_CELL_WORLD_H

#include "base/clock.h"
#include "base/heap.h"
#include "base/random.h"
#include "cell/node.h"
#include "sim/sim_journal.h"

#define CELL_SERVERS_MAX 3
#define CELL_CLIENTS_MAX                                                                           \
    9 /* the last one comes when the faults are over, to see that all is well */
#define CELL_CLOCK_PPM 4900 /* two clocks differ by less than the 1 % that clients allow for */

struct cell_world;
struct cell_check;
struct sim_client;

struct sim_clock {
    struct clock clock;
    const struct cell_world *world;
    int64_t offset_us, ppm;
    int64_t wall_us; /* added to the true time */
};

/* Something that will happen.  `run` may free what it belongs to; the event itself is freed after
 * it. */
struct sim_event {
    struct heap_node due;
    void (*run)(struct cell_world *w, struct sim_event *e);
    void *on;       /* whom it concerns */
    int64_t number; /* which of its calls, turns... it concerns */
};

struct cell_server {
    struct cell_world *world;
    int no;
    char url[32], who[16];
    struct sim_clock clock;
    struct random random;
    struct node *node; /* NULL: the server is down */
    int64_t life;      /* the number of its start */
    int64_t paused_from_us, paused_until_us;
    int64_t pause_us; /* it stands still for so long when its next append has left; 0: no */
    bool retiring;
    int64_t retire_until_us;
    /* The journal call that the node waits for. */
    struct journal_call *call;
    int64_t call_no;
    int64_t wake_us; /* an event is due then; 0: none */
    int64_t wake_no;
    /* For the checks. */
    int64_t sent_us;       /* when its last append left */
    int64_t first_sent_us; /* when the same one left for the first time */
    int64_t proven_us;     /* when the last one that was stored left; -1: none */
    bool owes_append;      /* one was found: nothing may be answered before the next is stored */
    bool repeats;          /* the fate of the last append is unknown: the next one is the same */
    uint64_t last_append;  /* its hash */
    int64_t append_epoch;  /* and epoch */
    int64_t checked_index; /* whose digest was compared last */
};

/* One request on its way, at a server, or answered and on its way back. */
struct exchange {
    struct cell_world *world;
    int client; /* -1: a duplicate whose answer nobody receives */
    struct cell_server *server;
    int64_t life;   /* of the server that has it */
    int64_t number; /* which of the client's exchanges it is */
    struct cell_request request;
    struct cell_command command; /* as it was sent */
    char name[CELL_NAME_MAX + 1], label[32], agent[64];
    int64_t sent_us, received_us;
    struct letter *letter; /* the client's own */
    int64_t fences[16];    /* what a look has seen */
    size_t n_fences;
    bool is_silent;    /* its answer is lost */
    bool at_server;    /* submitted, and not answered */
    bool server_died;  /* what it answers while it is torn down reaches nobody */
    bool client_waits; /* nothing came back yet, and the client has not given up */
    int refs;
};

/* How bad it is in this run; chances are in 1/1000. */
struct cell_weather {
    int servers, clients;
    int64_t timeout_ms, ttl_ms, end_us; /* faults and new work end at end_us */
    int64_t journal_us, network_us;     /* usual delays, one way */
    int lost, doubled, slow;            /* requests and answers */
    int journal_lost, journal_late, journal_slow;
    int64_t journal_timeout_ms, client_timeout_ms;
    int64_t snapshot_entries;
    size_t queue_max;
    uint32_t delay_ms;
    int64_t hold_ms;     /* locks are held for at most so long */
    bool crowded;        /* everybody wants the same few names */
    int64_t patience_us; /* within this time after end_us everything is as it should be */
    int waits, shared, cached, looks, pairs; /* what clients like */
};

struct cell_world {
    uint64_t seed;
    struct random random;
    int64_t now_us;
    struct heap events;
    struct cell_weather weather;
    struct sim_journal *journal;
    int64_t journal_stands_until_us; /* nothing takes effect before */
    struct cell_server servers[CELL_SERVERS_MAX];
    struct sim_client *clients[CELL_CLIENTS_MAX];
    int64_t cut_until_us[CELL_CLIENTS_MAX][CELL_SERVERS_MAX]; /* the network between them */
    bool cut_refuses[CELL_CLIENTS_MAX][CELL_SERVERS_MAX];     /* not silently */
    VEC(struct exchange *) exchanges;                         /* that are at a server */
    struct cell_check *check;
    /* Whose call takes effect in the journal now, and in which of its lives it was sent. */
    struct cell_server *running;
    int64_t running_life;
    bool done; /* everything that was to be seen has been */
    bool trace, outside_only;
    uint64_t n_events;
    char failure[512]; /* "": none */
};

/* Runs one seed.  Returns false if a check failed; w->failure says which.  cell_world_close frees.
 */
bool cell_world_run(struct cell_world *w, uint64_t seed, bool trace, bool outside_only);
void cell_world_close(struct cell_world *w);
/* The lines of the trace, oldest first; only of a run with `trace`. */
void cell_world_print_trace(void);

/* ---- cell_world.c ---- */
struct sim_event *sim_at(struct cell_world *w, int64_t at_us,
                         void (*run)(struct cell_world *w, struct sim_event *e), void *on,
                         int64_t number);
void sim_clock_init(struct cell_world *w, struct sim_clock *c);
/* The true time at which the clock's boot_us is `boot_us`, rounded up. */
int64_t sim_clock_true_us(const struct sim_clock *c, int64_t boot_us);
int64_t sim_between(struct cell_world *w, int64_t from, int64_t to); /* both included */
bool sim_chance(struct cell_world *w, int in_1000);
/* A delay that is usually about `usual_us`, and sometimes several times as long. */
int64_t sim_delay(struct cell_world *w, int64_t usual_us, int slow_in_1000);
__attribute__((format(printf, 2, 3))) void sim_fail(struct cell_world *w, const char *fmt, ...);
__attribute__((format(printf, 3, 4))) void sim_trace_line(const struct cell_world *w,
                                                          const char *who, const char *fmt, ...);
#define sim_trace(w, ...) ((w)->trace ? sim_trace_line((w), __VA_ARGS__) : (void)0)

/* ---- cell_servers.c ---- */
void server_start(struct cell_server *s);
void server_crash(struct cell_server *s);
void server_retire(struct cell_server *s); /* resigns, stops, and is down then */
void server_pause(struct cell_server *s, int64_t until_us);
/* Lets the node do what it wants to do now. */
void server_turn(struct cell_server *s);
struct cell_server *server_leader(struct cell_world *w); /* one that believes it; NULL: none */
void servers_close(struct cell_world *w);

/* ---- cell_net.c ---- */
/* A new exchange, to be filled in and sent.  Texts of the request point into it. */
struct exchange *net_new(struct cell_world *w, int client, int server);
void net_send(struct exchange *x, int64_t timeout_us);
/* The request is delivered once more, and what is answered to it reaches nobody. */
void net_double(struct exchange *x);
void net_server_died(struct cell_server *s); /* before node_stop */
void net_close(struct cell_world *w);

/* ---- cell_clients.c and cell_wire.c ---- */
void clients_open(struct cell_world *w);
void clients_close(struct cell_world *w);
/* The answer has arrived, or none will be waited for any longer (request.verdict is CELL_UNKNOWN).
 */
void client_received(struct cell_world *w, struct exchange *x, bool answered);
void client_pause(struct cell_world *w, int client, int64_t until_us);
void client_crash(struct cell_world *w, int client);
/* What the client holds now, it does not give back before. */
void clients_hold_on(struct cell_world *w, int client, int64_t until_us);
int64_t client_paused_until_us(const struct cell_world *w, int client);
/* An entry was applied by a server: its streams tell. */
void clients_effect(struct cell_server *s, const struct cell_effect *e);
void clients_role_changed(struct cell_server *s); /* its streams end */
void clients_end_histories(struct cell_world *w);
void wire_free_letter(struct exchange *x);
const char *cell_sim_name(const char *name); /* the literal that is equal; "": none */

/* ---- cell_faults.c ---- */
void faults_draw(struct cell_world *w); /* fills in the weather */
void faults_open(struct cell_world *w);

#endif
