/* The clients of a simulated cell, from inside: shared by cell_clients.c (what they do with locks)
 * and cell_wire.c (how they talk with servers). */
#ifndef HF_SIM_CELL_CLIENTS_H
#define HF_SIM_CELL_CLIENTS_H

#include "lease/holdfast/client.h"
#include "sim/cell_check.h"

#define TASKS_MAX 12
#define LOCKS_MAX 2

/* What a thread of a client does: it takes one lock, or a second one while it holds the first,
 * holds them for a while and gives them back. */
enum task_step { TASK_IDLE, TASK_ASKS, TASK_WAITS, TASK_HOLDS, TASK_RELEASES, TASK_OVER };

struct task_lock {
    const char *name;
    enum hf_mode mode;
    unsigned slots;
    bool queue;
    uint8_t owner[LEASE_OWNER_SIZE];
    int64_t asked_us; /* true time */
    int64_t session;  /* in which it was granted */
    bool is_held;
};

struct task {
    struct sim_client *client;
    int no;
    enum task_step step;
    int64_t turn; /* events of earlier turns are void */
    struct task_lock locks[LOCKS_MAX];
    int n_locks, at; /* which lock it asks for, holds up to, or releases */
    int64_t give_up_us, hold_until_us;
};

/* A session that the client had, for the histories. */
struct past_session {
    int64_t key;
    int64_t end_us; /* it may be ended by the service from then on; true time */
};

/* An acquisition of a history, and the session that it was asked in. */
struct past_claim {
    linear_history *history;
    uint64_t owner;
    const char *name;
    int64_t session;
};

struct sim_client {
    struct cell_world *world;
    int no;
    char who[16];
    struct sim_clock clock;
    struct random random;
    struct client *core; /* NULL: it has crashed */
    int64_t life;
    int64_t paused_until_us;
    int server;     /* that it believes to be the master */
    int64_t due_no; /* of the event that runs client_next */
    int64_t due_us; /* when that is; 0: none */
    int64_t n_sent;
    bool caches;
    struct {
        int server; /* -1: none */
        int64_t server_life, number;
    } stream;
    struct task tasks[TASKS_MAX];
    int n_tasks;
    VEC(struct past_session) sessions;
    VEC(struct past_claim) claims;
};

static inline int64_t client_now_us(const struct sim_client *c)
{
    return clock_boot_us(&c->clock.clock);
}

/* ---- cell_wire.c ---- */
/* Sends a message of the core's; `task` is told what became of it, NULL: nobody is. */
void wire_send(struct sim_client *c, const struct client_message *m, struct task *task);
/* Looks at a name whose history is kept. */
void wire_look(struct sim_client *c, const char *name);
void wire_stream(struct sim_client *c); /* connects, if the core wants it */
void wire_close(struct cell_world *w);
/* The session may be ended by the service from now on: the client has closed it. */
void wire_note_session(struct sim_client *c);
/* Adds to the histories what happened when sessions ended. */
void wire_end_histories(struct sim_client *c);

/* ---- cell_clients.c ---- */
void task_told(struct task *t, enum client_result result);
/* Sends what the session itself wants sent. */
void client_pump(struct sim_client *c);

#endif
