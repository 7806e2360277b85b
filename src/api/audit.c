/* GET /v1/audit: the log of an event, a page at a time.  On HTTP threads; a reader reads the rows.
 */
#include <string.h>

#include "api/page.h"
#include "api/render.h"
#include "api/routes.h"
#include "api/seat_names.h"
#include "base/log.h"
#include "view/view.h"
#include "json/fields.h"

#define AUDIT_LIMIT_DEFAULT 100

static void audit_listed(struct request *r)
{
    struct call *c = call_of(r);
    const struct command *command = &c->command;
    char cursor[24];
    if (command->verdict != VERDICT_OK) {
        call_answer(r);
        return;
    }
    const struct audit_page *page = command->audit_list;
    page_open_with(c, "pruned_seq", page->pruned_seq);
    for (size_t i = 0; i < page->n; i++) {
        page_next(c);
        render_audit(command->event, &page->entries[i], false, &r->out);
    }
    bool more = page->more && page->n;
    page_close(c, more ? log_int(cursor, page->entries[page->n - 1].row.seq) : NULL);
}

/* Finds the event that ?event= or ?hold= names.  Returns NULL if the call has been answered, or
 * goes on with audit_list. */
static struct event *find_event(struct call *c, const char *hold, struct id *ret_hold)
{
    const char *event = request_query(&c->http, "event");
    if (!event && !hold) {
        call_invalid(c, "event is required, or hold");
        return NULL;
    }
    if (hold && !id_parse(hold, strlen(hold), "hold_", ret_hold)) {
        call_refuse(c, VERDICT_NO_SUCH_HOLD, NULL);
        return NULL;
    }
    return event ? call_event_named(c, event, strlen(event))
                 : call_event(c, HOLD_EVENT(ret_hold->key), VERDICT_NO_SUCH_HOLD);
}

/* Reads ?cursor= or ?after=, both of which are the seq to go on from.  Returns false if the call
 * has been answered with 400. */
static bool read_after(struct call *c, int64_t *ret)
{
    const char *after = request_query(&c->http, "after");
    const char *cursor = request_query(&c->http, "cursor");
    const char *text = cursor ? cursor : after;
    if (!text || (parse_digits(text, strlen(text), ret) && *ret < (int64_t)1 << AUDIT_SEQ_BITS))
        return true;
    if (cursor)
        page_bad_cursor(c);
    else
        call_invalid(c, "after must be a seq");
    return false;
}

void audit_list(struct request *r)
{
    struct call *c = call_of(r);
    const char *hold = request_query(r, "hold"), *seat = request_query(r, "seat");
    struct audit_page page = {.limit = AUDIT_LIMIT_DEFAULT, .seat = -1};
    uint32_t index;
    if (!read_after(c, &page.after) || !page_limit(c, AUDIT_LIST_MAX, &page.limit))
        return;
    struct event *e = find_event(c, hold, &page.hold);
    if (!e)
        return;
    if (hold && HOLD_EVENT(page.hold.key) != e->def->id.key) {
        call_refuse(c, VERDICT_NO_SUCH_HOLD, "No hold of this event has this id.");
        return;
    }
    if (seat) {
        if (!seat_name_find(c, e, (struct text){seat, strlen(seat)}, &index))
            return;
        page.seat = index;
    }
    c->command.kind = CMD_AUDIT_LIST;
    c->command.event = e;
    c->command.audit_list = hf_alloc(sizeof page);
    *c->command.audit_list = page;
    call_submit(c, audit_listed);
}
