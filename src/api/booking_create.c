/* POST /v1/bookings: a buyer books a hold, or several as one, to pay for it.  The booking is stored
 * with the job that creates the intent; then the request waits a moment for that job, so that the
 * answer usually has what the buyer needs to pay.  If the provider is slow, the answer comes
 * without it, and a GET shows it later.  On HTTP threads. */
#include <stdlib.h>
#include <string.h>

#include "api/idempotency.h"
#include "api/render.h"
#include "api/routes.h"
#include "checkout/checkout.h"
#include "json/fields.h"

#define REFERENCE_CHARS_MAX 255
#define HOLD_TEXT_MAX 255
#define WAITS_MAX (3000 / CHECKOUT_WAIT_MS) /* 3 s in all */

/* ---- reading the request ---- */

/* Does it look like an address?  Only the provider's receipt can tell whether it is one. */
static bool is_email(const char *text, size_t len)
{
    const char *at = memchr(text, '@', len);
    if (!at || at == text || at == text + len - 1)
        return false;
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)text[i] <= ' ' || text[i] == 0x7f || text[i] == ',' || text[i] == '<' ||
            text[i] == '>')
            return false;
    return !memchr(at + 1, '@', len - (size_t)(at + 1 - text));
}

/* Reads an id; key 0: the text is none. */
static struct id hold_id(const char *text, size_t len)
{
    struct id id = {0};
    if (!id_parse(text, len, "hold_", &id))
        id = (struct id){0};
    return id;
}

/* Is the text the same as one of the list's first `n`? */
static bool is_repeated(const json_t *list, size_t n)
{
    const json_t *text = json_array_get(list, n);
    for (size_t i = 0; i < n; i++)
        if (json_equal(json_array_get(list, i), text))
            return true;
    return false;
}

/* Reads `holds`.  ret_first is the text of the first. */
static bool read_holds(const struct fields *f, struct booking_create *ret, struct text *ret_first)
{
    const json_t *list = NULL;
    if (!field_array(f, "holds", REQUIRED, &list))
        return false;
    size_t n = json_array_size(list);
    if (n < 2 || n > HOLDS_PER_BOOKING_MAX)
        return field_fail(f, "holds", "must have 2 to 10 items");
    for (size_t i = 0; i < n; i++) {
        struct text id;
        if (!item_text(f, "holds", list, i, HOLD_TEXT_MAX, &id.data, &id.len))
            return false;
        if (is_repeated(list, i))
            return field_fail(f, "holds", "must name each hold once");
        *(i ? &ret->others[i - 1].hold.id : &ret->hold.id) = hold_id(id.data, id.len);
        *ret_first = i ? *ret_first : id;
    }
    ret->n_others = n - 1;
    return true;
}

/* Reads the one hold, or the several.  ret_hold is the text of the first. */
static bool read_named(const struct fields *f, struct booking_create *ret, struct text *ret_hold)
{
    if (json_object_get(f->object, "holds")) {
        if (json_object_get(f->object, "hold"))
            return field_fail(f, "holds", "must not be given together with hold");
        return read_holds(f, ret, ret_hold);
    }
    if (!field_text(f, "hold", REQUIRED, 1, HOLD_TEXT_MAX, &ret_hold->data, &ret_hold->len))
        return false;
    ret->hold.id = hold_id(ret_hold->data, ret_hold->len);
    return true;
}

static bool read_booking(struct call *c, struct booking_create *ret, struct text *ret_hold,
                         struct hf_err *err)
{
    static const char *const known[] = {"hold", "holds", "email", "reference", NULL};
    const struct fields f = {.object = call_json(c, false, err), .path = "", .err = err};
    if (!f.object || !fields_known(&f, known) || !read_named(&f, ret, ret_hold) ||
        !field_text(&f, "email", NULLABLE, 3, EMAIL_LEN_MAX, &ret->email, &ret->email_len) ||
        !field_text(&f, "reference", NULLABLE, 0, REFERENCE_CHARS_MAX, &ret->reference,
                    &ret->reference_len))
        return false;
    if (ret->email && (ret->email_len > EMAIL_LEN_MAX || !is_email(ret->email, ret->email_len)))
        return field_fail(&f, "email", "must be an e-mail address");
    return true;
}

/* ---- waiting for the intent ---- */

static void intent_came(struct request *r);
static void intent_looked_up(struct request *r);

static void look_up_intent(struct request *r)
{
    struct call *c = call_of(r);
    struct event *e = c->command.event;
    command_close(&c->command);
    c->command = (struct command){.kind = CMD_BOOKING_GET, .event = e};
    c->command.booking_get.id = c->intent.booking;
    call_submit(c, intent_looked_up);
}

static const struct payment_row *payment_of(const struct command *command)
{
    const struct money *money = &command->booking_get.money;
    for (size_t i = 0; i < money->payments.n; i++)
        if (money->payments.v[i].payment == command->booking_get.row.payment)
            return &money->payments.v[i];
    return NULL;
}

static void await_intent(struct call *c)
{
    c->intent.wait->booking = c->intent.booking.key;
    request_wait(&c->http, &c->intent.wait->pending, intent_came);
    checkout_await(call_api(c)->checkout, c->intent.wait);
}

static void intent_looked_up(struct request *r)
{
    struct call *c = call_of(r);
    if (c->command.verdict != VERDICT_OK) {
        call_answer(r);
        return;
    }
    const struct payment_row *p = payment_of(&c->command);
    if (p && p->status == PAYMENT_CREATING && ++c->intent.n_waits < WAITS_MAX) {
        await_intent(c);
        return;
    }
    if (p && c->command.booking_get.row.status == BOOKING_FAILED &&
        strcmp(p->error.code, "amount_too_small") == 0) {
        call_refuse(c, VERDICT_AMOUNT_TOO_SMALL, NULL);
        return;
    }
    (void)render_answer(&c->command, &r->out);
    answer_out(r, HTTP_CREATED, type_json);
}

/* Answers with what the payment thread has stored.  Whatever else has happened is looked up. */
static void intent_came(struct request *r)
{
    struct call *c = call_of(r);
    struct payment_row *payment = &c->intent.wait->payment;
    const struct booking_create *op = c->command.booking_create;
    if (!c->intent.wait->has_payment || c->command.kind != CMD_BOOKING_CREATE ||
        payment->payment != op->payment.payment || payment->status != PAYMENT_REQUIRES_PAYMENT) {
        look_up_intent(r);
        return;
    }
    const struct money money = {.payments = {.v = payment, .n = 1}};
    render_booking(event_of(&c->command), &op->booking, &money, true, &r->out);
    answer_out(r, HTTP_CREATED, type_json);
}

static void booking_made(struct request *r)
{
    struct call *c = call_of(r);
    const struct command *command = &c->command;
    bool waits = command->verdict == VERDICT_CREATED && !command->key.replayed &&
                 command->booking_create->payment.payment;
    if (!waits) {
        call_answer(r);
        return;
    }
    c->intent.booking = command->booking_create->booking.id;
    memcpy(c->intent.key, command->key.hash, sizeof c->intent.key);
    c->intent.wait = hf_alloc(sizeof *c->intent.wait);
    c->intent.wait->key = c->intent.key;
    await_intent(c);
}

/* ---- the request ---- */

void bookings_create(struct request *r)
{
    struct call *c = call_of(r);
    struct hf_err err = {0};
    struct booking_create op = {0};
    struct text hold = {0};
    struct checkout *checkout = call_api(c)->checkout;
    const struct checkout_config *payments = checkout_settings(checkout);
    if (!idempotency_read(c))
        return;
    if (!c->command.key.present) {
        answer_problem(r, &problem_key_required, NULL);
        return;
    }
    if (!read_booking(c, &op, &hold, &err)) {
        call_invalid(c, err.msg);
        return;
    }
    if (!idempotency_read_for(c, hold))
        return;
    if (checkout_is_awaited(checkout, c->command.key.hash)) {
        answer_problem(r, &problem_key_in_flight, NULL);
        return;
    }
    struct event *e = call_event(c, HOLD_EVENT(op.hold.id.key), VERDICT_NO_SUCH_HOLD);
    if (!e)
        return;
    op.amount_min = payments->stripe.secret_key ? stripe_minimum(e->def->currency) : -1;
    op.captures_by_hand = payments->captures_by_hand;
    c->command.kind = CMD_BOOKING_CREATE;
    c->command.event = e;
    c->command.booking_create = hf_alloc(sizeof op);
    *c->command.booking_create = op;
    idempotency_hash_request(c);
    call_submit(c, booking_made);
}
