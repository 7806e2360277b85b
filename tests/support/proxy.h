/* A TCP proxy on a thread of its own.  PASS forwards everything.  SWALLOW drops the answers.  CUT
 * closes the connection when the answer arrives: the request was carried out, but the client does
 * not learn it.  SWALLOW_ONCE makes a black hole of the connection that is answered next, then
 * becomes PASS.  HOLD keeps requests back until the mode changes; then the server gets them, even
 * if the client has closed its connection by then, and its answer to such a request counts as
 * withheld. */
#ifndef HF_TESTS_SUPPORT_PROXY_H
#define HF_TESTS_SUPPORT_PROXY_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

enum proxy_mode { PROXY_PASS, PROXY_SWALLOW, PROXY_CUT, PROXY_SWALLOW_ONCE, PROXY_HOLD };

#define PROXY_PAIRS_MAX 16
struct proxy {
    int port, listen_fd;
    /* Where new connections go; connections that exist stay where they are. */
    _Atomic int target_port;
    _Atomic int mode; /* enum proxy_mode */
    atomic_bool stop;
    atomic_int cuts; /* number of answers that were withheld from clients */
    /* If not NULL, only answers to requests that contain this word, or one of several that are
     * separated by '|', are withheld.  If a call takes more than one exchange, the last one counts.
     */
    const char *_Atomic word;
    /* For a protocol whose clients send a request before the last one was answered, each with its
     * length in the first four bytes: requests are passed on one at a time, so it is certain which
     * of them an answer belongs to. */
    atomic_bool in_turn;
    pthread_t thread;
    struct {
        int client, server;
        bool deaf;        /* made a black hole by SWALLOW_ONCE */
        bool has_word;    /* whether the last request contained the word */
        bool awaits;      /* a request was passed on, and no answer has come since */
        bool was_held;    /* by HOLD, at some time */
        bool client_gone; /* the client of a pair that was held has closed it */
    } pairs[PROXY_PAIRS_MAX];
    int n_pairs; /* owned by the thread */
};

void proxy_start(struct proxy *p, int target_port);
void proxy_stop(struct proxy *p);

#endif
