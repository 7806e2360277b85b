/* Claims about the judge of waiting lists (rules/fair.h), on logs that are written here by hand: a
 * row of four seats and a floor of three places, sold out to begin with. */
#include "support/fixtures.h"

#include "rules/fair.h"

#define SEATS 4
#define FLOOR_PLACES 3
#define NO_AREA (-1)
#define ROWS_MAX 200
#define ENTRIES_MAX 10

static struct fair fair;
static int64_t seq, at, fence;
static struct audit_row rows[ROWS_MAX]; /* all of the log */
static struct wait_row entries[ENTRIES_MAX];
static size_t n_entries;
static int64_t sold[SEATS + FLOOR_PLACES]; /* the hold that has it */

static struct event_def *sale_def(void)
{
    struct event_def *def = def_new("Sale");
    def_section(def, "S", NULL, 100);
    def_row(def, "1", SEATS);
    def_area(def, "Floor", 100, FLOOR_PLACES);
    def->id.key = 1;
    def->status = EVENT_OPEN;
    def->terms.max_per_hold = 10;
    def->terms.offer_ttl_ms = 600000;
    def->terms.sales_open_at = 0;
    def->terms.sales_close_at = 0;
    def->terms.starts_at = (struct local_time){0};
    return def;
}

/* ---- rows ---- */

static void log_row(struct audit_row row)
{
    row.event = 1;
    row.seq = ++seq;
    row.at = at;
    assert_true(seq <= ROWS_MAX);
    rows[seq - 1] = row;
    fair_row(&fair, &row);
}

static void commit(void) { at += 1000; }

/* Places below SEATS are seats, those from there on are of the floor. */
static void log_place(uint32_t place, enum audit_cause cause, enum seat_status from,
                      enum seat_status to, int64_t hold, int64_t of_fence)
{
    bool is_seat = place < SEATS;
    log_row((struct audit_row){.object = is_seat ? AUDIT_SEAT : AUDIT_AREA,
                               .cause = cause,
                               .item = is_seat ? place : 0,
                               .quantity = 1,
                               .from = (int)from,
                               .to = (int)to,
                               .hold = hold,
                               .fence = of_fence});
}

static void log_hold(enum audit_cause cause, enum hold_status from, enum hold_status to,
                     int64_t hold, int64_t of_fence)
{
    log_row((struct audit_row){.object = AUDIT_HOLD,
                               .cause = cause,
                               .from = (int)from,
                               .to = (int)to,
                               .hold = hold,
                               .fence = of_fence});
}

static void log_event(enum audit_cause cause, enum event_status from, enum event_status to)
{
    log_row((struct audit_row){
        .object = AUDIT_EVENT, .cause = cause, .from = (int)from, .to = (int)to});
}

static void log_wait(int64_t entry, enum audit_cause cause, enum wait_status from,
                     enum wait_status to, int64_t hold)
{
    log_row((struct audit_row){.object = AUDIT_WAIT,
                               .cause = cause,
                               .from = (int)from,
                               .to = (int)to,
                               .hold = hold,
                               .fence = HOLD_FIRST_FENCE(entry)});
}

static int64_t grant(uint32_t place, enum audit_cause cause)
{
    int64_t hold = HOLD_KEY(1, ++fence);
    log_hold(cause, HOLD_NONE, HOLD_ACTIVE, hold, fence);
    log_place(place, cause, SEAT_AVAILABLE, SEAT_HELD, hold, fence);
    sold[place] = hold;
    return hold;
}

static void take(uint32_t place) { (void)grant(place, CAUSE_HOLD); }

static void give_back(uint32_t place, enum audit_cause cause)
{
    int64_t hold = sold[place], of_fence = HOLD_FIRST_FENCE(hold);
    enum hold_status to = cause == CAUSE_EXPIRE ? HOLD_EXPIRED : HOLD_RELEASED;
    log_hold(cause, HOLD_ACTIVE, to, hold, of_fence);
    log_place(place, cause, SEAT_HELD, SEAT_AVAILABLE, hold, of_fence);
}

static int64_t join(int32_t area, uint32_t quantity)
{
    int64_t entry = HOLD_KEY(1, ++fence);
    const struct wait_wish wish = {
        .section = -1, .tier = -1, .area = area, .quantity = quantity, .adjacent = 1};
    fair_wish(&fair, entry, &wish);
    entries[n_entries] =
        (struct wait_row){.id.key = entry, .rank = (int64_t)n_entries + 1, .wish = wish};
    n_entries++;
    log_wait(entry, CAUSE_CREATE, WAIT_NONE, WAIT_WAITING, 0);
    commit();
    return entry;
}

static void offer(int64_t entry, uint32_t place)
{
    int64_t hold = grant(place, CAUSE_WAITLIST);
    log_wait(entry, CAUSE_WAITLIST, WAIT_WAITING, WAIT_OFFERED, hold);
}

/* ---- judgement ---- */

static void begin(bool terms_known)
{
    struct event_def *def = sale_def();
    fair_close(&fair);
    fair_init(&fair, def);
    if (terms_known)
        fair_terms(&fair, &def->terms, 0);
    seq = fence = 0;
    n_entries = 0;
    at = T0_MS;
    for (uint32_t i = 0; i < SEATS + FLOOR_PLACES; i++)
        take(i);
    commit();
}

static int setup(void **state)
{
    (void)state;
    begin(true);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fair_close(&fair);
    return 0;
}

/* The event as the log has left it. */
static struct event *event_as_logged(void)
{
    struct clock_row clock = {.event = 1, .seq = seq};
    struct event *e = event_new(sale_def(), &clock);
    for (uint32_t i = 0; i < SEATS; i++)
        event_load_seat(e, i, (enum seat_status)fair.event->seats[i].status, 0);
    const struct area *area = &fair.event->areas[0];
    event_load_area(e, 0, area->held, area->booked, &area->blocks);
    e->status_draft = fair.event->status_draft;
    struct event_terms terms;
    event_terms_copy(fair.n_terms ? &fair.terms.v[fair.n_terms - 1].terms : e->terms, &terms);
    terms.wait_paused = fair.paused;
    event_set_terms(e, event_terms_new(&terms));
    return e;
}

/* An entry as the log has left it. */
static struct wait_row entry_as_logged(size_t i)
{
    struct wait_row entry = entries[i];
    for (int64_t k = 0; k < seq; k++) {
        if (rows[k].object != AUDIT_WAIT || rows[k].fence != HOLD_FIRST_FENCE(entry.id.key))
            continue;
        entry.status = (enum wait_status)rows[k].to;
        if (rows[k].cause == CAUSE_CHANGE && rows[k].to == WAIT_WAITING)
            entry.rank = -rows[k].seq;
    }
    return entry;
}

/* Judges the log once more, from each of its commits on, and finds what `fair` found behind it. */
static void is_found_from_every_commit(void)
{
    for (int64_t begin = 0; begin < seq; begin++) {
        struct fair later;
        if (begin && rows[begin].at == rows[begin - 1].at)
            continue;
        fair_load(&later, event_as_logged());
        for (size_t i = 0; i < n_entries; i++) {
            const struct wait_row entry = entry_as_logged(i);
            fair_entry(&later, &entry);
        }
        for (int64_t k = begin; k < seq; k++)
            fair_undo(&later, &rows[k]);
        fair_begin(&later, begin);
        for (int64_t k = begin; k < seq; k++)
            fair_row(&later, &rows[k]);
        fair_end(&later, at + 1000);
        bool is_behind =
            fair.n && (!begin || fair.list[0].kind == UNFAIR_TWICE || /* needs no other row */
                       rows[begin].at < rows[fair.list[0].seq - 1].at);
        assert_int_equal(later.n, is_behind ? fair.n : 0);
        if (later.n)
            assert_memory_equal(later.list, fair.list, sizeof *later.list);
        for (uint32_t i = 0; i < SEATS; i++)
            assert_int_equal(later.event->seats[i].status, fair.event->seats[i].status);
        assert_int_equal(later.event->areas[0].held, fair.event->areas[0].held);
        fair_close(&later);
    }
}

static void is_fair(void)
{
    fair_end(&fair, at + 1000);
    if (fair.n)
        fail_msg("seq %d: %s", (int)fair.list[0].seq, unfair_text(fair.list[0].kind));
}

/* Asserts that there is one violation, by the last row that was logged. */
static const struct unfair *is_unfair(enum unfair_kind kind, int64_t entry)
{
    fair_end(&fair, at + 1000);
    assert_int_equal(fair.n, 1);
    assert_int_equal(fair.list[0].kind, kind);
    assert_int_equal(fair.list[0].entry, entry);
    assert_int_equal(fair.list[0].seq, seq);
    return &fair.list[0];
}

/* ---- what is fair ---- */

static void a_place_that_is_offered_in_the_same_commit_is_fair(void **state)
{
    (void)state;
    int64_t first = join(NO_AREA, 1), second = join(NO_AREA, 1), third = join(0, 1);
    give_back(2, CAUSE_EXPIRE);
    offer(first, 2);
    commit();
    give_back(SEATS, CAUSE_RELEASE);
    offer(third, SEATS);
    give_back(0, CAUSE_EVICT);
    offer(second, 0);
    is_fair();
    assert_true(fair.judged >= 3);
}

static void a_wish_that_does_not_fit_is_passed_over(void **state)
{
    (void)state;
    int64_t group = join(NO_AREA, 2), single = join(NO_AREA, 1);
    give_back(0, CAUSE_RELEASE);
    offer(single, 0);
    commit();
    give_back(2, CAUSE_RELEASE); /* nobody who is left wants one */
    commit();
    take(2);
    give_back(2, CAUSE_RELEASE);
    give_back(3, CAUSE_RELEASE);
    int64_t hold = HOLD_KEY(1, ++fence);
    log_hold(CAUSE_WAITLIST, HOLD_NONE, HOLD_ACTIVE, hold, fence);
    log_place(2, CAUSE_WAITLIST, SEAT_AVAILABLE, SEAT_HELD, hold, fence);
    log_place(3, CAUSE_WAITLIST, SEAT_AVAILABLE, SEAT_HELD, hold, fence);
    log_wait(group, CAUSE_WAITLIST, WAIT_WAITING, WAIT_OFFERED, hold);
    is_fair();
}

static void entries_that_have_ended_want_nothing(void **state)
{
    (void)state;
    int64_t gone = join(NO_AREA, 1);
    log_wait(gone, CAUSE_RELEASE, WAIT_WAITING, WAIT_LEFT, 0);
    give_back(0, CAUSE_RELEASE);
    commit();
    take(0);
    is_fair();
}

static void an_entry_that_was_moved_to_the_front_is_first(void **state)
{
    (void)state;
    int64_t first = join(NO_AREA, 1), second = join(NO_AREA, 1);
    log_wait(second, CAUSE_CHANGE, WAIT_WAITING, WAIT_WAITING, 0);
    commit();
    give_back(0, CAUSE_RELEASE);
    offer(second, 0);
    commit();
    give_back(1, CAUSE_RELEASE);
    offer(first, 1);
    is_fair();
}

/* ---- what is not ---- */

static void a_hold_that_takes_what_an_entry_waits_for_is_named(void **state)
{
    (void)state;
    int64_t entry = join(NO_AREA, 1);
    give_back(1, CAUSE_RELEASE); /* free for one moment of one batch */
    take(1);
    assert_int_equal(is_unfair(UNFAIR_TAKEN, entry)->hold, sold[1]);
}

static void so_is_a_block_and_a_rescue(void **state)
{
    (void)state;
    for (int rescues = 0; rescues < 2; rescues++) {
        begin(true);
        int64_t entry = join(0, 1), hold = sold[SEATS];
        give_back(SEATS, CAUSE_EXPIRE);
        if (rescues)
            log_hold(CAUSE_RESCUE, HOLD_EXPIRED, HOLD_CONFIRMED, hold, ++fence);
        log_place(SEATS, rescues ? CAUSE_RESCUE : CAUSE_BLOCK, SEAT_AVAILABLE,
                  rescues ? SEAT_BOOKED : SEAT_BLOCKED, rescues ? hold : 0,
                  rescues ? fence : ++fence);
        is_unfair(UNFAIR_TAKEN, entry);
    }
}

static void so_is_an_offer_to_a_later_entry(void **state)
{
    (void)state;
    int64_t first = join(NO_AREA, 1), second = join(NO_AREA, 1);
    give_back(3, CAUSE_RELEASE);
    offer(second, 3);
    assert_int_equal(is_unfair(UNFAIR_ORDER, first)->other, second);
}

static void so_is_a_place_that_stays_free(void **state)
{
    (void)state;
    static const enum audit_cause causes[] = {CAUSE_RELEASE, CAUSE_EXPIRE, CAUSE_EVICT,
                                              CAUSE_CANCEL,  CAUSE_REFUND, CAUSE_PAYMENT};
    for (size_t i = 0; i < sizeof causes / sizeof *causes; i++) {
        begin(true);
        int64_t entry = join(0, 1);
        give_back(SEATS + 1, causes[i]);
        is_unfair(UNFAIR_IDLE, entry);
    }
}

static void so_is_a_second_offer(void **state)
{
    (void)state;
    int64_t entry = join(NO_AREA, 1);
    give_back(0, CAUSE_RELEASE);
    offer(entry, 0);
    commit();
    give_back(0, CAUSE_EXPIRE);
    log_wait(entry, CAUSE_EXPIRE, WAIT_OFFERED, WAIT_WAITING, sold[0]);
    offer(entry, 0);
    is_unfair(UNFAIR_TWICE, entry);
}

/* ---- changes of holds ---- */

static void change(int64_t hold, uint32_t out, uint32_t in)
{
    log_hold(CAUSE_CHANGE, HOLD_ACTIVE, HOLD_ACTIVE, hold, ++fence);
    log_place(out, CAUSE_CHANGE, SEAT_HELD, SEAT_AVAILABLE, hold, fence);
    log_place(in, CAUSE_CHANGE, SEAT_AVAILABLE, SEAT_HELD, hold, fence);
    sold[in] = hold;
}

static void a_place_that_a_change_gives_back_is_free_after_it(void **state)
{
    (void)state;
    give_back(0, CAUSE_RELEASE);
    commit();
    int64_t entry = join(0, 1); /* the seat does not fit */
    change(sold[SEATS], SEATS, 0);
    offer(entry, SEATS);
    commit();
    change(sold[1], 1, 1); /* the same seat, as another ticket type */
    is_fair();
}

static void a_change_that_takes_what_an_entry_waits_for_is_named(void **state)
{
    (void)state;
    int64_t entry = join(NO_AREA, 1);
    give_back(0, CAUSE_RELEASE);
    log_hold(CAUSE_CHANGE, HOLD_ACTIVE, HOLD_ACTIVE, sold[1], ++fence);
    log_place(0, CAUSE_CHANGE, SEAT_AVAILABLE, SEAT_HELD, sold[1], fence);
    is_unfair(UNFAIR_TAKEN, entry);
}

static void places_that_are_booked_as_one_are_not_free_on_the_way(void **state)
{
    (void)state;
    (void)join(NO_AREA, 1);
    (void)join(0, 1);
    int64_t carrier = sold[0];
    give_back(1, CAUSE_BOOK);
    give_back(SEATS, CAUSE_BOOK);
    log_hold(CAUSE_CHANGE, HOLD_ACTIVE, HOLD_ACTIVE, carrier, ++fence);
    log_place(1, CAUSE_CHANGE, SEAT_AVAILABLE, SEAT_HELD, carrier, fence);
    log_place(SEATS, CAUSE_CHANGE, SEAT_AVAILABLE, SEAT_HELD, carrier, fence);
    is_fair();
}

/* ---- what excuses ---- */

static void nothing_is_owed_while_the_event_offers_nothing(void **state)
{
    (void)state;
    (void)join(NO_AREA, 1);
    log_event(CAUSE_PAUSE, EVENT_OPEN, EVENT_OPEN);
    give_back(0, CAUSE_RELEASE);
    commit();
    take(0);
    is_fair();
    commit();
    log_event(CAUSE_RESUME, EVENT_OPEN, EVENT_OPEN);
    log_event(CAUSE_CLOSE, EVENT_OPEN, EVENT_CLOSED);
    give_back(0, CAUSE_RELEASE);
    is_fair();
}

static void what_is_free_when_the_list_goes_on_is_owed(void **state)
{
    (void)state;
    int64_t entry = join(NO_AREA, 1);
    log_event(CAUSE_PAUSE, EVENT_OPEN, EVENT_OPEN);
    give_back(0, CAUSE_RELEASE);
    commit();
    log_event(CAUSE_RESUME, EVENT_OPEN, EVENT_OPEN);
    is_unfair(UNFAIR_IDLE, entry);
}

static void nothing_is_owed_before_or_after_sales(void **state)
{
    (void)state;
    for (int late = 0; late < 2; late++) {
        begin(false);
        struct event_terms terms;
        event_terms_copy(fair.event->terms, &terms);
        terms.sales_open_at = late ? 0 : at + 1000000;
        terms.sales_close_at = late ? at + 500 : 0;
        fair_terms(&fair, &terms, 0);
        event_terms_close(&terms);
        (void)join(NO_AREA, 1);
        give_back(0, CAUSE_EXPIRE);
        is_fair();
    }
}

static void a_batch_without_turns_left_owes_nothing(void **state)
{
    (void)state;
    fair.turns_max = 1;
    int64_t first = join(NO_AREA, 1), second = join(NO_AREA, 1);
    give_back(0, CAUSE_RELEASE);
    give_back(1, CAUSE_RELEASE);
    offer(first, 0);
    commit();
    offer(second, 1); /* the batch that follows at once */
    is_fair();
}

static void what_was_replayed_to_begin_with_is_not_judged(void **state)
{
    (void)state;
    (void)join(NO_AREA, 1);
    give_back(0, CAUSE_RELEASE);
    take(0);
    assert_int_equal(fair.n, 1);
    begin(true);
    fair.judged_after = 1000;
    (void)join(NO_AREA, 1);
    give_back(0, CAUSE_RELEASE);
    take(0);
    is_fair();
}

/* The terms of today say nothing about those before the last change. */
static void where_the_terms_are_not_known_sales_speak_for_themselves(void **state)
{
    (void)state;
    begin(false);
    int64_t entry = join(NO_AREA, 1);
    give_back(0, CAUSE_RELEASE);
    commit();
    is_fair(); /* the list may have been paused by the clock: sales were not open */
    take(0);
    is_unfair(UNFAIR_TAKEN, entry);
}

static void a_list_that_may_be_off_owes_nothing(void **state)
{
    (void)state;
    begin(false);
    int64_t entry = join(NO_AREA, 1);
    (void)join(NO_AREA, 1);
    log_event(CAUSE_CHANGE, EVENT_OPEN, EVENT_OPEN);
    give_back(0, CAUSE_RELEASE);
    take(0);
    log_wait(entry, CAUSE_CHANGE, WAIT_WAITING, WAIT_ENDED, 0); /* more than one batch can end */
    commit();
    give_back(1, CAUSE_RELEASE);
    take(1);
    is_fair();
}

static void entries_without_a_wish_are_not_looked_at(void **state)
{
    (void)state;
    int64_t entry = HOLD_KEY(1, ++fence);
    const struct wait_wish damaged = {.section = 7, .tier = -1, .area = -1, .quantity = 1};
    fair_wish(&fair, entry, &damaged);
    log_wait(entry, CAUSE_CREATE, WAIT_NONE, WAIT_WAITING, 0);
    give_back(0, CAUSE_RELEASE);
    take(0);
    is_fair();
}

/* What has been pruned of a log is not replayed: the judge begins behind it. */
static void a_judge_may_begin_within_the_log(void **state)
{
    (void)state;
    void (*const fair_logs[])(void **) = {a_place_that_is_offered_in_the_same_commit_is_fair,
                                          a_wish_that_does_not_fit_is_passed_over,
                                          entries_that_have_ended_want_nothing,
                                          a_place_that_a_change_gives_back_is_free_after_it,
                                          places_that_are_booked_as_one_are_not_free_on_the_way,
                                          nothing_is_owed_while_the_event_offers_nothing};
    void (*const unfair_logs[])(void **) = {a_hold_that_takes_what_an_entry_waits_for_is_named,
                                            so_is_an_offer_to_a_later_entry, so_is_a_second_offer,
                                            a_change_that_takes_what_an_entry_waits_for_is_named,
                                            what_is_free_when_the_list_goes_on_is_owed};
    for (size_t i = 0; i < sizeof fair_logs / sizeof *fair_logs; i++) {
        begin(true);
        fair_logs[i](NULL);
        is_found_from_every_commit();
    }
    for (size_t i = 0; i < sizeof unfair_logs / sizeof *unfair_logs; i++) {
        begin(true);
        unfair_logs[i](NULL);
        is_found_from_every_commit();
    }
    begin(true);
    an_entry_that_was_moved_to_the_front_is_first(NULL);
    is_found_from_every_commit();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define CLAIM(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        CLAIM(a_place_that_is_offered_in_the_same_commit_is_fair),
        CLAIM(a_wish_that_does_not_fit_is_passed_over),
        CLAIM(entries_that_have_ended_want_nothing),
        CLAIM(an_entry_that_was_moved_to_the_front_is_first),
        CLAIM(a_hold_that_takes_what_an_entry_waits_for_is_named),
        CLAIM(so_is_a_block_and_a_rescue),
        CLAIM(so_is_an_offer_to_a_later_entry),
        CLAIM(so_is_a_place_that_stays_free),
        CLAIM(so_is_a_second_offer),
        CLAIM(a_place_that_a_change_gives_back_is_free_after_it),
        CLAIM(a_change_that_takes_what_an_entry_waits_for_is_named),
        CLAIM(places_that_are_booked_as_one_are_not_free_on_the_way),
        CLAIM(nothing_is_owed_while_the_event_offers_nothing),
        CLAIM(what_is_free_when_the_list_goes_on_is_owed),
        CLAIM(nothing_is_owed_before_or_after_sales),
        CLAIM(a_batch_without_turns_left_owes_nothing),
        CLAIM(what_was_replayed_to_begin_with_is_not_judged),
        CLAIM(where_the_terms_are_not_known_sales_speak_for_themselves),
        CLAIM(a_list_that_may_be_off_owes_nothing),
        CLAIM(entries_without_a_wish_are_not_looked_at),
        CLAIM(a_judge_may_begin_within_the_log),
    };
    return cmocka_run_group_tests_name("fair", tests, NULL, NULL);
}
