/* A semaphore: a lock with three slots.  Six threads ask for it; they could as well be processes on
 * six machines.  All of them must give the same number of slots.
 *
 *   cc -pthread semaphore.c $(pkg-config --cflags --libs holdfast) -o semaphore */
#include <holdfast.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

static atomic_int inside, most, done;

static void *use_licence(void *arg)
{
    struct hf_locks *locks = arg; /* shared by all threads */
    struct hf_lock *lock;
    struct hf_fault fault;
    struct hf_lock_options want = HF_LOCK_OPTIONS(.slots = 3, .wait_ms = 10000);

    if (hf_lock(locks, "licences", &want, &lock, &fault) != HF_DONE) {
        fprintf(stderr, "%s\n", fault.msg);
        return NULL;
    }
    int now = atomic_fetch_add(&inside, 1) + 1;
    for (int seen = atomic_load(&most);
         now > seen && !atomic_compare_exchange_weak(&most, &seen, now);)
        ;
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    atomic_fetch_sub(&inside, 1);
    atomic_fetch_add(&done, 1);
    if (hf_unlock(lock, &fault) != HF_DONE)
        fprintf(stderr, "%s\n", fault.msg);
    return NULL;
}

int main(int argc, char **argv)
{
    const char *url = argc > 1 ? argv[1] : "memory:";
    struct hf_locks *locks;
    struct hf_fault fault;
    pthread_t threads[6];

    if (hf_open(url, NULL, &locks, &fault) != HF_DONE) {
        fprintf(stderr, "%s\n", fault.msg);
        return 1;
    }
    for (int i = 0; i < 6; i++)
        if (pthread_create(&threads[i], NULL, use_licence, locks) != 0)
            return 1;
    for (int i = 0; i < 6; i++)
        pthread_join(threads[i], NULL);
    hf_close(locks);
    printf("%d were served, at most %d at once\n", done, most);
    return done == 6 && most <= 3 ? 0 : 1;
}
