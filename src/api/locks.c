/* /v1/locks/{name}: taking, releasing and breaking locks, and setting their values.  This is the
 * lock service's hot path: a plain body is read without allocating, and one request is one command
 * for the cell's thread, which stores many of them as one entry of the journal.  On HTTP threads.
 */
#include <string.h>

#include "api/routes.h"

/* ---- taking ---- */

static void acquired(struct request *r)
{
    struct call *c = call_of(r);
    const struct cell_request *request = &c->lock.request;
    const struct cell_verdict *v = &request->verdict;
    const struct buf *value = &request->out;
    if (!lock_done(c))
        return;
    lock_put_name(c);
    json_put_text(&r->out, "mode", cell_mode_names[v->mode]);
    lock_put_owner(c);
    json_put_int(&r->out, "fence", v->fence);
    json_put_int(&r->out, "slot", v->slot);
    json_put_bytes(&r->out, "value", value->len ? value->data : NULL, value->len);
    if (request->claims)
        json_put_bool(&r->out, "claimed", !request->is_unclaimed);
    buf_char(&r->out, '}');
    answer_out(r, HTTP_OK, type_json);
}

static bool read_mode(struct call *c, enum cell_mode *ret)
{
    const struct text *mode = &c->lock.body.mode;
    *ret = CELL_EXCLUSIVE;
    if (!mode->data)
        return true;
    for (unsigned m = 0; m < CELL_MODES; m++)
        if (strlen(cell_mode_names[m]) == mode->len &&
            memcmp(cell_mode_names[m], mode->data, mode->len) == 0) {
            *ret = (enum cell_mode)m;
            return true;
        }
    call_invalid(c, "mode must be exclusive, shared, intention_exclusive or intention_shared");
    return false;
}

/* Fields that are right by themselves and do not go together. */
static bool agree(struct call *c, enum cell_mode mode)
{
    const struct lock_body *body = &c->lock.body;
    const char *fault = NULL;
    if (body->slots > 1 && mode != CELL_EXCLUSIVE)
        fault = "slots are for exclusive locks";
    else if (body->cache && mode != CELL_SHARED)
        fault = "cache is for shared locks";
    if (fault)
        call_invalid(c, fault);
    return !fault;
}

void locks_acquire(struct request *r)
{
    struct call *c = call_of(r);
    const struct lock_body *body = &c->lock.body;
    struct cell_command *command = &c->lock.request.command;
    enum cell_mode mode;
    if (!lock_begin(c, false) || !lock_read_body(c, lock_fields_acquire) || !read_mode(c, &mode) ||
        !agree(c, mode) || !lock_read_owner(c) || !lock_read_name(c) ||
        !lock_read_session(c, body->session))
        return;
    command->kind = CELL_ACQUIRE;
    command->mode = mode;
    command->slots = body->slots ? (uint32_t)body->slots : 1;
    command->priority = (int32_t)body->priority;
    command->delay_ms = (uint32_t)body->delay_ms;
    command->agent = (struct cell_text){body->agent.data, body->agent.len};
    command->label = (struct cell_text){body->label.data, body->label.len};
    command->value = (struct cell_text){body->value.data, body->value.len};
    command->queue = body->wait_ms > 0;
    command->cached = body->cache;
    c->lock.request.wait_ms = body->wait_ms;
    c->lock.request.claim_ms = body->claim_ms;
    c->lock.request.claims = body->claim;
    if (body->wait_ms > 0)
        lock_submit_waiting(c, acquired);
    else
        lock_submit(c, CELL_REQUEST_COMMAND, acquired);
}

/* ---- what a holder does ---- */

/* No grant has a fence beyond CELL_FENCE_MAX, and no command may have one, so any larger one is
 * answered as this one is: it is not the holder's. */
static int64_t possible_fence(int64_t fence)
{
    return fence < CELL_FENCE_MAX ? fence : CELL_FENCE_MAX;
}

static bool read_holder(struct call *c, const struct lock_field *table, enum cell_kind kind)
{
    const struct lock_body *body = &c->lock.body;
    if (!lock_begin(c, false) || !lock_read_body(c, table))
        return false;
    if (kind == CELL_VALUE && !(body->given & LOCK_VALUE_GIVEN)) {
        call_invalid(c, "value is required");
        return false;
    }
    if (!lock_read_owner(c) || !lock_read_name(c) || !lock_read_session(c, body->session))
        return false;
    c->lock.request.command.kind = kind;
    c->lock.request.command.fence = possible_fence(body->fence);
    c->lock.request.command.value = (struct cell_text){body->value.data, body->value.len};
    return true;
}

static void released(struct request *r)
{
    struct call *c = call_of(r);
    if (!lock_done(c))
        return;
    lock_put_name(c);
    lock_put_owner(c);
    buf_char(&r->out, '}');
    answer_out(r, HTTP_OK, type_json);
}

void locks_release(struct request *r)
{
    struct call *c = call_of(r);
    if (read_holder(c, lock_fields_release, CELL_RELEASE))
        lock_submit(c, CELL_REQUEST_COMMAND, released);
}

static void value_set(struct request *r)
{
    struct call *c = call_of(r);
    const struct cell_command *command = &c->lock.request.command;
    if (!lock_done(c))
        return;
    lock_put_name(c);
    lock_put_owner(c);
    json_put_int(&r->out, "fence", command->fence);
    json_put_bytes(&r->out, "value", command->value.data, command->value.len);
    buf_char(&r->out, '}');
    answer_out(r, HTTP_OK, type_json);
}

void locks_value(struct request *r)
{
    struct call *c = call_of(r);
    if (read_holder(c, lock_fields_value, CELL_VALUE))
        lock_submit(c, CELL_REQUEST_COMMAND, value_set);
}

/* ---- what an operator does ---- */

/* That nobody held it is no refusal: nobody holds it now, as was asked for. */
static void broken(struct request *r)
{
    struct call *c = call_of(r);
    if (c->lock.request.verdict.result != CELL_LOST && !lock_done(c))
        return;
    lock_put_name(c);
    buf_char(&r->out, '}');
    answer_out(r, HTTP_OK, type_json);
}

void locks_break(struct request *r)
{
    struct call *c = call_of(r);
    if (!lock_begin(c, false) || !lock_empty_body(c) || !lock_read_name(c))
        return;
    c->lock.request.command.kind = CELL_BREAK;
    lock_submit(c, CELL_REQUEST_COMMAND, broken);
}
