/* A pool of three printers: a lock with three slots, where the slot says which printer is ours.
 * Nine jobs share them.  Each printer has a guard of its own: the holders of two slots have
 * different fences and both are right, while two holders of one slot come one after the other.
 *
 *   cc -pthread pool.c $(pkg-config --cflags --libs holdfast) -o pool && ./pool memory: */
#include <holdfast.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#define PRINTERS 3
#define JOBS 9

static struct printer {
    struct hf_fence_guard guard;
    atomic_int busy, pages;
} printers[PRINTERS];
static atomic_int n_refused, n_collisions;

static void print_page(struct printer *p, long long fence)
{
    if (!hf_fence_check(&p->guard, fence)) { /* a later holder of this slot has printed */
        n_refused++;
        return;
    }
    if (atomic_fetch_add(&p->busy, 1) > 0)
        n_collisions++;
    nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    p->busy--;
    p->pages++;
}

static void *job(void *arg)
{
    struct hf_locks *locks = arg;
    struct hf_lock_options want =
        HF_LOCK_OPTIONS(.slots = PRINTERS, .ttl_ms = 10000, .wait_ms = 20000, .label = "a job");
    struct hf_fault fault;
    struct hf_lock *lock;

    if (hf_lock(locks, "printers", &want, &lock, &fault) != HF_DONE) {
        fprintf(stderr, "%s\n", fault.msg);
        return NULL;
    }
    for (int page = 0; page < 2 && hf_lock_held(lock); page++)
        print_page(&printers[hf_lock_slot(lock)], hf_lock_fence(lock));
    if (hf_unlock(lock, &fault) != HF_DONE)
        fprintf(stderr, "%s\n", fault.msg);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t jobs[JOBS];
    struct hf_locks *locks;
    struct hf_fault fault;
    int pages = 0;

    if (hf_open(argc > 1 ? argv[1] : "memory:", NULL, &locks, &fault) != HF_DONE) {
        fprintf(stderr, "%s\n", fault.msg);
        return 1;
    }
    for (int i = 0; i < JOBS; i++)
        if (pthread_create(&jobs[i], NULL, job, locks) != 0)
            return 1;
    for (int i = 0; i < JOBS; i++)
        pthread_join(jobs[i], NULL);
    for (int i = 0; i < PRINTERS; i++)
        pages += printers[i].pages;
    hf_close(locks);
    printf("%d pages, %d refused, %d collisions\n", pages, n_refused, n_collisions);
    return pages == 2 * JOBS && n_refused == 0 && n_collisions == 0 ? 0 : 1;
}
