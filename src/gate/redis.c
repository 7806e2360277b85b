/* The gate of gate.h in Redis: claims, settlements and scans become calls of the scripts in
 * redis_scripts.h.  The engine's workers use it before and after the ledger, the reconciler reads
 * and repairs it, `holdfast verify` reads it; each of them has a handle of its own.  A failure of
 * any kind closes the link, so that the next call connects again. */
#include "gate/gate.h"

#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "base/local_host.h"
#include "gate/redis_scripts.h"
#include "redis/call.h"

#define TIMEOUT_MAX_MS 3600000
#define TTL_MAX_MS (INT64_C(366) * 86400000) /* above that of any hold; SET refuses larger ones */
#define GROUP_MAX 100                        /* keys per script, so that none runs long */
#define ARG_LEN_MAX 40                       /* of a key or number: seat:{2^63}:2^32 has 37 */
#define SCAN_COUNT "1000"
#define CLAIM_LEN (2 + 2 * GATE_TOKEN_SIZE) /* "c:TOKEN" in hex */

#define HEAD_SEAT "seat:{"
#define HEAD_AREA "area:{"
#define HEAD_LEN (sizeof HEAD_SEAT - 1)
#define SCAN_PATTERN "[as][er][ae][at]:{*" /* matches both heads, and little else */

_Static_assert(sizeof HEAD_SEAT == sizeof HEAD_AREA, "both heads have the same length");

enum gate_script { SCRIPT_CLAIM, SCRIPT_SETTLE, SCRIPT_COUNTS, SCRIPT_READ, N_SCRIPTS };

static const struct redis_arg scripts[N_SCRIPTS] = {
    [SCRIPT_CLAIM] = {GATE_CLAIM, sizeof GATE_CLAIM - 1},
    [SCRIPT_SETTLE] = {GATE_SETTLE, sizeof GATE_SETTLE - 1},
    [SCRIPT_COUNTS] = {GATE_COUNTS, sizeof GATE_COUNTS - 1},
    [SCRIPT_READ] = {GATE_READ, sizeof GATE_READ - 1},
};

/* The part of a settlement that one script does: seats, or counts, of one event. */
struct group {
    size_t from, to; /* indexes of the first and behind the last */
    bool counts;
};

struct gate {
    struct redis_address address;
    struct redis_caller caller;
    VEC(struct redis_arg) args; /* scratch: the command being made */
    struct buf text;            /* scratch: the texts that `args` point into */
    VEC(struct group) groups;   /* scratch: of the settlement being made */
    int64_t ahead_ms;           /* the server's clock minus ours, at most; 0: to be asked for */
    unsigned known, dials;      /* bits of the scripts that the server has run; link.dials then */
    size_t n_unread;            /* answers to gate_settle_later */
    int64_t unread_ms;          /* when it was sent, by our clock */
    int64_t called_ms;          /* when the call under way began */
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

/* Every call ends here.  A failure closes the link: a server that refuses may be the wrong one by
 * now (a replica, one that is loading), so its name is looked up and its clock is asked for again.
 * A refused command may have been executed in part, so its outcome is unknown. */
static enum hf_result ended(struct gate *g, enum hf_result result, struct hf_fault *fault)
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

/* Every call begins here: reads what was not read yet, which takes time off the call.  If that was
 * lost with its link, the call goes on over another one. */
static enum hf_result begun(struct gate *g, struct hf_fault *fault)
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

/* Exchanges `n` commands that have been put; an answer of another type than `type` is a refusal. */
static enum hf_result exchange(struct gate *g, int type, redisReply **replies, size_t n,
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
    enum hf_result result = exchange(g, REDIS_REPLY_ARRAY, &reply, 1, fault);
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
    enum hf_result result = begun(g, fault);
    if (result != HF_DONE)
        return ended(g, result, fault);
    redis_put(&g->caller.link, &REDIS_ARG("PING"), 1);
    result = exchange(g, REDIS_REPLY_STATUS, &reply, 1, fault);
    if (result == HF_DONE)
        freeReplyObject(reply);
    return ended(g, result, fault);
}

/* ---- commands ---- */

/* Begins a command that runs `script`.  Reserves room for the texts of all its keys and further
 * arguments: they must not move once args point into them. */
static void begin(struct gate *g, enum gate_script script, size_t n_keys, size_t n_more)
{
    vec_clear(&g->args);
    g->text.len = 0;
    buf_reserve(&g->text, (1 + n_keys + n_more) * ARG_LEN_MAX);
    for (size_t i = 0; i < REDIS_HEAD_ARGS; i++)
        vec_push(&g->args);
    redis_head(&g->caller, script, g->args.v);
}

static void add(struct gate *g, struct redis_arg arg) { *vec_push(&g->args) = arg; }

static void add_number(struct gate *g, int64_t number)
{
    const char *at = g->text.data + g->text.len;
    size_t before = g->text.len;
    buf_int(&g->text, number);
    add(g, (struct redis_arg){at, g->text.len - before});
}

static void add_key(struct gate *g, const char head[HEAD_LEN + 1], int64_t event, uint32_t number)
{
    const char *at = g->text.data + g->text.len;
    size_t before = g->text.len;
    buf_put(&g->text, head, HEAD_LEN);
    buf_int(&g->text, event);
    buf_lit(&g->text, "}:");
    buf_int(&g->text, number);
    add(g, (struct redis_arg){at, g->text.len - before});
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
    begin(g, SCRIPT_CLAIM, n, 4 + claim->n_areas);
    add_number(g, (int64_t)n);
    for (uint32_t s = 0; s < claim->n_seats; s++)
        add_key(g, HEAD_SEAT, claim->event, claim->seats[s]);
    for (uint32_t a = 0; a < claim->n_areas; a++)
        add_key(g, HEAD_AREA, claim->event, claim->areas[a].area);
    add_number(g, sent_ms(g));
    add(g, (struct redis_arg){all->text, CLAIM_LEN});
    add_number(g, GATE_CLAIM_MS);
    add_number(g, c->link.timeout_ms);
    add_number(g, claim->n_seats);
    for (uint32_t a = 0; a < claim->n_areas; a++)
        add_number(g, claim->areas[a].quantity);
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
    enum hf_result result = begun(g, fault);
    if (result == HF_DONE)
        result = run_timed(g, &(struct redis_batch){n, &all, claim_put, claim_fits}, fault);
    for (size_t i = 0; i < n && result == HF_DONE; i++)
        claim_read(&claims[i], g->caller.replies.v[i]);
    if (result == HF_DONE)
        redis_call_done(&g->caller, n);
    return ended(g, result, fault);
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

static void settle_put_seats(const struct settlement *s, const struct group *group)
{
    size_t n = group->to - group->from;
    begin(s->gate, SCRIPT_SETTLE, n, 1 + 2 * n);
    add_number(s->gate, (int64_t)n);
    for (size_t i = group->from; i < group->to; i++)
        add_key(s->gate, HEAD_SEAT, s->seats[i].event, s->seats[i].seat);
    add_number(s->gate, sent_ms(s->gate));
    add(s->gate, (struct redis_arg){s->text, CLAIM_LEN});
    for (size_t i = group->from; i < group->to; i++) {
        add_number(s->gate, s->seats[i].hold);
        add_number(s->gate, bounded_ttl(s->seats[i].ttl_ms));
    }
}

static void settle_put_counts(const struct settlement *s, const struct group *group)
{
    size_t n = group->to - group->from;
    begin(s->gate, SCRIPT_COUNTS, n, 1 + 3 * n);
    add_number(s->gate, (int64_t)n);
    for (size_t i = group->from; i < group->to; i++)
        add_key(s->gate, HEAD_AREA, s->counts[i].event, s->counts[i].area);
    add_number(s->gate, sent_ms(s->gate));
    for (size_t i = group->from; i < group->to; i++) {
        add_number(s->gate, s->counts[i].seq);
        add_number(s->gate, s->counts[i].available);
        add_number(s->gate, bounded_ttl(s->counts[i].ttl_ms));
    }
}

static void settle_put(struct redis_caller *c, const void *ctx, size_t i)
{
    const struct settlement *s = ctx;
    const struct group *group = &s->gate->groups.v[i];
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
        *vec_push(&s->gate->groups) = (struct group){from, to, counts};
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
    return ended(g, result, fault);
}

enum hf_result gate_settle(struct gate *g, const uint8_t token[GATE_TOKEN_SIZE],
                           const struct gate_seat *seats, size_t n_seats,
                           const struct gate_count *counts, size_t n_counts, struct hf_fault *fault)
{
    struct settlement s = {.gate = g, .seats = seats, .counts = counts};
    size_t n = settle_begin(&s, token, n_seats, n_counts);
    if (n == 0)
        return HF_DONE;
    enum hf_result result = begun(g, fault);
    return result == HF_DONE ? settle_now(&s, n, settle_scripts(n_seats, n_counts), fault)
                             : ended(g, result, fault);
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
    enum hf_result result = begun(g, fault);
    if (result != HF_DONE)
        return ended(g, result, fault);
    if (!knows(g, needed))
        return settle_now(&s, n, needed, fault);
    g->unread_ms = our_ms(g);
    result = redis_start(&g->caller, &(struct redis_batch){n, &s, settle_put, is_time}, fault);
    g->n_unread = n;
    return ended(g, result, fault);
}

/* ---- scanning ---- */

/* Reads a decimal number as buf_int writes it and moves *at behind it.  Returns false if there is
 * none, or if it is above `max`. */
static bool read_number(const char **at, const char *end, int64_t max, int64_t *ret)
{
    const char *p = *at;
    int64_t n = 0;
    while (p < end && *p >= '0' && *p <= '9') {
        int digit = *p++ - '0';
        if (n > (max - digit) / 10)
            return false;
        n = 10 * n + digit;
    }
    if (p == *at || (**at == '0' && p - *at > 1))
        return false;
    *at = p;
    *ret = n;
    return true;
}

/* What a key names. */
struct gate_place {
    bool area; /* an area, not a seat */
    int64_t event, number;
};

static bool read_literal(const char **at, const char *end, const char *literal, size_t len)
{
    if ((size_t)(end - *at) < len || memcmp(*at, literal, len) != 0)
        return false;
    *at += len;
    return true;
}

/* Returns false if the key has not the form of ours. */
static bool read_key(const redisReply *key, struct gate_place *ret)
{
    if (key->type != REDIS_REPLY_STRING)
        return false;
    const char *at = key->str, *end = at + key->len;
    ret->area = !read_literal(&at, end, HEAD_SEAT, HEAD_LEN);
    return (!ret->area || read_literal(&at, end, HEAD_AREA, HEAD_LEN)) &&
           read_number(&at, end, INT64_MAX, &ret->event) && read_literal(&at, end, "}:", 2) &&
           read_number(&at, end, UINT32_MAX, &ret->number) && at == end;
}

static bool is_claim(const redisReply *value)
{
    if (value->len != CLAIM_LEN || memcmp(value->str, "c:", 2) != 0)
        return false;
    for (size_t i = 2; i < CLAIM_LEN; i++)
        if (!strchr("0123456789abcdef", value->str[i]) || !value->str[i])
            return false;
    return true;
}

/* Visits the seat, unless the value is a claim.  Returns false if the value cannot be read. */
static bool visit_seat(const struct gate_visitor *visitor, const struct gate_place *p,
                       const redisReply *value, int64_t ttl_ms)
{
    const char *at = value->str, *end = at + value->len;
    int64_t hold;
    if (is_claim(value))
        return true;
    if (!read_number(&at, end, INT64_MAX, &hold) || at != end || hold == 0)
        return false;
    visitor->seat(visitor->ctx, p->event, (uint32_t)p->number, hold, ttl_ms);
    return true;
}

/* Visits the count.  Returns false if the value cannot be read. */
static bool visit_count(const struct gate_visitor *visitor, const struct gate_place *p,
                        const redisReply *value)
{
    const char *at = value->str, *end = at + value->len;
    int64_t seq, available;
    if (!read_number(&at, end, INT64_MAX, &seq) || !read_literal(&at, end, " ", 1))
        return false;
    bool negative = read_literal(&at, end, "-", 1);
    if (!read_number(&at, end, INT64_MAX, &available) || at != end)
        return false;
    visitor->count(visitor->ctx, p->event, (uint32_t)p->number, seq,
                   negative ? -available : available);
    return true;
}

static void visit(const struct gate_visitor *visitor, const redisReply *key,
                  const redisReply *value, const redisReply *ttl)
{
    struct gate_place p;
    if (!read_key(key, &p) || ttl->type != REDIS_REPLY_INTEGER || ttl->integer == -2)
        return;
    if (value->type != REDIS_REPLY_STRING || ttl->integer < 0 ||
        !(p.area ? visit_count(visitor, &p, value) : visit_seat(visitor, &p, value, ttl->integer)))
        visitor->strange(visitor->ctx, key->str, key->len);
}

/* The keys of one page of a SCAN, which are read GROUP_MAX per script. */
struct gate_page {
    struct gate *gate;
    VEC(redisReply *) keys; /* those of our form, borrowed from the answer */
};

static size_t group_end(const struct gate_page *page, size_t i)
{
    size_t to = (i + 1) * GROUP_MAX;
    return to < page->keys.n ? to : page->keys.n;
}

static void scan_put(struct redis_caller *c, const void *ctx, size_t i)
{
    const struct gate_page *page = ctx;
    size_t from = i * GROUP_MAX, to = group_end(page, i);
    begin(page->gate, SCRIPT_READ, to - from, 0);
    add_number(page->gate, (int64_t)(to - from));
    for (size_t k = from; k < to; k++)
        add(page->gate, (struct redis_arg){page->keys.v[k]->str, page->keys.v[k]->len});
    redis_put(&c->link, page->gate->args.v, page->gate->args.n);
}

static bool is_array(const void *ctx, const redisReply *reply)
{
    (void)ctx;
    return reply->type == REDIS_REPLY_ARRAY;
}

static enum hf_result read_page(struct gate *g, const redisReply *keys,
                                const struct gate_visitor *visitor, struct hf_fault *fault)
{
    struct gate_page page = {.gate = g};
    struct gate_place p;
    for (size_t i = 0; i < keys->elements; i++)
        if (read_key(keys->element[i], &p))
            *vec_push(&page.keys) = keys->element[i];
    size_t n = (page.keys.n + GROUP_MAX - 1) / GROUP_MAX;
    enum hf_result result = HF_DONE;
    if (n > 0)
        result = redis_run(&g->caller, &(struct redis_batch){n, &page, scan_put, is_array}, fault);
    for (size_t i = 0; i < n && result == HF_DONE; i++) {
        const redisReply *reply = g->caller.replies.v[i];
        size_t from = i * GROUP_MAX, to = group_end(&page, i);
        for (size_t k = 0; k < to - from && 2 * k + 1 < reply->elements; k++)
            visit(visitor, page.keys.v[from + k], reply->element[2 * k], reply->element[2 * k + 1]);
    }
    if (result == HF_DONE)
        redis_call_done(&g->caller, n);
    vec_close(&page.keys);
    return result;
}

/* Does one step of the SCAN and moves the cursor, which is "0" after the last step. */
static enum hf_result scan_step(struct gate *g, struct buf *cursor,
                                const struct gate_visitor *visitor, struct hf_fault *fault)
{
    redisReply *reply;
    redis_put(&g->caller.link,
              (struct redis_arg[]){REDIS_ARG("SCAN"),
                                   {cursor->data, cursor->len},
                                   REDIS_ARG("MATCH"),
                                   REDIS_ARG(SCAN_PATTERN),
                                   REDIS_ARG("COUNT"),
                                   REDIS_ARG(SCAN_COUNT)},
              6);
    enum hf_result result = exchange(g, REDIS_REPLY_ARRAY, &reply, 1, fault);
    if (result != HF_DONE)
        return result;
    if (reply->elements == 2 && reply->element[0]->type == REDIS_REPLY_STRING) {
        cursor->len = 0;
        buf_put(cursor, reply->element[0]->str, reply->element[0]->len);
        result = read_page(g, reply->element[1], visitor, fault);
    } else {
        result = redis_refusal(&g->caller.link, reply, fault);
    }
    freeReplyObject(reply);
    return result;
}

enum hf_result gate_scan(struct gate *g, const struct gate_visitor *visitor, struct hf_fault *fault)
{
    struct buf cursor = {0};
    enum hf_result result = begun(g, fault);
    if (result != HF_DONE)
        return ended(g, result, fault);
    g->caller.link.deadline_us = 0; /* each step has a time limit of its own */
    buf_char(&cursor, '0');
    do
        result = visitor->stop && visitor->stop(visitor->ctx)
                     ? fault_set(fault, HF_UNREACHABLE, "the scan was stopped")
                     : scan_step(g, &cursor, visitor, fault);
    while (result == HF_DONE && !(cursor.len == 1 && cursor.data[0] == '0'));
    buf_close(&cursor);
    return ended(g, result, fault);
}

enum hf_result gate_drop(struct gate *g, const char *const *keys, const size_t *lens, size_t n,
                         struct hf_fault *fault)
{
    size_t n_groups = (n + GROUP_MAX - 1) / GROUP_MAX;
    if (n == 0)
        return HF_DONE;
    enum hf_result result = begun(g, fault);
    if (result != HF_DONE)
        return ended(g, result, fault);
    for (size_t i = 0; i < n; i += GROUP_MAX) {
        vec_clear(&g->args);
        add(g, REDIS_ARG("UNLINK")); /* not DEL: the value of a strange key may be large */
        for (size_t k = i; k < n && k < i + GROUP_MAX; k++)
            add(g, (struct redis_arg){keys[k], lens[k]});
        redis_put(&g->caller.link, g->args.v, g->args.n);
    }
    redisReply **replies = hf_alloc(n_groups * sizeof(redisReply *));
    result = exchange(g, REDIS_REPLY_INTEGER, replies, n_groups, fault);
    for (size_t i = 0; i < n_groups && result == HF_DONE; i++)
        freeReplyObject(replies[i]);
    free(replies);
    return ended(g, result, fault);
}
