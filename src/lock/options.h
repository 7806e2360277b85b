/* Names and options of a call, checked before anything is sent, so that a mistake is reported in
 * the same words whatever the back end and never halfway through.  What depends only on the driver
 * is checked by lease_check.  No state; any thread. */
#ifndef HF_LOCK_OPTIONS_H
#define HF_LOCK_OPTIONS_H

#include "lock/locks.h"

/* Returns HF_BAD_REQUEST in a child of the process that opened it: the child has neither the
 * threads nor connections of its own, and would repeat the parent's owners. */
HF_MUST_USE enum hf_result options_check_process(const struct hf_locks *locks,
                                                 struct hf_fault *fault);
HF_MUST_USE enum hf_result options_check_name(const struct hf_locks *locks, const char *name,
                                              struct hf_fault *fault);
/* Fills *ret from `options` (NULL: all zero), with the defaults in place of zeros. */
HF_MUST_USE enum hf_result options_check(const struct hf_locks *locks,
                                         const struct hf_lock_options *options,
                                         struct hf_lock_options *ret, struct hf_fault *fault);

#endif
