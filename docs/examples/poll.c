/* A program with its own poll loop: the lock is one more file descriptor to watch.  The library
 * renews the lock for at most half a second here (max_hold_ms), so that the example ends by losing
 * it.
 *
 *   cc poll.c $(pkg-config --cflags --libs holdfast) -o poll && ./poll memory: */
#include <holdfast.h>
#include <poll.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    const char *url = argc > 1 ? argv[1] : "memory:";
    struct hf_locks *locks;
    struct hf_lock *lock;
    struct hf_fault fault;
    struct hf_lock_options want =
        HF_LOCK_OPTIONS(.ttl_ms = 600, .max_hold_ms = 500, .wait_ms = HF_FOREVER);

    if (hf_open(url, NULL, &locks, &fault) != HF_DONE ||
        hf_lock(locks, "feed", &want, &lock, &fault) != HF_DONE) {
        fprintf(stderr, "%s\n", fault.msg);
        return 1;
    }
    /* The descriptor belongs to the lock: poll it, but do not read or close it. */
    struct pollfd files[] = {{.fd = hf_lock_fd(lock), .events = POLLIN}};
    int steps = 0;
    for (;;) {
        int n = poll(files, 1, 50); /* a real program polls its other files here, too */
        if (n > 0 && files[0].revents)
            break; /* no later than the deadline: the lock has no other holder yet */
        /* Check before each step that must not happen twice.  It costs a look at the clock, and is
         * right even if the process was stopped since the last poll. */
        if (hf_lock_held(lock))
            steps++;
    }
    printf("lost after %d steps, held: %s\n", steps, hf_lock_held(lock) ? "yes" : "no");
    /* Frees the lock in any case.  HF_LOST or HF_DONE: the lease may have lasted until now. */
    enum hf_result end = hf_unlock(lock, &fault);
    hf_close(locks);
    return end == HF_LOST || end == HF_DONE ? 0 : 1;
}
