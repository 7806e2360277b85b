/* Claims about what the engine keeps in memory: seat names, live holds and their deadlines, the
 * published seat map, the filter of idempotency keys, and the queue between threads. */
#include "support/paper.h"

#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "engine/drawer.h"
#include "engine/key_filter.h"
#include "engine/lane.h"
#include "view/view_holds.h"

/* ---- seat names ---- */

static struct event *event_of(struct event_def *def)
{
    struct clock_row clock = {.event = 1, .now = T0_MS};
    def->id.key = 1;
    return event_new(def, &clock);
}

/* Looks a seat up by a name that fills its allocation, so that a sanitizer detects a read beyond
 * it. */
static bool find(const struct event *e, const char *name, size_t len, uint32_t *ret)
{
    char *exact = malloc(len + 1);
    memcpy(exact, name, len);
    exact = realloc(exact, len ? len : 1);
    bool found = event_seat_find(e, exact, len, ret);
    free(exact);
    return found;
}

static void assert_every_seat_is_found(const struct event *e)
{
    struct buf name = {0};
    for (uint32_t i = 0; i < e->def->n_seats; i++) {
        uint32_t index = UINT32_MAX;
        name.len = 0;
        event_seat_name(e, i, &name);
        if (!find(e, name.data, name.len, &index))
            fail_msg("%.*s is not found", (int)name.len, name.data);
        assert_int_equal(index, i);
    }
    buf_close(&name);
}

static const char *const awkward[] = {
    "1",  "11",       "111", "A", "AA", "a",   "A1",
    "1A", "\xc3\xa9", " ",   "0", "01", "A B", "\xe6\x97\xa5\xe6\x9c\xac"};
#define AWKWARD (sizeof awkward / sizeof *awkward)

static struct event_def *def_awkward(void)
{
    struct event_def *def = def_new("Awkward");
    for (size_t s = 0; s < AWKWARD; s++) {
        def_section(def, awkward[s], NULL, 100 * (int64_t)s);
        for (size_t r = 0; r < AWKWARD; r++)
            def_row(def, awkward[r], 1 + (uint32_t)((s + r) % 12));
    }
    return def;
}

static void every_seat_has_a_name_and_every_name_its_seat(void **state)
{
    (void)state;
    struct event *e = event_of(def_awkward());
    assert_every_seat_is_found(e);
    struct buf name = {0};
    event_seat_name(e, 0, &name);
    buf_char(&name, '\0');
    assert_string_equal(name.data, "1-1-1");
    buf_close(&name);
    event_free(e);
}

static int64_t price_of(const struct event *e, uint32_t seat)
{
    return e->terms->prices.v[event_seat_category(e, seat)];
}

static void thousands_of_rows_are_told_apart(void **state)
{
    (void)state;
    struct event_def *def = def_new("Stadium");
    char name[32];
    for (int s = 0; s < 30; s++) {
        snprintf(name, sizeof name, "S%d", s);
        def_section(def, name, NULL, s);
        for (int r = 0; r < 100; r++) {
            snprintf(name, sizeof name, "%d", r);
            def_row(def, name, 3);
        }
    }
    struct event *e = event_of(def);
    assert_int_equal(e->rows.n, 3000);
    assert_every_seat_is_found(e);
    assert_int_equal(price_of(e, 0), 0);
    assert_int_equal(price_of(e, 8999), 29);
    assert_int_equal(price_of(e, 300), 1);
    assert_int_equal(price_of(e, 299), 0);
    event_free(e);
}

static void what_is_no_seat_s_name_is_not_found(void **state)
{
    (void)state;
    struct event *e = event_of(def_hall(2, 4)); /* A, rows 1 and 2 */
    static const char *const names[] = {
        "",
        "-",
        "--",
        "A",
        "A-1",
        "A-1-",
        "A-1-0",
        "A-1-01",
        "A-1-5",
        "A-3-1",
        "B-1-1",
        "a-1-1",
        "A--1",
        "-1-1",
        "A-1-1-1",
        "A-1-1 ",
        " A-1-1",
        "A-1--1",
        "A-1-+1",
        "A-1-1x",
        "A-1-x1",
        "A1-1",
        "A-11",
        "AA-1-1",
        "A-12-1",
        "1-A-1",
        "A-1-1\n",
        "A-1-4294967297",
        "A-1-99999999999999999999",
        "A_1_1",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        uint32_t index = 77;
        if (find(e, names[i], strlen(names[i]), &index))
            fail_msg("found: %s", names[i]);
        assert_int_equal(index, 77);
    }
    uint32_t index;
    assert_true(find(e, "A-2-4 and more", 5, &index)); /* `len` counts, not what follows */
    assert_int_equal(index, 7);
    event_free(e);
}

static void assert_found_only_by_its_own_name(const struct event *e, const char *name, size_t len)
{
    uint32_t index;
    struct buf own = {0};
    if (!find(e, name, len, &index))
        return;
    event_seat_name(e, index, &own);
    assert_int_equal(own.len, len);
    assert_memory_equal(own.data, name, len);
    buf_close(&own);
}

static void a_name_with_a_byte_changed_names_another_seat_or_none(void **state)
{
    (void)state;
    static const char bytes[] = {'\0', '-', '1', 'A', '0', '9', ' ', '\xc3', '\xff'};
    struct event *e = event_of(def_awkward());
    struct random random;
    struct buf name = {0};
    random_init_seeded(&random, test_seed(3));
    for (int i = 0; i < 20000; i++) {
        name.len = 0;
        event_seat_name(e, (uint32_t)random_below(&random, e->def->n_seats), &name);
        for (uint64_t changes = 1 + random_below(&random, 3); changes > 0; changes--)
            name.data[random_below(&random, name.len)] = bytes[random_below(&random, sizeof bytes)];
        assert_found_only_by_its_own_name(e, name.data, name.len);
    }
    buf_close(&name);
    event_free(e);
}

static void a_name_with_zero_bytes_names_no_seat(void **state)
{
    (void)state;
    struct event *e = event_of(def_hall(1, 4));
    char name[] = "A\0....-1-1"; /* begins as a C string that is a section's name */
    for (int i = 0; i < 1000; i++) {
        for (int digit = 0, rest = i; digit < 4; digit++, rest /= 10)
            name[2 + digit] = (char)('0' + rest % 10);
        uint32_t index;
        assert_false(find(e, name, sizeof name - 1, &index));
        assert_false(find(e, name, sizeof name, &index));
    }
    event_free(e);
}

static void an_event_without_seats_finds_none(void **state)
{
    (void)state;
    struct event_def *def = def_new("Field");
    def_area(def, "Grass", 1, 100);
    struct event *e = event_of(def);
    uint32_t index;
    assert_false(find(e, "A-1-1", 5, &index));
    struct event_counts counts;
    event_read_counts(e, &counts);
    assert_int_equal(counts.available, 100); /* the area's places */
    event_free(e);
}

/* ---- live holds and their deadlines, against a list ---- */

#define HOLDS 3000

static struct {
    struct view *view;
    struct event *event;
    struct {
        struct hold *hold; /* NULL if there is none */
        int64_t expires_at;
        bool timed;
    } list[HOLDS];
    size_t n, n_timed;
} model;

static int64_t key_of(size_t i) { return HOLD_KEY(1 + i % 3, 1 + i * 7919); }

static void model_add(size_t i, int64_t expires_at)
{
    uint32_t seats[] = {(uint32_t)i, 5};
    struct hold_row row = {.id.key = key_of(i),
                           .fence = (int64_t)i,
                           .expires_at = expires_at,
                           .max_expires_at = INT64_MAX,
                           .seats = seats,
                           .n_seats = 2};
    model.list[i].hold = view_hold_add(model.view, model.event, &row);
    model.list[i].expires_at = expires_at;
    model.list[i].timed = true;
    model.n++;
    model.n_timed++;
    assert_int_equal(model.list[i].hold->n_seats, 2);
    assert_int_equal(model.list[i].hold->seats[0], i);
}

static void model_step(struct random *random)
{
    size_t i = random_below(random, HOLDS);
    int64_t expires_at = T0_MS + (int64_t)random_below(random, 400); /* many deadlines are equal */
    struct hold *h = model.list[i].hold;
    assert_ptr_equal(view_hold(model.view, key_of(i)), h);
    if (!h) {
        model_add(i, expires_at);
        return;
    }
    switch (random_below(random, 5)) {
    case 0:
        if (model.list[i].timed) {
            h->expires_at = model.list[i].expires_at = expires_at;
            view_deadline_moved(model.view, h);
        }
        break;
    case 1:
        view_deadline_drop(model.view, h);
        model.n_timed -= model.list[i].timed;
        model.list[i].timed = false;
        break;
    case 2: /* as an undo does: drop, change, put back */
        view_deadline_drop(model.view, h);
        h->expires_at = model.list[i].expires_at = expires_at;
        view_deadline_put(model.view, h);
        model.n_timed += !model.list[i].timed;
        model.list[i].timed = true;
        break;
    case 3:
        view_deadline_put(model.view, h);
        model.n_timed += !model.list[i].timed;
        model.list[i].timed = true;
        break;
    default:
        view_hold_remove(model.view, h);
        model.n--;
        model.n_timed -= model.list[i].timed;
        model.list[i].hold = NULL;
        model.list[i].timed = false;
    }
}

static void model_check_due(int64_t now, size_t max)
{
    static struct hold *due[HOLDS];
    size_t want = 0, n = view_due(model.view, now, due, max);
    int64_t first = INT64_MAX;
    for (size_t i = 0; i < HOLDS; i++) {
        if (!model.list[i].timed)
            continue;
        want += model.list[i].expires_at <= now;
        first = model.list[i].expires_at < first ? model.list[i].expires_at : first;
    }
    assert_int_equal(n, want < max ? want : max);
    for (size_t i = 0; i < n; i++) {
        assert_true(due[i]->expires_at <= now);
        due[i]->pending++; /* a mark */
    }
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(due[i]->pending, 1); /* each hold once */
        assert_true(model.list[due[i]->fence].timed);
        assert_ptr_equal(model.list[due[i]->fence].hold, due[i]);
    }
    for (size_t i = 0; i < n; i++)
        due[i]->pending = 0;
    const struct hold *top = view_first_due(model.view);
    assert_int_equal(top != NULL, model.n_timed > 0);
    if (top)
        assert_int_equal(top->expires_at, first);
    assert_int_equal(view_holds_len(model.view), model.n);
    assert_int_equal(view_hold_table(model.view)->deadlines.nodes.n, model.n_timed);
}

static void holds_and_deadlines_agree_with_a_list(void **state)
{
    (void)state;
    struct random random;
    memset(&model, 0, sizeof model);
    model.view = view_new();
    model.event = view_install(model.view, event_of(def_hall(1, 4)));
    random_init_seeded(&random, test_seed(11));
    assert_null(view_first_due(model.view));
    assert_null(view_hold(model.view, key_of(1)));
    size_t steps = test_steps(20000);
    for (size_t step = 0; step < steps; step++) {
        model_step(&random);
        if (step % 50 == 0)
            model_check_due(T0_MS - 1 + (int64_t)random_below(&random, 402),
                            random_below(&random, step % 100 ? 40 : HOLDS));
    }
    assert_true(model.n > 1024); /* the table has grown */
    model_check_due(T0_MS + 1000, HOLDS);
    model_check_due(T0_MS - 1, HOLDS);
    view_free(model.view); /* frees the holds, too */
}

/* ---- installing and loading ---- */

static void load_hold(struct event *e, int64_t fence, uint32_t seat, int64_t expires_at)
{
    struct hold_row row = {.id.key = HOLD_KEY(e->def->id.key, fence),
                           .event = e->def->id.key,
                           .fence = fence,
                           .expires_at = expires_at,
                           .max_expires_at = expires_at,
                           .seats = &seat,
                           .n_seats = 1};
    event_load_hold(e, &row);
    event_load_seat(e, seat, SEAT_HELD, row.id.key);
}

static struct event *event_numbered(int64_t key)
{
    struct clock_row clock = {.event = key, .seq = 5, .fence = 3, .now = T0_MS};
    struct event_def *def = def_hall(2, 4);
    def->id.key = key;
    return event_new(def, &clock);
}

static void an_installed_event_shows_what_was_loaded(void **state)
{
    (void)state;
    struct view *v = view_new();
    struct event *e = event_numbered(9);
    load_hold(e, 2, 3, T0_MS + 700);
    event_load_seat(e, 1, SEAT_BOOKED, HOLD_KEY(9, 1));
    event_load_seat(e, 6, SEAT_BLOCKED, 0);
    event_load_seat(e, 8, SEAT_BOOKED, 1); /* beyond the last seat: ignored */
    assert_null(view_event(v, 9));
    assert_int_equal(view_holds_len(v), 0);
    assert_ptr_equal(view_install(v, e), e);
    assert_ptr_equal(view_event(v, 9), e);
    assert_int_equal(seat_shown_status(seat_shown(e, 3)), SEAT_HELD);
    assert_int_equal(seat_shown_until(seat_shown(e, 3)), T0_MS + 700);
    assert_int_equal(seat_shown_status(seat_shown(e, 1)), SEAT_BOOKED);
    assert_int_equal(seat_shown_until(seat_shown(e, 1)), 0);
    struct event_counts counts;
    event_read_counts(e, &counts);
    assert_int_equal(counts.seq, 5);
    assert_int_equal(counts.available, 5);
    assert_int_equal(counts.held, 1);
    assert_int_equal(counts.booked, 1);
    assert_int_equal(counts.blocked, 1);
    assert_int_equal(view_hold(v, HOLD_KEY(9, 2))->seats[0], 3);
    assert_int_equal(view_first_due(v)->key, HOLD_KEY(9, 2));
    assert_string_equal(event_id_text(e), e->id_text);
    assert_memory_equal(event_id_text(e), "evt_", 4);
    view_free(v);
}

static void an_event_is_installed_once(void **state)
{
    (void)state;
    struct view *v = view_new();
    struct event *first = event_numbered(9), *second = event_numbered(9);
    load_hold(first, 2, 3, T0_MS);
    load_hold(second, 2, 3, T0_MS);
    assert_ptr_equal(view_install(v, first), first);
    assert_ptr_equal(view_install(v, second), first); /* frees the second */
    assert_ptr_equal(view_install(v, first), first);
    assert_int_equal(view_holds_len(v), 1);
    view_free(v);
}

static void events_are_found_by_any_number(void **state)
{
    (void)state;
    struct view *v = view_new();
    const int64_t keys[] = {1, 1023, 1024, 70000, EVENT_KEY_MAX};
    for (int i = 0; i < 5; i++)
        view_install(v, event_numbered(keys[i]));
    for (int i = 0; i < 5; i++)
        assert_int_equal(view_event(v, keys[i])->def->id.key, keys[i]);
    const int64_t none[] = {0,        -1, INT64_MIN, 2, 1025, EVENT_KEY_MAX - 1, EVENT_KEY_MAX + 1,
                            INT64_MAX};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_null(view_event(v, none[i]));
    view_free(v);
}

static void a_forgotten_event_is_loaded_anew_beside_the_others(void **state)
{
    (void)state;
    struct view *v = view_new();
    struct event *e = event_numbered(1), *other = event_numbered(2);
    load_hold(e, 1, 0, T0_MS + 1);
    load_hold(e, 2, 1, T0_MS + 2);
    load_hold(other, 1, 0, T0_MS + 3);
    view_install(v, e);
    view_install(v, other);
    view_forget(v, e);
    assert_int_equal(view_holds_len(v), 1);
    assert_int_equal(view_first_due(v)->event->def->id.key, 2);
    load_hold(e, 4, 7, T0_MS + 4);
    struct clock_row clock = {.event = 1, .seq = 12, .fence = 4, .now = T0_MS};
    view_reloaded(v, e, &clock);
    struct event_counts counts;
    event_read_counts(e, &counts);
    assert_int_equal(counts.seq, 12);
    assert_int_equal(counts.available, 7);
    assert_int_equal(counts.held, 1);
    assert_int_equal(seat_shown_status(seat_shown(e, 0)), SEAT_AVAILABLE);
    assert_int_equal(seat_shown_until(seat_shown(e, 7)), T0_MS + 4);
    assert_int_equal(e->draft.fence, 4);
    assert_int_equal(view_holds_len(v), 2);
    assert_null(view_hold(v, HOLD_KEY(1, 1)));
    view_free(v);
}

static struct event_def *def_field(void)
{
    struct event_def *def = def_hall(1, 2);
    def_section(def, "AA", "gold", 1);
    def_row(def, "1", 1);
    def_area(def, "Floor", 5, 10);
    def_area(def, "Flo", 5, 4);
    return def;
}

static void areas_and_sections_are_found_by_their_whole_name(void **state)
{
    (void)state;
    struct event *e = event_of(def_field());
    assert_int_equal(event_area_find(e, "Floor", 5), 0);
    assert_int_equal(event_area_find(e, "Floor and more", 5), 0); /* `len` counts */
    assert_int_equal(event_area_find(e, "Flo", 3), 1);
    assert_int_equal(event_area_find(e, "Fl", 2), -1);
    assert_int_equal(event_area_find(e, "Floors", 6), -1);
    assert_int_equal(event_area_find(e, "floor", 5), -1);
    assert_int_equal(event_area_find(e, "", 0), -1);
    assert_int_equal(event_area_find(e, "Flo\0r", 5), -1);
    assert_int_equal(event_area_find(e, "A", 1), -1); /* a section is not an area */
    assert_int_equal(event_section_find(e, "A", 1), 0);
    assert_int_equal(event_section_find(e, "AA", 2), 1);
    assert_int_equal(event_section_find(e, "AAA", 3), -1);
    assert_int_equal(event_section_find(e, "Floor", 5), -1);
    event_free(e);
}

static void an_installed_event_shows_its_areas_and_their_holds(void **state)
{
    (void)state;
    struct view *v = view_new();
    struct event *e = event_of(def_field());
    const struct area_claim claims[] = {{1, 2}, {0, 3}}, wrong[] = {{2, 1}};
    struct hold_row row = {.id.key = HOLD_KEY(1, 1),
                           .event = 1,
                           .fence = 1,
                           .expires_at = T0_MS,
                           .client = 77,
                           .areas = claims,
                           .n_areas = 2};
    event_load_hold(e, &row);
    row.id.key = HOLD_KEY(1, 2);
    row.areas = wrong;
    row.n_areas = 1;
    event_load_hold(e, &row); /* of an unknown area: ignored here, reported by verify */
    event_load_area(e, 0, 3, 1, NULL);
    event_load_area(e, 1, 2, 0, NULL);
    event_load_area(e, 2, 9, 9, NULL); /* beyond the last area: ignored */
    assert_int_equal(view_client_places(v, 77), 0);
    view_install(v, e);
    assert_int_equal(view_holds_len(v), 1);
    const struct hold *h = view_hold(v, HOLD_KEY(1, 1));
    assert_int_equal(h->n_seats, 0);
    assert_int_equal(h->n_areas, 2);
    assert_memory_equal(h->areas, claims, sizeof claims);
    assert_int_equal(view_client_places(v, 77), 5);
    assert_int_equal(e->areas[0].available, 6);
    assert_int_equal(e->areas[1].available, 2);
    struct event_counts counts;
    event_read_counts(e, &counts); /* counts seats and places together */
    assert_int_equal(counts.available, 3 + 6 + 2);
    assert_int_equal(counts.held, 5);
    assert_int_equal(counts.booked, 1);
    view_free(v);
}

static void a_reload_shows_the_areas_and_the_status_of_the_ledger(void **state)
{
    (void)state;
    struct view *v = view_new();
    struct event *e = event_of(def_field());
    view_install(v, e);
    e->areas[0].held = 4; /* left by a failed batch */
    e->areas[0].pending = 1;
    view_forget(v, e);
    event_load_area(e, 0, 1, 2, NULL);
    event_load_area(e, 1, 0, 0, NULL);
    e->status_draft = EVENT_CLOSED;
    struct clock_row clock = {.event = 1, .seq = 12, .fence = 4, .now = T0_MS};
    view_reloaded(v, e, &clock);
    assert_int_equal(e->areas[0].available, 7);
    assert_int_equal(e->areas[0].booked_shown, 2);
    assert_int_equal(e->areas[0].pending, 0);
    assert_int_equal(e->areas[1].available, 4);
    assert_int_equal(e->shown.status, EVENT_CLOSED);
    view_free(v);
}

/* ---- snapshots ---- */

/* Returns the current map; draws one, as the drawer does, if there is none of this seq. */
static struct snapshot *map_of(struct event *e)
{
    struct snapshot *s = event_snapshot(e, false);
    if (s)
        return s;
    drawer_draw(e, api_texts.map, 0);
    return event_snapshot(e, false);
}

static void assert_json(struct event *e, const char *want)
{
    struct snapshot *s = map_of(e);
    struct buf full = {0};
    buf_printf(&full, "{\"event\":\"%s\",%s", e->id_text, want);
    assert_int_equal(s->text.len, full.len);
    assert_memory_equal(s->text.data, full.data, full.len);
    snapshot_unref(s);
    buf_close(&full);
}

static void a_snapshot_is_the_seat_map_as_json(void **state)
{
    (void)state;
    struct event_def *def = def_new("Small");
    def_section(def, "A \"x\"", "gold", 100);
    def_row(def, "1", 3);
    def_row(def, "\xc3\xa9", 1);
    def_section(def, "B", NULL, 0);
    def_row(def, "1", 2);
    def_area(def, "Floor", 5, 10);
    struct event *e = event_of(def);
    event_load_area(e, 0, 1, 2, NULL);
    struct view *v = view_new();
    event_load_seat(e, 1, SEAT_BOOKED, 5);
    event_load_seat(e, 3, SEAT_BLOCKED, 0);
    load_hold(e, 1, 5, T0_MS);
    view_install(v, e);
    assert_json(e, "\"seq\":0,\"status\":\"open\",\"currency\":\"EUR\","
                   "\"prices\":{\"A \\\"x\\\"\":100,\"B\":0,\"Floor\":5},\"sections\":["
                   "{\"name\":\"A \\\"x\\\"\",\"tier\":\"gold\",\"price\":100,\"rows\":["
                   "{\"name\":\"1\",\"seats\":\".b.\"},{\"name\":\"\xc3\xa9\",\"seats\":\"x\"}]},"
                   "{\"name\":\"B\",\"tier\":null,\"price\":0,\"rows\":["
                   "{\"name\":\"1\",\"seats\":\".h\"}]}],"
                   "\"areas\":[{\"name\":\"Floor\",\"price\":5,\"capacity\":10,\"available\":7}]}");
    view_free(v);
}

static void a_snapshot_is_rendered_once_a_seq_and_outlives_the_next(void **state)
{
    (void)state;
    struct paper p;
    paper_init(&p, 1);
    struct event *e = paper_event(&p, def_hall(1, 4));
    struct snapshot *before = map_of(e), *same = map_of(e);
    assert_ptr_equal(before, same);
    struct ask a;
    ask_create(&a, e, 2);
    assert_int_equal(paper_run(&p, &a), VERDICT_CREATED);
    struct snapshot *after = map_of(e);
    assert_ptr_not_equal(before, after);
    assert_int_equal(before->seq, 0);
    assert_int_equal(after->seq, 2);
    assert_non_null(memmem(before->text.data, before->text.len, "\"....\"", 6));
    assert_non_null(memmem(after->text.data, after->text.len, "\"..h.\"", 6));
    snapshot_unref(before);
    snapshot_unref(same);
    ask_close(&a);
    paper_close(&p);
    snapshot_unref(after); /* outlives even the event */
    snapshot_unref(NULL);
}

#define CROWD 12 /* seats that are taken and released all at once */

static _Atomic bool crowd_over;
static _Atomic int looks;
static pthread_mutex_t drawing = PTHREAD_MUTEX_INITIALIZER;

/* Checks counts and maps while the seats change.  Each change of all seats writes 1 + CROWD rows to
 * the log, so the seq determines what the map must look like. */
static void *watch(void *arg)
{
    struct event *e = arg;
    while (!atomic_load(&crowd_over)) {
        struct event_counts c;
        event_read_counts(e, &c);
        uint32_t want = c.seq / (CROWD + 1) % 2 ? CROWD : 0;
        if (c.held != want || c.available != CROWD - want || c.seq % (CROWD + 1))
            return "counts differ from their seq";
        pthread_mutex_lock(&drawing); /* the server, too, has one drawer */
        drawer_draw(e, api_texts.map, 0);
        const struct snapshot *s = e->documents.map;
        bool full = memmem(s->text.data, s->text.len, "\"hhhhhhhhhhhh\"", CROWD + 2) != NULL;
        bool empty = memmem(s->text.data, s->text.len, "\"............\"", CROWD + 2) != NULL;
        bool odd = s->seq / (CROWD + 1) % 2;
        pthread_mutex_unlock(&drawing);
        if (full != odd || empty == odd)
            return "a map differs from its seq";
        atomic_fetch_add(&looks, 1);
    }
    return NULL;
}

static void readers_see_whole_batches_only(void **state)
{
    (void)state;
    struct paper p;
    paper_init(&p, 1);
    struct event *e = paper_event(&p, def_hall(1, CROWD));
    pthread_t threads[2];
    atomic_store(&crowd_over, false);
    atomic_store(&looks, 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, watch, e), 0);
    for (int i = 0; i < 400 || (atomic_load(&looks) < 20 && i < 20000); i++) {
        struct ask a, b;
        ask_create(&a, e, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11);
        assert_int_equal(paper_run(&p, &a), VERDICT_CREATED);
        ask_release(&b, e, &command_hold(&a.c)->id);
        assert_int_equal(paper_run(&p, &b), VERDICT_OK);
        ask_close(&a);
        ask_close(&b);
    }
    assert_true(atomic_load(&looks) >= 20);
    atomic_store(&crowd_over, true);
    for (int i = 0; i < 2; i++) {
        void *complaint;
        pthread_join(threads[i], &complaint);
        if (complaint)
            fail_msg("%s", (const char *)complaint);
    }
    paper_close(&p);
}

/* ---- the filter of idempotency keys ---- */

static void key_hash(uint64_t n, uint8_t hash[KEY_HASH_SIZE])
{
    for (int i = 0; i < 4; i++) { /* mixed well enough to stand for a real hash */
        uint64_t z = (n * 4 + (uint64_t)i + 1) * UINT64_C(0x9e3779b97f4a7c15);
        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        z ^= z >> 31;
        memcpy(hash + 8 * i, &z, sizeof z);
    }
}

static void add_key(struct key_filter *f, uint64_t n, int64_t now)
{
    uint8_t hash[KEY_HASH_SIZE];
    key_hash(n, hash);
    key_filter_add(f, hash, now);
}

static bool maybe(const struct key_filter *f, uint64_t n)
{
    uint8_t hash[KEY_HASH_SIZE];
    key_hash(n, hash);
    return key_filter_maybe(f, hash);
}

static void a_stored_key_is_always_suspected(void **state)
{
    (void)state;
    struct key_filter f;
    key_filter_init(&f, T0_MS);
    assert_false(maybe(&f, 1));
    for (uint64_t i = 0; i < 100000; i++)
        add_key(&f, i, T0_MS);
    for (uint64_t i = 0; i < 100000; i++)
        if (!maybe(&f, i))
            fail_msg("key %llu is denied", (unsigned long long)i);
    key_filter_close(&f);
    key_filter_close(&f); /* closing twice is harmless */
}

static void few_others_are_suspected_beside_a_million_keys(void **state)
{
    (void)state;
    struct key_filter f;
    int suspected = 0;
    key_filter_init(&f, T0_MS);
    for (uint64_t i = 0; i < 1000000; i++)
        add_key(&f, i, T0_MS);
    for (uint64_t i = 0; i < 500000; i++)
        suspected += maybe(&f, 5000000 + i);
    assert_in_range(suspected, 0, 25); /* one in 20,000; one in 100,000 is expected */
    key_filter_close(&f);
}

static void a_key_is_suspected_for_a_day_and_forgotten_after_two(void **state)
{
    (void)state;
    struct key_filter f;
    key_filter_init(&f, T0_MS);
    add_key(&f, 1, T0_MS);
    add_key(&f, 2, T0_MS + KEY_KEPT_MS); /* the last moment of the first day */
    add_key(&f, 3, T0_MS + KEY_KEPT_MS + 1);
    assert_true(maybe(&f, 1) && maybe(&f, 2) && maybe(&f, 3));
    add_key(&f, 4, T0_MS + 2 * KEY_KEPT_MS + 1); /* too early to forget */
    assert_true(maybe(&f, 2) && maybe(&f, 3) && maybe(&f, 4));
    add_key(&f, 5, T0_MS + 2 * KEY_KEPT_MS + 2);
    assert_false(maybe(&f, 1));
    assert_false(maybe(&f, 2)); /* expired at least a millisecond ago */
    assert_true(maybe(&f, 3) && maybe(&f, 4) && maybe(&f, 5));
    key_filter_close(&f);
}

static void no_living_key_is_denied_over_weeks(void **state)
{
    (void)state;
    struct key_filter f;
    struct random random;
    static int64_t added_at[2000];
    int64_t now = T0_MS;
    random_init_seeded(&random, test_seed(4));
    key_filter_init(&f, now);
    for (uint64_t i = 0; i < 2000; i++) {
        now += (int64_t)random_below(&random, (uint64_t)KEY_KEPT_MS / 100);
        added_at[i] = now;
        add_key(&f, i, now);
        for (uint64_t back = i > 250 ? i - 250 : 0; i % 20 == 0 && back <= i; back++)
            if (now - added_at[back] < KEY_KEPT_MS)
                assert_true(maybe(&f, back));
    }
    key_filter_close(&f);
}

static struct key_filter shared_filter;
static _Atomic uint64_t keys_added;

static void *ask_for_keys(void *arg)
{
    (void)arg;
    uint64_t n = 0;
    while (n < 20000) {
        n = atomic_load_explicit(&keys_added, memory_order_acquire);
        for (uint64_t i = n > 300 ? n - 300 : 0; i < n; i++)
            if (!maybe(&shared_filter, i))
                return "denied";
    }
    return NULL;
}

static void keys_may_be_asked_for_while_others_are_added(void **state)
{
    (void)state;
    pthread_t threads[2];
    key_filter_init(&shared_filter, T0_MS);
    atomic_store(&keys_added, 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_for_keys, NULL), 0);
    for (uint64_t i = 0; i < 20000; i++) {
        add_key(&shared_filter, i, T0_MS + (i > 10000 ? KEY_KEPT_MS + 1 : 0)); /* next day */
        atomic_store_explicit(&keys_added, i + 1, memory_order_release);
    }
    for (int i = 0; i < 2; i++) {
        void *complaint;
        pthread_join(threads[i], &complaint);
        assert_null(complaint);
    }
    key_filter_close(&shared_filter);
}

/* ---- the lane (a bounded queue) ---- */

static void a_lane_keeps_order_and_its_bound(void **state)
{
    (void)state;
    struct lane lane;
    struct command c[6] = {0}, *got[6];
    lane_init(&lane, 3);
    assert_int_equal(lane_take(&lane, got, 6, 0), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(lane_put(&lane, &c[i]), HF_OK);
    assert_int_equal(lane_put(&lane, &c[3]), HF_OVERLOADED);
    assert_int_equal(lane_len(&lane), 3);
    assert_true(lane_pass(&lane, &c[4])); /* accepted earlier, so the bound does not apply */
    assert_int_equal(lane_len(&lane), 4);
    assert_int_equal(lane_take(&lane, got, 2, 1000000), 2);
    assert_ptr_equal(got[0], &c[0]);
    assert_ptr_equal(got[1], &c[1]);
    assert_int_equal(lane_put(&lane, &c[5]), HF_OK);
    assert_int_equal(lane_take(&lane, got, 6, 1000000), 3);
    assert_ptr_equal(got[0], &c[2]);
    assert_ptr_equal(got[1], &c[4]);
    assert_ptr_equal(got[2], &c[5]);
    assert_int_equal(lane_len(&lane), 0);
    assert_int_equal(lane_take(&lane, got, 6, 1), 0); /* empty for a whole microsecond */
    assert_int_equal(lane_put(&lane, &c[0]), HF_OK);
    assert_int_equal(lane_take(&lane, got, 6, 0), 1);
    lane_close(&lane);
    lane_destroy(&lane);
}

static void a_closed_lane_takes_no_more_and_gives_what_it_has(void **state)
{
    (void)state;
    struct lane lane;
    struct command c[4] = {0}, *got[4];
    lane_init(&lane, 4);
    for (int i = 0; i < 3; i++)
        assert_int_equal(lane_put(&lane, &c[i]), HF_OK);
    lane_close(&lane);
    assert_int_equal(lane_put(&lane, &c[3]), HF_DRAINING);
    assert_false(lane_pass(&lane, &c[3]));
    assert_int_equal(lane_take(&lane, got, 2, 1000000), 2);
    assert_int_equal(lane_take(&lane, got, 2, 1000000), 1);
    assert_ptr_equal(got[0], &c[2]);
    assert_int_equal(lane_take(&lane, got, 2, 1000000), LANE_CLOSED);
    assert_int_equal(lane_take(&lane, got, 2, 0), LANE_CLOSED);
    lane_destroy(&lane);
}

#define PUTTERS 3
#define TAKERS 3
#define PUTS 3000

static struct lane shared;
static struct command commands[PUTTERS][PUTS];
static _Atomic int taken_times[PUTTERS][PUTS];

static void *put_many(void *arg)
{
    struct command *mine = arg;
    for (int i = 0; i < PUTS;) {
        enum hf_status status = lane_put(&shared, &mine[i]);
        if (status == HF_OK)
            i++;
        else if (status != HF_OVERLOADED)
            return "refused";
        else
            sched_yield();
    }
    return NULL;
}

/* Takes the oldest commands first: one taker never sees a putter's commands out of order. */
static void *take_many(void *arg)
{
    (void)arg;
    struct command *got[7];
    int last[PUTTERS];
    memset(last, -1, sizeof last);
    for (size_t n; (n = lane_take(&shared, got, 7, 60000000)) != LANE_CLOSED;) {
        if (n == 0)
            return "a wake-up was lost";
        for (size_t i = 0; i < n; i++) {
            size_t at = (size_t)(got[i] - &commands[0][0]);
            int putter = (int)(at / PUTS), number = (int)(at % PUTS);
            if (number <= last[putter])
                return "out of order";
            last[putter] = number;
            atomic_fetch_add(&taken_times[putter][number], 1);
        }
    }
    return NULL;
}

static void many_threads_lose_nothing_between_them(void **state)
{
    (void)state;
    pthread_t putters[PUTTERS], takers[TAKERS];
    void *complaint;
    lane_init(&shared, 50);
    for (int i = 0; i < TAKERS; i++)
        assert_int_equal(pthread_create(&takers[i], NULL, take_many, NULL), 0);
    for (int i = 0; i < PUTTERS; i++)
        assert_int_equal(pthread_create(&putters[i], NULL, put_many, commands[i]), 0);
    for (int i = 0; i < PUTTERS; i++) {
        pthread_join(putters[i], &complaint);
        assert_null(complaint);
    }
    lane_close(&shared);
    for (int i = 0; i < TAKERS; i++) {
        pthread_join(takers[i], &complaint);
        if (complaint)
            fail_msg("%s", (const char *)complaint);
    }
    for (int p = 0; p < PUTTERS; p++)
        for (int i = 0; i < PUTS; i++)
            assert_int_equal(taken_times[p][i], 1);
    lane_destroy(&shared);
}

/* ---- memory ---- */

/* Of the sanitizers' allocator; NULL in other builds. */
size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak));

static size_t allocated(void)
{
    if (__sanitizer_get_current_allocated_bytes)
        return __sanitizer_get_current_allocated_bytes();
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

/* Makes an event by `make` and compares what it takes with what event_memory says. */
static void assert_memory_is_known(struct event_def *(*make)(void))
{
    size_t before = allocated();
    struct event *e = event_of(make());
    size_t took = allocated() - before, says = event_memory(e);
    if (says < took - took / 4 || says > took + took / 4)
        fail_msg("%zu bytes, not %zu", took, says);
    event_free(e);
}

static void *pack_map(void *arg)
{
    drawer_pack(arg);
    return NULL;
}

/* For the thread sanitizer. */
static void memory_is_known_while_a_map_is_packed(void **state)
{
    (void)state;
    struct event *e = event_of(def_hall(100, 200));
    pthread_t packer;
    size_t before = event_memory(e);
    drawer_draw(e, api_texts.map, 0);
    size_t plain = event_memory(e);
    assert_int_equal(pthread_create(&packer, NULL, pack_map, e), 0);
    for (int i = 0; i < 1000; i++)
        assert_true(event_memory(e) >= plain);
    pthread_join(packer, NULL);
    assert_true(plain > before);
    assert_true(event_memory(e) > plain);
    event_free(e);
}

static struct event_def *many_rows(void) { return def_hall(2000, 20); }
static struct event_def *long_rows(void) { return def_hall(100, 2000); }

static struct event_def *with_venue(void)
{
    struct event_def *def = def_hall(1, 50000);
    char id[32];
    uint32_t first, second;
    def->venue = venue_new();
    for (int i = 0; i < 50000; i++) {
        const int x = i % 250, y = i / 250;
        (void)snprintf(id, sizeof id, "seat-%d", i);
        venue_add(def->venue, &(struct venue_seat){
                                  .id = id, .label = "1", .flags = SEAT_PLACED, .x = x, .y = y});
    }
    assert_true(venue_index(def->venue, &first, &second));
    def->venue->is_placed = true;
    *vec_push(&def->categories) = (struct category_def){.name = hf_strndup("A", 1)};
    return def;
}

static void it_is_known_what_an_event_takes(void **state)
{
    (void)state;
    assert_memory_is_known(many_rows);
    assert_memory_is_known(long_rows);
    assert_memory_is_known(with_venue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_seat_has_a_name_and_every_name_its_seat),
        cmocka_unit_test(thousands_of_rows_are_told_apart),
        cmocka_unit_test(what_is_no_seat_s_name_is_not_found),
        cmocka_unit_test(a_name_with_a_byte_changed_names_another_seat_or_none),
        cmocka_unit_test(a_name_with_zero_bytes_names_no_seat),
        cmocka_unit_test(an_event_without_seats_finds_none),
        cmocka_unit_test(holds_and_deadlines_agree_with_a_list),
        cmocka_unit_test(an_installed_event_shows_what_was_loaded),
        cmocka_unit_test(an_event_is_installed_once),
        cmocka_unit_test(events_are_found_by_any_number),
        cmocka_unit_test(a_forgotten_event_is_loaded_anew_beside_the_others),
        cmocka_unit_test(areas_and_sections_are_found_by_their_whole_name),
        cmocka_unit_test(an_installed_event_shows_its_areas_and_their_holds),
        cmocka_unit_test(a_reload_shows_the_areas_and_the_status_of_the_ledger),
        cmocka_unit_test(a_snapshot_is_the_seat_map_as_json),
        cmocka_unit_test(a_snapshot_is_rendered_once_a_seq_and_outlives_the_next),
        cmocka_unit_test(readers_see_whole_batches_only),
        cmocka_unit_test(a_stored_key_is_always_suspected),
        cmocka_unit_test(few_others_are_suspected_beside_a_million_keys),
        cmocka_unit_test(a_key_is_suspected_for_a_day_and_forgotten_after_two),
        cmocka_unit_test(no_living_key_is_denied_over_weeks),
        cmocka_unit_test(keys_may_be_asked_for_while_others_are_added),
        cmocka_unit_test(a_lane_keeps_order_and_its_bound),
        cmocka_unit_test(a_closed_lane_takes_no_more_and_gives_what_it_has),
        cmocka_unit_test(many_threads_lose_nothing_between_them),
        cmocka_unit_test(it_is_known_what_an_event_takes),
        cmocka_unit_test(memory_is_known_while_a_map_is_packed),
    };
    return cmocka_run_group_tests_name("view", tests, NULL, NULL);
}
