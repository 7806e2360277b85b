/* POST /v1/plans/check: would an event of this body be created, and how would it be drawn?  Nothing
 * is stored.  The preparer reads the body, as it reads that of a new event, and renders the plan; on
 * HTTP threads but for that. */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "api/render.h"
#include "api/routes.h"
#include "base/utf8.h"
#include "venue/event_parse.h"
#include "venue/plan_document.h"

#define DRAWN_SEATS_MAX 20000 /* the plan of an event with more is left out of the answer */

static void put_complaints(const struct complaints *complaints, struct buf *out)
{
    const char *first = complaints->list.v[0];
    buf_put(out, first, strlen(first) + 1);
    buf_char(out, '[');
    for (size_t i = 0; i < complaints->list.n; i++) {
        const char *text = complaints->list.v[i]; /* may end in the middle of a character */
        json_put_bytes(out, NULL, text, utf8_valid_len(text, strlen(text)));
    }
    buf_char(out, ']');
}

static void put_plan(const struct event_def *def, struct buf *out)
{
    int64_t capacity = event_def_capacity(def), seats = capacity;
    for (size_t i = 0; i < def->areas.n; i++)
        seats -= def->areas.v[i].capacity;
    buf_lit(out, "{\"object\":\"plan_check\"");
    json_put_int(out, "capacity", capacity);
    json_put_int(out, "seats", seats);
    json_put_name(out, "plan");
    if (seats <= DRAWN_SEATS_MAX)
        plan_document(def, NULL, NULL, out);
    else
        buf_lit(out, "null");
    buf_char(out, '}');
}

static void read_and_draw(void *context)
{
    struct call *c = context;
    struct call_check *check = &c->check;
    struct complaints complaints = {0};
    struct event_def *def = NULL;
    if (parse_event_complaints(&c->http.body, &check->lacks_plan, &complaints, &def)) {
        put_plan(def, &check->body);
        event_def_free(def);
    } else {
        check->is_refused = true;
        put_complaints(&complaints, &check->body);
    }
    complaints_close(&complaints);
    if (c->http.body.len > BODY_EVENT_MAX) /* the memory of its JSON goes back to the system */
        (void)malloc_trim(0);
}

static void plan_checked(struct request *r)
{
    struct call *c = call_of(r);
    const struct buf *body = &c->check.body;
    if (c->command.verdict != VERDICT_OK) {
        call_answer(r);
        return;
    }
    if (c->check.lacks_plan && r->body.len > BODY_EVENT_MAX) {
        answer_problem(r, &problem_body_too_large,
                       "body must have at most 8388608 bytes without a plan");
        return;
    }
    if (c->check.is_refused) {
        size_t len = strlen(body->data) + 1;
        problem_open(r, &problem_invalid_request, body->data);
        json_put_name(&r->out, "complaints");
        buf_put(&r->out, body->data + len, body->len - len);
        problem_close(r);
        return;
    }
    buf_put(&r->out, body->data, body->len);
    answer_out(r, HTTP_OK, type_json);
}

void plans_check(struct request *r)
{
    struct call *c = call_of(r);
    c->command.kind = CMD_PREPARE;
    c->command.prepare.run = read_and_draw;
    c->command.prepare.context = c;
    call_submit(c, plan_checked);
}
