/* Which servers count.  Runs on the handle's thread, when a link is new or a script found another
 * state than the handle knew.
 *
 * Why it is needed.  A holds a lock on s1 and s2, a majority of three.  s2 restarts without its
 * data, and B takes the lock on s2 and s3: two holders, each with a majority.  A restart with an
 * append-only file is no better if its last second is missing.  Fences would not tell B from A
 * either, since s2 has forgotten its counter, too.
 *
 * The rule.  A server counts only while KEY_STATE contains "in RUN_ID MAX_TTL" with the run_id of
 * the server's present run.  A client learns the run_id from INFO after it has connected (a restart
 * closes the connection), and every script that locks or renews compares the state.  A server in
 * any other state is out:
 *   - blank: there is no state.  The server is new, or lost its data some time before now.  It is
 *     out for max_ttl from when a client first notices it.
 *   - restarted: the state has another run_id.  It is out for max_ttl from its start.
 *   - out: "out RUN_ID MAX_TTL UNTIL", the note of one of the above, by the server's clock.
 *   - If all servers answer and none is in, then the deployment starts for the first time, or all
 *     servers restarted.  Blank servers, too, are then out for max_ttl from their start only, so
 *     servers that have been running for a while can be used at once.  (This is wrong if an
 *     operator emptied a majority of the servers with FLUSHALL: that ends all locks, as `hf_break`
 *     does.)
 *   - KEY_VOUCHED ends the time at once: the operator vouches that no client believes in a lock.
 *
 * Exclusion.  Let A's last grant or renewal have been answered by a majority M, and let B win a
 * majority before A's validity ends.  Both contain some server s.  B locked s, so s had forgotten A
 * (it does not expire A's key before A's validity ends), by a restart or a flush after it answered
 * A.  Since then s was out for max_ttl, and A's validity is shorter, because longer TTLs are
 * refused. B cannot have won s.  (Clocks that run at the same rate are assumed; a jump of the
 * server's clock defeats this as it defeats Redlock.)
 *
 * Fences.  Invariant: for every fence F that was granted, at most n_servers - majority of the
 * servers that count have a counter below F.  A grant establishes it, because F is stored on a
 * majority before the grant counts.  A server that goes out does not break it.  A server that joins
 * gets the largest counter of all servers that answer.  If a majority that counts is among them, at
 * least one of those has a counter of F or more.  The counters are read after the server's time has
 * passed, when no attempt that counted on its former data can still become a grant.  If there is no
 * such majority, because a majority was restarted, nothing can tell the last fence, and the floor
 * is the clock: the counter of a server that joins is at least its clock in microseconds, which is
 * beyond all fences if fewer than a million locks per second were taken and the clock was not set
 * back. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/wait.h"
#include "lease/redlock/redlock.h"
#include "lease/redlock/scripts.h"

/* INFO counts the uptime in whole seconds of the wall clock, which can be one too many. */
#define UPTIME_ERROR_US INT64_C(1000000)
#define LOOK_MAX_US INT64_C(1000000) /* a server that is out is looked at this often */
#define LOOK_MIN_US INT64_C(5000)
/* Another client may be half-way through the first start. */
#define TRIES 4
#define TRY_PAUSE_US 20000

enum kind { KIND_NONE, KIND_BLANK, KIND_RESTARTED, KIND_OUT, KIND_IN };

struct look {
    enum kind kind;
    char run_id[RUN_ID_LEN + 1], state[STATE_SIZE];
    int64_t now_us, uptime_us, fence;
    int64_t max_ttl_ms, until_us; /* from the state; 0: none */
    bool is_vouched;
};

/* What a round finds and changes. */
struct round {
    struct look looks[SERVERS_MAX];
    size_t n_seen, n_in;
    int64_t max_ttl_ms;
    server_set to;                       /* whose state is to be changed, */
    char state[SERVERS_MAX][STATE_SIZE]; /* to this, */
    bool joins[SERVERS_MAX];             /* and which of them join, */
    int64_t fence;                       /* with this counter at least */
    bool changed_meanwhile;
};

/* ---- looking ---- */

static void put_look(struct redlock *r, size_t server, void *ctx, size_t i)
{
    struct redis_caller *c = &r->servers[server].caller;
    (void)ctx;
    if (i == 0) {
        redis_put(&c->link, (struct redis_arg[]){REDIS_ARG("INFO"), REDIS_ARG("server")}, 2);
        return;
    }
    struct redis_arg args[REDIS_HEAD_ARGS + 4];
    redis_head(c, SCRIPT_LOOK, args);
    args[2] = REDIS_ARG("3");
    args[3] = REDIS_ARG(KEY_STATE);
    args[4] = REDIS_ARG(KEY_FENCE);
    args[5] = REDIS_ARG(KEY_VOUCHED);
    redis_put(&c->link, args, 6);
}

static bool fits_look(void *ctx, size_t i, const redisReply *reply)
{
    (void)ctx;
    if (i == 0)
        return reply->type == REDIS_REPLY_STRING && strstr(reply->str, "run_id:");
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 5)
        return false;
    for (size_t k = 0; k < 4; k++)
        if (reply->element[k]->type != REDIS_REPLY_STRING)
            return false;
    return true;
}

static void read_state(struct look *look)
{
    char word[4], run_id[RUN_ID_LEN + 1];
    long long max_ttl_ms = 0, until_us = 0;
    int n = sscanf(look->state, "%3s %40s %lld %lld", word, run_id, &max_ttl_ms, &until_us);
    look->kind = KIND_BLANK;
    if (n < 3 || max_ttl_ms < 1 || max_ttl_ms > LEASE_TTL_MAX_MS)
        return;
    look->max_ttl_ms = max_ttl_ms;
    if (strcmp(run_id, look->run_id) != 0) {
        look->kind = KIND_RESTARTED;
    } else if (strcmp(word, "in") == 0 && n == 3) {
        look->kind = KIND_IN;
    } else if (n == 4) {
        look->kind = KIND_OUT;
        look->until_us = until_us;
    }
}

bool redlock_state_has_vote(const char *state, const char *run_id, int64_t now_us,
                            int64_t *ret_left_us)
{
    struct look look = {0};
    snprintf(look.run_id, sizeof look.run_id, "%s", run_id);
    snprintf(look.state, sizeof look.state, "%s", state);
    read_state(&look);
    *ret_left_us = -1;
    if (look.kind == KIND_OUT)
        *ret_left_us = look.until_us > now_us ? look.until_us - now_us : 0;
    return look.kind == KIND_IN;
}

static void read_look(const struct redlock_server *s, struct look *ret)
{
    const char *info = s->caller.replies.v[0]->str;
    const redisReply *found = s->caller.replies.v[1];
    const char *uptime = strstr(info, "uptime_in_seconds:");
    *ret = (struct look){
        .now_us = 1000000 * strtoll(found->element[0]->str, NULL, 10) +
                  strtoll(found->element[1]->str, NULL, 10),
        .uptime_us =
            uptime ? 1000000 * strtoll(uptime + strlen("uptime_in_seconds:"), NULL, 10) : 0,
        .fence = strtoll(found->element[3]->str, NULL, 10),
        .is_vouched = redis_integer(found, 4) == 1};
    (void)sscanf(strstr(info, "run_id:"), "run_id:%40[0-9a-zA-Z]", ret->run_id);
    snprintf(ret->state, sizeof ret->state, "%s", found->element[2]->str);
    read_state(ret);
}

/* Two addresses of one server are one vote. */
static bool is_twin(struct redlock *r, struct round *x, size_t i)
{
    for (size_t k = 0; k < i; k++) {
        if (x->looks[k].kind == KIND_NONE || strcmp(x->looks[k].run_id, x->looks[i].run_id) != 0)
            continue;
        struct redlock_server *s = &r->servers[i], *twin = &r->servers[k];
        snprintf(s->why, sizeof s->why, "%.60s port %d is the same server as %.60s port %d",
                 s->address.host, s->address.port, twin->address.host, twin->address.port);
        s->look_us = clock_boot_us(r->clock) + LOOK_MAX_US;
        return true;
    }
    return false;
}

static void look(struct redlock *r, struct round *x)
{
    *x = (struct round){.max_ttl_ms = r->max_ttl_ms};
    fan_run(r, &(struct fan){.to = fan_open(r),
                             .n = 2,
                             .put = put_look,
                             .fits = fits_look,
                             .until_us = r->until_us});
    for (size_t i = 0; i < r->n_servers; i++) {
        struct look *found = &x->looks[i];
        if (r->servers[i].outcome != OUTCOME_ANSWERED)
            continue;
        read_look(&r->servers[i], found);
        if (is_twin(r, x, i)) {
            found->kind = KIND_NONE;
            continue;
        }
        x->n_seen++;
        x->n_in += found->kind == KIND_IN;
        x->fence = found->fence > x->fence ? found->fence : x->fence;
        x->max_ttl_ms = found->max_ttl_ms > x->max_ttl_ms ? found->max_ttl_ms : x->max_ttl_ms;
    }
    fan_done(r);
}

/* ---- judging ---- */

/* When the server may join, by its own clock. */
static int64_t out_until_us(const struct redlock *r, const struct round *x,
                            const struct look *found)
{
    const int64_t max_ttl_us = 1000 * x->max_ttl_ms;
    const int64_t after_start_us = found->now_us - found->uptime_us + UPTIME_ERROR_US + max_ttl_us;
    bool all_new = x->n_seen == r->n_servers && x->n_in == 0;
    if (found->is_vouched)
        return found->now_us;
    switch (found->kind) {
    case KIND_OUT: /* with the longer time that was noted elsewhere meanwhile */
        return found->until_us + max_ttl_us - 1000 * found->max_ttl_ms;
    case KIND_RESTARTED:
        return after_start_us;
    default:
        return all_new ? after_start_us : found->now_us + max_ttl_us;
    }
}

static void leave_out(struct redlock *r, struct round *x, size_t i, int64_t until_us)
{
    struct redlock_server *s = &r->servers[i];
    const struct look *found = &x->looks[i];
    int64_t left_us = until_us - found->now_us;
    snprintf(x->state[i], STATE_SIZE, "out %s %" PRId64 " %" PRId64, found->run_id, x->max_ttl_ms,
             until_us);
    if (strcmp(x->state[i], found->state) != 0)
        x->to |= bit_of(i);
    snprintf(s->why, sizeof s->why,
             "Redis at %.80s port %d: new, restarted or emptied; takes part in %" PRId64 " s",
             s->address.host, s->address.port, (left_us + 999999) / 1000000);
    int64_t pause_us = left_us < LOOK_MIN_US ? LOOK_MIN_US : left_us;
    s->look_us = clock_boot_us(r->clock) + (pause_us < LOOK_MAX_US ? pause_us : LOOK_MAX_US);
}

/* Decides about every server that was seen.  Returns those that may join. */
static server_set judge(struct redlock *r, struct round *x)
{
    server_set joining = 0;
    for (size_t i = 0; i < r->n_servers; i++) {
        struct look *found = &x->looks[i];
        if (found->kind == KIND_NONE)
            continue;
        r->servers[i].state[0] = '\0';
        if (found->kind == KIND_IN) {
            snprintf(x->state[i], STATE_SIZE, "in %s %" PRId64, found->run_id, x->max_ttl_ms);
            if (found->max_ttl_ms < x->max_ttl_ms)
                x->to |= bit_of(i);
            else
                memcpy(r->servers[i].state, x->state[i], STATE_SIZE);
            continue;
        }
        if (x->n_seen < r->majority) { /* one of the others may have noted a longer max_ttl */
            struct redlock_server *s = &r->servers[i];
            snprintf(s->why, sizeof s->why,
                     "Redis at %.80s port %d: new, restarted or emptied, and too few others to ask",
                     s->address.host, s->address.port);
            s->look_us = clock_boot_us(r->clock) + LOOK_MIN_US;
            continue;
        }
        int64_t until_us = out_until_us(r, x, found);
        if (until_us > found->now_us) {
            leave_out(r, x, i, until_us);
            continue;
        }
        snprintf(x->state[i], STATE_SIZE, "in %s %" PRId64, found->run_id, x->max_ttl_ms);
        x->to |= bit_of(i);
        x->joins[i] = true;
        joining |= bit_of(i);
    }
    return joining;
}

/* ---- changing ---- */

static void put_change(struct redlock *r, size_t server, void *ctx, size_t i)
{
    const struct round *x = ctx;
    struct redis_caller *c = &r->servers[server].caller;
    struct redis_arg args[REDIS_HEAD_ARGS + 7];
    char fence[24] = "";
    (void)i;
    if (x->joins[server])
        snprintf(fence, sizeof fence, "%" PRId64, x->fence);
    redis_head(c, SCRIPT_JOIN, args);
    args[2] = REDIS_ARG("3");
    args[3] = REDIS_ARG(KEY_STATE);
    args[4] = REDIS_ARG(KEY_FENCE);
    args[5] = REDIS_ARG(KEY_VOUCHED);
    args[6] = (struct redis_arg){x->looks[server].state, strlen(x->looks[server].state)};
    args[7] = (struct redis_arg){x->state[server], strlen(x->state[server])};
    args[8] = (struct redis_arg){fence, strlen(fence)};
    redis_put(&c->link, args, 9);
}

static bool fits_change(void *ctx, size_t i, const redisReply *reply)
{
    (void)ctx;
    (void)i;
    return reply->type == REDIS_REPLY_INTEGER;
}

static void change(struct redlock *r, struct round *x)
{
    if (x->to == 0)
        return;
    fan_run(r, &(struct fan){.to = x->to,
                             .n = 1,
                             .ctx = x,
                             .put = put_change,
                             .fits = fits_change,
                             .until_us = r->until_us});
    for (size_t i = 0; i < r->n_servers; i++) {
        struct redlock_server *s = &r->servers[i];
        if (s->outcome != OUTCOME_ANSWERED)
            continue;
        if (s->caller.replies.v[0]->integer != 1)
            x->changed_meanwhile = true;
        else if (strncmp(x->state[i], "in ", 3) == 0)
            memcpy(s->state, x->state[i], STATE_SIZE);
    }
    fan_done(r);
}

/* Another client may have begun to let all servers join: some are in and others blank. */
static bool is_half_started(const struct redlock *r, const struct round *x)
{
    bool blank = false;
    for (size_t i = 0; i < r->n_servers; i++)
        blank = blank || (x->looks[i].kind == KIND_BLANK && !x->looks[i].is_vouched);
    return blank && x->n_in > 0;
}

/* The counters that a server joins with are read after its time has passed: see above. */
static void read_fences(struct redlock *r, struct round *x)
{
    struct round fresh;
    look(r, &fresh);
    x->fence = fresh.fence > x->fence ? fresh.fence : x->fence;
}

void redlock_join(struct redlock *r)
{
    int64_t now_us = clock_boot_us(r->clock);
    server_set open = fan_open(r);
    bool due = false;
    for (size_t i = 0; i < r->n_servers; i++)
        due =
            due || (open & bit_of(i) && !r->servers[i].state[0] && now_us >= r->servers[i].look_us);
    for (int try = 0; due && try < TRIES; try++) {
        struct round x;
        look(r, &x);
        bool is_last = try == TRIES - 1;
        if (is_half_started(r, &x) && !is_last) {
            wait_sleep_us(TRY_PAUSE_US);
            continue;
        }
        if (judge(r, &x))
            read_fences(r, &x);
        change(r, &x);
        due = x.changed_meanwhile;
    }
}
