/* Structs of holdfast.h that begin with `size_t size`, so that they can grow: programs that were
 * compiled with an older or a newer header than the library's own.  Pure functions.
 *
 * Rule for maintainers: a new member goes last and leaves no padding at the end of the struct.
 * Then the size alone says which members a program knows, and the end of an older struct never
 * lies inside a member. */
#ifndef HF_LOCK_SIZED_H
#define HF_LOCK_SIZED_H

#include "base/fault.h"

/* No struct of any version is larger: a larger size was not set by an initialiser macro. */
#define SIZED_MAX 4096

/* A struct type that can grow. */
struct sized_type {
    const char *name;
    size_t min;   /* its size in version 0.1.0: no program has a smaller one */
    size_t known; /* its size in this library */
};

extern const struct sized_type sized_options, sized_lock_options, sized_grant, sized_lock_state,
    sized_election, sized_stats;

/* Returns HF_DONE if the caller's struct has a size that some version can have given it.  Returns
 * HF_BAD_REQUEST, with the type's name in the fault, if it has not or if `sized` is NULL. */
HF_MUST_USE enum hf_result sized_check(const struct sized_type *type, const void *sized,
                                       struct hf_fault *fault);
/* Copies the caller's struct `from` to `ret`, which has type->known bytes.  Members beyond the end
 * of a smaller struct become zero.  Returns HF_BAD_REQUEST if sized_check refuses `from`, or if it
 * is larger and a byte beyond type->known is not zero. */
HF_MUST_USE enum hf_result sized_read(const struct sized_type *type, const void *from, void *ret,
                                      struct hf_fault *fault);
/* Fills the caller's struct `to`, which sized_check has accepted, from `from`, which has
 * type->known bytes.  Keeps the size of `to` and writes nothing beyond type->known: the program's
 * initialiser macro has set the members that this library does not know to zero. */
void sized_write(const struct sized_type *type, void *to, const void *from);

#endif
