/* Waiting in simulated time: stands in for base/wait.c where everything runs on one thread.  A
 * sleep takes no real time; it only moves the clocks. */
#ifndef HF_TESTS_SIM_WAIT_H
#define HF_TESTS_SIM_WAIT_H

#include <stdint.h>

/* Calls `slept` for every sleep, so that the test can move its clocks; NULL: none. */
void sim_wait_on_sleep(void (*slept)(void *ctx, int64_t us), void *ctx);

#endif
