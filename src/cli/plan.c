/* `holdfast plan`: looks at a seating plan before it is put on sale, without a server.  Main
 * thread.
 *
 * A file has a plan in pretix's format, or the body of a POST /v1/events with such a plan, as
 * `holdfast event create --file` takes it.  It is read by the server's own reader, so what is
 * refused here is refused there, with the same words.  With --fix it is repaired first
 * (plan_fix.h), and written as far as it could be. */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/vec.h"
#include "cli/json_file.h"
#include "cli/plan_fix.h"
#include "cli/plan_svg.h"
#include "cli/remote.h"
#include "cli/render.h"
#include "cli/staged.h"
#include "venue/event_parse.h"

static const char usage[] =
    "usage: holdfast plan check [--json] FILE\n"
    "       holdfast plan check --fix [--output NEW | --in-place] FILE > fixed.json\n"
    "       holdfast plan draw FILE > plan.svg\n"
    "check says what a server would refuse, and what the plan has: zones, categories, areas.\n"
    "With --fix it repairs what editors write beyond the format or leave out, says what it\n"
    "did line by line, and writes the plan to standard output, to a NEW file, or over FILE.\n"
    "draw writes a picture.  FILE is a seating plan in pretix's format, or the body of a\n"
    "POST /v1/events that has one; - for standard input.\n"
    "Exit status: 0; 64 usage, 65 a server would refuse it.\n";

/* What the command line says. */
struct plan_options {
    bool as_json, fix, in_place;
    const char *output; /* NULL: none */
};

/* A file that was read. */
struct plan_file {
    const char *command; /* "plan check", for messages */
    json_t *fixes;       /* what was repaired, as sentences; NULL: nothing was to be */
    json_t *fixed;       /* the file as it is then */
    json_t *body;        /* of a POST /v1/events */
    bool is_event;       /* the file had the whole body; otherwise it had the plan alone */
};

/* ---- reading ---- */

/* Makes the body of an event of a plan that has no prices yet: every category costs nothing. */
static json_t *event_of(json_t *plan)
{
    json_t *prices = json_object(), *category;
    size_t i;
    json_array_foreach(json_object_get(plan, "categories"), i, category)
    {
        const char *name = json_string_value(json_object_get(category, "name"));
        if (name)
            json_object_set_new(prices, name, json_integer(0));
    }
    json_t *body = json_object();
    json_object_set_new(body, "name", json_string("Plan"));
    json_object_set_new(body, "currency", json_string("usd"));
    json_object_set_new(body, "prices", prices);
    json_object_set_new(body, "plan", plan);
    return body;
}

/* Reads the file, and repairs it if that is asked for.  Returns an exit code, after a message if it
 * is not 0. */
static int read_plan(struct plan_file *file, bool fix, const char *path)
{
    json_t *json = json_file_read(file->command, path, path);
    if (!json)
        return EXIT_MALFORMED;
    if (fix) {
        file->fixes = json_array();
        json = plan_fix(json, file->fixes);
        file->fixed = json_incref(json);
    }
    file->is_event = json_object_get(json, "plan") != NULL;
    file->body = file->is_event ? json : event_of(json);
    return EXIT_SUCCESS;
}

/* Lets the server's reader check it.  Returns an exit code, after a message if it is not 0. */
static int check_plan(const struct plan_file *file, const char *path)
{
    struct event_def *def = NULL;
    struct hf_err err = {0};
    if (!parse_event(file->body, &def, &err)) {
        cli_say(file->command, "%.200s: %s", path, err.msg);
        return EXIT_MALFORMED;
    }
    event_def_free(def);
    return EXIT_SUCCESS;
}

/* ---- what a plan has ---- */

struct plan_place {
    double x, y;
    const char *id;
};

struct summary {
    json_t *zones, *categories, *areas; /* lists of objects, as they are printed */
    json_t *counts;                     /* category -> seats */
    VEC(struct plan_place) seats;
    json_t *warnings;
};

static double coordinate(const json_t *object, const char *axis)
{
    return json_number_value(json_object_get(json_object_get(object, "position"), axis));
}

static void count_row(struct summary *s, const json_t *zone, const json_t *row)
{
    const json_t *seat;
    size_t i;
    json_array_foreach(json_object_get(row, "seats"), i, seat)
    {
        json_t *count =
            json_object_get(s->counts, json_string_value(json_object_get(seat, "category")));
        json_integer_set(count, json_integer_value(count) + 1);
        *vec_push(&s->seats) = (struct plan_place){
            .x = coordinate(zone, "x") + coordinate(row, "x") + coordinate(seat, "x"),
            .y = coordinate(zone, "y") + coordinate(row, "y") + coordinate(seat, "y"),
            .id = json_string_value(json_object_get(seat, "seat_guid")),
        };
    }
}

static void count_zone(struct summary *s, const json_t *zone, size_t number)
{
    const json_t *rows = json_object_get(zone, "rows"), *row, *area;
    const char *name = json_string_value(json_object_get(zone, "name"));
    size_t before = s->seats.n, i;
    json_array_foreach((json_t *)rows, i, row) count_row(s, zone, row);
    json_array_append_new(
        s->zones,
        json_pack("{s:o,s:I,s:I}", "name",
                  name && *name ? json_string(name) : json_sprintf("Zone %zu", number), "rows",
                  (json_int_t)json_array_size(rows), "seats", (json_int_t)(s->seats.n - before)));
    json_array_foreach(json_object_get(zone, "areas"), i, area)
    {
        json_array_append_new(s->areas,
                              json_pack("{s:O*,s:O*,s:O*}", "uuid", json_object_get(area, "uuid"),
                                        "shape", json_object_get(area, "shape"), "text",
                                        json_object_get(json_object_get(area, "text"), "text")));
    }
}

static int compare_places(const void *a, const void *b)
{
    const struct plan_place *one = a, *other = b;
    if (one->x != other->x)
        return one->x < other->x ? -1 : 1;
    return (one->y > other->y) - (one->y < other->y);
}

static void warn(struct summary *s, size_t n, const char *what, const char *id)
{
    if (n)
        json_array_append_new(s->warnings, json_sprintf("%zu %s, for example %s", n, what, id));
}

/* A server accepts what this looks for, and still it is seldom what the plan's maker meant.  Sorts
 * the seats. */
static void look_for_mistakes(struct summary *s, const json_t *size)
{
    double width = json_number_value(json_object_get(size, "width"));
    double height = json_number_value(json_object_get(size, "height"));
    const char *outside = NULL, *twice = NULL;
    const json_t *category;
    size_t n_outside = 0, n_twice = 0, i;
    if (s->seats.n)
        qsort(s->seats.v, s->seats.n, sizeof *s->seats.v, compare_places);
    for (i = 0; i < s->seats.n; i++) {
        const struct plan_place *at = &s->seats.v[i];
        if (at->x < 0 || at->x > width || at->y < 0 || at->y > height) {
            outside = at->id;
            n_outside++;
        }
        if (i > 0 && compare_places(at - 1, at) == 0) {
            twice = at->id;
            n_twice++;
        }
    }
    warn(s, n_outside, "seats are outside the plan's size", outside);
    warn(s, n_twice, "seats are at the place of another seat", twice);
    json_array_foreach(s->categories, i, category)
    {
        if (json_integer_value(json_object_get(category, "seats")) == 0)
            json_array_append_new(
                s->warnings, json_sprintf("no seat has the category %s",
                                          json_string_value(json_object_get(category, "name"))));
    }
}

static void list_categories(struct summary *s, const struct plan_file *file, const json_t *plan)
{
    const json_t *category, *prices = json_object_get(file->body, "prices");
    size_t i;
    json_array_foreach(json_object_get(plan, "categories"), i, category)
    {
        json_t *name = json_object_get(category, "name");
        const char *text = json_string_value(name);
        json_t *line =
            json_pack("{s:O,s:O}", "name", name, "seats", json_object_get(s->counts, text));
        if (file->is_event)
            json_object_set(line, "price", json_object_get(prices, text));
        json_array_append_new(s->categories, line);
    }
}

static void summarize(struct summary *s, const struct plan_file *file)
{
    const json_t *plan = json_object_get(file->body, "plan"), *each;
    size_t i;
    *s = (struct summary){.zones = json_array(),
                          .categories = json_array(),
                          .areas = json_array(),
                          .counts = json_object(),
                          .warnings = json_array()};
    json_array_foreach(json_object_get(plan, "categories"), i, each)
    {
        json_object_set_new(s->counts, json_string_value(json_object_get(each, "name")),
                            json_integer(0));
    }
    json_array_foreach(json_object_get(plan, "zones"), i, each) count_zone(s, each, i + 1);
    list_categories(s, file, plan);
    look_for_mistakes(s, json_object_get(plan, "size"));
}

static void summary_close(struct summary *s)
{
    json_decref(s->zones);
    json_decref(s->categories);
    json_decref(s->areas);
    json_decref(s->counts);
    json_decref(s->warnings);
    vec_close(&s->seats);
}

/* ---- printing ---- */

static void put_table(struct buf *out, const char *title, const json_t *rows,
                      const char *const *columns)
{
    if (json_array_size(rows) == 0)
        return;
    buf_printf(out, "\n%s\n", title);
    render_table(out, rows, columns, true);
}

static void put_summary(struct buf *out, const struct summary *s, const struct plan_file *file)
{
    static const char *const zone_columns[] = {"name", "rows", "seats", NULL};
    static const char *const category_columns[] = {"name", "seats", NULL};
    static const char *const priced_columns[] = {"name", "seats", "price", NULL};
    static const char *const area_columns[] = {"uuid", "shape", "text", NULL};
    const json_t *plan = json_object_get(file->body, "plan"), *size = json_object_get(plan, "size");
    const json_t *warning;
    size_t i;
    render_value(out, json_object_get(plan, "name"));
    buf_printf(out, ": %zu seat%s, %.0f x %.0f\n", s->seats.n, s->seats.n == 1 ? "" : "s",
               json_number_value(json_object_get(size, "width")),
               json_number_value(json_object_get(size, "height")));
    put_table(out, "zones", s->zones, zone_columns);
    put_table(out, "categories", s->categories, file->is_event ? priced_columns : category_columns);
    put_table(out, "areas", s->areas, area_columns);
    buf_str(out, json_array_size(s->warnings) ? "\n" : "");
    json_array_foreach(s->warnings, i, warning)
    {
        buf_lit(out, "warning: ");
        render_value(out, warning);
        buf_char(out, '\n');
    }
}

static void put_summary_json(struct buf *out, const struct summary *s, const struct plan_file *file)
{
    const json_t *plan = json_object_get(file->body, "plan");
    json_t *all =
        json_pack("{s:O,s:O,s:I,s:O,s:O,s:O,s:O}", "name", json_object_get(plan, "name"), "size",
                  json_object_get(plan, "size"), "seats", (json_int_t)s->seats.n, "zones", s->zones,
                  "categories", s->categories, "areas", s->areas, "warnings", s->warnings);
    if (file->fixes)
        json_object_set(all, "fixed", file->fixes);
    char *text = json_dumps(all, JSON_COMPACT);
    hf_check(text);
    buf_str(out, text);
    buf_char(out, '\n');
    free(text);
    json_decref(all);
}

/* ---- what was repaired ---- */

static void put_fixes(struct buf *out, const struct plan_file *file)
{
    const json_t *fix;
    size_t i;
    json_array_foreach(file->fixes, i, fix)
    {
        buf_lit(out, "fixed: ");
        render_value(out, fix);
        buf_char(out, '\n');
    }
    if (json_array_size(file->fixes) == 0)
        buf_lit(out, "nothing to repair\n");
}

static bool write_all(int fd, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, data, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return false;
        data += n;
        len -= (size_t)n;
    }
    return true;
}

/* Others may read the new file if they may read the one that it was made of. */
static bool write_file(const struct plan_file *file, const char *from, const char *path,
                       const struct buf *text)
{
    struct staged staged;
    struct stat st;
    mode_t mode = strcmp(from, "-") != 0 && stat(from, &st) == 0 ? st.st_mode & 0777 : 0600;
    bool ok = staged_begin(&staged, file->command, path);
    if (ok && (!write_all(staged.fd, text->data, text->len) || fchmod(staged.fd, mode) != 0)) {
        cli_say(file->command, "cannot write %.300s: %s", path, strerror(errno));
        ok = false;
    }
    ok = ok && staged_commit(&staged);
    staged_close(&staged);
    return ok;
}

/* Writes the plan where it is to go, and what was done where the plan does not go.  Returns an exit
 * code. */
static int write_fixed(const struct plan_file *file, const struct plan_options *o, const char *path)
{
    const char *to = o->in_place ? path : o->output;
    char *json = json_dumps(file->fixed, JSON_INDENT(1) | JSON_REAL_PRECISION(15));
    struct buf text = {0}, fixes = {0};
    hf_check(json);
    buf_str(&text, json);
    buf_char(&text, '\n');
    free(json);
    put_fixes(&fixes, file);
    if (!to)
        (void)fwrite(fixes.data, 1, fixes.len, stderr);
    bool ok = to ? write_file(file, path, to, &text) : cli_print(&text);
    bool told = !ok || !to || o->as_json || cli_print(&fixes);
    if (!told || (!ok && !to))
        cli_say(file->command, "cannot write to standard output");
    buf_close(&text);
    buf_close(&fixes);
    return ok && told ? EXIT_SUCCESS : to ? EX_CANTCREAT : EXIT_NO_BACK_END;
}

/* ---- the commands ---- */

static void put_check(const struct plan_file *file, bool as_json, struct buf *out)
{
    struct summary s;
    summarize(&s, file);
    if (as_json)
        put_summary_json(out, &s, file);
    else
        put_summary(out, &s, file);
    summary_close(&s);
}

static void draw(const struct plan_file *file, struct buf *out)
{
    if (!file->is_event)
        json_object_del(file->body, "prices"); /* they are event_of's */
    plan_svg(out, file->body);
}

/* What is refused after the repair is written, too, so that a person can go on with it. */
static int run_on(struct plan_file *file, bool is_check, const struct plan_options *o,
                  const char *path)
{
    struct buf out = {0};
    int code = read_plan(file, o->fix, path);
    if (code == EXIT_SUCCESS && o->fix)
        code = write_fixed(file, o, path);
    if (code == EXIT_SUCCESS)
        code = check_plan(file, path);
    if (code != EXIT_SUCCESS || (o->fix && !o->output && !o->in_place))
        return code;
    if (is_check)
        put_check(file, o->as_json, &out);
    else
        draw(file, &out);
    if (!cli_print(&out)) {
        cli_say(file->command, "cannot write to standard output");
        return EXIT_NO_BACK_END;
    }
    return EXIT_SUCCESS;
}

static int run(bool is_check, const struct plan_options *o, const char *path)
{
    struct plan_file file = {.command = is_check ? "plan check" : "plan draw"};
    int code = run_on(&file, is_check, o, path);
    json_decref(file.body);
    json_decref(file.fixed);
    json_decref(file.fixes);
    return code;
}

/* What is wrong with the options together; NULL: nothing. */
static const char *conflict_of(const struct plan_options *o, const char *path)
{
    if (!o->fix)
        return o->output || o->in_place ? "--output and --in-place go with --fix" : NULL;
    if (o->output && o->in_place)
        return "--output and --in-place exclude each other";
    if (o->in_place && strcmp(path, "-") == 0)
        return "standard input cannot be written: give --output, or neither";
    if (o->as_json && !o->output && !o->in_place)
        return "--json needs --output or --in-place beside --fix, since the plan is printed";
    if (o->output && access(o->output, F_OK) == 0)
        return "the file of --output is there already; to write over FILE, say --in-place";
    return NULL;
}

int cli_plan(int argc, char **argv)
{
    const char *verb = argc > 1 ? argv[1] : "", *conflict;
    bool is_check = strcmp(verb, "check") == 0;
    struct plan_options o = {0};
    const struct cli_option check_options[] = {{"json", CLI_TRUE, .to = &o.as_json},
                                               {"fix", CLI_TRUE, .to = &o.fix},
                                               {"output", CLI_TEXT, .to = &o.output},
                                               {"in-place", CLI_TRUE, .to = &o.in_place},
                                               {0}};
    const struct cli_option draw_options[] = {{0}};
    if (strcmp(verb, "--help") == 0 || strcmp(verb, "-h") == 0) {
        fputs(usage, stdout);
        return EXIT_SUCCESS;
    }
    if (!is_check && strcmp(verb, "draw") != 0)
        return cli_unknown("plan", "verb", *verb ? verb : NULL, (const char *[]){"check", "draw"},
                           2);
    const char *command = is_check ? "plan check" : "plan draw";
    optind = 0; /* glibc: from the start */
    int code =
        cli_options(command, argc - 1, argv + 1, is_check ? check_options : draw_options, usage);
    if (code >= 0)
        return code;
    if (argc - 1 - optind != 1) {
        cli_say(command, "expected one FILE; see holdfast %s --help", command);
        return EXIT_BAD_USAGE;
    }
    const char *path = argv[1 + optind];
    if ((conflict = conflict_of(&o, path))) {
        cli_say(command, "%s", conflict);
        return EXIT_BAD_USAGE;
    }
    return run(is_check, &o, path);
}
