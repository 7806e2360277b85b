/* /v1/holds: one hold by its id (get, release, evict, renew, confirm), and an event's holds as a
 * list.  POST /v1/holds is in hold_create.c.  On HTTP threads. */
#include <stdio.h>
#include <string.h>

#include "api/idempotency.h"
#include "api/pace.h"
#include "api/page.h"
#include "api/render.h"
#include "api/routes.h"
#include "base/log.h"
#include "view/view.h"
#include "json/fields.h"

#define REFERENCE_CHARS_MAX 255

bool hold_ttl_fits(struct call *c, int64_t ttl_ms, const struct event *e)
{
    char detail[80];
    int64_t max = atomic_load_explicit(&e->shown.hold_ttl_ms, memory_order_relaxed);
    if (ttl_ms <= max)
        return true;
    (void)snprintf(detail, sizeof detail, "ttl_ms must be from %d to the event's %lld",
                   HOLD_TTL_MS_MIN, (long long)max);
    call_invalid(c, detail);
    return false;
}

/* ---- a hold by its id ---- */

struct event *path_hold(struct call *c, struct id *ret)
{
    *ret = (struct id){0};
    if (!id_parse(c->http.segment.data, c->http.segment.len, "hold_", ret))
        ret->key = 0;
    return call_event(c, HOLD_EVENT(ret->key), VERDICT_NO_SUCH_HOLD);
}

void holds_get(struct request *r)
{
    struct call *c = call_of(r);
    struct id id;
    struct event *e = path_hold(c, &id);
    if (!e)
        return;
    c->command.kind = CMD_HOLD_GET;
    c->command.event = e;
    c->command.hold_get = (struct named_hold){.id = id};
    call_submit(c, call_answer);
}

void holds_release(struct request *r)
{
    struct call *c = call_of(r);
    struct id id;
    struct event *e = path_hold(c, &id);
    if (!e)
        return;
    c->command.kind = CMD_HOLD_RELEASE;
    c->command.event = e;
    c->command.release = (struct hold_release){.hold = {.id = id}};
    call_submit(c, call_answer);
}

void holds_evict(struct request *r)
{
    struct call *c = call_of(r);
    struct id id;
    if (!call_empty_body(c))
        return;
    struct event *e = path_hold(c, &id);
    if (!e)
        return;
    c->command.kind = CMD_HOLD_EVICT;
    c->command.event = e;
    c->command.release = (struct hold_release){.hold = {.id = id}, .evicts = true};
    idempotency_hash_request(c);
    call_submit(c, call_answer);
}

/* ---- renew ---- */

static bool read_renew(struct call *c, int64_t *ret_ttl_ms, struct hf_err *err)
{
    static const char *const known[] = {"ttl_ms", NULL};
    const struct fields f = {.object = call_json(c, true, err), .path = "", .err = err};
    return f.object && fields_known(&f, known) &&
           field_int(&f, "ttl_ms", OPTIONAL, HOLD_TTL_MS_MIN, HOLD_TTL_MS_MAX, ret_ttl_ms);
}

void holds_renew(struct request *r)
{
    struct call *c = call_of(r);
    struct hf_err err = {0};
    int64_t ttl_ms = 0;
    struct id id;
    if (!idempotency_read(c))
        return;
    if (!read_renew(c, &ttl_ms, &err)) {
        call_invalid(c, err.msg);
        return;
    }
    struct event *e = path_hold(c, &id);
    if (!e || !hold_ttl_fits(c, ttl_ms, e) || !pace_spend(c, PACE_CHANGES))
        return;
    c->command.kind = CMD_HOLD_RENEW;
    c->command.event = e;
    c->command.renew = (struct hold_renew){.hold = {.id = id}, .ttl_ms = ttl_ms};
    idempotency_hash_request(c);
    call_submit(c, call_answer);
}

/* ---- confirm ---- */

static bool read_confirm(struct call *c, struct hold_confirm *ret, struct hf_err *err)
{
    static const char *const known[] = {"fence", "reference", "rescue", NULL};
    const struct fields f = {.object = call_json(c, false, err), .path = "", .err = err};
    return f.object && fields_known(&f, known) &&
           field_int(&f, "fence", REQUIRED, 0, INT64_MAX, &ret->fence) &&
           field_text(&f, "reference", NULLABLE, 0, REFERENCE_CHARS_MAX, &ret->reference,
                      &ret->reference_len) &&
           field_bool(&f, "rescue", OPTIONAL, &ret->rescue);
}

void holds_confirm(struct request *r)
{
    struct call *c = call_of(r);
    struct hf_err err = {0};
    struct hold_confirm op = {0};
    if (!idempotency_read(c))
        return;
    if (!read_confirm(c, &op, &err)) {
        call_invalid(c, err.msg);
        return;
    }
    struct event *e = path_hold(c, &op.hold.id);
    if (!e)
        return;
    c->command.kind = CMD_HOLD_CONFIRM;
    c->command.event = e;
    c->command.confirm = op;
    idempotency_hash_request(c);
    call_submit(c, call_answer);
}

/* ---- GET /v1/holds ---- */

static void holds_listed(struct request *r)
{
    struct call *c = call_of(r);
    const struct command *command = &c->command;
    char cursor[24];
    if (command->verdict != VERDICT_OK) {
        call_answer(r);
        return;
    }
    const struct hold_page *page = command->hold_list;
    page_open(c);
    for (size_t i = 0; i < page->n; i++) {
        page_next(c);
        render_hold(event_of(command), &page->holds[i], command->now, r->caller.scope < SCOPE_ADMIN,
                    &r->out);
    }
    bool more = page->more && page->n;
    page_close(c, more ? log_int(cursor, HOLD_FIRST_FENCE(page->holds[page->n - 1].id.key)) : NULL);
}

static bool read_status(const char *text, enum hold_status *ret)
{
    for (enum hold_status status = HOLD_ACTIVE; status <= HOLD_CONFIRMED; status++)
        if (strcmp(text, status_text(AUDIT_HOLD, status)) == 0) {
            *ret = status;
            return true;
        }
    return false;
}

void holds_list(struct request *r)
{
    struct call *c = call_of(r);
    const char *event = request_query(r, "event"), *status = request_query(r, "status");
    const char *cursor = request_query(r, "cursor");
    struct hold_page page = {.limit = PAGE_LIMIT_DEFAULT};
    int64_t fence = 0;
    if (!event) {
        call_invalid(c, "event is required");
        return;
    }
    if (status && !read_status(status, &page.status)) {
        call_invalid(c, "status must be active, expired, released or confirmed");
        return;
    }
    if (cursor && !parse_digits(cursor, strlen(cursor), &fence)) {
        page_bad_cursor(c);
        return;
    }
    if (!page_filter(c, "owner", &page.owner) || !page_limit(c, HOLDS_LIST_MAX, &page.limit))
        return;
    struct event *e = call_event_named(c, event, strlen(event));
    if (!e)
        return;
    if (fence >= (int64_t)1 << HOLD_FENCE_BITS) {
        page_bad_cursor(c);
        return;
    }
    page.before = cursor ? HOLD_KEY(e->def->id.key, fence) : 0;
    c->command.kind = CMD_HOLD_LIST;
    c->command.event = e;
    c->command.hold_list = hf_alloc(sizeof page);
    *c->command.hold_list = page;
    call_submit(c, holds_listed);
}
