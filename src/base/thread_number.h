/* The number of the calling thread, from 1 on.  What pthread_self returns passes to a new thread
 * once a thread has ended; this does not. */
#ifndef HF_BASE_THREAD_NUMBER_H
#define HF_BASE_THREAD_NUMBER_H

#include <stdint.h>

uint64_t thread_number(void);

#endif
