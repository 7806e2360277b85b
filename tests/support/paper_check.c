/* The claims about the paper ledger and the view over it.  See fixtures.h. */
#include "support/fixtures.h"

#include <stdlib.h>
#include <string.h>

#include "base/client_number.h"
#include "rules/best.h"
#include "rules/view_holds.h"

bool paper_blocks_equal(const struct area_blocks *a, const struct area_blocks *b)
{
    return a->list.n == b->list.n &&
           (!a->list.n || memcmp(a->list.v, b->list.v, a->list.n * sizeof *a->list.v) == 0);
}

static void check_heap(const struct view *v)
{
    const struct hold_table *t = view_hold_table(v);
    struct heap_node *const *nodes = t->deadlines.nodes.v;
    for (size_t i = 0; i < t->deadlines.nodes.n; i++) {
        assert_int_equal(nodes[i]->place, i + 1);
        assert_int_equal(nodes[i]->key, heap_item(nodes[i], struct hold, due)->expires_at);
        if (i)
            assert_true(nodes[(i - 1) / 2]->key <= nodes[i]->key);
    }
}

/* Every place has its price, and the amount is their sum. */
static void check_prices(const struct hold_row *row)
{
    int64_t sum = 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < row->n_prices; i++) {
        assert_true(row->prices[i].n > 0);
        n += row->prices[i].n;
        sum += row->prices[i].price * row->prices[i].n;
    }
    assert_int_equal(n, places_count(row->n_seats, row->areas, row->n_areas));
    assert_int_equal(sum, row->amount);
}

static void check_hold(struct paper *p, const struct paper_hold *ph)
{
    const struct hold_row *row = &ph->row;
    const struct paper_event *pe = &p->events.v[row->event - 1];
    const struct hold *h = view_hold(p->view, row->id.key);
    assert_int_equal(ph->folded, row->status);
    assert_int_equal(ph->folded_fence, row->fence);
    assert_int_equal(ph->folded_seq, row->last_seq);
    assert_int_equal(ph->folded_places, places_count(row->n_seats, row->areas, row->n_areas));
    check_prices(row);
    if (row->status != HOLD_ACTIVE) {
        assert_null(h);
        return;
    }
    assert_int_equal(ph->folded_until, row->expires_at);
    assert_non_null(h);
    assert_ptr_equal(h->event, pe->event);
    assert_int_equal(h->status, HOLD_ACTIVE);
    assert_int_equal(h->fence, row->fence);
    assert_int_equal(h->last_seq, row->last_seq);
    assert_int_equal(h->expires_at, row->expires_at);
    assert_int_equal(h->max_expires_at, row->max_expires_at);
    assert_true(row->expires_at <= row->max_expires_at);
    assert_int_equal(h->pending, 0);
    assert_int_not_equal(h->due.place, 0);
    assert_int_equal(h->client, row->client);
    assert_int_equal(h->channel, row->channel);
    assert_int_equal(h->owner, owner_hash(pe->event, row->owner, row->owner_len));
    assert_int_equal(h->n_seats, row->n_seats);
    assert_int_equal(h->n_areas, row->n_areas);
    for (uint32_t i = 0; i < row->n_areas; i++)
        assert_memory_equal(&h->areas[i], &row->areas[i], sizeof *h->areas);
    for (uint32_t i = 0; i < row->n_seats; i++) { /* all or nothing: I6 */
        const struct paper_seat *seat = &pe->seats[row->seats[i]];
        assert_int_equal(h->seats[i], row->seats[i]);
        assert_int_equal(seat->status, SEAT_HELD);
        assert_int_equal(seat->hold, row->id.key);
        assert_int_equal(seat->expires_at, row->expires_at);
        assert_true(seat->channel == 0 || seat->channel == row->channel);
    }
}

/* Are the places of a confirmed hold still booked?  They are while its money is captured, too. */
static bool is_booked(struct paper *p, const struct hold_row *row)
{
    if (row->status != HOLD_CONFIRMED)
        return false;
    const struct booking_row *booking = paper_booking(p, row->id.key);
    const struct paper_payment *payment = paper_payment(p, booking->payment);
    return booking->status == BOOKING_CONFIRMED ||
           (booking->status == BOOKING_PENDING && payment->row.status == PAYMENT_CAPTURING);
}

/* Asserts that what an owner has is the sum of its live holds and, where it is limited, of its
 * bookings. */
static void check_owner(struct paper *p, const struct hold_row *of)
{
    const struct paper_event *pe = &p->events.v[of->event - 1];
    int64_t held = 0, booked = 0, listed = 0, owner = 0;
    for (size_t i = 0; i < p->holds.n; i++) {
        const struct hold_row *row = &p->holds.v[i].row;
        if (row->event != of->event || !row->owner || row->owner_len != of->owner_len ||
            memcmp(row->owner, of->owner, of->owner_len) != 0)
            continue;
        held +=
            row->status == HOLD_ACTIVE ? places_count(row->n_seats, row->areas, row->n_areas) : 0;
        booked += is_booked(p, row) ? places_count(row->n_seats, row->areas, row->n_areas) : 0;
    }
    owner = (int64_t)owner_hash(pe->event, of->owner, of->owner_len);
    for (const struct hold *h = view_owner_holds(p->view, (uint64_t)owner); h; h = h->owner_next)
        listed += places_count(h->n_seats, h->areas, h->n_areas);
    assert_int_equal(listed, held);
    if (pe->terms.max_per_owner && !pe->event->stale)
        assert_int_equal(view_owner_places(p->view, (uint64_t)owner), held + booked);
}

/* What the areas of an event have together. */
struct area_sums {
    int64_t held, booked, blocked;
};

/* Asserts that an area's counters are the sums of its holds and bookings (I2). */
static struct area_sums sum_area(struct paper *p, const struct paper_event *pe, uint32_t area)
{
    struct area_sums sums = {0};
    for (size_t h = 0; h < p->holds.n; h++) {
        const struct hold_row *row = &p->holds.v[h].row;
        for (uint32_t k = 0; row->event == pe->clock.event && k < row->n_areas; k++) {
            int64_t n = row->areas[k].area == area ? row->areas[k].quantity : 0;
            sums.held += row->status == HOLD_ACTIVE ? n : 0;
            sums.booked += is_booked(p, row) ? n : 0;
        }
    }
    for (size_t i = 0; i < pe->areas[area].blocks.list.n; i++) {
        const struct area_block *block = &pe->areas[area].blocks.list.v[i];
        assert_int_equal(block->places, pe->areas[area].folded_blocked[block->channel]);
        sums.blocked += block->places;
    }
    return sums;
}

static struct area_sums check_areas(struct paper *p, const struct paper_event *pe)
{
    struct event *e = pe->event;
    struct area_sums all = {0};
    for (uint32_t i = 0; i < e->def->areas.n; i++) {
        const struct paper_area *area = &pe->areas[i];
        const struct area_sums sums = sum_area(p, pe, i);
        int64_t folded_blocked = 0;
        for (int k = 0; k <= CHANNELS_MAX; k++)
            folded_blocked += area->folded_blocked[k];
        assert_int_equal(folded_blocked, sums.blocked);
        assert_int_equal(area->held, sums.held);
        assert_int_equal(area->booked, sums.booked);
        assert_int_equal(area->folded_held, sums.held);
        assert_int_equal(area->folded_booked, sums.booked);
        assert_int_equal(e->areas[i].held, sums.held);
        assert_int_equal(e->areas[i].booked, sums.booked);
        assert_int_equal(e->areas[i].blocked, sums.blocked);
        assert_true(paper_blocks_equal(&e->areas[i].blocks, &area->blocks));
        assert_int_equal(e->areas[i].pending, 0);
        assert_int_equal(e->areas[i].available,
                         e->def->areas.v[i].capacity - sums.held - sums.booked - sums.blocked);
        assert_int_equal(e->areas[i].booked_shown, sums.booked);
        assert_int_equal(e->areas[i].blocked_shown, sums.blocked);
        all.held += sums.held;
        all.booked += sums.booked;
        all.blocked += sums.blocked;
    }
    return all;
}

static void check_event(const struct paper_event *pe)
{
    const struct event *e = pe->event;
    assert_int_equal(pe->folded_status, pe->status);
    assert_int_equal(e->status, pe->status);
    assert_int_equal(e->status_draft, pe->status);
    assert_true(event_terms_equal(e->terms, &pe->terms));
    assert_ptr_equal(e->terms_shown, e->terms);
    assert_int_equal(e->max_per_hold, pe->terms.max_per_hold);
    assert_int_equal(e->hold_ttl_ms, pe->terms.hold_ttl_ms);
    assert_int_equal(e->sales_open_at, pe->terms.sales_open_at);
    assert_int_equal(e->sales_close_at, pe->terms.sales_close_at);
}

/* Asserts that the count of an address, or of a /48, is the sum of its live holds. */
static void check_client(struct paper *p, uint64_t client)
{
    uint32_t places = 0;
    for (size_t i = 0; i < p->holds.n; i++) {
        const struct hold_row *row = &p->holds.v[i].row;
        if ((row->client == client || client_number_network(row->client) == client) &&
            row->status == HOLD_ACTIVE)
            places += places_count(row->n_seats, row->areas, row->n_areas);
    }
    assert_int_equal(view_client_places(p->view, client), places);
}

static void check_seat(struct paper *p, const struct paper_event *pe, uint32_t i)
{
    const struct event *e = pe->event;
    const struct paper_seat *seat = &pe->seats[i];
    uint64_t shown = seat_shown(e, i);
    assert_int_equal(seat->folded, seat->status);
    assert_int_equal(seat->folded_hold, seat->hold);
    assert_int_equal(seat->folded_channel, seat->channel);
    assert_int_equal(e->seats[i].status, seat->status);
    assert_int_equal(e->seats[i].channel, seat->channel);
    assert_int_equal(seat_hold(e, i), seat->hold);
    assert_int_equal(seat_head(&e->seats[i]), seat->last_seq);
    assert_int_equal(e->seats[i].pending, 0);
    assert_int_equal(seat_shown_status(shown), seat->status);
    assert_int_equal(seat_shown_until(shown), seat->status == SEAT_HELD ? seat->expires_at : 0);
    assert_int_equal(seat->hold != 0, seat->status == SEAT_HELD || seat->status == SEAT_BOOKED);
    if (seat->status == SEAT_BOOKED)
        assert_true(is_booked(p, &paper_hold(p, seat->hold)->row));
    assert_int_equal(seat->row, seat_row_status(seat->status, seat->channel));
    assert_int_equal(seat->row_hold, seat->status == SEAT_BOOKED ? seat->hold : 0);
    if (seat->row != SEAT_AVAILABLE)
        assert_int_equal(seat->row_channel, seat->channel);
}

static void check_seats(struct paper *p, struct paper_event *pe, uint32_t *ret_held)
{
    struct event *e = pe->event;
    uint32_t counts[4] = {0};
    size_t sold = 0;
    for (uint32_t i = 0; i < e->def->n_seats; i++) {
        check_seat(p, pe, i);
        counts[pe->seats[i].status]++;
    }
    for (size_t i = 0; i < p->sales.n; i++)
        sold += SEAT_EVENT(p->sales.v[i].seat) == pe->clock.event;
    assert_int_equal(sold, counts[SEAT_BOOKED]);
    struct event_counts shown;
    const struct area_sums areas = check_areas(p, pe);
    int64_t capacity = event_def_capacity(e->def);
    check_event(pe);
    event_read_counts(e, &shown);
    assert_int_equal(shown.seq, pe->clock.seq);
    assert_int_equal(shown.held, counts[SEAT_HELD] + areas.held);
    assert_int_equal(shown.booked, counts[SEAT_BOOKED] + areas.booked);
    assert_int_equal(shown.available, capacity - shown.held - shown.booked - shown.blocked);
    assert_int_equal(shown.blocked, counts[SEAT_BLOCKED] + areas.blocked);
    uint32_t seat, indexed;
    best_find(e, &(struct best_want){.quantity = 1, .section = -1}, &seat, &indexed);
    assert_int_equal(indexed, counts[SEAT_AVAILABLE]);
    assert_int_equal(pe->clock.seq, pe->folded_seq);
    if (p->payments.n ||
        p->jobs.n) /* refunds and notifications have numbers that the log does not name */
        assert_true(pe->clock.fence >= pe->folded_fence);
    else
        assert_int_equal(pe->clock.fence, pe->folded_fence);
    assert_memory_equal(&e->clock, &pe->clock, sizeof pe->clock);
    assert_memory_equal(&e->draft, &pe->clock, sizeof pe->clock);
    *ret_held += counts[SEAT_HELD];
}

void paper_check(struct paper *p)
{
    uint32_t held = 0, owned = 0;
    size_t live = 0;
    for (size_t i = 0; i < p->events.n; i++)
        check_seats(p, &p->events.v[i], &held);
    for (size_t i = 0; i < p->holds.n; i++) {
        check_hold(p, &p->holds.v[i]);
        if (p->holds.v[i].row.client)
            check_client(p, p->holds.v[i].row.client);
        if (client_number_network(p->holds.v[i].row.client))
            check_client(p, client_number_network(p->holds.v[i].row.client));
        if (p->holds.v[i].row.owner)
            check_owner(p, &p->holds.v[i].row);
        if (p->holds.v[i].row.status == HOLD_ACTIVE) {
            owned += p->holds.v[i].row.n_seats;
            live++;
        }
    }
    /* Each live hold has all its seats, so if as many seats are held as owned, each has one owner
     * (I1). */
    assert_int_equal(held, owned);
    assert_int_equal(view_holds_len(p->view), live);
    assert_int_equal(view_hold_table(p->view)->deadlines.nodes.n, live);
    check_heap(p->view);
    paper_money_check(p);
}

static int by_key(const void *a, const void *b)
{
    const struct hold *const *x = a, *const *y = b;
    return ((*x)->key > (*y)->key) - ((*x)->key < (*y)->key);
}

static void dump_clock(const char *name, const struct clock_row *row, struct buf *out)
{
    buf_printf(out, "%s %lld %lld %lld %lld\n", name, (long long)row->event, (long long)row->seq,
               (long long)row->fence, (long long)row->now);
}

static void dump_area(const struct area *area, struct buf *out)
{
    buf_printf(out, "area %lld %lld %lld shown %lld %lld %lld %u blocks", (long long)area->held,
               (long long)area->booked, (long long)area->blocked, (long long)area->available,
               (long long)area->booked_shown, (long long)area->blocked_shown, area->pending);
    for (size_t i = 0; i < area->blocks.list.n; i++)
        buf_printf(out, " %u of %u", area->blocks.list.v[i].places, area->blocks.list.v[i].channel);
    buf_char(out, '\n');
}

static void dump_terms(const char *name, const struct event_terms *t, struct buf *out)
{
    buf_printf(out, "%s %s %s %s %lld %lld %lld %lld %lld %d %d prices", name, t->name,
               t->venue ? t->venue : "-", t->metadata ? t->metadata : "-", (long long)t->starts_at,
               (long long)t->sales_open_at, (long long)t->sales_close_at, (long long)t->hold_ttl_ms,
               (long long)t->hold_max_ms, t->max_per_hold, t->max_per_owner);
    for (size_t i = 0; i < t->prices.n; i++)
        buf_printf(out, " %lld", (long long)t->prices.v[i]);
    for (size_t i = 0; i < t->channels.n; i++)
        buf_printf(out, " channel %s", t->channels.v[i]);
    buf_char(out, '\n');
}

/* Prints the areas, the status, the terms, and the seats that best available would choose next. */
static void dump_places(struct event *e, struct buf *out)
{
    buf_printf(out, "status %d %d\n", e->status, (int)e->status_draft);
    dump_terms("terms", e->terms, out);
    dump_terms("shown", e->terms_shown, out);
    for (size_t i = 0; i < e->def->areas.n; i++)
        dump_area(&e->areas[i], out);
    for (uint32_t quantity = 1; quantity <= 3; quantity++) {
        uint32_t seats[3] = {0}, available = 0;
        const struct best_want want = {.quantity = quantity, .section = -1, .adjacent = true};
        bool found = best_find(e, &want, seats, &available);
        buf_printf(out, "best %d %u of %u: %u %u %u\n", found, quantity, available, seats[0],
                   seats[1], seats[2]);
    }
}

void paper_dump(const struct paper *p, struct buf *out)
{
    VEC(const struct hold *) holds = {0};
    const struct hold_table *t = view_hold_table(p->view);
    for (size_t i = 0; i < p->events.n; i++) {
        struct event *e = p->events.v[i].event;
        struct event_counts counts;
        event_read_counts(e, &counts);
        dump_clock("clock", &e->clock, out);
        dump_clock("draft", &e->draft, out);
        buf_printf(out, "seq %lld counts %ld %ld %ld %ld\n", (long long)counts.seq,
                   counts.available, counts.held, counts.booked, counts.blocked);
        dump_places(e, out);
        for (uint32_t s = 0; s < e->def->n_seats; s++)
            buf_printf(out, "seat %u %d %lld %u %llu %lld channel %u\n", s, e->seats[s].status,
                       (long long)seat_hold(e, s), (unsigned)e->seats[s].pending,
                       (unsigned long long)seat_shown(e, s), (long long)seat_head(&e->seats[s]),
                       e->seats[s].channel);
    }
    const struct table_node *x = table_first(&t->by_key);
    for (; x; x = table_after(&t->by_key, x))
        *vec_push(&holds) = (const struct hold *)x;
    if (holds.n)
        qsort(holds.v, holds.n, sizeof *holds.v, by_key);
    for (size_t i = 0; i < holds.n; i++) {
        const struct hold *h = holds.v[i];
        buf_printf(out, "hold %lld %lld %lld %lld status %d pending %u %s", (long long)h->key,
                   (long long)h->fence, (long long)h->expires_at, (long long)h->max_expires_at,
                   h->status, h->pending, h->due.place ? "timed" : "untimed");
        for (uint32_t s = 0; s < h->n_seats; s++)
            buf_printf(out, " %u", h->seats[s]);
        for (uint32_t k = 0; k < h->n_areas; k++)
            buf_printf(out, " %u of area %u", h->areas[k].quantity, h->areas[k].area);
        if (h->channel)
            buf_printf(out, " channel %u", h->channel);
        if (h->payment)
            buf_printf(out, " payment %lld", (long long)h->payment);
        if (h->owner)
            buf_printf(out, " owner %llu", (unsigned long long)h->owner);
        if (h->owner && h->event->terms->max_per_owner) /* else bookings are not counted */
            buf_printf(out, " of %lld", (long long)view_owner_places(p->view, h->owner));
        if (h->client)
            buf_printf(out, " client %llu of %u", (unsigned long long)h->client,
                       view_client_places(p->view, h->client));
        buf_char(out, '\n');
    }
    buf_printf(out, "holds %zu heap %zu\n", t->by_key.n, t->deadlines.nodes.n);
    buf_char(out, '\0');
    check_heap(p->view);
    vec_close(&holds);
}
