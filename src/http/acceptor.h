/* A thread that accepts connections and deals them out to the daemon's threads in turn.  Left to
 * themselves, the threads of libmicrohttpd's pool race for the listening socket, and the first to
 * wake takes all that have queued up: a burst of buyers ends on one core while the other idles. */
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

/* Takes over listen_fd (non-blocking).  False: errno says why. */
bool acceptor_start(struct acceptor *a, struct MHD_Daemon *daemon, int listen_fd);
/* No further connections; closes the socket.  Accepts a zeroed struct and a second call. */
void acceptor_stop(struct acceptor *a);

#endif
