/* Random requests, turns, clocks and faults over one to three servers, from a seed; see
 * random_turns.c. */
#ifndef HF_TESTS_SIM_RANDOM_TURNS_H
#define HF_TESTS_SIM_RANDOM_TURNS_H

#include <stddef.h>
#include <stdint.h>

/* A claim that does not hold fails the test. */
void random_turns_run(uint64_t seed, size_t steps);
/* One world that is sold out, and many wait for places; adds to the counts of random_run.h. */
struct answers;
void random_waits_run(uint64_t seed, struct answers *answers);

#endif
