/* See call.h: what the handlers of all resources share.  On HTTP threads. */
#include "api/call.h"
#include "api/wait_topics.h"

#include <stdlib.h>
#include <string.h>

#include "cell/topics.h"
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
    free(c->places.types_heap);
    free(c->places.sections_heap);
    booking_page_free(c->bookings.page);
    wait_page_free(c->waits.page);
    wait_topic_give(c->waits.topic);
    buf_close(&c->waits.key.answer);
    if (c->webhook)
        webhook_close(c->webhook);
    free(c->webhook);
    free(c->intent.wait);
    free(c->creation);
    snapshot_unref(c->plan.document);
    buf_close(&c->check.body);
    if (c->has_lock) {
        cell_request_close(&c->lock.request);
        cell_topic_unref(c->lock.topic);
    }
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
    c->places.seats = c->places.seats_heap = hf_alloc(sizeof *c->places.seats * 3 * n);
    c->places.taken = c->places.seats + n;
}

const json_t *call_json(struct call *c, bool empty_ok, struct hf_err *err)
{
    if (!c->json)
        c->json = parse_body(&c->http.body, empty_ok, err);
    return c->json;
}
