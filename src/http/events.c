/* /v1/events: create, list, one event, and its map of seats.  Reads are answered from the view. */
#include <string.h>

#include "http/answer.h"
#include "http/gzip.h"
#include "http/idempotency.h"
#include "http/parse.h"
#include "http/routes.h"
#include "http/text.h"

#define LIST_LIMIT_DEFAULT 20
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

static void list_done(struct request *r)
{
    const struct event_list *list = r->command.list;
    if (r->command.status != HF_OK) {
        answer_command(r);
        return;
    }
    struct buf *out = &r->out;
    buf_lit(out, "{\"data\":[");
    for (size_t i = 0; i < list->n; i++) {
        if (i)
            buf_char(out, ',');
        render_event(list->events[i]->def, list->events[i], out);
    }
    buf_lit(out, "],\"has_more\":");
    buf_str(out, list->more ? "true" : "false");
    buf_lit(out, ",\"next_cursor\":");
    if (list->more && list->n > 0) {
        buf_char(out, '"');
        buf_str(out, event_id_text(list->events[list->n - 1]));
        buf_char(out, '"');
    } else {
        buf_lit(out, "null");
    }
    buf_char(out, '}');
    answer_out(r, MHD_HTTP_OK, type_json);
}

static bool read_limit(const char *text, size_t *ret)
{
    size_t n = 0;
    if (!*text || strlen(text) > 3)
        return false;
    for (; *text; text++) {
        if (*text < '0' || *text > '9')
            return false;
        n = n * 10 + (size_t)(*text - '0');
    }
    *ret = n;
    return n >= 1 && n <= EVENTS_LIST_MAX;
}

static const char *query(const struct request *r, const char *name)
{
    return MHD_lookup_connection_value(r->connection, MHD_GET_ARGUMENT_KIND, name);
}

static const char *header(const struct request *r, const char *name)
{
    return MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, name);
}

void events_list(struct request *r)
{
    struct command *c = &r->command;
    struct id before = {0};
    size_t limit = LIST_LIMIT_DEFAULT;
    const char *limit_text = query(r, "limit"), *cursor = query(r, "cursor");
    if (limit_text && !read_limit(limit_text, &limit)) {
        answer_problem(r, HF_INVALID_REQUEST, "limit must be from 1 to 100");
        return;
    }
    if (cursor && !id_parse(cursor, strlen(cursor), "evt_", &before)) {
        answer_problem(r, HF_INVALID_REQUEST, "cursor must be the next_cursor of an earlier list");
        return;
    }
    c->kind = CMD_EVENT_LIST;
    c->list = hf_alloc(sizeof *c->list);
    c->list->before = before.key;
    c->list->limit = limit;
    request_wait(r, list_done);
}

/* The event of the path, or NULL: answered, or on its way. */
static struct event *path_event(struct request *r, step_fn again)
{
    if (!id_parse(r->segment, r->segment_len, "evt_", &r->event_id)) {
        answer_problem(r, HF_NO_SUCH_EVENT, NULL);
        return NULL;
    }
    struct event *e = request_event(r, r->event_id.key, HF_NO_SUCH_EVENT, again);
    if (e && !id_secret_equal(e->def->id.secret, r->event_id.secret)) {
        answer_problem(r, HF_NO_SUCH_EVENT, NULL);
        return NULL;
    }
    return e;
}

void events_get(struct request *r)
{
    struct event *e = path_event(r, events_get);
    if (!e)
        return;
    render_event(e->def, e, &r->out);
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
static void gzip_sent(void *packed) { gzip_unref(packed); }

void events_seats(struct request *r)
{
    struct event *e = path_event(r, events_seats);
    if (!e)
        return;
    struct answer *a = &r->answer;
    struct snapshot *s = event_snapshot(e);
    etag_write(a->etag, s->seq);
    a->varies = true;
    const char *known = header(r, MHD_HTTP_HEADER_IF_NONE_MATCH);
    if (known && text_etag_listed(known, a->etag)) {
        snapshot_unref(s);
        a->status = MHD_HTTP_NOT_MODIFIED;
        return;
    }
    a->status = MHD_HTTP_OK;
    a->type = type_json;
    if (s->json.len >= GZIP_LEN_MIN && gzip_accepted(header(r, MHD_HTTP_HEADER_ACCEPT_ENCODING))) {
        struct gzip *packed = gzip_snapshot(r->event_id.key, s);
        snapshot_unref(s);
        a->gzipped = true;
        a->data = packed->bytes.data;
        a->len = packed->bytes.len;
        a->sent = gzip_sent;
        a->owner = packed;
    } else {
        a->data = s->json.data;
        a->len = s->json.len;
        a->sent = snapshot_sent;
        a->owner = s;
    }
}
