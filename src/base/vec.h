/* A growable array of any type: `VEC(struct seat_write) seats;`.  vec_push returns the new, zeroed
 * element; emptying keeps the memory, so a batch stops allocating once it has been large. */
#ifndef HF_BASE_VEC_H
#define HF_BASE_VEC_H

#include <stdlib.h>
#include <string.h>

#include "base/status.h"

#define VEC(type)                                                                                  \
    struct {                                                                                       \
        type *v;                                                                                   \
        size_t n, cap;                                                                             \
    }

#define vec_push(vec)                                                                              \
    ((vec)->n < (vec)->cap ? (void)0                                                               \
                           : (void)((vec)->v = vec_grow((vec)->v, &(vec)->cap, sizeof *(vec)->v)), \
     memset(&(vec)->v[(vec)->n], 0, sizeof *(vec)->v), &(vec)->v[(vec)->n++])

#define vec_clear(vec) ((vec)->n = 0)
#define vec_close(vec) (free((vec)->v), (vec)->v = NULL, (vec)->n = (vec)->cap = 0)

static inline void *vec_grow(void *data, size_t *cap, size_t size)
{
    *cap = *cap ? *cap * 2 : 16;
    return hf_realloc(data, *cap * size);
}

#endif
