/* See metrics_file.h.  Main thread. */
#include "cli/metrics_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "cli/prometheus.h"

#define PREFIX "holdfast_run_"

/* Appends a metric whose value is the same for all locks. */
static void put(struct buf *b, const struct run_report *r, const char *name, const char *help,
                const char *value)
{
    prometheus_put_head(b, PREFIX, name, "gauge", help);
    for (size_t i = 0; i < r->n_names; i++) {
        prometheus_put_name(b, PREFIX, name, r->names[i]);
        buf_printf(b, "%s\n", value);
    }
}

static void put_fences(struct buf *b, const struct run_report *r)
{
    prometheus_put_head(b, PREFIX, "fence", "gauge", "Fence of the grant, 0 without one.");
    for (size_t i = 0; i < r->n_names; i++) {
        prometheus_put_name(b, PREFIX, "fence", r->names[i]);
        buf_printf(b, "%" PRId64 "\n", r->fences[i]);
    }
}

static const char *integer(char out[32], int64_t n)
{
    snprintf(out, 32, "%" PRId64, n);
    return out;
}

static const char *seconds(char out[32], int64_t ms)
{
    snprintf(out, 32, "%" PRId64 ".%03d", ms / 1000, (int)(ms % 1000));
    return out;
}

static void render(struct buf *b, const struct run_report *r)
{
    char text[32];
    int64_t now_ms = clock_wall_us(&clock_system) / 1000;
    put(b, r, "acquired", "Whether the lock was acquired.", r->acquired ? "1" : "0");
    put(b, r, "lost", "Whether the lock was lost while the command ran.", r->lost ? "1" : "0");
    put(b, r, "exit_code", "Exit code of holdfast run.", integer(text, r->exit_code));
    put_fences(b, r);
    put(b, r, "wait_seconds", "Time until the lock was acquired or given up.",
        seconds(text, r->wait_ms));
    put(b, r, "held_seconds", "Time from the grant to the release.", seconds(text, r->held_ms));
    put(b, r, "renewals", "Renewals of the leases.", integer(text, (int64_t)r->stats.renewals));
    put(b, r, "renewal_failures", "Renewals that failed.",
        integer(text, (int64_t)r->stats.renewal_failures));
    put(b, r, "start_timestamp_seconds", "Start of holdfast run.", seconds(text, r->began_ms));
    put(b, r, "end_timestamp_seconds", "End of holdfast run.", seconds(text, now_ms));
}

bool metrics_file_write(const char *path, const struct run_report *report)
{
    struct buf temporary = {0}, text = {0};
    buf_printf(&temporary, "%s.%ld", path, (long)getpid());
    buf_char(&temporary, '\0');
    render(&text, report);
    int fd = open(temporary.data, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    bool ok = fd >= 0;
    if (ok) {
        ok = write(fd, text.data, text.len) == (ssize_t)text.len;
        ok = close(fd) == 0 && ok;
        ok = ok && rename(temporary.data, path) == 0;
        int error = errno;
        if (!ok)
            unlink(temporary.data);
        errno = error;
    }
    buf_close(&temporary);
    buf_close(&text);
    return ok;
}
