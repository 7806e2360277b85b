/* `holdfast restore`: puts a backup in the place of a ledger that no server uses.
 *
 * The rows of the backup are copied into tables of our own, the copy is made ready
 * (ledger/backup.h) and verified, and only then does it take the ledger's place, at once: by a
 * rename, or in one transaction.  If the process is killed, the place holds what it held before,
 * and the next run begins anew.  Main thread. */
#include <errno.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/json_put.h"
#include "cli/common.h"
#include "cli/copies.h"
#include "cli/staged.h"

static const char usage[] =
    "usage: holdfast restore --ledger sqlite:PATH|postgres://... [OPTION...] FILE\n"
    "Makes a ledger of the backup FILE, for which no server may be running.  Afterwards its "
    "events\n"
    "are closed, the holds of the backup have expired, and fences begin above all that may have\n"
    "been given out since the backup.  The URL also from HOLDFAST_LEDGER.\n"
    "  --force                replace a ledger that has events\n"
    "  --fence-margin N       raise fences by N; default: 100 for each millisecond since the "
    "backup\n"
    "  --json                 print JSON\n"
    "Exit status: 0; 1 FILE violates an invariant, or the ledger has events; 64 usage, 66 FILE\n"
    "cannot be read, 69 the ledger cannot be replaced, 73 there is no room for it.\n";

struct restore_asked {
    char *url;
    const char *file;
    bool force, json;
    int64_t fence_margin; /* -1: by the time */
};

/* ---- the report ---- */

static void print(const struct restore_asked *a, const struct restored *r, const char *aside)
{
    struct buf b = {0};
    char as_of[CLOCK_TEXT_SIZE];
    clock_format_ms(r->as_of, as_of);
    if (a->json) {
        buf_lit(&b, "{\"object\":\"restore\"");
        json_put_time(&b, "as_of", r->as_of);
        json_put_int(&b, "events", r->events);
        json_put_int(&b, "events_closed", r->events_closed);
        json_put_int(&b, "holds_ended", r->holds_ended);
        json_put_int(&b, "holds_fenced", r->holds_fenced);
        json_put_int(&b, "entries_waiting", r->waits);
        json_put_int(&b, "fence_margin", r->fence_margin);
        json_put_int(&b, "jobs", r->jobs);
        json_put_int(&b, "payments", r->payments);
        json_put_text(&b, "replaced", aside);
        buf_lit(&b, "}\n");
    } else {
        buf_printf(&b,
                   "restored: %" PRId64 " events as of %s, %d checks, no violation\n"
                   "%" PRId64 " events were closed, %" PRId64 " holds ended, fences raised by "
                   "%" PRId64 "\n",
                   r->events, as_of, VERIFY_GATE, r->events_closed, r->holds_ended,
                   r->fence_margin);
        if (r->waits)
            buf_printf(&b, "%" PRId64 " entries of waiting lists wait on\n", r->waits);
        if (r->jobs || r->payments)
            buf_printf(&b,
                       "%" PRId64 " jobs are owed, %" PRId64 " payments will be compared with the "
                       "provider\n",
                       r->jobs, r->payments);
        if (aside)
            buf_printf(&b, "the ledger that was there is now %s\n", aside);
        buf_printf(&b,
                   "what was held, sold or released after %s is not in it: compare with your "
                   "orders,\nthen open each event with `holdfast event open`\n",
                   as_of);
    }
    (void)!cli_print(&b);
}

/* ---- the place ---- */

/* May the place be taken?  *ret_empty: nothing is lost with it.  A file that is no ledger counts as
 * something. */
static int check_place(const struct restore_asked *a, bool *ret_empty)
{
    struct ledger_size size = {0};
    struct hf_err err = {0};
    const char *path = ledger_file(a->url);
    if (path && access(path, F_OK) != 0 && errno == ENOENT)
        return EXIT_SUCCESS;
    enum hf_status status = ledger_size_read(a->url, &clock_system, &size, &err);
    if (status != HF_OK && !path) /* a database that does not answer now will not do so later */
        return copies_fail("restore", &err);
    *ret_empty = status == HF_OK && size.version > 0 && size.events == 0;
    if (a->force || *ret_empty || (status == HF_OK && !path && size.version == 0))
        return EXIT_SUCCESS;
    if (status != HF_OK)
        cli_say("restore", "%s; --force replaces it", err.msg);
    else
        cli_say("restore", "the ledger has %lld events; --force replaces it",
                (long long)size.events);
    return EXIT_FAILURE;
}

/* The name under which the file that is replaced is kept: PATH.replaced-20261115T193000Z, or with a
 * number behind it if there is one of that second. */
static char *aside_name(const char *path)
{
    struct buf b = {0};
    char now[CLOCK_TEXT_SIZE];
    struct stat st;
    clock_format_ms(clock_wall_us(&clock_system) / 1000, now);
    buf_printf(&b, "%s.replaced-", path);
    for (size_t i = 0; i < 19; i++)
        if (now[i] != '-' && now[i] != ':')
            buf_char(&b, now[i]);
    buf_char(&b, 'Z');
    size_t len = b.len;
    buf_char(&b, '\0');
    for (int n = 2; lstat(b.data, &st) == 0; n++) {
        b.len = len;
        buf_printf(&b, ".%d", n);
        buf_char(&b, '\0');
    }
    return b.data;
}

/* The server's user has to be able to write to a file that root restores: it gets the owner of its
 * folder. */
static bool give_to_owner(const struct staged *file)
{
    struct stat folder;
    char *copy = hf_strndup(file->path, strlen(file->path));
    bool is_done = geteuid() != 0 || (stat(dirname(copy), &folder) == 0 &&
                                      fchown(file->fd, folder.st_uid, folder.st_gid) == 0);
    if (!is_done)
        cli_say("restore", "cannot change the owner of %.300s: %s", file->work, strerror(errno));
    free(copy);
    return is_done;
}

/* A work file for a ledger that is no file: in TMPDIR or /var/tmp. */
static char *work_name(void)
{
    struct buf b = {0};
    const char *folder = getenv("TMPDIR");
    buf_printf(&b, "%s/holdfast-restore-%ld", folder && *folder ? folder : "/var/tmp",
               (long)getpid());
    buf_char(&b, '\0');
    return b.data;
}

/* ---- restoring ---- */

static int put_in_place(const struct restore_asked *a, bool is_empty, struct staged *file,
                        const struct restored *report)
{
    struct hf_err err = {0};
    struct stat st;
    const char *path = ledger_file(a->url);
    char *aside = path ? aside_name(path) : NULL;
    int code = EXIT_SUCCESS;
    if (path && (!give_to_owner(file) || !staged_sync(file)))
        code = EX_CANTCREAT;
    else if (ledger_replace(a->url, file->work, aside, &clock_system, &err) != HF_OK)
        code = copies_fail("restore", &err);
    if (code == EXIT_SUCCESS && aside && is_empty)
        (void)unlink(aside);
    if (code == EXIT_SUCCESS)
        print(a, report, aside && lstat(aside, &st) == 0 ? aside : NULL);
    free(aside);
    return code;
}

static void say_left(const char *object)
{
    cli_say("restore", "the backup has something that is not Holdfast's, and that stays behind: %s",
            object);
}

static int restore_into(const struct restore_asked *a, bool is_empty, struct staged *file)
{
    struct ledger_size size;
    struct restored report;
    struct verify_report checked;
    struct hf_err err = {0};
    if (ledger_inspect(a->file, &clock_system, say_left, &err) != HF_OK) {
        cli_say("restore", "%.300s is not a backup of a ledger: %s", a->file, err.msg);
        return EX_NOINPUT;
    }
    if (copies_size("restore", a->file, &size) != EXIT_SUCCESS)
        return EX_NOINPUT;
    if (!staged_has_room(file, size.bytes))
        return EX_CANTCREAT;
    if (ledger_unpack(a->file, file->work, &clock_system, &err) != HF_OK ||
        ledger_make_ready(file->work, &clock_system, a->fence_margin, &report, &err) != HF_OK)
        return copies_fail("restore", &err);
    int code = copies_verify("restore", file->work, &checked);
    if (code != EXIT_SUCCESS)
        return code;
    staged_tidy(file);
    return put_in_place(a, is_empty, file, &report);
}

static int restore(const struct restore_asked *a)
{
    struct staged file = {.fd = -1};
    const char *path = ledger_file(a->url);
    if (access(a->file, R_OK) != 0) {
        cli_say("restore", "cannot read %.300s: %s", a->file, strerror(errno));
        return EX_NOINPUT;
    }
    if (copies_is_ledger(a->url, a->file)) {
        cli_say("restore", "%.300s is the ledger itself", a->file);
        return EX_USAGE;
    }
    bool is_empty = false;
    int code = check_place(a, &is_empty);
    if (code != EXIT_SUCCESS)
        return code;
    char *work = path ? NULL : work_name();
    code = staged_begin(&file, "restore", path ? path : work) ? restore_into(a, is_empty, &file)
                                                              : EX_CANTCREAT;
    staged_close(&file);
    free(work);
    return code;
}

int cli_restore(int argc, char **argv)
{
    struct restore_asked a = {.fence_margin = -1};
    const struct cli_option options[] = {
        {"ledger", CLI_SECRET, .to = &a.url},
        {"force", CLI_TRUE, .to = &a.force},
        {"json", CLI_TRUE, .to = &a.json},
        {"fence-margin", CLI_INT64, .to = &a.fence_margin, .most = RESTORE_FENCES_MAX},
        {0}};
    int code = cli_options("restore", argc, argv, options, usage);
    copies_default_url(&a.url);
    if (code < 0)
        code = copies_take_file("restore", a.url, argc, argv, &a.file) ? restore(&a) : EX_USAGE;
    free(a.url);
    return code;
}
