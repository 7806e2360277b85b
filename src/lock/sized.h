/* Structs of holdfast.h that begin with `size_t size`, so that they can grow: programs that were
 * compiled with an older or a newer header than the library's own.  Pure functions. */
#ifndef HF_LOCK_SIZED_H
#define HF_LOCK_SIZED_H

#include "base/fault.h"

/* No struct of any version is larger; a larger size is that of a struct nobody initialised. */
#define SIZED_MAX 65536

/* Copies the caller's struct `from` to `ret`, whose type has `known` bytes.  Members beyond the end
 * of a smaller struct become zero.  HF_BAD_REQUEST, with `name` in the fault: `from` has no size,
 * or is larger and has a byte that is not zero beyond `known`. */
HF_MUST_USE enum hf_result sized_read(const char *name, const void *from, void *ret, size_t known,
                                      struct hf_fault *fault);
/* HF_DONE if the caller's struct `to` has a size and can be filled. */
HF_MUST_USE enum hf_result sized_check(const char *name, const void *to, struct hf_fault *fault);
/* Fills as much of the caller's struct `to` as it has room for and sets the rest of it to zero; its
 * size stays.  sized_check has accepted it. */
void sized_write(void *to, const void *from, size_t known);

#endif
