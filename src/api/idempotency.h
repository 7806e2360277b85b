/* The Idempotency-Key header and the two hashes that make it safe to store (keeps I8's input
 * side; the engine does the rest). */
#ifndef HF_API_IDEMPOTENCY_H
#define HF_API_IDEMPOTENCY_H

#include "http/request.h"

/* Reads the header into command.has_key and key_hash.  False: answered with 400. */
HF_MUST_USE bool idempotency_read(struct request *r);
/* Fills command.request_hash; only needed by what is really submitted. */
void idempotency_hash_request(struct request *r);

#endif
