/* See common.h. */
#include "cli/common.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/duration.h"
#include "base/nearest.h"
#include "base/status.h"
#include "cli/render.h"

int cli_exit_code(enum hf_result result)
{
    switch (result) {
    case HF_DONE:
        return EXIT_SUCCESS;
    case HF_TAKEN:
    case HF_DEADLOCK:
        return EXIT_NOT_ACQUIRED;
    case HF_LOST:
        return EXIT_LOST;
    case HF_BAD_REQUEST:
    case HF_UNSUPPORTED:
        return EXIT_BAD_USAGE;
    default:
        return EXIT_NO_BACK_END;
    }
}

/* Much of what is said comes from servers and from other clients of them. */
void cli_say(const char *command, const char *fmt, ...)
{
    char text[512];
    struct buf shown = {0};
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    render_text(&shown, text, strlen(text));
    fprintf(stderr, "holdfast %s: %.*s\n", command, (int)shown.len, shown.len ? shown.data : "");
    buf_close(&shown);
}

int cli_misused(const char *command, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    cli_say(command, "%s; see holdfast %s --help", text, command);
    return EXIT_BAD_USAGE;
}

int cli_unknown(const char *command, const char *kind, const char *word, const char *const *words,
                size_t n)
{
    char list[256] = "";
    size_t len = 0;
    const char *meant = word ? nearest_word(word, strlen(word), words, n, strlen(word) / 2) : NULL;
    if (meant)
        return cli_misused(command, "unknown %s %.60s (did you mean %s?)", kind, word, meant);
    for (size_t i = 0; i < n && len < sizeof list; i++)
        len += (size_t)snprintf(list + len, sizeof list - len, "%s%s",
                                !i           ? ""
                                : i + 1 == n ? " or "
                                             : ", ",
                                words[i]);
    if (word)
        return cli_misused(command, "unknown %s %.60s: expected %s", kind, word, list);
    return cli_misused(command, "expected a %s: %s", kind, list);
}

int cli_no_ledger(const char *command)
{
    return cli_misused(command, "no ledger: give --ledger sqlite:PATH or --ledger postgres://..., "
                                "or set HOLDFAST_LEDGER");
}

int cli_fail(const char *command, const struct hf_fault *fault)
{
    cli_say(command, "%s", fault->msg[0] ? fault->msg : hf_result_text(fault->result));
    return cli_exit_code(fault->result);
}

void cli_outage(const struct hf_fault *why, void *command)
{
    if (why)
        cli_say(command, "the coordinator is out of reach, waiting for it: %s", why->msg);
    else
        cli_say(command, "the coordinator answers again");
}

#define OPTIONS_MAX 40
/* Short options have their letters as values, long options larger ones. */
#define OPTION_HELP 256
#define OPTION_FIRST 257 /* plus the index in the table */

/* A table as getopt_long wants it. */
struct getopt_table {
    char letters[2 * OPTIONS_MAX + 3];
    struct option names[OPTIONS_MAX + 2];
};

static void make_getopt_table(const struct cli_option *table, bool with_help,
                              struct getopt_table *ret)
{
    size_t n = 0, n_letters = 2;
    *ret = (struct getopt_table){0};
    memcpy(ret->letters, with_help ? ":h" : "+:", n_letters);
    if (with_help)
        ret->names[n++] = (struct option){"help", no_argument, NULL, OPTION_HELP};
    for (size_t i = 0; table[i].name; i++) {
        bool has_value = table[i].kind != CLI_TRUE && table[i].kind != CLI_OWN_TRUE;
        hf_check(i < OPTIONS_MAX);
        if (table[i].name[1]) {
            ret->names[n++] =
                (struct option){table[i].name, has_value ? required_argument : no_argument, NULL,
                                OPTION_FIRST + (int)i};
        } else {
            ret->letters[n_letters++] = table[i].name[0];
            if (has_value)
                ret->letters[n_letters++] = ':';
        }
    }
}

static bool take_value(const char *command, const struct cli_option *o, char *value)
{
    char name[64];
    int64_t n;
    snprintf(name, sizeof name, "%s%s", o->name[1] ? "--" : "-", o->name);
    switch (o->kind) {
    case CLI_TRUE:
        *(bool *)o->to = true;
        return true;
    case CLI_TEXT:
        *(const char **)o->to = value;
        return true;
    case CLI_SECRET:
        free(*(char **)o->to);
        *(char **)o->to = cli_take_secret(value);
        return true;
    case CLI_INT:
        if (!cli_integer(command, name, value, o->least, o->most, &n))
            return false;
        *(int *)o->to = (int)n;
        return true;
    case CLI_INT64:
        return cli_integer(command, name, value, o->least, o->most, o->to);
    case CLI_DURATION:
        return cli_duration(command, name, value, o->least, o->to);
    default:
        return o->take(o->to, value);
    }
}

static const struct cli_option *find_option(const struct cli_option *table, int got)
{
    if (got >= OPTION_FIRST)
        return &table[got - OPTION_FIRST];
    while (table->name[0] != got || table->name[1])
        table++;
    return table;
}

/* Says what is wrong with the option that getopt_long did not take. */
static int refuse_option(const char *command, char **argv, bool is_known)
{
    char letter[] = {'-', (char)optopt, '\0'};
    bool is_short = optopt > 0 && optopt < OPTION_HELP;
    const char *given = is_short ? letter : argv[optind - 1];
    int len = (int)strcspn(given, "="); /* the value may have a password */
    return cli_misused(
        command, is_known ? "option '%.*s' requires an argument" : "unrecognized option '%.*s'",
        len, given);
}

int cli_options(const char *command, int argc, char **argv, const struct cli_option *table,
                const char *usage)
{
    struct getopt_table known;
    make_getopt_table(table, true, &known);
    opterr = 0;
    for (int got; (got = getopt_long(argc, argv, known.letters, known.names, NULL)) != -1;) {
        if (got == '?' || got == ':')
            return refuse_option(command, argv, got == ':');
        if (got == 'h' || got == OPTION_HELP) {
            fputs(usage ? usage : "", stdout);
            return EXIT_SUCCESS;
        }
        if (!take_value(command, find_option(table, got), optarg))
            return EXIT_BAD_USAGE;
    }
    return -1;
}

void cli_operand_first(int argc, char **argv, const struct cli_option *table)
{
    struct getopt_table known;
    make_getopt_table(table, false, &known);
    opterr = 0;
    optind = 0; /* glibc: from the start */
    for (int got; (got = getopt_long(argc, argv, known.letters, known.names, NULL)) != -1;)
        if (got < OPTION_FIRST)
            optind = argc; /* another option, which is no operand either */
    int first = optind;
    optind = 0; /* for the options of the command */
    if (first <= 1 || first >= argc)
        return;
    char *operand = argv[first];
    memmove(argv + 2, argv + 1, sizeof *argv * (size_t)(first - 1));
    argv[1] = operand;
}

bool cli_duration(const char *command, const char *option, const char *text, int64_t least_ms,
                  int64_t *ret_ms)
{
    int64_t ms = duration_parse_ms(text);
    if (ms < 0) {
        cli_say(command, "%s: %.40s is not a duration such as 500ms, 30s, 2m30s, 2h or 1d", option,
                text);
        return false;
    }
    if (ms > DURATION_MS_MAX) {
        cli_say(command, "%s: %.40s is too long, the most is %dd", option, text, DURATION_DAYS_MAX);
        return false;
    }
    if (ms < least_ms) {
        cli_say(command, "%s: %.40s is too short", option, text);
        return false;
    }
    *ret_ms = ms;
    return true;
}

bool cli_integer(const char *command, const char *option, const char *text, int64_t least,
                 int64_t most, int64_t *ret)
{
    char *end;
    errno = 0;
    long long n = strtoll(text, &end, 10);
    bool digit = (text[0] >= '0' && text[0] <= '9') || (text[0] == '-' && text[1] != '\0');
    if (!digit || *end || errno || n < least || n > most) {
        cli_say(command, "%s: %.40s is not a whole number from %lld to %lld", option, text,
                (long long)least, (long long)most);
        return false;
    }
    *ret = n;
    return true;
}

const char *cli_url(const char *command, const char *url)
{
    if (!url)
        url = getenv("HOLDFAST_LOCK_URL");
    if (url && *url)
        return url;
    cli_say(command, "no coordinator: give --lock URL or set HOLDFAST_LOCK_URL; "
                     "`holdfast drivers` lists the kinds of URL");
    return NULL;
}

bool cli_is_memory(const char *url) { return strncmp(url, "memory:", 7) == 0; }

/* Schemes begin with the name of their driver: rediss://, postgresql://; unix: is Redis. */
const struct hf_driver_info *cli_driver(const char *url)
{
    size_t n;
    const struct hf_driver_info *const *drivers = hf_drivers(&n);
    const char *scheme = strncmp(url, "unix:", 5) == 0 ? "redis" : url;
    for (size_t i = 0; i < n; i++)
        if (strncmp(scheme, drivers[i]->name, strlen(drivers[i]->name)) == 0)
            return drivers[i];
    return NULL;
}

char *cli_take_secret(char *argument)
{
    char *copy = hf_strndup(argument, strlen(argument));
    char *from = strstr(argument, "://"), *to = strrchr(argument, '@');
    if (from && to && to > from + 3)
        memset(from + 3, '*', (size_t)(to - from - 3));
    /* also in a parameter: ?sentinel_password=SECRET, ?password=SECRET */
    for (char *at = argument; (at = strstr(at, "password=")); at++)
        memset(at + 9, '*', strcspn(at + 9, "&"));
    return copy;
}

void cli_default_label(char out[129])
{
    char host[65] = "";
    if (gethostname(host, sizeof host - 1) != 0)
        host[0] = '?';
    const struct passwd *user = getpwuid(geteuid());
    if (user)
        snprintf(out, 129, "%.48s@%.64s %ld", user->pw_name, host, (long)getpid());
    else
        snprintf(out, 129, "%ld@%.64s %ld", (long)geteuid(), host, (long)getpid());
}

int64_t cli_now_ms(void) { return clock_boot_us(&clock_system) / 1000; }

const char *cli_rough_time(char out[32], int64_t ms)
{
    static const struct {
        int64_t ms;
        const char *unit;
    } units[] = {{86400000, "d"}, {3600000, "h"}, {60000, "min"}, {1000, "s"}, {1, "ms"}};
    size_t i = 0;
    while (i < 4 && ms < 2 * units[i].ms && ms != units[i].ms)
        i++;
    snprintf(out, 32, "%" PRId64 " %s", ms / units[i].ms, units[i].unit);
    return out;
}

bool cli_print(struct buf *b)
{
    size_t len = b->len;
    bool written = (len == 0 || fwrite(b->data, 1, len, stdout) == len) && fflush(stdout) == 0;
    buf_close(b);
    return written;
}
