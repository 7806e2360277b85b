/* Shared by all fuzz targets.  A target is one tests/fuzz/fuzz_NAME.c with the entry point below;
 * its seeds are the files of tests/fuzz/corpus/NAME, and its dictionary, if it has one, is
 * tests/fuzz/NAME.dict.  A claim is an hf_check, since libFuzzer takes an abort for a finding.
 * tests/fuzz/run bounds the inputs (4 KiB), their memory and their time. */
#ifndef HF_TESTS_FUZZ_H
#define HF_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A copy of exactly the input and a NUL, so that the address sanitizer notices reads beyond it. */
static inline char *fuzz_text(const uint8_t *data, size_t size)
{
    return hf_strndup((const char *)data, size);
}

#endif
