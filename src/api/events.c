/* /v1/events: create, list, one event, its revenue, open, close, archive, cancel and change.  On HTTP threads;
 * the preparer reads the bodies of new events.  What the view knows is answered from it. */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "api/idempotency.h"
#include "api/page.h"
#include "api/render.h"
#include "api/routes.h"
#include "venue/event_parse.h"
#include "view/view.h"

#define ROWS_MANY 2000 /* more rows than this count as a large request */

/* ---- POST /v1/events ---- */

static size_t count_rows(const struct event_def *def)
{
    size_t n = 0;
    for (size_t i = 0; i < def->sections.n; i++)
        n += def->sections.v[i].rows.n;
    return n;
}

/* A body that is being read by the preparer, since a short one can describe very many seats.
 * Meanwhile the call waits and touches none of this. */
struct creation {
    struct event_def *def; /* NULL: the body is refused */
    struct hf_err err;
    bool lacks_plan;
};

static void read_event(struct call *c, struct creation *ret)
{
    if (!parse_event_body(&c->http.body, &ret->lacks_plan, &ret->def, &ret->err))
        ret->def = NULL;
    idempotency_hash_request(c);
}

static void submit_creation(struct call *c, const struct creation *x)
{
    if (x->lacks_plan && c->http.body.len > BODY_EVENT_MAX) {
        event_def_free(x->def);
        answer_problem(&c->http, &problem_body_too_large,
                       "body must have at most 8388608 bytes without a plan");
        return;
    }
    if (!x->def) {
        call_invalid(c, x->err.msg);
        return;
    }
    c->command.kind = CMD_EVENT_CREATE;
    c->command.event_create = x->def;
    if (count_rows(x->def) > ROWS_MANY && !request_admit_large(&c->http)) {
        call_refuse(c, VERDICT_OVERLOADED, NULL);
        return;
    }
    call_submit(c, call_answer);
}

static void prepare_creation(void *context)
{
    struct call *c = context;
    read_event(c, c->creation);
    if (c->http.body.len > BODY_MAX) /* the memory of its JSON goes back to the system */
        (void)malloc_trim(0);
}

static void creation_read(struct request *r)
{
    struct call *c = call_of(r);
    struct creation *x = c->creation;
    if (c->command.verdict == VERDICT_OK) {
        const struct creation done = *x;
        c->command = (struct command){.key = c->command.key};
        submit_creation(c, &done);
    } else {
        call_answer(r);
    }
    free(x);
    c->creation = NULL;
}

void events_create(struct request *r)
{
    struct call *c = call_of(r);
    if (!idempotency_read(c))
        return;
    c->creation = hf_alloc(sizeof *c->creation);
    c->command.kind = CMD_PREPARE;
    c->command.prepare.run = prepare_creation;
    c->command.prepare.context = c;
    call_submit(c, creation_read);
}

/* ---- GET /v1/events ---- */

static void events_listed(struct request *r)
{
    struct call *c = call_of(r);
    if (c->command.verdict != VERDICT_OK) {
        call_answer(r);
        return;
    }
    const struct event_list *list = c->command.event_list;
    char cursor[ID_TEXT_SIZE];
    page_open(c);
    for (size_t i = 0; i < list->n; i++) {
        page_next(c);
        render_event_summary(&list->events[i], &r->out);
    }
    if (list->more && list->n)
        (void)id_format(cursor, "evt_", &list->events[list->n - 1].def->id);
    page_close(c, list->more && list->n ? cursor : NULL);
    answer_pack(r);
}

void events_list(struct request *r)
{
    struct call *c = call_of(r);
    struct id last = {0};
    bool upcoming;
    size_t limit = PAGE_LIMIT_DEFAULT;
    const char *cursor = request_query(r, "cursor");
    if (!page_limit(c, EVENTS_LIST_MAX, &limit) || !page_flag(c, "upcoming", &upcoming))
        return;
    if (cursor && !id_parse(cursor, strlen(cursor), "evt_", &last)) {
        page_bad_cursor(c);
        return;
    }
    struct event_list *list = hf_alloc(sizeof *list);
    list->query = (struct events_query){.last = last.key, .limit = limit, .upcoming = upcoming};
    c->command.kind = CMD_EVENT_LIST;
    c->command.event_list = list;
    call_submit(c, events_listed);
}

/* ---- one event ---- */

static struct event *path_event(struct call *c)
{
    return call_event_named(c, c->http.segment.data, c->http.segment.len);
}

/* How far the cancelling has come, as the last member of the event. */
static void put_progress(const struct cancel_progress *p, struct buf *out)
{
    out->len--; /* the brace */
    json_open(out, "cancellation", '{');
    json_put_int(out, "bookings_left", p->bookings_left);
    json_put_int(out, "bookings_cancelled", p->bookings_cancelled);
    json_put_int(out, "refunds_owed", p->refunds_owed);
    json_put_int(out, "refunds_done", p->refunds_done);
    json_put_int(out, "refunds_failed", p->refunds_failed);
    buf_lit(out, "}}");
}

static void event_answer(struct request *r)
{
    struct call *c = call_of(r);
    struct event *e = c->command.event;
    if (c->command.kind == CMD_EVENT_PROGRESS && c->command.verdict != VERDICT_OK) {
        call_answer(r);
        return;
    }
    call_note_stale(c);
    const struct event_terms *terms = event_terms_take(e);
    render_event(e->def, terms, e, 0, &r->out);
    event_terms_give(terms);
    if (c->command.kind == CMD_EVENT_PROGRESS)
        put_progress(&c->command.progress, &r->out);
    answer_out(r, HTTP_OK, type_json);
}

void events_get(struct request *r)
{
    struct call *c = call_of(r);
    struct event *e = path_event(c);
    if (!e)
        return;
    c->command.event = e;
    if (atomic_load_explicit(&e->shown.status, memory_order_relaxed) != EVENT_CANCELLED) {
        c->command.kind = CMD_NONE;
        event_answer(r);
        return;
    }
    c->command.kind = CMD_EVENT_PROGRESS;
    c->command.event_key = e->def->id.key;
    call_submit(c, event_answer);
}

/* ---- GET /v1/events/{e}/revenue ---- */

/* What each of the event's ticket types comes to. */
static void put_revenue_types(struct event *e, const struct event_revenue *revenue, struct buf *out)
{
    const struct event_terms *terms = event_terms_take(e);
    json_open(out, "types", '[');
    for (size_t i = 0; i < terms->types.n; i++) {
        json_open(out, NULL, '{');
        json_put_text(out, "type", terms->types.v[i].id);
        json_put_int(out, "amount", revenue->by_type[i]);
        buf_char(out, '}');
    }
    buf_char(out, ']');
    event_terms_give(terms);
}

static void revenue_read(struct request *r)
{
    const struct command *command = &call_of(r)->command;
    const struct event_revenue *revenue = &command->revenue;
    if (command->verdict != VERDICT_OK) {
        call_answer(r);
        return;
    }
    buf_lit(&r->out, "{\"object\":\"revenue\"");
    json_put_text(&r->out, "event", event_id_text(command->event));
    json_put_text(&r->out, "currency", command->event->def->currency);
    json_put_int(&r->out, "bookings", revenue->bookings);
    json_put_int(&r->out, "amount", revenue->amount);
    json_put_int(&r->out, "refunded", revenue->refunded);
    if (revenue->has_types)
        put_revenue_types(command->event, revenue, &r->out);
    buf_char(&r->out, '}');
    answer_out(r, HTTP_OK, type_json);
}

void events_revenue(struct request *r)
{
    struct call *c = call_of(r);
    struct event *e = path_event(c);
    if (!e)
        return;
    c->command.kind = CMD_EVENT_REVENUE;
    c->command.event = e;
    c->command.event_key = e->def->id.key;
    c->command.revenue = (struct event_revenue){
        .has_types = atomic_load_explicit(&e->shown.has_types, memory_order_relaxed)};
    call_submit(c, revenue_read);
}

/* ---- POST /v1/events/{e}/open, close, archive and cancel ---- */

static void change_sale(struct call *c, enum command_kind kind)
{
    if (!call_empty_body(c))
        return;
    struct event *e = path_event(c);
    if (!e)
        return;
    c->command.kind = kind;
    c->command.event = e;
    idempotency_hash_request(c);
    call_submit(c, call_answer);
}

void events_open(struct request *r) { change_sale(call_of(r), CMD_EVENT_OPEN); }
void events_close(struct request *r) { change_sale(call_of(r), CMD_EVENT_CLOSE); }
void events_archive(struct request *r) { change_sale(call_of(r), CMD_EVENT_ARCHIVE); }

void events_cancel(struct request *r) { change_sale(call_of(r), CMD_EVENT_CANCEL); }

/* ---- PATCH /v1/events/{e} ---- */

void events_change(struct request *r)
{
    struct call *c = call_of(r);
    struct hf_err err = {0};
    if (!idempotency_read(c))
        return;
    const json_t *json = call_json(c, false, &err);
    if (!json) {
        call_invalid(c, err.msg);
        return;
    }
    struct event *e = path_event(c);
    if (!e)
        return;
    c->command.kind = CMD_EVENT_CHANGE;
    c->command.event = e;
    c->command.event_change = (struct event_change){0};
    if (!parse_event_change(json, e->def, &c->command.event_change, &err)) {
        call_invalid(c, err.msg);
        return;
    }
    idempotency_hash_request(c);
    call_submit(c, call_answer);
}
