/* See locks.h: chooses the drivers, and measures one after the other.  Main thread. */
#include "lab/locks.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/wait.h"
#include "lab/locks_stage.h"

#define TURN_US 5000
#define READY_MS_MAX (2 * LOCKS_TTL_MAX_MS + 5000)
#define RETRY_MS 100

/* ---- shared by the parts ---- */

bool locks_is_stopped(const struct locks_stage *s)
{
    return s->settings->stop && *s->settings->stop;
}

bool locks_sleep_ms(const struct locks_stage *s, int64_t ms)
{
    for (int64_t until_us = wait_now_us() + 1000 * ms; !locks_is_stopped(s);) {
        int64_t left_us = until_us - wait_now_us();
        if (left_us <= 0)
            return true;
        wait_sleep_us(left_us < TURN_US ? left_us : TURN_US);
    }
    return false;
}

void locks_say(const struct locks_stage *s, const char *what)
{
    if (s->settings->progress)
        s->settings->progress(s->settings->ctx, s->row->driver, what);
}

void locks_why(char ret[LOCKS_WHY_SIZE], const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(ret, LOCKS_WHY_SIZE, fmt, args);
    va_end(args);
}

/* Takes a lock and releases it.  Returns false with the reason if that is not possible. */
static bool can_lock(const char *url, struct hf_err *err)
{
    struct hf_fault fault = {0};
    struct hf_locks *locks = NULL;
    struct hf_lock *lock;
    bool good = hf_open(url, NULL, &locks, &fault) == HF_DONE &&
                hf_lock(locks, "first", NULL, &lock, &fault) == HF_DONE &&
                hf_unlock(lock, &fault) == HF_DONE;
    if (!good)
        (void)hf_err_set(err, HF_UNAVAILABLE, "%s", fault.msg);
    hf_close(locks);
    return good;
}

bool locks_start_coordinator(struct locks_stage *s, enum coordinator_kind kind, bool has_steps,
                             struct hf_err *err)
{
    if (!coordinator_open(&s->coordinator, s->home, kind, has_steps, err))
        return false;
    bool ready = can_lock(s->coordinator.url, err);
    for (int64_t ms = 0; !ready && ms < READY_MS_MAX; ms += RETRY_MS) {
        if (!locks_sleep_ms(s, RETRY_MS))
            return false;
        ready = can_lock(s->coordinator.url, err);
    }
    return ready;
}

/* ---- which drivers ---- */

/* The number of the kind of this name, or COORDINATOR_KINDS. */
static enum coordinator_kind find_kind(const char *name, size_t len)
{
    enum coordinator_kind kind = 0;
    while (kind < COORDINATOR_KINDS && (strlen(coordinator_name(kind)) != len ||
                                        strncmp(coordinator_name(kind), name, len) != 0))
        kind++;
    return kind;
}

static enum hf_status choose(const char *servers, bool ret_chosen[COORDINATOR_KINDS],
                             struct hf_err *err)
{
    bool all = strcmp(servers, "all") == 0;
    for (enum coordinator_kind kind = 0; kind < COORDINATOR_KINDS; kind++)
        ret_chosen[kind] = all;
    for (const char *at = servers; !all && (at == servers || *at);) {
        size_t len = strcspn(at, ",");
        enum coordinator_kind kind = find_kind(at, len);
        if (kind == COORDINATOR_KINDS)
            return hf_err_set(err, HF_INVALID_REQUEST, "there is no server %.*s", (int)len, at);
        ret_chosen[kind] = true;
        at += len + (at[len] == ',');
    }
    return HF_OK;
}

static enum hf_status check_settings(const struct locks_settings *s, struct hf_err *err)
{
    bool good = s->seconds > 0 && s->seconds <= 60 && s->ttl_ms >= LOCKS_TTL_MIN_MS &&
                s->ttl_ms <= LOCKS_TTL_MAX_MS && s->locks >= 1 && s->locks <= LOCKS_AT_ONCE_MAX;
    for (int i = 0; i < LOCKS_CROWDS; i++)
        good = good && s->waiters[i] >= 2 && s->waiters[i] <= LOCKS_WAITERS_MAX;
    return good ? HF_OK
                : hf_err_set(err, HF_INVALID_REQUEST,
                             "seconds, ttl, waiters or locks are out of range");
}

static const struct hf_driver_info *find_driver(const char *name)
{
    size_t n;
    const struct hf_driver_info *const *drivers = hf_drivers(&n);
    for (size_t i = 0; i < n; i++)
        if (strcmp(drivers[i]->name, name) == 0)
            return drivers[i];
    return NULL;
}

/* ---- one driver ---- */

static void measure_row(struct locks_stage *s, enum coordinator_kind kind)
{
    char why[COORDINATOR_WHY_SIZE];
    struct hf_err err = {0};
    s->row->driver = coordinator_name(kind);
    s->row->info = find_driver(s->row->driver);
    if (!s->row->info) {
        locks_why(s->row->why, "not measurable here: the library was built without this driver");
        return;
    }
    if (!coordinator_is_installed(kind, why)) {
        locks_why(s->row->why, "not measurable here: %s", why);
        return;
    }
    locks_say(s, "starting");
    if (locks_start_coordinator(s, kind, false, &err)) {
        (void)snprintf(s->row->version, sizeof s->row->version, "%s", s->coordinator.version);
        locks_measure_speed(s);
        locks_measure_faults(s);
    } else {
        locks_why(s->row->why, "failed: %s", err.msg);
    }
    coordinator_close(&s->coordinator);
}

static bool is_good(const struct locks_row *row)
{
    uint64_t surprises = 0;
    for (int i = 0; i < LOCKS_CROWDS; i++)
        surprises += row->crowds[i].overlaps;
    for (int i = 0; i < LOCKS_FAULTS; i++)
        surprises += row->faults[i].is_declared ? 0 : row->faults[i].overlaps;
    return surprises == 0;
}

static enum hf_status run(struct locks_stage *s, const bool chosen[COORDINATOR_KINDS],
                          struct locks_result *r, struct hf_err *err)
{
    r->ok = true;
    for (enum coordinator_kind kind = 0; kind < COORDINATOR_KINDS; kind++) {
        if (!chosen[kind])
            continue;
        s->row = &r->rows[r->n++];
        measure_row(s, kind);
        r->ok = r->ok && is_good(s->row);
        if (locks_is_stopped(s))
            return hf_err_set(err, HF_DRAINING, "stopped");
    }
    return HF_OK;
}

enum hf_status locks_run(const struct locks_settings *settings, struct locks_result *ret,
                         struct hf_err *err)
{
    bool chosen[COORDINATOR_KINDS];
    struct servers home = {0};
    struct locks_stage stage = {.settings = settings, .home = &home};
    int64_t begin_us = clock_monotonic_us(&clock_system);
    enum hf_status status = check_settings(settings, err);
    if (status == HF_OK)
        status = choose(settings->servers, chosen, err);
    if (status != HF_OK)
        return status;
    *ret =
        (struct locks_result){.at_ms = clock_wall_us(&clock_system) / 1000, .settings = *settings};
    machine_read(&ret->machine);
    (void)snprintf(ret->holdfast, sizeof ret->holdfast, "%s", hf_version_text());
    if (servers_open(&home, err) && crowd_open(&stage.crowd, &home, err))
        status = run(&stage, chosen, ret, err);
    else
        status = HF_UNAVAILABLE;
    crowd_close(&stage.crowd);
    servers_close(&home);
    ret->seconds = (double)(clock_monotonic_us(&clock_system) - begin_us) / 1e6;
    return status;
}
