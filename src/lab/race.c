/* See race.h: chooses the strategies that can run here, runs one heat after the other, and judges
 * the whole.  Main thread. */
#include "lab/race.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "lab/heat.h"
#include "lab/venue.h"

const char *race_verdict_text(enum race_verdict verdict)
{
    static const char *const texts[] = {[RACE_CORRECT] = "correct",
                                        [RACE_BROKEN] = "broken",
                                        [RACE_CAUGHT] = "caught",
                                        [RACE_NOT_CAUGHT] = "not caught"};
    return texts[verdict];
}

/* ---- which strategies ---- */

#define STRATEGIES_MAX 16

struct plan {
    const struct strategy *strategies[STRATEGIES_MAX];
    size_t n;
    bool with_holdfast; /* it is among them */
};

static bool is_named(const char *names, const char *name)
{
    size_t len = strlen(name);
    if (strcmp(names, "all") == 0)
        return true;
    for (const char *at = names; *at;) {
        size_t part = strcspn(at, ",");
        if (part == len && strncmp(at, name, len) == 0)
            return true;
        at += part + (at[part] == ',');
    }
    return false;
}

static bool is_strategy(const char *name, size_t len)
{
    for (const struct strategy *const *s = strategies; *s; s++)
        if (strlen((*s)->name) == len && strncmp((*s)->name, name, len) == 0)
            return true;
    return strlen(strategy_holdfast.name) == len && strncmp(strategy_holdfast.name, name, len) == 0;
}

static enum hf_status check_settings(const struct race_settings *s, struct hf_err *err)
{
    bool all = strcmp(s->strategies, "all") == 0;
    for (const char *at = s->strategies; !all && (at == s->strategies || *at);) {
        size_t len = strcspn(at, ",");
        if (!is_strategy(at, len))
            return hf_err_set(err, HF_INVALID_REQUEST, "there is no strategy %.*s", (int)len, at);
        at += len + (at[len] == ',');
    }
    if (s->n_users == 0 || s->tries < 1 || s->seats < 1 || s->seats > RACE_SEATS_MAX ||
        s->retries < 0 || s->retries > RACE_RETRIES_MAX)
        return hf_err_set(err, HF_INVALID_REQUEST,
                          "users, seats, tries or retries are out of range");
    for (size_t i = 0; i < s->n_users; i++)
        if (s->users[i] < 1 || s->users[i] > RACE_USERS_MAX)
            return hf_err_set(err, HF_INVALID_REQUEST, "%d users are out of range", s->users[i]);
    return HF_OK;
}

static const struct strategy *on_sqlite(const char *name)
{
    for (const struct strategy *const *s = strategies_sqlite; *s; s++)
        if (strcmp((*s)->name, name) == 0)
            return *s;
    return NULL;
}

/* Why a strategy cannot run on SQLite. */
static const char *not_on_sqlite(const struct strategy *s)
{
    if (s->needs & STRATEGY_NEEDS_REDIS)
        return "needs Redis and PostgreSQL";
    return "SQLite locks the whole file and no rows";
}

static void make_plan(const struct race_settings *s, const struct lab_venue *v, struct plan *ret,
                      struct race_result *result)
{
    result->skips = hf_alloc(STRATEGIES_MAX * sizeof *result->skips);
    *ret = (struct plan){0};
    for (const struct strategy *const *at = strategies; *at; at++) {
        const struct strategy *strategy = v->on_postgres ? *at : on_sqlite((*at)->name);
        const char *why = NULL;
        if (!strategy)
            why = not_on_sqlite(*at);
        else if ((strategy->needs & STRATEGY_NEEDS_REDIS) && !v->settings.redis)
            why = "needs Redis";
        if (!is_named(s->strategies, (*at)->name))
            continue;
        if (why)
            result->skips[result->n_skips++] = (struct race_skip){(*at)->name, why};
        else
            ret->strategies[ret->n++] = strategy;
    }
    ret->with_holdfast = is_named(s->strategies, strategy_holdfast.name);
    if (ret->with_holdfast)
        ret->strategies[ret->n++] = &strategy_holdfast;
}

/* ---- the heats ---- */

struct reporter {
    const struct race_settings *settings;
    struct race_progress progress;
};

static void report(const struct reporter *r)
{
    if (r->settings->progress)
        r->settings->progress(r->settings->progress_ctx, &r->progress);
}

static void report_answered(void *ctx, int answered)
{
    struct reporter *r = ctx;
    r->progress.done = answered;
    report(r);
}

/* Called before a server is started.  Returns false if the race is to stop. */
static bool report_step(void *ctx, const char *what)
{
    struct reporter *r = ctx;
    r->progress.what = what;
    report(r);
    return !(r->settings->stop && *r->settings->stop);
}

/* A strategy that promises nothing runs until it is caught. */
static enum hf_status run_one(struct reporter *r, const struct lab_venue *v,
                              const struct strategy *strategy, int users, struct race_run *ret,
                              struct hf_err *err)
{
    const struct race_settings *s = r->settings;
    struct heat_settings heat = {.strategy = strategy,
                                 .back_ends = &v->settings,
                                 .users = users,
                                 .seats = s->seats,
                                 .retries = s->retries,
                                 .seed = s->seed,
                                 .stop = s->stop,
                                 .progress = report_answered,
                                 .ctx = r};
    int tries = strategy->correct ? 1 : s->tries;
    for (int i = 1; i <= tries; i++) {
        r->progress.strategy = strategy->name;
        r->progress.users = users;
        r->progress.done = 0;
        r->progress.try_number = i;
        r->progress.tries = tries;
        report(r);
        enum hf_status status = heat_run(&heat, ret, err);
        if (status != HF_OK)
            return status;
        ret->tries = i;
        if (ret->verdict == RACE_CAUGHT)
            break;
    }
    return HF_OK;
}

static bool judge(const struct race_result *result)
{
    for (size_t i = 0; i < result->n_runs; i++) {
        bool caught = false;
        const struct race_run *run = &result->runs[i];
        for (size_t k = 0; k < result->n_runs; k++)
            caught = caught || (result->runs[k].strategy == run->strategy &&
                                result->runs[k].verdict == RACE_CAUGHT);
        if (run->verdict == RACE_BROKEN || (!run->strategy->correct && !caught))
            return false;
    }
    return result->n_runs > 0;
}

static enum hf_status run_all(struct reporter *r, struct lab_venue *v, struct race_result *result,
                              struct hf_err *err)
{
    const struct race_settings *s = r->settings;
    struct plan plan;
    make_plan(s, v, &plan, result);
    if (plan.n == 0)
        return hf_err_set(err, HF_INVALID_REQUEST, "%s: %s", result->skips[0].strategy,
                          result->skips[0].why);
    if (plan.with_holdfast) {
        if (!report_step(r, "starting holdfastd"))
            return HF_DRAINING;
        enum hf_status status = venue_start_holdfastd(v, err);
        if (status != HF_OK)
            return status;
    }
    r->progress.n_runs = plan.n * s->n_users;
    result->runs = hf_alloc(r->progress.n_runs * sizeof *result->runs);
    for (size_t i = 0; i < plan.n; i++)
        for (size_t k = 0; k < s->n_users; k++) {
            enum hf_status status =
                run_one(r, v, plan.strategies[i], s->users[k], &result->runs[result->n_runs], err);
            if (status != HF_OK)
                return status;
            r->progress.run = ++result->n_runs;
        }
    return HF_OK;
}

/* Opens the venue and fills `result`; the caller closes both. */
static enum hf_status run_at(struct lab_venue *v, const struct race_settings *settings,
                             struct race_result *result, struct hf_err *err)
{
    struct reporter reporter = {.settings = settings};
    enum hf_status status =
        venue_open(v, settings->ledger, settings->gate, report_step, &reporter, err);
    if (status != HF_OK)
        return status;
    machine_read(&result->machine);
    result->versions = v->versions;
    result->on_postgres = v->on_postgres;
    result->with_gate = v->settings.redis != NULL;
    result->retries = settings->retries;
    memcpy(result->note, v->note, sizeof result->note);
    return run_all(&reporter, v, result, err);
}

enum hf_status race_run(const struct race_settings *settings, struct race_result *ret,
                        struct hf_err *err)
{
    struct race_result result = {.at_ms = clock_wall_us(&clock_system) / 1000};
    enum hf_status status = check_settings(settings, err);
    if (status != HF_OK)
        return status;
    struct lab_venue *v = hf_alloc(sizeof *v);
    status = run_at(v, settings, &result, err);
    venue_close(v);
    free(v);
    if (status != HF_OK) {
        race_result_close(&result);
        /* A stop can look like the failure of a server. */
        bool stopped = settings->stop && *settings->stop;
        return stopped ? hf_err_set(err, HF_DRAINING, "stopped") : status;
    }
    result.ok = judge(&result);
    *ret = result;
    return HF_OK;
}

void race_result_close(struct race_result *result)
{
    free(result->runs);
    free(result->skips);
    *result = (struct race_result){0};
}
