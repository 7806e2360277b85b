/* See votes.h. */
#include "lease/redlock/votes.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

#define LABEL_SIZE (LEASE_LABEL_MAX + 32)

/* ---- calls ---- */

struct redlock_call votes_call(struct redlock *r, enum redlock_script script,
                               const struct lease_request *requests, size_t n)
{
    return (struct redlock_call){.script = script,
                                 .requests = requests,
                                 .tallies = hf_alloc(n * sizeof(struct tally)),
                                 .n = n,
                                 .since_ms = clock_wall_us(r->clock) / 1000};
}

struct redlock_call votes_part(const struct redlock *r, const struct redlock_call *call,
                               enum redlock_script script,
                               bool (*pick)(const struct redlock *r, const struct tally *t))
{
    struct redlock_call part = {.script = script, .since_ms = call->since_ms};
    part.copies = hf_alloc(call->n * sizeof *part.copies);
    part.requests = part.copies;
    part.tallies = hf_alloc(call->n * sizeof *part.tallies);
    part.which = hf_alloc(call->n * sizeof *part.which);
    for (size_t i = 0; i < call->n; i++) {
        if (!pick(r, &call->tallies[i]))
            continue;
        part.copies[part.n] = call->requests[i];
        part.tallies[part.n] = call->tallies[i];
        part.which[part.n++] = i;
    }
    return part;
}

void votes_close(struct redlock_call *call)
{
    free(call->tallies);
    free(call->which);
    free(call->copies);
}

/* ---- commands ---- */

size_t redlock_key(char ret[KEY_SIZE], const char *name, size_t len)
{
    char *p = mempcpy(ret, KEY_HEAD, sizeof KEY_HEAD - 1);
    p = mempcpy(p, name, len);
    memcpy(p, KEY_TAIL, sizeof KEY_TAIL);
    return (size_t)(p - ret) + sizeof KEY_TAIL - 1;
}

static struct redis_arg flags_of(const struct lease_request *q, bool shared)
{
    return shared ? (q->queue ? REDIS_ARG("sw") : REDIS_ARG("s")) : REDIS_ARG("w");
}

/* The arguments of a script that locks, which come after the owner and the TTL. */
static size_t lock_args(const struct redlock_call *call, size_t i, char since[LABEL_SIZE],
                        struct redis_arg *args)
{
    const struct lease_request *q = &call->requests[i];
    bool shared = q->mode == HF_SHARED;
    size_t len = decimal_write(since, call->since_ms);
    since[len++] = ' ';
    if (q->label)
        memcpy(since + len, q->label, q->label_len);
    args[0] = (struct redis_arg){since, len + (q->label ? q->label_len : 0)};
    if (!shared && !q->queue)
        return 1;
    args[1] = flags_of(q, shared);
    return 2;
}

void votes_put(struct redlock *r, size_t server, const struct redlock_call *call,
               enum redlock_script script, size_t i)
{
    const struct lease_request *q = &call->requests[i];
    struct redlock_server *s = &r->servers[server];
    char key[KEY_SIZE], owner[OWNER_LEN + 1], number[24], since[LABEL_SIZE];
    struct redis_arg args[REDIS_HEAD_ARGS + 7];
    size_t n = REDIS_HEAD_ARGS;
    redis_head(&s->caller, script, args);
    args[n++] = REDIS_ARG("1");
    args[n++] = (struct redis_arg){key, redlock_key(key, q->key, q->key_len)};
    if (script != SCRIPT_RELEASE)
        args[n++] = (struct redis_arg){s->state, strlen(s->state)};
    lease_owner_text(q->owner, owner);
    args[n++] = (struct redis_arg){owner, OWNER_LEN};
    if (script == SCRIPT_RELEASE && call->is_quiet)
        args[n++] = REDIS_ARG("q");
    if (script != SCRIPT_RELEASE) {
        int64_t value = script == SCRIPT_FENCE ? call->tallies[i].fence : q->ttl_ms;
        args[n++] = (struct redis_arg){number, decimal_write(number, value)};
    }
    if (script == SCRIPT_LOCK)
        n += lock_args(call, i, since, &args[n]);
    redis_put(&s->caller.link, args, n);
}

static void put_one(struct redlock *r, size_t server, void *ctx, size_t i)
{
    const struct redlock_call *call = ctx;
    votes_put(r, server, call, call->script, i);
}

bool votes_fit(void *ctx, size_t i, const redisReply *reply)
{
    (void)ctx;
    (void)i;
    return reply->type == REDIS_REPLY_INTEGER || reply->type == REDIS_REPLY_STRING ||
           (reply->type == REDIS_REPLY_ARRAY && reply->elements > 0);
}

/* ---- counting ---- */

static int64_t element(const redisReply *reply, size_t i)
{
    return i < reply->elements ? redis_integer(reply, i) : 0;
}

/* Counts the answer of a server to a request.  Returns false if the server does not count. */
static bool count_answer(struct tally *t, const struct lease_request *q, size_t server,
                         const redisReply *reply)
{
    server_set bit = bit_of(server);
    if (reply->type == REDIS_REPLY_STRING) {
        t->won |= bit;
        t->fences[server] = strtoll(reply->str, NULL, 10);
        t->left_ms[server] = q->ttl_ms;
        return true;
    }
    if (reply->type == REDIS_REPLY_INTEGER) { /* released or not */
        *(reply->integer == 1 ? &t->won : &t->taken) |= bit;
        return true;
    }
    int64_t left_ms = element(reply, 2);
    switch (redis_integer(reply, 0)) {
    case ANSWER_DONE:
        t->won |= bit;
        t->fences[server] = element(reply, 1);
        t->left_ms[server] = left_ms < 0 ? q->ttl_ms : left_ms;
        t->is_shared = element(reply, 3) == 1;
        return true;
    case ANSWER_OUT:
        return false;
    case ANSWER_FREE:
        t->missing |= bit;
        return true;
    default:
        t->taken |= bit;
        t->left_ms[server] = left_ms;
        return true;
    }
}

server_set votes_count(struct redlock *r, struct redlock_call *call)
{
    server_set out = 0;
    for (size_t s = 0; s < r->n_servers; s++) {
        struct redlock_server *server = &r->servers[s];
        if (server->outcome == OUTCOME_LOST)
            call->lost |= bit_of(s);
        if (server->outcome != OUTCOME_ANSWERED)
            continue;
        bool counts = true;
        for (size_t i = 0; i < call->n && counts; i++)
            counts =
                count_answer(&call->tallies[i], &call->requests[i], s, server->caller.replies.v[i]);
        *(counts ? &call->answered : &out) |= bit_of(s);
    }
    fan_done(r);
    return out;
}

void votes_ask(struct redlock *r, struct redlock_call *call, server_set to, int64_t until_us)
{
    fan_run(r, &(struct fan){.to = to,
                             .n = call->n,
                             .ctx = call,
                             .put = put_one,
                             .fits = votes_fit,
                             .until_us = until_us,
                             .may_be_silent =
                                 call->script != SCRIPT_LOCK && call->script != SCRIPT_RENEW});
}

static void forget_server(struct redlock_call *call, size_t s)
{
    for (size_t i = 0; i < call->n; i++) {
        struct tally *t = &call->tallies[i];
        t->won &= ~bit_of(s);
        t->taken &= ~bit_of(s);
        t->missing &= ~bit_of(s);
    }
}

void votes_ask_counting(struct redlock *r, struct redlock_call *call)
{
    votes_ask(r, call, fan_ready(r), r->until_us);
    server_set out = votes_count(r, call);
    if (out) {
        for (size_t s = 0; s < r->n_servers; s++) {
            if (!(out & bit_of(s)))
                continue;
            forget_server(call, s);
            r->servers[s].state[0] = '\0';
            r->servers[s].look_us = 0;
        }
        redlock_join(r);
        votes_ask(r, call, out & fan_ready(r), r->until_us);
        (void)votes_count(r, call);
    }
    call->out = fan_open(r) & ~fan_ready(r);
}

/* ---- the fence ---- */

/* The largest of the servers' numbers; if all are equal, it is stored. */
static void choose_fence(const struct redlock *r, struct tally *t)
{
    bool equal = true;
    t->fence = 0;
    for (size_t s = 0; s < r->n_servers; s++) {
        if (!(t->won & bit_of(s)))
            continue;
        equal = equal && (t->fence == 0 || t->fences[s] == t->fence);
        t->fence = t->fences[s] > t->fence ? t->fences[s] : t->fence;
    }
    t->n_stored = equal ? count_of(t->won) : 0;
}

static bool needs_fence(const struct redlock *r, const struct tally *t)
{
    return count_of(t->won) >= r->majority;
}

void votes_store_fences(struct redlock *r, struct redlock_call *call)
{
    bool needed = false;
    for (size_t i = 0; i < call->n; i++) {
        struct tally *t = &call->tallies[i];
        if (!needs_fence(r, t))
            continue;
        choose_fence(r, t);
        needed = needed || t->n_stored < r->majority || call->lost != 0;
    }
    if (!needed)
        return;
    struct redlock_call store = votes_part(r, call, SCRIPT_FENCE, needs_fence);
    votes_ask(r, &store, call->answered | call->lost, r->until_us);
    for (size_t k = 0; k < store.n; k++)
        call->tallies[store.which[k]].n_stored = 0;
    for (size_t s = 0; s < r->n_servers; s++) {
        const struct redlock_server *server = &r->servers[s];
        for (size_t k = 0; k < store.n && server->outcome == OUTCOME_ANSWERED; k++)
            call->tallies[store.which[k]].n_stored += server->caller.replies.v[k]->integer == 1;
        if (server->outcome == OUTCOME_LOST)
            call->lost |= bit_of(s);
    }
    fan_done(r);
    votes_close(&store);
}

/* ---- validity ---- */

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

int64_t votes_left_ms(const struct tally *t, server_set set, size_t k)
{
    int64_t all[SERVERS_MAX];
    size_t n = 0;
    for (size_t s = 0; s < SERVERS_MAX; s++)
        if (set & bit_of(s))
            all[n++] = t->left_ms[s];
    if (k >= n)
        return -1;
    qsort(all, n, sizeof *all, by_number);
    return all[k];
}

int64_t votes_validity_ms(const struct redlock *r, const struct tally *t,
                          const struct lease_request *q)
{
    int64_t elapsed_ms = (clock_boot_us(r->clock) - r->begun_us + 999) / 1000;
    int64_t least_ms = votes_left_ms(t, t->won, count_of(t->won) - r->majority);
    return least_ms - elapsed_ms - (q->ttl_ms / 100 + 2);
}

/* ---- giving back ---- */

void votes_give_back(struct redlock *r, const struct redlock_call *call,
                     bool (*pick)(const struct redlock *r, const struct tally *t))
{
    struct redlock_call back = votes_part(r, call, SCRIPT_RELEASE, pick);
    server_set to = call->lost;
    back.is_quiet = true;
    for (size_t k = 0; k < back.n; k++)
        to |= back.tallies[k].won;
    if (back.n > 0 && to != 0) {
        votes_ask(r, &back, to, clock_boot_us(r->clock) + 1000 * r->short_ms);
        fan_done(r);
    }
    votes_close(&back);
}
