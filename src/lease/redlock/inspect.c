/* Inspecting, listing and breaking locks, on the handle's thread.  All of them need a majority.  A
 * lock is shown as held if it may be: servers that did not answer count as if they had it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lease/redlock/redlock.h"
#include "lease/redlock/scripts.h"

#define SCAN_COUNT "1000"
#define LIST_MAX 1000000

struct by_key {
    enum redlock_script script;
    const char *key;
    size_t key_len;
};

static void put(struct redlock *r, size_t server, void *ctx, size_t i)
{
    const struct by_key *call = ctx;
    struct redis_caller *c = &r->servers[server].caller;
    struct redis_arg args[REDIS_HEAD_ARGS + 2];
    char key[KEY_SIZE];
    (void)i;
    redis_head(c, call->script, args);
    args[2] = REDIS_ARG("1");
    args[3] = (struct redis_arg){key, redlock_key(key, call->key, call->key_len)};
    redis_put(&c->link, args, 4);
}

static bool fits(void *ctx, size_t i, const redisReply *reply)
{
    const struct by_key *call = ctx;
    (void)i;
    if (call->script == SCRIPT_BREAK)
        return reply->type == REDIS_REPLY_INTEGER;
    return reply->type == REDIS_REPLY_ARRAY && reply->elements >= 2;
}

static server_set all_of(const struct redlock *r) { return bit_of(r->n_servers) - 1; }

/* Runs the script on all servers.  *ret_lost: some may have executed it without an answer. */
static server_set ask(struct redlock *r, struct by_key *call, bool *ret_lost)
{
    server_set answered = 0;
    fan_begin(r, 0);
    fan_connect(r, false);
    fan_run(r, &(struct fan){.to = all_of(r),
                             .n = 1,
                             .ctx = call,
                             .put = put,
                             .fits = fits,
                             .until_us = r->until_us});
    *ret_lost = false;
    for (size_t i = 0; i < r->n_servers; i++) {
        if (r->servers[i].outcome == OUTCOME_ANSWERED)
            answered |= bit_of(i);
        *ret_lost = *ret_lost || r->servers[i].outcome == OUTCOME_LOST;
    }
    return answered;
}

/* ---- inspect ---- */

/* A holder as the servers know it. */
struct found {
    struct hf_holder holder;
    size_t n;
    int64_t left_ms[SERVERS_MAX], fences[SERVERS_MAX];
    int64_t held_ms;
};
struct all_found {
    VEC(struct found) v;
};

static struct found *found_of(struct all_found *all, const char *owner)
{
    for (size_t i = 0; i < all->v.n; i++)
        if (strcmp(all->v.v[i].holder.owner, owner) == 0)
            return &all->v.v[i];
    struct found *f = vec_push(&all->v);
    snprintf(f->holder.owner, sizeof f->holder.owner, "%s", owner);
    return f;
}

/* Reads an owner, the rest of its lease and "FENCE SINCE LABEL". */
static void add_holder(struct all_found *all, bool shared, int64_t now_ms,
                       const redisReply *const *element)
{
    char owner[OWNER_LEN + 1];
    long long fence = 0, since_ms = 0;
    int head_len = 0;
    if (!element[0]->str || !element[2]->str)
        return;
    snprintf(owner, sizeof owner, "%.*s", OWNER_LEN, element[0]->str);
    struct found *f = found_of(all, owner);
    if (f->n == SERVERS_MAX)
        return;
    if (sscanf(element[2]->str, "%lld %lld%n", &fence, &since_ms, &head_len) == 2 &&
        (size_t)head_len + 1 < element[2]->len)
        snprintf(f->holder.label, sizeof f->holder.label, "%s", element[2]->str + head_len + 1);
    f->holder.mode = shared ? HF_SHARED : HF_EXCLUSIVE;
    f->fences[f->n] = fence;
    f->left_ms[f->n++] = element[1]->integer;
    int64_t held_ms = now_ms > since_ms ? now_ms - since_ms : 0;
    f->held_ms = held_ms > f->held_ms ? held_ms : f->held_ms;
}

static int downwards(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x < y) - (x > y);
}

/* The fence that most of the servers have, the larger one if two are as frequent. */
static int64_t fence_of(const struct found *f)
{
    size_t most = 0;
    int64_t fence = 0;
    for (size_t i = 0; i < f->n; i++) {
        size_t n = 0;
        for (size_t k = 0; k < f->n; k++)
            n += f->fences[k] == f->fences[i];
        if (n > most || (n == most && f->fences[i] > fence)) {
            most = n;
            fence = f->fences[i];
        }
    }
    return fence;
}

enum hf_result redlock_inspect(struct lease *l, const char *key, size_t key_len,
                               struct lease_state *ret, struct hf_fault *fault)
{
    struct redlock *r = redlock_of(l);
    struct by_key call = {SCRIPT_INSPECT, key, key_len};
    bool lost;
    server_set answered = ask(r, &call, &lost);
    if (count_of(answered) < r->majority) {
        fan_done(r);
        return fan_fault(r, HF_UNREACHABLE, all_of(r) & ~answered, fault);
    }
    struct all_found all = {0};
    for (size_t s = 0; s < r->n_servers; s++) {
        if (!(answered & bit_of(s)))
            continue;
        const redisReply *reply = r->servers[s].caller.replies.v[0];
        for (size_t i = 2; i + 2 < reply->elements; i += 3)
            add_holder(&all, redis_integer(reply, 0) == 1, redis_integer(reply, 1),
                       (const redisReply *const *)&reply->element[i]);
    }
    fan_done(r);
    size_t needed = r->majority - (r->n_servers - count_of(answered));
    *ret = (struct lease_state){0};
    if (all.v.n > 0)
        ret->holders = hf_alloc(all.v.n * sizeof *ret->holders);
    for (size_t i = 0; i < all.v.n; i++) {
        struct found *f = &all.v.v[i];
        if (f->n < needed)
            continue;
        qsort(f->left_ms, f->n, sizeof *f->left_ms, downwards);
        f->holder.remaining_ms = f->left_ms[needed - 1];
        f->holder.fence = fence_of(f);
        f->holder.held_ms = f->held_ms;
        ret->holders[ret->n_holders++] = f->holder;
        ret->last_fence = f->holder.fence > ret->last_fence ? f->holder.fence : ret->last_fence;
    }
    vec_close(&all.v);
    return HF_DONE;
}

/* ---- break ---- */

enum hf_result redlock_break(struct lease *l, const char *key, size_t key_len,
                             struct hf_fault *fault)
{
    struct redlock *r = redlock_of(l);
    struct by_key call = {SCRIPT_BREAK, key, key_len};
    bool lost;
    server_set answered = ask(r, &call, &lost);
    fan_done(r);
    if (count_of(answered) >= r->majority)
        return HF_DONE;
    return fan_fault(r, lost || answered ? HF_UNKNOWN : HF_UNREACHABLE, all_of(r) & ~answered,
                     fault);
}

/* ---- list ---- */

struct redlock_names {
    VEC(char *) all;
};

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* One step of a SCAN on one server: adds names and moves the cursor on, to "0" at the end. */
static bool scan(struct redlock_server *s, const struct buf *pattern, struct buf *cursor,
                 struct redlock_names *names)
{
    struct hf_fault fault = {0};
    redisReply *reply;
    redis_put(&s->caller.link,
              (struct redis_arg[]){REDIS_ARG("SCAN"),
                                   {cursor->data, cursor->len},
                                   REDIS_ARG("MATCH"),
                                   {pattern->data, pattern->len},
                                   REDIS_ARG("COUNT"),
                                   REDIS_ARG(SCAN_COUNT)},
              6);
    if (redis_exchange(&s->caller.link, 0, &reply, &fault) != HF_DONE) {
        snprintf(s->why, sizeof s->why, "%s", fault.msg);
        return false;
    }
    bool ok = reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 && reply->element[0]->str;
    if (!ok) {
        (void)redis_refusal(&s->caller.link, reply, &fault);
        snprintf(s->why, sizeof s->why, "%s", fault.msg);
    }
    const size_t around = sizeof KEY_HEAD - 1 + sizeof KEY_TAIL - 1;
    for (size_t i = 0; ok && i < reply->element[1]->elements; i++) {
        const redisReply *key = reply->element[1]->element[i];
        if (key->str && key->len > around)
            *vec_push(&names->all) = hf_strndup(key->str + sizeof KEY_HEAD - 1, key->len - around);
    }
    cursor->len = 0;
    if (ok)
        buf_put(cursor, reply->element[0]->str, reply->element[0]->len);
    freeReplyObject(reply);
    return ok;
}

/* Adds the names that one server has, each once.  SCAN visits every key of the database, in steps
 * of 1000 that do not block the server; it may return a name twice. */
static bool scan_all(struct redlock *r, struct redlock_server *s, const struct buf *pattern,
                     struct redlock_names *names)
{
    struct buf cursor = {0};
    struct redlock_names own = {0};
    bool ok;
    buf_char(&cursor, '0');
    s->caller.link.timeout_ms = r->timeout_ms;
    do
        ok = scan(s, pattern, &cursor, &own);
    while (ok && !(cursor.len == 1 && cursor.data[0] == '0') && own.all.n < LIST_MAX);
    s->caller.link.timeout_ms = r->short_ms;
    if (own.all.n > 0)
        qsort(own.all.v, own.all.n, sizeof *own.all.v, by_name);
    for (size_t i = 0; i < own.all.n; i++) {
        if (ok && (i == 0 || strcmp(own.all.v[i - 1], own.all.v[i]) != 0))
            *vec_push(&names->all) = hf_strndup(own.all.v[i], strlen(own.all.v[i]));
    }
    for (size_t i = 0; i < own.all.n; i++)
        free(own.all.v[i]);
    vec_close(&own.all);
    buf_close(&cursor);
    return ok;
}

/* Calls `each` for the names that at least `needed` servers have. */
static void tell(struct redlock_names *names, size_t needed, lease_each_name *each, void *ctx)
{
    if (names->all.n > 0)
        qsort(names->all.v, names->all.n, sizeof *names->all.v, by_name);
    bool more = true;
    for (size_t i = 0, n; i < names->all.n; i += n) {
        n = 1;
        while (i + n < names->all.n && strcmp(names->all.v[i], names->all.v[i + n]) == 0)
            n++;
        if (more && n >= needed)
            more = each(ctx, names->all.v[i]);
    }
}

enum hf_result redlock_list(struct lease *l, const char *prefix, size_t prefix_len,
                            lease_each_name *each, void *ctx, struct hf_fault *fault)
{
    struct redlock *r = redlock_of(l);
    struct redlock_names found = {0};
    struct buf pattern = {0};
    server_set answered = 0;
    buf_lit(&pattern, KEY_HEAD);
    for (size_t i = 0; i < prefix_len; i++) {
        if (strchr("*?[]\\^-", prefix[i]))
            buf_char(&pattern, '\\');
        buf_char(&pattern, prefix[i]);
    }
    buf_lit(&pattern, "*" KEY_TAIL);
    fan_begin(r, 0);
    fan_connect(r, false);
    server_set open = fan_open(r);
    for (size_t s = 0; s < r->n_servers; s++)
        if (open & bit_of(s) && scan_all(r, &r->servers[s], &pattern, &found))
            answered |= bit_of(s);
    enum hf_result result = HF_DONE;
    if (count_of(answered) < r->majority)
        result = fan_fault(r, HF_UNREACHABLE, all_of(r) & ~answered, fault);
    else if (found.all.n >= LIST_MAX)
        result = fault_set(fault, HF_FAILED, "more than %d names; give a prefix", LIST_MAX);
    else
        tell(&found, r->majority - (r->n_servers - count_of(answered)), each, ctx);
    for (size_t i = 0; i < found.all.n; i++)
        free(found.all.v[i]);
    vec_close(&found.all);
    buf_close(&pattern);
    return result;
}
