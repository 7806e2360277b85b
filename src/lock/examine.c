/* Examining a back end: what its settings mean for the locks on it.  Runs on the caller's thread;
 * the driver does the asking. */
#include "lock/locks.h"
#include "lock/options.h"

enum hf_result hf_examine(struct hf_locks *locks,
                          void (*each)(void *ctx, const struct hf_finding *finding), void *ctx,
                          struct hf_fault *fault)
{
    struct lease *handle = NULL;
    enum hf_result r;
    if (!each)
        return fault_set(fault, HF_BAD_REQUEST, "hf_examine needs a function to call");
    if ((r = options_check_process(locks, fault)) != HF_DONE ||
        (r = pool_take(&locks->pool, &handle, fault)) != HF_DONE)
        return r;
    r = lease_examine(handle, each, ctx, fault);
    pool_give(&locks->pool, handle, false);
    return r;
}
