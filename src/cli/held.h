/* The locks that a command runs under: one or several, always taken as a set (hf_lock_many).  The
 * set counts as held while each of its locks is, and its deadline is the earliest of theirs.
 * Main thread. */
#ifndef HF_CLI_HELD_H
#define HF_CLI_HELD_H

#include <poll.h>

#include "base/buf.h"
#include "holdfast.h"

#define HELD_MAX 64 /* the most locks of a set */

int64_t held_deadline_ms(const struct hf_lock_set *set);
bool held_all(const struct hf_lock_set *set);
/* The name of the lock that is lost or, if none is, of the one with the earliest deadline. */
const char *held_weakest(const struct hf_lock_set *set);
/* Fills `ret`, which has room for HELD_MAX, with files that become readable when one of the locks
 * is being lost.  Returns their number. */
size_t held_files(const struct hf_lock_set *set, struct pollfd *ret);
/* Appends the names as people read them, "a, b, c", with a NUL at the end. */
void held_put_names(struct buf *b, const char *const *names, size_t n);

/* The environment of a command: that of this process, with our variables added or replaced.  It
 * and its strings are one allocation, for free().  `slots` is the number that was asked for. */
char **held_environment(const struct hf_lock_set *set, unsigned slots);

#endif
