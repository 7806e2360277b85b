/* Sizes of memory as people write them on a command line or in a setting: 512KB, 256MB, 1GB; a bare
 * number is bytes.  A KB is 1024 bytes, and so on.  Pure functions. */
#ifndef HF_SETUP_SIZE_H
#define HF_SETUP_SIZE_H

#include <stdint.h>

#define SIZE_TEXT_MAX (INT64_C(1) << 50)

/* In bytes; -1 if the text is no size; more than SIZE_TEXT_MAX if it is too large. */
int64_t size_parse(const char *text);

#endif
