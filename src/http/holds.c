/* /v1/holds and /v1/bookings: bytes to commands.  holds_create is the hot path: most of a sale's
 * requests end in its engine_refuse, on this thread. */
#include <stdlib.h>
#include <string.h>

#include "http/answer.h"
#include "http/idempotency.h"
#include "http/parse.h"
#include "http/routes.h"

#define SEATS_MAX 500 /* the largest max_per_hold an event may have */
#define OWNER_CHARS_MAX 128
#define REFERENCE_CHARS_MAX 255
#define TTL_MS_MIN 1000
#define TTL_MS_MAX 86400000

static void create_with_event(struct request *r);

/* ---- POST /v1/holds ---- */

static const char *const offered_later[] = {"best_available", "areas", NULL};

static bool read_create(struct request *r, struct hf_err *err)
{
    static const char *const known[] = {"event",          "seats", "owner",    "ttl_ms",
                                        "best_available", "areas", "metadata", NULL};
    struct command *c = &r->command;
    r->json = parse_body(&r->body, false, err);
    if (!r->json)
        return false;
    const struct fields f = {.object = r->json, .path = "", .err = err};
    const char *event = NULL;
    size_t event_len = 0;
    const json_t *seats = NULL;
    if (!fields_known(&f, known))
        return false;
    for (const char *const *name = offered_later; *name; name++)
        if (json_object_get(r->json, *name))
            return field_fail(&f, *name, "is not offered by this server yet; name seats instead");
    if (!field_text(&f, "event", REQUIRED, 0, SIZE_MAX, &event, &event_len) ||
        !field_array(&f, "seats", REQUIRED, &seats) ||
        !field_text(&f, "owner", NULLABLE, 0, OWNER_CHARS_MAX, &c->owner, &c->owner_len) ||
        !field_int(&f, "ttl_ms", OPTIONAL, TTL_MS_MIN, TTL_MS_MAX, &c->ttl_ms) ||
        !field_metadata(&f, "metadata", &r->metadata))
        return false;
    if (json_array_size(seats) == 0)
        return field_fail(&f, "seats", "must name at least one seat");
    for (size_t i = 0; i < json_array_size(seats); i++)
        if (!json_is_string(json_array_get(seats, i)))
            return field_fail(&f, "seats", "must be a list of strings");
    if (!id_parse(event, event_len, "evt_", &r->event_id))
        r->event_id.key = 0; /* an unknown id */
    c->metadata = r->metadata;
    c->metadata_len = r->metadata ? strlen(r->metadata) : 0;
    return true;
}

static bool same_text(const json_t *a, const json_t *b)
{
    size_t len = json_string_length(a);
    return len == json_string_length(b) &&
           memcmp(json_string_value(a), json_string_value(b), len) == 0;
}

static uint32_t hash_text(const json_t *text)
{
    const char *data = json_string_value(text);
    uint32_t hash = 2166136261u;
    for (size_t i = 0, len = json_string_length(text); i < len; i++)
        hash = (hash ^ (unsigned char)data[i]) * 16777619u;
    return hash;
}

/* The first name that appears twice (I6), or NULL.  At most SEATS_MAX names: O(n), on the stack. */
static const json_t *find_duplicate(const json_t *names)
{
    enum { SLOTS = 1024 };
    size_t n = json_array_size(names);
    if (n < 2)
        return NULL;
    uint16_t slots[SLOTS] = {0}; /* 1 + index */
    for (size_t i = 0; i < n; i++) {
        const json_t *name = json_array_get(names, i);
        uint32_t at = hash_text(name) % SLOTS;
        for (; slots[at]; at = (at + 1) % SLOTS)
            if (same_text(name, json_array_get(names, slots[at] - 1u)))
                return name;
        slots[at] = (uint16_t)(i + 1);
    }
    return NULL;
}

static void answer_seat_list(struct request *r, enum hf_status status, const json_t *const *names,
                             size_t n)
{
    problem_open(r, status, NULL);
    buf_lit(&r->out, ",\"seats\":[");
    for (size_t i = 0; i < n; i++) {
        if (i)
            buf_char(&r->out, ',');
        buf_json(&r->out, json_string_value(names[i]), json_string_length(names[i]));
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

void holds_create(struct request *r)
{
    struct hf_err err = {0};
    if (!idempotency_read(r))
        return;
    if (!read_create(r, &err)) {
        answer_problem(r, HF_INVALID_REQUEST, err.msg);
        return;
    }
    const json_t *names = json_object_get(r->json, "seats");
    if (json_array_size(names) > SEATS_MAX) {
        answer_too_many(r, SEATS_MAX);
        return;
    }
    const json_t *twice = find_duplicate(names);
    if (twice) {
        answer_seat_list(r, HF_DUPLICATE_SEAT, &twice, 1);
        return;
    }
    create_with_event(r);
}

/* Names to indexes; false: answered with the names that are nobody's. */
static bool find_seats(struct request *r, const struct event *e, const json_t *names)
{
    struct command *c = &r->command;
    uint32_t n = (uint32_t)json_array_size(names);
    uint32_t *seats = r->seats_inline, *taken = r->taken_inline;
    if (n > SEATS_INLINE) {
        seats = r->seats_heap = hf_alloc(2 * n * sizeof *seats);
        taken = seats + n;
    }
    const json_t *unknown[SEATS_MAX];
    size_t n_unknown = 0;
    for (uint32_t i = 0; i < n; i++) {
        const json_t *name = json_array_get(names, i);
        if (!event_seat_find(e, json_string_value(name), json_string_length(name), &seats[i]))
            unknown[n_unknown++] = name;
    }
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
                     TTL_MS_MIN, (long long)e->def->hold_ttl_ms);
    answer_problem(r, HF_INVALID_REQUEST, err.msg);
    return false;
}

static void create_with_event(struct request *r)
{
    struct command *c = &r->command;
    const json_t *names = json_object_get(r->json, "seats");
    struct event *e = request_event(r, r->event_id.key, HF_NO_SUCH_EVENT, create_with_event);
    if (!e)
        return;
    if (!id_secret_equal(e->def->id.secret, r->event_id.secret)) {
        answer_problem(r, HF_NO_SUCH_EVENT, NULL);
        return;
    }
    if (json_array_size(names) > (size_t)e->def->max_per_hold) {
        answer_too_many(r, e->def->max_per_hold);
        return;
    }
    if (!ttl_fits(r, e) || !find_seats(r, e, names))
        return;
    c->kind = CMD_HOLD_CREATE;
    c->event = e;
    if (engine_refuse(request_engine(r), c)) {
        answer_command(r);
        return;
    }
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
    c->event = e;
    return e != NULL;
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
        !field_int(&f, "ttl_ms", OPTIONAL, TTL_MS_MIN, TTL_MS_MAX, &r->command.ttl_ms)) {
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
