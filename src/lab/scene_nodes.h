/* The Redis servers of a scene's coordinator, each an actor, asked by hand; and the Redlock of the
 * article, in plain commands, as the unprotected twin of our driver. */
#ifndef HF_LAB_SCENE_NODES_H
#define HF_LAB_SCENE_NODES_H

#include "lab/scene.h"

#define SCENE_NO_ANSWER "no answer"

/* The number of the server that is the actor `node`. */
size_t scene_node_index(const struct scene *s, const char *node);
/* As scene_redis, but on this server.  Returns SCENE_NO_ANSWER if it cannot be reached. */
__attribute__((format(printf, 4, 5))) const char *
scene_node(struct scene *s, const char *who, const char *node, const char *fmt, ...);
/* Asks as the judge, without recording it.  Returns the number that is the answer, or -1 if there
 * is none. */
__attribute__((format(printf, 3, 4))) long long scene_node_ask(struct scene *s, const char *node,
                                                               const char *fmt, ...);

/* ---- Redlock ---- */

/* Takes the lock of A-1 on a majority of the three servers.  The server `cut_off`, which may be
 * NULL, cannot be reached by `who`.  Returns whether it has the lock; if not, it has released what
 * it got. */
bool scene_redlock_lock(struct scene *s, const char *who, const char *cut_off, int ttl_ms);
/* Waits until no server has the lock any more. */
void scene_redlock_await_expiry(struct scene *s, const char *who);
/* Writes the URL of our driver for the three servers.  The client cannot reach the server
 * `cut_off`, which may be NULL. */
void scene_redlock_url(struct scene *s, const char *cut_off, char ret[SERVER_URL_SIZE]);
/* Vouches, as the operator of new servers does, that no client believes in a lock on them, so that
 * our driver uses them at once. */
void scene_redlock_vouch(struct scene *s);

/* The scene of a Redlock server that forgets: Ann, who cannot reach R3, has the lock on R1 and R2;
 * break_r2 makes R2 forget it; Bob then asks for the lock, and waits for wait_s if our driver does
 * not grant it.  Both buy if they believe that they may. */
void scene_redlock_forgets(struct scene *s, bool is_protected, void (*break_r2)(struct scene *s),
                           int wait_s);

#endif
