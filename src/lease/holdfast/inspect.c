/* Inspecting, listing, breaking and examining: what the service says about its locks and about
 * itself.  Runs on the callers' threads. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lease/holdfast/handle.h"

#define PAGE 100

/* ---- inspecting ---- */

static void put_text(char *ret, size_t size, const json_t *from, const char *name)
{
    const char *text = json_string_value(json_object_get(from, name));
    snprintf(ret, size, "%s", text ? text : "");
}

static int64_t number_or(const json_t *from, const char *name, int64_t other)
{
    const json_t *number = json_object_get(from, name);
    return json_is_integer(number) ? json_integer_value(number) : other;
}

/* The caller's own name for an acquisition of this process, and the end of its lease, which may
 * come before that of the session. */
static void put_own(struct handle *h, const char *key, size_t key_len, struct hf_holder *ret)
{
    uint8_t owner[LEASE_OWNER_SIZE];
    for (size_t i = 0; i < sizeof owner; i++)
        owner[i] = (uint8_t)(16 * hex_digit(ret->owner[2 * i]) + hex_digit(ret->owner[2 * i + 1]));
    struct service *s = h->service;
    pthread_mutex_lock(&s->mutex);
    for (size_t i = 0; i < SERVICE_SESSIONS_MAX; i++) {
        const struct client *c = s->sessions[i].client;
        const struct client_lease *l = c ? client_find_claim(c, key, key_len, owner) : NULL;
        if (!l)
            continue;
        lease_owner_text(client_lease_owner(l), ret->owner);
        if (client_lease_is_granted(l) && ret->fence)
            ret->remaining_ms = handle_left_ms(h, l);
    }
    pthread_mutex_unlock(&s->mutex);
}

static void read_person(struct handle *h, const char *key, size_t key_len, const json_t *from,
                        bool holds, struct hf_holder *ret)
{
    const char *mode = json_string_value(json_object_get(from, "mode"));
    put_text(ret->owner, sizeof ret->owner, from, "owner");
    put_text(ret->label, sizeof ret->label, from, "label");
    ret->mode = mode && strstr(mode, "shared") ? HF_SHARED : HF_EXCLUSIVE;
    ret->priority = (int)number_or(from, "priority", 0);
    ret->fence = number_or(from, "fence", 0);
    ret->slot = number_or(from, "slot", 0);
    ret->held_ms = holds ? number_or(from, "held_ms", -1) : -1;
    ret->remaining_ms = number_or(from, "remaining_ms", holds ? -1 : WAITER_SILENT_MS);
    if (strlen(ret->owner) == 2 * LEASE_OWNER_SIZE)
        put_own(h, key, key_len, ret);
}

static struct hf_holder *read_people(struct handle *h, const char *key, size_t key_len,
                                     const json_t *list, bool holds, size_t *ret_n)
{
    size_t n = json_array_size(list);
    struct hf_holder *people = n ? hf_alloc(n * sizeof *people) : NULL;
    for (size_t i = 0; i < n; i++)
        read_person(h, key, key_len, json_array_get(list, i), holds, &people[i]);
    *ret_n = n;
    return people;
}

static void put_path(struct buf *path, const char *key, size_t key_len, const char *rest)
{
    char name[LEASE_NAME_MAX + 1] = {0};
    memcpy(name, key, key_len);
    buf_lit(path, "/v1/locks/");
    buf_percent(path, name);
    buf_str(path, rest);
    buf_char(path, '\0');
}

enum hf_result holdfast_inspect(struct lease *l, const char *key, size_t key_len,
                                struct lease_state *ret, struct hf_fault *fault)
{
    struct handle *h = handle_of(l);
    struct buf path = {0};
    json_t *json;
    put_path(&path, key, key_len, "");
    enum hf_result result = service_call(h->service, "GET", path.data, true, &json, fault);
    buf_close(&path);
    if (result != HF_DONE)
        return result;
    *ret = (struct lease_state){.last_fence = number_or(json, "last_fence", 0)};
    ret->holders =
        read_people(h, key, key_len, json_object_get(json, "holders"), true, &ret->n_holders);
    ret->waiters =
        read_people(h, key, key_len, json_object_get(json, "waiters"), false, &ret->n_waiters);
    const char *value = json_string_value(json_object_get(json, "value"));
    if (value)
        ret->value = hf_strndup(value, strlen(value));
    json_decref(json);
    return HF_DONE;
}

/* ---- listing ---- */

static void put_list_path(struct buf *path, const char *prefix, size_t prefix_len,
                          const char *cursor)
{
    char text[LEASE_NAME_MAX + 1] = {0};
    memcpy(text, prefix, prefix_len);
    path->len = 0;
    buf_printf(path, "/v1/locks?limit=%d", PAGE);
    if (prefix_len) {
        buf_lit(path, "&prefix=");
        buf_percent(path, text);
    }
    if (cursor) {
        buf_lit(path, "&cursor=");
        buf_percent(path, cursor);
    }
    buf_char(path, '\0');
}

enum hf_result holdfast_list(struct lease *l, const char *prefix, size_t prefix_len,
                             lease_each_name *each, void *ctx, struct hf_fault *fault)
{
    struct handle *h = handle_of(l);
    struct buf path = {0};
    enum hf_result result = HF_DONE;
    put_list_path(&path, prefix, prefix_len, NULL);
    for (bool more = true; more;) {
        json_t *page, *one;
        size_t i;
        if ((result = service_call(h->service, "GET", path.data, true, &page, fault)) != HF_DONE)
            break;
        const char *cursor = json_string_value(json_object_get(page, "next_cursor"));
        more = json_is_true(json_object_get(page, "has_more")) && cursor;
        json_array_foreach(json_object_get(page, "data"), i, one)
        {
            const char *name = json_string_value(json_object_get(one, "name"));
            if (name && !each(ctx, name)) {
                more = false;
                break;
            }
        }
        if (more)
            put_list_path(&path, prefix, prefix_len, cursor);
        json_decref(page);
    }
    buf_close(&path);
    return result;
}

/* ---- breaking ---- */

enum hf_result holdfast_break(struct lease *l, const char *key, size_t key_len,
                              struct hf_fault *fault)
{
    struct service *s = handle_of(l)->service;
    struct buf path = {0};
    json_t *json;
    put_path(&path, key, key_len, "/break");
    enum hf_result result = service_call(s, "POST", path.data, false, &json, fault);
    buf_close(&path);
    if (result == HF_LOST) /* it has no holder */
        return HF_DONE;
    if (result != HF_DONE)
        return result;
    json_decref(json);
    pthread_mutex_lock(&s->mutex);
    for (size_t i = 0; i < SERVICE_SESSIONS_MAX; i++)
        if (s->sessions[i].client)
            client_broken(s->sessions[i].client, key, key_len);
    pthread_mutex_unlock(&s->mutex);
    return HF_DONE;
}

/* ---- examining ---- */

static void examine_servers(const json_t *cell, lease_each_finding *each, void *ctx)
{
    const json_t *servers = json_object_get(cell, "servers");
    const char *master = json_string_value(json_object_get(json_object_get(cell, "master"), "url"));
    size_t n = json_array_size(servers);
    if (!master)
        lease_finding(each, ctx, HF_DANGER, "master",
                      "No server is the master: no lock can be taken. Is the journal reachable?");
    else
        lease_finding(each, ctx, HF_GOOD, "master", "%.200s is the master, in epoch %lld.", master,
                      (long long)number_or(cell, "epoch", 0));
    if (n > 1)
        lease_finding(each, ctx, HF_GOOD, "servers", "%zu servers form the cell.", n);
    else
        lease_finding(each, ctx, HF_NOTE, "servers",
                      "There is one server. While it is down no lock can be taken or renewed; "
                      "sessions begin anew when it is back.");
}

static void examine_journal(const json_t *cell, lease_each_finding *each, void *ctx)
{
    const char *kind = json_string_value(json_object_get(cell, "journal"));
    if (!kind)
        return;
    if (json_is_false(json_object_get(cell, "journal_answers")))
        lease_finding(each, ctx, HF_DANGER, "journal", "The journal (%s) does not answer.", kind);
    else if (strcmp(kind, "sqlite") == 0)
        lease_finding(each, ctx, HF_NOTE, "journal",
                      "The journal is a SQLite file: locks survive restarts, and end with the "
                      "disk. PostgreSQL or etcd as journal allow more servers.");
    else
        lease_finding(each, ctx, HF_GOOD, "journal", "The journal is stored by %s.", kind);
}

enum hf_result holdfast_examine(struct lease *l, lease_each_finding *each, void *ctx,
                                struct hf_fault *fault)
{
    struct service *s = handle_of(l)->service;
    json_t *cell;
    enum hf_result result = service_learn(s, &cell, fault);
    if (result != HF_DONE)
        return result;
    examine_servers(cell, each, ctx);
    examine_journal(cell, each, ctx);
    json_decref(cell);
    lease_finding(each, ctx, s->address.access_key ? HF_GOOD : HF_NOTE, "access",
                  s->address.access_key ? "An access key is used."
                                        : "No access key is used: the server accepts that on "
                                          "loopback only.");
    lease_finding(each, ctx, HF_GOOD, "clock",
                  "Sessions are measured by the master's monotonic clock: setting a clock changes "
                  "nothing. Only the first fence of a new, empty journal depends on the wall "
                  "clock.");
    if (s->address.cache)
        lease_finding(each, ctx, HF_NOTE, "cache",
                      "Shared locks are cached: a request that does not wait finds a lock taken "
                      "while another process caches it.");
    return HF_DONE;
}
