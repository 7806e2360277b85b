/* Showing, listing and breaking locks, for operators. */
#include "lease/etcd/etcd.h"

#include <string.h>

#include "etcd/base64.h"

#define PAGE 512
/* Waiters whose leases are asked about; later ones count as alive. */
#define WAITERS_ASKED_MAX 256

static enum hf_result read_whole_line(struct etcd *e, const char *key, size_t key_len,
                                      struct subject *s, struct etcd_line *ret,
                                      struct hf_fault *fault)
{
    etcd_subject_init_name(s, etcd_prefix(e), key, key_len);
    s->mode = WIRE_EXCLUSIVE;
    etcd_begin(&e->client, 0);
    return etcd_txn_look(e, s, 0, ret, fault);
}

/* ---- inspect ---- */

/* *ret_ms: what is left of the lease, or how long the place is kept; 0: it has ended.  etcd rounds
 * down what is left. */
static enum hf_result time_left(struct etcd *e, const struct etcd_entry *entry, int64_t *ret_ms,
                                struct hf_fault *fault)
{
    int64_t left_s, ttl_s;
    etcd_begin(&e->client, 0);
    enum hf_result result = etcd_left(e, entry->lease, &left_s, &ttl_s, fault);
    if (result != HF_DONE)
        return result;
    int64_t silent_s = ttl_s - left_s - 1;
    if (left_s < 0)
        *ret_ms = 0;
    else if (entry->claimed)
        *ret_ms = left_s > 0 ? 1000 * left_s : 1;
    else
        *ret_ms = WAITER_SILENT_MS - 1000 * (silent_s > 0 ? silent_s : 0);
    return HF_DONE;
}

static void show(const struct etcd *e, const struct etcd_entry *entry, int64_t left_ms,
                 struct hf_holder *ret)
{
    int64_t held_ms = clock_wall_us(e->clock) / 1000 - entry->wall_ms;
    memcpy(ret->owner, entry->owner, sizeof ret->owner);
    memcpy(ret->label, entry->label, sizeof ret->label);
    ret->mode = entry->mode == WIRE_SHARED ? HF_SHARED : HF_EXCLUSIVE;
    ret->remaining_ms = left_ms;
    ret->fence = entry->claimed ? entry->mod : 0;
    ret->held_ms = !entry->claimed || held_ms < 0 ? -1 : held_ms;
}

enum hf_result etcd_inspect(struct lease *l, const char *key, size_t key_len,
                            struct lease_state *ret, struct hf_fault *fault)
{
    struct etcd *e = etcd_of(l);
    struct subject s;
    struct etcd_line line = {0};
    struct lease_state state = {0};
    enum hf_result result = read_whole_line(e, key, key_len, &s, &line, fault);
    if (result == HF_DONE && line.all.n > 0) {
        state.holders = hf_alloc(line.all.n * sizeof *state.holders);
        state.waiters = hf_alloc(line.all.n * sizeof *state.waiters);
    }
    for (size_t i = 0; result == HF_DONE && i < line.all.n; i++) {
        const struct etcd_entry *entry = &line.all.v[i];
        int64_t left_ms = WAITER_SILENT_MS;
        if (entry->claimed || state.n_waiters < WAITERS_ASKED_MAX)
            result = time_left(e, entry, &left_ms, fault);
        if (result != HF_DONE || left_ms <= 0)
            continue;
        show(e, entry, left_ms,
             entry->claimed ? &state.holders[state.n_holders++]
                            : &state.waiters[state.n_waiters++]);
        if (entry->claimed && entry->mod > state.last_fence)
            state.last_fence = entry->mod;
    }
    etcd_line_close(&line);
    if (result == HF_DONE)
        *ret = state;
    else
        lease_state_close(&state);
    return result;
}

/* ---- list ---- */

struct listing {
    struct buf from, to; /* the range that is still to be read */
    char last[LEASE_NAME_MAX + 1];
    lease_each_name *each;
    void *ctx;
    bool is_done;
};

/* Tells a name that is not the last one, and goes on behind all keys of it. */
static void take_key(struct listing *x, const char *key, size_t len, size_t prefix_len)
{
    const char *tab = len > prefix_len ? memchr(key + prefix_len, '\t', len - prefix_len) : NULL;
    x->from.len = 0;
    buf_put(&x->from, key, tab ? (size_t)(tab - key) : len);
    buf_char(&x->from, tab ? '\t' + 1 : '\0');
    if (!tab || (size_t)(tab - key) - prefix_len > LEASE_NAME_MAX)
        return; /* it is not ours */
    char name[LEASE_NAME_MAX + 1] = {0};
    memcpy(name, key + prefix_len, (size_t)(tab - key) - prefix_len);
    if (strcmp(name, x->last) == 0)
        return;
    memcpy(x->last, name, sizeof name);
    x->is_done = !x->each(x->ctx, name);
}

/* A page that does not lead on would be read for ever. */
static bool is_behind(const struct buf *from, const struct buf *before)
{
    size_t len = from->len < before->len ? from->len : before->len;
    int order = memcmp(from->data, before->data, len);
    return order > 0 || (order == 0 && from->len > before->len);
}

static enum hf_result list_page(struct etcd *e, struct listing *x, struct hf_fault *fault)
{
    struct buf *b = etcd_body(&e->client), before = {0};
    json_t *json, *kv;
    size_t i;
    buf_lit(b, "{\"key\":\"");
    base64_put(b, x->from.data, x->from.len);
    buf_lit(b, "\",\"range_end\":\"");
    base64_put(b, x->to.data, x->to.len);
    buf_printf(b, "\",\"keys_only\":true,\"limit\":\"%d\"}", PAGE);
    etcd_begin(&e->client, 0);
    enum hf_result result = etcd_call(&e->client, "/v3/kv/range", ETCD_READ, &json, NULL, fault);
    if (result != HF_DONE)
        return result;
    const json_t *kvs = json_object_get(json, "kvs");
    bool is_last_page = json_array_size(kvs) < PAGE;
    buf_put(&before, x->from.data, x->from.len);
    json_array_foreach(kvs, i, kv)
    {
        size_t len;
        char *key = base64_decode(json_object_get(kv, "key"), &len);
        if (key && !x->is_done)
            take_key(x, key, len, strlen(etcd_prefix(e)));
        free(key);
    }
    x->is_done |= is_last_page;
    bool leads_on = x->is_done || is_behind(&x->from, &before);
    json_decref(json);
    buf_close(&before);
    return leads_on ? HF_DONE
                    : fault_set(fault, HF_UNREACHABLE, "etcd at %s: a page of keys leads nowhere",
                                etcd_endpoint(&e->client));
}

enum hf_result etcd_list(struct lease *l, const char *prefix, size_t prefix_len,
                         lease_each_name *each, void *ctx, struct hf_fault *fault)
{
    struct etcd *e = etcd_of(l);
    struct listing x = {.each = each, .ctx = ctx};
    enum hf_result result = HF_DONE;
    buf_str(&x.from, etcd_prefix(e));
    buf_put(&x.from, prefix, prefix_len);
    buf_put(&x.to, x.from.data, x.from.len);
    x.to.data[x.to.len - 1]++; /* UTF-8 has no byte 0xff */
    while (result == HF_DONE && !x.is_done)
        result = list_page(e, &x, fault);
    buf_close(&x.from);
    buf_close(&x.to);
    return result;
}

/* ---- break ---- */

enum hf_result etcd_break(struct lease *l, const char *key, size_t key_len, struct hf_fault *fault)
{
    struct etcd *e = etcd_of(l);
    struct subject s;
    struct etcd_line line = {0};
    bool found;
    enum hf_result result = read_whole_line(e, key, key_len, &s, &line, fault);
    for (size_t i = 0; result == HF_DONE && i < line.all.n; i++) {
        etcd_begin(&e->client, 0);
        if (line.all.v[i].claimed)
            result = etcd_revoke(e, line.all.v[i].lease, &found, fault);
    }
    etcd_line_close(&line);
    return result;
}
