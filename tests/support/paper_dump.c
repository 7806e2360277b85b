/* What can be seen of a view, as text; see paper.h. */
#include "support/paper.h"

#include <stdlib.h>

#include "rules/best.h"
#include "sim/check.h"
#include "view/view_holds.h"

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
    buf_printf(out, "%s %s %s %s %lld %lld %lld %lld %lld %lld %lld %lld prices", name, t->name,
               t->venue ? t->venue : "-", t->metadata ? t->metadata : "-",
               (long long)t->starts_at.ms, (long long)t->sales_open_at,
               (long long)t->sales_close_at, (long long)t->hold_ttl_ms, (long long)t->hold_max_ms,
               (long long)t->max_per_hold, (long long)t->max_per_owner, (long long)t->lone_seats);
    for (size_t i = 0; i < t->prices.n; i++)
        buf_printf(out, " %lld", (long long)t->prices.v[i]);
    for (size_t i = 0; i < t->types.n; i++) {
        buf_printf(out, " type %s %s", t->types.v[i].id, t->types.v[i].name);
        for (size_t p = 0; p < t->types.v[i].prices.n; p++)
            buf_printf(out, " %lld", (long long)t->types.v[i].prices.v[p]);
    }
    for (size_t i = 0; i < t->channels.n; i++)
        buf_printf(out, " channel %s", t->channels.v[i]);
    buf_char(out, '\n');
}

/* Prints the areas, the status, the terms, and the seats that best available would choose next. */
static void dump_places(struct event *e, struct buf *out)
{
    buf_printf(out, "status %d %d\n", e->shown.status, (int)e->status_draft);
    dump_terms("terms", e->terms, out);
    dump_terms("shown", e->shown.terms, out);
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
    check_deadlines(p->view);
    vec_close(&holds);
}
