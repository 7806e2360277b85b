/* Filling the public struct hf_fault, for whatever stands below the library's calls.  No state. */
#ifndef HF_BASE_FAULT_H
#define HF_BASE_FAULT_H

#include "holdfast.h"

/* Fills `fault` (may be NULL) and returns `result`, so that callers can `return fault_set(...)`. */
__attribute__((format(printf, 3, 4))) enum hf_result
fault_set(struct hf_fault *fault, enum hf_result result, const char *fmt, ...);

#endif
