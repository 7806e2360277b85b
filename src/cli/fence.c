/* `holdfast fence check`: a guard for scripts whose write target is not a database.  An SQLite file
 * beside the target remembers the largest token; a smaller one is refused with exit code 76.  The
 * time between the check and the script's write is not protected; only a guard inside the target
 * can do that (docs/fences.md).  Main thread. */
#include <getopt.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "cli/common.h"
#include "cli/options.h"

#define BUSY_MS 5000
#define OPTION_SQLITE 1024 /* beyond enum ask_option */

static const char usage[] =
    "usage: holdfast fence check --sqlite PATH [--json] RESOURCE [TOKEN]\n"
    "Records TOKEN (default $HOLDFAST_FENCE) as the newest for RESOURCE in an SQLite database,\n"
    "unless a larger one is recorded.  Creates the database if it is missing.\n"
    "Exit status: 0 the token is the largest so far, 76 a larger one was recorded before,\n"
    "64 usage, 69 the database cannot be used.\n";

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

int cli_fence(int argc, char **argv)
{
    static const struct option options[] = {{"sqlite", required_argument, NULL, OPTION_SQLITE},
                                            {"json", no_argument, NULL, ASK_JSON},
                                            {"help", no_argument, NULL, ASK_HELP},
                                            {0}};
    const char *path = NULL;
    bool json = false;
    for (int option; (option = cli_option("fence", argc, argv, ":h", options)) != -1;) {
        if (option == OPTION_SQLITE) {
            path = optarg;
        } else if (option == ASK_JSON) {
            json = true;
        } else if (option == '?') {
            return EXIT_BAD_USAGE;
        } else {
            fputs(usage, stdout);
            return EXIT_SUCCESS;
        }
    }
    int n = argc - optind;
    if (!path || (n != 2 && n != 3) || strcmp(argv[optind], "check") != 0) {
        fputs(usage, stderr);
        return EXIT_BAD_USAGE;
    }
    const char *resource = argv[optind + 1];
    const char *text = n == 3 ? argv[optind + 2] : getenv("HOLDFAST_FENCE");
    int64_t token;
    if (!cli_integer("fence", "TOKEN", text ? text : "", 1, INT64_MAX, &token))
        return EXIT_BAD_USAGE;
    struct hf_fault fault = {0};
    int code = check(path, resource, token, &fault);
    if (json && (code == EXIT_SUCCESS || code == EXIT_LOST)) {
        struct buf b = {0};
        buf_lit(&b, "{\"resource\":");
        buf_json(&b, resource, strlen(resource));
        buf_printf(&b, ",\"token\":%" PRId64 ",\"passed\":%s}\n", token,
                   code == EXIT_SUCCESS ? "true" : "false");
        return cli_print(&b) ? code : EXIT_NO_BACK_END;
    }
    return code == EXIT_SUCCESS ? code : cli_fail("fence", &fault);
}
