/* See faults.h. */
#include "sandbox/faults.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#define HOLD_MS_DEFAULT 30000
#define LATER_MS_DEFAULT 500
#define TIMES_MAX 1000000

static const char *const mode_names[] = {
    [FAULT_FAIL] = "500",
    [FAULT_TIMEOUT_BEFORE] = "timeout_before",
    [FAULT_TIMEOUT_AFTER] = "timeout_after",
    [FAULT_RATE_LIMIT] = "429",
    [FAULT_RESET] = "reset",
};

static const char *const routes[] = {"create", "update", "confirm",  "capture",
                                     "cancel", "refund", "retrieve", NULL};

void faults_init(struct faults *f)
{
    *f =
        (struct faults){.hold_ms = HOLD_MS_DEFAULT, .later_ms = LATER_MS_DEFAULT, .webhooks = true};
}

/* ---- JSON ---- */

/* The members that are a chance, a time, or a range of times. */
static double *chance_member(struct faults *f, const char *name)
{
    struct {
        const char *name;
        double *at;
    } const members[] = {{"fail", &f->fail},
                         {"timeout_before", &f->timeout_before},
                         {"timeout_after", &f->timeout_after},
                         {"rate_limit", &f->rate_limit},
                         {"processing", &f->processing},
                         {"webhook_drop", &f->webhook_drop},
                         {"webhook_duplicate", &f->webhook_duplicate},
                         {"webhook_reorder", &f->webhook_reorder}};
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        if (strcmp(members[i].name, name) == 0)
            return members[i].at;
    return NULL;
}

static bool read_ms(const json_t *value, int64_t *ret)
{
    json_int_t ms = json_is_integer(value) ? json_integer_value(value) : -1;
    if (ms < 0 || ms > FAULT_MS_MAX)
        return false;
    *ret = ms;
    return true;
}

static bool read_range(const json_t *value, int64_t ret[2])
{
    int64_t range[2];
    if (json_array_size(value) != 2 || !read_ms(json_array_get(value, 0), &range[0]) ||
        !read_ms(json_array_get(value, 1), &range[1]) || range[0] > range[1])
        return false;
    memcpy(ret, range, sizeof range);
    return true;
}

static bool read_next(struct faults *f, json_t *value)
{
    const char *route = NULL, *mode = NULL;
    json_int_t times = 1;
    if (json_is_null(value)) {
        f->n_next = 0;
        return true;
    }
    if (f->n_next == FAIL_NEXT_MAX ||
        json_unpack(value, "{s:s, s:s, s?I !}", "route", &route, "mode", &mode, "times", &times) ||
        times < 1 || times > TIMES_MAX)
        return false;
    const char *const *known = routes;
    while (*known && strcmp(*known, route) != 0)
        known++;
    if (!*known)
        return false;
    for (int i = FAULT_FAIL; i <= FAULT_RESET; i++) {
        if (strcmp(mode_names[i], mode) != 0)
            continue;
        struct fail_next *next = &f->next[f->n_next++];
        *next = (struct fail_next){.mode = (enum order_fault)i, .times = times};
        (void)snprintf(next->route, sizeof next->route, "%s", route);
        return true;
    }
    return false;
}

static bool read_member(struct faults *f, const char *name, json_t *value)
{
    double *probability = chance_member(f, name);
    if (probability) {
        double p = json_is_number(value) ? json_number_value(value) : -1;
        *probability = p;
        return p >= 0 && p <= 1;
    }
    if (strcmp(name, "delay_ms") == 0)
        return read_range(value, f->delay_ms);
    if (strcmp(name, "webhook_delay_ms") == 0)
        return read_range(value, f->webhook_delay_ms);
    if (strcmp(name, "hold_ms") == 0)
        return read_ms(value, &f->hold_ms);
    if (strcmp(name, "later_ms") == 0)
        return read_ms(value, &f->later_ms);
    if (strcmp(name, "webhooks") == 0) {
        f->webhooks = json_is_true(value);
        return json_is_boolean(value);
    }
    if (strcmp(name, "seed") == 0) {
        f->seed = (uint64_t)json_integer_value(value);
        return json_is_integer(value) && json_integer_value(value) >= 0;
    }
    return strcmp(name, "fail_next") == 0 && read_next(f, value);
}

bool faults_parse(struct faults *f, const char *json, size_t len, struct hf_err *err)
{
    struct faults changed = *f;
    json_error_t error;
    json_t *all = json_loadb(json, len, JSON_REJECT_DUPLICATES, &error);
    bool ok = json_is_object(all);
    if (!ok)
        (void)hf_err_set(err, HF_INVALID_REQUEST, "The body must be a JSON object.");
    const char *name;
    json_t *value;
    json_object_foreach(all, name, value)
    {
        if (!ok || read_member(&changed, name, value))
            continue;
        (void)hf_err_set(err, HF_INVALID_REQUEST, "Unknown fault or invalid value: %.60s", name);
        ok = false;
    }
    json_decref(all);
    if (ok)
        *f = changed;
    return ok;
}

void faults_render(const struct faults *f, struct buf *out)
{
    buf_printf(out,
               "{\"fail\":%g,\"timeout_before\":%g,\"timeout_after\":%g,\"rate_limit\":%g,"
               "\"processing\":%g,"
               "\"delay_ms\":[%lld,%lld],\"hold_ms\":%lld,\"later_ms\":%lld,\"webhooks\":%s,"
               "\"webhook_drop\":%g,\"webhook_duplicate\":%g,\"webhook_reorder\":%g,"
               "\"webhook_delay_ms\":[%lld,%lld],\"seed\":%llu,\"fail_next\":[",
               f->fail, f->timeout_before, f->timeout_after, f->rate_limit, f->processing,
               (long long)f->delay_ms[0], (long long)f->delay_ms[1], (long long)f->hold_ms,
               (long long)f->later_ms, f->webhooks ? "true" : "false", f->webhook_drop,
               f->webhook_duplicate, f->webhook_reorder, (long long)f->webhook_delay_ms[0],
               (long long)f->webhook_delay_ms[1], (unsigned long long)f->seed);
    for (size_t i = 0; i < f->n_next; i++)
        buf_printf(out, "%s{\"route\":\"%s\",\"mode\":\"%s\",\"times\":%lld}", i ? "," : "",
                   f->next[i].route, mode_names[f->next[i].mode], (long long)f->next[i].times);
    buf_lit(out, "]}");
}

/* ---- chances ---- */

#define CHANCE_STEPS 1000000000

bool chance(struct random *random, double probability)
{
    return probability > 0 &&
           (double)random_below(random, CHANCE_STEPS) < probability * (double)CHANCE_STEPS;
}

int64_t chance_within(struct random *random, const int64_t range[2])
{
    if (range[1] <= range[0])
        return range[0];
    return range[0] + (int64_t)random_below(random, (uint64_t)(range[1] - range[0]) + 1);
}

static bool take_next(struct faults *f, const char *operation, enum order_fault *ret)
{
    for (size_t i = 0; i < f->n_next; i++) {
        if (strcmp(f->next[i].route, operation) != 0)
            continue;
        *ret = f->next[i].mode;
        if (--f->next[i].times == 0) {
            f->n_next--;
            memmove(&f->next[i], &f->next[i + 1], (f->n_next - i) * sizeof *f->next);
        }
        return true;
    }
    return false;
}

enum order_fault faults_draw(struct faults *f, struct random *random, const char *operation,
                             bool by_secret_key)
{
    enum order_fault fault = FAULT_NONE;
    if (take_next(f, operation, &fault) || !by_secret_key)
        return fault;
    if (chance(random, f->rate_limit))
        return FAULT_RATE_LIMIT;
    if (chance(random, f->fail))
        return FAULT_FAIL;
    if (chance(random, f->timeout_before))
        return FAULT_TIMEOUT_BEFORE;
    return chance(random, f->timeout_after) ? FAULT_TIMEOUT_AFTER : FAULT_NONE;
}
