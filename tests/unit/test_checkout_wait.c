/* Claims about requests that wait for the intent of their booking, without the payment thread. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "checkout/checkout_internal.h"

static struct checkout *checkout;
static struct metrics *metrics;

static int setup(void **state)
{
    (void)state;
    struct hf_err err = {0};
    metrics = metrics_new();
    const struct checkout_config config = {.clock = &clock_system, .metrics = metrics};
    assert_int_equal(checkout_new(&config, &checkout, &err), HF_OK);
    checkout->is_running = true; /* the test takes the thread's part */
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    checkout->is_running = false;
    checkout_free(checkout);
    metrics_free(metrics);
    return 0;
}

static void count(struct pending *pending) { ++*(int *)pending->waiter; }

static struct checkout_wait waiting_for(int64_t booking, const uint8_t *key, int *times)
{
    return (struct checkout_wait){
        .pending = {.done = count, .waiter = times}, .booking = booking, .key = key};
}

static void a_wait_ends_when_its_intent_comes(void **state)
{
    (void)state;
    int mine = 0, others = 0;
    struct checkout_wait wait = waiting_for(7, NULL, &mine), other = waiting_for(8, NULL, &others);
    const struct payment_row payment = {.payment = 70, .status = PAYMENT_REQUIRES_PAYMENT};
    checkout_await(checkout, &wait);
    checkout_await(checkout, &other);
    checkout_tell(checkout, 7, &payment);
    assert_int_equal(mine, 1);
    assert_true(wait.has_payment);
    assert_int_equal(wait.payment.payment, 70);
    assert_int_equal(others, 0);
    checkout_tell(checkout, 8, NULL);
    assert_int_equal(others, 1);
    assert_false(other.has_payment);
}

/* With a fast provider the payment thread is done before the request begins to wait. */
static void an_intent_that_came_before_is_not_waited_for(void **state)
{
    (void)state;
    int times = 0;
    struct checkout_wait wait = waiting_for(9, NULL, &times);
    checkout_tell(checkout, 9, NULL);
    checkout_await(checkout, &wait);
    assert_int_equal(times, 1);
    struct checkout_wait again = waiting_for(9, NULL, &times);
    checkout_await(checkout, &again); /* that signal is used up */
    assert_int_equal(times, 1);
    checkout_tell(checkout, 9, NULL);
    assert_int_equal(times, 2);
}

static void a_key_is_in_flight_while_its_request_waits(void **state)
{
    (void)state;
    int times = 0;
    uint8_t key[KEY_HASH_SIZE] = {1}, other[KEY_HASH_SIZE] = {2};
    struct checkout_wait wait = waiting_for(10, key, &times);
    assert_false(checkout_is_awaited(checkout, key));
    checkout_await(checkout, &wait);
    assert_true(checkout_is_awaited(checkout, key));
    assert_false(checkout_is_awaited(checkout, other));
    checkout_tell(checkout, 10, NULL);
    assert_false(checkout_is_awaited(checkout, key));
}

static void nobody_waits_for_a_thread_that_does_not_run(void **state)
{
    (void)state;
    int times = 0;
    struct checkout_wait wait = waiting_for(11, NULL, &times);
    checkout->is_running = false;
    checkout_await(checkout, &wait);
    assert_int_equal(times, 1);
}

int main(void)
{
#define CLAIM(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CLAIM(a_wait_ends_when_its_intent_comes),
        CLAIM(an_intent_that_came_before_is_not_waited_for),
        CLAIM(a_key_is_in_flight_while_its_request_waits),
        CLAIM(nobody_waits_for_a_thread_that_does_not_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
