/* /v1/waitlist: leaving a wish, one entry by its id, and entries as a list; pausing and resuming the
 * list of an event.  The stream of an entry is in waitlist_stream.c.  On HTTP threads. */
#include <string.h>

#include "api/idempotency.h"
#include "api/pace.h"
#include "api/page.h"
#include "api/render.h"
#include "api/routes.h"
#include "api/seat_names.h"
#include "base/log.h"
#include "view/view.h"
#include "json/fields.h"

/* ---- POST /v1/waitlist ---- */

/* Reads the key and the body, once.  Returns false if the call has been refused. */
static bool read_request(struct call *c)
{
    struct hf_err err = {0};
    if (c->hold.event.data) /* by an earlier run */
        return true;
    if (!idempotency_read(c))
        return false;
    if (wait_parse(&c->http.body, &c->hold, &c->json, &err))
        return true;
    call_invalid(c, err.msg);
    return false;
}

/* Returns false if the call has been refused, or its key is being looked up. */
static bool find_wish(struct call *c, const struct event *e, struct wait_wish *ret)
{
    const struct hold_body *body = &c->hold;
    struct best_want best = {.section = -1};
    *ret = (struct wait_wish){.section = -1, .tier = -1, .area = -1};
    ret->quantity = (uint32_t)hold_body_places(body);
    if (body->n_areas) {
        if (!hold_areas_find(c, e))
            return false;
        ret->area = (int32_t)c->places.areas_heap[0].area;
        return true;
    }
    if (!hold_best_find(c, e, &best))
        return false;
    ret->section = (int32_t)best.section;
    ret->tier = best.tier ? hold_tier_find(e, &body->best_tier) : -1;
    ret->category = best.category;
    ret->accessible = best.accessible;
    ret->adjacent = best.adjacent;
    return true;
}

void waits_join(struct request *r)
{
    struct call *c = call_of(r);
    const struct hold_body *body = &c->hold;
    struct wait_wish wish;
    if (!read_request(c))
        return;
    if (hold_body_places(body) > HOLD_PLACES_MAX) {
        refuse_too_many(c, HOLD_PLACES_MAX);
        return;
    }
    struct event *e = call_event_named(c, body->event.data, body->event.len);
    if (!e || !find_wish(c, e, &wish) || !pace_spend(c, PACE_HOLDS))
        return;
    c->command.kind = CMD_WAIT_JOIN;
    c->command.event = e;
    c->command.wait_join = (struct wait_join){.wish = wish,
                                              .types = body->types.runs.v,
                                              .n_types = (uint32_t)body->types.runs.n,
                                              .until = body->until,
                                              .client = access_client(r),
                                              .owner = body->owner.data,
                                              .owner_len = body->owner.len,
                                              .metadata = body->metadata.data,
                                              .metadata_len = body->metadata.len};
    idempotency_hash_request(c);
    call_submit(c, call_answer);
}

/* ---- an entry by its id ---- */

struct event *path_wait(struct call *c, struct id *ret)
{
    *ret = (struct id){0};
    if (!id_parse(c->http.segment.data, c->http.segment.len, "wait_", ret))
        ret->key = 0;
    return call_event(c, HOLD_EVENT(ret->key), VERDICT_NO_SUCH_WAIT);
}

/* Entries that nobody reads end, so looks are stored, but at most eight in wait_alive_ms. */
bool wait_note_read(struct call *c, const struct wait_row *row, int64_t now, step_fn then)
{
    const struct event_terms *terms = event_terms_take(c->event);
    bool is_due = row->status == WAIT_WAITING && now - row->read_at > terms->wait_alive_ms / 8;
    event_terms_give(terms);
    if (!is_due)
        return false;
    const struct wait_change op = {.kind = WAIT_IS_READ, .id = row->id};
    command_close(&c->command);
    c->command = (struct command){.kind = CMD_WAIT_CHANGE, .event = c->event};
    c->command.wait_change = op;
    call_submit(c, then);
    return true;
}

static void entry_answer(struct request *r) { answer_out(r, HTTP_OK, type_json); }

static void entry_read(struct request *r)
{
    struct call *c = call_of(r);
    const struct command *command = &c->command;
    if (command->verdict != VERDICT_OK) {
        call_answer(r);
        return;
    }
    const struct wait_view view = {.now = command->now, .ahead = command->wait_get.ahead};
    render_wait(event_of(command), &command->wait_get.row, &view, &r->out);
    if (!wait_note_read(c, &command->wait_get.row, command->now, entry_answer))
        entry_answer(r);
}

void waits_get(struct request *r)
{
    struct call *c = call_of(r);
    struct id id;
    struct event *e = path_wait(c, &id);
    if (!e)
        return;
    c->command.kind = CMD_WAIT_GET;
    c->command.event = e;
    c->command.wait_get.id = id;
    call_submit(c, entry_read);
}

static void change(struct call *c, enum wait_change_kind kind)
{
    struct id id;
    struct event *e = path_wait(c, &id);
    if (!e)
        return;
    c->command.kind = CMD_WAIT_CHANGE;
    c->command.event = e;
    c->command.wait_change = (struct wait_change){.kind = kind, .id = id};
    idempotency_hash_request(c);
    call_submit(c, call_answer);
}

void waits_leave(struct request *r) { change(call_of(r), WAIT_LEAVES); }

void waits_first(struct request *r)
{
    if (call_empty_body(call_of(r)))
        change(call_of(r), WAIT_COMES_FIRST);
}

void waits_evict(struct request *r)
{
    if (call_empty_body(call_of(r)))
        change(call_of(r), WAIT_EVICTS);
}

/* ---- POST /v1/events/{e}/waitlist/pause and /resume ---- */

static void pause_or_resume(struct call *c, enum command_kind kind)
{
    if (!call_empty_body(c))
        return;
    struct event *e = call_event_named(c, c->http.segment.data, c->http.segment.len);
    if (!e)
        return;
    c->command.kind = kind;
    c->command.event = e;
    idempotency_hash_request(c);
    call_submit(c, call_answer);
}

void waits_pause(struct request *r) { pause_or_resume(call_of(r), CMD_WAIT_PAUSE); }
void waits_resume(struct request *r) { pause_or_resume(call_of(r), CMD_WAIT_RESUME); }

/* ---- GET /v1/waitlist ---- */

static void waits_listed(struct request *r);

/* Looks up the event of an entry that is not in memory, and goes on with waits_listed.  The page
 * waits in the call meanwhile. */
static void load_event(struct call *c, int64_t event)
{
    c->waits.page = c->command.wait_list;
    c->waits.now = c->command.now;
    c->command.wait_list = NULL;
    c->command.kind = CMD_EVENT_LOAD;
    c->command.event_key = event;
    call_submit(c, waits_listed);
}

/* Renders entry after entry, so that only one of their events has to be in memory at a time. */
static void waits_listed(struct request *r)
{
    struct call *c = call_of(r);
    char cursor[24];
    if (c->command.verdict != VERDICT_OK) {
        r->out.len = 0;
        call_answer(r);
        return;
    }
    if (c->waits.page) {
        c->command.kind = CMD_WAIT_LIST;
        c->command.now = c->waits.now;
        c->command.wait_list = c->waits.page;
        c->waits.page = NULL;
    }
    const struct wait_page *page = c->command.wait_list;
    const struct wait_view view = {
        .now = c->command.now, .ahead = -1, .masked = r->caller.scope < SCOPE_ADMIN};
    if (c->waits.n_done == 0) {
        r->out.len = 0;
        page_open(c);
    }
    for (; c->waits.n_done < page->n; c->waits.n_done++) {
        const struct wait_row *row = &page->waits[c->waits.n_done];
        struct event *e = call_loaded_event(c, row->event);
        if (!e) {
            load_event(c, row->event);
            return;
        }
        page_next(c);
        render_wait((struct typed_event){.event = e}, row, &view, &r->out);
    }
    page_close(c, page->more && page->n ? log_int(cursor, page->waits[page->n - 1].id.key) : NULL);
}

static bool read_status(const char *text, enum wait_status *ret)
{
    for (enum wait_status status = WAIT_WAITING; status < WAIT_STATUSES; status++)
        if (strcmp(text, wait_status_text(status)) == 0) {
            *ret = status;
            return true;
        }
    return false;
}

/* Reads everything but the event. */
static bool read_query(struct call *c, struct waits_query *ret)
{
    const struct request *r = &c->http;
    const char *status = request_query(r, "status"), *cursor = request_query(r, "cursor");
    if (!page_filter(c, "owner", &ret->owner))
        return false;
    ret->owner_len = ret->owner ? strlen(ret->owner) : 0;
    if (status && !read_status(status, &ret->status)) {
        call_invalid(c, "status must be waiting, offered, accepted, lapsed, left or ended");
        return false;
    }
    if (cursor && !parse_digits(cursor, strlen(cursor), &ret->before)) {
        page_bad_cursor(c);
        return false;
    }
    return page_limit(c, WAITS_LIST_MAX, &ret->limit);
}

void waits_list(struct request *r)
{
    struct call *c = call_of(r);
    const char *event = request_query(r, "event");
    struct waits_query query = {.limit = PAGE_LIMIT_DEFAULT};
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
    c->command.kind = CMD_WAIT_LIST;
    c->command.wait_list = hf_alloc(sizeof *c->command.wait_list);
    c->command.wait_list->query = query;
    call_submit(c, waits_listed);
}
