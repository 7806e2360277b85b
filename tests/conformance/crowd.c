/* Claims about many waiters on one name, through the library as programs use it. */
#include "conformance.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "lock/locks.h"

#ifdef __SANITIZE_THREAD__
#define CROWD 200 /* the sanitizer has no room for more threads */
#else
#define CROWD 1000
#endif
#define CROWD_MS 300000
#define STACK_SIZE (256 * 1024)

struct crowd {
    struct hf_locks *locks;
    char key[64];
    int count; /* guarded by the lock alone */
    atomic_int failed;
};

static void *crowd_run(void *arg)
{
    struct crowd *c = arg;
    struct hf_lock_options want = HF_LOCK_OPTIONS(.ttl_ms = LONG_MS, .wait_ms = CROWD_MS);
    struct hf_lock *lock = NULL;
    struct hf_fault fault = {0};
    enum hf_result result = hf_lock(c->locks, c->key, &want, &lock, &fault);
    if (result == HF_DONE) {
        c->count++;
        result = hf_unlock(lock, &fault);
    }
    if (result != HF_DONE && atomic_fetch_add(&c->failed, 1) == 0)
        print_error("result %d: %s\n", (int)result, fault.msg);
    return NULL;
}

static void a_thousand_waiters_are_all_served(void **state)
{
    struct world *w = *state;
    struct crowd c = {0};
    struct hf_fault fault = {0};
    const struct hf_options options = HF_OPTIONS(.timeout_ms = 30000);
    pthread_t threads[CROWD];
    pthread_attr_t attr;
    key_make(c.key, "crowd");
    must(locks_open(w->driver, w->backend->url, &options, &c.locks, &fault), &fault);
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_SIZE);
    int64_t from_ms = now_ms();
    for (int i = 0; i < CROWD; i++)
        assert_int_equal(pthread_create(&threads[i], &attr, crowd_run, &c), 0);
    for (int i = 0; i < CROWD; i++)
        pthread_join(threads[i], NULL);
    print_message("%d waiters: %d ms\n", CROWD, (int)(now_ms() - from_ms));
    assert_int_equal(atomic_load(&c.failed), 0);
    assert_int_equal(c.count, CROWD);
    pthread_attr_destroy(&attr);
    hf_close(c.locks);
}

const struct CMUnitTest crowd_claims[] = {
    cmocka_unit_test(a_thousand_waiters_are_all_served),
    {0},
};
