/* /v1/bookings: one booking by its id, lists of them, refunds, and taking a sale back.  POST
 * /v1/bookings is in booking_create.c.  On HTTP threads. */
#include <string.h>

#include "api/idempotency.h"
#include "api/page.h"
#include "api/render.h"
#include "api/routes.h"
#include "base/log.h"
#include "json/fields.h"

#define REASON_CHARS_MAX 255
#define AMOUNT_MAX INT64_C(1000000000000000)

/* Finds the booking that the path names, and its event.  Returns NULL if the call has been
 * answered, or runs again. */
static struct event *path_booking(struct call *c, struct id *ret)
{
    *ret = (struct id){0};
    if (!id_parse(c->http.segment.data, c->http.segment.len, "bkg_", ret))
        ret->key = 0;
    return call_event(c, HOLD_EVENT(ret->key), VERDICT_NO_SUCH_BOOKING);
}

void bookings_get(struct request *r)
{
    struct call *c = call_of(r);
    struct id id;
    struct event *e = path_booking(c, &id);
    if (!e)
        return;
    c->command.kind = CMD_BOOKING_GET;
    c->command.event = e;
    c->command.booking_get.id = id;
    call_submit(c, call_answer);
}

/* ---- cancel ---- */

static bool read_cancel(struct call *c, struct booking_cancel *ret, struct hf_err *err)
{
    static const char *const known[] = {"reason", NULL};
    const struct fields f = {.object = call_json(c, true, err), .path = "", .err = err};
    return f.object && fields_known(&f, known) &&
           field_text(&f, "reason", NULLABLE, 0, REASON_CHARS_MAX, &ret->reason, &ret->reason_len);
}

void bookings_cancel(struct request *r)
{
    struct call *c = call_of(r);
    struct hf_err err = {0};
    struct booking_cancel op = {0};
    if (!idempotency_read(c))
        return;
    if (!read_cancel(c, &op, &err)) {
        call_invalid(c, err.msg);
        return;
    }
    struct event *e = path_booking(c, &op.id);
    if (!e)
        return;
    op.hold.id.key = op.id.key; /* a booking has the key of its hold */
    c->command.kind = CMD_BOOKING_CANCEL;
    c->command.event = e;
    c->command.cancel = op;
    idempotency_hash_request(c);
    call_submit(c, call_answer);
}

/* ---- refund ---- */

static bool read_refund(struct call *c, int64_t *ret_amount, struct hf_err *err)
{
    static const char *const known[] = {"amount", NULL};
    const struct fields f = {.object = call_json(c, true, err), .path = "", .err = err};
    return f.object && fields_known(&f, known) &&
           field_int(&f, "amount", OPTIONAL, 1, AMOUNT_MAX, ret_amount);
}

static void booking_refunded(struct request *r)
{
    struct call *c = call_of(r);
    if (c->command.verdict != VERDICT_NOT_REFUNDABLE) {
        call_answer(r);
        return;
    }
    problem_open(r, problem_of(VERDICT_NOT_REFUNDABLE), NULL);
    json_put_int(&r->out, "available", c->command.refund.available);
    problem_close(r);
}

void bookings_refund(struct request *r)
{
    struct call *c = call_of(r);
    struct hf_err err = {0};
    struct booking_refund op = {0};
    if (!idempotency_read(c))
        return;
    if (!read_refund(c, &op.amount, &err)) {
        call_invalid(c, err.msg);
        return;
    }
    struct event *e = path_booking(c, &op.id);
    if (!e)
        return;
    op.hold.id.key = op.id.key;
    c->command.kind = CMD_BOOKING_REFUND;
    c->command.event = e;
    c->command.refund = op;
    idempotency_hash_request(c);
    call_submit(c, booking_refunded);
}

/* ---- GET /v1/bookings ---- */

static void bookings_listed(struct request *r);

/* Looks up the event of a booking that is not in memory, and goes on with bookings_listed.  The
 * page waits in the call meanwhile. */
static void load_event(struct call *c, int64_t event)
{
    c->bookings.page = c->command.booking_list;
    c->command.booking_list = NULL;
    c->command.kind = CMD_EVENT_LOAD;
    c->command.event_key = event;
    call_submit(c, bookings_listed);
}

/* Renders booking after booking, so that only one of their events has to be in memory at a time. */
static void bookings_listed(struct request *r)
{
    struct call *c = call_of(r);
    char cursor[24];
    if (c->command.verdict != VERDICT_OK) {
        r->out.len = 0;
        call_answer(r);
        return;
    }
    if (c->bookings.page) {
        c->command.kind = CMD_BOOKING_LIST;
        c->command.booking_list = c->bookings.page;
        c->bookings.page = NULL;
    }
    const struct booking_page *page = c->command.booking_list;
    if (c->bookings.n_rendered == 0) {
        r->out.len = 0;
        page_open(c);
    }
    for (; c->bookings.n_rendered < page->n; c->bookings.n_rendered++) {
        const struct booking_row *booking = &page->bookings[c->bookings.n_rendered];
        struct event *e = call_loaded_event(c, booking->event);
        if (!e) {
            load_event(c, booking->event);
            return;
        }
        page_next(c);
        render_booking((struct typed_event){.event = e}, booking, &page->money, false, &r->out);
    }
    page_close(c,
               page->more && page->n ? log_int(cursor, page->bookings[page->n - 1].id.key) : NULL);
}

static bool read_status(const char *text, enum booking_status *ret)
{
    for (enum booking_status status = BOOKING_PENDING; status <= BOOKING_CANCELLED; status++)
        if (strcmp(text, status_text(AUDIT_BOOKING, status)) == 0) {
            *ret = status;
            return true;
        }
    return false;
}

/* Reads everything but the event. */
static bool read_query(struct call *c, struct bookings_query *ret)
{
    const struct request *r = &c->http;
    const char *status = request_query(r, "status"), *cursor = request_query(r, "cursor");
    if (!page_filter(c, "reference", &ret->reference) || !page_filter(c, "owner", &ret->owner))
        return false;
    ret->reference_len = ret->reference ? strlen(ret->reference) : 0;
    ret->owner_len = ret->owner ? strlen(ret->owner) : 0;
    if (status && !read_status(status, &ret->status)) {
        call_invalid(c, "status must be pending, confirmed, failed or cancelled");
        return false;
    }
    if (cursor && !parse_digits(cursor, strlen(cursor), &ret->before)) {
        page_bad_cursor(c);
        return false;
    }
    return page_limit(c, BOOKINGS_LIST_MAX, &ret->limit);
}

void bookings_list(struct request *r)
{
    struct call *c = call_of(r);
    const char *event = request_query(r, "event");
    struct bookings_query query = {.limit = PAGE_LIMIT_DEFAULT};
    if (!read_query(c, &query))
        return;
    if (event) {
        const struct event *e = call_event_named(c, event, strlen(event));
        if (!e)
            return;
        query.event = e->def->id.key;
        if (query.before && HOLD_EVENT(query.before) != query.event) {
            page_bad_cursor(c);
            return;
        }
    }
    struct booking_page *page = hf_alloc(sizeof *page);
    page->query = query;
    c->command.kind = CMD_BOOKING_LIST;
    c->command.booking_list = page;
    call_submit(c, bookings_listed);
}
