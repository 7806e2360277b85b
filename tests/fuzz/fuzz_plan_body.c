/* The body of a POST /v1/events whose seats have ids of their own: a seating plan, or listed seats.
 * Of an accepted body, the plan's document is JSON with every seat once, what the ledger would
 * store reads back as the same document, and best available offers seats that are there.  Every
 * refusal has a reason. */
#include "fuzz.h"

#include <math.h>
#include <stdio.h>

#include "rules/best.h"
#include "venue/event_parse.h"
#include "venue/plan_document.h"

#define SEATS_BUILT_MAX 2000 /* larger events would only be slower */
#define QUANTITY_MAX 4

static struct event_def *parse(const json_t *json)
{
    struct event_def *def = NULL;
    struct hf_err err = {0};
    if (!parse_event(json, &def, &err)) {
        hf_check(err.code == HF_INVALID_REQUEST && err.msg[0]);
        return NULL;
    }
    def->id.key = 1;
    def->created_at = INT64_C(1767225600000);
    return def;
}

/* The server reads the text of a body, and cuts the rows of a plan out of it.  That must make no
 * difference. */
static void text_reads_the_same(const struct buf *body, const struct event_def *def)
{
    struct event_def *other = NULL;
    struct hf_err err = {0};
    struct buf first = {0}, second = {0};
    bool lacks_plan;
    bool is_read = parse_event_body(body, &lacks_plan, &other, &err);
    hf_check(is_read == (def != NULL));
    hf_check(is_read || (err.code == HF_INVALID_REQUEST && err.msg[0]));
    if (is_read && def->n_seats <= SEATS_BUILT_MAX) {
        plan_document(def, "evt_1", NULL, &first);
        plan_document(other, "evt_1", NULL, &second);
        hf_check(first.len == second.len && memcmp(first.data, second.data, first.len) == 0);
    }
    if (is_read)
        event_def_free(other);
    buf_close(&first);
    buf_close(&second);
}

/* All complaints begin with the one of a reader that stops at the first. */
static void complaints_begin_with_the_refusal(const struct buf *body)
{
    struct event_def *def = NULL, *checked = NULL;
    struct complaints complaints = {0};
    struct hf_err err = {0};
    bool lacks_plan, lacks_plan_too;
    bool is_read = parse_event_body(body, &lacks_plan, &def, &err);
    hf_check(parse_event_complaints(body, &lacks_plan_too, &complaints, &checked) == is_read);
    hf_check(lacks_plan == lacks_plan_too && (complaints.list.n == 0) == is_read);
    hf_check(complaints.list.n <= COMPLAINTS_MAX);
    if (is_read) {
        event_def_free(def);
        event_def_free(checked);
    } else {
        hf_check(strcmp(complaints.list.v[0], err.msg) == 0);
    }
    complaints_close(&complaints);
}

/* ---- the document ---- */

static bool is_category(const struct event_def *def, const char *name)
{
    for (size_t i = 0; i < event_def_categories(def); i++)
        if (name && strcmp(event_def_category_name(def, i), name) == 0)
            return true;
    return false;
}

static void seat_is_drawn(const struct event_def *def, const json_t *seat, uint32_t index)
{
    const json_t *x = json_object_get(seat, "x"), *y = json_object_get(seat, "y");
    const char *id = json_string_value(json_object_get(seat, "id"));
    uint32_t found = UINT32_MAX;
    hf_check(id && json_is_string(json_object_get(seat, "label")));
    hf_check(json_is_number(x) && isfinite(json_number_value(x)));
    hf_check(json_is_number(y) && isfinite(json_number_value(y)));
    hf_check(is_category(def, json_string_value(json_object_get(seat, "category"))));
    if (def->venue)
        hf_check(venue_find(def->venue, id, strlen(id), &found) && found == index);
}

static void document_has_every_seat(const struct event_def *def, const struct buf *document)
{
    json_t *json = json_loadb(document->data, document->len, JSON_REJECT_DUPLICATES, NULL);
    json_t *section, *row, *seat;
    uint32_t n = 0;
    size_t s, r, i;
    hf_check(json_is_object(json) && json_is_array(json_object_get(json, "areas")));
    json_array_foreach(json_object_get(json, "sections"), s, section)
    {
        json_array_foreach(json_object_get(section, "rows"), r, row)
        {
            json_array_foreach(json_object_get(row, "seats"), i, seat)
            {
                seat_is_drawn(def, seat, n++);
            }
        }
    }
    hf_check(n == def->n_seats);
    json_decref(json);
}

/* ---- storing ---- */

static void forget(char **text)
{
    free(*text);
    *text = NULL;
}

/* Leaves what the ledger has in rows of its own: names and prices, and how many seats rows have. */
static void forget_venue(struct event_def *def)
{
    venue_free(def->venue);
    def->venue = NULL;
    for (size_t i = 0; i < def->categories.n; i++)
        forget(&def->categories.v[i].color);
    for (size_t i = 0; i < def->areas.n; i++)
        forget(&def->areas.v[i].plan_area);
    for (size_t s = 0; s < def->sections.n; s++) {
        struct section_def *section = &def->sections.v[s];
        forget(&section->extra);
        section->category = -1;
        for (size_t r = 0; r < section->rows.n; r++)
            forget(&section->rows.v[r].extra);
    }
}

static void stored_reads_back(const struct event_def *def, const json_t *json,
                              const struct buf *document)
{
    struct event_def *again = parse(json);
    struct buf packed = {0}, second = {0};
    hf_check(again);
    venue_pack(def, &packed);
    forget_venue(again);
    hf_check(venue_unpack(again, packed.data, packed.len));
    plan_document(again, "evt_1", NULL, &second);
    hf_check(second.len == document->len && memcmp(second.data, document->data, second.len) == 0);
    event_def_free(again);
    buf_close(&packed);
    buf_close(&second);
}

/* ---- best available ---- */

static void choice_is_good(struct event *e, const struct best_want *want)
{
    uint32_t seats[QUANTITY_MAX], available = UINT32_MAX;
    const struct event_def *def = e->def;
    bool found = best_find(e, want, seats, &available);
    hf_check(available <= def->n_seats);
    if (!found)
        return;
    hf_check(available >= want->quantity);
    for (uint32_t i = 0; i < want->quantity; i++) {
        hf_check(seats[i] < def->n_seats && (i == 0 || seats[i] > seats[i - 1]));
        if (want->category && def->venue)
            hf_check(def->venue->categories[seats[i]] == want->category - 1);
        if (!want->accessible && def->venue)
            hf_check(!(def->venue->flags[seats[i]] & SEAT_ACCESSIBLE));
    }
}

/* Takes over `def`. */
static void choices_are_good(struct event_def *def)
{
    const struct clock_row clock = {.event = 1, .seq = 1, .now = def->created_at};
    struct event *e = event_new(def, &clock);
    for (uint32_t quantity = 1; quantity <= QUANTITY_MAX; quantity++)
        for (unsigned bits = 0; bits < 8; bits++) {
            const struct best_want want = {.quantity = quantity,
                                           .section = -1,
                                           .category = bits & 1,
                                           .accessible = bits & 2,
                                           .adjacent = bits & 4};
            if (!want.category || event_def_categories(def))
                choice_is_good(e, &want);
        }
    event_free(e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf body = {.data = size ? hf_alloc(size) : NULL, .len = size, .cap = size};
    struct buf document = {0};
    struct hf_err err = {0};
    if (size)
        memcpy(body.data, data, size);
    json_t *json = parse_body(&body, false, &err);
    struct event_def *def = json ? parse(json) : NULL;
    text_reads_the_same(&body, def);
    complaints_begin_with_the_refusal(&body);
    if (def && def->n_seats <= SEATS_BUILT_MAX) {
        plan_document(def, "evt_1", NULL, &document);
        document_has_every_seat(def, &document);
        if (def->venue)
            stored_reads_back(def, json, &document);
        choices_are_good(def);
    } else {
        event_def_free(def);
    }
    json_decref(json);
    buf_close(&document);
    buf_close(&body);
    return 0;
}
