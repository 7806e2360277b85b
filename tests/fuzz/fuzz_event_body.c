/* The body of a POST /v1/events.  An accepted body renders to JSON that, sent back, makes the same
 * event, and its seats are found by their names.  Every refusal has a reason. */
#include "fuzz.h"

#include "api/render.h"
#include "venue/event_parse.h"
#include "view/view.h"

#define SEATS_BUILT_MAX 2000 /* larger events would only be slower */
#define RENDERED_MAX ((size_t)256 * 1024)

static void set_id(struct event_def *def)
{
    def->id.key = 1;
    def->created_at = INT64_C(1767225600000);
}

/* Turns an answer back into the definition that its creator would write. */
static json_t *body_of_answer(const struct buf *answer)
{
    static const char *const added[] = {"object", "id", "status", "created_at", "capacity"};
    json_t *json = json_loadb(answer->data, answer->len, JSON_REJECT_DUPLICATES, NULL);
    hf_check(json_is_object(json));
    for (size_t i = 0; i < sizeof added / sizeof *added; i++)
        hf_check(json_object_del(json, added[i]) == 0);
    return json;
}

static void renders_and_reads_the_same(const struct event_def *def)
{
    struct buf first = {0}, second = {0};
    struct hf_err err = {0};
    render_event(def, &def->terms, NULL, 0, &first);
    if (first.len <= RENDERED_MAX) {
        struct event_def *again = NULL;
        json_t *json = body_of_answer(&first);
        hf_check(parse_event(json, &again, &err));
        set_id(again);
        render_event(again, &again->terms, NULL, 0, &second);
        hf_check(first.len == second.len && memcmp(first.data, second.data, first.len) == 0);
        event_def_free(again);
        json_decref(json);
    }
    buf_close(&first);
    buf_close(&second);
}

/* Takes over `def`. */
static void seats_are_found_by_their_names(struct event_def *def)
{
    const struct clock_row clock = {.event = 1, .seq = 1, .now = def->created_at};
    struct event *e = event_new(def, &clock);
    struct buf name = {0};
    for (uint32_t i = 0; i<def->n_seats; i += def->n_seats> 40 ? def->n_seats / 40 : 1) {
        uint32_t found = UINT32_MAX;
        name.len = 0;
        event_seat_name(e, i, &name);
        hf_check(event_seat_find(e, name.data, name.len, &found) && found == i);
    }
    buf_close(&name);
    event_free(e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf body = {.data = size ? hf_alloc(size) : NULL, .len = size, .cap = size};
    struct hf_err err = {0};
    struct event_def *def = NULL;
    if (size)
        memcpy(body.data, data, size);
    json_t *json = parse_body(&body, false, &err);
    if (!json || !parse_event(json, &def, &err)) {
        hf_check(err.code == HF_INVALID_REQUEST && err.msg[0]);
    } else {
        hf_check(event_def_number(def) && event_def_capacity(def) > 0);
        set_id(def);
        if (!def->venue || !def->venue->is_plan) /* an answer does not have the plan */
            renders_and_reads_the_same(def);
        if (def->n_seats <= SEATS_BUILT_MAX)
            seats_are_found_by_their_names(def);
        else
            event_def_free(def);
    }
    json_decref(json);
    buf_close(&body);
    return 0;
}
