/* The rule about the gate's entries that the reconciler and `holdfast verify --gate` share. */
#include "support/fixtures.h"

#include "gate/check.h"

#define EVENT 7
#define FENCE 3
#define NOW 1000

static const uint32_t seats[] = {4, 9};

static struct hold_row hold_of(enum hold_status status, int64_t expires_at)
{
    return (struct hold_row){.id.key = HOLD_KEY(EVENT, FENCE),
                             .event = EVENT,
                             .status = status,
                             .expires_at = expires_at,
                             .seats = seats,
                             .n_seats = 2};
}

static enum gate_entry_state check(int64_t event, uint32_t seat, struct hold_row row)
{
    const struct gate_entry entry = {.event = event, .seat = seat, .hold = HOLD_KEY(EVENT, FENCE)};
    return gate_entry_check(&entry, &row, NOW);
}

static void an_entry_of_a_live_hold_is_right(void **state)
{
    (void)state;
    assert_int_equal(check(EVENT, 4, hold_of(HOLD_ACTIVE, NOW + 1)), GATE_ENTRY_RIGHT);
    assert_int_equal(check(EVENT, 9, hold_of(HOLD_ACTIVE, NOW + 1)), GATE_ENTRY_RIGHT);
    assert_int_equal(check(EVENT, 9, hold_of(HOLD_CONFIRMED, NOW - 1)), GATE_ENTRY_RIGHT);
}

static void an_entry_of_a_hold_that_has_ended_is_not(void **state)
{
    (void)state;
    assert_int_equal(check(EVENT, 4, hold_of(HOLD_ACTIVE, NOW)), GATE_ENTRY_ENDED);
    assert_int_equal(check(EVENT, 4, hold_of(HOLD_EXPIRED, NOW + 1)), GATE_ENTRY_ENDED);
    assert_int_equal(check(EVENT, 4, hold_of(HOLD_RELEASED, NOW + 1)), GATE_ENTRY_ENDED);
}

static void an_entry_of_a_hold_that_does_not_list_the_seat_is_foreign(void **state)
{
    (void)state;
    assert_int_equal(check(EVENT, 5, hold_of(HOLD_ACTIVE, NOW + 1)), GATE_ENTRY_FOREIGN);
    assert_int_equal(check(EVENT + 1, 4, hold_of(HOLD_ACTIVE, NOW + 1)), GATE_ENTRY_FOREIGN);
    assert_int_equal(check(EVENT, 4, (struct hold_row){0}), GATE_ENTRY_FOREIGN);
}

static void entries_are_found_by_event_seat_and_hold(void **state)
{
    (void)state;
    struct gate_entries entries = {0};
    assert_false(gate_entries_has(&entries, &(struct gate_entry){1, 1, 1}));
    for (int i = 40; i-- > 0;)
        *vec_push(&entries.list) =
            (struct gate_entry){.event = 1 + i % 2, .seat = (uint32_t)i / 4, .hold = i % 4 / 2 + 1};
    gate_entries_sort(&entries);
    for (int i = 0; i < 40; i++) {
        struct gate_entry e = {.event = 1 + i % 2, .seat = (uint32_t)i / 4, .hold = i % 4 / 2 + 1};
        assert_true(gate_entries_has(&entries, &e));
        e.hold += 2;
        assert_false(gate_entries_has(&entries, &e));
    }
    gate_entries_close(&entries);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_entry_of_a_live_hold_is_right),
        cmocka_unit_test(an_entry_of_a_hold_that_has_ended_is_not),
        cmocka_unit_test(an_entry_of_a_hold_that_does_not_list_the_seat_is_foreign),
        cmocka_unit_test(entries_are_found_by_event_seat_and_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
