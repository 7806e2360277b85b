/* The handshakes of TLS that are under way in a loop, on its thread.
 *
 * Memory: OpenSSL takes 46 KB for one that has begun, and up to 200 KB for a client that sends a
 * hello of 128 KB, so there are no more than HANDSHAKES_MAX after a turn.  Beyond that one is
 * closed whose client has sent nothing that is still to be read; those that go on are over soon and
 * may be more.  It is one of the address that has most connections, and of these the oldest: a
 * crowd of halves, however fast it comes back, leaves the others the time that their networks take.
 *
 * Time: a step may take a millisecond or two, so a turn has HANDSHAKE_STEPS of them, and requests
 * on open connections have their turn in between. */
#ifndef HF_HTTP_HANDSHAKES_H
#define HF_HTTP_HANDSHAKES_H

#include <stdbool.h>

#define HANDSHAKES_MAX 256
#define HANDSHAKE_STEPS 8

struct conn;

/* A loop's part. */
struct handshakes {
    struct conn *oldest, *newest;
    unsigned n;
    unsigned steps; /* in this turn */
    int looks;      /* that are left in this turn, for connections that do not go on */
};

/* A connection's part. */
struct handshake {
    struct conn *older, *newer;
    bool is_listed;
};

/* The connection has a session now. */
void handshakes_enter(struct conn *c);
/* The handshake is done, or the connection ends; may be called for any connection. */
void handshakes_leave(struct conn *c);
/* Takes a step, if this turn has another one.  Otherwise the next turn has it: epoll reports the
 * connection again. */
bool handshakes_step(struct handshakes *h);
/* Gives the turn that begins its steps and its looks. */
void handshakes_begin_turn(struct handshakes *h);
/* At the end of a turn's events, which may be about any connection: one that is to be closed, since
 * there are too many and it does not go on; NULL: there is none.  Call it again after each. */
struct conn *handshakes_excess(struct handshakes *h);

#endif
