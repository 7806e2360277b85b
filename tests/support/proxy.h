/* A TCP proxy on a thread: passes everything, or swallows the answers, or cuts the connection once
 * the answer has come, so that the request was certainly carried out and nobody was told.
 * SWALLOW_ONCE is a black hole for the connection that is answered next, then PASS. */
#ifndef HF_TESTS_SUPPORT_PROXY_H
#define HF_TESTS_SUPPORT_PROXY_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

enum proxy_mode { PROXY_PASS, PROXY_SWALLOW, PROXY_CUT, PROXY_SWALLOW_ONCE };

#define PROXY_PAIRS_MAX 16
struct proxy {
    int port, listen_fd, target_port;
    _Atomic int mode; /* enum proxy_mode */
    atomic_bool stop;
    atomic_int cuts; /* answers that were kept from the client */
    /* Only answers to requests with this word in them are kept; NULL: all.  Where a call takes more
     * than one exchange, the last one counts. */
    const char *_Atomic word;
    pthread_t thread;
    struct {
        int client, server;
        bool deaf;     /* of SWALLOW_ONCE */
        bool has_word; /* the last request */
    } pairs[PROXY_PAIRS_MAX];
    int n_pairs; /* the thread's */
};

void proxy_start(struct proxy *p, int target_port);
void proxy_stop(struct proxy *p);

#endif
