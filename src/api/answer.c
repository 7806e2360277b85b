/* From a command that has come back to its answer: the stored answer of an idempotency key, a body,
 * or a problem with the members that its verdict has.  On HTTP threads. */
#include <string.h>

#include "api/call.h"
#include "api/render.h"
#include "rules/view.h"

static const struct shortage *shortage_of(const struct command *command)
{
    switch (command->kind) {
    case CMD_HOLD_CREATE:
        return &command->create.shortage;
    case CMD_SEATS_BLOCK:
    case CMD_SEATS_UNBLOCK:
        return &command->block.shortage;
    default:
        return NULL;
    }
}

static void answer_taken(struct call *c)
{
    const struct command *command = &c->command;
    const struct shortage *s = shortage_of(command);
    if (!s || s->n_taken == 0) {
        call_refuse(c, command->verdict, NULL);
        return;
    }
    problem_open(&c->http, problem_of(command->verdict), NULL);
    buf_lit(&c->http.out, ",\"seats\":");
    render_seats(command->event, s->taken, s->n_taken, &c->http.out);
    problem_close(&c->http);
}

static void answer_sold_out(struct call *c)
{
    const struct command *command = &c->command;
    const struct shortage *s = &command->create.shortage;
    struct buf *out = &c->http.out;
    bool apart = s->short_area < 0 && s->available >= command->create.best.quantity;
    problem_open(&c->http, problem_of(VERDICT_SOLD_OUT),
                 apart ? "No row has that many free side by side." : NULL);
    buf_lit(out, ",\"available\":");
    buf_int(out, s->available);
    if (s->short_area >= 0) {
        const char *name = command->event->def->areas.v[s->short_area].name;
        buf_lit(out, ",\"area\":");
        buf_json(out, name, strlen(name));
    }
    problem_close(&c->http);
}

/* The hold that the client can look up when the outcome is not known (I14); key 0: none. */
static struct id hold_in_question(struct command *command)
{
    const struct named_hold *named = command_named_hold(command);
    if (named)
        return named->id;
    return command->kind == CMD_HOLD_CREATE ? command->create.hold.id : (struct id){0};
}

static void answer_unknown(struct call *c)
{
    struct id id = hold_in_question(&c->command);
    problem_open(&c->http, problem_of(VERDICT_OUTCOME_UNKNOWN), NULL);
    if (id.key > 0) {
        buf_lit(&c->http.out, ",\"hold\":");
        render_id("hold_", &id, false, &c->http.out);
    }
    problem_close(&c->http);
}

static void answer_stored(struct call *c)
{
    const struct idempotency *key = &c->command.key;
    struct answer *a = &c->http.answer;
    a->status = key->answer_code;
    a->type = key->answer.len ? type_json : NULL;
    a->data = key->answer.data;
    a->len = key->answer.len;
    a->replayed = key->replayed;
}

void call_answer(struct request *r)
{
    struct call *c = call_of(r);
    const struct command *command = &c->command;
    if (command->key.rendered) {
        answer_stored(c);
        return;
    }
    switch (command->verdict) {
    case VERDICT_OK:
    case VERDICT_CREATED: {
        int status = api_render(command, &r->out);
        answer_out(r, status, r->out.len ? type_json : NULL);
        break;
    }
    case VERDICT_SEAT_TAKEN:
    case VERDICT_SEAT_SOLD:
        answer_taken(c);
        break;
    case VERDICT_SOLD_OUT:
        answer_sold_out(c);
        break;
    case VERDICT_OUTCOME_UNKNOWN:
        answer_unknown(c);
        break;
    default:
        call_refuse(c, command->verdict, NULL);
        r->answer.why = command->err.msg;
    }
}
