/* Sets of locks: see set.c. */
#ifndef HF_LOCK_SET_H
#define HF_LOCK_SET_H

#include "lock/locks.h"

/* Frees the sets of a struct hf_locks that is being closed; their locks have been released. */
void sets_free(struct hf_locks *locks);

#endif
