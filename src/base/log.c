/* One line per occurrence, key=value, to stderr.  Called from every thread when something happens
 * that an operator should read; never in the engine's inner loop.  A line is built in memory and
 * leaves in one write(2), so lines of different threads do not mix.  Keeps errno. */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"

static const char *const names[] = {"debug", "info", "warn", "error", "off"};

static _Atomic int threshold = LOG_INFO;

void log_set_level(enum log_level level)
{
    atomic_store_explicit(&threshold, (int)level, memory_order_relaxed);
}

bool log_parse_level(const char *text, enum log_level *ret)
{
    for (int i = LOG_DEBUG; i <= LOG_OFF; i++) {
        if (strcmp(text, names[i]) == 0) {
            *ret = (enum log_level)i;
            return true;
        }
    }
    return false;
}

bool log_enabled(enum log_level level)
{
    return level < LOG_OFF && (int)level >= atomic_load_explicit(&threshold, memory_order_relaxed);
}

static bool needs_quotes(const char *value)
{
    if (!*value)
        return true;
    for (; *value; value++) {
        unsigned char c = (unsigned char)*value;
        if (c <= ' ' || c == '"' || c == '\\' || c == '=' || c == 0x7f)
            return true;
    }
    return false;
}

static void put_value(struct buf *line, const char *value)
{
    if (needs_quotes(value))
        buf_json(line, value, strlen(value));
    else
        buf_str(line, value);
}

/* If the reader is gone or its pipe is full, the line is lost and the program goes on. */
static void write_all(int fd, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, data, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return;
        data += n;
        len -= (size_t)n;
    }
}

void log_write(enum log_level level, const char *msg, ...)
{
    if (!log_enabled(level))
        return;
    int saved_errno = errno;
    char time[CLOCK_TEXT_SIZE];
    clock_format_ms(clock_wall_us(&clock_system) / 1000, time);

    struct buf line = {0};
    buf_printf(&line, "ts=%s level=%s msg=", time, names[level]);
    buf_json(&line, msg, strlen(msg));
    va_list pairs;
    va_start(pairs, msg);
    for (const char *key; (key = va_arg(pairs, const char *));) {
        const char *value = va_arg(pairs, const char *);
        buf_char(&line, ' ');
        buf_str(&line, key);
        buf_char(&line, '=');
        put_value(&line, value ? value : "");
    }
    va_end(pairs);
    buf_char(&line, '\n');
    write_all(STDERR_FILENO, line.data, line.len);
    buf_close(&line);
    errno = saved_errno;
}

const char *log_int(char out[24], long long n)
{
    snprintf(out, 24, "%lld", n);
    return out;
}
