/* Who has a place among the connections.
 *
 * A server has connections_max places, and an address has its share of them (quota.h); networks of
 * trusted proxies have no share, since many clients are behind them.  A newcomer for which there is
 * no place takes that of a connection that rests: one that is between requests, has sent a part of
 * one or of a handshake, or lingers after its last answer.  If the newcomer's address has its
 * share, that is the one of the same address that has rested longest.  Otherwise it is one of the
 * address that has most connections, if that has an eighth of them, and else the one of all that
 * has rested longest.  So neither idle nor slow clients keep others out, a crowd makes room
 * before others do, and nobody else makes room for one more of a crowd.  The memory of requests
 * that are being read, and of their bodies, is shared out likewise: where it is spent, a request of
 * which only a part has come makes room, one of the largest crowd first.
 *
 *   newcomer --place, or one that rests--> connection
 *            --none, and a guest's place--> guest: has a second to ask for a probe (route.h,
 *                                           while_draining); anything else is answered with 503
 *            --none of these-------------> told 503 and closed
 *
 * Each loop knows its own connections, on its thread: those that rest in the order since when, to a
 * second, and all of them by address.  A connection that comes to rest is moved at most once a
 * second, and one that is busy stays in the list until it is found there, so that requests of
 * connections in use cost a comparison each. */
#ifndef HF_HTTP_ADMISSION_H
#define HF_HTTP_ADMISSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GUESTS_MAX 32          /* of a server */
#define GUESTS_OF_AN_ADDRESS 8 /* of them, or one per loop if there are more loops */
#define GUEST_US INT64_C(1000000)
#define ADMISSION_SLOTS 1024

/* What a client is told for which there is no place. */
#define no_place_detail "There are as many connections as there may be."

struct conn;

/* What connections make room of: places, the memory of requests (block.h), that of larger bodies.
 */
enum room { ROOM_PLACE, ROOM_REQUEST, ROOM_BODIES };

/* A connection's part. */
struct place {
    struct conn *older, *newer;  /* that rest; for a guest, other guests */
    struct conn *before, *after; /* in the slot of its address */
    int64_t since_us;            /* it rests, or rested, since then; 0: it is not in the list */
    bool is_guest, is_counted;   /* counted: with its address */
};

/* A loop's part. */
struct admission {
    struct conn *oldest, *newest; /* that rest */
    struct conn *guests;
    /* By address, those that are counted.  Those that were looked at and did not rest are at the
     * end. */
    struct admission_slot {
        struct conn *first, *last;
        size_t n;
    } slots[ADMISSION_SLOTS];
};

/* Gives a newcomer, whose loop is set, a place.  This may close another connection.  Returns false
 * if there is no place. */
bool admission_enter(struct conn *c);
void admission_leave(struct conn *c);
/* The connection is idle from now on. */
void admission_rest(struct conn *c);
/* The connection waits for the rest of a request, or lingers: it rests since it was last idle. */
void admission_rest_on(struct conn *c);
/* There is no memory for what this connection has to read: cuts off another one that has sent a
 * part of a request, for ROOM_BODIES of a body.  Returns false if it finds none.  May be called
 * while events are taken. */
bool admission_make_room(const struct conn *asks, enum room room);
/* How many connections of the loop have the address of this one, as far as its slot tells; 0: it is
 * not counted. */
size_t admission_crowd(const struct conn *c);

#endif
