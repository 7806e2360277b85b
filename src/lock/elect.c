/* Leader election: a lock that is waited for, held while the leader leads, and waited for again.
 * The caller's thread.  One leader at a time as far as a lease can promise it: a leader that was
 * stopped learns of its end from hf_lock_held, and its writes need the fence. */
#include "lock/internal.h"

#include <time.h>

#define UNKNOWN_MAX 8 /* answers in a row that did not come: then it is a failure */

enum hf_result hf_elect(struct hf_locks *locks, const struct hf_election *election,
                        struct hf_fault *fault)
{
    struct hf_lock_options options = election->lock, checked;
    enum hf_result r;
    options.wait_ms = HF_FOREVER;
    options.retries = 0;
    if (!election->lead)
        return fault_set(fault, HF_BAD_REQUEST, "an election without a call for the leader");
    if ((r = check_name(locks, election->name, fault)) != HF_DONE ||
        (r = check_options(locks, &options, &checked, fault)) != HF_DONE)
        return r;
    for (int unknown = 0; !election->stop || !__atomic_load_n(election->stop, __ATOMIC_RELAXED);) {
        struct budget budget;
        struct hf_lock *lock = NULL;
        budget_begin(&budget, locks, &checked);
        budget.stop = election->stop;
        r = lock_acquire(locks, election->name, &checked, &budget, &lock, fault);
        if (r == HF_DONE) {
            unknown = 0;
            election->lead(lock, election->ctx);
            (void)hf_unlock(lock, NULL);
        } else if (r == HF_UNKNOWN && unknown++ < UNKNOWN_MAX) {
            nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
        } else if (r != HF_TAKEN) { /* taken: only when told to stop */
            return r;
        }
    }
    return HF_DONE;
}
