/* See wire.h. */
#include "lease/holdfast/wire.h"

#include <stdio.h>
#include <string.h>

#include "base/json_put.h"

#define PRIORITY_MAX 1000000

/* ---- requests ---- */

static void put_name(struct buf *b, const struct client_message *m)
{
    buf_lit(b, "/v1/locks/");
    buf_percent(b, m->name);
}

static void put_owner(struct buf *b, const struct client_message *m)
{
    char owner[2 * LEASE_OWNER_SIZE + 1];
    hex_format(m->owner, sizeof m->owner, owner);
    buf_printf(b, "{\"session\":\"%s\",\"owner\":\"%s\"", m->session, owner);
}

static void put_acquire(struct buf *b, const struct client_message *m)
{
    int priority = m->priority > PRIORITY_MAX    ? PRIORITY_MAX
                   : m->priority < -PRIORITY_MAX ? -PRIORITY_MAX
                                                 : m->priority;
    put_owner(b, m);
    json_put_text(b, "agent", m->agent);
    if (m->mode == HF_SHARED)
        json_put_text(b, "mode", "shared");
    if (m->slots > 1 && m->mode != HF_SHARED)
        json_put_int(b, "slots", m->slots);
    if (priority)
        json_put_int(b, "priority", priority);
    if (m->mode == HF_SHARED)
        json_put_bool(b, "cache", m->cache);
    if (m->wait_ms)
        buf_printf(b, ",\"wait_ms\":%lld,\"claim_ms\":%lld,\"claim\":true", (long long)m->wait_ms,
                   (long long)m->claim_ms);
    if (m->label_len)
        json_put_bytes(b, "label", m->label, m->label_len);
    if (m->value)
        json_put_bytes(b, "value", m->value, m->value_len);
    buf_char(b, '}');
}

const char *wire_request(const struct client_message *m, struct buf *path, struct buf *body)
{
    const char *method = "POST";
    path->len = body->len = 0;
    switch (m->kind) {
    case CLIENT_OPEN:
        buf_lit(path, "/v1/sessions");
        buf_printf(body, "{\"ttl_ms\":%lld", (long long)m->ttl_ms);
        if (m->label_len)
            json_put_bytes(body, "label", m->label, m->label_len);
        buf_char(body, '}');
        break;
    case CLIENT_KEEPALIVE:
        buf_printf(path, "/v1/sessions/%s/keepalive", m->session);
        break;
    case CLIENT_CLOSE:
        buf_printf(path, "/v1/sessions/%s", m->session);
        method = "DELETE";
        break;
    case CLIENT_ACQUIRE:
        put_name(path, m);
        put_acquire(body, m);
        break;
    case CLIENT_RELEASE:
        put_name(path, m);
        buf_lit(path, "/release");
        put_owner(body, m);
        buf_char(body, '}');
        break;
    }
    buf_char(path, '\0');
    path->len--;
    return method;
}

/* ---- answers ---- */

static const char *text_of(const json_t *json, const char *name)
{
    const char *text = json_string_value(json_object_get(json, name));
    return text ? text : "";
}

static int64_t number_of(const json_t *json, const char *name)
{
    return json_integer_value(json_object_get(json, name));
}

/* "a awaits jobs, held by b, which awaits ...", as much as fits. */
static void put_cycle(const json_t *json, struct hf_fault *fault)
{
    const json_t *cycle = json_object_get(json, "cycle"), *one;
    char text[200] = "";
    size_t i, len = 0;
    json_array_foreach(cycle, i, one)
    {
        const char *label = text_of(one, "label");
        if (len < sizeof text)
            len += (size_t)snprintf(text + len, sizeof text - len, "%s%s%s%s%s", i ? " -> " : "",
                                    text_of(one, "name"), *label ? " (" : "", label,
                                    *label ? ")" : "");
    }
    (void)fault_set(fault, HF_DEADLOCK, "to wait would be a deadlock: %s", text);
}

static enum hf_result refusal_of(int status)
{
    if (status == 400 || status == 413 || status == 422)
        return HF_BAD_REQUEST;
    if (status == 410)
        return HF_LOST;
    return HF_UNREACHABLE;
}

static void put_problem(const json_t *json, int status, struct hf_fault *fault)
{
    const char *title = text_of(json, "title"), *detail = text_of(json, "detail");
    if (status == 401 || status == 403)
        (void)fault_set(fault, HF_UNREACHABLE,
                        "the lock service refuses this access key: %s (HOLDFAST_KEY, or KEY@ in "
                        "the URL)",
                        *title ? title : "no reason given");
    else
        (void)fault_set(fault, refusal_of(status), "the lock service answers %d: %.90s %.120s",
                        status, *title ? title : "no reason given", detail);
}

static enum client_result refusal(const struct client_message *m, int status, const json_t *json,
                                  struct wire_answer *ret)
{
    const char *code = text_of(json, "code");
    if (status == 502 || status == 504 || strcmp(code, "outcome_unknown") == 0) {
        put_problem(json, status, &ret->fault);
        return CLIENT_NO_ANSWER;
    }
    if (!m || status == 307 || status == 503) {
        put_problem(json, status, &ret->fault);
        return status == 307 || status == 503 ? CLIENT_NOT_DONE : CLIENT_REFUSED;
    }
    if (strcmp(code, "lock_taken") == 0) {
        ret->answer.position = (size_t)number_of(json, "position");
        return CLIENT_TAKEN;
    }
    if (strcmp(code, "session_expired") == 0 || strcmp(code, "no_such_session") == 0)
        return CLIENT_GONE;
    if (strcmp(code, "lock_lost") == 0)
        return CLIENT_LOST;
    if (strcmp(code, "deadlock") == 0) {
        put_cycle(json, &ret->fault);
        return CLIENT_DEADLOCK;
    }
    if (strcmp(code, "slots_conflict") == 0)
        (void)lease_slots_differ(m->slots, number_of(json, "slots"), &ret->fault);
    else if (strcmp(code, "mode_conflict") == 0)
        (void)fault_set(&ret->fault, HF_BAD_REQUEST, "the owner has asked for it in another mode");
    else
        put_problem(json, status, &ret->fault);
    return CLIENT_REFUSED;
}

static bool read_done(const struct client_message *m, const json_t *json, struct wire_answer *ret)
{
    struct client_answer *a = &ret->answer;
    const char *id = text_of(json, "id");
    const json_t *wanted = json_object_get(json, "wanted"), *name;
    size_t i;
    switch (m->kind) {
    case CLIENT_OPEN:
        a->ttl_ms = number_of(json, "ttl_ms");
        if (strlen(id) < 8 || strlen(id) >= sizeof a->session)
            return false;
        memcpy(a->session, id, strlen(id) + 1);
        return a->ttl_ms > 0;
    case CLIENT_KEEPALIVE:
        a->ttl_ms = number_of(json, "ttl_ms");
        json_array_foreach(wanted, i, name)
        {
            if (json_is_string(name) && a->n_wanted < CLIENT_WANTED_MAX)
                ret->wanted[a->n_wanted++] = json_string_value(name);
        }
        a->wanted = ret->wanted;
        return a->ttl_ms > 0;
    case CLIENT_ACQUIRE:
        a->fence = number_of(json, "fence");
        a->slot = (unsigned)number_of(json, "slot");
        a->is_unclaimed = json_is_false(json_object_get(json, "claimed"));
        return a->fence > 0;
    case CLIENT_RELEASE:
    case CLIENT_CLOSE:
        return true;
    }
    return false;
}

enum client_result wire_answer(const struct client_message *m, const struct http_response *response,
                               struct wire_answer *ret)
{
    ret->json =
        json_loadb(response->body.data ? response->body.data : "", response->body.len, 0, NULL);
    if (response->status / 100 != 2) {
        ret->answer.result = refusal(m, response->status, ret->json, ret);
    } else if (m && !read_done(m, ret->json, ret)) {
        (void)fault_set(&ret->fault, HF_UNKNOWN, "the answer is not that of a lock service");
        ret->answer.result = CLIENT_NO_ANSWER;
    } else {
        ret->answer.result = CLIENT_DONE;
    }
    return ret->answer.result;
}

void wire_answer_close(struct wire_answer *a)
{
    json_decref(a->json);
    *a = (struct wire_answer){0};
}
