/* One line per occurrence, key=value, to stderr.  Called from every thread when something happens
 * that an operator should read; never in the engine's inner loop.  A line is built in memory and
 * leaves as a whole, so lines of different threads do not mix.  Keeps errno. */
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/log_writer.h"

#define PRINT_BYTES_MAX 8192

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

static void put_start(struct buf *line, enum log_level level, const char *msg)
{
    char time[CLOCK_TEXT_SIZE];
    clock_format_ms(clock_wall_us(&clock_system) / 1000, time);
    buf_printf(line, "ts=%s level=%s msg=", time, names[level]);
    buf_json(line, msg, strlen(msg));
}

void log_write(enum log_level level, const char *msg, ...)
{
    if (!log_enabled(level))
        return;
    int saved_errno = errno;
    struct buf line = {0};
    put_start(&line, level, msg);
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
    log_writer_put(STDERR_FILENO, line.data, line.len);
    buf_close(&line);
    errno = saved_errno;
}

void log_print(int fd, const char *fmt, ...)
{
    char text[PRINT_BYTES_MAX];
    va_list values;
    va_start(values, fmt);
    int len = vsnprintf(text, sizeof text, fmt, values);
    va_end(values);
    log_writer_put(fd, text, len < PRINT_BYTES_MAX ? (size_t)len : sizeof text - 1);
}

/* ---- the thread that writes ---- */

static void put_gap(struct buf *line, uint64_t lost)
{
    put_start(line, LOG_WARN, "lines of the log are missing here: nobody read them in time");
    buf_printf(line, " lines=%llu\n", (unsigned long long)lost);
}

/* The process is about to abort: waits for the text, but not for ever. */
static void print_last(const char *text)
{
    log_writer_put(STDERR_FILENO, text, strlen(text));
    log_flush();
}

/* If stderr is closed, the ledger could get its number, and the log would be written into it. */
static void open_standard_files(void)
{
    int fd;
    do
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        (void)close(fd);
}

bool log_start(struct hf_err *err)
{
    open_standard_files();
    bool started = log_writer_start(put_gap, err);
    if (started)
        hf_last_words = print_last;
    return started;
}

void log_flush(void) { (void)log_writer_flush(LOG_FLUSH_MS); }
void log_stop(void) { log_writer_stop(LOG_FLUSH_MS); }
uint64_t log_dropped(void) { return log_writer_dropped(); }

const char *log_int(char out[24], long long n)
{
    snprintf(out, 24, "%lld", n);
    return out;
}
