/* Lists, a page at a time: events, an event's holds, its log.  Rows come from the loader or a
 * reader; a cursor says where the last page ended and means nothing to the caller. */
#include <string.h>

#include "base/log.h"
#include "api/answer.h"
#include "api/parse.h"
#include "api/routes.h"

#define LIST_LIMIT_DEFAULT 20
#define AUDIT_LIMIT_DEFAULT 100

static void bad_cursor(struct request *r)
{
    answer_problem(r, HF_INVALID_REQUEST, "cursor must be the next_cursor of an earlier list");
}

/* The end of every list; `cursor` NULL: there is no more. */
static void list_close(struct request *r, const char *cursor)
{
    struct buf *out = &r->out;
    buf_lit(out, "],\"has_more\":");
    buf_str(out, cursor ? "true" : "false");
    buf_lit(out, ",\"next_cursor\":");
    if (cursor)
        buf_json(out, cursor, strlen(cursor));
    else
        buf_lit(out, "null");
    buf_char(out, '}');
    answer_out(r, MHD_HTTP_OK, type_json);
}

/* ---- events ---- */

static void events_listed(struct request *r)
{
    const struct event_list *list = r->command.list;
    if (r->command.status != HF_OK) {
        answer_command(r);
        return;
    }
    buf_lit(&r->out, "{\"data\":[");
    for (size_t i = 0; i < list->n; i++) {
        if (i)
            buf_char(&r->out, ',');
        render_event(list->events[i]->def, list->events[i], 0, &r->out);
    }
    list_close(r, list->more && list->n ? event_id_text(list->events[list->n - 1]) : NULL);
}

void events_list(struct request *r)
{
    struct command *c = &r->command;
    struct id before = {0};
    size_t limit = LIST_LIMIT_DEFAULT;
    const char *cursor = request_query(r, "cursor");
    if (!request_limit(r, EVENTS_LIST_MAX, &limit))
        return;
    if (cursor && !id_parse(cursor, strlen(cursor), "evt_", &before)) {
        bad_cursor(r);
        return;
    }
    c->kind = CMD_EVENT_LIST;
    c->list = hf_alloc(sizeof *c->list);
    c->list->before = before.key;
    c->list->limit = limit;
    request_wait(r, events_listed);
}

/* ---- an event's holds ---- */

static void holds_listed(struct request *r)
{
    const struct command *c = &r->command;
    const struct page *p = c->page;
    if (c->status != HF_OK) {
        answer_command(r);
        return;
    }
    buf_lit(&r->out, "{\"data\":[");
    for (size_t i = 0; i < p->n; i++) {
        if (i)
            buf_char(&r->out, ',');
        render_hold_masked(c->event, &p->holds[i], c->now, &r->out);
    }
    char cursor[24];
    list_close(r, p->more && p->n ? log_int(cursor, HOLD_FIRST_FENCE(p->holds[p->n - 1].id.key))
                                  : NULL);
}

static bool read_status(const char *text, enum hold_status *ret)
{
    static const struct {
        const char *text;
        enum hold_status status;
    } all[] = {{"active", HOLD_ACTIVE},
               {"expired", HOLD_EXPIRED},
               {"released", HOLD_RELEASED},
               {"confirmed", HOLD_CONFIRMED}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(text, all[i].text) == 0) {
            *ret = all[i].status;
            return true;
        }
    return false;
}

void holds_list(struct request *r)
{
    struct command *c = &r->command;
    const char *event = request_query(r, "event"), *status = request_query(r, "status");
    const char *cursor = request_query(r, "cursor");
    struct page page = {.limit = LIST_LIMIT_DEFAULT};
    int64_t fence = 0;
    if (!event) {
        answer_problem(r, HF_INVALID_REQUEST, "event is required");
        return;
    }
    if (status && !read_status(status, &page.status)) {
        answer_problem(r, HF_INVALID_REQUEST,
                       "status must be active, expired, released or confirmed");
        return;
    }
    if (cursor && !parse_digits(cursor, strlen(cursor), &fence)) {
        bad_cursor(r);
        return;
    }
    if (!request_limit(r, HOLDS_LIST_MAX, &page.limit))
        return;
    struct event *e = request_event_named(r, event, strlen(event), holds_list);
    if (!e)
        return;
    if (fence >= (int64_t)1 << HOLD_FENCE_BITS) {
        bad_cursor(r);
        return;
    }
    page.before = cursor ? HOLD_KEY(e->def->id.key, fence) : 0;
    c->kind = CMD_HOLD_LIST;
    c->event = e;
    c->page = hf_alloc(sizeof *c->page);
    *c->page = page;
    request_wait(r, holds_listed);
}

/* ---- the log ---- */

static void audit_listed(struct request *r)
{
    const struct command *c = &r->command;
    const struct page *p = c->page;
    if (c->status != HF_OK) {
        answer_command(r);
        return;
    }
    buf_lit(&r->out, "{\"data\":[");
    for (size_t i = 0; i < p->n; i++) {
        if (i)
            buf_char(&r->out, ',');
        render_audit(c->event, &p->audit[i], false, &r->out);
    }
    char cursor[24];
    list_close(r, p->more && p->n ? log_int(cursor, p->audit[p->n - 1].row.seq) : NULL);
}

/* Of which event?  NULL: answered, or on its way. */
static struct event *audit_event(struct request *r, const char *hold, struct id *ret_hold)
{
    const char *event = request_query(r, "event");
    if (!event && !hold) {
        answer_problem(r, HF_INVALID_REQUEST, "event is required, or hold");
        return NULL;
    }
    if (hold && !id_parse(hold, strlen(hold), "hold_", ret_hold)) {
        answer_problem(r, HF_NO_SUCH_HOLD, NULL);
        return NULL;
    }
    return event ? request_event_named(r, event, strlen(event), audit_list)
                 : request_event(r, HOLD_EVENT(ret_hold->key), HF_NO_SUCH_HOLD, audit_list);
}

/* ?after= and ?cursor= are both the seq to go on from; false: answered. */
static bool audit_after(struct request *r, int64_t *ret)
{
    const char *after = request_query(r, "after"), *cursor = request_query(r, "cursor");
    const char *text = cursor ? cursor : after;
    if (text && (!parse_digits(text, strlen(text), ret) || *ret >= (int64_t)1 << AUDIT_SEQ_BITS)) {
        answer_problem(r, HF_INVALID_REQUEST,
                       cursor ? "cursor must be the next_cursor of an earlier list"
                              : "after must be a seq");
        return false;
    }
    return true;
}

void audit_list(struct request *r)
{
    struct command *c = &r->command;
    const char *hold = request_query(r, "hold"), *seat = request_query(r, "seat");
    struct page page = {.limit = AUDIT_LIMIT_DEFAULT, .seat = -1};
    struct id hold_id = {0};
    if (!audit_after(r, &page.after) || !request_limit(r, AUDIT_LIST_MAX, &page.limit))
        return;
    struct event *e = audit_event(r, hold, &hold_id);
    if (!e)
        return;
    if (hold && HOLD_EVENT(hold_id.key) != e->def->id.key) {
        answer_problem(r, HF_NO_SUCH_HOLD, "No hold of this event has this id.");
        return;
    }
    page.hold = hold_id.key;
    c->id = hold_id;
    if (seat) {
        if (!request_find_seat(r, e, seat, strlen(seat)))
            return;
        page.seat = c->seats[0];
    }
    c->kind = CMD_AUDIT_LIST;
    c->event = e;
    c->page = hf_alloc(sizeof *c->page);
    *c->page = page;
    request_wait(r, audit_listed);
}
