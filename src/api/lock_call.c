/* See lock_call.h.  On HTTP threads. */
#include "api/lock_call.h"

#include <string.h>

#include "api/call.h"
#include "cell/cell.h"
#include "http/route.h"

/* ---- elsewhere ---- */

/* Writes a name of a path, which request_name has left room behind for a NUL. */
static void put_name(struct buf *out, const struct buf *name)
{
    name->data[name->len] = '\0';
    for (size_t at = 0; at <= name->len; at += strlen(name->data + at) + 1) {
        buf_str(out, at ? "%00" : "");
        buf_percent(out, name->data + at);
    }
}

/* Writes the request's path and query again, as the route and the parameters have them. */
static void put_target(struct request *r, struct buf *out)
{
    const struct text *segment = &r->segment;
    for (const char *p = r->route->path; *p; p++) {
        if (*p != '*') {
            buf_char(out, *p);
            continue;
        }
        put_name(out, request_name(r, segment->data, segment->len));
        segment = &r->segment2;
    }
    for (unsigned i = 0; i < r->n_parameters; i++) {
        buf_char(out, i ? '&' : '?');
        buf_percent(out, r->parameters[i].name);
        buf_char(out, '=');
        buf_percent(out, r->parameters[i].value);
    }
}

static void redirect(struct call *c, const char *master_url)
{
    struct request *r = &c->http;
    r->out.len = 0;
    buf_str(&r->out, master_url);
    put_target(r, &r->out);
    buf_char(&r->out, '\0');
    r->answer.status = HTTP_TEMPORARY_REDIRECT;
    r->answer.headers.location = r->out.data;
}

void lock_elsewhere(struct call *c, const char *master_url)
{
    if (*master_url)
        redirect(c, master_url);
    else
        answer_problem(&c->http, problem_of_cell(CELL_NO_MASTER), NULL);
}

bool lock_begin(struct call *c, bool anywhere)
{
    struct cell *cell = call_api(c)->cell;
    char url[CELL_URL_MAX + 1];
    if (!cell) {
        answer_problem(&c->http, &problem_not_found, "The lock service of this server is off.");
        return false;
    }
    const char *master = anywhere ? NULL : cell_redirect(cell, url);
    if (master) {
        lock_elsewhere(c, master);
        return false;
    }
    c->has_lock = true;
    memset(&c->lock, 0, sizeof c->lock);
    return true;
}

/* ---- what the request says ---- */

bool lock_read_body(struct call *c, const struct lock_field *table)
{
    struct hf_err err = {0};
    if (lock_scan(&c->http.body, table, &c->lock.body) ||
        lock_parse(&c->http.body, table, &c->lock.body, &c->json, &err))
        return true;
    call_invalid(c, err.msg);
    return false;
}

bool lock_empty_body(struct call *c)
{
    static const char *const none[] = {NULL};
    struct hf_err err = {0};
    if (c->http.body.len == 0)
        return true;
    const struct fields f = {.object = call_json(c, true, &err), .path = "", .err = &err};
    if (f.object && fields_known(&f, none))
        return true;
    call_invalid(c, err.msg);
    return false;
}

bool lock_read_name(struct call *c)
{
    struct request *r = &c->http;
    const struct buf *name = request_name(r, r->segment.data, r->segment.len);
    const char *fault = cell_name_check(name->data, name->len);
    if (fault) {
        call_invalid(c, fault);
        return false;
    }
    c->lock.request.command.name = (struct cell_text){name->data, name->len};
    return true;
}

bool lock_read_session(struct call *c, struct text id)
{
    if (id_parse(id.data, id.len, "ses_", &c->lock.request.command.session))
        return true;
    answer_problem(&c->http, &problem_no_such_session, NULL);
    return false;
}

bool lock_read_owner(struct call *c)
{
    const struct text *owner = &c->lock.body.owner;
    if (!owner->data || cell_owner_parse(owner->data, owner->len, &c->lock.request.command.owner))
        return true;
    call_invalid(c, "owner must be 1 to 32 hexadecimal digits");
    return false;
}

/* ---- the cell ---- */

void lock_submit(struct call *c, enum cell_request_kind kind, step_fn then)
{
    struct cell_request *request = &c->lock.request;
    request->kind = kind;
    request_wait(&c->http, &request->pending, then);
    cell_submit(call_api(c)->cell, request);
}

static void client_gone(struct request *r)
{
    struct call *c = call_of(r);
    cell_gone(call_api(c)->cell, &c->lock.request);
}

void lock_submit_waiting(struct call *c, step_fn then)
{
    struct cell_request *request = &c->lock.request;
    request->kind = CELL_REQUEST_COMMAND;
    request_wait_or_gone(&c->http, &request->pending, then, client_gone);
    cell_submit(call_api(c)->cell, request);
}

void lock_look(struct call *c, bool stale, step_fn then,
               void (*look)(struct cell_request *r, const struct node *n,
                            const struct cell_state *s))
{
    c->lock.request.stale = stale;
    c->lock.request.look = look;
    c->lock.request.context = c;
    lock_submit(c, CELL_REQUEST_LOOK, then);
}

/* ---- answers ---- */

void lock_put_name(struct call *c)
{
    const struct cell_text *name = &c->lock.request.command.name;
    buf_lit(&c->http.out, "{\"object\":\"lock\"");
    json_put_bytes(&c->http.out, "name", name->data, name->len);
}

void lock_put_owner(struct call *c)
{
    char text[CELL_OWNER_TEXT_SIZE];
    cell_owner_format(&c->lock.request.command.owner, text);
    json_put_text(&c->http.out, "owner", text);
}

static void put_holders(const struct cell_verdict *v, struct buf *out)
{
    json_put_int_or_null(out, "position", v->position);
    json_open(out, "holders", '[');
    for (size_t i = 0; i < v->people.n; i++)
        json_put_text_or_null(out, NULL, v->people.v[i].label);
    buf_char(out, ']');
}

static void put_cycle(const struct cell_verdict *v, struct buf *out)
{
    json_open(out, "cycle", '[');
    for (size_t i = 0; i < v->people.n; i++) {
        json_open(out, NULL, '{');
        json_put_text(out, "name", v->people.v[i].name);
        json_put_text_or_null(out, "label", v->people.v[i].label);
        buf_char(out, '}');
    }
    buf_char(out, ']');
}

/* The members that the problem of this verdict has of its own. */
static void put_members(struct call *c, const struct cell_verdict *v)
{
    struct buf *out = &c->http.out;
    if (c->lock.request.command.kind == CELL_ACQUIRE && c->lock.request.command.owner.digits)
        lock_put_owner(c);
    switch (v->result) {
    case CELL_TAKEN:
        put_holders(v, out);
        break;
    case CELL_DEADLOCK:
        put_cycle(v, out);
        break;
    case CELL_MODE_CONFLICT:
        json_put_text(out, "mode", cell_mode_names[v->mode]);
        break;
    case CELL_SLOTS_CONFLICT:
        json_put_int(out, "slots", v->slots);
        break;
    default:
        break;
    }
}

/* Owners stay valid after a refusal that says nothing about the lock, so clients are told them. */
static void refuse(struct call *c, const struct problem *problem)
{
    problem_open(&c->http, problem, NULL);
    put_members(c, &c->lock.request.verdict);
    problem_close(&c->http);
}

bool lock_done(struct call *c)
{
    const struct cell_request *request = &c->lock.request;
    const struct cell_verdict *v = &request->verdict;
    if (v->result == CELL_DONE)
        return true;
    if (v->result == CELL_NO_MASTER && *request->master_url)
        redirect(c, request->master_url);
    else
        refuse(c, problem_of_cell(v->result));
    return false;
}
