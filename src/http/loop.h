/* A loop: one thread of the transport with its epoll, its connections and everything they use.  A
 * connection stays on the loop that it was given to, so nothing here needs a lock.  Other threads
 * reach a loop through its inbox (inbox.h).
 *
 *   turn:  wait -> events of sockets -> bytes that TLS has -> connections that came
 *               -> requests that are done -> deadlines -> answers that wait
 *               -> messages of streams
 *
 * A turn can be run without the thread, which is how tests drive connections. */
#ifndef HF_HTTP_LOOP_H
#define HF_HTTP_LOOP_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/random.h"
#include "http/block.h"
#include "http/handshakes.h"
#include "http/inbox.h"
#include "http/place.h"
#include "http/request.h"
#include "http/server.h"
#include "http/stream_hub.h"
#include "http/wheel.h"

#define LISTENERS_MAX 2
#define ARRIVING_MAX 64 /* connections beyond all places that loops have not looked at yet */
#define DATE_LEN 37     /* "Date: Sun, 06 Nov 1994 08:49:37 GMT" and its line end */

struct listener {
    int fd; /* -1: closed */
    bool streams_only;
};

struct loop {
    struct server *server;
    int epoll_fd;
    pthread_t thread;
    int64_t now_us;
    struct wheel wheel;
    struct blocks blocks;
    struct requests requests;
    struct conn *conns;  /* all of them */
    struct conn *unread; /* those that TLS has bytes for */
    struct loop_places places;
    struct handshakes handshakes;
    struct unsent_list unsent; /* answers that wait for their clients */
    int64_t date_s;
    char date[DATE_LEN + 1];

    /* accepting, on the first loop alone */
    int64_t rest_until_us; /* files have run out; 0: accepting */
    unsigned next_loop;    /* that gets a connection */

    /* streams */
    struct hub hub;
    struct stream *sending, **sending_end; /* those with something to send, in turn */
    struct stream *slow, **slow_end;       /* those whose socket was full, the first one first */
    int64_t round_us;                      /* when the last round began, and what it had to send */
    size_t round_messages, round_bytes;
    struct random random; /* see stream.h, "Reconnecting" */
    bool streams_ended;

    struct loop_inbox inbox; /* from other threads */
};

bool loop_open(struct loop *l, struct server *server, struct hf_err *err);
/* Ends all connections first. */
void loop_close(struct loop *l);
/* One turn, which waits at most `wait_us` for something to happen; negative: as long as it takes.
 */
void loop_turn(struct loop *l, int64_t wait_us);
/* Watches the server's listening sockets from now on. */
bool loop_listen(struct loop *l);
/* Takes a socket over as a new connection of this loop, on the loop's thread. */
void loop_adopt(struct loop *l, int fd, const struct sockaddr *peer, bool streams_only);

#endif
