/* See service.h. */
#include "setup/service.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"

#define TICK_US 1000000 /* how often the service manager is told what has changed */

void service_open(struct setup_service *s)
{
    struct hf_err err = {0};
    if (!notify_open(&s->notifier, getenv("NOTIFY_SOCKET"), &err))
        log_write(LOG_WARN, "the service manager cannot be told", "why", err.msg, NULL);
    s->watchdog_us = notify_watchdog_us(getenv("WATCHDOG_USEC"), getenv("WATCHDOG_PID"), getpid());
}

void service_close(struct setup_service *s) { notify_close(&s->notifier); }

int64_t service_tick_us(const struct setup_service *s)
{
    if (!s->notifier.open)
        return -1;
    return s->watchdog_us && s->watchdog_us / 4 < TICK_US ? s->watchdog_us / 4 : TICK_US;
}

void service_say_state(struct setup_service *s, bool is_well, const char *why, const char *url)
{
    char line[256]; /* a message is lines, so a reason is one */
    (void)snprintf(line, sizeof line, "%s", why);
    for (char *c = line; *c; c++)
        if ((unsigned char)*c < ' ')
            *c = ' ';
    if (is_well && !s->told_ready)
        notify_send(&s->notifier, "READY=1\nSTATUS=Serving on %s", url);
    else if (is_well && !s->told_well)
        notify_send(&s->notifier, "STATUS=Serving on %s", url);
    else if (!is_well && (s->told_well || !s->told_ready))
        notify_send(&s->notifier, "STATUS=Not ready: %s", line);
    s->told_ready |= is_well;
    s->told_well = is_well;
}

void service_say_alive(const struct setup_service *s)
{
    if (s->watchdog_us)
        notify_send(&s->notifier, "WATCHDOG=1");
}

void service_say_reloading(const struct setup_service *s, int64_t monotonic_us)
{
    notify_send(&s->notifier, "RELOADING=1\nMONOTONIC_USEC=%lld", (long long)monotonic_us);
}

void service_say_reloaded(const struct setup_service *s) { notify_send(&s->notifier, "READY=1"); }

void service_say_stopping(const struct setup_service *s)
{
    notify_send(&s->notifier, "STOPPING=1\nSTATUS=Draining");
}
