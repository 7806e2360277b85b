/* Claims about the public header as such: structs of other versions, the version itself, calls that
 * accept NULL, and cancel handles. */
#include "support/fixtures.h"

#include "support/lock.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static struct hf_locks *open_memory(void)
{
    struct hf_locks *locks = NULL;
    assert_int_equal(hf_open("memory:", NULL, &locks, NULL), HF_DONE);
    return locks;
}

/* ---- structs that can grow ---- */

/* The options of a program that was compiled with a header that has one member more. */
struct new_options {
    struct hf_lock_options known;
    int64_t something_new;
};

static void a_newer_larger_struct_is_accepted_if_its_tail_is_zero(void **state)
{
    (void)state;
    struct hf_locks *locks = open_memory();
    struct hf_lock *lock;
    struct hf_fault fault;
    struct new_options program = {.known = HF_LOCK_OPTIONS(.ttl_ms = 5000)};
    program.known.size = sizeof program;
    assert_int_equal(hf_lock(locks, "x", &program.known, &lock, &fault), HF_DONE);
    assert_int_equal(hf_unlock(lock, NULL), HF_DONE);
    program.something_new = 1;
    assert_int_equal(hf_lock(locks, "x", &program.known, &lock, &fault), HF_BAD_REQUEST);
    assert_non_null(strstr(fault.msg, "hf_lock_options"));
    assert_non_null(strstr(fault.msg, HF_VERSION_TEXT));
    assert_int_equal(holders_of(locks, "x"), 0);
    hf_close(locks);
}

static void a_struct_without_a_size_is_refused_by_name(void **state)
{
    (void)state;
    struct hf_locks *locks = open_memory(), *none = NULL;
    struct hf_lock *lock;
    struct hf_fault fault;
    struct hf_lock_options options = {.ttl_ms = 5000};
    struct hf_options open = {.timeout_ms = 100};
    struct hf_election election = {.name = "x"};
    struct hf_stats stats = {.granted = 7};
    struct hf_grant grant = {.fence = 7};
    struct hf_lock_state found = {.last_fence = 7};
    assert_int_equal(hf_lock(locks, "x", &options, &lock, &fault), HF_BAD_REQUEST);
    assert_non_null(strstr(fault.msg, "hf_lock_options"));
    assert_int_equal(hf_open("memory:", &open, &none, &fault), HF_BAD_REQUEST);
    assert_non_null(strstr(fault.msg, "hf_options"));
    assert_int_equal(hf_elect(locks, &election, &fault), HF_BAD_REQUEST);
    assert_non_null(strstr(fault.msg, "hf_election"));
    assert_int_equal(hf_stats(locks, &stats, &fault), HF_BAD_REQUEST);
    assert_non_null(strstr(fault.msg, "hf_stats"));
    assert_int_equal(hf_lease_get(locks, "x", NULL, &grant, &fault), HF_BAD_REQUEST);
    assert_non_null(strstr(fault.msg, "hf_grant"));
    assert_int_equal(hf_inspect(locks, "x", &found, &fault), HF_BAD_REQUEST);
    assert_non_null(strstr(fault.msg, "hf_lock_state"));
    assert_int_equal(stats.granted + (uint64_t)grant.fence + (uint64_t)found.last_fence, 21);
    assert_int_equal(holders_of(locks, "x"), 0);
    options.size = SIZE_MAX; /* as in a struct that was never initialised */
    assert_int_equal(hf_lock(locks, "x", &options, &lock, &fault), HF_BAD_REQUEST);
    hf_close(locks);
}

/* No version of the library had such structs: a smaller one would lose members or end inside a
 * pointer, and a size that is no multiple of the alignment cannot come from sizeof. */
static void a_size_that_no_version_has_is_refused(void **state)
{
    (void)state;
    struct hf_locks *locks = open_memory(), *none = NULL;
    struct hf_lock *lock = NULL, *held;
    struct hf_fault fault;
    assert_int_equal(hf_lock(locks, "held", NULL, &held, NULL), HF_DONE);

    const size_t option_sizes[] = {8,
                                   12,
                                   offsetof(struct hf_lock_options, wait_ms),
                                   offsetof(struct hf_lock_options, label) + 4,
                                   offsetof(struct hf_lock_options, value) - 8,
                                   sizeof(struct hf_lock_options) + 4,
                                   4104};
    for (size_t i = 0; i < sizeof option_sizes / sizeof *option_sizes; i++) {
        struct hf_lock_options options = HF_LOCK_OPTIONS(.ttl_ms = 5000, .label = "label");
        struct hf_grant unused = HF_GRANT_INIT;
        options.size = option_sizes[i];
        assert_int_equal(hf_lock(locks, "x", &options, &lock, &fault), HF_BAD_REQUEST);
        assert_non_null(strstr(fault.msg, "hf_lock_options"));
        assert_int_equal(hf_lease_get(locks, "x", &options, &unused, &fault), HF_BAD_REQUEST);
    }
    struct hf_options open = {.size = 8};
    assert_int_equal(hf_open("memory:", &open, &none, &fault), HF_BAD_REQUEST);
    struct hf_election election = {.size = offsetof(struct hf_election, cancel), .name = "x"};
    assert_int_equal(hf_elect(locks, &election, &fault), HF_BAD_REQUEST);
    assert_non_null(strstr(fault.msg, "hf_election"));

    const size_t state_sizes[] = {8, 24, 28, 32, offsetof(struct hf_lock_state, value) - 8, 52};
    for (size_t i = 0; i < sizeof state_sizes / sizeof *state_sizes; i++) {
        struct hf_lock_state found = {.size = state_sizes[i]};
        assert_int_equal(hf_inspect(locks, "held", &found, &fault), HF_BAD_REQUEST);
        assert_null(found.holders);
        hf_lock_state_close(&found);
    }
    const size_t grant_sizes[] = {8, 41, 48, offsetof(struct hf_grant, slot) - 8, 68};
    for (size_t i = 0; i < sizeof grant_sizes / sizeof *grant_sizes; i++) {
        struct hf_grant grant = {.size = grant_sizes[i]};
        assert_int_equal(hf_lease_get(locks, "x", NULL, &grant, &fault), HF_BAD_REQUEST);
    }
    struct hf_stats stats = {.size = offsetof(struct hf_stats, taken), .granted = 7};
    assert_int_equal(hf_stats(locks, &stats, &fault), HF_BAD_REQUEST);
    assert_int_equal(stats.granted, 7);
    assert_int_equal(holders_of(locks, "x"), 0);
    hf_close(locks);
}

/* What a program that was compiled with version 0.1.0 has behind its smaller structs is not
 * touched. */
static void structs_of_the_first_version_are_accepted(void **state)
{
    (void)state;
    struct hf_locks *locks = open_memory();
    struct hf_lock *lock;
    struct hf_lock_options options = HF_LOCK_OPTIONS(.ttl_ms = 5000, .value = "not read");
    options.size = offsetof(struct hf_lock_options, value);
    assert_int_equal(hf_lock(locks, "x", &options, &lock, NULL), HF_DONE);
    struct hf_lock_state found = {.size = offsetof(struct hf_lock_state, value), .value = "other"};
    assert_int_equal(hf_inspect(locks, "x", &found, NULL), HF_DONE);
    assert_int_equal(found.n_holders, 1);
    hf_lock_state_close(&found);
    assert_string_equal(found.value, "other");
    struct hf_stats stats = {.size = offsetof(struct hf_stats, cache_hits), .cache_hits = 7};
    assert_int_equal(hf_stats(locks, &stats, NULL), HF_DONE);
    assert_int_equal(stats.granted, 1);
    assert_int_equal(stats.cache_hits, 7);
    assert_int_equal(hf_unlock(lock, NULL), HF_DONE);
    hf_close(locks);
}

static void a_value_is_refused_where_there_is_none(void **state)
{
    (void)state;
    struct hf_locks *locks = open_memory();
    struct hf_lock *lock;
    struct hf_fault fault;
    struct hf_lock_options options = HF_LOCK_OPTIONS(.value = "here");
    assert_int_equal(hf_lock(locks, "x", &options, &lock, &fault), HF_UNSUPPORTED);
    assert_non_null(strstr(fault.msg, "values"));
    options.value = "";
    assert_int_equal(hf_lock(locks, "x", &options, &lock, &fault), HF_BAD_REQUEST);
    options.value = "\xff";
    assert_int_equal(hf_lock(locks, "x", &options, &lock, &fault), HF_BAD_REQUEST);
    hf_close(locks);
}

static void a_result_struct_that_is_null_is_refused(void **state)
{
    (void)state;
    struct hf_locks *locks = open_memory();
    struct hf_fault fault;
    const char *owner = "0123456789abcdef0123456789abcdef";
    assert_int_equal(hf_stats(locks, NULL, &fault), HF_BAD_REQUEST);
    assert_non_null(strstr(fault.msg, "hf_stats"));
    assert_int_equal(hf_inspect(locks, "x", NULL, &fault), HF_BAD_REQUEST);
    assert_int_equal(hf_lease_get(locks, "x", NULL, NULL, &fault), HF_BAD_REQUEST);
    assert_int_equal(hf_lease_renew(locks, "x", owner, 0, NULL, &fault), HF_BAD_REQUEST);
    assert_int_equal(hf_elect(locks, NULL, &fault), HF_BAD_REQUEST);
    assert_int_equal(holders_of(locks, "x"), 0);
    hf_close(locks);
}

/* The bytes that the library does not know stay as they are, even if the size claims them. */
static void an_answer_fills_what_the_library_knows_of_a_newer_struct(void **state)
{
    (void)state;
    struct hf_locks *locks = open_memory();
    struct hf_lock *lock;
    assert_int_equal(hf_lock(locks, "x", NULL, &lock, NULL), HF_DONE);
    struct {
        struct hf_stats known;
        unsigned char beyond[200];
    } program;
    unsigned char untouched[200];
    memset(&program, 0xee, sizeof program);
    memset(untouched, 0xee, sizeof untouched);
    program.known.size = sizeof program;
    assert_int_equal(hf_stats(locks, &program.known, NULL), HF_DONE);
    assert_int_equal(program.known.granted, 1);
    assert_int_equal(program.known.size, sizeof program);
    assert_memory_equal(program.beyond, untouched, sizeof untouched);
    struct {
        struct hf_lock_state known;
        int64_t something_new;
    } found = {.known.size = sizeof found};
    assert_int_equal(hf_inspect(locks, "x", &found.known, NULL), HF_DONE);
    assert_int_equal(found.known.n_holders, 1);
    assert_int_equal(found.known.size, sizeof found);
    assert_int_equal(found.something_new, 0);
    hf_lock_state_close(&found.known);
    assert_null(found.known.holders);
    hf_close(locks);
}

static void holders_and_drivers_tell_their_size(void **state)
{
    (void)state;
    size_t n;
    const struct hf_driver_info *const *drivers = hf_drivers(&n);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(drivers[i]->size, sizeof(struct hf_driver_info));
    struct hf_locks *locks = open_memory();
    struct hf_lock *lock;
    struct hf_lock_state found = HF_LOCK_STATE_INIT;
    struct hf_lock_options shared = HF_LOCK_OPTIONS(.mode = HF_SHARED, .label = "one of two");
    assert_int_equal(hf_lock(locks, "x", &shared, &lock, NULL), HF_DONE);
    assert_int_equal(hf_lock(locks, "x", &shared, &lock, NULL), HF_DONE);
    assert_int_equal(hf_inspect(locks, "x", &found, NULL), HF_DONE);
    assert_int_equal(found.n_holders, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(found.holders[i]->size, sizeof(struct hf_holder));
        assert_string_equal(found.holders[i]->label, "one of two");
    }
    hf_lock_state_close(&found);
    assert_int_equal(found.n_holders, 0);
    hf_lock_state_close(&found); /* a second time does no harm */
    hf_close(locks);
}

static void the_version_is_one_in_three_forms(void **state)
{
    (void)state;
    char text[32];
    snprintf(text, sizeof text, "%d.%d.%d", HF_VERSION_MAJOR, HF_VERSION_MINOR, HF_VERSION_PATCH);
    assert_string_equal(HF_VERSION_TEXT, text);
    assert_string_equal(hf_version_text(), text);
    assert_int_equal(hf_version(), HF_VERSION);
}

static void what_frees_accepts_null(void **state)
{
    (void)state;
    hf_close(NULL);
    assert_int_equal(hf_unlock(NULL, NULL), HF_DONE);
    assert_int_equal(hf_unlock_many(NULL, NULL), HF_DONE);
    hf_lock_state_close(NULL);
    hf_cancel_free(NULL);
}

static void a_cancel_handle_that_is_null_is_never_triggered(void **state)
{
    (void)state;
    hf_cancel_trigger(NULL);
    assert_false(hf_cancel_is_triggered(NULL));
}

static void a_call_that_need_not_wait_gets_the_lock_with_a_triggered_handle(void **state)
{
    (void)state;
    struct hf_locks *locks = open_memory();
    struct hf_lock *lock;
    struct hf_cancel *cancel = hf_cancel_new();
    struct hf_lock_options options = HF_LOCK_OPTIONS(.wait_ms = HF_FOREVER, .cancel = cancel);
    hf_cancel_trigger(cancel);
    assert_int_equal(hf_lock(locks, "x", &options, &lock, NULL), HF_DONE);
    assert_int_equal(hf_unlock(lock, NULL), HF_DONE);
    hf_cancel_free(cancel);
    hf_close(locks);
}

/* ---- cancelling ---- */

struct waiter {
    pthread_t thread;
    struct hf_locks *locks;
    struct hf_lock_options options;
    enum hf_result result;
    int64_t ended_ms;
};

static void *wait_for_it(void *arg)
{
    struct waiter *w = arg;
    struct hf_lock *lock = NULL;
    w->result = hf_lock(w->locks, "x", &w->options, &lock, NULL);
    w->ended_ms = boot_ms();
    if (w->result == HF_DONE)
        (void)!hf_unlock(lock, NULL);
    return NULL;
}

static bool both_wait(void *locks) { return waiters_of(locks, "x") == 2; }

static struct hf_cancel *to_be_triggered;
static void trigger(int signo)
{
    (void)signo;
    hf_cancel_trigger(to_be_triggered); // NOLINT(bugprone-signal-handler): it may, by its contract
}

/* In the queue, and in the pause between two retries. */
static bool trigger_ends_every_wait(bool by_signal)
{
    bool in_time = false;
    struct hf_locks *locks = open_memory();
    struct hf_lock *held, *second;
    struct hf_cancel *cancel = hf_cancel_new();
    assert_int_equal(hf_lock(locks, "x", NULL, &held, NULL), HF_DONE);
    assert_false(hf_cancel_is_triggered(cancel));
    struct waiter w[3] = {
        {.options = HF_LOCK_OPTIONS(.wait_ms = HF_FOREVER, .cancel = cancel)},
        {.options = HF_LOCK_OPTIONS(.wait_ms = 60000, .cancel = cancel)},
        {.options = HF_LOCK_OPTIONS(.retries = 5, .retry_ms = 60000, .cancel = cancel)},
    };
    for (int i = 0; i < 3; i++) {
        w[i].locks = locks;
        assert_int_equal(pthread_create(&w[i].thread, NULL, wait_for_it, &w[i]), 0);
    }
    assert_true(becomes(both_wait, locks));
    nap_ms(100); /* all are asleep */
    int64_t begun = boot_ms();
    if (by_signal) {
        to_be_triggered = cancel;
        signal(SIGUSR1, trigger);
        raise(SIGUSR1);
        signal(SIGUSR1, SIG_DFL);
    } else {
        hf_cancel_trigger(cancel);
    }
    assert_true(hf_cancel_is_triggered(cancel));
    for (int i = 0; i < 3; i++) {
        pthread_join(w[i].thread, NULL);
        assert_int_equal(w[i].result, HF_TAKEN);
    }
    assert_int_equal(waiters_of(locks, "x"), 0);
    /* It stays triggered: the next call that would have to wait does not. */
    assert_int_equal(hf_lock(locks, "x", &w[0].options, &second, NULL), HF_TAKEN);
    for (int i = 0; i < 3; i++)
        JUDGE(w[i].ended_ms - begun < 100);
    in_time = true;
too_slow:
    hf_cancel_free(cancel);
    hf_close(locks);
    return in_time;
}

TIMELY_CLAIM(a_trigger_ends_every_wait_at_once) { return trigger_ends_every_wait(false); }
TIMELY_CLAIM(a_trigger_in_a_signal_handler_does_so_too) { return trigger_ends_every_wait(true); }

TIMELY_CLAIM(a_waiter_that_is_not_cancelled_gets_the_lock)
{
    bool in_time = false;
    struct hf_locks *locks = open_memory();
    struct hf_lock *held;
    struct hf_cancel *cancel = hf_cancel_new();
    struct waiter w[2] = {{.options = HF_LOCK_OPTIONS(.wait_ms = HF_FOREVER, .cancel = cancel)},
                          {.options = HF_LOCK_OPTIONS(.wait_ms = HF_FOREVER, .cancel = cancel)}};
    assert_int_equal(hf_lock(locks, "x", NULL, &held, NULL), HF_DONE);
    for (int i = 0; i < 2; i++) {
        w[i].locks = locks;
        assert_int_equal(pthread_create(&w[i].thread, NULL, wait_for_it, &w[i]), 0);
    }
    assert_true(becomes(both_wait, locks));
    int64_t begun = boot_ms();
    assert_int_equal(hf_unlock(held, NULL), HF_DONE);
    for (int i = 0; i < 2; i++) {
        pthread_join(w[i].thread, NULL);
        assert_int_equal(w[i].result, HF_DONE);
    }
    for (int i = 0; i < 2; i++)
        JUDGE(w[i].ended_ms - begun < 1000); /* woken, not found out by looking */
    in_time = true;
too_slow:
    hf_cancel_free(cancel);
    hf_close(locks);
    return in_time;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_newer_larger_struct_is_accepted_if_its_tail_is_zero),
        cmocka_unit_test(a_struct_without_a_size_is_refused_by_name),
        cmocka_unit_test(a_size_that_no_version_has_is_refused),
        cmocka_unit_test(structs_of_the_first_version_are_accepted),
        cmocka_unit_test(a_value_is_refused_where_there_is_none),
        cmocka_unit_test(a_result_struct_that_is_null_is_refused),
        cmocka_unit_test(an_answer_fills_what_the_library_knows_of_a_newer_struct),
        cmocka_unit_test(holders_and_drivers_tell_their_size),
        cmocka_unit_test(the_version_is_one_in_three_forms),
        cmocka_unit_test(what_frees_accepts_null),
        cmocka_unit_test(a_cancel_handle_that_is_null_is_never_triggered),
        cmocka_unit_test(a_call_that_need_not_wait_gets_the_lock_with_a_triggered_handle),
        cmocka_unit_test(a_trigger_ends_every_wait_at_once),
        cmocka_unit_test(a_trigger_in_a_signal_handler_does_so_too),
        cmocka_unit_test(a_waiter_that_is_not_cancelled_gets_the_lock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
