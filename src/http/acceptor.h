/* A thread that accepts connections and deals them out to the daemon's threads in turn.  Without
 * it, the threads of libmicrohttpd's pool race for the listening socket and the first to wake takes
 * every connection in the queue: one core would serve a burst of clients while the others idle. */
#ifndef HF_HTTP_ACCEPTOR_H
#define HF_HTTP_ACCEPTOR_H

#include <microhttpd.h>
#include <pthread.h>
#include <stdbool.h>

struct acceptor {
    struct MHD_Daemon *daemon;
    int listen_fd, stop_fd;
    pthread_t thread;
    bool running;
};

/* Takes over listen_fd, which is non-blocking.  Returns false with errno if it fails. */
bool acceptor_start(struct acceptor *a, struct MHD_Daemon *daemon, int listen_fd);
/* Accepts no further connections and closes the socket.  Accepts a zeroed struct, and may be called
 * twice.
 */
void acceptor_stop(struct acceptor *a);

#endif
