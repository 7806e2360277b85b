/* One of many leads.  Start it on several machines with the same URL: one leads, the others wait;
 * when the leader steps down or dies the next one leads.  Here two candidates live in one process,
 * each as a thread, and three terms are enough.
 *
 *   cc -pthread leader.c $(pkg-config --cflags --libs holdfast) -o leader */
#include <holdfast.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>

static struct hf_locks *locks;
static volatile bool stop;
static int terms; /* only the leader touches it */

static void lead(struct hf_lock *lock, void *ctx)
{
    printf("%s leads, term %lld\n", (const char *)ctx, (long long)hf_lock_fence(lock));
    /* The leader's work: as long as the lock is held, in small steps. */
    for (int step = 0; step < 3 && hf_lock_held(lock); step++)
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    if (++terms == 3)
        __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
} /* returning gives the lead up */

static void *run(void *name)
{
    struct hf_fault fault;
    struct hf_election election = {
        .name = "leader", .lock = {.ttl_ms = 3000}, .lead = lead, .ctx = name, .stop = &stop};
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
    if (pthread_create(&other, NULL, run, ada) != 0)
        return 1;
    run(grace);
    pthread_join(other, NULL);
    hf_close(locks);
    return terms >= 3 ? 0 : 1;
}
