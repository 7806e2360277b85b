/* Throwaway coordinators for the lab, one of each kind that there is a lock driver for, and the
 * ways to break them.  Servers listen on 127.0.0.1 and keep their data in a directory of the lab's
 * servers (servers.h), as the same user; holdfastd runs as the user of this process.  PostgreSQL,
 * etcd, ZooKeeper and holdfastd flush before they answer, as they do by default; Redis is made to
 * write an append-only file, which it flushes every second.
 *
 * Every node can be reached in two ways: directly, and through a relay (relay.h) that counts and
 * can be cut.  A thread that starts or restarts a node must live until coordinator_close; the
 * functions of one coordinator are for one thread at a time. */
#ifndef HF_LAB_COORDINATORS_H
#define HF_LAB_COORDINATORS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/status.h"
#include "lab/relay.h"
#include "lab/servers.h"

#define COORDINATOR_NODES_MAX 3
#define COORDINATOR_DIR_SIZE 96
#define COORDINATOR_WHY_SIZE 128

enum coordinator_kind {
    COORDINATOR_MEMORY,
    COORDINATOR_SQLITE,
    COORDINATOR_POSTGRES,
    COORDINATOR_REDIS,
    COORDINATOR_REDLOCK, /* three Redis servers */
    COORDINATOR_ETCD,
    COORDINATOR_ZOOKEEPER,
    COORDINATOR_HOLDFAST, /* holdfastd, with a journal of SQLite */
    COORDINATOR_KINDS
};

/* "redis"; the name of the lock driver. */
const char *coordinator_name(enum coordinator_kind kind);
/* Returns whether a kind's servers are installed; `ret_why` says what is missing. */
bool coordinator_is_installed(enum coordinator_kind kind, char ret_why[COORDINATOR_WHY_SIZE]);
/* Returns whether the clock of a kind's servers can be stepped here; `ret_why` says why not. */
bool coordinator_has_steps(enum coordinator_kind kind, char ret_why[COORDINATOR_WHY_SIZE]);

struct coordinator_node {
    int port;                       /* of the server itself */
    pid_t pid;                      /* 0: it is not running */
    char dir[COORDINATOR_DIR_SIZE]; /* its data, its log and the file with its clock's offset */
    struct relay *relay;
};

struct coordinator {
    enum coordinator_kind kind;
    bool has_steps; /* the nodes run with a clock that can be stepped, which makes them slower */
    char version[64];
    char url[SERVER_URL_SIZE]; /* for hf_open */
    char
        relayed_url[SERVER_URL_SIZE]; /* the same through the relays; "" for a kind without nodes */
    size_t n_nodes;                   /* 0 for memory and SQLite */
    struct coordinator_node nodes[COORDINATOR_NODES_MAX];
    char dir[COORDINATOR_DIR_SIZE];
};

/* Starts all nodes and relays, and returns when every node answers: 0.1 s for Redis, 1 to 3 s for
 * PostgreSQL and ZooKeeper.  With `has_steps` their clock can be stepped.  The caller calls
 * coordinator_close also after a failure. */
HF_MUST_USE bool coordinator_open(struct coordinator *c, const struct servers *home,
                                  enum coordinator_kind kind, bool has_steps, struct hf_err *err);
/* Stops the nodes and removes their data.  Accepts a zeroed struct. */
void coordinator_close(struct coordinator *c);

/* ---- breaking a node; `node` is from 0 to n_nodes - 1 ---- */

/* kill -9, of the server and of its children. */
void coordinator_kill(struct coordinator *c, size_t node);
/* Starts a node that was killed, on the same port, with its data or without any, and returns when
 * it answers. */
HF_MUST_USE bool coordinator_restart(struct coordinator *c, size_t node, bool is_empty,
                                     struct hf_err *err);
/* Sets a node's clock to the machine's plus `seconds`, which may be negative.  Only if has_steps.
 */
HF_MUST_USE bool coordinator_step_clock(struct coordinator *c, size_t node, int64_t seconds,
                                        struct hf_err *err);
/* What the relays of all nodes do. */
void coordinator_set_relays(struct coordinator *c, enum relay_mode mode);
/* The sum of all relays. */
struct relay_count coordinator_count(const struct coordinator *c);
/* SQLite: removes the file with everything in it while clients have it open. */
void coordinator_remove_file(struct coordinator *c);

#endif
