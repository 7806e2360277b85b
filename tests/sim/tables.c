/* Looking up and copying rows of the simulated ledger; see tables.h. */
#include "sim/tables.h"

#include <stdlib.h>
#include <string.h>

static void event_close(struct sim_event *e)
{
    for (size_t i = 0; i < e->holds.n; i++) {
        hold_row_close(&e->holds.v[i].row);
        booking_row_close(&e->holds.v[i].booking);
    }
    vec_close(&e->holds);
    for (size_t i = 0; i < e->waits.n; i++)
        wait_row_close(&e->waits.v[i]);
    vec_close(&e->waits);
    vec_close(&e->log);
    for (size_t i = 0; e->def && i < e->def->areas.n; i++)
        vec_close(&e->areas[i].blocks.list);
    for (size_t i = 0; i < e->past.n; i++)
        event_terms_close(&e->past.v[i].terms);
    vec_close(&e->past);
    free(e->seats);
    free(e->areas);
    free(e->heads_seqs);
    event_def_free(e->def);
}

void sim_tables_close(struct sim_ledger *sim)
{
    for (size_t i = 0; i < sim->events.n; i++)
        event_close(&sim->events.v[i]);
    for (size_t i = 0; i < sim->keys.n; i++)
        key_row_close(&sim->keys.v[i]);
    vec_close(&sim->events);
    vec_close(&sim->keys);
    sim_money_close(sim);
}

struct sim_event *sim_event(const struct sim_ledger *sim, int64_t event)
{
    return event >= 0 && event < (int64_t)sim->events.n ? &sim->events.v[event] : NULL;
}

static int hold_order(const void *key, const void *hold)
{
    int64_t a = *(const int64_t *)key, b = ((const struct sim_hold *)hold)->row.id.key;
    return (a > b) - (a < b);
}

struct sim_hold *sim_hold(const struct sim_ledger *sim, int64_t hold)
{
    const struct sim_event *e = sim_event(sim, HOLD_EVENT(hold));
    if (!e || !e->holds.n)
        return NULL;
    return bsearch(&hold, e->holds.v, e->holds.n, sizeof *e->holds.v, hold_order);
}

struct key_row *sim_key(const struct sim_ledger *sim, const uint8_t hash[KEY_HASH_SIZE])
{
    for (size_t i = 0; i < sim->keys.n; i++)
        if (memcmp(sim->keys.v[i].hash, hash, KEY_HASH_SIZE) == 0)
            return &sim->keys.v[i];
    return NULL;
}

struct payment_row *sim_payment(const struct sim_ledger *sim, int64_t booking, int64_t payment)
{
    for (size_t i = 0; i < sim->payments.n; i++)
        if (sim->payments.v[i].id.key == booking && sim->payments.v[i].payment == payment)
            return &sim->payments.v[i];
    return NULL;
}

struct refund_row *sim_refund(const struct sim_ledger *sim, int64_t booking, int64_t refund)
{
    for (size_t i = 0; i < sim->refunds.n; i++)
        if (sim->refunds.v[i].booking == booking && sim->refunds.v[i].refund == refund)
            return &sim->refunds.v[i];
    return NULL;
}

struct job_row *sim_job(const struct sim_ledger *sim, int64_t booking, int64_t job)
{
    for (size_t i = 0; i < sim->jobs.n; i++)
        if (sim->jobs.v[i].booking == booking && sim->jobs.v[i].job == job)
            return &sim->jobs.v[i];
    return NULL;
}

const struct booking_row *sim_booking_of(const struct sim_ledger *sim, int64_t booking,
                                         int64_t payment)
{
    for (size_t i = 0; i < sim->bookings_past.n; i++)
        if (sim->bookings_past.v[i].id.key == booking && sim->bookings_past.v[i].payment == payment)
            return &sim->bookings_past.v[i];
    return &sim_hold(sim, booking)->booking;
}

bool sim_is_booked(const struct sim_ledger *sim, const struct sim_hold *hold)
{
    const struct booking_row *booking = &hold->booking;
    if (hold->row.status != HOLD_CONFIRMED || booking->status != BOOKING_PENDING)
        return hold->row.status == HOLD_CONFIRMED && booking->status == BOOKING_CONFIRMED;
    return sim_payment(sim, booking->id.key, booking->payment)->status == PAYMENT_CAPTURING;
}

struct webhook_write *sim_webhook(const struct sim_ledger *sim, const char *id)
{
    for (size_t i = 0; i < sim->webhooks.n; i++)
        if (strcmp(sim->webhooks.v[i].event.id, id) == 0)
            return &sim->webhooks.v[i];
    return NULL;
}

void sim_wanted_read(const struct sim_ledger *sim, const struct batch_read *r)
{
    for (size_t i = 0; i < r->keys.n; i++) {
        const struct key_row *row = sim_key(sim, r->keys.v[i].hash);
        if (row && row->created_at > r->now - KEY_KEPT_MS)
            *r->keys.v[i].ret = sim_key_copy(row);
    }
    for (size_t i = 0; i < r->holds.n; i++) {
        const struct sim_hold *hold = sim_hold(sim, r->holds.v[i].hold);
        if (hold)
            *r->holds.v[i].ret = sim_hold_read(sim, hold);
        if (hold && r->holds.v[i].ret_booking && hold->booking.id.key)
            *r->holds.v[i].ret_booking = sim_booking_read(sim, &hold->booking);
        if (r->holds.v[i].ret_money) /* notices about entries of waiting lists are of no hold */
            sim_money_read(sim, r->holds.v[i].hold, r->holds.v[i].ret_money);
    }
    for (size_t i = 0; i < r->waits.n; i++) {
        const struct wait_row *row = sim_wait(sim, r->waits.v[i].entry);
        if (row)
            *r->waits.v[i].ret = sim_wait_read(sim, row);
    }
    for (size_t i = 0; i < r->webhooks.n; i++)
        if (sim_webhook(sim, r->webhooks.v[i].id))
            *r->webhooks.v[i].ret_known = true;
}

/* ---- copies ---- */

/* Copies `len` bytes to *next, which then points behind them. */
static const void *put(char **next, const void *data, size_t len)
{
    char *copy = *next;
    if (len)
        memcpy(copy, data, len);
    *next += len;
    return copy;
}

/* The same for a text, which gets a NUL; NULL stays NULL. */
static const char *put_text(char **next, const char *text, size_t len)
{
    if (!text)
        return NULL;
    const char *copy = put(next, text, len);
    *(*next)++ = '\0';
    return copy;
}

struct hold_row sim_hold_copy(const struct hold_row *row)
{
    struct hold_row copy = *row;
    size_t seats_size = row->n_seats * sizeof *row->seats;
    size_t areas_size = row->n_areas * sizeof *row->areas;
    size_t prices_size = row->n_prices * sizeof *row->prices;
    char *next = copy.owned =
        hf_alloc(prices_size + seats_size + areas_size + row->owner_len + row->metadata_len + 2);
    copy.prices = put(&next, row->prices, prices_size);
    copy.seats = put(&next, row->seats, seats_size);
    copy.areas = put(&next, row->areas, areas_size);
    copy.owner = put_text(&next, row->owner, row->owner_len);
    copy.metadata = put_text(&next, row->metadata, row->metadata_len);
    return copy;
}

void sim_hold_set_places(struct hold_row *row, const struct hold_places_write *to)
{
    struct hold_row before = *row, after = *row;
    after.amount = to->amount;
    after.seats = to->seats;
    after.areas = to->areas;
    after.prices = to->prices;
    after.n_seats = to->n_seats;
    after.n_areas = to->n_areas;
    after.n_prices = to->n_prices;
    *row = sim_hold_copy(&after);
    free(before.owned);
}

struct booking_row sim_booking_copy(const struct booking_row *row, const struct hold_row *hold)
{
    static const struct hold_row no_places;
    const struct hold_row *places = hold ? hold : &no_places;
    struct booking_row copy = *row;
    size_t seats_size = places->n_seats * sizeof *places->seats;
    size_t areas_size = places->n_areas * sizeof *places->areas;
    size_t prices_size = places->n_prices * sizeof *places->prices;
    size_t merged_size = row->n_merged * sizeof *row->merged;
    char *next = copy.owned =
        hf_alloc(merged_size + prices_size + seats_size + areas_size + row->reference_len +
                 row->reason_len + places->owner_len + row->email_len + 4);
    copy.merged = put(&next, row->merged, merged_size);
    copy.prices = put(&next, places->prices, prices_size);
    copy.n_prices = places->n_prices;
    memcpy(copy.hold_secret, places->id.secret, ID_SECRET_SIZE);
    copy.n_seats = places->n_seats;
    copy.n_areas = places->n_areas;
    copy.seats = put(&next, places->seats, seats_size);
    copy.areas = put(&next, places->areas, areas_size);
    copy.reference = put_text(&next, row->reference, row->reference_len);
    copy.reason = put_text(&next, row->reason, row->reason_len);
    copy.owner = put_text(&next, places->owner, places->owner_len);
    copy.owner_len = places->owner_len;
    copy.email = put_text(&next, row->email, row->email_len);
    copy.expires_at = places->expires_at;
    return copy;
}

struct booking_row sim_booking_read(const struct sim_ledger *sim, const struct booking_row *row)
{
    const struct sim_event *e = sim_event(sim, HOLD_EVENT(row->id.key));
    struct booking_row from = *row;
    VEC(struct id) merged = {0};
    for (size_t i = 0; i < e->holds.n; i++)
        if (e->holds.v[i].row.carrier.id.key == row->id.key)
            *vec_push(&merged) = e->holds.v[i].row.id;
    from.merged = merged.v;
    from.n_merged = (uint32_t)merged.n;
    struct booking_row copy = sim_booking_copy(&from, &sim_hold(sim, row->id.key)->row);
    vec_close(&merged);
    return copy;
}

struct hold_row sim_hold_read(const struct sim_ledger *sim, const struct sim_hold *hold)
{
    struct hold_row row = sim_hold_copy(&hold->row);
    const struct sim_hold *carrier = sim_hold(sim, row.carrier.id.key);
    const struct booking_row *booking = carrier ? &carrier->booking : &hold->booking;
    row.booking = booking->status;
    memcpy(row.booking_secret, booking->id.secret, ID_SECRET_SIZE);
    if (carrier) {
        row.carrier.status = carrier->row.status;
        row.carrier.expires_at = carrier->row.expires_at;
    }
    return row;
}

struct key_row sim_key_copy(const struct key_row *row)
{
    struct key_row copy = *row;
    copy.answer = copy.owned = hf_strndup(row->answer_len ? row->answer : "", row->answer_len);
    copy.found = true;
    return copy;
}

static char *copy_text(const char *text) { return text ? hf_strndup(text, strlen(text)) : NULL; }

struct event_def *sim_def_copy(const struct event_def *def)
{
    struct event_def *copy = hf_alloc(sizeof *copy);
    *copy = *def;
    event_terms_copy(&def->terms, &copy->terms);
    memset(&copy->sections, 0, sizeof copy->sections);
    memset(&copy->areas, 0, sizeof copy->areas);
    for (size_t s = 0; s < def->sections.n; s++) {
        const struct section_def *from = &def->sections.v[s];
        struct section_def *section = vec_push(&copy->sections);
        section->name = copy_text(from->name);
        section->tier = copy_text(from->tier);
        section->listed = from->listed;
        for (size_t r = 0; r < from->rows.n; r++)
            *vec_push(&section->rows) = (struct row_def){.name = copy_text(from->rows.v[r].name),
                                                         .seats = from->rows.v[r].seats};
    }
    for (size_t a = 0; a < def->areas.n; a++) {
        struct area_def *area = vec_push(&copy->areas);
        *area = def->areas.v[a];
        area->name = copy_text(area->name);
    }
    hf_check(event_def_number(copy));
    return copy;
}

void sim_blocks_copy(const struct area_blocks *from, struct area_blocks *to)
{
    vec_clear(&to->list);
    for (size_t i = 0; i < from->list.n; i++)
        *vec_push(&to->list) = from->list.v[i];
}

bool sim_blocks_equal(const struct area_blocks *a, const struct area_blocks *b)
{
    return a->list.n == b->list.n &&
           (!a->list.n || memcmp(a->list.v, b->list.v, a->list.n * sizeof *a->list.v) == 0);
}
