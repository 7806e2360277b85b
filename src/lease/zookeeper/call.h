/* One request to ZooKeeper and its answer, with a deadline.  The client library answers on a thread
 * of its own, at some time or never; a call that is not awaited any longer is freed by its answer.
 *
 *   struct zk_call *call = zk_call_new();
 *   zk_call_create(call, path, data, len, acl, ZOO_EPHEMERAL);
 *   zk_call_delete(call, other, -1);
 *   zk_call_send(call, zh);                        both of them, or none
 *   rc = zk_call_wait(call, until_us);
 *   zk_call_free(call);
 *
 * A call belongs to one thread.  Results are the client library's: ZOK, ZNONODE, ...;
 * ZOPERATIONTIMEOUT means that no answer came in time. */
#ifndef HF_LEASE_ZOOKEEPER_CALL_H
#define HF_LEASE_ZOOKEEPER_CALL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <zookeeper/zookeeper.h>

#include "base/vec.h"

/* The largest number of operations in one transaction. */
#define ZK_OPS_MAX 6
/* Of the path of a lock, and of a node below it. */
#define ZK_LOCK_SIZE 1024
#define ZK_PATH_SIZE 1200

struct zk_call {
    /* Results, once the call is done. */
    int rc;
    struct Stat stat;  /* of zk_call_read, or of the last zk_call_set */
    VEC(char *) names; /* the children */
    char *data;        /* NULL: none */
    size_t data_len;

    /* internal */
    pthread_mutex_t mutex;
    pthread_cond_t done;
    bool is_sent, is_done, is_abandoned;
    int n_ops;
    zoo_op_t ops[ZK_OPS_MAX];
    zoo_op_result_t results[ZK_OPS_MAX];
    char created[ZK_PATH_SIZE]; /* where the library writes a path that nobody reads */
};

struct zk_call *zk_call_new(void);
/* Accepts NULL, and a call whose answer has not come. */
void zk_call_free(struct zk_call *call);

/* ---- transactions: add operations, then send ---- */

/* `path` and `data` must stay until the call is sent. */
void zk_call_create(struct zk_call *call, const char *path, const char *data, size_t len,
                    const struct ACL_vector *acl, int flags);
void zk_call_set(struct zk_call *call, const char *path, const char *data, size_t len, int version);
void zk_call_delete(struct zk_call *call, const char *path, int version);
void zk_call_check(struct zk_call *call, const char *path);
/* Sends the transaction; zk_call_wait awaits it. */
void zk_call_send(struct zk_call *call, zhandle_t *zh);

/* ---- single requests ---- */

void zk_call_create_container(struct zk_call *call, zhandle_t *zh, const char *path,
                              const struct ACL_vector *acl);
void zk_call_list(struct zk_call *call, zhandle_t *zh, const char *path);
void zk_call_read(struct zk_call *call, zhandle_t *zh, const char *path);
void zk_call_stat(struct zk_call *call, zhandle_t *zh, const char *path);
/* Calls `watcher` with `ctx` once when the node is deleted.  Nothing else about the node triggers
 * it, but the events of the session do. */
void zk_call_watch(struct zk_call *call, zhandle_t *zh, const char *path, watcher_fn watcher,
                   void *ctx);

/* Waits for the answer until `until_us` of wait_now_us.  Returns call->rc. */
int zk_call_wait(struct zk_call *call, int64_t until_us);

/* Did the server answer?  If not, nothing is known about a transaction. */
static inline bool zk_is_answer(int rc)
{
    return rc == ZOK || (rc <= ZAPIERROR && rc != ZSESSIONEXPIRED && rc != ZAUTHFAILED &&
                         rc != ZCLOSING && rc != ZSESSIONMOVED);
}

#endif
