/* Files and directories that nobody else may touch: access keys, settings with passwords, the
 * server's directory.  What another user could have put there, or may change, is refused with a
 * sentence that says how to repair it, as PostgreSQL refuses its directory; nothing is repaired
 * silently.
 *
 * Root is trusted everywhere, since it can do all of this anyway.  Messages name the path and never
 * quote contents. */
#ifndef HF_BASE_PRIVATE_FILE_H
#define HF_BASE_PRIVATE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "base/status.h"

/* Reads the whole file into `text`, which has room for `size` bytes, and sets *ret_len.  Refuses a
 * file that is larger, that is not a regular file, that belongs neither to us nor to root, or that
 * users other than its owner may use; a file of root may also be readable by its group, as the
 * files below /etc of a service are.  A symbolic link is followed, since secrets are often mounted
 * that way, and its target is checked. */
HF_MUST_USE bool private_file_read(const char *path, char *text, size_t size, size_t *ret_len,
                                   struct hf_err *err);

/* Puts a file that only its owner may use in the place of `path`, as a whole or not at all.  A
 * symbolic link at `path` is replaced, not followed. */
HF_MUST_USE bool private_file_write(const char *path, const char *text, size_t len,
                                    struct hf_err *err);

/* Opens a file of ours that keeps its contents, for reading and writing; creates it if it is
 * missing.  Returns -1 for anything that private_file_fault has a word for. */
HF_MUST_USE int private_file_open(const char *path, uid_t owner, struct hf_err *err);

/* What is wrong with a file that we keep, as lstat(2) has it, and what to do; NULL: nothing.  It is
 * a regular file with one name, it belongs to us or to `owner`, others may not use it, and its
 * group may at most read it. */
const char *private_file_fault(const struct stat *st, uid_t owner);

/* Creates the directory, and the ones above it, if they are missing, with mode 0700.  Refuses one
 * that is not ours, that others may use, that its group may write to, or that others may replace
 * since they may write to a directory above it that is not sticky. */
HF_MUST_USE bool private_dir_make(const char *path, struct hf_err *err);

#endif
