/* The gate of gate.h in Redis: claims and settlements become calls of the scripts in
 * redis_scripts.h.  The engine's workers use it before and after the ledger, the reconciler repairs
 * it; each of them has a handle of its own.  A failure of any kind closes the link, so that the next
 * call connects again. */
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "base/local_host.h"
#include "gate/redis_internal.h"
#include "gate/redis_scripts.h"

#define TIMEOUT_MAX_MS 3600000
#define TTL_MAX_MS (INT64_C(366) * 86400000) /* above that of any hold; SET refuses larger ones */
#define ARG_LEN_MAX 40                       /* of a key or number: seat:{2^63}:2^32 has 37 */

_Static_assert(sizeof HEAD_SEAT == sizeof HEAD_AREA, "both heads have the same length");

static const struct redis_arg scripts[N_SCRIPTS] = {
    [SCRIPT_CLAIM] = {GATE_CLAIM, sizeof GATE_CLAIM - 1},
    [SCRIPT_SETTLE] = {GATE_SETTLE, sizeof GATE_SETTLE - 1},
    [SCRIPT_COUNTS] = {GATE_COUNTS, sizeof GATE_COUNTS - 1},
    [SCRIPT_READ] = {GATE_READ, sizeof GATE_READ - 1},
};

/* ---- the server's clock ---- */

static int64_t our_ms(const struct gate *g) { return clock_boot_us(g->caller.link.clock) / 1000; }

/* Returns the time, by the server's clock, at which the call began: the TTLs count from there.  It
 * is computed from the last answer, which took some time to arrive, and so is a little too early.
 * When the server's clock was set, it is wrong for one call; when it was set back, it may stay too
 * late by as long as a late answer took, until one is waited for. */
static int64_t sent_ms(const struct gate *g) { return g->called_ms + g->ahead_ms; }

static void note_time(struct gate *g, int64_t server_ms) { g->ahead_ms = server_ms - our_ms(g); }

/* The server read its clock between unread_ms and now: what is known of it changes only as far as
 * this forces it to. */
static void note_late_time(struct gate *g, int64_t server_ms)
{
    int64_t least = server_ms - our_ms(g), most = server_ms - g->unread_ms;
    g->ahead_ms = g->ahead_ms < least ? least : g->ahead_ms > most ? most : g->ahead_ms;
}

static bool is_time(const void *ctx, const redisReply *reply)
{
    (void)ctx;
    return reply->type == REDIS_REPLY_INTEGER && reply->integer > 0;
}

static void note_times(struct gate *g, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (is_time(NULL, g->caller.replies.v[i]))
            note_time(g, g->caller.replies.v[i]->integer);
}

/* ---- handles ---- */

enum hf_result gate_open(const char *url, const struct clock *clock, int64_t timeout_ms,
                         struct gate **ret, struct hf_fault *fault)
{
    struct redis_address address;
    enum hf_result result = redis_address_parse(url, &address, fault);
    if (result != HF_DONE)
        return result;
    if (address.min_replicas > 0) {
        redis_address_close(&address);
        return fault_set(fault, HF_BAD_REQUEST,
                         "the Redis URL: min_replicas is for locks; a gate may be lost");
    }
    if (timeout_ms <= 0)
        timeout_ms = GATE_TIMEOUT_MS;
    struct gate *g = hf_alloc(sizeof *g);
    g->address = address;
    redis_link_init(&g->caller.link, &g->address, clock,
                    timeout_ms < TIMEOUT_MAX_MS ? timeout_ms : TIMEOUT_MAX_MS);
    redis_caller_init(&g->caller, scripts, N_SCRIPTS);
    *ret = g;
    return HF_DONE;
}

/* Primaries are taken to be where their sentinels are. */
static bool is_local(const struct redis_address *a)
{
    for (size_t i = 0; i < a->n_sentinels; i++)
        if (!host_is_local(a->sentinels[i].host))
            return false;
    return a->n_sentinels > 0 || !a->host || host_is_local(a->host);
}

bool gate_shows_password(const struct gate *g)
{
    const struct redis_address *a = &g->address;
    return !a->tls && (a->password || a->sentinel_password) && !is_local(a);
}

void gate_close(struct gate *g)
{
    if (!g)
        return;
    redis_caller_close(&g->caller);
    redis_address_close(&g->address);
    vec_close(&g->args);
    buf_close(&g->text);
    vec_close(&g->groups);
    free(g);
}

static void forget_server(struct gate *g)
{
    g->ahead_ms = 0;
    g->known = 0;
    g->n_unread = 0;
}

enum hf_result gate_ended(struct gate *g, enum hf_result result, struct hf_fault *fault)
{
    g->caller.link.deadline_us = 0;
    if (result == HF_DONE)
        return result;
    redis_link_close(&g->caller.link);
    forget_server(g);
    if (result == HF_FAILED)
        result = HF_UNKNOWN;
    if (fault)
        fault->result = result;
    return result;
}

/* Reads an answer to gate_settle_later, and whether the server has forgotten the script. */
static enum hf_result read_late(struct gate *g, int64_t deadline_ms, bool *ret_forgotten,
                                struct hf_fault *fault)
{
    redisReply *reply;
    int64_t left_ms = deadline_ms - our_ms(g);
    enum hf_result result =
        redis_receive(&g->caller.link, left_ms > 0 ? left_ms : 0, -1, &reply, fault);
    if (result != HF_DONE)
        return result;
    if (!reply)
        return fault_set(fault, HF_UNKNOWN, "the Redis server has not answered within %lld ms",
                         (long long)g->caller.link.timeout_ms);
    if (is_time(NULL, reply))
        note_late_time(g, reply->integer);
    else if (redis_is_unknown_script(reply))
        *ret_forgotten = true;
    else
        result = redis_refusal(&g->caller.link, reply, fault);
    freeReplyObject(reply);
    return result;
}

enum hf_result gate_begun(struct gate *g, struct hf_fault *fault)
{
    struct redis_link *link = &g->caller.link;
    bool is_forgotten = false;
    enum hf_result result = HF_DONE;
    g->called_ms = our_ms(g);
    if (!g->n_unread)
        return HF_DONE;
    int64_t deadline_ms = g->called_ms + link->timeout_ms;
    for (; g->n_unread && result == HF_DONE; g->n_unread--)
        result = read_late(g, deadline_ms, &is_forgotten, fault);
    link->deadline_us = 1000 * deadline_ms;
    if (result != HF_DONE && link->fd < 0) {
        forget_server(g);
        return HF_DONE;
    }
    if (is_forgotten)
        g->known = 0; /* the next settlement waits for its answers, and brings the scripts */
    return result;
}

enum hf_result gate_exchange(struct gate *g, int type, redisReply **replies, size_t n,
                             struct hf_fault *fault)
{
    enum hf_result result = redis_exchange(&g->caller.link, 0, replies, fault);
    if (result != HF_DONE)
        return result;
    for (size_t i = 0; i < n; i++)
        if (replies[i]->type != type)
            result = redis_refusal(&g->caller.link, replies[i], fault);
    for (size_t i = 0; i < n && result != HF_DONE; i++)
        freeReplyObject(replies[i]);
    return result;
}

static enum hf_result ask_time(struct gate *g, struct hf_fault *fault)
{
    redisReply *reply;
    redis_put(&g->caller.link, &REDIS_ARG("TIME"), 1);
    enum hf_result result = gate_exchange(g, REDIS_REPLY_ARRAY, &reply, 1, fault);
    if (result != HF_DONE)
        return result;
    int64_t us = redis_time_us(reply);
    if (us)
        note_time(g, us / 1000);
    else
        result = redis_refusal(&g->caller.link, reply, fault);
    freeReplyObject(reply);
    return result;
}

/* Runs scripts that are told when they were sent.  If the server's clock is not known, it is asked
 * for first, within the same time limit. */
static enum hf_result run_timed(struct gate *g, const struct redis_batch *batch,
                                struct hf_fault *fault)
{
    struct redis_link *link = &g->caller.link;
    if (!g->ahead_ms) {
        enum hf_result result = ask_time(g, fault);
        if (result != HF_DONE)
            return result;
        if (!link->deadline_us)
            link->deadline_us = link->used_us + 1000 * link->timeout_ms;
    }
    enum hf_result result = redis_run(&g->caller, batch, fault);
    if (result == HF_DONE)
        note_times(g, batch->n);
    return result;
}

enum hf_result gate_ping(struct gate *g, struct hf_fault *fault)
{
    redisReply *reply;
    enum hf_result result = gate_begun(g, fault);
    if (result != HF_DONE)
        return gate_ended(g, result, fault);
    redis_put(&g->caller.link, &REDIS_ARG("PING"), 1);
    result = gate_exchange(g, REDIS_REPLY_STATUS, &reply, 1, fault);
    if (result == HF_DONE)
        freeReplyObject(reply);
    return gate_ended(g, result, fault);
}

/* ---- commands ---- */

void gate_command(struct gate *g, enum gate_script script, size_t n_keys, size_t n_more)
{
    vec_clear(&g->args);
    g->text.len = 0;
    buf_reserve(&g->text, (1 + n_keys + n_more) * ARG_LEN_MAX);
    for (size_t i = 0; i < REDIS_HEAD_ARGS; i++)
        vec_push(&g->args);
    redis_head(&g->caller, script, g->args.v);
}

void gate_add(struct gate *g, struct redis_arg arg) { *vec_push(&g->args) = arg; }

void gate_add_number(struct gate *g, int64_t number)
{
    const char *at = g->text.data + g->text.len;
    size_t before = g->text.len;
    buf_int(&g->text, number);
    gate_add(g, (struct redis_arg){at, g->text.len - before});
}

static void add_key(struct gate *g, const char head[HEAD_LEN + 1], int64_t event, uint32_t number)
{
    const char *at = g->text.data + g->text.len;
    size_t before = g->text.len;
    buf_put(&g->text, head, HEAD_LEN);
    buf_int(&g->text, event);
    buf_lit(&g->text, "}:");
    buf_int(&g->text, number);
    gate_add(g, (struct redis_arg){at, g->text.len - before});
}

static void claim_text(const uint8_t token[GATE_TOKEN_SIZE], char ret[CLAIM_LEN + 1])
{
    ret[0] = 'c';
    ret[1] = ':';
    hex_format(token, GATE_TOKEN_SIZE, ret + 2);
}

/* ---- before the ledger ---- */

struct claims {
    struct gate *gate;
    const struct gate_claim *claims;
    char text[CLAIM_LEN + 1];
};

static void claim_put(struct redis_caller *c, const void *ctx, size_t i)
{
    const struct claims *all = ctx;
    const struct gate_claim *claim = &all->claims[i];
    struct gate *g = all->gate;
    size_t n = (size_t)claim->n_seats + claim->n_areas;
    hf_check(n <= GATE_CLAIM_KEYS_MAX);
    gate_command(g, SCRIPT_CLAIM, n, 4 + claim->n_areas);
    gate_add_number(g, (int64_t)n);
    for (uint32_t s = 0; s < claim->n_seats; s++)
        add_key(g, HEAD_SEAT, claim->event, claim->seats[s]);
    for (uint32_t a = 0; a < claim->n_areas; a++)
        add_key(g, HEAD_AREA, claim->event, claim->areas[a].area);
    gate_add_number(g, sent_ms(g));
    gate_add(g, (struct redis_arg){all->text, CLAIM_LEN});
    gate_add_number(g, GATE_CLAIM_MS);
    gate_add_number(g, c->link.timeout_ms);
    gate_add_number(g, claim->n_seats);
    for (uint32_t a = 0; a < claim->n_areas; a++)
        gate_add_number(g, claim->areas[a].quantity);
    redis_put(&c->link, g->args.v, g->args.n);
}

static bool claim_fits(const void *ctx, const redisReply *reply)
{
    return is_time(ctx, reply) || (reply->type == REDIS_REPLY_ARRAY && reply->elements >= 2 &&
                                   reply->element[1]->type == REDIS_REPLY_STRING);
}

static void claim_read(struct gate_claim *c, const redisReply *reply)
{
    if (reply->type != REDIS_REPLY_ARRAY)
        return;
    int64_t area = redis_integer(reply, 0);
    if (area >= 1 && area <= c->n_areas) {
        c->short_area = c->areas[area - 1].area;
        c->available = strtoll(reply->element[1]->str, NULL, 10);
    }
    for (size_t i = 2; i < reply->elements; i++) {
        int64_t seat = redis_integer(reply, i);
        if (seat >= 1 && seat <= c->n_seats && c->n_taken < c->n_seats)
            c->taken[c->n_taken++] = c->seats[seat - 1];
    }
}

enum hf_result gate_claim(struct gate *g, const uint8_t token[GATE_TOKEN_SIZE],
                          struct gate_claim *claims, size_t n, struct hf_fault *fault)
{
    struct claims all = {.gate = g, .claims = claims};
    for (size_t i = 0; i < n; i++) {
        claims[i].n_taken = 0;
        claims[i].short_area = -1;
        claims[i].available = 0;
    }
    if (n == 0)
        return HF_DONE;
    claim_text(token, all.text);
    enum hf_result result = gate_begun(g, fault);
    if (result == HF_DONE)
        result = run_timed(g, &(struct redis_batch){n, &all, claim_put, claim_fits}, fault);
    for (size_t i = 0; i < n && result == HF_DONE; i++)
        claim_read(&claims[i], g->caller.replies.v[i]);
    if (result == HF_DONE)
        redis_call_done(&g->caller, n);
    return gate_ended(g, result, fault);
}

/* ---- after the ledger ---- */

struct settlement {
    struct gate *gate;
    const struct gate_seat *seats;
    const struct gate_count *counts;
    char text[CLAIM_LEN + 1];
};

static int64_t bounded_ttl(int64_t ttl_ms)
{
    return ttl_ms < 0 ? 0 : ttl_ms < TTL_MAX_MS ? ttl_ms : TTL_MAX_MS;
}

static void settle_put_seats(const struct settlement *s, const struct gate_group *group)
{
    size_t n = group->to - group->from;
    gate_command(s->gate, SCRIPT_SETTLE, n, 1 + 2 * n);
    gate_add_number(s->gate, (int64_t)n);
    for (size_t i = group->from; i < group->to; i++)
        add_key(s->gate, HEAD_SEAT, s->seats[i].event, s->seats[i].seat);
    gate_add_number(s->gate, sent_ms(s->gate));
    gate_add(s->gate, (struct redis_arg){s->text, CLAIM_LEN});
    for (size_t i = group->from; i < group->to; i++) {
        gate_add_number(s->gate, s->seats[i].hold);
        gate_add_number(s->gate, bounded_ttl(s->seats[i].ttl_ms));
    }
}

static void settle_put_counts(const struct settlement *s, const struct gate_group *group)
{
    size_t n = group->to - group->from;
    gate_command(s->gate, SCRIPT_COUNTS, n, 1 + 3 * n);
    gate_add_number(s->gate, (int64_t)n);
    for (size_t i = group->from; i < group->to; i++)
        add_key(s->gate, HEAD_AREA, s->counts[i].event, s->counts[i].area);
    gate_add_number(s->gate, sent_ms(s->gate));
    for (size_t i = group->from; i < group->to; i++) {
        gate_add_number(s->gate, s->counts[i].seq);
        gate_add_number(s->gate, s->counts[i].available);
        gate_add_number(s->gate, bounded_ttl(s->counts[i].ttl_ms));
    }
}

static void settle_put(struct redis_caller *c, const void *ctx, size_t i)
{
    const struct settlement *s = ctx;
    const struct gate_group *group = &s->gate->groups.v[i];
    if (group->counts)
        settle_put_counts(s, group);
    else
        settle_put_seats(s, group);
    redis_put(&c->link, s->gate->args.v, s->gate->args.n);
}

static int64_t event_of(const struct settlement *s, bool counts, size_t i)
{
    return counts ? s->counts[i].event : s->seats[i].event;
}

static void group_up(const struct settlement *s, bool counts, size_t n)
{
    for (size_t from = 0, to; from < n; from = to) {
        for (to = from + 1; to < n && to - from < GROUP_MAX; to++)
            if (event_of(s, counts, to) != event_of(s, counts, from))
                break;
        *vec_push(&s->gate->groups) = (struct gate_group){from, to, counts};
    }
}

/* The bits of the scripts that a settlement runs. */
static unsigned settle_scripts(size_t n_seats, size_t n_counts)
{
    return (n_seats ? 1U << SCRIPT_SETTLE : 0) | (n_counts ? 1U << SCRIPT_COUNTS : 0);
}

/* Does the server know these scripts, and we its clock, as far as can be told without asking? */
static bool knows(struct gate *g, unsigned scripts_needed)
{
    struct redis_link *link = &g->caller.link;
    redis_drop_stale(link);
    return link->fd >= 0 && g->dials == link->dials && g->ahead_ms &&
           (g->known & scripts_needed) == scripts_needed;
}

/* Groups the settlement up; returns how many commands it takes. */
static size_t settle_begin(struct settlement *s, const uint8_t token[GATE_TOKEN_SIZE],
                           size_t n_seats, size_t n_counts)
{
    claim_text(token, s->text);
    vec_clear(&s->gate->groups);
    group_up(s, false, n_seats);
    group_up(s, true, n_counts);
    return s->gate->groups.n;
}

/* The rest of a settlement that has begun, and whose answers are waited for. */
static enum hf_result settle_now(struct settlement *s, size_t n, unsigned needed,
                                 struct hf_fault *fault)
{
    struct gate *g = s->gate;
    enum hf_result result = run_timed(g, &(struct redis_batch){n, s, settle_put, is_time}, fault);
    if (result == HF_DONE) {
        redis_call_done(&g->caller, n);
        g->known = (g->dials == g->caller.link.dials ? g->known : 0) | needed;
        g->dials = g->caller.link.dials;
    }
    return gate_ended(g, result, fault);
}

enum hf_result gate_settle(struct gate *g, const uint8_t token[GATE_TOKEN_SIZE],
                           const struct gate_seat *seats, size_t n_seats,
                           const struct gate_count *counts, size_t n_counts, struct hf_fault *fault)
{
    struct settlement s = {.gate = g, .seats = seats, .counts = counts};
    size_t n = settle_begin(&s, token, n_seats, n_counts);
    if (n == 0)
        return HF_DONE;
    enum hf_result result = gate_begun(g, fault);
    return result == HF_DONE ? settle_now(&s, n, settle_scripts(n_seats, n_counts), fault)
                             : gate_ended(g, result, fault);
}

enum hf_result gate_settle_later(struct gate *g, const uint8_t token[GATE_TOKEN_SIZE],
                                 const struct gate_seat *seats, size_t n_seats,
                                 const struct gate_count *counts, size_t n_counts,
                                 struct hf_fault *fault)
{
    struct settlement s = {.gate = g, .seats = seats, .counts = counts};
    unsigned needed = settle_scripts(n_seats, n_counts);
    size_t n = settle_begin(&s, token, n_seats, n_counts);
    if (n == 0)
        return HF_DONE;
    enum hf_result result = gate_begun(g, fault);
    if (result != HF_DONE)
        return gate_ended(g, result, fault);
    if (!knows(g, needed))
        return settle_now(&s, n, needed, fault);
    g->unread_ms = our_ms(g);
    result = redis_start(&g->caller, &(struct redis_batch){n, &s, settle_put, is_time}, fault);
    g->n_unread = n;
    return gate_ended(g, result, fault);
}
