/* What sellers do to an event: take seats off sale and put them back, stop the sale and go on. */
#include <stdlib.h>

#include "api/answer.h"
#include "api/idempotency.h"
#include "api/parse.h"
#include "api/routes.h"

/* The names, borrowed from the body; NULL: answered.  For free(). */
static struct text *read_names(struct request *r, size_t *ret_n)
{
    static const char *const known[] = {"seats", NULL};
    struct hf_err err = {0};
    const json_t *list = NULL;
    if (!r->json)
        r->json = parse_body(&r->body, false, &err);
    const struct fields f = {.object = r->json, .path = "", .err = &err};
    bool ok = r->json && fields_known(&f, known) && field_array(&f, "seats", REQUIRED, &list);
    size_t n = ok ? json_array_size(list) : 0;
    if (ok && n == 0)
        ok = field_fail(&f, "seats", "must name at least one seat");
    for (size_t i = 0; i < n && ok; i++)
        if (!json_is_string(json_array_get(list, i)))
            ok = field_fail(&f, "seats", "must be a list of strings");
    if (!ok) {
        answer_problem(r, HF_INVALID_REQUEST, err.msg);
        return NULL;
    }
    struct text *names = hf_alloc(n * sizeof *names);
    for (size_t i = 0; i < n; i++) {
        const json_t *name = json_array_get(list, i);
        names[i] = (struct text){.data = json_string_value(name), .len = json_string_length(name)};
    }
    *ret_n = n;
    return names;
}

static bool are_distinct(struct request *r, const struct text *names, size_t n)
{
    const struct text *twice = find_duplicate(names, n);
    if (twice)
        answer_seat_list(r, HF_DUPLICATE_SEAT, &twice, 1);
    return !twice;
}

static void change_seats(struct request *r, enum command_kind kind, step_fn again)
{
    struct command *c = &r->command;
    size_t n;
    if (!c->has_key && !idempotency_read(r))
        return;
    struct text *names = read_names(r, &n);
    if (!names)
        return;
    struct event *e = NULL;
    if (are_distinct(r, names, n))
        e = request_event_named(r, r->segment, r->segment_len, again);
    if (e && request_find_seats(r, e, names, (uint32_t)n)) {
        c->kind = kind;
        c->event = e;
        idempotency_hash_request(r);
        request_wait(r, answer_command);
    }
    free(names);
}

void seats_block(struct request *r) { change_seats(r, CMD_SEATS_BLOCK, seats_block); }
void seats_unblock(struct request *r) { change_seats(r, CMD_SEATS_UNBLOCK, seats_unblock); }

static void change_sale(struct request *r, enum command_kind kind, step_fn again)
{
    struct command *c = &r->command;
    if (!r->json && !request_empty_body(r))
        return;
    struct event *e = request_event_named(r, r->segment, r->segment_len, again);
    if (!e)
        return;
    c->kind = kind;
    c->event = e;
    idempotency_hash_request(r);
    request_wait(r, answer_command);
}

void events_open(struct request *r) { change_sale(r, CMD_EVENT_OPEN, events_open); }
void events_close(struct request *r) { change_sale(r, CMD_EVENT_CLOSE, events_close); }
