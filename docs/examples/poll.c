/* A program with a poll loop of its own: the loss of the lock is one more file to watch.  Here the
 * lock is renewed for half a second at most (max_hold_ms), so that the example ends by losing it.
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
    struct hf_lock_options want = {.ttl_ms = 600, .max_hold_ms = 500, .wait_ms = HF_FOREVER};

    if (hf_open(url, NULL, &locks, &fault) != HF_DONE ||
        hf_lock(locks, "feed", &want, &lock, &fault) != HF_DONE) {
        fprintf(stderr, "%s\n", fault.msg);
        return 1;
    }
    /* The descriptor belongs to the lock: poll it, do not read or close it. */
    struct pollfd files[] = {{.fd = hf_lock_fd(lock), .events = POLLIN}};
    int steps = 0;
    for (;;) {
        int n = poll(files, 1, 50); /* other files of the program would be here too */
        if (n > 0 && files[0].revents)
            break; /* no later than the deadline: nobody else has it yet */
        /* Before each step that must not happen twice, ask: it costs a look at the clock, and is
         * right even if the whole process was stopped since the last poll. */
        if (hf_lock_held(lock))
            steps++;
    }
    printf("lost after %d steps, held: %s\n", steps, hf_lock_held(lock) ? "yes" : "no");
    hf_unlock(lock, NULL); /* frees it all the same */
    hf_close(locks);
    return steps > 0 ? 0 : 1;
}
