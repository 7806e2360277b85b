/* GET /v1/events/{e}/heat: which seats people fought over.  On HTTP threads; a reader finds the
 * hottest seats, since an event may have millions. */
#include "api/page.h"
#include "api/render.h"
#include "api/routes.h"

#define HEAT_LIMIT_DEFAULT 1000

static void put_heat(const struct event *e, const struct heat_list *list, struct buf *out)
{
    buf_lit(out, "{\"object\":\"heat\"");
    json_put_text(out, "event", event_id_text(e));
    json_put_time(out, "since", list->since);
    json_put_int(out, "total", (int64_t)list->total);
    json_open(out, "seats", '[');
    for (size_t i = 0; i < list->n; i++) {
        json_open(out, NULL, '[');
        render_seat(e, list->seats[i].seat, out);
        json_put_int(out, NULL, list->seats[i].refusals);
        buf_char(out, ']');
    }
    buf_lit(out, "]}");
}

static void heat_read(struct request *r)
{
    const struct command *command = &call_of(r)->command;
    if (command->verdict != VERDICT_OK) {
        call_answer(r);
        return;
    }
    put_heat(command->event, command->event_heat, &r->out);
    answer_out(r, HTTP_OK, type_json);
}

void events_heat(struct request *r)
{
    struct call *c = call_of(r);
    size_t limit = HEAT_LIMIT_DEFAULT;
    if (!page_limit(c, HEAT_LIST_MAX, &limit))
        return;
    struct event *e = call_event_named(c, r->segment.data, r->segment.len);
    if (!e)
        return;
    struct heat_list *list = hf_alloc(sizeof *list + limit * sizeof *list->seats);
    list->limit = limit;
    c->command.kind = CMD_EVENT_HEAT;
    c->command.event = e;
    c->command.event_heat = list;
    call_submit(c, heat_read);
}
