/* Bodies of answers that wait for their clients and are equal.  Many clients that read the same
 * list at the same time are sent the same bytes, so those of them that are slow share one copy: the
 * first such answer puts its body here, and an answer that finds an equal one gives its own back.
 * Only answers that have to wait pay for it, by one comparison of their bytes.
 *
 * A slot has one body at most, the one that was put there last, so that memory follows the readers:
 * a body is gone with its last one.  Thread-safe. */
#ifndef HF_HTTP_BODIES_H
#define HF_HTTP_BODIES_H

#include <stddef.h>

#include "base/lock.h"

#define BODIES_SLOTS 256
#define BODIES_LEN_MIN ((size_t)4096) /* shorter ones are not worth it */

struct request;
struct shared_body;

/* A zeroed struct is an empty table. */
struct bodies {
    struct lock lock;
    struct shared_body *slots[BODIES_SLOTS]; /* not references; NULL: none */
};

/* Makes the body of an answer that is in r->out, of BODIES_LEN_MIN bytes at least, a shared one,
 * which keeper.sent of the answer gives back. */
void bodies_share(struct bodies *b, struct request *r);

#endif
