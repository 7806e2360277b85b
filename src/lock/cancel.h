/* The cancel handle of holdfast.h: a flag for those who look at it, and a file descriptor for those
 * who sleep.  Any thread. */
#ifndef HF_LOCK_CANCEL_H
#define HF_LOCK_CANCEL_H

#include <stdint.h>

#include "holdfast.h"

/* The file descriptor, readable from the trigger on and never read; -1 if `cancel` is NULL. */
int cancel_fd(const struct hf_cancel *cancel);
/* Sleeps for `us` or until the trigger.  `cancel` may be NULL. */
void cancel_sleep_us(const struct hf_cancel *cancel, int64_t us);
/* False if `cancel` is NULL. */
bool cancel_is_triggered(const struct hf_cancel *cancel);

#endif
