/* `holdfast lab report`: runs `lab race` and `lab anomalies`, each as a process of its own, keeps
 * their JSON and puts both into one page (lab/report.h), with that of `lab locks` if it is given.
 * Main thread. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

#include "cli/common.h"
#include "cli/lab.h"
#include "lab/report.h"

#define COMMAND "lab report"
#define PATH_SIZE 4096
#define JSON_MAX (64 << 20) /* bytes */

static const char usage[] =
    "usage: holdfast lab report --out DIR [--users N,...] [--race FILE] [--anomalies FILE]\n"
    "         [--locks FILE]\n"
    "Writes DIR/index.html, one page that needs no other file, and the data that it shows:\n"
    "DIR/race.json and DIR/anomalies.json.  DIR is created if it is missing.\n"
    "  --out DIR         where to write\n"
    "  --users N,...     numbers of users for the race; see holdfast lab race\n"
    "  --race FILE       use the output of holdfast lab race --json instead of running it\n"
    "  --anomalies FILE  use the output of holdfast lab anomalies --json instead of running it\n"
    "  --locks FILE      also show the output of holdfast lab locks --json, which is not run\n"
    "Exit status: 0 all ended as it should, 1 otherwise (the page says what), 64 usage, 69 a "
    "server\n"
    "is unavailable, 65 a FILE has the wrong contents, 66 a FILE cannot be read, 73 a file cannot\n"
    "be written.\n";

/* ---- files ---- */

static bool write_file(const char *path, const char *text, size_t len)
{
    FILE *f = fopen(path, "we");
    bool good = f && fwrite(text, 1, len, f) == len;
    good = (f && fclose(f) == 0) && good;
    if (!good)
        cli_say(COMMAND, "%s: %s", path, strerror(errno));
    return good;
}

static bool read_all(FILE *f, const char *name, struct buf *ret)
{
    rewind(f);
    for (size_t n = 1; n > 0 && ret->len <= JSON_MAX; ret->len += n) {
        buf_reserve(ret, 65536);
        n = fread(ret->data + ret->len, 1, 65536, f);
    }
    bool good = !ferror(f) && ret->len <= JSON_MAX;
    if (!good)
        cli_say(COMMAND, "%s: %s", name, ferror(f) ? strerror(errno) : "too large");
    return good;
}

/* ---- the commands ---- */

_Noreturn static void exec_command(const char *what, const char *users, int out)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (dup2(out, STDOUT_FILENO) >= 0)
        execl("/proc/self/exe", "holdfast", "lab", what, "--json", users ? "--users" : NULL, users,
              (char *)NULL);
    _exit(EXIT_NOT_RUNNABLE);
}

/* Runs `holdfast lab WHAT --json` into a file and returns its exit status.  ^C reaches that
 * process, too, which then stops its servers in order; this one waits for it. */
static int run(const char *what, const char *users, FILE *out)
{
    int status;
    pid_t pid = fork();
    if (pid == 0)
        exec_command(what, users, fileno(out));
    void (*before)(int) = signal(SIGINT, SIG_IGN);
    while (pid > 0 && waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            pid = -1;
    (void)signal(SIGINT, before);
    if (pid < 0)
        return EXIT_NOT_RUNNABLE;
    return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_SIGNAL + WTERMSIG(status);
}

/* Returns whether the text is JSON of this `object`; *ret_ok is its member "ok". */
static bool check_json(const char *path, const struct buf *text, const char *object, bool *ret_ok)
{
    json_error_t error;
    json_t *root = json_loadb(text->data, text->len, 0, &error);
    const char *is = json_string_value(json_object_get(root, "object"));
    bool good = is && strcmp(is, object) == 0;
    if (good)
        *ret_ok = json_is_true(json_object_get(root, "ok"));
    else
        cli_say(COMMAND, "%s is not a %s%s%s", path, object, root ? "" : ": ",
                root ? "" : error.text);
    json_decref(root);
    return good;
}

struct part {
    const char *what;   /* "race", "anomalies" or "locks" */
    const char *object; /* the member "object" of its JSON */
    const char *given;  /* the file that has it; NULL to run the command */
    const char *users;  /* --users; may be NULL */
    struct buf json;
    bool ok;
};

/* Reads the JSON from the file that was given, or runs the command into `f`.  `f` is then a file
 * without a name, so that an interrupted run leaves nothing behind. */
static int read_part(struct part *part, FILE *f)
{
    const char *name = part->given ? part->given : part->what;
    if (!f) {
        cli_say(COMMAND, "%s: %s", name, strerror(errno));
        return part->given ? EX_NOINPUT : EX_CANTCREAT;
    }
    int code = part->given ? EXIT_SUCCESS : run(part->what, part->users, f);
    if (code != EXIT_SUCCESS && code != EXIT_FAILURE)
        return code;
    if (!read_all(f, name, &part->json))
        return EX_NOINPUT;
    return check_json(name, &part->json, part->object, &part->ok) ? EXIT_SUCCESS : EX_DATAERR;
}

/* Reads a part and writes it to DIR/WHAT.json. */
static int get_part(struct part *part, const char *dir)
{
    char path[PATH_SIZE];
    FILE *f = part->given ? fopen(part->given, "re") : tmpfile();
    int code = read_part(part, f);
    if (f)
        (void)fclose(f);
    if (code != EXIT_SUCCESS)
        return code;
    snprintf(path, sizeof path, "%s/%s.json", dir, part->what);
    if (!write_file(path, part->json.data, part->json.len))
        return EX_CANTCREAT;
    buf_char(&part->json, '\0');
    return EXIT_SUCCESS;
}

enum { RACE, ANOMALIES, LOCKS, PARTS };

static int make_report(const char *dir, struct part parts[PARTS])
{
    char path[PATH_SIZE];
    struct buf page = {0};
    bool made = mkdir(dir, 0755) == 0;
    if (!made && errno != EEXIST) {
        cli_say(COMMAND, "%s: %s", dir, strerror(errno));
        return EX_CANTCREAT;
    }
    for (int i = 0; i < PARTS; i++) {
        if (i == LOCKS && !parts[i].given)
            continue;
        int code = get_part(&parts[i], dir);
        if (code != EXIT_SUCCESS) {
            if (made)
                (void)rmdir(dir); /* fails if something is in it */
            return code;
        }
    }
    report_page(parts[RACE].json.data, parts[ANOMALIES].json.data, parts[LOCKS].json.data, &page);
    snprintf(path, sizeof path, "%s/index.html", dir);
    bool written = write_file(path, page.data, page.len);
    buf_close(&page);
    if (!written)
        return EX_CANTCREAT;
    printf("%s\n", path);
    bool ok = parts[RACE].ok && parts[ANOMALIES].ok && (parts[LOCKS].ok || !parts[LOCKS].given);
    if (!ok)
        cli_say(COMMAND, "a strategy, an anomaly or a lock did not end as it should; see the page");
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

int cli_lab_report(int argc, char **argv)
{
    const char *dir = NULL;
    struct part parts[PARTS] = {[RACE] = {.what = "race", .object = "lab.race"},
                                [ANOMALIES] = {.what = "anomalies", .object = "lab.anomalies"},
                                [LOCKS] = {.what = "locks", .object = "lab.locks"}};
    const struct cli_option options[] = {{"out", CLI_TEXT, .to = &dir},
                                         {"users", CLI_TEXT, .to = &parts[RACE].users},
                                         {"race", CLI_TEXT, .to = &parts[RACE].given},
                                         {"anomalies", CLI_TEXT, .to = &parts[ANOMALIES].given},
                                         {"locks", CLI_TEXT, .to = &parts[LOCKS].given},
                                         {0}};
    int code = cli_options(COMMAND, argc, argv, options, usage);
    if (code >= 0)
        return code;
    if (optind != argc)
        return cli_misused("lab report", "unexpected operand %.60s", argv[optind]);
    if (!dir || strlen(dir) > PATH_SIZE - 32)
        return cli_misused("lab report", dir ? "--out: too long a path" : "--out is required");
    code = make_report(dir, parts);
    for (int i = 0; i < PARTS; i++)
        buf_close(&parts[i].json);
    return code;
}
