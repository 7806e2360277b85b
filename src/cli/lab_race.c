/* `holdfast lab race`: the options, a line of progress, and the table.  lab/race.h runs the race.
 * Main thread. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/common.h"
#include "cli/lab.h"
#include "lab/race.h"

#define COMMAND "lab race"
#define USERS_MAX 32

static const char usage[] =
    "usage: holdfast lab race [--strategy NAME,...|all] [--users N,...] [--seats N]\n"
    "         [--ledger URL [--gate URL]] [--retries N] [--tries N] [--seed N] [--json]\n"
    "Sells the same seats to all users at once, by each strategy in turn, on the same servers.\n"
    "Shows who sold a seat twice, how long winners and losers waited, and what a request cost.\n"
    "  --strategy  naive, pessimistic, optimistic, unique, redis-lease, two-layer, skip-locked,\n"
    "              counter, counter-async, inventory, queue, holdfast; default all\n"
    "  --users     how many users, one race for each number; default 5,20,50,500,10000\n"
    "  --seats     how many seats; each user wants one of them; default 1\n"
    "  --ledger    postgres://... (the lab creates two schemas and drops them at the end) or\n"
    "              sqlite:PATH (a new file, removed at the end).  Default: a throwaway PostgreSQL\n"
    "              and Redis of those that are installed; without PostgreSQL, SQLite\n"
    "  --gate      an empty Redis, redis://HOST:PORT or unix:PATH\n"
    "  --retries   how often optimistic and redis-lease try again when they find the seat changed\n"
    "              or locked; 0 is fail-fast; default 3\n"
    "  --tries     how often naive may run until it sells a seat twice; default 20\n"
    "  --seed      repeats who wants which seat and how long pauses are, but not the scheduling\n"
    "  --json      print JSON, with 101 quantiles of each latency\n"
    "Exit status: 0 every promise was kept and naive was caught, 1 otherwise, 64 usage, 69 a\n"
    "server is unavailable, 128+n signal n.\n";

/* ---- progress ---- */

static void show_progress(void *ctx, const struct race_progress *p)
{
    (void)ctx;
    char tries[32] = "";
    if (p->tries > 1)
        snprintf(tries, sizeof tries, ", try %d of %d", p->try_number, p->tries);
    if (p->strategy)
        fprintf(stderr, "\r\033[K[%zu/%zu] %s: %d of %d users answered%s", p->run + 1, p->n_runs,
                p->strategy, p->done, p->users, tries);
    else
        fprintf(stderr, "\r\033[K%s ...", p->what);
    fflush(stderr);
}

/* ---- the table ---- */

struct paint {
    const char *good, *bad, *odd, *dim, *plain;
};

static struct paint choose_paint(void)
{
    const char *no_color = getenv("NO_COLOR");
    if (!isatty(STDOUT_FILENO) || (no_color && *no_color))
        return (struct paint){"", "", "", "", ""};
    return (struct paint){"\033[32m", "\033[1;31m", "\033[33m", "\033[2m", "\033[0m"};
}

static const char *paint_of(const struct paint *p, enum race_verdict verdict)
{
    switch (verdict) {
    case RACE_CORRECT:
        return p->good;
    case RACE_NOT_CAUGHT:
        return p->odd;
    default:
        return p->bad;
    }
}

/* ---- cells; in a narrow terminal the columns are split into two tables ---- */

#define WIDE 143 /* the width of the whole table, unless a verdict is long */

enum half { BOTH, SALES, COSTS };

struct race_sheet {
    struct paint paint;
    const struct race_result *result;
    enum half half;
    int ms_width, rate_width, commits_width; /* of a cell, with the space before it */
};

static bool has_sales(const struct race_sheet *t) { return t->half != COSTS; }
static bool has_costs(const struct race_sheet *t) { return t->half != SALES; }

/* Two or three significant digits. */
static void put_ms(struct buf *b, const struct race_sheet *t, double ms)
{
    buf_printf(b, "%*.*f", t->ms_width, ms < 10 ? 2 : ms < 100 ? 1 : 0, ms);
}

static void put_latency(struct buf *b, const struct race_sheet *t, const struct race_latency *l)
{
    if (l->n == 0) {
        buf_printf(b, "%*s%*s%*s", t->ms_width, "-", t->ms_width, "-", t->ms_width, "-");
        return;
    }
    put_ms(b, t, l->avg_ms);
    put_ms(b, t, l->p50_ms);
    put_ms(b, t, l->p99_ms);
}

/* A small rate is shown as <.01, not as 0.00. */
static void put_rate(struct buf *b, int width, double rate)
{
    if (rate > 0 && rate < 0.005)
        buf_printf(b, "%*s", width, "<.01");
    else
        buf_printf(b, "%*.2f", width, rate);
}

static void put_verdict(struct buf *b, const struct race_run *run)
{
    switch (run->verdict) {
    case RACE_CORRECT:
        buf_str(b, "correct");
        break;
    case RACE_BROKEN:
        buf_str(b, "BROKEN");
        break;
    case RACE_CAUGHT:
        buf_printf(b, "SOLD TWICE, try %d", run->tries);
        break;
    case RACE_NOT_CAUGHT:
        buf_printf(b, "lucky in %d %s", run->tries, run->tries == 1 ? "try" : "tries");
        break;
    }
    if (run->errors)
        buf_printf(b, ", %d error%s", run->errors, run->errors == 1 ? "" : "s");
    if (run->why[0])
        buf_printf(b, ": %s", run->why);
}

static void put_run(struct buf *b, const struct race_sheet *t, const struct race_run *run)
{
    const struct paint *p = &t->paint;
    buf_printf(b, "%-13s%6d", run->strategy->name, run->users);
    if (has_sales(t))
        buf_printf(b, " %7d %s%6d%s %8.0f", run->winners, run->double_sold ? p->bad : "",
                   run->double_sold, run->double_sold ? p->plain : "", run->throughput);
    if (has_sales(t))
        buf_printf(b, " %7s", run->several ? "yes" : "no");
    if (has_costs(t)) {
        put_latency(b, t, &run->winners_ms);
        put_latency(b, t, &run->losers_ms);
        put_rate(b, t->rate_width, run->round_trips_per_request);
        put_rate(b, t->rate_width, run->gate_trips_per_request);
        put_rate(b, t->commits_width, run->commits_per_request);
    }
    if (has_sales(t)) {
        buf_printf(b, "  %s", paint_of(p, run->verdict));
        put_verdict(b, run);
        buf_str(b, p->plain);
    }
    buf_char(b, '\n');
}

static void put_columns(struct buf *b, const struct race_sheet *t)
{
    int ms = t->ms_width, rate = t->rate_width;
    buf_printf(b, "%-13s%6s", "", "");
    if (has_sales(t))
        buf_printf(b, " %7s %6s %8s %7s", "", "double", "users", "several");
    if (has_costs(t))
        buf_printf(b, "%*s%*s%*s", 3 * ms, "winners, ms", 3 * ms, "losers, ms",
                   2 * rate + t->commits_width, "a request costs");
    buf_printf(b, "\n%-13s%6s", "strategy", "users");
    if (has_sales(t))
        buf_printf(b, " %7s %6s %8s %7s", "winners", "sold", "a second", "servers");
    if (has_costs(t))
        buf_printf(b, "%*s%*s%*s%*s%*s%*s%*s%*s%*s", ms, "avg", ms, "p50", ms, "p99", ms, "avg", ms,
                   "p50", ms, "p99", rate, t->result->on_postgres ? "trips" : "stmts", rate,
                   "redis", t->commits_width, t->half == BOTH ? "commits" : "commit");
    buf_char(b, '\n');
}

static void put_half(struct buf *b, struct paint paint, const struct race_result *r, enum half half)
{
    struct race_sheet t = {.paint = paint,
                           .result = r,
                           .half = half,
                           .ms_width = 7,
                           .rate_width = 6,
                           .commits_width = 7};
    if (half == BOTH)
        t.ms_width = t.rate_width = t.commits_width = 8;
    buf_char(b, '\n');
    put_columns(b, &t);
    for (size_t i = 0; i < r->n_runs; i++) {
        if (i == 0 || r->runs[i].strategy != r->runs[i - 1].strategy)
            buf_char(b, '\n');
        put_run(b, &t, &r->runs[i]);
    }
}

/* ---- around the table ---- */

static void put_heading(struct buf *b, const struct paint *p, const struct race_result *r)
{
    if (r->on_postgres)
        buf_printf(b, "PostgreSQL %s", r->versions.postgresql);
    else
        buf_printf(b, "SQLite %s", r->versions.sqlite);
    if (r->with_gate)
        buf_printf(b, ", Redis %s", r->versions.redis);
    buf_printf(b, ", Holdfast %s; %d CPUs, %s\n", r->versions.holdfast, r->machine.cpus,
               r->machine.model);
    if (r->note[0])
        buf_printf(b, "%s%s%s\n", p->odd, r->note, p->plain);
    buf_printf(b,
               "%sAll users click at once; more than %d users share that many connections.\n"
               "Latencies are in milliseconds from the click.  Several servers: the promise is\n"
               "kept also if several application servers sell the same seats.%s\n",
               p->dim, RACE_RUNNERS, p->plain);
}

/* Fail-fast promises that a loser hears at once.  Says how many did, and how soon. */
static void put_fail_fast(struct buf *b, const struct race_result *r)
{
    buf_str(b, "\nFail-fast (--retries 0): what the losers of the strategies that retry heard\n");
    for (size_t i = 0; i < r->n_runs; i++) {
        const struct race_run *run = &r->runs[i];
        if (run->strategy->retries && run->losers_ms.n)
            buf_printf(b,
                       "%-13s %6d users: %d of %zu losers refused at once, half within %.1f ms\n",
                       run->strategy->name, run->users, run->refused_at_once, run->losers_ms.n,
                       run->losers_ms.p50_ms);
    }
}

static void put_ending(struct buf *b, const struct paint *p, const struct race_result *r)
{
    bool promised_nothing = false;
    if (r->retries == 0)
        put_fail_fast(b, r);
    if (r->n_skips)
        buf_char(b, '\n');
    for (size_t i = 0; i < r->n_skips; i++)
        buf_printf(b, "%s%-13s skipped: %s%s\n", p->dim, r->skips[i].strategy, r->skips[i].why,
                   p->plain);
    for (size_t i = 0; i < r->n_runs; i++)
        promised_nothing = promised_nothing || !r->runs[i].strategy->correct;
    if (r->ok)
        buf_printf(b, "\n%sok%s: every promise to sell a seat only once was kept%s\n", p->good,
                   p->plain, promised_nothing ? ", and naive was caught" : "");
    else
        buf_printf(b, "\n%snot ok%s: a promise was broken, or naive was not caught\n", p->bad,
                   p->plain);
}

static bool is_narrow(void)
{
    struct winsize size;
    return isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col &&
           size.ws_col < WIDE;
}

static void put_table(struct buf *b, const struct race_result *r)
{
    struct paint p = choose_paint();
    put_heading(b, &p, r);
    if (is_narrow()) {
        put_half(b, p, r, SALES);
        put_half(b, p, r, COSTS);
    } else {
        put_half(b, p, r, BOTH);
    }
    put_ending(b, &p, r);
}

/* ---- options ---- */

struct race_options {
    struct race_settings race;
    int users[USERS_MAX];
    char *ledger, *gate; /* owned; they may contain passwords */
    bool json, help;
};

static bool take_users(void *to, char *text)
{
    struct race_options *o = to;
    char *copy = hf_strndup(text, strlen(text)), *rest = copy;
    bool good = true;
    o->race.n_users = 0;
    for (char *part; good && (part = strsep(&rest, ","));) {
        int64_t n;
        good = o->race.n_users < USERS_MAX &&
               cli_integer(COMMAND, "--users", part, 1, RACE_USERS_MAX, &n);
        if (good)
            o->users[o->race.n_users++] = (int)n;
    }
    free(copy);
    return good;
}

static bool parse(int argc, char **argv, struct race_options *o)
{
    struct race_settings *race = &o->race;
    const struct cli_option options[] = {
        {"strategy", CLI_TEXT, .to = &race->strategies},
        {"users", CLI_OWN, .to = o, .take = take_users},
        {"seats", CLI_INT, .to = &race->seats, .least = 1, .most = RACE_SEATS_MAX},
        {"ledger", CLI_SECRET, .to = &o->ledger},
        {"gate", CLI_SECRET, .to = &o->gate},
        {"tries", CLI_INT, .to = &race->tries, .least = 1, .most = 10000},
        {"seed", CLI_INT64, .to = &race->seed, .least = 1, .most = INT64_MAX},
        {"json", CLI_TRUE, .to = &o->json},
        {"retries", CLI_INT, .to = &race->retries, .most = RACE_RETRIES_MAX},
        {0}};
    *o = (struct race_options){.race = {RACE_SETTINGS_USUAL, .n_users = 5},
                               .users = {5, 20, 50, 500, 10000}};
    int code;
    while ((code = cli_options(COMMAND, argc, argv, options, NULL)) == EXIT_SUCCESS)
        o->help = true;
    race->users = o->users;
    race->ledger = o->ledger;
    race->gate = o->gate;
    if (code < 0 && optind != argc)
        cli_say(COMMAND, "unexpected argument %s; see holdfast lab race --help", argv[optind]);
    return code < 0 && optind == argc;
}

static int failed(const struct race_options *o, enum hf_status status, const struct hf_err *err)
{
    cli_say(COMMAND, "%s", err->msg);
    if (status == HF_DRAINING)
        return EXIT_SIGNAL + *o->race.stop;
    return status == HF_INVALID_REQUEST ? EXIT_BAD_USAGE : EXIT_NO_BACK_END;
}

static int run(struct race_options *o)
{
    struct race_result result;
    struct hf_err err = {0};
    struct buf out = {0};
    bool shows = isatty(STDERR_FILENO);
    if (shows)
        o->race.progress = show_progress;
    o->race.stop = lab_catch_signals();
    enum hf_status status = race_run(&o->race, &result, &err);
    if (shows)
        fputs("\r\033[K", stderr);
    if (status != HF_OK)
        return failed(o, status, &err);
    if (o->json) {
        race_json(&result, &out);
        buf_char(&out, '\n');
    } else {
        put_table(&out, &result);
    }
    bool ok = result.ok, printed = cli_print(&out);
    race_result_close(&result);
    return ok && printed ? EXIT_SUCCESS : EXIT_FAILURE;
}

int cli_lab_race(int argc, char **argv)
{
    struct race_options o;
    int code = EXIT_BAD_USAGE;
    if (parse(argc, argv, &o)) {
        code = EXIT_SUCCESS;
        if (o.help)
            fputs(usage, stdout);
        else
            code = run(&o);
    }
    free(o.ledger);
    free(o.gate);
    return code;
}
