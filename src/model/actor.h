/* Who made a change, as the log says it: a kind, and for some kinds a name behind a colon.
 *
 *   key:NAME             a caller with the access key of that name
 *   address:192.0.2.7    a caller without a key, where there are keys; the whole address
 *   address:erased       such a caller, who has been erased since
 *   open                 any caller of a server without keys
 *   provider:stripe      the payment provider: a webhook, or its answer to a call
 *   timer                time: a hold ran out
 *   server               the server itself: it cancels the bookings of a cancelled event, closes
 *                        the events of a restored backup, or makes the event of the demo
 *
 * The same text is stored and shown.  Pure functions. */
#ifndef HF_MODEL_ACTOR_H
#define HF_MODEL_ACTOR_H

#include <stdbool.h>
#include <stddef.h>

#define ACTOR_OPEN "open"
#define ACTOR_TIMER "timer"
#define ACTOR_SERVER "server"
#define ACTOR_KEY "key:"
#define ACTOR_ADDRESS "address:"
#define ACTOR_ADDRESS_ERASED ACTOR_ADDRESS "erased"
#define ACTOR_PROVIDER "provider:"

/* Room for the longest actor, a whole IPv6 address, and for the NUL behind it. */
#define ACTOR_SIZE 56

/* Is the text an actor of one of these kinds? */
bool actor_is_valid(const char *text, size_t len);
/* Is the actor a caller of a certain address? */
bool actor_is_address(const char *text);
/* Are both the same, or both NULL? */
bool actor_equal(const char *a, const char *b);

#endif
