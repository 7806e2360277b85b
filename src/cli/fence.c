/* `holdfast fence check`: a guard for scripts whose write target is not a database.  An SQLite file
 * beside the target remembers the largest token; a smaller one is refused with exit code 76.  The
 * time between the check and the script's write is not protected; only a guard inside the target
 * can do that (docs/fences.md).  Main thread. */
#include <getopt.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_put.h"
#include "cli/common.h"

#define BUSY_MS 5000

static const char usage[] =
    "usage: holdfast fence check --sqlite PATH [--json] [RESOURCE [TOKEN]]\n"
    "Records TOKEN as the newest for RESOURCE in an SQLite database, unless a larger one is\n"
    "recorded.  Creates the database if it is missing.  Under `holdfast run` or `elect`, RESOURCE\n"
    "defaults to the name of the lock and TOKEN to its fence; with --slots, each slot is a\n"
    "resource of its own, RESOURCE#SLOT.\n"
    "Exit status: 0 the token is the largest so far, 76 a larger one was recorded before,\n"
    "64 usage, 69 the database cannot be used.\n";

/* ---- the defaults, as environment.c sets them ---- */

/* Returns the i-th line of a variable and its length; NULL if there is none. */
static const char *line_of(const char *variable, size_t i, size_t *ret_len)
{
    const char *line = getenv(variable);
    for (; line && *line && i > 0; i--) {
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    if (!line || !*line)
        return NULL;
    *ret_len = strcspn(line, "\n");
    return line;
}

static bool is_line(const char *variable, size_t i, const char *text)
{
    size_t len;
    const char *line = line_of(variable, i, &len);
    return line && len == strlen(text) && memcmp(line, text, len) == 0;
}

/* The number of the lock whose name or resource is `resource`; 0 if there is none, or one lock only
 * and so no choice; -1, with a message, if there are several and none is named. */
static int find_lock(const char *resource)
{
    size_t len, i = 0;
    for (; line_of("HOLDFAST_FENCE_RESOURCE", i, &len); i++)
        if (resource && (is_line("HOLDFAST_FENCE_RESOURCE", i, resource) ||
                         is_line("HOLDFAST_LOCK_NAME", i, resource)))
            return (int)i;
    if (i <= 1)
        return 0;
    cli_say("fence", "%s of several locks; RESOURCE is the name of one of them, or TOKEN is given",
            resource ? resource : "the fence");
    return -1;
}

/* Completes RESOURCE and TOKEN for the lock `i`.  What follows the lock's name in its own resource
 * is the slot, which belongs to every resource that is protected by it. */
static bool put_defaults(size_t i, const char *given, struct buf *resource, struct buf *token)
{
    size_t len = 0, name_len = 0, token_len = 0;
    const char *own = line_of("HOLDFAST_FENCE_RESOURCE", i, &len);
    const char *name = line_of("HOLDFAST_LOCK_NAME", i, &name_len);
    const char *fence = line_of("HOLDFAST_FENCES", i, &token_len);
    if (!fence)
        fence = line_of("HOLDFAST_FENCE", 0, &token_len);
    bool has_slot = own && name && len > name_len;
    bool has_own_name = !given || is_line("HOLDFAST_FENCE_RESOURCE", i, given);
    if (!given && !own) {
        cli_say("fence", "no RESOURCE, and HOLDFAST_FENCE_RESOURCE is not set");
        return false;
    }
    if (has_own_name && own)
        buf_put(resource, own, len);
    else
        buf_str(resource, given);
    if (!has_own_name && has_slot)
        buf_put(resource, own + name_len, len - name_len);
    buf_put(token, fence ? fence : "", token_len);
    return true;
}

/* Returns the exit code.  A failure of the database is HF_UNREACHABLE. */
static int check(const char *path, const char *resource, int64_t token, struct hf_fault *fault)
{
    sqlite3 *db = NULL;
    int rc = sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL);
    if (rc != SQLITE_OK || (rc = sqlite3_busy_timeout(db, BUSY_MS)) != SQLITE_OK ||
        (rc = sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL)) != SQLITE_OK)
        goto out;
    fault->result = hf_fence_sqlite(db, resource, token, fault);
    rc = sqlite3_exec(db, fault->result == HF_DONE ? "COMMIT" : "ROLLBACK", NULL, NULL, NULL);
out:
    if (rc != SQLITE_OK) {
        fault->result = HF_UNREACHABLE;
        snprintf(fault->msg, sizeof fault->msg, "%.120s: %.100s", path,
                 db ? sqlite3_errmsg(db) : sqlite3_errstr(rc));
    }
    sqlite3_close(db);
    return cli_exit_code(fault->result);
}

struct fence_call {
    const char *path; /* of the database */
    bool json;
    struct buf resource, token; /* each ends in a NUL */
};

/* Reads "check" and the operands behind it.  Returns false, with a message, if they are wrong. */
static bool read_operands(struct fence_call *c, int n, char **operands)
{
    const char *wrong = n < 1 || strcmp(operands[0], "check") != 0 ? "expected the verb check"
                        : !c->path                                 ? "--sqlite is required"
                        : n > 3 ? "expected at most RESOURCE and TOKEN"
                                : NULL;
    if (wrong) {
        (void)cli_misused("fence", "%s", wrong);
        return false;
    }
    const char *resource = n > 1 ? operands[1] : NULL;
    if (n == 3) {
        buf_str(&c->resource, resource);
        buf_str(&c->token, operands[2]);
    } else {
        int i = find_lock(resource);
        if (i < 0 || !put_defaults((size_t)i, resource, &c->resource, &c->token))
            return false;
    }
    buf_char(&c->resource, '\0');
    buf_char(&c->token, '\0');
    return true;
}

static int check_fence(struct fence_call *c)
{
    int64_t token;
    if (!cli_integer("fence", "TOKEN", c->token.data, 1, INT64_MAX, &token))
        return EXIT_BAD_USAGE;
    struct hf_fault fault = {0};
    int code = check(c->path, c->resource.data, token, &fault);
    if (c->json && (code == EXIT_SUCCESS || code == EXIT_LOST)) {
        struct buf b = {0};
        buf_char(&b, '{');
        json_put_text(&b, "resource", c->resource.data);
        json_put_int(&b, "token", token);
        json_put_bool(&b, "passed", code == EXIT_SUCCESS);
        buf_lit(&b, "}\n");
        return cli_print(&b) ? code : EXIT_NO_BACK_END;
    }
    return code == EXIT_SUCCESS ? code : cli_fail("fence", &fault);
}

int cli_fence(int argc, char **argv)
{
    struct fence_call c = {0};
    const struct cli_option options[] = {
        {"sqlite", CLI_TEXT, .to = &c.path}, {"json", CLI_TRUE, .to = &c.json}, {0}};
    int code = cli_options("fence", argc, argv, options, usage);
    if (code >= 0)
        return code;
    code = EXIT_BAD_USAGE;
    if (read_operands(&c, argc - optind, argv + optind))
        code = check_fence(&c);
    buf_close(&c.resource);
    buf_close(&c.token);
    return code;
}
