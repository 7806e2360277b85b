/* The way from src/lock to a driver: every request is checked here, once for all drivers, before
 * anything is sent.  A mistake is thus reported in the same words whatever the coordinator, and
 * never halfway through a batch.  No state; any thread that owns the handle. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/utf8.h"
#include "base/wait.h"
#include "lease/lease.h"

/* ---- checks ---- */

/* Characters below U+0020, DEL, and the C1 controls U+0080 to U+009F. */
static bool is_control(const unsigned char *p)
{
    return p[0] < 0x20 || p[0] == 0x7f || (p[0] == 0xc2 && p[1] < 0xa0);
}

static enum hf_result check_text(const char *what, const char *text, size_t len,
                                 struct hf_fault *fault)
{
    const unsigned char *p = (const void *)text;
    for (size_t i = 0, step; i < len; i += step) {
        step = 1;
        if (p[i] >= 0x20 && p[i] < 0x7f)
            continue;
        step = utf8_char_len(text + i, len - i);
        if (step == 0)
            return fault_set(fault, HF_BAD_REQUEST, "%s is not UTF-8 at byte %zu", what, i + 1);
        if (is_control(p + i))
            return fault_set(fault, HF_BAD_REQUEST, "%s has a control character at byte %zu", what,
                             i + 1);
    }
    return HF_DONE;
}

enum hf_result lease_check_key(const struct hf_driver_info *info, const char *key, size_t key_len,
                               struct hf_fault *fault)
{
    if (key_len == 0)
        return fault_set(fault, HF_BAD_REQUEST, "the name of the lock is empty");
    if (key_len > info->name_len_max)
        return fault_set(fault, HF_BAD_REQUEST,
                         "the name of the lock has %zu bytes; %s takes at most %zu", key_len,
                         info->name, info->name_len_max);
    return check_text("the name of the lock", key, key_len, fault);
}

static enum hf_result check_ttl(const struct lease *l, int64_t ttl_ms, struct hf_fault *fault)
{
    const struct hf_driver_info *info = &l->driver->info;
    int64_t min_ms = lease_ttl_min_ms(l), max_ms = lease_ttl_max_ms(l);
    if (ttl_ms >= min_ms && ttl_ms <= max_ms)
        return HF_DONE;
    char given[DURATION_TEXT_SIZE], least[DURATION_TEXT_SIZE], most[DURATION_TEXT_SIZE];
    return fault_set(fault, HF_BAD_REQUEST, "a TTL of %s; %s takes %s to %s",
                     duration_text(given, ttl_ms), info->name, duration_text(least, min_ms),
                     duration_text(most, max_ms));
}

static enum hf_result check_label(const struct lease_request *r, struct hf_fault *fault)
{
    if (!r->label)
        return HF_DONE;
    if (r->label_len > LEASE_LABEL_MAX)
        return fault_set(fault, HF_BAD_REQUEST, "the label has %zu bytes, more than %d",
                         r->label_len, LEASE_LABEL_MAX);
    return check_text("the label", r->label, r->label_len, fault);
}

static enum hf_result check_value(const struct lease_request *r, struct hf_fault *fault)
{
    if (r->value && (r->value_len < 1 || r->value_len > LEASE_VALUE_MAX))
        return fault_set(fault, HF_BAD_REQUEST, "the value has %zu bytes; 1 to %d can be",
                         r->value_len, LEASE_VALUE_MAX);
    for (size_t i = 0, step; r->value && i < r->value_len; i += step) {
        step = utf8_char_len(r->value + i, r->value_len - i);
        if (step == 0 || !r->value[i])
            return fault_set(fault, HF_BAD_REQUEST, "the value is not UTF-8 at byte %zu", i + 1);
    }
    return HF_DONE;
}

/* Whether the driver declares what the request needs. */
static enum hf_result check_capabilities(const struct hf_driver_info *info,
                                         const struct lease_request *r, struct hf_fault *fault)
{
    if (r->mode == HF_SHARED && !info->shared)
        return fault_set(fault, HF_UNSUPPORTED, "%s has no shared locks", info->name);
    if (r->slots > 1 && !info->slots)
        return fault_set(fault, HF_UNSUPPORTED, "%s has no slots", info->name);
    if (r->priority != 0 && !info->priority)
        return fault_set(fault, HF_UNSUPPORTED, "%s has no priorities", info->name);
    if (r->value && !(info->traits & HF_TRAIT_VALUES))
        return fault_set(fault, HF_UNSUPPORTED, "%s stores no values", info->name);
    return HF_DONE;
}

enum hf_result lease_check(const struct lease *l, const struct lease_request *r,
                           struct hf_fault *fault)
{
    const struct hf_driver_info *info = &l->driver->info;
    enum hf_result result;
    if ((result = lease_check_key(info, r->key, r->key_len, fault)) != HF_DONE ||
        (result = check_ttl(l, r->ttl_ms, fault)) != HF_DONE)
        return result;
    if (r->mode != HF_EXCLUSIVE && r->mode != HF_SHARED)
        return fault_set(fault, HF_BAD_REQUEST, "there is no mode %d", (int)r->mode);
    if (r->slots < 1 || r->slots > LEASE_SLOTS_MAX)
        return fault_set(fault, HF_BAD_REQUEST, "%u slots; 1 to %d can be", r->slots,
                         LEASE_SLOTS_MAX);
    if ((result = check_label(r, fault)) != HF_DONE || (result = check_value(r, fault)) != HF_DONE)
        return result;
    return check_capabilities(info, r, fault);
}

/* ---- calls ---- */

enum hf_result lease_open(const struct lease_driver *driver, const char *url,
                          const struct lease_options *options, struct lease **ret,
                          struct hf_fault *fault)
{
    struct lease_options checked = *options;
    if (checked.timeout_ms <= 0)
        checked.timeout_ms = LEASE_TIMEOUT_MS;
    if (checked.timeout_ms > LEASE_TIMEOUT_MAX_MS)
        checked.timeout_ms = LEASE_TIMEOUT_MAX_MS;
    struct lease *l = NULL;
    enum hf_result result = driver->open(url, &checked, &l, fault);
    if (result != HF_DONE)
        return result;
    l->driver = driver;
    l->wake_fd = -1;
    *ret = l;
    return HF_DONE;
}

void lease_close(struct lease *l)
{
    if (l)
        l->driver->close(l);
}

enum hf_result lease_clone(struct lease *l, struct lease **ret, struct hf_fault *fault)
{
    struct lease *other = NULL;
    enum hf_result result = l->driver->clone(l, &other, fault);
    if (result != HF_DONE)
        return result;
    other->driver = l->driver;
    other->wake_fd = -1;
    *ret = other;
    return HF_DONE;
}

enum hf_result lease_acquire(struct lease *l, const struct lease_request *request,
                             struct lease_verdict *verdict, struct hf_fault *fault)
{
    enum hf_result result = lease_check(l, request, fault);
    return result == HF_DONE ? l->driver->acquire(l, request, verdict, fault) : result;
}

enum hf_result lease_renew(struct lease *l, const struct lease_request *requests, size_t n,
                           struct lease_verdict *verdicts, struct hf_fault *fault)
{
    const struct hf_driver_info *info = &l->driver->info;
    for (size_t i = 0; i < n; i++) {
        enum hf_result result;
        if ((result = lease_check_key(info, requests[i].key, requests[i].key_len, fault)) !=
                HF_DONE ||
            (result = check_ttl(l, requests[i].ttl_ms, fault)) != HF_DONE)
            return result;
    }
    return l->driver->renew(l, requests, n, verdicts, fault);
}

enum hf_result lease_release(struct lease *l, const struct lease_request *requests, size_t n,
                             struct lease_verdict *verdicts, struct hf_fault *fault)
{
    for (size_t i = 0; i < n; i++) {
        enum hf_result result =
            lease_check_key(&l->driver->info, requests[i].key, requests[i].key_len, fault);
        if (result != HF_DONE)
            return result;
    }
    return l->driver->release(l, requests, n, verdicts, fault);
}

enum hf_result lease_wait(struct lease *l, const struct lease_request *request, int64_t timeout_ms,
                          struct hf_fault *fault)
{
    enum hf_result result =
        lease_check_key(&l->driver->info, request->key, request->key_len, fault);
    if (result != HF_DONE)
        return result;
    timeout_ms = timeout_ms < 0 ? 0 : timeout_ms;
    timeout_ms = timeout_ms < LEASE_WAIT_MAX_MS ? timeout_ms : LEASE_WAIT_MAX_MS;
    return l->driver->wait(l, request, timeout_ms, fault);
}

enum hf_result lease_inspect(struct lease *l, const char *key, size_t key_len,
                             struct lease_state *ret, struct hf_fault *fault)
{
    enum hf_result result = lease_check_key(&l->driver->info, key, key_len, fault);
    return result == HF_DONE ? l->driver->inspect(l, key, key_len, ret, fault) : result;
}

enum hf_result lease_list(struct lease *l, const char *prefix, size_t prefix_len,
                          lease_each_name *each, void *ctx, struct hf_fault *fault)
{
    enum hf_result result = HF_DONE;
    if (prefix_len)
        result = lease_check_key(&l->driver->info, prefix, prefix_len, fault);
    return result == HF_DONE ? l->driver->list(l, prefix, prefix_len, each, ctx, fault) : result;
}

enum hf_result lease_break(struct lease *l, const char *key, size_t key_len, struct hf_fault *fault)
{
    enum hf_result result = lease_check_key(&l->driver->info, key, key_len, fault);
    return result == HF_DONE ? l->driver->break_(l, key, key_len, fault) : result;
}

enum hf_result lease_examine(struct lease *l, lease_each_finding *each, void *ctx,
                             struct hf_fault *fault)
{
    return l->driver->examine ? l->driver->examine(l, each, ctx, fault) : HF_DONE;
}

/* ---- for the drivers ---- */

void lease_finding(lease_each_finding *each, void *ctx, enum hf_grade grade, const char *topic,
                   const char *fmt, ...)
{
    char text[500];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    const struct hf_finding finding = {
        .size = sizeof finding, .grade = grade, .topic = topic, .text = text};
    each(ctx, &finding);
}

enum hf_result lease_slots_differ(unsigned asked, int64_t others, struct hf_fault *fault)
{
    return fault_set(fault, HF_BAD_REQUEST, "%u slots asked for, but others say %" PRId64, asked,
                     others);
}

bool lease_is_woken(const struct lease *l)
{
    struct pollfd file = {.fd = l->wake_fd, .events = POLLIN};
    return l->wake_fd >= 0 && wait_files(&file, 1, 0) > 0;
}

void lease_state_close(struct lease_state *state)
{
    free(state->holders);
    free(state->waiters);
    free(state->value);
    *state = (struct lease_state){0};
}
