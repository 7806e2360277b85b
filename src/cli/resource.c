/* See resource.h.  Main thread. */
#include "cli/resource.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/wait.h"
#include "cli/json_file.h"
#include "cli/render.h"

#define TIMEOUT_MS 30000
#define FOLLOW_PAUSE_MS 1000
#define PARAMS_MAX 28
#define VERBS_MAX 24

/* ---- values ---- */

static bool is_wrong(const struct resource_call *c, const struct param *p, const char *what)
{
    cli_say(c->remote.command, "--%s: %s", p->option, what);
    return false;
}

/* Finds, or makes, the object that a member with dots in its name belongs to, and the name in it.
 */
static json_t *object_of(json_t *fields, const char *member, const char **ret_name)
{
    const char *dot = strchr(member, '.');
    *ret_name = dot ? dot + 1 : member;
    if (!dot)
        return fields;
    json_t *object = json_object_getn(fields, member, (size_t)(dot - member));
    if (!object) {
        object = json_object();
        json_object_setn_new(fields, member, (size_t)(dot - member), object);
    }
    return object;
}

static bool set(const struct resource_call *c, const struct param *p, json_t *value)
{
    const char *name;
    json_t *object = object_of(c->fields, p->member, &name);
    if (!value || json_object_set_new(object, name, value) != 0)
        return is_wrong(c, p, "the value is not UTF-8");
    return true;
}

static bool append(const struct resource_call *c, const struct param *p, json_t *value)
{
    const char *name;
    json_t *object = object_of(c->fields, p->member, &name), *list = json_object_get(object, name);
    if (!list) {
        list = json_array();
        json_object_set_new(object, name, list);
    }
    return (value && json_array_append_new(list, value) == 0) || is_wrong(c, p, "is not UTF-8");
}

/* The object of that name in another one, made if it is not there.  NULL: the name is not UTF-8. */
static json_t *object_in(json_t *object, const char *name)
{
    if (!json_object_get(object, name))
        json_object_set_new(object, name, json_object());
    return json_object_get(object, name);
}

/* The object that the option's member is. */
static json_t *object_named(const struct resource_call *c, const struct param *p)
{
    const char *name;
    json_t *object = object_of(c->fields, p->member, &name);
    return object_in(object, name);
}

/* Puts a value under the first `len` bytes of the text, which must be new; takes it over. */
static bool put_new(const struct resource_call *c, const struct param *p, json_t *object,
                    const char *text, size_t len, json_t *value)
{
    bool is_twice = object && (!json_is_object(object) || json_object_getn(object, text, len));
    if (!is_twice && json_object_setn_new(object, text, len, value) == 0)
        return true;
    if (is_twice)
        json_decref(value);
    return is_wrong(c, p, is_twice ? "the same name twice" : "is not UTF-8");
}

/* Finds the = of NAME=NUMBER, where the name may have an = of its own, and reads the number.  NULL:
 * it is not of that form, and a message says so. */
static const char *read_number(const struct resource_call *c, const struct param *p,
                               const char *form, char *text, int64_t *ret)
{
    char option[64], *equals = strrchr(text, '=');
    snprintf(option, sizeof option, "--%s", p->option);
    if (!equals || equals == text) {
        (void)is_wrong(c, p, form);
        return NULL;
    }
    return cli_integer(c->remote.command, option, equals + 1, 0, INT64_MAX, ret) ? equals : NULL;
}

static bool add_number(const struct resource_call *c, const struct param *p, char *text)
{
    int64_t n = 0;
    const char *equals = read_number(c, p, "expected NAME=NUMBER", text, &n);
    return equals &&
           put_new(c, p, object_named(c, p), text, (size_t)(equals - text), json_integer(n));
}

static bool add_name(const struct resource_call *c, const struct param *p, const char *text)
{
    const char *equals = strrchr(text, '=');
    if (!equals || equals == text || !equals[1])
        return is_wrong(c, p, "expected NAME=TEXT");
    size_t len = (size_t)(equals - text);
    return put_new(c, p, object_named(c, p), text, len, json_string(equals + 1));
}

/* NAME=NUMBER of places, or NAME=NUMBER:TYPE for each of several ticket types. */
static bool add_places_of_type(const struct resource_call *c, const struct param *p, char *text)
{
    static const char form[] = "expected NAME=NUMBER or NAME=NUMBER:TYPE";
    char *equals = strrchr(text, '='), *colon = equals ? strchr(equals, ':') : NULL;
    int64_t n = 0;
    if (!colon)
        return add_number(c, p, text);
    *colon = '\0';
    if (!colon[1])
        return is_wrong(c, p, form);
    if (!read_number(c, p, form, text, &n))
        return false;
    *equals = '\0';
    json_t *types = object_in(object_named(c, p), text);
    return put_new(c, p, types, colon + 1, strlen(colon + 1), json_integer(n));
}

/* The ticket type of that id in the list; makes it if it is not there. */
static json_t *type_of(const struct resource_call *c, const struct param *p, const char *id)
{
    const char *name;
    json_t *object = object_of(c->fields, p->member, &name), *list = json_object_get(object, name);
    if (!list) {
        list = json_array();
        json_object_set_new(object, name, list);
    }
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *has = json_string_value(json_object_get(json_array_get(list, i), "id"));
        if (has && strcmp(has, id) == 0)
            return json_array_get(list, i);
    }
    json_t *type = json_pack("{s:s}", "id", id);
    return type && json_array_append_new(list, type) == 0 ? type : NULL;
}

/* ID, or ID:NAME. */
static bool add_type(const struct resource_call *c, const struct param *p, char *text)
{
    char *colon = strchr(text, ':');
    if (colon)
        *colon = '\0';
    json_t *type = type_of(c, p, text);
    if (!type || !colon)
        return type || is_wrong(c, p, "is not UTF-8");
    return put_new(c, p, type, "name", 4, json_string(colon + 1));
}

/* ID:NAME=NUMBER: what places of that category, section or area cost as this type. */
static bool add_type_price(const struct resource_call *c, const struct param *p, char *text)
{
    static const char form[] = "expected TYPE:NAME=NUMBER";
    char *colon = strchr(text, ':');
    int64_t n;
    if (!colon || colon == text)
        return is_wrong(c, p, form);
    const char *equals = read_number(c, p, form, colon + 1, &n);
    if (!equals)
        return false;
    *colon = '\0';
    json_t *type = type_of(c, p, text);
    if (!type)
        return is_wrong(c, p, "is not UTF-8");
    return put_new(c, p, object_in(type, "prices"), colon + 1, (size_t)(equals - colon - 1),
                   json_integer(n));
}

/* NAME:ROWSxSEATS:PRICE[:TIER] and NAME:CAPACITY:PRICE[:PLAN_AREA]. */
static bool add_places(const struct resource_call *c, const struct param *p, char *text)
{
    char *parts[4] = {text}, *end;
    size_t n = 1;
    for (char *at = text; n < 4 && (at = strchr(at, ':')); parts[n++] = at)
        *at++ = '\0';
    bool is_section = p->kind == PARAM_SECTION;
    long long size = 0, per_row = 0, price = 0;
    bool fits = n >= 3;
    if (fits) {
        size = strtoll(parts[1], &end, 10);
        fits = end > parts[1] && (is_section ? *end == 'x' : !*end);
    }
    if (fits && is_section) {
        char *from = end + 1;
        per_row = strtoll(from, &end, 10);
        fits = end > from && !*end;
    }
    if (fits) {
        price = strtoll(parts[2], &end, 10);
        fits = end > parts[2] && !*end;
    }
    if (!fits)
        return is_wrong(c, p,
                        is_section
                            ? "expected NAME:ROWSxSEATS:PRICE or NAME:ROWSxSEATS:PRICE:TIER"
                            : "expected NAME:CAPACITY:PRICE or NAME:CAPACITY:PRICE:PLAN_AREA");
    if (!is_section)
        return append(c, p,
                      json_pack("{s:s,s:I,s:I,s:s*}", "name", parts[0], "price", (json_int_t)price,
                                "capacity", (json_int_t)size, "plan_area", parts[3]));
    json_t *section = json_pack("{s:s,s:I,s:I,s:I}", "name", parts[0], "price", (json_int_t)price,
                                "rows", (json_int_t)size, "seats_per_row", (json_int_t)per_row);
    if (section && n == 4)
        json_object_set_new(section, "tier", json_string(parts[3]));
    return append(c, p, section);
}

static bool set_json(const struct resource_call *c, const struct param *p, const char *text)
{
    json_error_t why;
    json_t *value = json_loads(text, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &why);
    if (!value) {
        cli_say(c->remote.command, "--%s: not JSON: %s", p->option, why.text);
        return false;
    }
    return set(c, p, value);
}

/* Reads the body that the options then add to. */
static bool read_body(const struct resource_call *c, const char *option, const char *path)
{
    json_t *body = json_file_read(c->remote.command, option, path);
    if (body)
        json_object_update_missing(c->fields, body);
    json_decref(body);
    return body != NULL;
}

/* A file with the value of a member. */
static bool set_file(const struct resource_call *c, const struct param *p, const char *option,
                     const char *path)
{
    json_t *value = json_file_read(c->remote.command, option, path);
    return value && set(c, p, value);
}

/* X,Y */
static bool set_point(const struct resource_call *c, const struct param *p, const char *text)
{
    char *end, *from;
    double x = strtod(text, &end), y = 0;
    bool fits = end > text && *end == ',' && isfinite(x);
    if (fits) {
        from = end + 1;
        y = strtod(from, &end);
        fits = end > from && !*end && isfinite(y);
    }
    return fits ? set(c, p, json_pack("{s:f,s:f}", "x", x, "y", y))
                : is_wrong(c, p, "expected X,Y");
}

static bool set_param(const struct resource_call *c, const struct param *p, char *text)
{
    char option[64];
    int64_t n;
    snprintf(option, sizeof option, "--%s", p->option);
    if (p->may_be_none && strcmp(text, "none") == 0)
        return set(c, p, json_null());
    switch (p->kind) {
    case PARAM_TEXT:
        return set(c, p, json_string(text));
    case PARAM_INTEGER:
        return cli_integer(c->remote.command, option, text, 0, INT64_MAX, &n) &&
               set(c, p, json_integer(n));
    case PARAM_DURATION:
        return cli_duration(c->remote.command, option, text, 0, &n) && set(c, p, json_integer(n));
    case PARAM_TRUE:
    case PARAM_FALSE:
        return set(c, p, json_boolean(p->kind == PARAM_TRUE));
    case PARAM_JSON:
        return set_json(c, p, text);
    case PARAM_TEXTS:
        return append(c, p, json_string(text));
    case PARAM_NUMBERS:
        return add_number(c, p, text);
    case PARAM_NAMES:
        return add_name(c, p, text);
    case PARAM_PLACES:
        return add_places_of_type(c, p, text);
    case PARAM_TYPE:
        return add_type(c, p, text);
    case PARAM_TYPE_PRICE:
        return add_type_price(c, p, text);
    case PARAM_SECTION:
    case PARAM_AREA:
        return add_places(c, p, text);
    case PARAM_POINT:
        return set_point(c, p, text);
    case PARAM_BODY:
        return read_body(c, option, text);
    case PARAM_FILE:
        return set_file(c, p, option, text);
    }
    return false;
}

/* ---- the command line ---- */

static size_t count_params(const struct verb *verb)
{
    size_t n = 0;
    while (verb->params && verb->params[n].option)
        n++;
    return n;
}

static bool is_flag(const struct param *p)
{
    return p->kind == PARAM_TRUE || p->kind == PARAM_FALSE;
}

struct bound_param {
    const struct resource_call *call;
    const struct param *param;
};

static bool take_param(void *to, char *value)
{
    const struct bound_param *bound = to;
    return set_param(bound->call, bound->param, value ? value : "");
}

/* Puts the options that all verbs have.  Returns how many there are. */
#define N_COMMON 6
static size_t put_common(struct resource_call *c, struct cli_option *table)
{
    const struct cli_option common[N_COMMON] = {
        {"server", CLI_TEXT, .to = &c->remote.server},
        {"key-file", CLI_TEXT, .to = &c->remote.key_file},
        {"cacert", CLI_TEXT, .to = &c->remote.ca_file},
        {"idempotency-key", CLI_TEXT, .to = &c->remote.idempotency_key},
        {"timeout", CLI_DURATION, .to = &c->remote.timeout_ms, .least = 1},
        {"json", CLI_TRUE, .to = &c->json}};
    memcpy(table, common, sizeof common);
    return N_COMMON;
}

/* Returns -1, or the exit code with which to end. */
static int parse_options(struct resource_call *c, int argc, char **argv, const char *usage)
{
    const struct verb *verb = c->verb;
    struct cli_option options[N_COMMON + PARAMS_MAX + 3] = {0};
    struct bound_param bound[PARAMS_MAX];
    size_t n = put_common(c, options), n_params = count_params(verb);
    bool follows = false;
    hf_check(n_params <= PARAMS_MAX);
    if (verb->columns)
        options[n++] =
            (struct cli_option){"limit", CLI_INT64, .to = &c->limit, .least = 1, .most = INT64_MAX};
    if (verb->columns && verb->page_max > 100)
        options[n++] = (struct cli_option){"follow", CLI_TRUE, .to = &follows};
    for (size_t i = 0; i < n_params; i++) {
        bound[i] = (struct bound_param){c, &verb->params[i]};
        options[n++] = (struct cli_option){verb->params[i].option,
                                           is_flag(&verb->params[i]) ? CLI_OWN_TRUE : CLI_OWN,
                                           .to = &bound[i], .take = take_param};
    }
    optind = 0; /* glibc: from the start */
    int code = cli_options(c->remote.command, argc, argv, options, usage);
    c->pause_ms = follows ? FOLLOW_PAUSE_MS : 0;
    return code;
}

/* A secret id need not stand on the command line, where ps shows it: "-" is a line of standard
 * input. */
static char *read_operand(const char *text)
{
    char line[512] = "";
    if (strcmp(text, "-") != 0)
        return hf_strndup(text, strlen(text));
    if (!fgets(line, sizeof line, stdin))
        line[0] = '\0';
    return hf_strndup(line, strcspn(line, "\r\n"));
}

static bool has_member(const json_t *fields, const char *member)
{
    const char *name;
    const char *dot = strchr(member, '.');
    const json_t *object = dot ? json_object_getn(fields, member, (size_t)(dot - member)) : fields;
    name = dot ? dot + 1 : member;
    return json_object_get(object, name) != NULL;
}

static bool take_operands(struct resource_call *c, int argc, char **argv)
{
    const struct verb *verb = c->verb;
    const char *command = c->remote.command;
    int i = optind;
    if (verb->operand && i >= argc) {
        cli_say(command, "expected %s; see holdfast %s --help", verb->operand, command);
        return false;
    }
    if (verb->operand)
        c->operand = read_operand(argv[i++]);
    if (c->operand && !*c->operand) {
        cli_say(command, "the %s is empty", verb->operand);
        return false;
    }
    if (i < argc && !verb->rest) {
        cli_say(command, "unexpected operand %.100s; see holdfast %s --help", argv[i], command);
        return false;
    }
    const struct param rest = {.option = "seats", .member = verb->rest};
    for (; i < argc; i++)
        if (!append(c, &rest, json_string(argv[i])))
            return false;
    if (verb->operand_member)
        json_object_set_new(c->fields, verb->operand_member, json_string(c->operand));
    for (size_t k = 0; k < count_params(verb); k++)
        if (verb->params[k].is_required && !has_member(c->fields, verb->params[k].member)) {
            cli_say(command, "--%s is required; see holdfast %s --help", verb->params[k].option,
                    command);
            return false;
        }
    return true;
}

/* ---- requests ---- */

/* Numbers, texts and flags; other members of a query there are none. */
static void put_query(struct buf *b, const json_t *fields)
{
    const char *name;
    json_t *value;
    char separator = '?';
    json_object_foreach((json_t *)fields, name, value)
    {
        buf_printf(b, "%c%s=", separator, name);
        separator = '&';
        if (json_is_integer(value))
            buf_int(b, json_integer_value(value));
        else
            buf_percent(b, json_is_string(value) ? json_string_value(value)
                           : json_is_true(value) ? "true"
                                                 : "");
    }
}

void resource_path(const struct resource_call *c, struct buf *ret)
{
    const struct verb *verb = c->verb;
    const char *place = strstr(verb->path, "%s");
    buf_put(ret, verb->path, place ? (size_t)(place - verb->path) : strlen(verb->path));
    if (place) {
        buf_percent(ret, c->operand);
        buf_str(ret, place + 2);
    }
    if (strcmp(verb->method, "GET") == 0)
        put_query(ret, c->fields);
    buf_char(ret, '\0');
    ret->len--;
}

int resource_print(const struct resource_call *c, struct buf *b)
{
    if (cli_print(b))
        return EXIT_SUCCESS;
    cli_say(c->remote.command, "cannot write to standard output: %s", strerror(errno));
    return EXIT_NO_BACK_END;
}

static int request(struct resource_call *c)
{
    struct buf path = {0};
    resource_path(c, &path);
    int code = remote_call(&c->remote, c->verb->method, path.data, c->fields, &c->answer);
    buf_close(&path);
    return code;
}

/* Prints the answer as it came, whatever it is. */
static int print_json(const struct resource_call *c)
{
    struct buf b = {0};
    if (c->answer.body.len == 0)
        return EXIT_SUCCESS;
    buf_put(&b, c->answer.body.data, c->answer.body.len);
    buf_char(&b, '\n');
    return resource_print(c, &b);
}

static json_t *parse_answer(const struct resource_call *c)
{
    json_t *answer = json_loadb(c->answer.body.data, c->answer.body.len, 0, NULL);
    if (!answer)
        cli_say(c->remote.command, "the server's answer is not JSON; is it Holdfast?");
    return answer;
}

static int run_once(struct resource_call *c)
{
    struct buf b = {0};
    int code = request(c);
    if (c->json) {
        int printed = print_json(c);
        return code ? code : printed;
    }
    if (code || c->answer.body.len == 0)
        return code;
    json_t *answer = parse_answer(c);
    if (!answer)
        return EXIT_NO_BACK_END;
    (c->verb->render ? c->verb->render : render_object)(&b, answer);
    json_decref(answer);
    return resource_print(c, &b);
}

/* ---- lists ---- */

/* Prints a page and moves the query on to the next.  *ret_n is the number of its rows. */
static int print_page(struct resource_call *c, bool has_header, size_t *ret_n, bool *ret_more)
{
    struct buf b = {0};
    json_t *page = parse_answer(c);
    if (!page)
        return EXIT_NO_BACK_END;
    const json_t *rows = json_object_get(page, "data");
    json_t *cursor = json_object_get(page, "next_cursor");
    const json_t *last = json_array_get(rows, json_array_size(rows) - 1);
    *ret_n = json_array_size(rows);
    *ret_more = json_is_true(json_object_get(page, "has_more")) && json_is_string(cursor);
    if (*ret_more && json_equal(cursor, json_object_get(c->fields, "cursor"))) {
        cli_say(c->remote.command, "the server's list does not go on: a page leads to itself");
        json_decref(page);
        return EXIT_NO_BACK_END;
    }
    if (*ret_more)
        json_object_set(c->fields, "cursor", cursor);
    else if (c->pause_ms && json_object_get(last, "seq")) {
        json_object_set(c->fields, "after", json_object_get(last, "seq"));
        json_object_del(c->fields, "cursor");
    }
    if (!c->json && *ret_n)
        render_table(&b, rows, c->verb->columns, has_header);
    json_decref(page);
    if (c->json && (*ret_n || !c->pause_ms))
        return print_json(c);
    return resource_print(c, &b);
}

/* The next row of --follow comes after a pause, and for it a server that restarts is waited for. */
static int run_list(struct resource_call *c)
{
    int64_t n_rows = 0;
    bool more = true;
    c->remote.is_patient = c->pause_ms != 0;
    while (more || c->pause_ms) {
        int64_t left = c->limit ? c->limit - n_rows : c->verb->page_max;
        size_t n = 0;
        if (left == 0)
            break;
        if (!more)
            wait_sleep_us(c->pause_ms * 1000);
        json_object_set_new(c->fields, "limit",
                            json_integer(left < c->verb->page_max ? left : c->verb->page_max));
        int code = request(c);
        if (code && c->json)
            (void)!print_json(c);
        if (!code)
            code = print_page(c, n_rows == 0, &n, &more);
        if (code)
            return code;
        n_rows += (int64_t)n;
    }
    if (!n_rows && !c->json)
        cli_say(c->remote.command, "nothing found");
    return EXIT_SUCCESS;
}

/* ---- main ---- */

static int run(struct resource_call *c)
{
    if (!remote_open(&c->remote))
        return EXIT_BAD_USAGE;
    if (c->verb->run)
        return c->verb->run(c);
    return c->verb->columns ? run_list(c) : run_once(c);
}

static const struct verb *find_verb(const struct resource *resource, const char *name)
{
    const struct verb *verb = resource->verbs;
    if (!verb->name)
        return verb;
    for (; name && verb->name; verb++)
        if (strcmp(verb->name, name) == 0)
            return verb;
    return NULL;
}

static int unknown_verb(const struct resource *resource, const char *given)
{
    const char *names[VERBS_MAX];
    size_t n = 0;
    for (const struct verb *verb = resource->verbs; verb->name && n < VERBS_MAX; verb++)
        names[n++] = verb->name;
    return cli_unknown(resource->name, "verb", given, names, n);
}

int resource_main(const struct resource *resource, int argc, char **argv)
{
    char command[64];
    struct resource_call c = {.remote = {.command = command, .timeout_ms = TIMEOUT_MS}};
    struct cli_option common[N_COMMON + 1] = {0};
    put_common(&c, common);
    if (resource->verbs->name)
        cli_operand_first(argc, argv, common);
    bool help = argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0);
    const struct verb *verb = find_verb(resource, argc > 1 ? argv[1] : NULL);
    if (help) {
        fputs(resource->usage, stdout);
        return EXIT_SUCCESS;
    }
    if (!verb)
        return unknown_verb(resource, argc > 1 ? argv[1] : NULL);
    int skip = verb->name ? 1 : 0;
    snprintf(command, sizeof command, "%s%s%s", resource->name, skip ? " " : "",
             skip ? verb->name : "");
    c.verb = verb;
    c.fields = json_object();
    int code = parse_options(&c, argc - skip, argv + skip, resource->usage);
    if (code < 0)
        code = take_operands(&c, argc - skip, argv + skip) ? run(&c) : EXIT_BAD_USAGE;
    remote_close(&c.remote);
    http_response_close(&c.answer);
    json_decref(c.fields);
    free(c.operand);
    return code;
}
