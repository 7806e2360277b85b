/* The seats of an event: the map now or in the past (GET /v1/events/{e}/seats), one seat now or in
 * the past (GET .../seats/{s}), and taking seats off sale and back (POST .../block, .../unblock).
 * On HTTP threads; other threads draw the maps. */
#include <stdlib.h>
#include <string.h>

#include "api/idempotency.h"
#include "api/places.h"
#include "api/render.h"
#include "api/routes.h"
#include "api/seat_names.h"
#include "base/gzip.h"
#include "view/snapshot.h"
#include "view/view.h"
#include "json/fields.h"

static struct event *path_event(struct call *c)
{
    return call_event_named(c, c->http.segment.data, c->http.segment.len);
}

/* The caller's clock may be a little ahead of the ledger's. */
#define AHEAD_MAX_MS 1000

/* Reads ?at=; *ret is 0 if it is not given.  Returns false if the call has been answered. */
static bool read_at(struct call *c, int64_t *ret)
{
    const char *at = request_query(&c->http, "at");
    *ret = 0;
    if (at && !parse_time(at, ret)) {
        call_invalid(c, "at must be a time such as 2030-01-31T20:00:00.000Z");
        return false;
    }
    if (*ret > engine_now_ms(call_engine(c)) + AHEAD_MAX_MS) {
        call_invalid(c, "at is in the future");
        return false;
    }
    return true;
}

static bool is_before_event(struct call *c, const struct event *e, int64_t at)
{
    bool is_before = request_query(&c->http, "at") && at < e->def->created_at;
    if (is_before)
        call_invalid(c, "at is before the event was created");
    return is_before;
}

/* ---- the map ---- */

/* The compressed map has other bytes, so it has another ETag. */
static void etag_write(char out[ETAG_SIZE], int64_t seq, bool packed)
{
    struct buf b = {.data = out, .cap = ETAG_SIZE}; /* at most 20 digits: never grows */
    buf_char(&b, '"');
    buf_int(&b, seq);
    if (packed)
        buf_lit(&b, "-gzip");
    buf_lit(&b, "\"\0");
}

/* Does the client have the map of this seq, in either encoding?  The ETag of the answer is then the
 * one that the client has, if possible that of the encoding it accepts now. */
static bool is_known(struct request *r, int64_t seq, bool packed)
{
    const char *known = request_header(r, "If-None-Match");
    for (int i = 0; known && i < 2; i++) {
        etag_write(r->answer.headers.etag, seq, i ? !packed : packed);
        if (text_etag_listed(known, r->answer.headers.etag))
            return true;
    }
    r->answer.headers.etag[0] = '\0';
    return false;
}

/* Takes over the reference. */
static void answer_map(struct request *r, struct snapshot *s, bool packed)
{
    call_note_stale(call_of(r));
    etag_write(r->answer.headers.etag, s->seq, packed);
    answer_snapshot(r, s, packed);
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
    answer_map(r, s, command->snapshot.packed);
}

static void past_map_read(struct request *r)
{
    struct command *command = &call_of(r)->command;
    if (command->verdict != VERDICT_OK) {
        call_answer(r);
        return;
    }
    struct snapshot *s = command->map_past.snapshot;
    command->map_past.snapshot = NULL;
    answer_map(r, s, command->map_past.packed);
    /* The seq tells this map from others, but not from the map of now. */
    r->answer.headers.etag[0] = '\0';
}

/* The map at a past moment, which only sellers may see. */
static void past_map(struct request *r)
{
    struct call *c = call_of(r);
    int64_t at_ms;
    if (!access_require(r, SCOPE_SELLER, "Only sellers may see the map of a past moment.") ||
        !read_at(c, &at_ms))
        return;
    r->needs = SCOPE_SELLER; /* so no cache keeps the answer */
    struct event *e = path_event(c);
    if (!e || is_before_event(c, e, at_ms))
        return;
    c->command.kind = CMD_MAP_PAST;
    c->command.event = e;
    c->command.map_past.at = at_ms;
    c->command.map_past.packed = gzip_accepted(request_header(r, "Accept-Encoding"));
    call_submit(c, past_map_read);
}

void seats_map(struct request *r)
{
    struct call *c = call_of(r);
    if (request_query(r, "at")) {
        past_map(r);
        return;
    }
    struct event *e = path_event(c);
    if (!e)
        return;
    struct answer *a = &r->answer;
    int64_t seq = atomic_load_explicit(&e->shown.seq, memory_order_acquire);
    bool packed = gzip_accepted(request_header(r, "Accept-Encoding"));
    if (is_known(r, seq, packed)) {
        call_note_stale(c);
        a->headers.varies = true;
        a->status = HTTP_NOT_MODIFIED;
        return;
    }
    struct snapshot *s = event_snapshot(e, packed);
    if (s) {
        answer_map(r, s, packed);
        return;
    }
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
    int64_t at_ms;
    uint32_t seat;
    if (!read_at(c, &at_ms))
        return;
    struct event *e = path_event(c);
    if (!e)
        return;
    const struct buf *name = request_name(r, r->segment2.data, r->segment2.len);
    if (!seat_name_find(c, e, (struct text){name->data, name->len}, &seat))
        return;
    if (is_before_event(c, e, at_ms))
        return;
    struct seat_past *past = hf_alloc(sizeof *past);
    past->at = at_ms;
    c->command.kind = CMD_SEAT_GET;
    c->command.event = e;
    c->command.seat_get.seat = seat;
    c->command.seat_get.past = past;
    call_submit(c, seat_read);
}

/* ---- off sale and back ---- */

/* The ledger stores one channel per line. */
static bool is_channel_name(const char *name, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)name[i] < 0x20 || name[i] == 0x7f)
            return false;
    return true;
}

#define BLOCK_SEATS_MAX 200000 /* by one request, which is one transaction */

struct block_body {
    struct place_names places;
    const json_t *sections; /* NULL: none */
    const char *channel;    /* NULL: none */
    size_t channel_len;
};

static bool read_block(struct call *c, struct block_body *ret, struct hf_err *err)
{
    static const char *const known[] = {"seats", "areas", "sections", "channel", NULL};
    const struct fields f = {.object = call_json(c, false, err), .path = "", .err = err};
    if (!f.object || !fields_known(&f, known) || !place_names_read(&f, &ret->places, NULL) ||
        !field_array(&f, "sections", OPTIONAL, &ret->sections) ||
        !field_text(&f, "channel", NULLABLE, 1, NAME_CHARS_MAX, &ret->channel, &ret->channel_len))
        return false;
    if (ret->channel && !is_channel_name(ret->channel, ret->channel_len))
        return field_fail(&f, "channel", "must not have control characters");
    for (size_t i = 0; i < json_array_size(ret->sections); i++)
        if (!json_is_string(json_array_get(ret->sections, i)))
            return field_fail(&f, "sections", "must be a list of strings");
    if (!ret->places.n_seats && !ret->places.n_areas && !json_array_size(ret->sections))
        return field_fail(&f, "seats", "must name at least one seat, or areas or sections must");
    return true;
}

/* Adds the section, and the other zones of a plan that have the same name, to
 * c->places.sections_heap. */
static size_t add_sections(struct call *c, const struct event_def *def, int64_t section, size_t n)
{
    const char *name = def->sections.v[section].name;
    for (size_t i = (size_t)section; i < def->sections.n; i++)
        if (i == (size_t)section || (def->venue && strcmp(def->sections.v[i].name, name) == 0))
            c->places.sections_heap[n++] = (uint32_t)i;
    return n;
}

/* Finds the sections, in c->places.sections_heap.  Each may be named once, so that a short list
 * cannot ask for more seats than the event has.  Returns false if the call has been refused, or its
 * key is being looked up. */
static bool find_sections(struct call *c, const struct event *e, const struct block_body *body,
                          size_t *ret_n)
{
    size_t n = json_array_size(body->sections), found = 0, n_sections = 0;
    uint8_t *named = hf_alloc(e->def->sections.n + 1);
    free(c->places.sections_heap); /* of an earlier run of the same step */
    c->places.sections_heap = hf_alloc((e->def->sections.n + 1) * sizeof *c->places.sections_heap);
    for (; found < n; found++) {
        const json_t *name = json_array_get(body->sections, found);
        const struct text text = {.data = json_string_value(name), .len = json_string_length(name)};
        int64_t section = event_section_find(e, text.data, text.len);
        if (section < 0) {
            refuse_no_such_place(c, "section", &text);
            break;
        }
        if (named[section]++) {
            if (key_is_unused(c))
                call_invalid(c, "sections must name each section once");
            break;
        }
        n_sections = add_sections(c, e->def, section, n_sections);
    }
    free(named);
    *ret_n = n_sections;
    return found == n;
}

static uint32_t section_seats(const struct section_def *s)
{
    const struct row_def *last = &s->rows.v[s->rows.n - 1];
    return last->first + last->seats - s->rows.v[0].first;
}

/* Puts the named seats, and then the other seats of the sections, into c->places.seats; returns how
 * many there are. */
static uint32_t list_seats(struct call *c, const struct event *e, uint32_t n_named,
                           size_t n_sections)
{
    size_t room = n_named;
    if (!n_sections)
        return n_named;
    for (size_t i = 0; i < n_sections; i++)
        room += section_seats(&e->def->sections.v[c->places.sections_heap[i]]);
    uint32_t *named = hf_alloc((n_named + 1) * sizeof *named), n = n_named;
    uint8_t *listed = hf_alloc(e->def->n_seats);
    memcpy(named, c->places.seats, n_named * sizeof *named);
    call_seat_room(c, room);
    memcpy(c->places.seats, named, n_named * sizeof *named);
    for (uint32_t i = 0; i < n_named; i++)
        listed[named[i]] = 1;
    for (size_t i = 0; i < n_sections; i++) {
        const struct section_def *s = &e->def->sections.v[c->places.sections_heap[i]];
        uint32_t first = s->rows.v[0].first, end = first + section_seats(s);
        for (uint32_t seat = first; seat < end; seat++) {
            if (!listed[seat])
                c->places.seats[n++] = seat;
            listed[seat] = 1;
        }
    }
    free(named);
    free(listed);
    return n;
}

static size_t count_seats(const struct call *c, const struct event *e, size_t n_named,
                          size_t n_sections)
{
    size_t n = n_named;
    for (size_t i = 0; i < n_sections; i++)
        n += section_seats(&e->def->sections.v[c->places.sections_heap[i]]);
    return n;
}

/* Judges the names and fills in the command.  Returns false if the call has been answered, or runs
 * again. */
static bool judge_block(struct call *c, const struct block_body *body, bool blocks)
{
    const struct place_names *p = &body->places;
    size_t n_sections;
    if (!seat_names_distinct(c, p->seats, p->n_seats))
        return false;
    struct event *e = path_event(c);
    if (!e || !seat_names_find(c, e, p->seats, (uint32_t)p->n_seats) ||
        !find_sections(c, e, body, &n_sections))
        return false;
    free(c->places.areas_heap); /* of an earlier run of the same step */
    c->places.areas_heap = hf_alloc((p->n_areas + 1) * sizeof *c->places.areas_heap);
    if (!area_names_find(c, e, p->areas, p->n_areas, c->places.areas_heap))
        return false;
    if (count_seats(c, e, p->n_seats, n_sections) > BLOCK_SEATS_MAX) {
        if (key_is_unused(c))
            call_refuse(c, VERDICT_TOO_MANY_SEATS,
                        "a request may block at most 200000 seats; block section by section");
        return false;
    }
    uint32_t n_seats = list_seats(c, e, (uint32_t)p->n_seats, n_sections);
    c->command.kind = blocks ? CMD_SEATS_BLOCK : CMD_SEATS_UNBLOCK;
    c->command.event = e;
    c->command.block =
        (struct seats_block){.seats = c->places.seats,
                             .n_seats = n_seats,
                             .n_named = (uint32_t)p->n_seats,
                             .areas = c->places.areas_heap,
                             .n_areas = (uint32_t)p->n_areas,
                             .sections = c->places.sections_heap,
                             .n_sections = (uint32_t)n_sections,
                             .channel = body->channel,
                             .channel_len = body->channel_len,
                             .blocks = blocks,
                             .shortage = {.taken = c->places.taken, .short_area = -1}};
    return true;
}

static void change_seats(struct call *c, bool blocks)
{
    struct hf_err err = {0};
    struct block_body body = {0};
    if (!idempotency_read(c))
        return;
    if (!read_block(c, &body, &err)) {
        call_invalid(c, err.msg);
    } else if (judge_block(c, &body, blocks)) {
        idempotency_hash_request(c);
        call_submit(c, call_answer);
    }
    place_names_close(&body.places);
}

void seats_block(struct request *r) { change_seats(call_of(r), true); }
void seats_unblock(struct request *r) { change_seats(call_of(r), false); }
