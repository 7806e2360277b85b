/* `holdfast cell`: the servers of the lock service.  Main thread.
 *
 * Every server answers GET /v1/cell, so `status` begins with the server that the command line
 * names. How long waiters have waited is known to the master alone; `status` turns to it by the
 * address that it announces, and asks for what it has (?stale=true), so that looking costs no
 * append and works without the journal.  If the master cannot be reached from here, the first
 * server tells what it knows. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/wait.h"
#include "cli/cell_picture.h"
#include "cli/render.h"
#include "cli/resource.h"

#define SERVERS_MAX 64
#define PAGES_MAX 50     /* of 100 names each */
#define LOOK_MS 3000     /* for a server that the command line does not name */
#define WATCH_MS 1000    /* between two pictures */
#define TRANSFER_MS 50   /* between two looks at who is the master */
#define ADDRESS_MAX 1024 /* bytes of an address */

static const char usage[] =
    "usage: holdfast cell status [--watch] [OPTION...]\n"
    "       holdfast cell transfer [OPTION...]\n"
    "status prints the servers of the lock service, which of them is the master, how far each is,\n"
    "the names that most wait for, and the longest waits.  It exits with 69 if there is no "
    "master.\n"
    "transfer makes the master hand over to another server, and waits until one leads.\n"
    "  --watch                status: again every second, until it is interrupted; if the server\n"
    "                         does not answer, another one of the cell is "
    "asked\n" REMOTE_OPTIONS_HELP REMOTE_EXIT_HELP;

/* The addresses that the cell has announced, so that --watch survives the loss of a server. */
struct addresses {
    char *urls[SERVERS_MAX];
    size_t n;
};

static void addresses_close(struct addresses *a)
{
    while (a->n > 0)
        free(a->urls[--a->n]);
}

static bool is_address(const char *url)
{
    if (!url || (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0))
        return false;
    size_t len = 0;
    while (url[len] > ' ' && url[len] < 0x7f)
        len++;
    return !url[len] && len < ADDRESS_MAX;
}

static void addresses_learn(struct addresses *a, const json_t *cell)
{
    const json_t *servers = json_object_get(cell, "servers"), *server;
    size_t i;
    addresses_close(a);
    json_array_foreach((json_t *)servers, i, server)
    {
        const char *url = json_string_value(json_object_get(server, "url"));
        if (is_address(url) && a->n < SERVERS_MAX)
            a->urls[a->n++] = hf_strndup(url, strlen(url));
    }
}

/* ---- asking ---- */

/* Makes a GET and parses the answer; for json_decref.  Returns NULL, and the exit code, if there is
 * none; a message was written unless the remote is quiet. */
static json_t *get(struct resource_call *c, const char *path, int *ret_code)
{
    *ret_code = remote_call(&c->remote, "GET", path, NULL, &c->answer);
    if (*ret_code)
        return NULL;
    json_t *answer = json_loadb(c->answer.body.data, c->answer.body.len, 0, NULL);
    if (!json_is_object(answer)) {
        if (!c->remote.is_quiet)
            cli_say(c->remote.command, "the server's answer is not JSON; is it Holdfast?");
        json_decref(answer);
        *ret_code = EXIT_NO_BACK_END;
        return NULL;
    }
    return answer;
}

/* What follows may fail: it is tried without a message, and not for long.  Returns the timeout for
 * unquieten. */
static int64_t quieten(struct resource_call *c)
{
    int64_t timeout_ms = c->remote.timeout_ms;
    c->remote.is_quiet = true;
    c->remote.timeout_ms = timeout_ms < LOOK_MS ? timeout_ms : LOOK_MS;
    return timeout_ms;
}

static void unquieten(struct resource_call *c, int64_t timeout_ms)
{
    c->remote.is_quiet = false;
    c->remote.timeout_ms = timeout_ms;
}

/* Reads what is awaited, page by page.  Returns false if the server does not tell. */
static bool read_locks(struct resource_call *c, struct cell_picture *p)
{
    struct buf path = {0};
    char *cursor = NULL;
    bool more = true;
    int n = 0, code = EXIT_SUCCESS;
    for (; more && n < PAGES_MAX; n++) {
        path.len = 0;
        buf_lit(&path, "/v1/locks?waiting=true&stale=true&limit=100");
        if (cursor) {
            buf_lit(&path, "&cursor=");
            buf_percent(&path, cursor);
        }
        buf_char(&path, '\0');
        json_t *page = get(c, path.data, &code);
        if (!page)
            break;
        picture_add(p, page);
        const json_t *next = json_object_get(page, "next_cursor");
        more = json_is_true(json_object_get(page, "has_more")) && json_is_string(next);
        free(cursor);
        cursor = more ? hf_strndup(json_string_value(next), json_string_length(next)) : NULL;
        json_decref(page);
    }
    p->is_cut = more && code == EXIT_SUCCESS;
    free(cursor);
    buf_close(&path);
    return code == EXIT_SUCCESS;
}

static bool read_locks_quietly(struct resource_call *c, struct cell_picture *p)
{
    int64_t timeout_ms = quieten(c);
    bool ok = read_locks(c, p);
    unquieten(c, timeout_ms);
    if (!ok) {
        json_decref(p->busiest);
        json_decref(p->waits);
        p->busiest = p->waits = NULL;
        p->is_cut = false;
    }
    return ok;
}

/* Adds what is awaited, from the master if it can be reached. */
static void look_at_locks(struct resource_call *c, struct cell_picture *p)
{
    const char *master = picture_master(p);
    char *first = hf_strndup(c->remote.base, strlen(c->remote.base));
    bool is_done =
        is_address(master) && remote_turn_to(&c->remote, master) && read_locks_quietly(c, p);
    hf_check(remote_turn_to(&c->remote, first));
    const char *role = json_string_value(json_object_get(p->cell, "role"));
    if (!is_done && read_locks_quietly(c, p))
        p->is_standbys = !role || strcmp(role, "master") != 0;
    free(first);
}

/* ---- status ---- */

static int print_picture(struct resource_call *c, const struct cell_picture *p)
{
    struct buf b = {0};
    if (c->json) {
        json_t *object = picture_json(p);
        char *text = json_dumps(object, JSON_COMPACT);
        buf_str(&b, text);
        buf_char(&b, '\n');
        free(text);
        json_decref(object);
    } else {
        picture_render(&b, p);
    }
    return resource_print(c, &b);
}

/* Asks the server that answered last, and if it does not answer, the others that were announced;
 * the first that answers is asked from now on. */
static json_t *ask_any(struct resource_call *c, const struct addresses *a)
{
    int64_t timeout_ms = quieten(c);
    int code;
    json_t *cell = get(c, "/v1/cell", &code);
    for (size_t i = 0; i < a->n && !cell; i++)
        if (remote_turn_to(&c->remote, a->urls[i]))
            cell = get(c, "/v1/cell", &code);
    unquieten(c, timeout_ms);
    return cell;
}

static int show_once(struct resource_call *c)
{
    struct cell_picture p = {0};
    int code;
    p.cell = get(c, "/v1/cell", &code);
    if (!p.cell)
        return code;
    look_at_locks(c, &p);
    code = print_picture(c, &p);
    if (!code && !picture_master(&p)) {
        cli_say(c->remote.command, "the cell has no master");
        code = EXIT_NO_BACK_END;
    }
    picture_close(&p);
    return code;
}

static int show_picture_of(struct resource_call *c, struct addresses *a, json_t *cell,
                           bool is_first)
{
    struct cell_picture p = {.cell = cell};
    addresses_learn(a, cell);
    look_at_locks(c, &p);
    if (!c->json)
        fputs(isatty(STDOUT_FILENO) ? "\033[H\033[2J" : is_first ? "" : "\n", stdout);
    int code = print_picture(c, &p);
    picture_close(&p);
    return code;
}

/* Shows the cell until standard output takes no more, or no server answers for --timeout. */
static int watch(struct resource_call *c)
{
    struct addresses known = {0};
    int64_t answered_us = wait_now_us();
    int code = EXIT_SUCCESS;
    for (bool is_first = true; code == EXIT_SUCCESS; is_first = false) {
        json_t *cell = is_first ? get(c, "/v1/cell", &code) : ask_any(c, &known);
        if (cell) {
            code = show_picture_of(c, &known, cell, is_first);
            answered_us = wait_now_us();
        } else if (wait_now_us() - answered_us > c->remote.timeout_ms * 1000) {
            cli_say(c->remote.command, "no server of the cell answers");
            code = EXIT_NO_BACK_END;
        }
        if (code == EXIT_SUCCESS)
            wait_sleep_us(WATCH_MS * 1000);
    }
    addresses_close(&known);
    return code;
}

static int cell_status(struct resource_call *c)
{
    return json_is_true(json_object_get(c->fields, "watch")) ? watch(c) : show_once(c);
}

/* ---- transfer ---- */

static json_int_t epoch_of(const json_t *cell)
{
    return json_integer_value(json_object_get(cell, "epoch"));
}

static int print_transfer(struct resource_call *c, const json_t *before,
                          const struct cell_picture *after)
{
    struct buf b = {0};
    if (c->json) {
        char *text = json_dumps(after->cell, JSON_COMPACT);
        buf_str(&b, text);
        free(text);
    } else {
        struct cell_picture old = {.cell = (json_t *)before};
        const char *now = picture_master(after), *then = picture_master(&old);
        render_text(&b, now, strlen(now));
        buf_printf(&b, " is the master now (epoch %lld); before, it was ",
                   (long long)epoch_of(after->cell));
        render_text(&b, then, strlen(then));
        buf_char(&b, '.');
    }
    buf_char(&b, '\n');
    return resource_print(c, &b);
}

/* Waits until a server leads at a larger epoch. */
static int await_next(struct resource_call *c, const json_t *before, bool is_sure)
{
    int64_t until_us = wait_now_us() + c->remote.timeout_ms * 1000;
    struct addresses known = {0};
    struct cell_picture p = {0};
    addresses_learn(&known, before);
    bool leads = false;
    while (!leads && wait_now_us() < until_us) {
        picture_close(&p);
        p.cell = ask_any(c, &known);
        leads = p.cell && epoch_of(p.cell) > epoch_of(before) && picture_master(&p);
        if (!leads)
            wait_sleep_us(TRANSFER_MS * 1000);
    }
    int code = is_sure ? EXIT_NO_BACK_END : EXIT_OUTCOME_UNKNOWN;
    if (leads)
        code = print_transfer(c, before, &p);
    else
        cli_say(c->remote.command, is_sure
                                       ? "the master has resigned, but no other server leads yet"
                                       : "the master may or may not have resigned; no other server "
                                         "leads yet");
    picture_close(&p);
    addresses_close(&known);
    return code;
}

/* Asks the master to hand over.  The request goes to the address that it announces, and a
 * redirection is not followed: it says that another server leads already. */
static int ask_for_transfer(struct resource_call *c, const json_t *cell, const char *master)
{
    if (!is_address(master) || !remote_turn_to(&c->remote, master)) {
        cli_say(c->remote.command,
                "the master announces the address %.200s; the access key is not sent there without "
                "TLS",
                master);
        return EXIT_NO_BACK_END;
    }
    c->remote.is_quiet = true;
    int code = remote_call(&c->remote, "POST", "/v1/cell/transfer", NULL, &c->answer);
    c->remote.is_quiet = false;
    int status = c->answer.status;
    if (status / 100 == 2 || status == 307 || code == EXIT_OUTCOME_UNKNOWN)
        return await_next(c, cell, status != 0);
    if (status)
        return remote_problem(&c->remote, &c->answer);
    cli_say(c->remote.command, "the master announces the address %.200s, which cannot be reached",
            master);
    return code;
}

static int cell_transfer(struct resource_call *c)
{
    int code;
    struct cell_picture p = {.cell = get(c, "/v1/cell", &code)};
    if (!p.cell)
        return code;
    if (picture_master(&p)) {
        code = ask_for_transfer(c, p.cell, picture_master(&p));
    } else {
        cli_say(c->remote.command, "the cell has no master");
        code = EXIT_NO_BACK_END;
    }
    picture_close(&p);
    return code;
}

/* ---- main ---- */

static const struct param status_params[] = {{"watch", PARAM_TRUE, "watch", false, false}, {0}};

static const struct verb verbs[] = {
    {.name = "status",
     .method = "GET",
     .path = "/v1/cell",
     .params = status_params,
     .run = cell_status},
    {.name = "transfer", .method = "POST", .path = "/v1/cell/transfer", .run = cell_transfer},
    {0},
};

int cli_cell(int argc, char **argv)
{
    static const struct resource cell = {.name = "cell", .usage = usage, .verbs = verbs};
    return resource_main(&cell, argc, argv);
}
