/* Claims about venues: what is packed comes back, damaged bytes are noticed, ids are found, and
 * generated plans have room for every seat. */
#include "support/fixtures.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/gzip.h"
#include "base/random.h"
#include "venue/event_parse.h"
#include "venue/geometry.h"
#include "venue/plan_document.h"

static struct event_def *parse(const char *text)
{
    struct hf_err err = {0};
    struct event_def *def = NULL;
    json_t *json = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(json);
    if (!parse_event(json, &def, &err))
        fail_msg("%s", err.msg);
    json_decref(json);
    return def;
}

static const char plan_text[] =
    "{\"name\":\"Gala\",\"currency\":\"usd\",\"prices\":{\"A\":100,\"B\":200},"
    "\"accessible\":[\"g2\"],\"areas\":[{\"name\":\"Floor\",\"price\":5,\"capacity\":9,"
    "\"plan_area\":\"u-floor\"}],\"plan\":{\"name\":\"Hall\",\"size\":{\"width\":300,\"height\":"
    "200},"
    "\"categories\":[{\"name\":\"A\",\"color\":\"#a00\"},{\"name\":\"B\"}],\"zones\":[{\"name\":"
    "\"Main\","
    "\"uuid\":\"z\",\"position\":{\"x\":1,\"y\":2},\"areas\":[{\"shape\":\"circle\",\"uuid\":\"u-"
    "floor\","
    "\"circle\":{\"radius\":4},\"position\":{\"x\":5,\"y\":6}}],\"rows\":[{\"row_number\":\"1, "
    "-*2\","
    "\"row_label\":\"Row "
    "%s\",\"seats\":[{\"seat_guid\":\"g1\",\"seat_number\":\"1\",\"category\":\"A\","
    "\"position\":{\"x\":0.1,\"y\":0},\"radius\":12},{\"seat_guid\":\"g2\",\"seat_number\":\"2\","
    "\"category\":\"B\",\"position\":{\"x\":30,\"y\":0.25}}]}]}]}}";

/* The event as its reader finds it in the ledger: rows without names, then the packed venue. */
static struct event_def *bare_copy(const struct event_def *def)
{
    struct event_def *copy = def_new(def->terms.name);
    for (size_t i = 0; i < def->categories.n; i++)
        vec_push(&copy->categories)->name =
            hf_strndup(def->categories.v[i].name, strlen(def->categories.v[i].name));
    for (size_t s = 0; s < def->sections.n; s++) {
        const struct section_def *from = &def->sections.v[s];
        struct section_def *section = vec_push(&copy->sections);
        section->name = hf_strndup(from->name, strlen(from->name));
        for (size_t r = 0; r < from->rows.n; r++) {
            struct row_def *row = vec_push(&section->rows);
            row->name = hf_strndup("?", 1);
            row->seats = from->rows.v[r].seats;
        }
    }
    for (size_t a = 0; a < def->areas.n; a++) {
        struct area_def *area = vec_push(&copy->areas);
        area->name = hf_strndup(def->areas.v[a].name, strlen(def->areas.v[a].name));
        area->capacity = def->areas.v[a].capacity;
    }
    assert_true(event_def_number(copy));
    return copy;
}

static void assert_same_document(const struct event_def *a, const struct event_def *b)
{
    struct buf first = {0}, second = {0};
    plan_document(a, "evt_1", NULL, &first);
    plan_document(b, "evt_1", NULL, &second);
    assert_int_equal(first.len, second.len);
    assert_memory_equal(first.data, second.data, first.len);
    buf_close(&first);
    buf_close(&second);
}

static void what_is_packed_comes_back(void **state)
{
    (void)state;
    struct event_def *def = parse(plan_text);
    assert_true(def->packed.len > 0);
    struct event_def *copy = bare_copy(def);
    assert_true(venue_unpack(copy, def->packed.data, def->packed.len));
    assert_string_equal(copy->sections.v[0].rows.v[0].name, "1, -*2");
    assert_string_equal(copy->areas.v[0].plan_area, "u-floor");
    assert_string_equal(venue_label(copy->venue, 1), "2");
    assert_int_equal(copy->venue->flags[1] & SEAT_ACCESSIBLE, SEAT_ACCESSIBLE);
    assert_true(copy->venue->x[0] == 1 + 0.1);
    assert_same_document(def, copy);
    event_def_free(copy);
    event_def_free(def);
}

/* Any byte of the stored block may be wrong; that must be noticed, or make no difference. */
static void damaged_bytes_are_noticed(void **state)
{
    (void)state;
    struct event_def *def = parse(plan_text);
    for (size_t at = 0; at < def->packed.len; at++) {
        struct event_def *copy = bare_copy(def);
        def->packed.data[at] ^= 0x5a;
        if (venue_unpack(copy, def->packed.data, def->packed.len))
            assert_same_document(def, copy);
        def->packed.data[at] ^= 0x5a;
        event_def_free(copy);
    }
    for (size_t len = 0; len < def->packed.len; len++) {
        struct event_def *copy = bare_copy(def);
        assert_false(venue_unpack(copy, def->packed.data, len));
        event_def_free(copy);
    }
    event_def_free(def);
}

/* The checksum of gzip would hide what the reader itself believes, so the bytes inside are damaged
 * and packed again. */
static void damage_inside_is_noticed(void **state)
{
    (void)state;
    struct event_def *def = parse(plan_text);
    struct buf plain = {0};
    assert_true(gzip_unpack(def->packed.data, def->packed.len, 1 << 20, &plain));
    for (size_t at = 0; at < plain.len; at++)
        for (unsigned value = 0; value < 256; value += 51) {
            struct event_def *copy = bare_copy(def);
            struct buf packed = {0}, document = {0};
            char had = plain.data[at];
            plain.data[at] = (char)value;
            gzip_pack(&plain, &packed);
            plain.data[at] = had;
            if (venue_unpack(copy, packed.data, packed.len))
                plan_document(copy, "evt_1", NULL, &document);
            buf_close(&packed);
            buf_close(&document);
            event_def_free(copy);
        }
    buf_close(&plain);
    event_def_free(def);
}

/* Whoever draws a venue computes with its numbers: none is larger than an event's reader accepts.
 */
static void numbers_that_no_reader_accepts_are_noticed(void **state)
{
    (void)state;
    static const double bad[] = {2 * POSITION_MAX, -2 * POSITION_MAX, 1e300, INFINITY, NAN};
    struct event_def *def = parse(plan_text);
    double *const numbers[] = {&def->venue->width,   &def->venue->height, &def->venue->focus_x,
                               &def->venue->focus_y, &def->venue->x[0],   &def->venue->y[1]};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        for (size_t j = 0; j < sizeof bad / sizeof *bad; j++) {
            struct event_def *copy = bare_copy(def);
            struct buf packed = {0};
            double had = *numbers[i];
            *numbers[i] = bad[j];
            venue_pack(def, &packed);
            *numbers[i] = had;
            assert_false(venue_unpack(copy, packed.data, packed.len));
            buf_close(&packed);
            event_def_free(copy);
        }
    event_def_free(def);
}

static void seats_are_found_by_their_ids_and_by_nothing_else(void **state)
{
    (void)state;
    struct venue *v = venue_new();
    char id[32];
    uint32_t seat, first, second;
    for (uint32_t i = 0; i < 5000; i++) {
        snprintf(id, sizeof id, "seat %u", i);
        venue_add(v, &(struct venue_seat){.id = id, .label = id});
    }
    assert_true(venue_index(v, &first, &second));
    for (uint32_t i = 0; i < 5000; i++) {
        int len = snprintf(id, sizeof id, "seat %u", i);
        assert_true(venue_find(v, id, (size_t)len, &seat));
        assert_int_equal(seat, i);
    }
    assert_false(venue_find(v, "seat 50", 6, &seat) && seat != 5);
    assert_false(venue_find(v, "seat 1\0", 7, &seat));
    assert_false(venue_find(v, "seat", 4, &seat));
    assert_false(venue_find(v, "", 0, &seat));
    venue_add(v, &(struct venue_seat){.id = "seat 77", .label = "x"});
    assert_false(venue_index(v, &first, &second));
    assert_int_equal(first, 77);
    assert_int_equal(second, 5000);
    venue_free(v);
}

/* A seat is 20 units wide. */
static void assert_room_for_all(const struct event_def *def)
{
    struct geometry g;
    geometry_init(&g, def);
    for (uint32_t i = 0; i < def->n_seats; i++) {
        assert_true(g.x[i] >= 10 && g.x[i] <= g.width - 10);
        assert_true(g.y[i] > g.stage_y + g.stage_height && g.y[i] <= g.height - 10);
        for (uint32_t k = 0; k < i; k++)
            if (hypot(g.x[i] - g.x[k], g.y[i] - g.y[k]) < 20)
                fail_msg("seats %u and %u meet", k, i);
    }
    geometry_close(&g);
}

static void generated_plans_have_room_for_every_seat(void **state)
{
    (void)state;
    struct random random;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        random_init_seeded(&random, seed);
        struct event_def *def = def_new("Random");
        for (uint64_t s = 0, n = 1 + random_below(&random, 6); s < n; s++) {
            char name[32];
            snprintf(name, sizeof name, "%llu", (unsigned long long)s);
            def_section(def, name, NULL, 100);
            for (uint64_t r = 0, rows = 1 + random_below(&random, 12); r < rows; r++)
                def_row(def, name,
                        1 + (uint32_t)random_below(&random, random_below(&random, 2) ? 8 : 60));
        }
        assert_room_for_all(def);
        event_def_free(def);
    }
}

static void long_rows_have_aisles_and_short_ones_do_not(void **state)
{
    (void)state;
    struct event_def *def = def_new("Rows");
    struct geometry g;
    def_section(def, "S", NULL, 100);
    def_row(def, "A", 18);
    def_row(def, "B", 40);
    geometry_init(&g, def);
    unsigned aisles = 0;
    for (uint32_t i = 1; i < 58; i++) {
        double gap = hypot(g.x[i] - g.x[i - 1], g.y[i] - g.y[i - 1]);
        if (i < 18)
            assert_true(gap < 40);
        else if (i > 18)
            aisles += gap > 55;
    }
    assert_int_equal(aisles, 2);
    geometry_close(&g);
    event_def_free(def);
}

static void join_pieces(void *context, struct buf *out)
{
    buf_put(context, out->data, out->len);
    out->len = 0;
}

static void a_document_in_pieces_is_the_same(void **state)
{
    (void)state;
    struct event_def *def = def_hall(200, 200);
    struct buf whole = {0}, joined = {0}, piece = {0};
    const struct plan_sink sink = {.flush = join_pieces, .context = &joined};
    plan_document(def, "evt_1", NULL, &whole);
    plan_document(def, "evt_1", &sink, &piece);
    assert_int_equal(piece.len, 0);
    assert_int_equal(whole.len, joined.len);
    assert_memory_equal(whole.data, joined.data, whole.len);
    json_t *json = json_loadb(whole.data, whole.len, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(json);
    json_decref(json);
    buf_close(&whole);
    buf_close(&joined);
    buf_close(&piece);
    event_def_free(def);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_packed_comes_back),
        cmocka_unit_test(damaged_bytes_are_noticed),
        cmocka_unit_test(damage_inside_is_noticed),
        cmocka_unit_test(numbers_that_no_reader_accepts_are_noticed),
        cmocka_unit_test(seats_are_found_by_their_ids_and_by_nothing_else),
        cmocka_unit_test(generated_plans_have_room_for_every_seat),
        cmocka_unit_test(long_rows_have_aisles_and_short_ones_do_not),
        cmocka_unit_test(a_document_in_pieces_is_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
