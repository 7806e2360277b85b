/* Says what the settings of a Redis server mean for locks.  Reads INFO, CONFIG GET and TIME; a user
 * that may not read the settings gets the findings that need none.  The rights are tried out with
 * commands that change nothing. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/local_host.h"
#include "lease/redis/handle.h"

#define CLOCK_DIFFERENCE_MAX_MS 1000
#define CHANNEL "holdfast:none"

struct redis_examination {
    struct redis *redis;
    lease_each_finding *each;
    void *ctx;
    const char *info;  /* the answer to INFO; "" if that is forbidden */
    redisReply **conf; /* the answers to CONFIG GET, in the order of enum setting */
};

#define FIND(e, grade, topic, ...) lease_finding((e)->each, (e)->ctx, grade, topic, __VA_ARGS__)

/* ---- what the server says ---- */

enum setting { APPENDFSYNC, SAVE, MIN_REPLICAS, N_SETTINGS };
static const char *const setting_names[N_SETTINGS] = {"appendfsync", "save",
                                                      "min-replicas-to-write"};

/* Copies the value of a line "name:value" of INFO.  Returns false if there is none. */
static bool info_text(const struct redis_examination *e, const char *name, char *ret, size_t size)
{
    char line[64];
    snprintf(line, sizeof line, "\n%s:", name);
    const char *at = strstr(e->info, line);
    if (!at)
        return false;
    at += strlen(line);
    snprintf(ret, size, "%.*s", (int)strcspn(at, "\r\n"), at);
    return true;
}

static int64_t info_number(const struct redis_examination *e, const char *name)
{
    char text[64];
    return info_text(e, name, text, sizeof text) ? strtoll(text, NULL, 10) : 0;
}

static bool info_is(const struct redis_examination *e, const char *name, const char *value)
{
    char text[64];
    return info_text(e, name, text, sizeof text) && strcmp(text, value) == 0;
}

/* Returns NULL if the setting may not be read. */
static const char *setting(const struct redis_examination *e, enum setting which)
{
    const redisReply *reply = e->conf[which];
    return reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 ? reply->element[1]->str : NULL;
}

/* ---- findings ---- */

static void find_version(const struct redis_examination *e)
{
    char version[64];
    bool valkey = info_text(e, "valkey_version", version, sizeof version);
    if (!valkey && !info_text(e, "redis_version", version, sizeof version))
        FIND(e, HF_NOTE, "version", "This user may not call INFO, so little can be said.");
    else if (!valkey && atoi(version) < 5)
        FIND(e, HF_DANGER, "version", "Redis %s is too old; locks need Redis 5 or later.", version);
    else
        FIND(e, HF_GOOD, "version", "%s %s.", valkey ? "Valkey" : "Redis", version);
}

static void find_aof(const struct redis_examination *e)
{
    const char *fsync = setting(e, APPENDFSYNC);
    if (info_is(e, "aof_last_write_status", "err"))
        FIND(e, HF_DANGER, "persistence",
             "The server cannot write its append-only file and refuses locks. Is the disk full?");
    else if (!fsync)
        FIND(e, HF_NOTE, "persistence",
             "There is an append-only file, but this user may not read how often it is flushed "
             "(CONFIG GET appendfsync). Only \"always\" keeps all leases over a power failure.");
    else if (strcmp(fsync, "always") == 0)
        FIND(e, HF_GOOD, "persistence",
             "Every lease is on disk before it is granted (appendfsync always).");
    else
        FIND(e, HF_WARNING, "persistence",
             "A power failure loses the leases of the last %s (appendfsync %s), and their locks "
             "are granted again at once. Set appendfsync always, or check fences.",
             strcmp(fsync, "everysec") == 0 ? "second or two" : "half minute", fsync);
}

static void find_persistence(const struct redis_examination *e)
{
    const char *save = setting(e, SAVE);
    if (info_is(e, "aof_enabled", "1"))
        find_aof(e);
    else if (info_is(e, "rdb_last_bgsave_status", "err"))
        FIND(e, HF_DANGER, "persistence",
             "The last snapshot failed, so the server refuses locks (MISCONF), or soon will. Is "
             "the disk full?");
    else
        FIND(e, HF_WARNING, "persistence",
             "A restart of the server loses %s, and their locks are granted again at once while "
             "the holders may still believe in them. Set appendonly yes and appendfsync always, or "
             "check fences.",
             save && *save ? "all leases since the last snapshot" : "all leases");
}

static void find_eviction(const struct redis_examination *e)
{
    char policy[64];
    int64_t limit = info_number(e, "maxmemory"), used = info_number(e, "used_memory");
    int64_t evicted = info_number(e, "evicted_keys");
    if (!info_text(e, "maxmemory_policy", policy, sizeof policy))
        return;
    bool evicts = strcmp(policy, "noeviction") != 0;
    if (limit > 0 && evicts)
        FIND(e, HF_DANGER, "eviction",
             "A full server deletes leases of live holders: maxmemory-policy is %s%s (%" PRId64
             " keys were evicted so far). Set it to noeviction.",
             policy,
             strncmp(policy, "volatile", 8) == 0 ? ", and leases are keys with an expiry" : "",
             evicted);
    else if (limit > 0 && used > limit / 10 * 9)
        FIND(e, HF_WARNING, "eviction",
             "%" PRId64 " of %" PRId64 " MB of maxmemory are used. A full server refuses new locks "
             "and waiters; holders can still renew and release.",
             used >> 20, limit >> 20);
    else if (evicts)
        FIND(e, HF_NOTE, "eviction",
             "maxmemory-policy is %s, which would delete leases if maxmemory were set.", policy);
    else
        FIND(e, HF_GOOD, "eviction", "No lease is ever evicted (maxmemory-policy noeviction).");
}

/* The largest lag of a replica in seconds; -1: there is none. */
static int64_t largest_lag(const struct redis_examination *e)
{
    int64_t most = -1;
    for (const char *at = e->info; (at = strstr(at, ",lag=")); at++) {
        int64_t lag = strtoll(at + 5, NULL, 10);
        most = lag > most ? lag : most;
    }
    return most;
}

static void find_replicas(const struct redis_examination *e)
{
    int64_t n = info_number(e, "connected_slaves");
    int wanted = e->redis->address.min_replicas;
    const char *least = setting(e, MIN_REPLICAS);
    if (n < wanted || (least && n < atoi(least)))
        FIND(e, HF_DANGER, "replication",
             "No lock can be taken: %" PRId64 " replicas are connected, but %s asks for %d.", n,
             n < wanted ? "min_replicas of the URL" : "min-replicas-to-write",
             n < wanted ? wanted : atoi(least));
    else if (n == 0)
        FIND(e, HF_NOTE, "replication",
             "There is no replica: nobody takes over, and while this server is away no lock can be "
             "taken or renewed.");
    else if (wanted == 0)
        FIND(e, HF_WARNING, "replication",
             "%" PRId64 " replicas, the slowest %" PRId64 " s behind. Replication is asynchronous: "
             "a failover loses the latest leases, and their locks are granted twice. "
             "min_replicas=%" PRId64 " in the URL makes each grant wait for them.",
             n, largest_lag(e), n);
    else
        FIND(e, wanted < n ? HF_WARNING : HF_GOOD, "replication",
             "Each grant waits for %d of %" PRId64 " replicas%s.", wanted, n,
             wanted < n ? "; a failover to one of the others can lose it" : "");
}

static void find_replication(const struct redis_examination *e)
{
    char role[16];
    if (info_is(e, "cluster_enabled", "1"))
        FIND(e, HF_DANGER, "cluster",
             "This is a node of a Redis Cluster, which cannot keep locks: use a server of its own, "
             "or one primary with replicas.");
    if (!info_text(e, "role", role, sizeof role))
        return;
    if (strcmp(role, "slave") == 0)
        FIND(e, HF_DANGER, "replication",
             "This is a replica, which refuses locks. Connect to the primary, or use "
             "redis+sentinel://.");
    else
        find_replicas(e);
}

/* `reply` answers TIME, which was asked for between the two moments of our clock. */
static void find_clock(const struct redis_examination *e, const redisReply *reply,
                       int64_t before_us, int64_t after_us)
{
    int64_t us = redis_time_us(reply);
    if (!us)
        return;
    int64_t ahead_ms = us > after_us ? us - after_us : us < before_us ? us - before_us : 0;
    ahead_ms /= 1000;
    if (ahead_ms < -CLOCK_DIFFERENCE_MAX_MS)
        FIND(e, HF_WARNING, "clock",
             "The server's clock is %" PRId64 " ms behind this machine's. Leases end by it: if it "
             "is set right while locks are held, they end that much too early. Let NTP slew it.",
             -ahead_ms);
    else if (ahead_ms > CLOCK_DIFFERENCE_MAX_MS)
        FIND(e, HF_NOTE, "clock",
             "The server's clock is %" PRId64 " ms ahead of this machine's. If it is set back, "
             "leases end that much later; fences still grow.",
             ahead_ms);
    else
        FIND(e, HF_GOOD, "clock", "The server's clock agrees with this machine's.");
}

static void find_privacy(const struct redis_examination *e)
{
    const struct redis_address *a = &e->redis->address;
    const char *host = a->n_sentinels ? e->redis->caller.link.found.host : a->host;
    if (a->tls || !host || host_is_local(host))
        return;
    FIND(e, HF_NOTE, "encryption",
         "The connection is not encrypted: the network between sees %s. rediss:// uses TLS.",
         a->password ? "the password" : "everything, and there is no password");
}

/* ---- rights ---- */

/* Each command on a key that is not there, so that nothing changes.  GETSET and HSET have no such
 * form; they are tried on a key of another type, which refuses them, if that key exists. */
static const char rights_script[] =
    "local k, lacking = 'holdfast:{}:lock:none', {}\n"
    "local function try(...)\n"
    "  local r = redis.pcall(...)\n"
    "  if type(r) == 'table' and r.err and\n"
    "    (r.err:find('NOPERM') or r.err:find('user executing the script')) then\n"
    "    lacking[#lacking + 1] = ({...})[1]\n"
    "  end\n"
    "  return r\n"
    "end\n"
    "try('TIME') try('GET', k) try('PTTL', k) try('PEXPIRE', k, 1) try('PEXPIREAT', k, 1)\n"
    "try('SET', k, '', 'XX') try('DEL', k)\n"
    "try('HGET', k, 'f') try('HDEL', k, 'f')\n"
    "try('ZADD', k, 'XX', 1, 'm') try('ZREM', k, 'm') try('ZCARD', k) try('ZSCORE', k, 'm')\n"
    "try('ZRANK', k, 'm') try('ZRANGE', k, 0, 0) try('ZRANGEBYSCORE', k, 0, 0)\n"
    "try('ZCOUNT', k, 0, 0) try('ZLEXCOUNT', k, '-', '+') try('ZREMRANGEBYRANK', k, 0, 0)\n"
    "try('PUBLISH', '" CHANNEL "', '')\n"
    "local n = try('ZCARD', 'holdfast:last')\n"
    "if type(n) == 'number' and n > 0 then\n"
    "  try('GETSET', 'holdfast:last', '') try('HSET', 'holdfast:last', 'f', '')\n"
    "end\n"
    "return table.concat(lacking, ' ')\n";

/* Tries SUBSCRIBE on a connection of its own. */
static bool may_subscribe(const struct redis_examination *e)
{
    const struct redis_link *own = &e->redis->caller.link;
    struct redis_link k;
    redisReply *reply = NULL;
    redis_link_init(&k, &e->redis->address, own->clock, own->timeout_ms);
    redis_put(&k, (struct redis_arg[]){REDIS_ARG("SUBSCRIBE"), REDIS_ARG(CHANNEL)}, 2);
    bool may = redis_exchange(&k, 0, &reply, NULL) != HF_DONE || reply->type != REDIS_REPLY_ERROR;
    if (reply)
        freeReplyObject(reply);
    redis_link_close(&k);
    return may;
}

/* `reply` answers EVAL of rights_script. */
static void find_rights(const struct redis_examination *e, const redisReply *reply)
{
    const char *lacks = reply->str ? reply->str : "";
    const char *subscribe = may_subscribe(e) ? "" : " SUBSCRIBE";
    if (reply->type == REDIS_REPLY_ERROR)
        FIND(e, HF_DANGER, "rights", "No lock can be taken: scripts are refused (%.100s).", lacks);
    else if (*lacks || *subscribe)
        FIND(e, HF_DANGER, "rights",
             "This user lacks%s%.300s%s. docs/locks.md has the line that gives the rights.",
             *lacks ? " " : "", lacks, subscribe);
    else
        FIND(e, HF_GOOD, "rights", "This user may do all that locks need.");
}

/* ---- together ---- */

static void ask(struct redis_link *k)
{
    redis_put(k, &REDIS_ARG("INFO"), 1);
    redis_put(k, &REDIS_ARG("TIME"), 1);
    redis_put(k,
              (struct redis_arg[]){
                  REDIS_ARG("EVAL"), {rights_script, sizeof rights_script - 1}, REDIS_ARG("0")},
              3);
    for (int i = 0; i < N_SETTINGS; i++)
        redis_put(k,
                  (struct redis_arg[]){REDIS_ARG("CONFIG"),
                                       REDIS_ARG("GET"),
                                       {setting_names[i], strlen(setting_names[i])}},
                  3);
}

enum hf_result redis_examine(struct lease *l, lease_each_finding *each, void *ctx,
                             struct hf_fault *fault)
{
    struct redis *r = redis_of(l);
    redisReply *replies[3 + N_SETTINGS];
    ask(&r->caller.link);
    int64_t before_us = clock_wall_us(r->caller.link.clock);
    enum hf_result result = redis_exchange(&r->caller.link, 0, replies, fault);
    if (result != HF_DONE)
        return result == HF_UNKNOWN ? HF_UNREACHABLE : result;
    int64_t after_us = clock_wall_us(r->caller.link.clock);
    const struct redis_examination e = {
        .redis = r,
        .each = each,
        .ctx = ctx,
        .info = replies[0]->type == REDIS_REPLY_STRING ? replies[0]->str : "",
        .conf = replies + 3};
    find_version(&e);
    if (*e.info) {
        find_persistence(&e);
        find_eviction(&e);
        find_replication(&e);
    }
    find_clock(&e, replies[1], before_us, after_us);
    find_privacy(&e);
    find_rights(&e, replies[2]);
    for (size_t i = 0; i < 3 + N_SETTINGS; i++)
        freeReplyObject(replies[i]);
    return HF_DONE;
}
