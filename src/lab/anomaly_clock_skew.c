/* Clock skew between two clients: the old recipe for a lock with an expiry, SETNX with the time at
 * which the lock ends as its value, makes each client compare that time with its own clock.  A
 * client whose clock is fast finds every lock expired.  The cure is a TTL that the server measures:
 * no client's clock is asked. */
#include "lab/scene.h"

#include <inttypes.h>

#define KEY "lock:A-1"
#define TTL_MS 30000
#define FAST_MS 60000 /* Bob's clock is ahead by this much */

/* The wall clock of `who`. */
static int64_t now_ms(const struct scene *s, const char *who)
{
    return clock_wall_us(s->clock) / 1000 + (strcmp(who, "Bob") == 0 ? FAST_MS : 0);
}

static bool lock_by_own_clock(struct scene *s, const char *who)
{
    int64_t now = now_ms(s, who);
    if (scene_is(scene_redis(s, who, "SETNX " KEY " %" PRId64, now + TTL_MS), "1")) {
        scene_think(s, "The lock is mine for %d s.", TTL_MS / 1000);
        return true;
    }
    int64_t until = strtoll(scene_redis(s, who, "GET " KEY), NULL, 10);
    if (until > now) {
        scene_think(s, "Locked for %" PRId64 " ms more. I wait.", until - now);
        return false;
    }
    scene_think(s, "My clock says %" PRId64 ": it expired %" PRId64 " ms ago.", now, now - until);
    (void)scene_redis(s, who, "GETSET " KEY " %" PRId64, now + TTL_MS);
    scene_think(s, "I have cleared up after a dead client. The lock is mine.");
    return true;
}

static bool lock(struct scene *s, const char *who, bool is_protected)
{
    if (!is_protected)
        return lock_by_own_clock(s, who);
    bool got = scene_lock(s, who, TTL_MS, false) != NULL;
    scene_think(s, got ? "The lock is mine." : "Locked. I wait, whatever my clock says.");
    return got;
}

static bool finds_it_free(struct scene *s, const char *who)
{
    bool is_free = scene_is(scene_sql(s, who, "SELECT status FROM seats WHERE id = 'A-1'"), "FREE");
    scene_think(s, is_free ? "Free, and I have the lock." : "Sold.");
    return is_free;
}

static void sell(struct scene *s, const char *who)
{
    (void)scene_sql(s, who, "UPDATE seats SET status = 'SOLD', buyer = '%s' WHERE id = 'A-1'", who);
    (void)scene_sql(s, who, "INSERT INTO tickets (seat, buyer) VALUES ('A-1', '%s')", who);
    scene_think(s, "Sold to me.");
}

static void play(struct scene *s, bool is_protected)
{
    scene_note(s, "Bob", "has a clock that is fast by %d s", FAST_MS / 1000);
    bool ann = lock(s, "Ann", is_protected) && finds_it_free(s, "Ann");
    bool bob = lock(s, "Bob", is_protected) && finds_it_free(s, "Bob");
    if (ann)
        sell(s, "Ann");
    if (bob)
        sell(s, "Bob");
    scene_judge_tickets(s);
}

const struct anomaly anomaly_clock_skew = {
    .name = "clock-skew",
    .title = "Two clients do not agree on the time",
    .moral = "A time that one machine wrote must not be compared with the clock of another. Give "
             "the server a duration, and let its clock alone decide.",
    .more =
        "docs/locks.md (Choosing the TTL and the back end); Redis documentation, \"SETNX\": the "
        "older pattern",
    .actors = {"Ann", "Bob", SCENE_REDIS, SCENE_POSTGRES},
    .not_on_sqlite = "all processes that share a file share the machine's clock",
    .strategies = {"the lock has an end by the client's clock", "the server measures the TTL"},
    .play = play,
};
