/* /v1/events: create, one event, its map of seats, and one seat's past.  What the view knows is
 * answered from it. */
#include <string.h>

#include "base/gzip.h"
#include "api/answer.h"
#include "api/idempotency.h"
#include "api/parse.h"
#include "api/routes.h"
#include "http/text.h"

#define ROWS_MANY 2000

static size_t count_rows(const struct event_def *def)
{
    size_t n = 0;
    for (size_t i = 0; i < def->sections.n; i++)
        n += def->sections.v[i].rows.n;
    return n;
}

void events_create(struct request *r)
{
    struct command *c = &r->command;
    struct hf_err err = {0};
    if (!idempotency_read(r))
        return;
    r->json = parse_body(&r->body, false, &err);
    if (!r->json || !parse_event(r->json, &c->def, &err)) {
        answer_problem(r, HF_INVALID_REQUEST, err.msg);
        return;
    }
    if (count_rows(c->def) > ROWS_MANY && !server_admit_large(r)) {
        answer_problem(r, HF_OVERLOADED, NULL);
        return;
    }
    c->kind = CMD_EVENT_CREATE;
    idempotency_hash_request(r);
    request_wait(r, answer_command);
}

static struct event *path_event(struct request *r, step_fn again)
{
    return request_event_named(r, r->segment, r->segment_len, again);
}

void events_get(struct request *r)
{
    struct event *e = path_event(r, events_get);
    if (!e)
        return;
    render_event(e->def, e, 0, &r->out);
    answer_out(r, MHD_HTTP_OK, type_json);
}

static void etag_write(char out[24], int64_t seq)
{
    struct buf b = {.data = out, .cap = 24}; /* two quotes and 20 digits at most: never grows */
    buf_char(&b, '"');
    buf_int(&b, seq);
    buf_lit(&b, "\"\0");
}

static void snapshot_sent(void *snapshot) { snapshot_unref(snapshot); }

/* Takes over the reference. */
static void answer_snapshot(struct request *r, struct snapshot *s, bool packed)
{
    struct answer *a = &r->answer;
    const struct buf *body = packed ? &s->packed : &s->json;
    etag_write(a->etag, s->seq);
    a->varies = true;
    a->status = MHD_HTTP_OK;
    a->type = type_json;
    a->gzipped = packed;
    a->data = body->data;
    a->len = body->len;
    a->sent = snapshot_sent;
    a->owner = s;
}

static bool wants_packed(const struct request *r)
{
    return gzip_accepted(request_header(r, MHD_HTTP_HEADER_ACCEPT_ENCODING));
}

static void seats_drawn(struct request *r)
{
    struct command *c = &r->command;
    if (c->status != HF_OK) {
        answer_command(r);
        return;
    }
    struct snapshot *s = c->snapshot;
    c->snapshot = NULL;
    answer_snapshot(r, s, c->packed);
}

/* Drawing is another thread's work, unless it has been done. */
void events_seats(struct request *r)
{
    struct event *e = path_event(r, events_seats);
    if (!e)
        return;
    struct command *c = &r->command;
    struct answer *a = &r->answer;
    c->seq = atomic_load_explicit(&e->seq, memory_order_acquire);
    const char *known = request_header(r, MHD_HTTP_HEADER_IF_NONE_MATCH);
    etag_write(a->etag, c->seq);
    if (known && text_etag_listed(known, a->etag)) {
        a->varies = true;
        a->status = MHD_HTTP_NOT_MODIFIED;
        return;
    }
    c->packed = wants_packed(r);
    struct snapshot *s = event_snapshot(e, c->packed);
    if (s) {
        answer_snapshot(r, s, c->packed);
        return;
    }
    a->etag[0] = '\0';
    c->kind = CMD_SNAPSHOT;
    c->event = e;
    request_wait(r, seats_drawn);
}

/* ---- one seat, now or then ---- */

static void seat_done(struct request *r)
{
    if (r->command.status != HF_OK) {
        answer_command(r);
        return;
    }
    render_seat_past(r->command.event, r->command.seats[0], r->command.past, &r->out);
    answer_out(r, MHD_HTTP_OK, type_json);
}

void seat_get(struct request *r)
{
    struct command *c = &r->command;
    const char *at = request_query(r, "at");
    if (at && !parse_time(at, &c->at)) {
        answer_problem(r, HF_INVALID_REQUEST, "at must be a time such as 2030-01-31T20:00:00.000Z");
        return;
    }
    struct event *e = path_event(r, seat_get);
    if (!e)
        return;
    if (!request_find_seat(r, e, r->segment2.data, r->segment2.len))
        return;
    if (at && c->at < e->def->created_at) {
        answer_problem(r, HF_INVALID_REQUEST, "at is before the event was created");
        return;
    }
    c->kind = CMD_SEAT_GET;
    c->event = e;
    c->past = hf_alloc(sizeof *c->past);
    request_wait(r, seat_done);
}
