/* Claims about the library as programs use it: many waiters on one name, and values. */
#include "conformance.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lock/locks.h"

/* More than sleep in the queue at once: the others poll.  src/lock decides that, the same for every
 * driver, so it is enough in the suite of memory:.  A server looks at all who wait for every one that
 * is served.  HF_CROWD is another number; `make soak` takes 1000. */
#define CROWD_IN_MEMORY 160
#define CROWD 48
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

static void many_waiters_are_all_served(void **state)
{
    struct world *w = *state;
    struct crowd c = {0};
    struct hf_fault fault = {0};
    const struct hf_options options = HF_OPTIONS(.timeout_ms = 30000);
    const char *given = getenv("HF_CROWD");
    const int n = given                                  ? (int)strtol(given, NULL, 10)
                  : strcmp(w->info->name, "memory") == 0 ? CROWD_IN_MEMORY
                                                         : CROWD;
    pthread_t *threads = hf_alloc((size_t)n * sizeof *threads);
    pthread_attr_t attr;
    key_make(c.key, "crowd");
    must(locks_open(w->driver, w->backend->url, &options, &c.locks, &fault), &fault);
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_SIZE);
    int64_t from_ms = now_ms();
    for (int i = 0; i < n; i++)
        assert_int_equal(pthread_create(&threads[i], &attr, crowd_run, &c), 0);
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    print_message("%d waiters: %d ms\n", n, (int)(now_ms() - from_ms));
    assert_int_equal(atomic_load(&c.failed), 0);
    assert_int_equal(c.count, n);
    free(threads);
    pthread_attr_destroy(&attr);
    hf_close(c.locks);
}

static void a_value_lasts_as_long_as_the_lock(void **state)
{
    struct world *w = *state;
    const struct hf_options options = HF_OPTIONS(.timeout_ms = 10000);
    const struct hf_lock_options want = HF_LOCK_OPTIONS(.value = "10.0.0.1:80 \"é\"");
    struct hf_lock_state found = HF_LOCK_STATE_INIT;
    struct hf_locks *locks;
    struct hf_lock *lock;
    struct hf_fault fault = {0};
    char key[64];
    key_make(key, "value");
    must(locks_open(w->driver, w->backend->url, &options, &locks, &fault), &fault);
    enum hf_result result = hf_lock(locks, key, &want, &lock, &fault);
    if (w->info->traits & HF_TRAIT_VALUES) {
        must(result, &fault);
        must(hf_inspect(locks, key, &found, &fault), &fault);
        assert_string_equal(found.value, want.value);
        hf_lock_state_close(&found);
        must(hf_unlock(lock, &fault), &fault);
        must(hf_inspect(locks, key, &found, &fault), &fault);
        assert_null(found.value);
        hf_lock_state_close(&found);
    } else {
        assert_fault(result, HF_UNSUPPORTED, &fault);
    }
    hf_close(locks);
}

const struct claim crowd_claims[] = {
    CLAIM(many_waiters_are_all_served, 0),
    CLAIM(a_value_lasts_as_long_as_the_lock, 0),
    {0},
};
