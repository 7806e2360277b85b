/* How long to wait before the next try: a pause that doubles with each failure, up to a limit.  The
 * caller counts its failures and forgets them with the next success; pauses have the caller's unit.
 * Pure: no thread owns it, and it costs a shift. */
#ifndef HF_BASE_BACKOFF_H
#define HF_BASE_BACKOFF_H

#include <stdint.h>

/* The pause after a failure that `n` others came before. */
static inline int64_t backoff_pause(int64_t first, int64_t max, unsigned n)
{
    return n < 63 && first <= max >> n ? first << n : max;
}

#endif
