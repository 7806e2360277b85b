/* The cancel handle of holdfast.h: a flag for calls that look at it, and a file descriptor that
 * wakes calls that sleep.  Any thread. */
#ifndef HF_LOCK_CANCEL_H
#define HF_LOCK_CANCEL_H

#include <stdint.h>

#include "holdfast.h"

/* The file descriptor, readable from the trigger on and never read; -1 if `cancel` is NULL. */
int cancel_fd(const struct hf_cancel *cancel);
/* Sleeps for `us` or until the trigger.  `cancel` may be NULL. */
void cancel_sleep_us(const struct hf_cancel *cancel, int64_t us);

#endif
