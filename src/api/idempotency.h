/* The Idempotency-Key header: the two hashes that make it safe to store, and the lookup of a key
 * before a request is refused (the input side of I8; the rules do the rest).
 *
 * A stored key decides before the request is refused for what it lacks (a seat, an event, room
 * under a limit): a repeat gets its stored answer, and another request with the same key gets 422.
 * Only malformed requests (400 invalid_request) are refused earlier.  For a command that is
 * submitted, the batch checks the key.  A handler that refuses without submitting asks
 * key_is_unused first, which costs an exchange with the ledger only if something may be stored.
 *
 * Keys have scopes, in which each is used once:
 *
 *   callers with an access key       that access key
 *   callers of a server without any  one scope for all of them: they are all admins
 *   strangers, naming a hold         that hold: whoever has its id may act on it anyway, also from
 *                                    another network
 *   strangers otherwise              the address that the request comes from: an IPv4 address, or
 *                                    an IPv6 /64
 *
 * Strangers' keys must look random, so that nobody meets or guesses another's and gets the id of
 * another's hold. */
#ifndef HF_API_IDEMPOTENCY_H
#define HF_API_IDEMPOTENCY_H

#include "api/call.h"

/* Reads the header into command.key, once.  If the path of a stranger's request names something, it
 * is a hold.  Returns false if the call has been answered with 400. */
HF_MUST_USE bool idempotency_read(struct call *c);
/* The same for a request whose body names the hold, and also if the header has been read. */
HF_MUST_USE bool idempotency_read_for(struct call *c, struct text hold);
/* Reads the key, and checks that the body is empty or {}.  Returns false if the call has been
 * answered with 400. */
bool call_empty_body(struct call *c);
/* Fills in command.key.request.  Commands that are not submitted do not need it. */
void idempotency_hash_request(struct call *c);

/* Returns true if nothing is stored under the call's key, or it has none: the handler may refuse.
 * Otherwise the key is being looked up.  If something is stored under it, that answers the call; if
 * not, the step that asked runs again and judges the request anew. */
HF_MUST_USE bool key_is_unused(struct call *c);

#endif
