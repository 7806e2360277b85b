/* /v1/holds and /v1/bookings: bytes to commands.  holds_create is the hot path: most of a sale's
 * requests end in its engine_refuse, on this thread. */
#include <stdlib.h>
#include <string.h>

#include "http/answer.h"
#include "http/idempotency.h"
#include "http/parse.h"
#include "http/routes.h"

#define SEATS_MAX 500 /* the largest max_per_hold an event may have */
#define REFERENCE_CHARS_MAX 255

static void create_with_event(struct request *r);

/* ---- POST /v1/holds ---- */

static bool same_text(const struct text *a, const struct text *b)
{
    return a->len == b->len && memcmp(a->data, b->data, a->len) == 0;
}

static uint32_t hash_text(const struct text *text)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < text->len; i++)
        hash = (hash ^ (unsigned char)text->data[i]) * 16777619u;
    return hash;
}

static const struct text *find_duplicate_of_many(const struct text *names, size_t n)
{
    enum { SLOTS = 2 * 512 };    /* half full at most */
    uint16_t slots[SLOTS] = {0}; /* 1 + index */
    for (size_t i = 0; i < n; i++) {
        uint32_t at = hash_text(&names[i]) % SLOTS;
        for (; slots[at]; at = (at + 1) % SLOTS)
            if (same_text(&names[i], &names[slots[at] - 1]))
                return &names[i];
        slots[at] = (uint16_t)(i + 1);
    }
    return NULL;
}

/* The first name that appears twice (I6), or NULL.  At most SEATS_MAX names. */
static const struct text *find_duplicate(const struct text *names, size_t n)
{
    if (n > SEATS_INLINE)
        return find_duplicate_of_many(names, n);
    for (size_t i = 1; i < n; i++)
        for (size_t k = 0; k < i; k++)
            if (same_text(&names[i], &names[k]))
                return &names[i];
    return NULL;
}

static void answer_seat_list(struct request *r, enum hf_status status,
                             const struct text *const *names, size_t n)
{
    problem_open(r, status, NULL);
    buf_lit(&r->out, ",\"seats\":[");
    for (size_t i = 0; i < n; i++) {
        if (i)
            buf_char(&r->out, ',');
        buf_json(&r->out, names[i]->data, names[i]->len);
    }
    buf_char(&r->out, ']');
    problem_close(r);
}

static void answer_too_many(struct request *r, int64_t max)
{
    struct hf_err err;
    (void)hf_err_set(&err, HF_TOO_MANY_SEATS, "seats must name at most %lld places",
                     (long long)max);
    answer_problem(r, HF_TOO_MANY_SEATS, err.msg);
}

/* hold_scan may have filled in some of the body before it gave up. */
static bool read_create(struct request *r)
{
    struct hf_err err = {0};
    if (hold_scan(&r->body, &r->hold))
        return true;
    if (hold_parse(&r->body, &r->hold, &r->json, &err))
        return true;
    answer_problem(r, HF_INVALID_REQUEST, err.msg);
    return false;
}

void holds_create(struct request *r)
{
    struct command *c = &r->command;
    const struct hold_body *body = &r->hold;
    if (!idempotency_read(r) || !read_create(r))
        return;
    if (body->n_seats > SEATS_MAX) {
        answer_too_many(r, SEATS_MAX);
        return;
    }
    const struct text *twice = find_duplicate(body->seats, body->n_seats);
    if (twice) {
        answer_seat_list(r, HF_DUPLICATE_SEAT, &twice, 1);
        return;
    }
    if (!id_parse(body->event.data, body->event.len, "evt_", &r->event_id))
        r->event_id.key = 0; /* an unknown id */
    c->ttl_ms = body->ttl_ms;
    c->owner = body->owner.data;
    c->owner_len = body->owner.len;
    c->metadata = body->metadata.data;
    c->metadata_len = body->metadata.len;
    create_with_event(r);
}

/* Names to indexes; false: answered with the names that are nobody's. */
static bool find_seats(struct request *r, const struct event *e)
{
    struct command *c = &r->command;
    const struct text *names = r->hold.seats;
    uint32_t n = (uint32_t)r->hold.n_seats;
    uint32_t *seats = r->seats_inline, *taken = r->taken_inline;
    if (n > SEATS_INLINE) {
        seats = r->seats_heap = hf_alloc(sizeof *seats * 2 * n);
        taken = seats + n;
    }
    const struct text *unknown[SEATS_MAX];
    size_t n_unknown = 0;
    for (uint32_t i = 0; i < n; i++)
        if (!event_seat_find(e, names[i].data, names[i].len, &seats[i]))
            unknown[n_unknown++] = &names[i];
    if (n_unknown) {
        answer_seat_list(r, HF_NO_SUCH_SEAT, unknown, n_unknown);
        return false;
    }
    c->seats = seats;
    c->taken = taken;
    c->n_seats = n;
    c->n_taken = 0;
    return true;
}

static bool ttl_fits(struct request *r, const struct event *e)
{
    if (r->command.ttl_ms <= e->def->hold_ttl_ms)
        return true;
    struct hf_err err;
    (void)hf_err_set(&err, HF_INVALID_REQUEST, "ttl_ms must be from %d to the event's %lld",
                     HOLD_TTL_MS_FLOOR, (long long)e->def->hold_ttl_ms);
    answer_problem(r, HF_INVALID_REQUEST, err.msg);
    return false;
}

static void create_with_event(struct request *r)
{
    struct command *c = &r->command;
    struct event *e = request_event(r, r->event_id.key, HF_NO_SUCH_EVENT, create_with_event);
    if (!e)
        return;
    if (!id_secret_equal(e->def->id.secret, r->event_id.secret)) {
        answer_problem(r, HF_NO_SUCH_EVENT, NULL);
        return;
    }
    if (r->hold.n_seats > (size_t)e->def->max_per_hold) {
        answer_too_many(r, e->def->max_per_hold);
        return;
    }
    if (!ttl_fits(r, e) || !find_seats(r, e))
        return;
    c->kind = CMD_HOLD_CREATE;
    c->event = e;
    if (engine_refuse(request_engine(r), c)) {
        answer_command(r);
        return;
    }
    c->client = access_client(r); /* half a microsecond, which refusals need not pay */
    idempotency_hash_request(r);
    request_wait(r, answer_command);
}

/* ---- a hold or booking by its id ---- */

/* The event of the hold or booking named in the path is loaded, and the command knows both.
 * False: answered, or on its way and `again` will run. */
static bool find_by_id(struct request *r, const char *prefix, enum hf_status missing, step_fn again)
{
    struct command *c = &r->command;
    if (!id_parse(r->segment, r->segment_len, prefix, &c->id)) {
        answer_problem(r, missing, NULL);
        return false;
    }
    struct event *e = request_event(r, HOLD_EVENT(c->id.key), missing, again);
    if (!e)
        return false; /* the command may be lent by now: hands off */
    c->event = e;
    return true;
}

void holds_get(struct request *r)
{
    if (!find_by_id(r, "hold_", HF_NO_SUCH_HOLD, holds_get))
        return;
    r->command.kind = CMD_HOLD_GET;
    request_wait(r, answer_command);
}

void holds_release(struct request *r)
{
    if (!find_by_id(r, "hold_", HF_NO_SUCH_HOLD, holds_release))
        return;
    r->command.kind = CMD_HOLD_RELEASE;
    request_wait(r, answer_command);
}

void bookings_get(struct request *r)
{
    if (!find_by_id(r, "bkg_", HF_NO_SUCH_BOOKING, bookings_get))
        return;
    r->command.kind = CMD_BOOKING_GET;
    request_wait(r, answer_command);
}

static void renew_with_event(struct request *r)
{
    if (!find_by_id(r, "hold_", HF_NO_SUCH_HOLD, renew_with_event) ||
        !ttl_fits(r, r->command.event))
        return;
    r->command.kind = CMD_HOLD_RENEW;
    idempotency_hash_request(r);
    request_wait(r, answer_command);
}

void holds_renew(struct request *r)
{
    static const char *const known[] = {"ttl_ms", NULL};
    struct hf_err err = {0};
    if (!idempotency_read(r))
        return;
    r->json = parse_body(&r->body, true, &err);
    const struct fields f = {.object = r->json, .path = "", .err = &err};
    if (!r->json || !fields_known(&f, known) ||
        !field_int(&f, "ttl_ms", OPTIONAL, HOLD_TTL_MS_FLOOR, HOLD_TTL_MS_CEILING,
                   &r->command.ttl_ms)) {
        answer_problem(r, HF_INVALID_REQUEST, err.msg);
        return;
    }
    renew_with_event(r);
}

static void confirm_with_event(struct request *r)
{
    if (!find_by_id(r, "hold_", HF_NO_SUCH_HOLD, confirm_with_event))
        return;
    r->command.kind = CMD_HOLD_CONFIRM;
    idempotency_hash_request(r);
    request_wait(r, answer_command);
}

void holds_confirm(struct request *r)
{
    static const char *const known[] = {"fence", "reference", "rescue", NULL};
    struct command *c = &r->command;
    struct hf_err err = {0};
    if (!idempotency_read(r))
        return;
    r->json = parse_body(&r->body, false, &err);
    const struct fields f = {.object = r->json, .path = "", .err = &err};
    if (!r->json || !fields_known(&f, known) ||
        !field_int(&f, "fence", REQUIRED, 0, INT64_MAX, &c->fence) ||
        !field_text(&f, "reference", NULLABLE, 0, REFERENCE_CHARS_MAX, &c->reference,
                    &c->reference_len) ||
        !field_bool(&f, "rescue", OPTIONAL, &c->rescue)) {
        answer_problem(r, HF_INVALID_REQUEST, err.msg);
        return;
    }
    confirm_with_event(r);
}
