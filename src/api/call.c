/* See call.h: what the handlers of all resources share.  On HTTP threads. */
#include "api/call.h"

#include <stdlib.h>
#include <string.h>

#include "api/idempotency.h"
#include "checkout/webhook.h"
#include "view/snapshot.h"
#include "view/view.h"
#include "json/fields.h"

/* Leaves the call as a new one is: zeroed, but for room that is written before it is read. */
void call_release(struct request *r)
{
    struct call *c = call_of(r);
    command_close(&c->command);
    event_give(c->event);
    if (c->json)
        json_decref(c->json);
    hold_body_close(&c->hold);
    free(c->places.seats_heap);
    free(c->places.areas_heap);
    free(c->places.sections_heap);
    booking_page_free(c->bookings.page);
    if (c->webhook)
        webhook_close(c->webhook);
    free(c->webhook);
    free(c->intent.wait);
    free(c->creation);
    snapshot_unref(c->plan.document);
    if (c->has_lock)
        lock_call_close(&c->lock);
    const size_t first = offsetof(struct call, command);
    const size_t end = offsetof(struct call, hold) + offsetof(struct hold_body, seats_inline);
    memset((char *)c + first, 0, end - first);
}

_Static_assert(sizeof ACTOR_KEY - 1 + ACCESS_NAME_SIZE <= ACTOR_SIZE, "the longest name fits");
_Static_assert(sizeof ACTOR_ADDRESS - 1 + ADDRESS_TEXT_SIZE <= ACTOR_SIZE, "and any address");

/* Says who asks, unless the handler has said so: the payment provider, for instance.  Only callers
 * without a key cost more than a copy. */
static void set_actor(struct call *c)
{
    const struct request *r = &c->http;
    struct address address = {0}; /* "::" if its family is not known */
    if (c->command.actor)
        return;
    c->command.actor = c->actor;
    if (!server_access(r->server)->has_keys) {
        c->command.actor = ACTOR_OPEN;
    } else if (r->caller.has_key) {
        memcpy(c->actor, ACTOR_KEY, sizeof ACTOR_KEY - 1);
        memcpy(c->actor + sizeof ACTOR_KEY - 1, r->caller.key_name, ACCESS_NAME_SIZE);
    } else {
        (void)access_address(r, &address);
        memcpy(c->actor, ACTOR_ADDRESS, sizeof ACTOR_ADDRESS - 1);
        address_text(&address, c->actor + sizeof ACTOR_ADDRESS - 1);
    }
}

void call_submit(struct call *c, step_fn then)
{
    set_actor(c);
    request_wait(&c->http, &c->command.pending, then);
    enum hf_status status = engine_submit(call_engine(c), &c->command);
    if (status != HF_OK) {
        c->command.verdict = verdict_of(status);
        pending_done(&c->command.pending);
    }
}

void call_refuse(struct call *c, enum verdict verdict, const char *detail)
{
    answer_problem(&c->http, problem_of(verdict), detail);
}

void call_invalid(struct call *c, const char *detail)
{
    answer_problem(&c->http, &problem_invalid_request, detail);
}

static void snapshot_sent(void *snapshot) { snapshot_unref(snapshot); }

void answer_snapshot(struct request *r, struct snapshot *s, bool packed)
{
    struct answer *a = &r->answer;
    const struct buf *body = packed ? &s->packed : &s->text;
    a->headers.varies = true;
    a->status = HTTP_OK;
    a->type = type_json;
    a->headers.gzipped = packed;
    a->data = body->data;
    a->len = body->len;
    a->keeper = (struct answer_keeper){.sent = snapshot_sent,
                                       .owner = s,
                                       .pin = &s->pin,
                                       .pinned = s->text.cap + (packed ? s->packed.cap : 0)};
}

static bool can_exist(int64_t event) { return event > 0 && event <= EVENT_KEY_MAX; }

/* An event that was loaded for this call has a pin of the command's already. */
struct event *call_loaded_event(struct call *c, int64_t event)
{
    if (c->event && c->event->def->id.key == event)
        return c->event;
    event_give(c->event);
    c->event = c->command.pinned;
    c->command.pinned = NULL;
    if (c->event && c->event->def->id.key == event)
        return c->event;
    event_give(c->event);
    return c->event = engine_event_take(call_engine(c), event);
}

struct event *call_event(struct call *c, int64_t event, enum verdict missing)
{
    struct event *e = call_loaded_event(c, event);
    struct command *command = &c->command;
    if (e)
        return e;
    if (!c->event_tried && can_exist(event)) {
        c->event_tried = true;
        command->kind = CMD_EVENT_LOAD;
        command->event_key = event;
        call_submit(c, c->http.step);
        return NULL;
    }
    bool looked_up = command->kind == CMD_EVENT_LOAD;
    if (looked_up && command->verdict != VERDICT_OK && command->verdict != VERDICT_NO_SUCH_EVENT)
        call_answer(&c->http);
    else if (key_is_unused(c))
        call_refuse(c, missing, NULL);
    return NULL;
}

struct event *call_event_named(struct call *c, const char *text, size_t len)
{
    struct id id = {0};
    bool is_id = id_parse(text, len, "evt_", &id);
    struct event *e = call_event(c, is_id ? id.key : 0, VERDICT_NO_SUCH_EVENT);
    if (!e || id_secret_equal(e->def->id.secret, id.secret))
        return e;
    if (key_is_unused(c))
        call_refuse(c, VERDICT_NO_SUCH_EVENT, NULL);
    return NULL;
}

void call_note_stale(struct call *c)
{
    c->http.answer.headers.stale = !engine_ready(call_engine(c), NULL, 0);
}

void call_seat_room(struct call *c, size_t n)
{
    c->places.seats = c->seats_inline;
    c->places.taken = c->taken_inline;
    if (n <= SEATS_INLINE)
        return;
    free(c->places.seats_heap); /* of an earlier run of the same step */
    c->places.seats = c->places.seats_heap = hf_alloc(sizeof *c->places.seats * 2 * n);
    c->places.taken = c->places.seats + n;
}

const json_t *call_json(struct call *c, bool empty_ok, struct hf_err *err)
{
    if (!c->json)
        c->json = parse_body(&c->http.body, empty_ok, err);
    return c->json;
}

bool call_empty_body(struct call *c)
{
    static const char *const none[] = {NULL};
    struct hf_err err = {0};
    if (!idempotency_read(c))
        return false;
    const struct fields f = {.object = call_json(c, true, &err), .path = "", .err = &err};
    if (f.object && fields_known(&f, none))
        return true;
    call_invalid(c, err.msg);
    return false;
}
