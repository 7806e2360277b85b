/* A buyer whose lock is held by a process of its own, `holdfast run`, so that it can be stopped and
 * continued as a process is.  The process keeps the lock A-1 until the scene ends. */
#ifndef HF_LAB_SCENE_CLIENT_H
#define HF_LAB_SCENE_CLIENT_H

#include "lab/scene.h"

struct scene_client {
    const char *url;   /* the coordinator */
    const char *shown; /* the coordinator as the step shows it, for example "redlock://R1,R2,R3" */
    const char *to;    /* the lane that the arrow goes to */
    int ttl_s;
    int wait_s; /* 0: do not wait */
};
/* Long enough for a server or a client that stands still for a while on a busy machine. */
#define SCENE_WAIT_S 20

/* Starts the process and records the step.  Returns the fence, as text that is valid until the side
 * is closed, or NULL if the lock was not granted. */
const char *scene_client_lock(struct scene *s, const char *who, const struct scene_client *how);
/* Stop the process of `who`, and let it go on; both are recorded. */
void scene_client_stop(struct scene *s, const char *who);
void scene_client_continue(struct scene *s, const char *who);
/* Ends all processes of the scene, which release what they still hold. */
void scene_clients_close(struct scene *s);

/* ---- what such a buyer does at the ledger ---- */

/* Installs the guard share/holdfast/fence.sql in the ledger. */
void scene_client_prepare(struct scene *s);
bool scene_client_finds_it_free(struct scene *s, const char *who);
/* Sells A-1 to `who`.  If `fence` is not NULL, the ledger checks it in the same transaction. */
void scene_client_sell(struct scene *s, const char *who, const char *fence);

/* The scene of a client that sleeps through the end of its lock at the coordinator `url`: Ann finds
 * A-1 free and is stopped until her lock has expired, Bob gets the lock and buys, Ann goes on and
 * buys.  `shown` and `to` are as in struct scene_client. */
void scene_client_sleeps(struct scene *s, const char *url, const char *shown, const char *to,
                         bool with_fence);

#endif
