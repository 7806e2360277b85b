/* What every target has.  A target is one tests/fuzz/fuzz_NAME.c with the entry point below; its
 * seeds are the files of tests/fuzz/corpus/NAME, its dictionary (if any) tests/fuzz/NAME.dict.  A
 * claim is an hf_check: aborting is how libFuzzer hears of a finding.  Inputs are at most 4 KiB
 * (tests/fuzz/run), memory and the time of one input are bounded there too. */
#ifndef HF_TESTS_FUZZ_H
#define HF_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A copy of exactly the input and a NUL, so that the address sanitizer sees one byte too many. */
static inline char *fuzz_text(const uint8_t *data, size_t size)
{
    return hf_strndup((const char *)data, size);
}

#endif
