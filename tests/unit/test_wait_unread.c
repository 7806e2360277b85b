/* Claims about entries whose buyers have gone away: how long 100,000 of them keep a place from one
 * who still waits.  Simulated time, on a view without a ledger. */
#include "support/fixtures.h"

#include "view/view_waits.h"

#define DAY_MS (24 * HOUR_MS)
#define DEAD 100000
#define OFFER_MS (10 * MINUTE_MS)
#define ALIVE_MS (3 * DAY_MS)

struct tally {
    int64_t offered, unread, batches;
    int64_t served_at; /* when the living entry was offered the seat; 0: not yet */
};

static struct view *view;
static struct event *event;
static struct decision decision;
static struct random randomness;

static struct event_def *one_seat(void)
{
    struct event_def *def = def_hall(1, 1);
    def->id.key = 1;
    def->status = EVENT_OPEN;
    def->terms.starts_at = (struct local_time){0};
    def->terms.sales_close_at = 0;
    def->terms.offer_ttl_ms = OFFER_MS;
    def->terms.wait_alive_ms = ALIVE_MS;
    def->terms.wait_per_owner = 1;
    return def;
}

static struct wait_row entry(int64_t number)
{
    return (struct wait_row){
        .id.key = HOLD_KEY(1, number),
        .event = 1,
        .number = number,
        .rank = number,
        .created_at = T0_MS,
        .read_at = T0_MS,
        .status = WAIT_WAITING,
        .wish = {.section = -1, .tier = -1, .area = -1, .quantity = 1, .adjacent = 1}};
}

static int setup(void **state)
{
    const struct clock_row clock = {.event = 1, .now = T0_MS, .fence = DEAD + 1};
    (void)state;
    random_init_seeded(&randomness, 1);
    view = view_new();
    event = view_install(view, event_new(one_seat(), &clock));
    decision.view = view;
    decision.random = &randomness;
    for (int64_t number = 1; number <= DEAD + 1; number++) {
        const struct wait_row row = entry(number);
        waitlist_add(event, &row, 0);
    }
    waitlist_freed_all(event);
    event->waitlist->unsettled = true;
    view_waits_schedule(view, event);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    decision_close(&decision);
    view_free(view);
    return 0;
}

static void count(struct tally *t)
{
    const struct ledger_batch *b = &decision.batch;
    for (size_t i = 0; i < b->waits.n; i++) {
        t->offered += b->waits.v[i].to == WAIT_OFFERED;
        t->unread += b->waits.v[i].reason == WAIT_REASON_UNREAD;
        if (b->waits.v[i].entry == HOLD_KEY(1, DEAD + 1) && b->waits.v[i].to == WAIT_OFFERED)
            t->served_at = decision.now;
    }
    t->batches++;
}

static void run_batch(int64_t now, bool reads, struct tally *t)
{
    struct hold *due[8];
    decision_begin(&decision);
    decision_add_event(&decision, event);
    decision.now = now;
    decide_expire(&decision, due, view_due(view, now, due, 8));
    if (reads) { /* the living look at their entries */
        struct wait_change op = {
            .kind = WAIT_IS_READ, .is_internal = true, .wait = entry(DEAD + 1)};
        op.id = op.wait.id;
        assert_int_equal(decide_wait_change(&decision, event, &op), VERDICT_OK);
    }
    decide_waits(&decision);
    count(t);
    decision_seal(&decision);
    decision_publish(&decision);
}

/* When the worker has something to do next. */
static int64_t next_at(void)
{
    const struct hold *first = view_first_due(view);
    int64_t waits = view_waits_next(view);
    return first && first->expires_at < waits ? first->expires_at : waits;
}

/* One after the other, 100,000 offers of ten minutes would take 694 days.  Those who are gone are
 * offered the seat for as long as an unread entry lives: 432 times in three days.  The others end
 * then, 256 in a batch, and the seat goes to the first who still looks. */
static void dead_entries_keep_a_place_no_longer_than_an_unread_entry_lives(void **state)
{
    (void)state;
    struct tally t = {0};
    int64_t now = T0_MS, reads_at = T0_MS + DAY_MS;
    while (!t.served_at) {
        int64_t next = next_at();
        bool reads = reads_at <= next;
        next = reads ? reads_at : next;
        now = next > now ? next : now;
        run_batch(now, reads, &t);
        reads_at += reads ? DAY_MS : 0;
        assert_in_range(now, T0_MS, T0_MS + 4 * DAY_MS);
    }
    int64_t lapsed = ALIVE_MS / OFFER_MS;
    print_message(
        "%d dead: %d offers, %d ended unread, the seat was theirs for %d min, %d batches\n", DEAD,
        (int)t.offered, (int)t.unread, (int)((t.served_at - T0_MS) / MINUTE_MS), (int)t.batches);
    assert_int_equal(t.offered, lapsed + 1);
    assert_int_equal(t.unread, DEAD - lapsed);
    assert_int_equal(t.served_at, T0_MS + ALIVE_MS);
    assert_true(t.batches <= lapsed + DEAD / WAIT_TURNS_MAX + 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            dead_entries_keep_a_place_no_longer_than_an_unread_entry_lives, setup, teardown),
    };
    return cmocka_run_group_tests_name("wait_unread", tests, NULL, NULL);
}
