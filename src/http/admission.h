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
 *            --none of these-------------> told 503 and closed */
#ifndef HF_HTTP_ADMISSION_H
#define HF_HTTP_ADMISSION_H

#include <stdbool.h>

#define GUESTS_MAX 32          /* of a server */
#define GUESTS_OF_AN_ADDRESS 8 /* of them, or one per loop if there are more loops */

/* What a client is told for which there is no place. */
#define no_place_detail "There are as many connections as there may be."

struct conn;

/* What connections make room of: places, the memory of requests (block.h), that of larger bodies.
 */
enum room { ROOM_PLACE, ROOM_REQUEST, ROOM_BODIES };

/* Gives a newcomer, whose loop is set, a place.  This may close another connection.  Returns false
 * if there is no place. */
bool admission_enter(struct conn *c);
/* There is no memory for what this connection has to read: cuts off another one that has sent a
 * part of a request, for ROOM_BODIES of a body.  Returns false if it finds none.  May be called
 * while events are taken. */
bool admission_make_room(const struct conn *asks, enum room room);

#endif
