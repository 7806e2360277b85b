/* See scene.h: the lock of a seat, as the articles take it in Redis, or as a row in SQLite where
 * Redis is missing.  The server that keeps the lock also decides when it has expired.
 *
 * A fence is issued in the same step as the grant.  If it were asked for afterwards, a holder that
 * was paused between the two steps would get the larger number and be let in as the newer one. */
#include "lab/scene.h"

#include <stdio.h>

#define KEY "lock:A-1"
#define FENCE "fence:A-1"

#define LOCK_ROW                                                                                   \
    "INSERT INTO locks (name, owner, until_ms) VALUES ('A-1', '%s', now_ms() + %d)"                \
    " ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, until_ms = excluded.until_ms%s"     \
    " WHERE until_ms <= now_ms()%s"

static const char *lock_row(struct scene *s, const char *who, int ttl_ms, bool with_fence)
{
    const char *answer = with_fence ? scene_sql(s, who, LOCK_ROW, who, ttl_ms,
                                                ", fence = fence + 1", " RETURNING fence")
                                    : scene_sql(s, who, LOCK_ROW, who, ttl_ms, "", "");
    return scene_is(answer, "no row") || scene_is(answer, "0 rows") ? NULL : answer;
}

static const char *lock_key_with_fence(struct scene *s, const char *who, int ttl_ms)
{
    static const char script[] = "return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])"
                                 " and redis.call('INCR', KEYS[2])";
    char shown[128], token[32], ttl[16];
    snprintf(token, sizeof token, "token-%s", who);
    snprintf(ttl, sizeof ttl, "%d", ttl_ms);
    snprintf(shown, sizeof shown, "EVAL if SET " KEY " %s NX PX %d then INCR " FENCE, token,
             ttl_ms);
    const char *const words[] = {"EVAL", script, "2", KEY, FENCE, token, ttl};
    return scene_redis_words(s, who, shown, 7, words);
}

const char *scene_lock(struct scene *s, const char *who, int ttl_ms, bool with_fence)
{
    if (s->on_sqlite)
        return lock_row(s, who, ttl_ms, with_fence);
    const char *answer = with_fence
                             ? lock_key_with_fence(s, who, ttl_ms)
                             : scene_redis(s, who, "SET " KEY " token-%s NX PX %d", who, ttl_ms);
    return scene_is(answer, "(nil)") || !*answer ? NULL : answer;
}

static const char *delete_if_mine(struct scene *s, const char *who)
{
    static const char script[] = "if redis.call('GET', KEYS[1]) == ARGV[1] then"
                                 " return redis.call('DEL', KEYS[1]) end return 0";
    char shown[128], token[32];
    snprintf(token, sizeof token, "token-%s", who);
    snprintf(shown, sizeof shown, "EVAL if GET " KEY " = %s then DEL " KEY, token);
    const char *const words[] = {"EVAL", script, "1", KEY, token};
    return scene_redis_words(s, who, shown, 5, words);
}

bool scene_unlock(struct scene *s, const char *who, bool is_blind)
{
    if (!s->on_sqlite)
        return scene_is(is_blind ? scene_redis(s, who, "DEL " KEY) : delete_if_mine(s, who), "1");
    return scene_is(
        is_blind ? scene_sql(s, who, "DELETE FROM locks WHERE name = 'A-1'")
                 : scene_sql(s, who, "DELETE FROM locks WHERE name = 'A-1' AND owner = '%s'", who),
        "1 row");
}

bool scene_owns_lock(struct scene *s, const char *who)
{
    char token[32];
    if (s->on_sqlite)
        return scene_is(scene_sql(s, who, "SELECT owner FROM locks WHERE name = 'A-1'"), who);
    snprintf(token, sizeof token, "token-%s", who);
    return scene_is(scene_redis(s, who, "GET " KEY), token);
}

static const char *renew_if_mine(struct scene *s, const char *who, int ttl_ms)
{
    static const char script[] = "if redis.call('GET', KEYS[1]) == ARGV[1] then"
                                 " return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end return 0";
    char shown[128], token[32], ttl[16];
    snprintf(token, sizeof token, "token-%s", who);
    snprintf(ttl, sizeof ttl, "%d", ttl_ms);
    snprintf(shown, sizeof shown, "EVAL if GET " KEY " = %s then PEXPIRE " KEY " %d", token,
             ttl_ms);
    const char *const words[] = {"EVAL", script, "1", KEY, token, ttl};
    return scene_redis_words(s, who, shown, 6, words);
}

bool scene_renew(struct scene *s, const char *who, int ttl_ms, bool is_blind)
{
    if (!s->on_sqlite)
        return scene_is(is_blind ? scene_redis(s, who, "PEXPIRE " KEY " %d", ttl_ms)
                                 : renew_if_mine(s, who, ttl_ms),
                        "1");
    return scene_is(
        is_blind ? scene_sql(s, who, "UPDATE locks SET until_ms = now_ms() + %d WHERE name = 'A-1'",
                             ttl_ms)
                 : scene_sql(s, who,
                             "UPDATE locks SET until_ms = now_ms() + %d WHERE name = 'A-1'"
                             " AND owner = '%s'",
                             ttl_ms, who),
        "1 row");
}

static bool lock_has_expired(struct scene *s, const char *who)
{
    (void)who;
    if (!s->on_sqlite) {
        bool is_gone = runner_redis_number(s->judge, "EXISTS " KEY) == 0;
        if (runner_failed(s->judge))
            scene_fail(s, "%s", s->outcome.why);
        return is_gone;
    }
    char *live = scene_ask(s, "SELECT 1 FROM locks WHERE until_ms > now_ms()");
    free(live);
    return !live;
}

void scene_await_expiry(struct scene *s, const char *who)
{
    scene_await(s, lock_has_expired, who, "a lock expires");
    scene_note(s, s->locks, "the lock of %s expires", who);
}

void scene_begin(struct scene *s, const char *who)
{
    (void)scene_sql(s, who, s->on_sqlite ? "BEGIN IMMEDIATE" : "BEGIN");
}
