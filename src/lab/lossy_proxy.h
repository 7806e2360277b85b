/* A TCP proxy in front of PostgreSQL that loses one answer: the one to the first COMMIT.  It cuts
 * the connection once the server has answered, and so has certainly committed, but before the
 * client hears of it.  Everything before and after passes.  The proxy runs on a thread of its
 * own. */
#ifndef HF_LAB_LOSSY_PROXY_H
#define HF_LAB_LOSSY_PROXY_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

struct lossy_proxy {
    int port; /* where it listens, on 127.0.0.1 */
    int listen_fd, stop_fd;
    char host[128], target_port[8];
    bool has_lost_answer; /* the thread's until lossy_proxy_stop */
    pthread_t thread;
};

/* `host` and `port` are what PQhost and PQport return for a connection by Unix socket: the
 * socket's directory and the number in its name. */
HF_MUST_USE bool lossy_proxy_start(struct lossy_proxy *p, const char *host, const char *port,
                                   struct hf_err *err);
/* Returns whether an answer was lost. */
bool lossy_proxy_stop(struct lossy_proxy *p);

#endif
