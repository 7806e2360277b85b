/* See render.h.  Holds and bookings, and the body of each command's answer. */
#include "api/render.h"

#include <string.h>

#include "api/api.h"
#include "checkout/checkout.h"
#include "http/request.h"

#define MASK "*****************" /* as long as the secret in an id */

void render_id(struct buf *out, const char *name, const char *prefix, const struct id *id,
               bool masked)
{
    char text[ID_TEXT_SIZE];
    size_t len = id_format(text, prefix, id);
    if (masked)
        memcpy(text + len - (sizeof MASK - 1), MASK, sizeof MASK - 1);
    json_put_bytes(out, name, text, len);
}

/* A counted seat's name is at most two NAME_SIZEs, two dashes and a number, and seldom needs an
 * escape. */
void render_seat(const struct event *e, uint32_t index, struct buf *out)
{
    if (e->def->venue) {
        const char *id = venue_id(e->def->venue, index);
        buf_json(out, id, strlen(id));
        return;
    }
    buf_char(out, '"');
    size_t start = out->len;
    event_seat_name(e, index, out);
    size_t len = out->len - start;
    if (!memchr(out->data + start, '"', len) && !memchr(out->data + start, '\\', len)) {
        buf_char(out, '"');
        return;
    }
    char name[2 * NAME_SIZE + 16];
    hf_check(len <= sizeof name);
    memcpy(name, out->data + start, len);
    out->len = start - 1;
    buf_json(out, name, len);
}

void render_seats(const struct event *e, const uint32_t *seats, uint32_t n, struct buf *out)
{
    buf_char(out, '[');
    for (uint32_t i = 0; i < n; i++) {
        if (i)
            buf_char(out, ',');
        render_seat(e, seats[i], out);
    }
    buf_char(out, ']');
}

static void put_area_claims(const struct event *e, const struct area_claim *areas, uint32_t n,
                            struct buf *out)
{
    buf_char(out, '{');
    for (uint32_t i = 0; i < n; i++) {
        json_put_text(out, NULL, e->def->areas.v[areas[i].area].name);
        buf_char(out, ':');
        buf_int(out, areas[i].quantity);
    }
    buf_char(out, '}');
}

/* Where the places of a hold or a booking are being put one by one. */
struct typed_places {
    const struct event *event;
    const struct event_terms *terms;
    struct price_reader prices;
};

static void put_type(struct buf *out, const struct event_terms *terms, uint32_t type)
{
    json_put_text(out, "type", type < terms->types.n ? terms->types.v[type].id : NULL);
}

/* What follows the name of a place. */
static void put_typed_price(struct typed_places *t, struct buf *out)
{
    int64_t price = 0;
    uint32_t type = 0;
    bool is_known = price_reader_next(&t->prices, 1, &price, &type);
    put_type(out, t->terms, type);
    json_put_name(out, "amount");
    if (is_known)
        buf_int(out, price);
    else
        buf_lit(out, "null");
    buf_char(out, '}');
}

/* Every place with its type and what it costs. */
static void put_typed_places(struct buf *out, struct typed_places *t,
                             const struct hold_places_write *places)
{
    json_open(out, "places", '[');
    for (uint32_t i = 0; i < places->n_seats; i++) {
        json_open(out, NULL, '{');
        json_put_name(out, "seat");
        render_seat(t->event, places->seats[i], out);
        put_typed_price(t, out);
    }
    for (uint32_t i = 0; i < places->n_areas; i++)
        for (uint32_t n = places->areas[i].quantity; n > 0; n--) {
            json_open(out, NULL, '{');
            json_put_text(out, "area", t->event->def->areas.v[places->areas[i].area].name);
            put_typed_price(t, out);
        }
    buf_char(out, ']');
}

/* What holds and bookings have in common: places and money. */
static void put_places(struct buf *out, struct typed_event typed,
                       const struct hold_places_write *places)
{
    struct event *e = typed.event;
    json_put_name(out, "seats");
    render_seats(e, places->seats, places->n_seats, out);
    json_put_name(out, "areas");
    put_area_claims(e, places->areas, places->n_areas, out);
    if (typed.terms || atomic_load_explicit(&e->shown.has_types, memory_order_relaxed)) {
        const struct event_terms *terms = typed.terms ? NULL : event_terms_take(e);
        struct typed_places t = {.event = e,
                                 .terms = typed.terms ? typed.terms : terms,
                                 .prices = price_reader(places->prices, places->n_prices)};
        put_typed_places(out, &t, places);
        event_terms_give(terms);
    }
    json_put_int(out, "amount", places->amount);
    json_put_text(out, "currency", e->def->currency);
}

#define PLACES_OF(row)                                                                             \
    (&(const struct hold_places_write){.amount = (row)->amount,                                    \
                                       .seats = (row)->seats,                                      \
                                       .areas = (row)->areas,                                      \
                                       .prices = (row)->prices,                                    \
                                       .n_seats = (row)->n_seats,                                  \
                                       .n_areas = (row)->n_areas,                                  \
                                       .n_prices = (row)->n_prices})

/* The booking that was made of the hold, or null. */
static void put_booking_id(const struct hold_row *h, bool masked, struct buf *out)
{
    struct id id = {.key = h->carrier.id.key ? h->carrier.id.key : h->id.key};
    memcpy(id.secret, h->booking_secret, sizeof id.secret);
    bool is_past = h->booking == BOOKING_FAILED && h->status == HOLD_ACTIVE;
    if (h->booking && !is_past)
        render_id(out, "booking", "bkg_", &id, masked);
    else
        json_put_text(out, "booking", NULL);
}

void render_hold(struct typed_event e, const struct hold_row *h, int64_t now, bool masked,
                 struct buf *out)
{
    int64_t left = h->status == HOLD_ACTIVE && h->expires_at > now ? h->expires_at - now : 0;
    buf_lit(out, "{\"object\":\"hold\"");
    render_id(out, "id", "hold_", &h->id, masked);
    json_put_text(out, "event", event_id_text(e.event));
    json_put_text(out, "status", status_text(AUDIT_HOLD, h->status));
    json_put_bytes(out, "owner", h->owner, h->owner_len);
    json_put_int(out, "fence", h->fence);
    put_places(out, e, PLACES_OF(h));
    put_booking_id(h, masked, out);
    if (h->carrier.id.key)
        render_id(out, "booked_with", "hold_", &h->carrier.id, masked);
    json_put_time(out, "created_at", h->created_at);
    json_put_time(out, "expires_at", h->expires_at);
    json_put_int(out, "expires_in_ms", left);
    json_put_time(out, "max_expires_at", h->max_expires_at);
    if (h->metadata) {
        json_put_name(out, "metadata");
        buf_put(out, h->metadata, h->metadata_len);
    }
    buf_char(out, '}');
}

void render_number(int64_t number, int64_t booking, struct buf *out)
{
    static const char digits[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    uint64_t n = (uint64_t)(number ? number : booking);
    buf_char(out, '"');
    for (int i = 11; i >= 0; i--) {
        buf_char(out, digits[n >> 5 * i & 31]);
        if (i == 8 || i == 4)
            buf_char(out, '-');
    }
    buf_char(out, '"');
}

static const struct checkout_config *payments; /* see api_set_payments */

void api_set_payments(const struct checkout_config *config) { payments = config; }

static void put_error(const struct payment_error *error, struct buf *out)
{
    if (!error || (!*error->code && !*error->message)) {
        json_put_text(out, "last_error", NULL);
        return;
    }
    json_open(out, "last_error", '{');
    json_put_text_or_null(out, "code", error->code);
    json_put_text_or_null(out, "decline_code", error->decline_code);
    json_put_text_or_null(out, "message", error->message);
    buf_char(out, '}');
}

static int64_t refunded_of(const struct payment_row *p, const struct money *money)
{
    int64_t sum = 0;
    for (size_t i = 0; i < money->refunds.n; i++)
        if (money->refunds.v[i].payment == p->payment &&
            money->refunds.v[i].status == REFUND_SUCCEEDED)
            sum += money->refunds.v[i].amount;
    return sum;
}

static void put_payment(const struct payment_row *p, const struct money *money, bool shows_secret,
                        struct buf *out)
{
    bool needs_payer = p->status >= PAYMENT_CREATING && p->status <= PAYMENT_PROCESSING;
    buf_lit(out, "{\"object\":\"payment\"");
    json_put_id(out, "id", "pay_", &p->id);
    json_put_text_or_null(out, "provider", payments ? payments->provider : NULL);
    json_put_text_or_null(out, "status", status_text(AUDIT_PAYMENT, p->status));
    json_put_text_or_null(out, "intent", p->intent);
    json_put_text_or_null(out, "client_secret",
                          shows_secret && needs_payer ? p->client_secret : NULL);
    json_put_text_or_null(out, "publishable_key",
                          payments ? payments->stripe.publishable_key : NULL);
    json_put_text_or_null(out, "api", payments ? payments->public_api : NULL);
    json_put_int(out, "amount", p->amount);
    json_put_int(out, "amount_received", p->received);
    json_put_int(out, "amount_refunded", refunded_of(p, money));
    json_put_bool(out, "disputed", p->disputed);
    /* Once a payment has succeeded, the refusals before it are of no interest. */
    put_error(p->received ? NULL : &p->error, out);
    buf_char(out, '}');
}

static void put_payment_of(const struct booking_row *b, const struct money *money,
                           bool shows_secret, struct buf *out)
{
    json_put_name(out, "payment");
    for (size_t i = 0; money && b->payment && i < money->payments.n; i++)
        if (money->payments.v[i].payment == b->payment) {
            put_payment(&money->payments.v[i], money, shows_secret && b->status == BOOKING_PENDING,
                        out);
            return;
        }
    buf_lit(out, "null");
}

/* All holds that the booking is of, if there are several. */
static void put_holds(const struct booking_row *b, const struct id *first, struct buf *out)
{
    if (!b->n_merged)
        return;
    json_open(out, "holds", '[');
    json_put_id(out, NULL, "hold_", first);
    for (uint32_t i = 0; i < b->n_merged; i++)
        json_put_id(out, NULL, "hold_", &b->merged[i]);
    buf_char(out, ']');
}

void render_booking(struct typed_event e, const struct booking_row *b, const struct money *money,
                    bool shows_secret, struct buf *out)
{
    struct id hold = {.key = b->id.key};
    memcpy(hold.secret, b->hold_secret, sizeof hold.secret);
    buf_lit(out, "{\"object\":\"booking\"");
    json_put_id(out, "id", "bkg_", &b->id);
    json_put_text(out, "status", status_text(AUDIT_BOOKING, b->status));
    json_put_id(out, "hold", "hold_", &hold);
    put_holds(b, &hold, out);
    json_put_text(out, "event", event_id_text(e.event));
    put_places(out, e, PLACES_OF(b));
    json_put_name(out, "number");
    render_number(b->number, b->id.key, out);
    put_payment_of(b, money, shows_secret, out);
    json_put_int(out, "fence", b->fence);
    json_put_bytes(out, "reference", b->reference, b->reference_len);
    json_put_bytes(out, "owner", b->owner, b->owner_len);
    json_put_time(out, "created_at", b->created_at);
    json_put_time_or_null(out, "expires_at", b->status == BOOKING_PENDING ? b->expires_at : 0);
    json_put_time_or_null(out, "cancelled_at", b->cancelled_at);
    json_put_bytes(out, "reason", b->reason, b->reason_len);
    buf_char(out, '}');
}

/* The event as the view shows it, but with this status. */
static void put_event(struct event *e, enum event_status status, struct buf *out)
{
    const struct event_terms *terms = event_terms_take(e);
    render_event(e->def, terms, e, (int)status, out);
    event_terms_give(terms);
}

/* The event as it is once its waiting list has been paused or resumed. */
static void put_paused(struct event *e, bool pauses, struct buf *out)
{
    const struct event_terms *shown = event_terms_take(e);
    struct event_terms terms;
    event_terms_copy(shown, &terms);
    event_terms_give(shown);
    terms.wait_paused = pauses;
    render_event(e->def, &terms, e, 0, out);
    event_terms_close(&terms);
}

static void put_wait(const struct command *c, const struct wait_row *row, struct buf *out)
{
    render_wait(event_of(c), row, &(const struct wait_view){.now = c->now, .ahead = -1}, out);
}

static void render_blocked(const struct event *e, const struct seats_block *op, struct buf *out)
{
    buf_lit(out, "{\"object\":\"event_seats\"");
    json_put_text(out, "event", event_id_text(e));
    json_put_text(out, "status", op->blocks ? "blocked" : "available");
    json_put_name(out, "seats");
    render_seats(e, op->seats, op->n_named, out);
    if (op->n_sections)
        json_open(out, "sections", '[');
    for (uint32_t i = 0; i < op->n_sections; i++) {
        const char *name = e->def->sections.v[op->sections[i]].name;
        if (i && strcmp(name, e->def->sections.v[op->sections[i - 1]].name) == 0)
            continue; /* zones of a plan that have the same name */
        json_put_text(out, NULL, name);
    }
    if (op->n_sections)
        buf_char(out, ']');
    if (op->n_areas) {
        json_put_name(out, "areas");
        put_area_claims(e, op->areas, op->n_areas, out);
    }
    if (op->channel)
        json_put_bytes(out, "channel", op->channel, op->channel_len);
    buf_char(out, '}');
}

static void render_erasure(const struct command *c, struct buf *out)
{
    buf_lit(out, "{\"object\":\"erasure\"");
    json_put_int(out, "holds", c->owner_erase.holds);
    json_put_int(out, "bookings", c->owner_erase.bookings);
    json_put_int(out, "answers", c->owner_erase.answers);
    buf_char(out, '}');
}

/* The answer that is stored, without the secret that pays. */
static void render_made(struct typed_event e, const struct booking_create *op, struct buf *out)
{
    struct payment_row payment = op->payment;
    const struct money money = {.payments = {.v = &payment, .n = 1}};
    render_booking(e, &op->booking, &money, false, out);
}

/* Commands whose answers are not here have renderers of their own, called by their handlers. */
const struct engine_texts api_texts = {
    .answer = render_answer, .erase = render_erased, .map = render_event_map};

int render_answer(const struct command *c, struct buf *out)
{
    switch (c->kind) {
    case CMD_HOLD_CREATE:
        render_hold(event_of(c), &c->create.hold, c->now, false, out);
        break;
    case CMD_HOLD_GET:
        render_hold(event_of(c), &c->hold_get.row, c->now, false, out);
        break;
    case CMD_HOLD_RENEW:
        render_hold(event_of(c), &c->renew.hold.row, c->now, false, out);
        break;
    case CMD_HOLD_CHANGE:
        render_hold(event_of(c), &c->change.hold.row, c->now, false, out);
        break;
    case CMD_HOLD_EVICT:
        render_hold(event_of(c), &c->release.hold.row, c->now, false, out);
        break;
    case CMD_HOLD_RELEASE:
        return HTTP_NO_CONTENT;
    case CMD_HOLD_CONFIRM:
        render_booking(event_of(c), &c->confirm.booking, NULL, false, out);
        break;
    case CMD_OWNER_ERASE:
        render_erasure(c, out);
        break;
    case CMD_BOOKING_CANCEL:
        render_booking(event_of(c), &c->cancel.booking, &c->cancel.money, false, out);
        break;
    case CMD_BOOKING_CREATE:
        render_made(event_of(c), c->booking_create, out);
        break;
    case CMD_BOOKING_REFUND:
        render_booking(event_of(c), &c->refund.booking, &c->refund.money, false, out);
        break;
    case CMD_BOOKING_GET:
        render_booking(event_of(c), &c->booking_get.row, &c->booking_get.money, true, out);
        break;
    case CMD_EVENT_CREATE:
        render_event(c->event_create, &c->event_create->terms, NULL, 0, out);
        break;
    case CMD_EVENT_OPEN:
        put_event(c->event, EVENT_OPEN, out);
        break;
    case CMD_EVENT_CLOSE:
        put_event(c->event, EVENT_CLOSED, out);
        break;
    case CMD_EVENT_ARCHIVE:
        put_event(c->event, EVENT_ARCHIVED, out);
        break;
    case CMD_EVENT_CANCEL:
        put_event(c->event, EVENT_CANCELLED, out);
        break;
    case CMD_EVENT_CHANGE:
        render_event(c->event->def, c->event_change.after, c->event, (int)c->event_change.status,
                     out);
        break;
    case CMD_WAIT_JOIN:
        put_wait(c, &c->wait_join.wait, out);
        break;
    case CMD_WAIT_CHANGE:
        if (c->wait_change.kind == WAIT_LEAVES)
            return HTTP_NO_CONTENT;
        put_wait(c, &c->wait_change.wait, out);
        break;
    case CMD_WAIT_PAUSE:
    case CMD_WAIT_RESUME:
        put_paused(c->event, c->kind == CMD_WAIT_PAUSE, out);
        break;
    case CMD_SEATS_BLOCK:
    case CMD_SEATS_UNBLOCK:
        render_blocked(c->event, &c->block, out);
        break;
    default:
        break;
    }
    return c->verdict == VERDICT_CREATED ? HTTP_CREATED : HTTP_OK;
}
