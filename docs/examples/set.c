/* Two locks at once.  A set is taken in the order of its names, whatever order they are given in,
 * so a transfer from a to b and one from b to a never deadlock.  If one of the two cannot be had,
 * neither is taken.
 *
 *   cc set.c $(pkg-config --cflags --libs holdfast) -o set && ./set memory: */
#include <holdfast.h>
#include <stdio.h>

static int transfer(struct hf_locks *locks, const char *from, const char *to)
{
    const char *names[] = {from, to};
    struct hf_lock_set *set;
    struct hf_fault fault;
    struct hf_lock_options want =
        HF_LOCK_OPTIONS(.ttl_ms = 10000, .wait_ms = 1000); /* one wait for both locks */

    if (hf_lock_many(locks, names, 2, &want, &set, &fault) != HF_DONE) {
        fprintf(stderr, "%s to %s: %s\n", from, to, fault.msg);
        return 1;
    }
    for (size_t i = 0; i < 2; i++) { /* each lock has its own fence */
        struct hf_lock *lock = hf_lock_set_at(set, i);
        printf("%s, fence %lld\n", hf_lock_name(lock), (long long)hf_lock_fence(lock));
    }
    return hf_unlock_many(set, NULL) == HF_DONE ? 0 : 1;
}

int main(int argc, char **argv)
{
    struct hf_locks *locks;
    struct hf_fault fault;

    if (hf_open(argc > 1 ? argv[1] : "memory:", NULL, &locks, &fault) != HF_DONE) {
        fprintf(stderr, "%s\n", fault.msg);
        return 1;
    }
    int failed =
        transfer(locks, "account/1", "account/2") | transfer(locks, "account/2", "account/1");
    /* A name that is given twice is an error. */
    if (transfer(locks, "account/1", "account/1") == 0)
        failed = 1;
    hf_close(locks);
    return failed;
}
