/* `holdfast lab locks`: the options, a line of progress, and the table.  lab/locks.h measures.
 * `holdfast lab lock-client` is the other side of it: one client, which only the lab starts.  Main
 * thread. */
#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/common.h"
#include "cli/lab.h"
#include "lab/lock_client.h"
#include "lab/locks.h"

#define COMMAND "lab locks"
#define CELL_SIZE 64
#define NOTES_MAX 26
#define ROWS_MAX (8 + LOCKS_CROWDS + LOCKS_FAULTS)
#define TITLE_WIDTH 33

static const char usage[] =
    "usage: holdfast lab locks [--servers NAME,...|all] [--seconds N] [--ttl DURATION]\n"
    "         [--waiters N,N,N] [--locks N] [--quick] [--json]\n"
    "Measures every lock driver on throwaway servers: how fast a lock is taken and handed over, "
    "and\n"
    "what becomes of locks when clients, servers, clocks and connections fail.\n"
    "  --servers   memory, sqlite, postgres, redis, redlock, etcd, zookeeper, holdfast;\n"
    "              default all\n"
    "  --seconds   how long each measurement of speed takes; default 2\n"
    "  --ttl       the TTL of locks that are broken, 500ms to 5s; default 2s\n"
    "  --waiters   how many clients want one lock at once, three numbers; default 2,32,100\n"
    "  --locks     how many locks suffer each fault at once; default 5\n"
    "  --quick     for a first look: --seconds 0.3 --ttl 800ms --waiters 2,4,8 --locks 3\n"
    "  --json      print JSON, for holdfast lab report --locks\n"
    "All of it takes about seven minutes.  A driver whose server is not installed is left out,\n"
    "and the table says so.\n"
    "Exit status: 0 two clients held a lock at once only where the driver says that this can\n"
    "happen, 1 otherwise, 64 usage, 69 the lab cannot start, 128+n signal n.\n";

/* ---- progress ---- */

static void show_progress(void *ctx, const char *driver, const char *what)
{
    (void)ctx;
    fprintf(stderr, "\r\033[K%s: %s ...", driver, what);
    fflush(stderr);
}

/* ---- cells ---- */

struct locks_sheet {
    const struct locks_result *result;
    char title[ROWS_MAX][TITLE_WIDTH + 1];
    char cell[ROWS_MAX][COORDINATOR_KINDS][CELL_SIZE];
    bool is_bad[ROWS_MAX][COORDINATOR_KINDS];
    size_t n_rows;
    char notes[NOTES_MAX][LOCKS_WHY_SIZE]; /* reasons, which cells refer to by a letter */
    size_t n_notes;
};

/* Writes "(a)" for a reason. */
static void put_why(struct locks_sheet *t, char cell[CELL_SIZE], const char *why)
{
    size_t i = 0;
    while (i < t->n_notes && strcmp(t->notes[i], why) != 0)
        i++;
    if (i == NOTES_MAX) {
        snprintf(cell, CELL_SIZE, "-");
        return;
    }
    if (i == t->n_notes)
        snprintf(t->notes[t->n_notes++], LOCKS_WHY_SIZE, "%s", why);
    snprintf(cell, CELL_SIZE, "(%c)", (char)('a' + i));
}

/* Two or three significant digits of milliseconds. */
static int put_ms(char *out, size_t size, double us)
{
    double ms = us / 1000;
    return snprintf(out, size, "%.*f", ms < 0.1 ? 3 : ms < 1 ? 2 : ms < 100 ? 1 : 0, ms);
}

static void put_ms_pair(char cell[CELL_SIZE], double p50_us, double p99_us)
{
    int len = put_ms(cell, CELL_SIZE, p50_us);
    len += snprintf(cell + len, CELL_SIZE - (size_t)len, " / ");
    put_ms(cell + len, CELL_SIZE - (size_t)len, p99_us);
}

static void put_fault(struct locks_sheet *t, size_t row, size_t column, const struct locks_fault *f)
{
    char *cell = t->cell[row][column];
    if (f->why[0]) {
        put_why(t, cell, f->why);
        return;
    }
    t->is_bad[row][column] = f->overlapped || f->fences_fell || f->stuck;
    if (f->overlapped)
        snprintf(cell, CELL_SIZE, "2 HOLDERS %d/%d%s", f->overlapped, f->locks,
                 f->fences_fell ? ", FENCE" : "");
    else if (f->stuck)
        snprintf(cell, CELL_SIZE, "STUCK %d/%d", f->stuck, f->locks);
    else if (f->fences_fell)
        snprintf(cell, CELL_SIZE, "FENCE FELL, %.1f s", f->gap_max_ms / 1000);
    else if (f->kept == f->locks)
        snprintf(cell, CELL_SIZE, "kept %d/%d", f->kept, f->locks);
    else
        snprintf(cell, CELL_SIZE, "passed %d/%d, %.1f s", f->locks - f->kept, f->locks,
                 f->gap_max_ms / 1000);
}

/* ---- rows; each function fills in one cell ---- */

typedef void put_cell(struct locks_sheet *t, size_t row, size_t column, const struct locks_row *r,
                      int which);

static void put_rate(struct locks_sheet *t, size_t row, size_t column, const struct locks_row *r,
                     int i)
{
    (void)i;
    if (r->speed.why[0])
        put_why(t, t->cell[row][column], r->speed.why);
    else
        snprintf(t->cell[row][column], CELL_SIZE, "%.0f", r->speed.per_second);
}

static void put_latency(struct locks_sheet *t, size_t row, size_t column, const struct locks_row *r,
                        int i)
{
    (void)i;
    if (r->speed.why[0])
        put_why(t, t->cell[row][column], r->speed.why);
    else
        put_ms_pair(t->cell[row][column], r->speed.p50_us, r->speed.p99_us);
}

static void put_crowd(struct locks_sheet *t, size_t row, size_t column, const struct locks_row *r,
                      int i)
{
    const struct locks_crowd *c = &r->crowds[i];
    if (c->why[0])
        put_why(t, t->cell[row][column], c->why);
    else
        put_ms_pair(t->cell[row][column], c->p50_us, c->p99_us);
    t->is_bad[row][column] = c->overlaps || c->fences_fell;
}

static void put_messages(struct locks_sheet *t, size_t row, size_t column,
                         const struct locks_row *r, int i)
{
    (void)i;
    if (r->traffic.why[0])
        put_why(t, t->cell[row][column], r->traffic.why);
    else
        snprintf(t->cell[row][column], CELL_SIZE, "%.1f", r->traffic.messages);
}

static void put_order(struct locks_sheet *t, size_t row, size_t column, const struct locks_row *r,
                      int i)
{
    const struct locks_crowd *c = &r->crowds[i];
    bool kept = c->pairs == c->in_order;
    if (c->why[0])
        put_why(t, t->cell[row][column], c->why);
    else
        snprintf(t->cell[row][column], CELL_SIZE, "%s %llu/%llu", kept ? "kept" : "not kept",
                 (unsigned long long)c->in_order, (unsigned long long)c->pairs);
}

static void put_free(struct locks_sheet *t, size_t row, size_t column, const struct locks_row *r,
                     int i)
{
    const struct locks_fault *f = &r->faults[LOCKS_CLIENT_KILLED];
    (void)i;
    if (f->why[0])
        put_why(t, t->cell[row][column], f->why);
    else
        snprintf(t->cell[row][column], CELL_SIZE, "%.2f / %.2f", f->gap_p50_ms / 1000,
                 f->gap_max_ms / 1000);
}

static void put_outage(struct locks_sheet *t, size_t row, size_t column, const struct locks_row *r,
                       int i)
{
    const struct locks_fault *f = &r->faults[i];
    if (f->why[0])
        put_why(t, t->cell[row][column], f->why);
    else
        snprintf(t->cell[row][column], CELL_SIZE, "%.1f", f->outage_ms / 1000);
}

static void put_broken(struct locks_sheet *t, size_t row, size_t column, const struct locks_row *r,
                       int i)
{
    put_fault(t, row, column, &r->faults[i]);
}

__attribute__((format(printf, 4, 5))) static void add_row(struct locks_sheet *t, put_cell *put,
                                                          int which, const char *fmt, ...)
{
    va_list args;
    size_t row = t->n_rows++;
    hf_check(row < ROWS_MAX);
    va_start(args, fmt);
    vsnprintf(t->title[row], sizeof t->title[row], fmt, args);
    va_end(args);
    for (size_t i = 0; i < t->result->n; i++) {
        const struct locks_row *r = &t->result->rows[i];
        if (r->why[0])
            put_why(t, t->cell[row][i], r->why);
        else
            put(t, row, i, r, which);
    }
}

static void fill(struct locks_sheet *t)
{
    const struct locks_settings *s = &t->result->settings;
    add_row(t, put_rate, 0, "acquire+release a second");
    add_row(t, put_latency, 0, "  p50 / p99, ms");
    for (int i = 0; i < LOCKS_CROWDS; i++)
        add_row(t, put_crowd, i, "hand-over, %d clients, ms", s->waiters[i]);
    add_row(t, put_messages, 0, "messages a hand-over, %d clients", s->waiters[1]);
    add_row(t, put_order, 1, "order of arrival, %d clients", s->waiters[1]);
    add_row(t, put_free, 0, "killed holder's lock free, s");
    for (int i = 0; i < LOCKS_FAULTS; i++) {
        add_row(t, put_broken, i, "%s", locks_fault_title((enum locks_fault_kind)i));
        if (i == LOCKS_SERVER_KILLED)
            add_row(t, put_outage, i, "  it was down for, s");
    }
}

/* ---- the table ---- */

static size_t width_of(const struct locks_sheet *t, size_t column)
{
    size_t width = strlen(t->result->rows[column].driver);
    for (size_t i = 0; i < t->n_rows; i++) {
        size_t len = strlen(t->cell[i][column]);
        width = len > width ? len : width;
    }
    return width + 2;
}

/* Writes the columns from `first` on that fit into the width, and returns the next. */
static size_t put_columns(struct buf *b, const struct locks_sheet *t, size_t first, size_t width,
                          bool colours)
{
    size_t end = first, used = TITLE_WIDTH;
    while (end < t->result->n && (end == first || used + width_of(t, end) <= width))
        used += width_of(t, end++);
    buf_printf(b, "\n%-*s", TITLE_WIDTH, "");
    for (size_t i = first; i < end; i++)
        buf_printf(b, "%*s", (int)width_of(t, i), t->result->rows[i].driver);
    buf_char(b, '\n');
    for (size_t row = 0; row < t->n_rows; row++) {
        buf_printf(b, "%-*s", TITLE_WIDTH, t->title[row]);
        for (size_t i = first; i < end; i++) {
            bool red = colours && t->is_bad[row][i];
            buf_printf(b, "%s%*s%s", red ? "\033[1;31m" : "", (int)width_of(t, i), t->cell[row][i],
                       red ? "\033[0m" : "");
        }
        buf_char(b, '\n');
    }
    return end;
}

static size_t terminal_width(void)
{
    struct winsize size;
    bool known =
        isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col;
    return known ? size.ws_col : SIZE_MAX;
}

static void put_table(struct buf *b, const struct locks_result *r)
{
    struct locks_sheet *t = hf_alloc(sizeof *t);
    const char *no_color = getenv("NO_COLOR");
    bool colours = isatty(STDOUT_FILENO) && !(no_color && *no_color);
    t->result = r;
    fill(t);
    buf_printf(b, "Holdfast %s; %d CPUs, %s; TTL %lld ms, %d locks a fault", r->holdfast,
               r->machine.cpus, r->machine.model, (long long)r->settings.ttl_ms, r->settings.locks);
    for (size_t i = 0; i < r->n; i++)
        if (r->rows[i].version[0])
            buf_printf(b, "; %s %s", r->rows[i].driver, r->rows[i].version);
    buf_char(b, '\n');
    for (size_t at = 0; at < r->n;)
        at = put_columns(b, t, at, terminal_width(), colours);
    buf_lit(b, "\nTimes are medians / 99th percentiles; of a killed holder's lock, median / "
               "longest.\nkept: the holder had its lock through the fault.  passed: another got "
               "it, after at most\nthis long without a holder.  2 HOLDERS: two relied on it at "
               "once.\n");
    for (size_t i = 0; i < t->n_notes; i++)
        buf_printf(b, "(%c) %s\n", (char)('a' + i), t->notes[i]);
    buf_printf(b, "\n%s\n",
               r->ok ? "ok: two clients held a lock at once only where its driver says that this "
                       "can happen"
                     : "not ok: two clients held a lock at once, and its driver does not say that "
                       "this can happen");
    free(t);
}

/* ---- options ---- */

struct locks_options {
    struct locks_settings locks;
    bool json, help;
};

static bool take_waiters(void *to, char *text)
{
    int *ret = to;
    char *copy = hf_strndup(text, strlen(text)), *rest = copy;
    int n = 0;
    bool good = true;
    for (char *part; good && (part = strsep(&rest, ","));) {
        int64_t value = 0;
        good = n < LOCKS_CROWDS &&
               cli_integer(COMMAND, "--waiters", part, 2, LOCKS_WAITERS_MAX, &value);
        if (good)
            ret[n++] = (int)value;
    }
    free(copy);
    if (good && n == LOCKS_CROWDS)
        return true;
    cli_say(COMMAND, "--waiters takes three numbers from 2 to %d", LOCKS_WAITERS_MAX);
    return false;
}

static bool take_seconds(void *to, char *text)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || !(value >= 0.1 && value <= 60)) {
        cli_say(COMMAND, "--seconds is a number from 0.1 to 60, not %s", text);
        return false;
    }
    *(double *)to = value;
    return true;
}

static bool take_ttl(void *to, char *text)
{
    int64_t *ret = to;
    if (!cli_duration(COMMAND, "--ttl", text, LOCKS_TTL_MIN_MS, ret))
        return false;
    if (*ret <= LOCKS_TTL_MAX_MS)
        return true;
    cli_say(COMMAND, "--ttl is at most 5s");
    return false;
}

static bool take_quick(void *to, char *text)
{
    struct locks_settings *locks = to;
    const char *servers = locks->servers;
    (void)text;
    *locks = (struct locks_settings){LOCKS_SETTINGS_QUICK};
    locks->servers = servers;
    return true;
}

static bool parse(int argc, char **argv, struct locks_options *o)
{
    struct locks_settings *locks = &o->locks;
    const struct cli_option options[] = {
        {"servers", CLI_TEXT, .to = &locks->servers},
        {"seconds", CLI_OWN, .to = &locks->seconds, .take = take_seconds},
        {"ttl", CLI_OWN, .to = &locks->ttl_ms, .take = take_ttl},
        {"waiters", CLI_OWN, .to = locks->waiters, .take = take_waiters},
        {"locks", CLI_INT, .to = &locks->locks, .least = 1, .most = LOCKS_AT_ONCE_MAX},
        {"quick", CLI_OWN_TRUE, .to = locks, .take = take_quick},
        {"json", CLI_TRUE, .to = &o->json},
        {0}};
    *o = (struct locks_options){.locks = {LOCKS_SETTINGS_USUAL}};
    int code;
    while ((code = cli_options(COMMAND, argc, argv, options, NULL)) == EXIT_SUCCESS)
        o->help = true;
    if (code < 0 && optind != argc)
        cli_say(COMMAND, "unexpected argument %s; see holdfast lab locks --help", argv[optind]);
    return code < 0 && optind == argc;
}

static int run(struct locks_options *o)
{
    struct locks_result *result = hf_alloc(sizeof *result);
    struct hf_err err = {0};
    struct buf out = {0};
    bool shows = isatty(STDERR_FILENO);
    if (shows)
        o->locks.progress = show_progress;
    o->locks.stop = lab_catch_signals();
    enum hf_status status = locks_run(&o->locks, result, &err);
    if (shows)
        fputs("\r\033[K", stderr);
    int code = EXIT_SUCCESS;
    if (status != HF_OK) {
        cli_say(COMMAND, "%s", err.msg);
        code = status == HF_DRAINING          ? EXIT_SIGNAL + *o->locks.stop
               : status == HF_INVALID_REQUEST ? EXIT_BAD_USAGE
                                              : EXIT_NO_BACK_END;
    } else {
        if (o->json) {
            locks_json(result, &out);
            buf_char(&out, '\n');
        } else {
            put_table(&out, result);
        }
        code = cli_print(&out) && result->ok ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    free(result);
    return code;
}

int cli_lab_locks(int argc, char **argv)
{
    struct locks_options o;
    if (!parse(argc, argv, &o))
        return EXIT_BAD_USAGE;
    if (!o.help)
        return run(&o);
    fputs(usage, stdout);
    return EXIT_SUCCESS;
}

int cli_lab_lock_client(int argc, char **argv)
{
    int64_t first = 0, n = 0;
    if (argc != 4 || !cli_integer("lab lock-client", "FIRST", argv[2], 0, 100000, &first) ||
        !cli_integer("lab lock-client", "N", argv[3], 1, 100000, &n)) {
        cli_say("lab lock-client", "only holdfast lab locks starts it");
        return EXIT_BAD_USAGE;
    }
    return lock_client_main(argv[1], (size_t)first, (size_t)n);
}
