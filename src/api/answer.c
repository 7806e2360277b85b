/* From a command that has come back to its answer: the stored answer of an idempotency key, a body,
 * or a problem with the members that its verdict has.  On HTTP threads. */
#include <stdio.h>

#include "api/pace.h"
#include "api/render.h"
#include "view/view.h"

void call_refuse(struct call *c, enum verdict verdict, const char *detail)
{
    answer_problem(&c->http, problem_of(verdict), detail);
}

void call_invalid(struct call *c, const char *detail)
{
    answer_problem(&c->http, &problem_invalid_request, detail);
}

static const struct shortage *shortage_of(const struct command *command)
{
    switch (command->kind) {
    case CMD_HOLD_CREATE:
        return &command->create.shortage;
    case CMD_HOLD_CHANGE:
        return &command->change.shortage;
    case CMD_HOLD_CONFIRM:
        return &command->confirm.shortage;
    case CMD_BOOKING_CREATE:
        return &command->booking_create->shortage;
    case CMD_WAIT_JOIN:
        return &command->wait_join.shortage;
    case CMD_SEATS_BLOCK:
    case CMD_SEATS_UNBLOCK:
        return &command->block.shortage;
    default:
        return NULL;
    }
}

/* Lists the seats for which the command is refused. */
static void answer_taken(struct call *c)
{
    const struct command *command = &c->command;
    const struct shortage *s = shortage_of(command);
    if (!s || s->n_taken == 0) {
        call_refuse(c, command->verdict, NULL);
        return;
    }
    problem_open(&c->http, problem_of(command->verdict), NULL);
    json_put_name(&c->http.out, "seats");
    render_seats(command->event, s->taken, s->n_taken, &c->http.out);
    problem_close(&c->http);
}

static void put_shortage(const struct event *e, const struct shortage *s, struct buf *out)
{
    json_put_int(out, "available", s->available);
    if (s->short_area >= 0)
        json_put_text(out, "area", e->def->areas.v[s->short_area].name);
}

static void answer_sold_out(struct call *c)
{
    const struct command *command = &c->command;
    const struct shortage *s = shortage_of(command);
    struct buf *out = &c->http.out;
    bool apart = command->kind == CMD_HOLD_CREATE && s->short_area < 0 &&
                 s->available >= command->create.best.quantity;
    problem_open(&c->http, problem_of(VERDICT_SOLD_OUT),
                 apart ? "No row has that many free side by side." : NULL);
    put_shortage(command->event, s, out);
    problem_close(&c->http);
}

/* Seats or places that are to be taken out of a hold which does not have them. */
static void answer_not_held(struct call *c)
{
    const struct shortage *s = shortage_of(&c->command);
    if (s->n_taken) {
        answer_taken(c);
        return;
    }
    problem_open(&c->http, problem_of(VERDICT_NOT_HELD), NULL);
    put_shortage(c->command.event, s, &c->http.out);
    problem_close(&c->http);
}

/* Names the first ticket type that the event does not have. */
static void answer_no_type(struct call *c)
{
    const struct shortage *s = shortage_of(&c->command);
    problem_open(&c->http, problem_of(VERDICT_NO_SUCH_TYPE), NULL);
    json_open(&c->http.out, "types", '[');
    json_put_bytes(&c->http.out, NULL, s->unknown->id, s->unknown->id_len);
    buf_char(&c->http.out, ']');
    problem_close(&c->http);
}

static void answer_closed(struct call *c)
{
    const struct shortage *s = shortage_of(&c->command);
    struct buf *out = &c->http.out;
    bool is_timed = s && (s->opens_at || s->closes_at);
    problem_open(&c->http, problem_of(VERDICT_EVENT_CLOSED),
                 !is_timed     ? NULL
                 : s->is_early ? "Sales have not opened yet; see sales_open_at."
                               : "Sales are over; see sales_close_at.");
    if (s && s->opens_at)
        json_put_time(out, "sales_open_at", s->opens_at);
    if (s && s->closes_at)
        json_put_time(out, "sales_close_at", s->closes_at);
    problem_close(&c->http);
}

/* A limit on places; `what` has room for the number. */
static void answer_limit(struct call *c, const char *what)
{
    const struct shortage *s = shortage_of(&c->command);
    char detail[128];
    (void)snprintf(detail, sizeof detail, what, (long long)s->limit);
    problem_open(&c->http, problem_of(c->command.verdict), detail);
    json_put_int(&c->http.out, "limit", s->limit);
    problem_close(&c->http);
}

/* Fields that are right by themselves and do not go together, or not with the hold. */
static const char *conflict_of(const struct command *command)
{
    return command->kind == CMD_EVENT_CHANGE     ? command->event_change.conflict
           : command->kind == CMD_HOLD_CHANGE    ? command->change.conflict
           : command->kind == CMD_BOOKING_CREATE ? command->booking_create->conflict
           : command->kind == CMD_WAIT_JOIN      ? command->wait_join.conflict
           : command->kind == CMD_SEAT_GET || command->kind == CMD_MAP_PAST
               ? "at is too long ago: rows of the event's log that it needs were pruned"
               : NULL;
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
    if (id.key > 0)
        json_put_id(&c->http.out, "hold", "hold_", &id);
    if (c->command.kind == CMD_WAIT_JOIN && c->command.wait_join.wait.id.key > 0)
        json_put_id(&c->http.out, "entry", "wait_", &c->command.wait_join.wait.id);
    problem_close(&c->http);
}

/* The one of several holds for which they cannot be booked together; NULL: there is none, or it was
 * named by a text that is no id. */
static const struct id *refused_hold(const struct command *command)
{
    const struct named_hold *refused =
        command->kind == CMD_BOOKING_CREATE ? command->booking_create->refused : NULL;
    if (!refused || refused->id.key <= 0)
        return NULL;
    switch (command->verdict) {
    case VERDICT_NO_SUCH_HOLD:
    case VERDICT_BOOKING_EXISTS:
    case VERDICT_HOLD_EXPIRED:
    case VERDICT_HOLD_RELEASED:
        return &refused->id;
    default:
        return NULL;
    }
}

/* Refuses the booking of several holds, and says for which of them. */
static void answer_refused_hold(struct call *c, const struct id *hold)
{
    const struct problem *problem = problem_of(c->command.verdict);
    char id[ID_TEXT_SIZE], detail[256];
    size_t len;
    const char *usual = problem_detail(problem, &len);
    id_format(id, "hold_", hold);
    (void)snprintf(detail, sizeof detail, "%s: %.*s", id, (int)len, usual);
    problem_open(&c->http, problem, detail);
    json_put_id(&c->http.out, "hold", "hold_", hold);
    problem_close(&c->http);
}

/* Takes the stored bytes over, since the command may be closed before they have been sent. */
static void answer_stored(struct call *c)
{
    struct request *r = &c->http;
    struct idempotency *key = &c->command.key;
    struct buf stored = key->answer;
    key->answer = r->out;
    r->out = stored;
    answer_out(r, key->answer_code, stored.len ? type_json : NULL);
    r->answer.headers.replayed = key->replayed;
}

/* Gives back what was spent if nothing was written. */
static void settle_pace(struct call *c)
{
    const struct command *command = &c->command;
    bool has_written = verdict_is_success(command->verdict) && !command->key.replayed;
    c->has_spent = false;
    if (!has_written && command->verdict != VERDICT_OUTCOME_UNKNOWN)
        access_unspend(&c->http, pace_quota(c->spent));
}

void call_answer(struct request *r)
{
    struct call *c = call_of(r);
    const struct command *command = &c->command;
    if (c->has_spent)
        settle_pace(c);
    if (command->key.rendered) {
        answer_stored(c);
        return;
    }
    switch (command->verdict) {
    case VERDICT_OK:
    case VERDICT_CREATED: {
        int status = render_answer(command, &r->out);
        answer_out(r, status, r->out.len ? type_json : NULL);
        break;
    }
    case VERDICT_SEAT_TAKEN:
    case VERDICT_SEAT_SOLD:
    case VERDICT_LONE_SEAT:
        answer_taken(c);
        break;
    case VERDICT_SOLD_OUT:
        answer_sold_out(c);
        break;
    case VERDICT_NOT_HELD:
        answer_not_held(c);
        break;
    case VERDICT_NO_SUCH_TYPE:
        answer_no_type(c);
        break;
    case VERDICT_EVENT_CLOSED:
        answer_closed(c);
        break;
    case VERDICT_TOO_MANY_SEATS:
        answer_limit(c, "a hold may have at most %lld places");
        break;
    case VERDICT_OWNER_LIMIT:
        answer_limit(c, "An owner may have at most %lld places of this event.");
        break;
    case VERDICT_TOO_MANY_HOLDS:
        answer_limit(c, "An address may hold %lld places, an IPv6 /48 eight times as many; release "
                        "a hold, buy, or wait for one to end.");
        break;
    case VERDICT_ALREADY_WAITING:
        answer_limit(c, "No owner may have more than %lld of the live entries of this list.");
        break;
    case VERDICT_TOO_MANY_WAITS:
        answer_limit(c, "No address may have more than %lld of the live entries of this list, an "
                        "IPv6 /48 eight times as many; leave the list with one of them.");
        break;
    case VERDICT_INVALID_REQUEST:
        call_invalid(c, conflict_of(command) ? conflict_of(command) : "the request is not valid");
        break;
    case VERDICT_SELLER_ONLY:
        (void)access_require(r, SCOPE_SELLER, "Only sellers may add to a hold of a channel.");
        break;
    case VERDICT_OUTCOME_UNKNOWN:
        answer_unknown(c);
        break;
    default:
        if (refused_hold(command))
            answer_refused_hold(c, refused_hold(command));
        else
            call_refuse(c, command->verdict, NULL);
        r->answer.why = command->err.msg;
    }
}
