/* The sandbox's SQLite file: everything the bank knows, read once at start and written in one
 * transaction per batch.  Belongs to the bank's thread after store_open. */
#ifndef HF_SANDBOX_STORE_H
#define HF_SANDBOX_STORE_H

#include "base/clock.h"
#include "sandbox/answers.h"
#include "sandbox/bank.h"

struct store;

/* Opens the file, or makes it, and loads what it has into the bank and the answers, both empty. */
HF_MUST_USE enum hf_status store_open(const char *path, const struct clock *clock, struct bank *b,
                                      struct answers *answers, struct store **ret,
                                      struct hf_err *err);
void store_close(struct store *s); /* accepts NULL */

/* What a batch changes besides bank.changed. */
struct store_batch {
    VEC(struct stored_answer *) stored;    /* new answers; borrowed */
    VEC(struct stored_answer *) forgotten; /* to be deleted; borrowed */
};
/* Writes all of it durably, or nothing. */
HF_MUST_USE enum hf_status store_commit(struct store *s, const struct bank *b,
                                        const struct store_batch *batch, struct hf_err *err);

#endif
