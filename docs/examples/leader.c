/* Leader election.  Start it on several machines with the same URL: one of them leads, the others
 * wait; when the leader resigns or dies the next one leads.  Here two candidates live in one
 * process, each on its own thread, and stop after three terms.
 *
 *   cc -pthread leader.c $(pkg-config --cflags --libs holdfast) -o leader */
#include <holdfast.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>

static struct hf_locks *locks;
static struct hf_cancel *cancel;
static int terms; /* only the leader uses it */

static void lead(struct hf_lock *lock, void *ctx)
{
    printf("%s leads, term %lld\n", (const char *)ctx, (long long)hf_lock_fence(lock));
    /* The leader works in small steps and checks before each that it still leads. */
    for (int step = 0; step < 3 && hf_lock_held(lock); step++)
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    if (++terms == 3)
        hf_cancel_trigger(cancel); /* ends both candidacies */
} /* to return is to resign */

static void *run(void *name)
{
    struct hf_fault fault;
    struct hf_lock_options options = HF_LOCK_OPTIONS(.ttl_ms = 3000);
    struct hf_election election = HF_ELECTION(.name = "leader", .lock = &options, .lead = lead,
                                              .ctx = name, .cancel = cancel);
    if (hf_elect(locks, &election, &fault) != HF_DONE)
        fprintf(stderr, "%s\n", fault.msg);
    return NULL;
}

int main(int argc, char **argv)
{
    struct hf_fault fault;
    pthread_t other;
    static char ada[] = "Ada", grace[] = "Grace";

    if (hf_open(argc > 1 ? argv[1] : "memory:", NULL, &locks, &fault) != HF_DONE) {
        fprintf(stderr, "%s\n", fault.msg);
        return 1;
    }
    if (!(cancel = hf_cancel_new()) || pthread_create(&other, NULL, run, ada) != 0)
        return 1;
    run(grace);
    pthread_join(other, NULL);
    hf_close(locks);
    hf_cancel_free(cancel);
    return terms >= 3 ? 0 : 1;
}
