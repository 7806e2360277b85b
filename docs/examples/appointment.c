/* Appointment slots: a patient chooses a time, and nobody else is offered it while the form is
 * being filled in.  The lock does not wait: a time that is taken is answered at once with the next
 * one.  max_hold_ms frees the time of a patient who walks away.
 *
 * A lease is the right thing for the minutes of the form.  The appointment itself belongs into the
 * database, with a unique key; here that is a table in memory.
 *
 *   cc -pthread appointment.c $(pkg-config --cflags --libs holdfast) -o appointment */
#include <holdfast.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#define PATIENTS 6
static const char *const times[] = {"dr-lee/09:00", "dr-lee/09:20", "dr-lee/09:40",
                                    "dr-lee/10:00", "dr-lee/10:20", "dr-lee/10:40"};
#define TIMES (sizeof times / sizeof *times)
static struct hf_locks *locks;
static struct hf_fence_guard guards[TIMES]; /* beside what they protect */
static atomic_int booked[TIMES];

/* Books a time if the lock on it is held and no later holder has written. */
static int book(size_t i, struct hf_lock *lock)
{
    if (!hf_lock_held(lock) || !hf_fence_check(&guards[i], hf_lock_fence(lock)))
        return 0;
    return atomic_fetch_add(&booked[i], 1) == 0;
}

static void *patient(void *arg)
{
    int *got = arg;
    struct hf_lock_options want =
        HF_LOCK_OPTIONS(.ttl_ms = 10000, .max_hold_ms = 300000, .label = "the form");

    for (size_t i = 0; i < TIMES && !*got; i++) {
        struct hf_fault fault;
        struct hf_lock *lock;
        if (atomic_load(&booked[i]))
            continue;
        enum hf_result result = hf_lock(locks, times[i], &want, &lock, &fault);
        if (result == HF_TAKEN)
            continue; /* another patient fills in the form: the next time */
        if (result != HF_DONE) {
            fprintf(stderr, "%s\n", fault.msg);
            return NULL;
        }
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL); /* fills in the form */
        *got = !atomic_load(&booked[i]) && book(i, lock);
        if (hf_unlock(lock, &fault) == HF_LOST)
            fprintf(stderr, "%s: the form took too long\n", times[i]);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[PATIENTS];
    int got[PATIENTS] = {0}, n = 0, twice = 0;
    struct hf_fault fault;

    if (hf_open(argc > 1 ? argv[1] : "memory:", NULL, &locks, &fault) != HF_DONE) {
        fprintf(stderr, "%s\n", fault.msg);
        return 1;
    }
    for (int i = 0; i < PATIENTS; i++)
        if (pthread_create(&threads[i], NULL, patient, &got[i]) != 0)
            return 1;
    for (int i = 0; i < PATIENTS; i++) {
        pthread_join(threads[i], NULL);
        n += got[i];
    }
    for (size_t i = 0; i < TIMES; i++)
        twice += booked[i] > 1;
    hf_close(locks);
    printf("%d of %d patients have an appointment, %d times are booked twice\n", n, PATIENTS,
           twice);
    return n == PATIENTS && twice == 0 ? 0 : 1;
}
