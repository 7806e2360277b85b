/* Randomness.  The system source buffers getrandom(2) per struct, so one struct belongs to one
 * thread; the seeded source repeats itself, for tests and the simulator. */
#ifndef HF_BASE_RANDOM_H
#define HF_BASE_RANDOM_H

#include <stddef.h>
#include <stdint.h>

struct random {
    uint64_t seed; /* 0: the system's source */
    size_t used;   /* bytes of `pool` that have been handed out */
    uint8_t pool[1024];
};

void random_init_system(struct random *r);
void random_init_seeded(struct random *r, uint64_t seed);
void random_bytes(struct random *r, void *out, size_t len);
uint64_t random_u64(struct random *r);
/* Uniform in [0, bound), bound > 0. */
uint64_t random_below(struct random *r, uint64_t bound);

#endif
