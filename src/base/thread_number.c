/* See thread_number.h.  Any thread. */
#include "base/thread_number.h"

#include <stdatomic.h>

uint64_t thread_number(void)
{
    static _Atomic uint64_t n_threads;
    static _Thread_local uint64_t own;
    if (!own)
        own = 1 + atomic_fetch_add_explicit(&n_threads, 1, memory_order_relaxed);
    return own;
}
