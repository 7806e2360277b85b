/* See common.h.  Used by the main thread, before and after the command runs. */
#include "cli/common.h"

#include <errno.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/status.h"

int cli_exit_code(enum hf_result result)
{
    switch (result) {
    case HF_DONE:
        return EXIT_SUCCESS;
    case HF_TAKEN:
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

void cli_say(const char *command, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    fprintf(stderr, "holdfast %s: %s\n", command, text);
}

int cli_fail(const char *command, const struct hf_fault *fault)
{
    cli_say(command, "%s", fault->msg[0] ? fault->msg : hf_result_text(fault->result));
    return cli_exit_code(fault->result);
}

static int64_t unit_ms(const char *unit)
{
    static const struct {
        const char *name;
        int64_t ms;
    } units[] = {{"", 1000}, {"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(unit, units[i].name) == 0)
            return units[i].ms;
    return 0;
}

/* Digits, perhaps a point and up to nine more, a unit.  No sign, no exponent, no spaces: strtod
 * would take all of those, and "inf". */
bool cli_parse_duration(const char *text, int64_t *ret_ms)
{
    int64_t whole = 0, fraction = 0, scale = 1;
    const char *p = text;
    for (; *p >= '0' && *p <= '9'; p++)
        if ((whole = whole * 10 + (*p - '0')) > DURATION_MS_MAX)
            return false;
    if (p == text)
        return false;
    if (*p == '.') {
        const char *digits = ++p;
        for (; *p >= '0' && *p <= '9'; p++)
            if (scale < INT64_C(1000000)) {
                fraction = fraction * 10 + (*p - '0');
                scale *= 10;
            }
        if (p == digits)
            return false;
    }
    int64_t unit = unit_ms(p);
    if (!unit || whole > DURATION_MS_MAX / unit)
        return false;
    int64_t ms = whole * unit + fraction * unit / scale;
    if (ms > DURATION_MS_MAX)
        return false;
    *ret_ms = ms;
    return true;
}

bool cli_duration(const char *command, const char *option, const char *text, int64_t least_ms,
                  int64_t *ret_ms)
{
    int64_t ms;
    if (!cli_parse_duration(text, &ms)) {
        cli_say(command, "%s: %.40s is not a duration such as 500ms, 30s, 5m, 2h or 1d", option,
                text);
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
    cli_say(command, "where are the locks? Give --lock URL or set HOLDFAST_LOCK_URL; "
                     "`holdfast drivers` lists what there is");
    return NULL;
}

char *cli_take_secret(char *argument)
{
    char *copy = hf_strndup(argument, strlen(argument));
    char *from = strstr(argument, "://"), *to = strrchr(argument, '@');
    if (from && to && to > from + 3)
        memset(from + 3, '*', (size_t)(to - from - 3));
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

bool cli_print(struct buf *b)
{
    size_t len = b->len;
    bool written = (len == 0 || fwrite(b->data, 1, len, stdout) == len) && fflush(stdout) == 0;
    buf_close(b);
    return written;
}
