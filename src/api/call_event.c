/* The event that a request is about: in memory, or looked up first.  See call.h.  On HTTP
 * threads. */
#include "api/idempotency.h"
#include "view/view.h"

static bool can_exist(int64_t event) { return event > 0 && event <= EVENT_KEY_MAX; }

/* An event that was loaded for this call has a pin of the command's already. */
struct event *call_loaded_event(struct call *c, int64_t event)
{
    if (c->event && c->event->def->id.key == event)
        return c->event;
    event_give(c->event);
    c->event = c->command.pinned;
    c->command.pinned = NULL;
    if (c->event && c->event->def->id.key == event)
        return c->event;
    event_give(c->event);
    return c->event = engine_event_take(call_engine(c), event);
}

struct event *call_event(struct call *c, int64_t event, enum verdict missing)
{
    struct event *e = call_loaded_event(c, event);
    struct command *command = &c->command;
    if (e)
        return e;
    if (!c->event_tried && can_exist(event)) {
        c->event_tried = true;
        command->kind = CMD_EVENT_LOAD;
        command->event_key = event;
        call_submit(c, c->http.step);
        return NULL;
    }
    bool looked_up = command->kind == CMD_EVENT_LOAD;
    if (looked_up && command->verdict != VERDICT_OK && command->verdict != VERDICT_NO_SUCH_EVENT)
        call_answer(&c->http);
    else if (key_is_unused(c))
        call_refuse(c, missing, NULL);
    return NULL;
}

struct event *call_event_named(struct call *c, const char *text, size_t len)
{
    struct id id = {0};
    bool is_id = id_parse(text, len, "evt_", &id);
    struct event *e = call_event(c, is_id ? id.key : 0, VERDICT_NO_SUCH_EVENT);
    if (!e || id_secret_equal(e->def->id.secret, id.secret))
        return e;
    if (key_is_unused(c))
        call_refuse(c, VERDICT_NO_SUCH_EVENT, NULL);
    return NULL;
}
