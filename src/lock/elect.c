/* Leader election: a lock that a candidate waits for, holds while it leads, and waits for again.
 * Runs on the caller's thread.  There is one leader at a time as far as a lease can promise that: a
 * leader that was stopped learns of its end from hf_lock_held, and its writes need the fence. */
#include "lock/acquire.h"
#include "lock/cancel.h"
#include "lock/options.h"
#include "lock/sized.h"

/* After this many lost answers in a row the election fails. */
#define LOST_ANSWERS_MAX 8
#define LOST_ANSWER_PAUSE_US 100000

static enum hf_result read_election(const struct hf_locks *locks,
                                    const struct hf_election *election, struct hf_election *ret,
                                    struct hf_lock_options *ret_options, struct hf_fault *fault)
{
    struct hf_lock_options options = HF_LOCK_OPTIONS_INIT;
    enum hf_result r;
    if ((r = sized_read(&sized_election, election, ret, fault)) != HF_DONE ||
        (ret->lock && (r = sized_read(&sized_lock_options, ret->lock, &options, fault)) != HF_DONE))
        return r;
    if (!ret->lead)
        return fault_set(fault, HF_BAD_REQUEST, "an election without a call for the leader");
    options.wait_ms = HF_FOREVER;
    options.retries = 0;
    options.cancel = ret->cancel;
    if ((r = options_check_name(locks, ret->name, fault)) != HF_DONE)
        return r;
    return options_check(locks, &options, ret_options, fault);
}

enum hf_result hf_elect(struct hf_locks *locks, const struct hf_election *election,
                        struct hf_fault *fault)
{
    struct hf_election checked;
    struct hf_lock_options options;
    enum hf_result r = read_election(locks, election, &checked, &options, fault);
    if (r != HF_DONE)
        return r;
    for (int n_lost_answers = 0; !hf_cancel_is_triggered(checked.cancel);) {
        struct wait_limit limit;
        struct hf_lock *lock = NULL;
        wait_limit_init(&limit, &options);
        r = lock_acquire(locks, checked.name, &options, &limit, &lock, fault);
        if (r == HF_DONE) {
            n_lost_answers = 0;
            checked.lead(lock, checked.ctx);
            (void)!hf_unlock(lock, NULL);
        } else if (r == HF_UNKNOWN && n_lost_answers++ < LOST_ANSWERS_MAX) {
            cancel_sleep_us(checked.cancel, LOST_ANSWER_PAUSE_US);
        } else if (r != HF_TAKEN) { /* HF_TAKEN: cancelled */
            return r;
        }
    }
    return HF_DONE;
}
