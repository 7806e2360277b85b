/* The Redis driver: leases on one Redis server (5 or later, or a compatible one).  The scripts in
 * scripts.h take all decisions.  Here requests become commands and answers become verdicts, and a
 * waiter sleeps on a second connection until a message tells it that its turn may have come.
 *
 * Keys: holdfast:{NAME}:lock and keys that begin so, and holdfast:fence, the counter of all locks.
 * The braces keep a lock's keys in one hash slot, but the counter is one key for all locks, so a
 * Redis Cluster is not supported (it refuses the scripts with CROSSSLOT): the back end is one
 * server, or one primary with replicas.  An ACL needs ~holdfast:* and &holdfast:*.
 *
 * A handle belongs to one thread at a time and shares nothing with other handles. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lease/redis/request.h"
#include "lease/redis/scripts.h"

/* A waiter sends a heartbeat, which keeps its place, once per TTL but within these bounds. */
#define HEARTBEAT_MAX_US INT64_C(1000000)
#define HEARTBEAT_MIN_US INT64_C(100000)
#define SCAN_COUNT "1000"
#define LIST_MAX 1000000

#define OWNER_LEN (2 * LEASE_OWNER_SIZE)
#define CHANNEL_SIZE (REDIS_KEY_SIZE + sizeof ":wake:" + OWNER_LEN)

/* The waiter that the second connection listens for. */
struct subscription {
    char channel[CHANNEL_SIZE]; /* "": none */
    uint8_t owner[LEASE_OWNER_SIZE];
    int64_t asked_us; /* when the server was last asked about its place */
    int64_t turn_us;  /* when the lease before it ends at the latest; INT64_MAX: not known */
};

struct redis {
    struct lease lease;
    struct redis_address address;
    struct redis_caller caller;
    struct redis_link messages;
    struct subscription waiter;
};

extern const struct lease_driver lease_redis;

static struct redis *redis_of(struct lease *l) { return (struct redis *)(void *)l; }

/* ---- handles ---- */

static void redis_close(struct lease *l)
{
    struct redis *r = redis_of(l);
    redis_caller_close(&r->caller);
    redis_link_close(&r->messages);
    redis_address_close(&r->address);
    free(r);
}

/* Takes ownership of `address`. */
static struct redis *handle_new(struct redis_address address, const struct clock *clock,
                                int64_t timeout_ms)
{
    struct redis *r = hf_alloc(sizeof *r);
    r->lease.driver = &lease_redis;
    r->address = address;
    redis_link_init(&r->caller.link, &r->address, clock, timeout_ms);
    redis_link_init(&r->messages, &r->address, clock, timeout_ms);
    redis_caller_init(&r->caller, redis_scripts, N_SCRIPTS);
    return r;
}

static enum hf_result redis_open(const char *url, const struct lease_options *options,
                                 struct lease **ret, struct hf_fault *fault)
{
    struct redis_address address;
    enum hf_result result = redis_address_parse(url, &address, fault);
    if (result != HF_DONE)
        return result;
    struct redis *r = handle_new(address, options->clock, options->timeout_ms);
    result = redis_send(&r->caller.link, fault); /* connects */
    if (result == HF_DONE)
        *ret = &r->lease;
    else
        redis_close(&r->lease);
    return result;
}

/* Reads only what never changes, since `l` may be in use. */
static enum hf_result redis_clone(struct lease *l, struct lease **ret, struct hf_fault *fault)
{
    (void)fault;
    const struct redis *r = redis_of(l);
    struct redis_address address;
    redis_address_copy(&r->address, &address);
    *ret = &handle_new(address, r->caller.link.clock, r->caller.link.timeout_ms)->lease;
    return HF_DONE;
}

/* ---- acquire, renew, release ---- */

/* Refuses a batch in which one request gives another number of slots than the name's holders and
 * waiters.  Other requests of the batch may have been granted; they are released again, since the
 * answer to the whole batch is no. */
static enum hf_result refuse_slots(struct redis *r, const struct lease_request *requests, size_t n,
                                   unsigned asked, int64_t others, struct hf_fault *fault)
{
    if (n > 1) {
        enum hf_result result = redis_call(&r->caller, SCRIPT_RELEASE, requests, n, 4, fault);
        if (result != HF_DONE)
            return result;
        redis_call_done(&r->caller, n);
    }
    return lease_slots_differ(asked, others, fault);
}

/* Remembers what an answer says about the subscribed waiter's turn. */
static void note_turn(struct redis *r, const struct lease_request *q, const struct lease_verdict *v)
{
    struct subscription *w = &r->waiter;
    if (!w->channel[0] || memcmp(w->owner, q->owner, LEASE_OWNER_SIZE) != 0)
        return;
    w->asked_us = clock_boot_us(r->caller.link.clock);
    /* Only the head of the queue watches the lease: when the lease ends the head asks, and the
     * script wakes the others whose turn it is. */
    w->turn_us = v->position == 1 && v->remaining_ms >= 0
                     ? w->asked_us + 1000 * (v->remaining_ms + 1)
                     : INT64_MAX;
}

static struct lease_verdict verdict_of(const redisReply *reply, const struct lease_request *q)
{
    if (reply->type != REDIS_REPLY_ARRAY)
        return (struct lease_verdict){
            .result = HF_DONE,
            .fence = reply->type == REDIS_REPLY_STRING ? strtoll(reply->str, NULL, 10) : 0,
            .remaining_ms = q->ttl_ms};
    return (struct lease_verdict){
        .result = redis_integer(reply, 0) == REDIS_DONE    ? HF_DONE
                  : redis_integer(reply, 0) == REDIS_TAKEN ? HF_TAKEN
                                                           : HF_LOST,
        .fence = redis_integer(reply, 1),
        .remaining_ms = redis_integer(reply, 2),
        .position = (size_t)redis_integer(reply, 3),
    };
}

static enum hf_result redis_acquire(struct lease *l, const struct lease_request *requests, size_t n,
                                    struct lease_verdict *verdicts, struct hf_fault *fault)
{
    struct redis *r = redis_of(l);
    enum hf_result result = redis_call(&r->caller, SCRIPT_ACQUIRE, requests, n, 4, fault);
    if (result != HF_DONE)
        return result;
    size_t differs = n;
    int64_t others = 0;
    for (size_t i = 0; i < n; i++) {
        const redisReply *reply = r->caller.replies.v[i];
        verdicts[i] = verdict_of(reply, &requests[i]);
        if (reply->type == REDIS_REPLY_ARRAY && redis_integer(reply, 0) == REDIS_SLOTS) {
            differs = i;
            others = redis_integer(reply, 1);
        } else if (verdicts[i].result == HF_TAKEN && requests[i].queue) {
            note_turn(r, &requests[i], &verdicts[i]);
        }
    }
    redis_call_done(&r->caller, n);
    return differs == n ? HF_DONE
                        : refuse_slots(r, requests, n, requests[differs].slots, others, fault);
}

static enum hf_result renew_or_release(struct lease *l, enum redis_script script,
                                       const struct lease_request *requests, size_t n,
                                       struct lease_verdict *verdicts, struct hf_fault *fault)
{
    struct redis *r = redis_of(l);
    r->caller.limit_ms = l->limit_ms;
    enum hf_result result = redis_call(&r->caller, script, requests, n, 4, fault);
    r->caller.limit_ms = 0;
    if (result != HF_DONE)
        return result;
    for (size_t i = 0; i < n; i++)
        verdicts[i] = verdict_of(r->caller.replies.v[i], &requests[i]);
    redis_call_done(&r->caller, n);
    return HF_DONE;
}

static enum hf_result redis_renew(struct lease *l, const struct lease_request *requests, size_t n,
                                  struct lease_verdict *verdicts, struct hf_fault *fault)
{
    return renew_or_release(l, SCRIPT_RENEW, requests, n, verdicts, fault);
}

static enum hf_result redis_release(struct lease *l, const struct lease_request *requests, size_t n,
                                    struct lease_verdict *verdicts, struct hf_fault *fault)
{
    return renew_or_release(l, SCRIPT_RELEASE, requests, n, verdicts, fault);
}

/* ---- waiting ---- */

static bool is_text(const redisReply *reply, size_t i, const char *text)
{
    return reply->type == REDIS_REPLY_ARRAY && i < reply->elements &&
           reply->element[i]->type == REDIS_REPLY_STRING &&
           strcmp(reply->element[i]->str, text) == 0;
}

/* The name of the channel on which a waiter is told of its turn; returns its length. */
static size_t channel_of(const struct lease_request *q, char ret[CHANNEL_SIZE])
{
    char owner[OWNER_LEN + 1];
    size_t len = redis_key(ret, q->key, q->key_len);
    lease_owner_text(q->owner, owner);
    return len + (size_t)snprintf(ret + len, CHANNEL_SIZE - len, ":wake:%s", owner);
}

/* Sends SUBSCRIBE, after UNSUBSCRIBE of the channel before. */
static enum hf_result send_subscribe(struct redis *r, const char *channel, size_t len,
                                     struct hf_fault *fault)
{
    const char *before = r->waiter.channel;
    if (r->messages.fd >= 0 && before[0])
        redis_put(&r->messages,
                  (struct redis_arg[]){REDIS_ARG("UNSUBSCRIBE"), {before, strlen(before)}}, 2);
    redis_put(&r->messages, (struct redis_arg[]){REDIS_ARG("SUBSCRIBE"), {channel, len}}, 2);
    return redis_send(&r->messages, fault);
}

/* Reads answers until the server confirms the subscription. */
static enum hf_result await_confirmation(struct redis *r, const char *channel,
                                         struct hf_fault *fault)
{
    for (bool confirmed = false; !confirmed;) {
        redisReply *reply;
        enum hf_result result =
            redis_receive(&r->messages, r->messages.timeout_ms, -1, &reply, fault);
        if (result != HF_DONE)
            return result;
        if (!reply) {
            redis_link_close(&r->messages);
            return fault_set(fault, HF_UNREACHABLE, "Redis: no answer to SUBSCRIBE");
        }
        confirmed = is_text(reply, 0, "subscribe") && is_text(reply, 1, channel);
        if (reply->type == REDIS_REPLY_ERROR)
            result = redis_refusal(&r->messages, reply, fault);
        freeReplyObject(reply);
        if (result != HF_DONE) {
            redis_link_close(&r->messages);
            return result;
        }
    }
    return HF_DONE;
}

/* Subscribes to the waiter's channel instead of the one before.  After HF_DONE the handle hears
 * everything that is published there. */
static enum hf_result subscribe(struct redis *r, const struct lease_request *q,
                                struct hf_fault *fault)
{
    struct subscription *w = &r->waiter;
    char channel[CHANNEL_SIZE];
    size_t len = channel_of(q, channel);
    if (r->messages.fd >= 0 && strcmp(w->channel, channel) == 0)
        return HF_DONE;
    enum hf_result result = send_subscribe(r, channel, len, fault);
    w->channel[0] = '\0';
    if (result == HF_DONE)
        result = await_confirmation(r, channel, fault);
    if (result != HF_DONE)
        return result == HF_UNKNOWN ? HF_UNREACHABLE : result;
    memcpy(w->channel, channel, sizeof channel);
    memcpy(w->owner, q->owner, LEASE_OWNER_SIZE);
    w->asked_us = INT64_MIN / 2; /* messages before this moment were not heard: ask at once */
    w->turn_us = INT64_MAX;
    return HF_DONE;
}

/* The heartbeat: keeps the place.  *ret_turn: acquire is worth a try. */
static enum hf_result send_heartbeat(struct redis *r, const struct lease_request *q, bool *ret_turn,
                                     struct hf_fault *fault)
{
    enum hf_result result = redis_call(&r->caller, SCRIPT_HEARTBEAT, q, 1, 4, fault);
    if (result != HF_DONE)
        return result == HF_UNKNOWN ? HF_UNREACHABLE : result;
    const redisReply *reply = r->caller.replies.v[0];
    *ret_turn = redis_integer(reply, 0) == REDIS_TURN;
    struct lease_verdict verdict = verdict_of(reply, q);
    redis_call_done(&r->caller, 1);
    note_turn(r, q, &verdict);
    return HF_DONE;
}

/* Sleeps for `us`, until a message or until wake_fd is readable.  Returns true if there is reason
 * to ask: a message came, or the connection failed and asking tells why. */
static bool sleep_until_message(struct redis *r, int64_t us)
{
    redisReply *reply = NULL;
    if (redis_receive(&r->messages, (us + 999) / 1000, r->lease.wake_fd, &reply, NULL) != HF_DONE) {
        r->waiter.channel[0] = '\0';
        return true;
    }
    bool woken = reply && is_text(reply, 0, "message") && is_text(reply, 1, r->waiter.channel);
    if (reply)
        freeReplyObject(reply);
    return woken;
}

static int64_t heartbeat_us(const struct lease_request *q)
{
    int64_t us = 1000 * q->ttl_ms;
    return us < HEARTBEAT_MIN_US ? HEARTBEAT_MIN_US : us < HEARTBEAT_MAX_US ? us : HEARTBEAT_MAX_US;
}

/* Returns when a message came, when the lease before the waiter ends (no message tells that, and
 * only the head of the queue looks), or when the time is up.  If a message is lost the next
 * heartbeat finds out whose turn it is. */
static enum hf_result redis_wait(struct lease *l, const struct lease_request *request,
                                 int64_t timeout_ms, struct hf_fault *fault)
{
    struct redis *r = redis_of(l);
    const struct subscription *w = &r->waiter;
    const struct clock *clock = r->caller.link.clock;
    int64_t end_us = clock_boot_us(clock) + 1000 * timeout_ms;
    int64_t slept_us = 0; /* a test's clock may stand still */
    enum hf_result result = subscribe(r, request, fault);
    while (result == HF_DONE) {
        int64_t now_us = clock_boot_us(clock);
        int64_t heartbeat_at_us = w->asked_us + heartbeat_us(request);
        if (now_us >= end_us || now_us >= w->turn_us || lease_is_woken(l))
            break;
        if (now_us >= heartbeat_at_us) {
            bool turn = false;
            result = send_heartbeat(r, request, &turn, fault);
            if (turn)
                break;
            continue;
        }
        int64_t until_us = heartbeat_at_us < end_us ? heartbeat_at_us : end_us;
        until_us = until_us < w->turn_us ? until_us : w->turn_us;
        slept_us += until_us - now_us;
        if (sleep_until_message(r, until_us - now_us) || slept_us >= 1000 * timeout_ms)
            break;
    }
    return result;
}

/* ---- inspecting ---- */

/* Reads an owner, what is left of its time and "FENCE MODE PRIORITY SLOTS LABEL". */
static void show(const redisReply *const *element, bool waits, struct hf_holder *ret)
{
    const redisReply *owner = element[0], *left = element[1], *who = element[2];
    long long fence = 0;
    char mode = 'e';
    int head_len = 0;
    snprintf(ret->owner, sizeof ret->owner, "%.*s", OWNER_LEN, owner->str ? owner->str : "");
    if (who->str &&
        sscanf(who->str, "%lld %c %d %*u%n", &fence, &mode, &ret->priority, &head_len) == 3 &&
        (size_t)head_len < who->len)
        snprintf(ret->label, sizeof ret->label, "%s", who->str + head_len + 1);
    ret->mode = mode == 's' ? HF_SHARED : HF_EXCLUSIVE;
    ret->fence = waits ? 0 : fence;
    ret->remaining_ms = left->integer;
}

static enum hf_result redis_inspect(struct lease *l, const char *key, size_t key_len,
                                    struct lease_state *ret, struct hf_fault *fault)
{
    struct redis *r = redis_of(l);
    struct lease_request q = {.key = key, .key_len = key_len};
    enum hf_result result = redis_call(&r->caller, SCRIPT_INSPECT, &q, 1, 2, fault);
    if (result != HF_DONE)
        return result == HF_UNKNOWN ? HF_UNREACHABLE : result;
    const redisReply *reply = r->caller.replies.v[0];
    size_t n = (reply->elements - 2) / 3, n_holders = (size_t)redis_integer(reply, 1);
    n_holders = n_holders < n ? n_holders : n;
    *ret = (struct lease_state){
        .n_holders = n_holders, .n_waiters = n - n_holders, .last_fence = redis_integer(reply, 0)};
    if (n_holders > 0)
        ret->holders = hf_alloc(n_holders * sizeof *ret->holders);
    if (n > n_holders)
        ret->waiters = hf_alloc((n - n_holders) * sizeof *ret->waiters);
    for (size_t i = 0; i < n; i++)
        show((const redisReply *const *)&reply->element[2 + 3 * i], i >= n_holders,
             i < n_holders ? &ret->holders[i] : &ret->waiters[i - n_holders]);
    redis_call_done(&r->caller, 1);
    return HF_DONE;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

struct names {
    VEC(char *) all;
};

/* One step of a SCAN: adds names and moves the cursor on, to "0" at the end. */
static enum hf_result scan(struct redis *r, const struct buf *pattern, struct buf *cursor,
                           struct names *names, struct hf_fault *fault)
{
    redisReply *reply;
    redis_put(&r->caller.link,
              (struct redis_arg[]){REDIS_ARG("SCAN"),
                                   {cursor->data, cursor->len},
                                   REDIS_ARG("MATCH"),
                                   {pattern->data, pattern->len},
                                   REDIS_ARG("COUNT"),
                                   REDIS_ARG(SCAN_COUNT)},
              6);
    enum hf_result result = redis_exchange(&r->caller.link, 0, &reply, fault);
    if (result != HF_DONE)
        return result == HF_UNKNOWN ? HF_UNREACHABLE : result;
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 || !reply->element[0]->str) {
        result = redis_refusal(&r->caller.link, reply, fault);
        freeReplyObject(reply);
        return result;
    }
    const redisReply *keys = reply->element[1];
    const size_t around = sizeof REDIS_KEY_HEAD - 1 + sizeof REDIS_KEY_TAIL - 1;
    for (size_t i = 0; i < keys->elements; i++)
        if (keys->element[i]->len > around)
            *vec_push(&names->all) = hf_strndup(keys->element[i]->str + sizeof REDIS_KEY_HEAD - 1,
                                                keys->element[i]->len - around);
    cursor->len = 0;
    buf_put(cursor, reply->element[0]->str, reply->element[0]->len);
    freeReplyObject(reply);
    return HF_DONE;
}

/* SCAN visits every key of the database, not only those of locks, in steps of 1000 that do not
 * block the server.  It may return a name twice, and may miss one that came or went meanwhile. */
static enum hf_result redis_list(struct lease *l, const char *prefix, size_t prefix_len,
                                 lease_each_name *each, void *ctx, struct hf_fault *fault)
{
    struct redis *r = redis_of(l);
    struct names found = {0};
    struct buf pattern = {0}, cursor = {0};
    buf_lit(&pattern, REDIS_KEY_HEAD);
    for (size_t i = 0; i < prefix_len; i++) {
        if (strchr("*?[]\\^-", prefix[i]))
            buf_char(&pattern, '\\');
        buf_char(&pattern, prefix[i]);
    }
    buf_lit(&pattern, "*" REDIS_KEY_TAIL);
    buf_char(&cursor, '0');
    enum hf_result result;
    do
        result = scan(r, &pattern, &cursor, &found, fault);
    while (result == HF_DONE && !(cursor.len == 1 && cursor.data[0] == '0') &&
           found.all.n < LIST_MAX);
    if (result == HF_DONE && found.all.n >= LIST_MAX)
        result = fault_set(fault, HF_FAILED, "more than %d names; give a prefix", LIST_MAX);
    if (found.all.n > 0)
        qsort(found.all.v, found.all.n, sizeof *found.all.v, by_name);
    bool more = result == HF_DONE;
    for (size_t i = 0; i < found.all.n; i++)
        more = more && ((i > 0 && strcmp(found.all.v[i - 1], found.all.v[i]) == 0) ||
                        each(ctx, found.all.v[i]));
    for (size_t i = 0; i < found.all.n; i++)
        free(found.all.v[i]);
    vec_close(&found.all);
    buf_close(&pattern);
    buf_close(&cursor);
    return result;
}

static enum hf_result redis_break(struct lease *l, const char *key, size_t key_len,
                                  struct hf_fault *fault)
{
    struct redis *r = redis_of(l);
    struct lease_request q = {.key = key, .key_len = key_len};
    enum hf_result result = redis_call(&r->caller, SCRIPT_BREAK, &q, 1, 4, fault);
    if (result == HF_DONE)
        redis_call_done(&r->caller, 1);
    return result;
}

const struct lease_driver lease_redis = {
    .info = {.size = sizeof(struct hf_driver_info),
             .name = "redis",
             .url = "redis://[[user]:password@]host[:port][/db], "
                    "redis+unix://[[user]:password@]/path[?db=N]",
             .fence = HF_FENCE_CLOCK,
             .processes = true,
             .outlives = true,
             .fair = true,
             .shared = true,
             .priority = true,
             .slots = true,
             .ttl_min_ms = LEASE_TTL_MIN_MS,
             .ttl_max_ms = LEASE_TTL_MAX_MS,
             .name_len_max = LEASE_NAME_MAX,
             .ttl = "the Redis server's wall clock, to the millisecond; leases end early if it is "
                    "set forward, late if it is set back",
             .survives =
                 "clients' ends and lost connections; a restart as far as the server persists "
                 "(without, or with the last second of an AOF missing, leases are gone at once, "
                 "while their holders may still believe in them). Fences go on by the server's "
                 "clock, also after FLUSHALL; they can repeat or fall only if what was stored is "
                 "lost and the clock is set back meanwhile, or in a failover to a replica that had "
                 "not got the latest and whose clock is behind. A failover can lose leases too: "
                 "replication is asynchronous. No eviction of keys (maxmemory-policy noeviction), "
                 "no cluster"},
    .schemes = (const char *const[]){"redis://", "redis+unix:", "unix:", NULL},
    .open = redis_open,
    .close = redis_close,
    .clone = redis_clone,
    .acquire = redis_acquire,
    .renew = redis_renew,
    .release = redis_release,
    .wait = redis_wait,
    .inspect = redis_inspect,
    .list = redis_list,
    .break_ = redis_break,
};
