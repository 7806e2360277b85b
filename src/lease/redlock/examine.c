/* Examining the servers one after another: what their settings mean for locks.  Runs on the
 * handle's thread and writes nothing. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lease/redlock/redlock.h"

#define CLOCKS_MAX_MS 1000 /* servers whose clocks differ by more are reported */

/* What was learnt about all servers together. */
struct findings {
    lease_each_finding *each;
    void *ctx;
    size_t n_answered;
    bool has_clock;
    int64_t first_ms, last_ms; /* the servers' clocks, relative to ours */
};

/* The value after "NAME:" in INFO's text, as a number; `otherwise` if it is not there. */
static int64_t number_of(const char *info, const char *name, int64_t otherwise)
{
    const char *at = strstr(info, name);
    return at ? strtoll(at + strlen(name), NULL, 10) : otherwise;
}

/* The word after "NAME:" in INFO's text. */
static const char *word_of(const char *info, const char *name, char ret[64])
{
    const char *at = strstr(info, name);
    size_t len = at ? strcspn(at + strlen(name), "\r\n") : 0;
    snprintf(ret, 64, "%.*s", (int)(len < 63 ? len : 63), at ? at + strlen(name) : "");
    return ret;
}

static void compare_clock(struct findings *f, int64_t server_us, int64_t wall_us)
{
    if (!server_us)
        return;
    int64_t ms = server_us / 1000 - wall_us / 1000;
    f->first_ms = !f->has_clock || ms < f->first_ms ? ms : f->first_ms;
    f->last_ms = !f->has_clock || ms > f->last_ms ? ms : f->last_ms;
    f->has_clock = true;
}

static void tell_settings(struct findings *f, const char *at, const char *info)
{
    char version[64], policy[64], role[64], run_id[64];
    word_of(info, "\nredis_version:", version);
    word_of(info, "\nmaxmemory_policy:", policy);
    word_of(info, "\nrole:", role);
    word_of(info, "\nrun_id:", run_id);
    lease_finding(f->each, f->ctx, HF_GOOD, "server",
                  "%s: Redis %s, run %.8s, up for %" PRId64 " s", at, version, run_id,
                  number_of(info, "\nuptime_in_seconds:", 0));
    if (number_of(info, "\naof_enabled:", 0) == 1)
        lease_finding(f->each, f->ctx, HF_GOOD, "persistence",
                      "%s: an append-only file keeps leases and fences over a restart; the server "
                      "has no vote for max_ttl after it all the same",
                      at);
    else
        lease_finding(f->each, f->ctx, HF_NOTE, "persistence",
                      "%s: no append-only file, so a restart forgets its leases; the server has no "
                      "vote for max_ttl after it, which keeps that harmless. If all servers "
                      "restart at once, fences go on at their clocks",
                      at);
    if (number_of(info, "\nmaxmemory:", 0) > 0 && strcmp(policy, "noeviction") != 0)
        lease_finding(f->each, f->ctx, HF_DANGER, "eviction",
                      "%s: evicts keys when its memory is full (maxmemory-policy %s), leases and "
                      "the state of the server among them; set noeviction",
                      at, policy);
    else
        lease_finding(f->each, f->ctx, HF_GOOD, "eviction", "%s: evicts no keys", at);
    if (strcmp(role, "master") != 0)
        lease_finding(f->each, f->ctx, HF_DANGER, "replication",
                      "%s: is a replica and takes no writes", at);
    else if (number_of(info, "\nconnected_slaves:", 0) > 0)
        lease_finding(f->each, f->ctx, HF_NOTE, "replication",
                      "%s: has replicas. Redlock wants independent servers; if a replica takes "
                      "over, it counts as restarted and has no vote for max_ttl",
                      at);
}

/* Says whether the server counts, which the note on it tells: nothing is written, so a server that
 * nobody has noted yet is not let in here. */
static void tell_vote(struct findings *f, const char *at, const char *info, const redisReply *state,
                      const redisReply *vouched, int64_t now_us)
{
    char run_id[64];
    int64_t left_us;
    word_of(info, "\nrun_id:", run_id);
    bool votes = redlock_state_has_vote(state->type == REDIS_REPLY_STRING ? state->str : "", run_id,
                                        now_us, &left_us);
    if (votes)
        lease_finding(f->each, f->ctx, HF_GOOD, "restarts", "%s: has a vote in this run", at);
    else if (left_us >= 0)
        lease_finding(f->each, f->ctx, HF_NOTE, "restarts",
                      "%s: has no vote yet: new, restarted or emptied; takes part in %" PRId64 " s",
                      at, (left_us + 999999) / 1000000);
    else
        lease_finding(f->each, f->ctx, HF_NOTE, "restarts",
                      "%s: has no vote yet: new, restarted or emptied, and not used since", at);
    if (votes && vouched->type == REDIS_REPLY_INTEGER && vouched->integer == 1)
        lease_finding(f->each, f->ctx, HF_WARNING, "restarts",
                      "%s: has the key " KEY_VOUCHED ", which would let it vote at once after a "
                      "restart; delete it",
                      at);
}

/* Sends INFO, TIME, EXISTS and GET to one server. */
static void examine_server(struct redlock *r, size_t i, struct findings *f)
{
    struct redlock_server *s = &r->servers[i];
    struct redis_link *k = &s->caller.link;
    struct hf_fault fault = {0};
    redisReply *replies[4];
    char at[128];
    snprintf(at, sizeof at, "%.100s:%d", s->address.host, s->address.port);
    redis_put(k, &REDIS_ARG("INFO"), 1);
    redis_put(k, &REDIS_ARG("TIME"), 1);
    redis_put(k, (struct redis_arg[]){REDIS_ARG("EXISTS"), REDIS_ARG(KEY_VOUCHED)}, 2);
    redis_put(k, (struct redis_arg[]){REDIS_ARG("GET"), REDIS_ARG(KEY_STATE)}, 2);
    k->timeout_ms = r->timeout_ms;
    int64_t from_us = clock_boot_us(r->clock);
    enum hf_result result = redis_exchange(k, 0, replies, &fault);
    int64_t took_us = clock_boot_us(r->clock) - from_us;
    k->timeout_ms = r->short_ms;
    if (result != HF_DONE) {
        snprintf(s->why, sizeof s->why, "%s", fault.msg);
        lease_finding(f->each, f->ctx, HF_WARNING, "server", "%s", s->why);
        return;
    }
    f->n_answered++;
    int64_t now_us = redis_time_us(replies[1]);
    compare_clock(f, now_us, clock_wall_us(r->clock) - took_us / 2);
    if (replies[0]->type == REDIS_REPLY_STRING) {
        tell_settings(f, at, replies[0]->str);
        tell_vote(f, at, replies[0]->str, replies[3], replies[2], now_us);
    } else {
        lease_finding(f->each, f->ctx, HF_DANGER, "rights",
                      "%s: INFO is refused; without it nobody can tell whether the server was "
                      "restarted. An ACL needs +info, ~holdfast:* and &holdfast:*",
                      at);
    }
    for (int n = 0; n < 4; n++)
        freeReplyObject(replies[n]);
}

static void tell_all(const struct redlock *r, const struct findings *f)
{
    if (r->n_servers % 2 == 0)
        lease_finding(f->each, f->ctx, HF_NOTE, "servers",
                      "%zu servers tolerate the loss of %zu, as %zu would: an odd number costs "
                      "less",
                      r->n_servers, r->n_servers - r->majority, r->n_servers - 1);
    else
        lease_finding(f->each, f->ctx, HF_GOOD, "servers", "%zu servers tolerate the loss of %zu",
                      r->n_servers, r->n_servers - r->majority);
    int64_t apart_ms = f->last_ms - f->first_ms;
    lease_finding(f->each, f->ctx, apart_ms > CLOCKS_MAX_MS ? HF_WARNING : HF_GOOD, "clock",
                  "the servers' clocks are %" PRId64 " ms apart%s", apart_ms,
                  apart_ms > CLOCKS_MAX_MS ? ": when one of them is set right it jumps, which ends "
                                             "its leases early or late"
                                           : "; a clock that jumps ends leases early or late");
}

enum hf_result redlock_examine(struct lease *l, lease_each_finding *each, void *ctx,
                               struct hf_fault *fault)
{
    struct redlock *r = redlock_of(l);
    struct findings f = {.each = each, .ctx = ctx};
    fan_begin(r, 0);
    fan_connect(r, false);
    server_set open = fan_open(r), all = bit_of(r->n_servers) - 1;
    if (count_of(open) < r->majority)
        return fan_fault(r, HF_UNREACHABLE, all & ~open, fault);
    for (size_t i = 0; i < r->n_servers; i++) {
        if (open & bit_of(i))
            examine_server(r, i, &f);
        else
            lease_finding(each, ctx, HF_WARNING, "server", "%s", r->servers[i].why);
    }
    if (f.n_answered < r->majority)
        return fan_fault(r, HF_UNREACHABLE, all & ~fan_open(r), fault);
    tell_all(r, &f);
    return HF_DONE;
}
