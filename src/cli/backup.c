/* `holdfast backup`: a copy of a ledger in use, checked before it gets its name.  Main thread. */
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sysexits.h>

#include "base/json_put.h"
#include "cli/common.h"
#include "cli/copies.h"
#include "cli/staged.h"

static const char usage[] =
    "usage: holdfast backup --ledger sqlite:PATH|postgres://... [--force] [--json] FILE\n"
    "Copies a ledger, while servers use it, into an SQLite file that `holdfast restore` reads.  "
    "The\n"
    "copy gets its name when `holdfast verify` has found nothing wrong with it; until then it is\n"
    "FILE.partial.  The URL also from HOLDFAST_LEDGER.\n"
    "  --force                replace FILE if it exists\n"
    "  --json                 print JSON\n"
    "Exit status: 0 FILE is a good backup, 1 the ledger violates an invariant and there is no new\n"
    "FILE, 64 usage, 69 the ledger cannot be read, 73 FILE cannot be written.\n";

struct backup_asked {
    char *url;
    const char *file;
    bool force, json;
};

static void print(const struct backup_asked *a, const struct ledger_size *size,
                  const struct verify_report *report)
{
    struct buf b = {0};
    int64_t holds = report->checks[VERIFY_FOLD_HOLDS].rows;
    int64_t bookings = report->checks[VERIFY_FOLD_BOOKINGS].rows;
    if (a->json) {
        buf_lit(&b, "{\"object\":\"backup\"");
        json_put_text(&b, "file", a->file);
        json_put_time(&b, "as_of", size->as_of);
        json_put_int(&b, "bytes", size->bytes);
        json_put_int(&b, "events", report->events);
        json_put_int(&b, "holds", holds);
        json_put_int(&b, "bookings", bookings);
        json_put_int(&b, "checks", VERIFY_GATE);
        buf_lit(&b, ",\"violations\":0}\n");
    } else {
        char as_of[CLOCK_TEXT_SIZE];
        clock_format_ms(size->as_of, as_of);
        buf_printf(&b,
                   "%s: %" PRId64 " events, %" PRId64 " holds, %" PRId64 " bookings as of %s; "
                   "%" PRId64 " KB, %d checks, no violation\n",
                   a->file, report->events, holds, bookings, as_of, size->bytes >> 10, VERIFY_GATE);
    }
    (void)!cli_print(&b);
}

static int make_copy(const struct backup_asked *a, struct staged *file)
{
    struct ledger_size size;
    struct verify_report report;
    struct hf_err err = {0};
    if (ledger_size_read(a->url, &clock_system, &size, &err) != HF_OK)
        return copies_fail("backup", &err);
    if (size.version == 0) {
        cli_say("backup", "there is no ledger in this database");
        return EX_UNAVAILABLE;
    }
    if (!staged_has_room(file, size.bytes))
        return EX_CANTCREAT;
    if (ledger_backup(a->url, file->work, &clock_system, &err) != HF_OK)
        return copies_fail("backup", &err);
    int code = copies_verify("backup", file->work, &report);
    if (code == EXIT_SUCCESS && copies_size("backup", file->work, &size) != EXIT_SUCCESS)
        code = EX_UNAVAILABLE;
    if (code == EXIT_FAILURE)
        cli_say("backup", "the copy is not kept; `holdfast verify` says more about the ledger");
    if (code != EXIT_SUCCESS)
        return code;
    staged_tidy(file);
    if (!staged_commit(file))
        return EX_CANTCREAT;
    print(a, &size, &report);
    return EXIT_SUCCESS;
}

static int backup(const struct backup_asked *a)
{
    struct stat st;
    struct staged file;
    if (!a->force && lstat(a->file, &st) == 0) {
        cli_say("backup", "%.300s exists; --force replaces it", a->file);
        return EX_CANTCREAT;
    }
    if (copies_is_ledger(a->url, a->file)) {
        cli_say("backup", "%.300s is the ledger itself", a->file);
        return EX_USAGE;
    }
    int code = staged_begin(&file, "backup", a->file) ? make_copy(a, &file) : EX_CANTCREAT;
    staged_close(&file);
    return code;
}

int cli_backup(int argc, char **argv)
{
    struct backup_asked a = {0};
    const struct cli_option options[] = {{"ledger", CLI_SECRET, .to = &a.url},
                                         {"force", CLI_TRUE, .to = &a.force},
                                         {"json", CLI_TRUE, .to = &a.json},
                                         {0}};
    int code = cli_options("backup", argc, argv, options, usage);
    copies_default_url(&a.url);
    if (code < 0)
        code = copies_take_file("backup", a.url, argc, argv, &a.file) ? backup(&a) : EX_USAGE;
    free(a.url);
    return code;
}
