/* Reading small files that hold secrets: access keys, settings with passwords. */
#ifndef HF_BASE_PRIVATE_FILE_H
#define HF_BASE_PRIVATE_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

/* Reads the whole file into `text`, which has room for `size` bytes, and sets *ret_len.  Refuses a
 * file that is larger, that is not a regular file, or that users other than its owner may use; a
 * file of root may also be readable by its group, as the files below /etc of a service are.  The
 * message names the path and never quotes the contents. */
HF_MUST_USE bool private_file_read(const char *path, char *text, size_t size, size_t *ret_len,
                                   struct hf_err *err);

#endif
