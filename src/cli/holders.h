/* The holders of a lock that a command did not get: other processes, or a wrapper around the
 * command itself.  Main thread. */
#ifndef HF_CLI_HOLDERS_H
#define HF_CLI_HOLDERS_H

#include "holdfast.h"

#define HOLDERS_NAME_MAX 255

/* A lock that a `holdfast run` or `elect` around this process holds, and one that waits for it. */
struct holders_own {
    const char *name;                 /* that was asked for */
    char outer[HOLDERS_NAME_MAX + 1]; /* the same name, or one above or below it */
};
/* Is there a name among these for which a wait could not end, because a wrapper around this process
 * holds it, or one above or below it where names are a hierarchy?  Costs nothing unless a wrapper
 * holds such a lock, and then one exchange for each; if that fails, the answer is false. */
bool holders_find_own(struct hf_locks *locks, const char *url, const char *const *names, size_t n,
                      const struct hf_lock_options *want, struct holders_own *ret);
/* Writes to stderr that a wrapper around this process holds the lock. */
void holders_say_own(const char *command, const struct holders_own *own);
/* Writes to stderr which of the names is held, by whom and for how long. */
void holders_say_taken(const char *command, struct hf_locks *locks, const char *const *names,
                       size_t n);

#endif
