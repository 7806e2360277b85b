/* Lists of refunds and notifications, and what owners have booked, read from a ledger that the
 * engine made. */
#include "support/fixtures.h"

#include <string.h>

#include "base/log.h"
#include "ledger/ledger.h"
#include "support/paid_sale.h"

static struct temp_dir dir;
static struct clock_fake now;
static struct client client;

static int begin(void **state)
{
    struct hf_err err = {0};
    (void)state;
    log_set_level(LOG_OFF);
    temp_dir_make(&dir);
    clock_fake_init(&now, T0_MS * 1000);
    assert_int_equal(client_start_notifying(&client, dir.url, &now.clock, ~0u, &err), HF_OK);
    return 0;
}

static int end(void **state)
{
    (void)state;
    client_stop(&client);
    temp_dir_remove(&dir);
    return 0;
}

static struct ledger *reader(void)
{
    struct ledger *l;
    struct hf_err err = {0};
    assert_int_equal(ledger_open(dir.url, &(struct db_options){.clock = &now.clock}, &l, &err),
                     HF_OK);
    return l;
}

/* The first attempt to pay fails, the second does not, and then the first is paid after all. */
static void lists_name_the_booking_that_the_money_was_for(void **state)
{
    (void)state;
    struct hf_err err = {0};
    struct refund_entry refunds[2];
    struct notice_entry notices[8];
    size_t n = 0;
    struct sale first = sale_hold(&client, sale_event(&client), 0);
    sale_book(&first, false);
    sale_fact(&first, INTENT_CANCELED, 0);
    struct sale second = first;
    sale_book(&second, false);
    sale_fact(&second, INTENT_CAPTURED, SALE_PRICE);
    assert_int_not_equal(sale_fact(&first, INTENT_CAPTURED, SALE_PRICE), 0);
    struct ledger *l = reader();
    assert_int_equal(ledger_refunds_list(l, 0, 0, 2, refunds, &n, &err), HF_OK);
    assert_int_equal(n, 1);
    assert_memory_equal(refunds[0].booking.secret, first.booking.secret, ID_SECRET_SIZE);
    assert_memory_equal(refunds[0].payment.secret, first.payment.secret, ID_SECRET_SIZE);
    int64_t first_number = refunds[0].number;
    assert_int_equal(ledger_notices_list(l, 0, 0, 8, notices, &n, &err), HF_OK);
    assert_int_equal(n, 2); /* newest first */
    assert_int_equal(notices[0].row.notice, NOTICE_BOOKING_CONFIRMED);
    assert_memory_equal(notices[0].booking.secret, second.booking.secret, ID_SECRET_SIZE);
    assert_int_equal(notices[1].row.notice, NOTICE_BOOKING_FAILED);
    assert_memory_equal(notices[1].booking.secret, first.booking.secret, ID_SECRET_SIZE);
    assert_int_equal(notices[1].number, first_number);
    assert_int_not_equal(notices[0].number, first_number);
    ledger_close(l);
}

static void add_places(void *ctx, const char *owner, size_t len, uint32_t places)
{
    assert_int_equal(len, strlen(SALE_OWNER));
    assert_memory_equal(owner, SALE_OWNER, len);
    *(uint32_t *)ctx += places;
}

/* Confirmed, and with its money being captured; not one whose captured amount was wrong. */
static void an_owner_has_the_places_of_bookings_that_have_them(void **state)
{
    (void)state;
    struct hf_err err = {0};
    uint32_t places = 0;
    struct event *event = sale_event(&client);
    struct sale sales[] = {sale_paid(&client, event, 0), sale_capturing(&client, event, 1),
                           sale_capturing(&client, event, 2),
                           sale_pending(&client, event, 3, false)};
    sale_fact(&sales[2], INTENT_CAPTURED, SALE_PRICE - 1);
    struct ledger *l = reader();
    assert_int_equal(ledger_owners_booked(l, event->def->id.key, add_places, &places, &err), HF_OK);
    assert_int_equal(places, 2);
    ledger_close(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(lists_name_the_booking_that_the_money_was_for, begin, end),
        cmocka_unit_test_setup_teardown(an_owner_has_the_places_of_bookings_that_have_them, begin,
                                        end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
