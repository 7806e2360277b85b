/* /v1/sessions: a client's liveness towards the lock service.  On HTTP threads; the cell's thread
 * does the work. */
#include <string.h>

#include "api/routes.h"

/* A number that stands for the caller's access key; 0 if the server has no keys. */
static int64_t account_of(const struct caller *caller)
{
    uint64_t n = 0;
    if (!caller->has_key)
        return 0;
    memcpy(&n, caller->digest, sizeof n);
    return (int64_t)(n >> 1) | 1;
}

static void session_opened(struct request *r)
{
    struct call *c = call_of(r);
    const struct cell_command *command = &c->lock.request.command;
    if (!lock_done(c))
        return;
    buf_lit(&r->out, "{\"object\":\"session\"");
    json_put_id(&r->out, "id", "ses_", &command->session);
    json_put_int(&r->out, "ttl_ms", c->lock.body.ttl_ms);
    json_put_bytes(&r->out, "label", command->label.len ? command->label.data : NULL,
                   command->label.len);
    buf_char(&r->out, '}');
    answer_out(r, HTTP_CREATED, type_json);
}

void sessions_create(struct request *r)
{
    struct call *c = call_of(r);
    if (!lock_begin(c, false) || !lock_read_body(c, lock_fields_open))
        return;
    const struct lock_body *body = &c->lock.body;
    c->lock.request.command = (struct cell_command){
        .kind = CELL_OPEN,
        .ttl_ms = (uint32_t)body->ttl_ms,
        .label = {body->label.data, body->label.len},
        .account = account_of(&r->caller),
        .limit = call_api(c)->sessions_max,
    };
    lock_submit(c, CELL_REQUEST_COMMAND, session_opened);
}

/* ---- one session ---- */

/* Returns false if the call has been answered: the session is unknown, or the body is not empty. */
static bool begin(struct call *c)
{
    return lock_begin(c, false) && lock_empty_body(c) && lock_read_session(c, c->http.segment);
}

static void kept_alive(struct request *r)
{
    struct call *c = call_of(r);
    const struct cell_request *request = &c->lock.request;
    if (!lock_done(c))
        return;
    buf_printf(&r->out, "{\"object\":\"session\",\"ttl_ms\":%u,\"wanted\":[", request->ttl_ms);
    for (size_t i = 0; i < request->wanted.n; i++)
        json_put_text(&r->out, NULL, request->wanted.v[i].name);
    buf_lit(&r->out, "]}");
    answer_out(r, HTTP_OK, type_json);
}

void sessions_keepalive(struct request *r)
{
    struct call *c = call_of(r);
    if (begin(c))
        lock_submit(c, CELL_REQUEST_KEEPALIVE, kept_alive);
}

/* A session that has ended already is what the client wants. */
static void session_closed(struct request *r)
{
    struct call *c = call_of(r);
    if (c->lock.request.verdict.result == CELL_NO_SESSION || lock_done(c))
        answer_out(r, HTTP_NO_CONTENT, NULL);
}

void sessions_close(struct request *r)
{
    struct call *c = call_of(r);
    if (!begin(c))
        return;
    c->lock.request.command.kind = CELL_CLOSE;
    lock_submit(c, CELL_REQUEST_COMMAND, session_closed);
}
