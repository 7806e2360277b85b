/* The seats of an event: the map (GET /v1/events/{e}/seats), one seat now or in the past (GET
 * .../seats/{s}), and taking seats off sale and back (POST .../block, .../unblock).  On HTTP
 * threads; another thread draws the map. */
#include <stdlib.h>

#include "api/idempotency.h"
#include "api/parse.h"
#include "api/render.h"
#include "api/routes.h"
#include "api/seat_names.h"
#include "base/gzip.h"
#include "rules/snapshot.h"
#include "rules/view.h"

static struct event *path_event(struct call *c, step_fn again)
{
    return call_event_named(c, c->http.segment.data, c->http.segment.len, again);
}

/* ---- the map ---- */

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
    const struct buf *body = packed ? &s->packed : &s->text;
    etag_write(a->etag, s->seq);
    a->varies = true;
    a->status = HTTP_OK;
    a->type = type_json;
    a->gzipped = packed;
    a->data = body->data;
    a->len = body->len;
    a->sent = snapshot_sent;
    a->owner = s;
}

static void map_drawn(struct request *r)
{
    struct command *command = &call_of(r)->command;
    if (command->verdict != VERDICT_OK) {
        call_answer(r);
        return;
    }
    struct snapshot *s = command->snapshot.snapshot;
    command->snapshot.snapshot = NULL;
    answer_snapshot(r, s, command->snapshot.packed);
}

void seats_map(struct request *r)
{
    struct call *c = call_of(r);
    struct event *e = path_event(c, seats_map);
    if (!e)
        return;
    struct answer *a = &r->answer;
    int64_t seq = atomic_load_explicit(&e->seq, memory_order_acquire);
    const char *known = request_header(r, "If-None-Match");
    etag_write(a->etag, seq);
    if (known && text_etag_listed(known, a->etag)) {
        a->varies = true;
        a->status = HTTP_NOT_MODIFIED;
        return;
    }
    bool packed = gzip_accepted(request_header(r, "Accept-Encoding"));
    struct snapshot *s = event_snapshot(e, packed);
    if (s) {
        answer_snapshot(r, s, packed);
        return;
    }
    a->etag[0] = '\0';
    c->command.kind = CMD_SNAPSHOT;
    c->command.event = e;
    c->command.snapshot.packed = packed;
    c->command.snapshot.seq = seq;
    call_submit(c, map_drawn);
}

/* ---- one seat ---- */

static void seat_read(struct request *r)
{
    const struct command *command = &call_of(r)->command;
    if (command->verdict != VERDICT_OK) {
        call_answer(r);
        return;
    }
    render_seat_past(command->event, command->seat_get.seat, command->seat_get.past, &r->out);
    answer_out(r, HTTP_OK, type_json);
}

void seats_get(struct request *r)
{
    struct call *c = call_of(r);
    const char *at = request_query(r, "at");
    int64_t at_ms = 0;
    uint32_t seat;
    if (at && !parse_time(at, &at_ms)) {
        call_invalid(c, "at must be a time such as 2030-01-31T20:00:00.000Z");
        return;
    }
    struct event *e = path_event(c, seats_get);
    if (!e || !seat_name_find(c, e, r->segment2.data, r->segment2.len, &seat))
        return;
    if (at && at_ms < e->def->created_at) {
        call_invalid(c, "at is before the event was created");
        return;
    }
    struct seat_past *past = hf_alloc(sizeof *past);
    past->at = at_ms;
    c->command.kind = CMD_SEAT_GET;
    c->command.event = e;
    c->command.seat_get.seat = seat;
    c->command.seat_get.past = past;
    call_submit(c, seat_read);
}

/* ---- off sale and back ---- */

/* Checks that the body is {"seats": [...]}, a list of at least one string.  The list is borrowed
 * from c->json. */
static bool read_seats(struct call *c, const json_t **ret_list, struct hf_err *err)
{
    static const char *const known[] = {"seats", NULL};
    const struct fields f = {.object = call_json(c, false, err), .path = "", .err = err};
    if (!f.object || !fields_known(&f, known) || !field_array(&f, "seats", REQUIRED, ret_list))
        return false;
    size_t n = json_array_size(*ret_list);
    if (n == 0)
        return field_fail(&f, "seats", "must name at least one seat");
    for (size_t i = 0; i < n; i++)
        if (!json_is_string(json_array_get(*ret_list, i)))
            return field_fail(&f, "seats", "must be a list of strings");
    return true;
}

/* The names in the body, for free(); NULL if the call has been answered with 400. */
static struct text *read_names(struct call *c, size_t *ret_n)
{
    const json_t *list = NULL;
    struct hf_err err = {0};
    if (!read_seats(c, &list, &err)) {
        call_invalid(c, err.msg);
        return NULL;
    }
    size_t n = json_array_size(list);
    struct text *names = hf_alloc(n * sizeof *names);
    for (size_t i = 0; i < n; i++) {
        const json_t *name = json_array_get(list, i);
        names[i] = (struct text){.data = json_string_value(name), .len = json_string_length(name)};
    }
    *ret_n = n;
    return names;
}

/* Judges the names and fills in the command.  Returns false if the call has been answered, or goes
 * on with `again`. */
static bool judge_names(struct call *c, const struct text *names, size_t n, bool blocks,
                        step_fn again)
{
    if (!seat_names_distinct(c, names, n, again))
        return false;
    struct event *e = path_event(c, again);
    if (!e || !seat_names_find(c, e, names, (uint32_t)n, again))
        return false;
    c->command.kind = blocks ? CMD_SEATS_BLOCK : CMD_SEATS_UNBLOCK;
    c->command.event = e;
    c->command.block = (struct seats_block){.seats = c->seats,
                                            .n_seats = (uint32_t)n,
                                            .blocks = blocks,
                                            .shortage = {.taken = c->taken}};
    return true;
}

static void change_seats(struct call *c, bool blocks, step_fn again)
{
    size_t n;
    if (!idempotency_read(c))
        return;
    struct text *names = read_names(c, &n);
    if (!names)
        return;
    if (judge_names(c, names, n, blocks, again)) {
        idempotency_hash_request(c);
        call_submit(c, call_answer);
    }
    free(names);
}

void seats_block(struct request *r) { change_seats(call_of(r), true, seats_block); }
void seats_unblock(struct request *r) { change_seats(call_of(r), false, seats_unblock); }
