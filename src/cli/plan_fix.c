/* See plan_fix.h.
 *
 *   every object   numbers that should be texts, and texts that should be numbers; null where a
 *                  member may be absent; members that the format does not have
 *   a seat         an empty category; a wheelchair, which has its place beside the plan
 *   a row          where its number is shown, in other words
 *   the plan       a position, a size or a list that is missing, where it follows from the rest */
#include "cli/plan_fix.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/nearest.h"
#include "base/status.h"
#include "base/vec.h"

#define PATH_SIZE 128
#define MARGIN 24.0       /* around the outermost seats, where a plan has no size */
#define NOTES_COMPARED 16 /* of a row, for one that goes on at the next seat */
#define NO_CATEGORY "Other"

/* ---- what was done ---- */

/* One repair of seats `first` to `last` of a row. */
struct seat_note {
    size_t first, last;
    char *what; /* ".category: ..." */
};

struct fixer {
    json_t *body; /* of a POST /v1/events; NULL: there is only the plan */
    json_t *plan;
    json_t *said;
    VEC(struct seat_note) notes; /* of the row at hand */
    double right, bottom;        /* the outermost seats */
};

/* Where an object stands.  Seats of a row are known by their index. */
struct fix_place {
    char path[PATH_SIZE];
    const char *inner; /* ".position" of the object at `path`; "": the object itself */
    bool is_seat;
    size_t seat;
};

static void note_seat(struct fixer *f, size_t seat, char *what)
{
    size_t low = f->notes.n > NOTES_COMPARED ? f->notes.n - NOTES_COMPARED : 0;
    for (size_t i = f->notes.n; i > low; i--) {
        struct seat_note *note = &f->notes.v[i - 1];
        if (note->last + 1 == seat && strcmp(note->what, what) == 0) {
            note->last = seat;
            free(what);
            return;
        }
    }
    *vec_push(&f->notes) = (struct seat_note){.first = seat, .last = seat, .what = what};
}

/* `fmt` goes on where the path of the object ends. */
__attribute__((format(printf, 3, 4))) static void say(struct fixer *f, const struct fix_place *at,
                                                      const char *fmt, ...)
{
    struct buf what = {0};
    char *text = NULL;
    va_list args;
    va_start(args, fmt);
    hf_check(vasprintf(&text, fmt, args) >= 0);
    va_end(args);
    buf_printf(&what, "%s%s%s", at->path, at->inner ? at->inner : "", text);
    buf_char(&what, '\0');
    free(text);
    if (at->is_seat) {
        note_seat(f, at->seat, what.data);
        return;
    }
    json_array_append_new(f->said, json_string(what.data));
    buf_close(&what);
}

/* Says what was done to the seats of a row. */
static void say_notes(struct fixer *f, const struct fix_place *row)
{
    for (size_t i = 0; i < f->notes.n; i++) {
        const struct seat_note *note = &f->notes.v[i];
        if (note->first == note->last)
            json_array_append_new(
                f->said, json_sprintf("%s.seats[%zu]%s", row->path, note->first, note->what));
        else
            json_array_append_new(f->said, json_sprintf("%s.seats[%zu..%zu]%s", row->path,
                                                        note->first, note->last, note->what));
        free(note->what);
    }
    vec_clear(&f->notes);
}

static struct fix_place under(const struct fix_place *at, const char *list, size_t i)
{
    struct fix_place inner = {0};
    (void)snprintf(inner.path, sizeof inner.path, "%.96s.%.8s[%zu]", at->path, list, i);
    return inner;
}

/* ---- members of any object ---- */

enum member_kind { TEXT, NUMBER, OTHER };

struct member {
    const char *name;
    enum member_kind kind;
    bool optional; /* null means that it is absent, which the reader does not take */
};

#define MEMBERS_MAX 16

static const struct member plan_members[] = {{"name", TEXT, false},
                                             {"zones", OTHER, false},
                                             {"categories", OTHER, false},
                                             {"size", OTHER, true},
                                             {0}};
static const struct member size_members[] = {
    {"width", NUMBER, false}, {"height", NUMBER, false}, {0}};
static const struct member category_members[] = {{"name", TEXT, false}, {"color", TEXT, true}, {0}};
static const struct member zone_members[] = {{"name", TEXT, true},
                                             {"zone_id", TEXT, true},
                                             {"uuid", TEXT, true},
                                             {"position", OTHER, true},
                                             {"rows", OTHER, true},
                                             {"areas", OTHER, true},
                                             {0}};
static const struct member row_members[] = {
    {"row_number", TEXT, true},  {"row_label", TEXT, false},
    {"seat_label", TEXT, false}, {"uuid", TEXT, true},
    {"seats", OTHER, true},      {"row_number_position", TEXT, false},
    {"position", OTHER, true},   {0}};
static const struct member seat_members[] = {{"seat_guid", TEXT, false},
                                             {"seat_number", TEXT, false},
                                             {"position", OTHER, false},
                                             {"category", TEXT, true},
                                             {"uuid", TEXT, true},
                                             {"radius", NUMBER, true},
                                             {"start_direction", TEXT, false},
                                             {0}};
static const struct member area_members[] = {
    {"color", TEXT, true},     {"border_color", TEXT, true}, {"rotation", NUMBER, true},
    {"position", OTHER, true}, {"uuid", TEXT, true},         {"shape", TEXT, true},
    {"polygon", OTHER, true},  {"rectangle", OTHER, true},   {"ellipse", OTHER, true},
    {"circle", OTHER, true},   {"text", OTHER, true},        {0}};
static const struct member text_members[] = {{"text", TEXT, false},
                                             {"color", TEXT, true},
                                             {"size", NUMBER, true},
                                             {"position", OTHER, false},
                                             {0}};
static const struct member point_members[] = {{"x", NUMBER, false}, {"y", NUMBER, false}, {0}};

static const struct member *find_member(const struct member *members, const char *name)
{
    for (; members->name; members++)
        if (strcmp(members->name, name) == 0)
            return members;
    return NULL;
}

/* Could the name be a misspelt one, of a member that is missing?  A short name is like many. */
static bool looks_misspelt(const json_t *object, const struct member *members, const char *name)
{
    const char *missing[MEMBERS_MAX];
    size_t n = 0;
    for (; members->name; members++)
        if (!json_object_get(object, members->name))
            missing[n++] = members->name;
    return nearest_word(name, strlen(name), missing, n, strlen(name) < 6 ? 1 : 2) != NULL;
}

/* The number that a text is; NULL: it is none. */
static json_t *number_of(const char *text)
{
    char *end;
    double value = strtod(text, &end);
    return *text && !*end && isfinite(value) ? json_real(value) : NULL;
}

static json_t *text_of(const json_t *number)
{
    return json_is_integer(number)
               ? json_sprintf("%" JSON_INTEGER_FORMAT, json_integer_value(number))
               : json_sprintf("%.15g", json_real_value(number));
}

static void fix_value(struct fixer *f, const struct fix_place *at, json_t *object,
                      const struct member *member, const json_t *value)
{
    json_t *better = NULL;
    if (json_is_null(value) && member->optional) {
        say(f, at, ".%s: null was removed", member->name);
        json_object_del(object, member->name);
    } else if (member->kind == TEXT && json_is_number(value)) {
        better = text_of(value);
        say(f, at, ".%s: a number is now a text", member->name);
    } else if (member->kind == NUMBER && json_is_string(value) &&
               (better = number_of(json_string_value(value)))) {
        say(f, at, ".%s: a text is now a number", member->name);
    }
    if (better)
        json_object_set_new(object, member->name, better);
}

static void fix_members(struct fixer *f, const struct fix_place *at, json_t *object,
                        const struct member *members)
{
    const char *name;
    json_t *value;
    void *next;
    json_object_foreach_safe(object, next, name, value)
    {
        const struct member *member = find_member(members, name);
        if (member) {
            fix_value(f, at, object, member, value);
        } else if (!looks_misspelt(object, members, name)) {
            say(f, at, ".%s: was removed, since the format does not have it", name);
            json_object_del(object, name);
        }
    }
}

static void fix_point(struct fixer *f, const struct fix_place *at, json_t *object)
{
    json_t *point = json_object_get(object, "position");
    struct fix_place inner = *at;
    inner.inner = ".position";
    if (json_is_object(point))
        fix_members(f, &inner, point, point_members);
}

/* Where the object stands, from that of the zone or the row on. */
static double coordinate(const json_t *object, const char *axis)
{
    return json_number_value(json_object_get(json_object_get(object, "position"), axis));
}

/* ---- seats ---- */

/* What editors call a place for a wheelchair. */
static const char *const accessible_names[] = {"wheelchair", "accessible", "is_accessible",
                                               "isAccessible", "wheelchair_accessible"};

static bool is_true(const json_t *value)
{
    return json_is_true(value) || json_integer_value(value) == 1 ||
           (json_is_string(value) && strcasecmp(json_string_value(value), "true") == 0);
}

static bool lists(const json_t *list, const json_t *value)
{
    const json_t *each;
    size_t i;
    json_array_foreach(list, i, each)
    {
        if (json_equal(each, value))
            return true;
    }
    return false;
}

/* The seat is named beside the plan, where there is such a place. */
static void make_accessible(struct fixer *f, const struct fix_place *at, const json_t *seat,
                            const char *name)
{
    json_t *guid = json_object_get(seat, "seat_guid");
    json_t *id = json_is_number(guid) ? text_of(guid) : json_incref(guid);
    if (!f->body) {
        say(f, at, ".%s: was removed; say --accessible %s when you create the event", name,
            json_is_string(id) ? json_string_value(id) : "ID");
        json_decref(id);
        return;
    }
    json_t *list = json_object_get(f->body, "accessible");
    if (!json_is_array(list)) {
        list = json_array();
        json_object_set_new(f->body, "accessible", list);
    }
    if (!lists(list, id))
        json_array_append(list, id);
    json_decref(id);
    say(f, at, ".%s: was removed; the seat is in accessible now", name);
}

static void fix_accessible(struct fixer *f, const struct fix_place *at, json_t *seat)
{
    for (size_t i = 0; i < sizeof accessible_names / sizeof *accessible_names; i++) {
        const char *name = accessible_names[i];
        const json_t *value = json_object_get(seat, name);
        if (!value)
            continue;
        if (is_true(value))
            make_accessible(f, at, seat, name);
        else
            say(f, at, ".%s: was removed: the seat is an ordinary one", name);
        json_object_del(seat, name);
    }
}

/* The category of a seat that names none: the plan's only one, or one for all such seats. */
static const char *category_for_all(struct fixer *f)
{
    json_t *list = json_object_get(f->plan, "categories"), *each;
    const char *only = json_string_value(json_object_get(json_array_get(list, 0), "name"));
    size_t i;
    if (json_array_size(list) == 1 && only && *only)
        return only;
    json_array_foreach(list, i, each)
    {
        const char *name = json_string_value(json_object_get(each, "name"));
        if (name && strcmp(name, NO_CATEGORY) == 0)
            return NO_CATEGORY;
    }
    if (!json_is_array(list))
        return NULL;
    const struct fix_place at = {.path = "plan"};
    json_array_append_new(list, json_pack("{s:s}", "name", NO_CATEGORY));
    say(f, &at, ".categories: %s was added, for seats that name no category; give it a price",
        NO_CATEGORY);
    return NO_CATEGORY;
}

/* Is there a member that is likely to be the category, misspelt? */
static bool misspells_category(json_t *seat)
{
    const char *name, *category = "category";
    json_t *value;
    json_object_foreach(seat, name, value)
    {
        if (strcmp(name, category) != 0 && nearest_word(name, strlen(name), &category, 1, 2))
            return true;
    }
    return false;
}

static bool is_blank(const json_t *text)
{
    const char *at = json_string_value(text);
    return json_is_null(text) || !text || (at && strspn(at, " \t") == strlen(at));
}

static void fix_seat(struct fixer *f, const struct fix_place *at, json_t *seat)
{
    if (!json_is_object(seat))
        return;
    fix_accessible(f, at, seat);
    if (is_blank(json_object_get(seat, "category")) && !misspells_category(seat)) {
        const char *category = category_for_all(f);
        if (category) {
            json_object_set_new(seat, "category", json_string(category));
            say(f, at, ".category: was empty and is now %s", category);
        }
    }
    fix_members(f, at, seat, seat_members);
    fix_point(f, at, seat);
}

/* ---- rows, zones, areas ---- */

/* Gives the object an empty text, list or place where it has none. */
static void put_missing(struct fixer *f, const struct fix_place *at, json_t *object,
                        const char *name, json_t *value)
{
    if (json_object_get(object, name)) {
        json_decref(value);
        return;
    }
    json_object_set_new(object, name, value);
    say(f, at, ".%s: was missing and is now %s", name,
        json_is_array(value)    ? "an empty list"
        : json_is_string(value) ? "empty"
                                : "0, 0");
}

static void fix_row_number_position(struct fixer *f, const struct fix_place *at, json_t *row)
{
    static const char *const words[][2] = {
        {"left", "start"}, {"right", "end"}, {"none", NULL}, {"", NULL}};
    const char *has = json_string_value(json_object_get(row, "row_number_position"));
    for (size_t i = 0; has && i < sizeof words / sizeof *words; i++)
        if (strcmp(has, words[i][0]) == 0) {
            say(f, at, ".row_number_position: \"%s\" %s%s", has,
                words[i][1] ? "is now " : "was removed", words[i][1] ? words[i][1] : "");
            if (words[i][1])
                json_object_set_new(row, "row_number_position", json_string(words[i][1]));
            else
                json_object_del(row, "row_number_position");
            return;
        }
}

static void fix_row(struct fixer *f, const struct fix_place *at, json_t *row, const json_t *zone)
{
    json_t *seat;
    size_t i;
    if (!json_is_object(row))
        return;
    fix_members(f, at, row, row_members);
    put_missing(f, at, row, "row_number", json_string(""));
    put_missing(f, at, row, "seats", json_array());
    fix_row_number_position(f, at, row);
    fix_point(f, at, row);
    json_array_foreach(json_object_get(row, "seats"), i, seat)
    {
        const struct fix_place place = {.is_seat = true, .seat = i};
        fix_seat(f, &place, seat);
        f->right =
            fmax(f->right, coordinate(zone, "x") + coordinate(row, "x") + coordinate(seat, "x"));
        f->bottom =
            fmax(f->bottom, coordinate(zone, "y") + coordinate(row, "y") + coordinate(seat, "y"));
    }
    say_notes(f, at);
}

static void fix_area(struct fixer *f, const struct fix_place *at, json_t *area)
{
    if (!json_is_object(area))
        return;
    fix_members(f, at, area, area_members);
    fix_point(f, at, area);
    json_t *text = json_object_get(area, "text");
    if (!json_is_object(text))
        return;
    struct fix_place inner = {0};
    (void)snprintf(inner.path, sizeof inner.path, "%.120s.text", at->path);
    fix_members(f, &inner, text, text_members);
    fix_point(f, &inner, text);
}

static void fix_zone(struct fixer *f, const struct fix_place *at, json_t *zone)
{
    json_t *each;
    size_t i;
    if (!json_is_object(zone))
        return;
    fix_members(f, at, zone, zone_members);
    put_missing(f, at, zone, "position", json_pack("{s:i,s:i}", "x", 0, "y", 0));
    put_missing(f, at, zone, "rows", json_array());
    fix_point(f, at, zone);
    json_array_foreach(json_object_get(zone, "rows"), i, each)
    {
        const struct fix_place row = under(at, "rows", i);
        fix_row(f, &row, each, zone);
    }
    json_array_foreach(json_object_get(zone, "areas"), i, each)
    {
        const struct fix_place area = under(at, "areas", i);
        fix_area(f, &area, each);
    }
}

/* ---- the plan ---- */

static void fix_size(struct fixer *f, const struct fix_place *at)
{
    json_t *size = json_object_get(f->plan, "size");
    struct fix_place inner = {.path = "plan.size"};
    if (json_is_object(size))
        fix_members(f, &inner, size, size_members);
    if (size)
        return;
    double width = ceil(f->right + MARGIN), height = ceil(f->bottom + MARGIN);
    json_object_set_new(f->plan, "size", json_pack("{s:f,s:f}", "width", width, "height", height));
    say(f, at, ".size: was missing and is now %.0f x %.0f, which shows every seat", width, height);
}

static void fix_plan(struct fixer *f)
{
    const struct fix_place at = {.path = "plan"};
    json_t *each;
    size_t i;
    fix_members(f, &at, f->plan, plan_members);
    put_missing(f, &at, f->plan, "name", json_string(""));
    json_array_foreach(json_object_get(f->plan, "categories"), i, each)
    {
        const struct fix_place category = under(&at, "categories", i);
        if (json_is_object(each))
            fix_members(f, &category, each, category_members);
    }
    json_array_foreach(json_object_get(f->plan, "zones"), i, each)
    {
        const struct fix_place zone = under(&at, "zones", i);
        fix_zone(f, &zone, each);
    }
    fix_size(f, &at);
}

/* pretix's API answers with the plan in a member of its own. */
static json_t *unwrap(json_t *file, json_t *said)
{
    json_t *layout = json_object_get(file, "layout");
    if (json_object_get(file, "plan") || json_object_get(file, "zones") || !json_is_object(layout))
        return file;
    json_incref(layout);
    json_decref(file);
    json_array_append_new(said, json_string("layout: the plan was in it, and stands alone now"));
    return layout;
}

json_t *plan_fix(json_t *file, json_t *said)
{
    file = unwrap(file, said);
    json_t *plan = json_object_get(file, "plan");
    struct fixer f = {.body = plan ? file : NULL, .plan = plan ? plan : file, .said = said};
    if (json_is_object(f.plan))
        fix_plan(&f);
    vec_close(&f.notes);
    return file;
}
