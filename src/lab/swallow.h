/* A TCP proxy in front of PostgreSQL that loses one answer: the one to the first COMMIT.  Once the
 * server has given it, and so has certainly committed, the connection is cut and nobody was told.
 * Everything before and after passes.  A thread of its own. */
#ifndef HF_LAB_SWALLOW_H
#define HF_LAB_SWALLOW_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

struct swallow {
    int port; /* on 127.0.0.1 */
    int listen_fd, stop_fd;
    char host[128], target_port[8];
    bool swallowed; /* the thread's, until swallow_stop */
    pthread_t thread;
};

/* In front of the socket of this directory and port, which are what PQhost and PQport say. */
HF_MUST_USE bool swallow_start(struct swallow *p, const char *host, const char *port,
                               struct hf_err *err);
/* Says whether an answer was lost. */
bool swallow_stop(struct swallow *p);

#endif
