/* One lock around one job, as for a cron job that runs on two machines: the second one to ask does
 * nothing.
 *
 *   cc lock.c $(pkg-config --cflags --libs holdfast) -o lock && ./lock sqlite:/var/lib/jobs.db */
#include <holdfast.h>
#include <stdio.h>

static void work(int64_t fence)
{
    /* Pass the fence to the target of every write, which refuses smaller ones. */
    printf("working, fence %lld\n", (long long)fence);
}

int main(int argc, char **argv)
{
    const char *url = argc > 1 ? argv[1] : "memory:";
    struct hf_locks *locks;
    struct hf_lock *lock;
    struct hf_fault fault;
    struct hf_lock_options want =
        HF_LOCK_OPTIONS(.ttl_ms = 30000, .wait_ms = 2000, .label = "nightly on host a");

    if (hf_open(url, NULL, &locks, &fault) != HF_DONE) {
        fprintf(stderr, "%s\n", fault.msg);
        return 1;
    }
    int status = 0;
    switch (hf_lock(locks, "nightly-report", &want, &lock, &fault)) {
    case HF_DONE:
        work(hf_lock_fence(lock));
        /* HF_LOST: the lock ran out or was broken during the work.  The fence has protected the
         * data; a log entry tells somebody. */
        if (hf_unlock(lock, &fault) == HF_LOST)
            fprintf(stderr, "lost during the work: %s\n", fault.msg);
        break;
    case HF_TAKEN: /* a verdict, not an error */
        printf("another machine does it\n");
        break;
    case HF_UNKNOWN: /* it may have been granted; asking again is safe, and so is giving up */
    default:
        fprintf(stderr, "%s: %s\n", hf_result_text(fault.result), fault.msg);
        status = 1;
    }
    hf_close(locks);
    return status;
}
