/* The holders of a lock that a command did not get: other processes, or a wrapper around the
 * command itself.  Main thread. */
#ifndef HF_CLI_HOLDERS_H
#define HF_CLI_HOLDERS_H

#include "holdfast.h"

/* The name among these that a `holdfast run` or `elect` around this process holds in a way that a
 * wait for it could not end; NULL: there is none.  Costs nothing unless such a wrapper holds a lock
 * of one of the names, and then one exchange; if that fails, the answer is NULL. */
const char *holders_find_own(struct hf_locks *locks, const char *const *names, size_t n,
                             const struct hf_lock_options *want);
/* Writes to stderr that `name` is held by a wrapper around this process. */
void holders_say_own(const char *command, const char *name);
/* Writes to stderr which of the names is held, by whom and for how long. */
void holders_say_taken(const char *command, struct hf_locks *locks, const char *const *names,
                       size_t n);

#endif
