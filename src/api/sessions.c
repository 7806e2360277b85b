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

static void put_label(const struct cell_text *label, struct buf *out)
{
    buf_lit(out, ",\"label\":");
    if (label->len)
        buf_json(out, label->data, label->len);
    else
        buf_lit(out, "null");
}

static void session_opened(struct request *r)
{
    struct call *c = call_of(r);
    const struct cell_request *request = &c->lock.request;
    char id[ID_TEXT_SIZE];
    if (!lock_done(c))
        return;
    (void)id_format(id, "ses_", &request->command.session);
    buf_printf(&r->out, "{\"object\":\"session\",\"id\":\"%s\",\"ttl_ms\":%lld", id,
               (long long)c->lock.body.ttl_ms);
    put_label(&request->command.label, &r->out);
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
    for (size_t i = 0; i < request->wanted.n; i++) {
        const char *name = request->wanted.v[i].name;
        buf_str(&r->out, i ? "," : "");
        buf_json(&r->out, name, strlen(name));
    }
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
