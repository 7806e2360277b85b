/* Inspecting a lock, listing names, breaking leases.  Requests about many nodes are sent together,
 * WINDOW of them at a time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/wait.h"
#include "lease/zookeeper/handle.h"

#define WINDOW 256

/* ---- inspecting ---- */

/* Ends the leases of this process whose time is over, which the keeper may be about to do. */
static void end_overdue(struct zk_family *f, const char *path, int64_t until_us)
{
    pthread_mutex_lock(&f->mutex);
    int64_t now_us = zk_now_us(f);
    for (size_t i = 0; i < ZK_BUCKETS; i++) {
        struct zk_entry *e = f->entries[i];
        while (e && (strcmp(e->path, path) != 0 || zk_entry_due_us(e) > now_us))
            e = e->next;
        if (!e)
            continue;
        struct zk_session *s = e->session;
        e->users++;
        if (zk_session_use(s, until_us, NULL) == HF_DONE) {
            if (e->is_linked)
                (void)zk_entry_end(e, until_us);
            s->uses--;
            pthread_cond_broadcast(&s->changed);
        }
        zk_entry_put(e);
    }
    pthread_mutex_unlock(&f->mutex);
}

/* What is left of a lease: of one of ours that is known, of another's it follows from when it was
 * last written, by the server's clock. */
static int64_t left_ms(struct zk_family *f, const char *path, const struct zk_node *node,
                       int64_t ttl_ms, const struct Stat *stat)
{
    uint8_t owner[LEASE_OWNER_SIZE];
    for (size_t i = 0; i < LEASE_OWNER_SIZE; i++)
        owner[i] =
            (uint8_t)(hex_digit(node->owner[2 * i]) << 4 | hex_digit(node->owner[2 * i + 1]));
    pthread_mutex_lock(&f->mutex);
    int64_t now_ms = clock_wall_us(f->clock) / 1000 + f->server_ahead_ms;
    int64_t ms = stat->mtime + ttl_ms - now_ms;
    struct zk_entry *e = zk_entry_find(f, path, owner);
    if (e && e->is_held)
        ms = (e->expires_us - zk_now_us(f)) / 1000;
    if (e)
        zk_entry_put(e);
    pthread_mutex_unlock(&f->mutex);
    return ms < 1 ? 1 : ms < ttl_ms ? ms : ttl_ms;
}

static void show(struct zk_family *f, const char *path, const struct zk_node *node,
                 const struct zk_call *call, struct hf_holder *ret)
{
    hf_check(call->data); /* it was read */
    char *label = NULL;
    int64_t ttl_ms = strtoll(call->data, &label, 10);
    memcpy(ret->owner, node->owner, sizeof ret->owner);
    snprintf(ret->label, sizeof ret->label, "%s", *label == ' ' ? label + 1 : label);
    ret->mode = node->mode;
    if (!node->holds) {
        ret->remaining_ms = WAITER_SILENT_MS;
        ret->held_ms = -1;
        return;
    }
    ret->fence = call->stat.czxid;
    ret->remaining_ms = left_ms(f, path, node, ttl_ms, &call->stat);
    pthread_mutex_lock(&f->mutex);
    int64_t held_ms = clock_wall_us(f->clock) / 1000 + f->server_ahead_ms - call->stat.ctime;
    pthread_mutex_unlock(&f->mutex);
    ret->held_ms = held_ms > 0 ? held_ms : 0;
}

static const struct zk_node *node_at(const struct zk_list *list, size_t i)
{
    return i < list->holders.n ? &list->holders.v[i] : &list->waiters.v[i - list->holders.n];
}

/* Reads the nodes of the list from `from` on, at most WINDOW of them.  Nodes that have gone are
 * left out. */
static int show_some(struct zk_handle *h, struct zk_session *s, const char *path, size_t from,
                     int64_t until_us, struct lease_state *state)
{
    const struct zk_list *list = &h->list;
    size_t n = list->holders.n + list->waiters.n - from;
    struct zk_call *calls[WINDOW];
    n = n < WINDOW ? n : WINDOW;
    for (size_t i = 0; i < n; i++) {
        char node_path[ZK_PATH_SIZE];
        zk_node_path(path, node_at(list, from + i), node_path);
        calls[i] = zk_call_new();
        zk_call_read(calls[i], s->zh, node_path);
    }
    int result = ZOK;
    for (size_t i = 0; i < n; i++) {
        const struct zk_node *node = node_at(list, from + i);
        int rc = zk_call_wait(calls[i], until_us);
        if (rc == ZOK)
            show(h->family, path, node, calls[i],
                 node->holds ? &state->holders[state->n_holders++]
                             : &state->waiters[state->n_waiters++]);
        else if (rc != ZNONODE)
            result = rc;
        zk_call_free(calls[i]);
    }
    return result;
}

/* The last fence of a lock that nobody holds.  A release leaves it in the lock's node; if a place
 * or a lease came or went since, there may have been another grant. */
static int read_last_fence(struct zk_session *s, const char *path, int64_t until_us, int64_t *ret)
{
    struct zk_call *call = zk_call_new();
    zk_call_read(call, s->zh, path);
    int rc = zk_call_wait(call, until_us);
    *ret = 0;
    if (rc == ZOK && call->stat.mzxid >= call->stat.pzxid)
        *ret = strtoll(call->data, NULL, 10);
    zk_call_free(call);
    return rc == ZNONODE ? ZOK : rc;
}

static int inspect_with(struct zk_handle *h, struct zk_session *s, const char *path,
                        int64_t until_us, struct lease_state *ret)
{
    int rc = zk_list_read(s, path, until_us, &h->list);
    if (rc != ZOK)
        return rc;
    ret->holders = hf_alloc(h->list.holders.n * sizeof *ret->holders);
    ret->waiters = hf_alloc(h->list.waiters.n * sizeof *ret->waiters);
    for (size_t i = 0; i < h->list.holders.n + h->list.waiters.n && rc == ZOK; i += WINDOW)
        rc = show_some(h, s, path, i, until_us, ret);
    for (size_t i = 0; i < ret->n_holders; i++)
        if (ret->holders[i].fence > ret->last_fence)
            ret->last_fence = ret->holders[i].fence;
    if (rc == ZOK && ret->n_holders == 0)
        rc = read_last_fence(s, path, until_us, &ret->last_fence);
    return rc;
}

enum hf_result zk_inspect(struct lease *l, const char *key, size_t key_len, struct lease_state *ret,
                          struct hf_fault *fault)
{
    struct zk_handle *h = zk_handle_of(l);
    int64_t until_us = zk_until_us(h, 1);
    char path[ZK_LOCK_SIZE];
    struct zk_session *s;
    zk_lock_path(h->family, key, key_len, path);
    end_overdue(h->family, path, until_us);
    int rc;
    do {
        enum hf_result result = zk_session_get(h->family, 0, until_us, &s, fault);
        if (result != HF_DONE)
            return result;
        struct lease_state state = {0};
        rc = inspect_with(h, s, path, until_us, &state);
        zk_session_put(s);
        if (rc == ZOK) {
            *ret = state;
            return HF_DONE;
        }
        lease_state_close(&state);
    } while (zk_may_ask_again(rc, until_us));
    return zk_failure(h->family, rc, false, fault);
}

/* ---- listing ---- */

struct zk_names {
    VEC(char *) all;
};

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Keeps the names, from `from` on, of locks that have a lease or a place. */
static int keep_used(struct zk_session *s, char *const *names, size_t n, int64_t until_us,
                     struct zk_names *ret)
{
    struct zk_call *calls[WINDOW];
    int result = ZOK;
    for (size_t i = 0; i < n; i++) {
        char path[ZK_LOCK_SIZE];
        zk_lock_path(s->family, names[i], strlen(names[i]), path);
        calls[i] = zk_call_new();
        zk_call_list(calls[i], s->zh, path);
    }
    for (size_t i = 0; i < n; i++) {
        int rc = zk_call_wait(calls[i], until_us);
        struct zk_list list = {0};
        for (size_t j = 0; j < calls[i]->names.n && rc == ZOK; j++)
            zk_list_add(&list, calls[i]->names.v[j]);
        if (rc == ZOK && list.holders.n == 0 && list.waiters.n == 0 && list.is_latched) {
            char path[ZK_LOCK_SIZE];
            zk_lock_path(s->family, names[i], strlen(names[i]), path);
            rc = zk_list_read(s, path, until_us, &list);
        }
        if (rc == ZOK && list.holders.n + list.waiters.n > 0)
            *vec_push(&ret->all) = names[i];
        else if (rc != ZOK && rc != ZNONODE)
            result = rc;
        zk_list_close(&list);
        zk_call_free(calls[i]);
    }
    return result;
}

/* The names below the root that begin with the prefix, in order. */
static int read_names(struct zk_session *s, const char *prefix, size_t prefix_len, int64_t until_us,
                      struct zk_names *ret)
{
    struct zk_call *call = zk_call_new();
    zk_call_list(call, s->zh, s->family->address.root);
    int rc = zk_call_wait(call, until_us);
    for (size_t i = 0; rc == ZOK && i < call->names.n; i++) {
        char name[LEASE_NAME_MAX + 1];
        if (zk_name_decode(call->names.v[i], name) && strncmp(name, prefix, prefix_len) == 0)
            *vec_push(&ret->all) = hf_strndup(name, strlen(name));
    }
    zk_call_free(call);
    if (ret->all.n > 1)
        qsort(ret->all.v, ret->all.n, sizeof *ret->all.v, by_name);
    return rc == ZNONODE ? ZOK : rc; /* servers that have lost their data have no root */
}

/* Each name is told once all of them have been read. */
static int list_with(struct zk_handle *h, struct zk_session *s, const char *prefix,
                     size_t prefix_len, lease_each_name *each, void *ctx)
{
    struct zk_names names = {0}, used = {0};
    int rc = read_names(s, prefix, prefix_len, zk_until_us(h, 1), &names);
    for (size_t i = 0; i < names.all.n && rc == ZOK; i += WINDOW) {
        size_t n = names.all.n - i < WINDOW ? names.all.n - i : WINDOW;
        rc = keep_used(s, names.all.v + i, n, zk_until_us(h, 1), &used);
    }
    bool more = rc == ZOK;
    for (size_t i = 0; i < used.all.n && more; i++)
        more = each(ctx, used.all.v[i]);
    for (size_t i = 0; i < names.all.n; i++)
        free(names.all.v[i]);
    vec_close(&names.all);
    vec_close(&used.all);
    return rc;
}

enum hf_result zk_list_names(struct lease *l, const char *prefix, size_t prefix_len,
                             lease_each_name *each, void *ctx, struct hf_fault *fault)
{
    struct zk_handle *h = zk_handle_of(l);
    int64_t until_us = zk_until_us(h, 1);
    int rc;
    do {
        struct zk_session *s;
        enum hf_result result = zk_session_get(h->family, 0, until_us, &s, fault);
        if (result != HF_DONE)
            return result;
        rc = list_with(h, s, prefix, prefix_len, each, ctx);
        zk_session_put(s);
    } while (zk_may_ask_again(rc, until_us));
    return rc == ZOK ? HF_DONE : zk_failure(h->family, rc, false, fault);
}

/* ---- breaking ---- */

/* Deletes one lease, and notes its fence. */
static int break_one(struct zk_session *s, const char *path, const struct zk_node *node,
                     int64_t until_us)
{
    char node_path[ZK_PATH_SIZE], latch[ZK_PATH_SIZE], fence[24];
    zk_node_path(path, node, node_path);
    struct zk_call *stat = zk_call_new(), *call = zk_call_new();
    zk_call_stat(stat, s->zh, node_path);
    int rc = zk_call_wait(stat, until_us);
    if (rc == ZOK) {
        snprintf(fence, sizeof fence, "%lld", (long long)stat->stat.czxid);
        zk_lease_delete(call, path, node_path, node->mode, fence, latch);
        rc = zk_session_commit(s, call, until_us);
    }
    zk_call_free(call);
    zk_call_free(stat);
    return rc == ZNONODE ? ZOK : rc;
}

enum hf_result zk_break(struct lease *l, const char *key, size_t key_len, struct hf_fault *fault)
{
    struct zk_handle *h = zk_handle_of(l);
    int64_t until_us = zk_until_us(h, 1);
    char path[ZK_LOCK_SIZE];
    struct zk_session *s;
    zk_lock_path(h->family, key, key_len, path);
    bool written;
    int rc;
    do {
        enum hf_result result = zk_session_get(h->family, 0, until_us, &s, fault);
        if (result != HF_DONE)
            return result;
        rc = zk_list_read(s, path, until_us, &h->list);
        written = rc == ZOK;
        for (size_t i = 0; i < h->list.holders.n && rc == ZOK; i++)
            rc = break_one(s, path, &h->list.holders.v[i], until_us);
        zk_session_put(s);
    } while (!written && zk_may_ask_again(rc, until_us));
    return rc == ZOK ? HF_DONE : zk_failure(h->family, rc, written, fault);
}
