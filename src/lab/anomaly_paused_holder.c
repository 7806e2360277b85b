/* A holder paused past its TTL: it wakes up, still believes it has the lock, and writes.  No lock
 * with a TTL can prevent that; the place that is written to can, with a fence: a number that each
 * grant gets one larger, and that is refused once a larger one has been there.  The guard is
 * share/holdfast/fence.sql, as anybody would install it. */
#include "lab/assets.h"
#include "lab/scene.h"

#define LOCK "lock:A-1"
#define SHORT_MS 200
#define LONG_MS 30000

/* The fence; "": locked. */
static const char *lock(struct scene *s, const char *who, int ttl_ms)
{
    if (!scene_is(scene_redis(s, who, "SET " LOCK " token-%s NX PX %d", who, ttl_ms), "OK")) {
        scene_think(s, "Locked. I wait.");
        return "";
    }
    const char *fence = scene_redis(s, who, "INCR fence:A-1");
    scene_think(s, "The lock is mine, with fence %s.", fence);
    return fence;
}

static bool finds_it_free(struct scene *s, const char *who)
{
    bool is_free = scene_is(scene_sql(s, who, "SELECT status FROM seats WHERE id = 'A-1'"), "FREE");
    scene_think(s, is_free ? "Free, and I have the lock." : "Sold.");
    return is_free;
}

static void sell(struct scene *s, const char *who, const char *fence)
{
    (void)scene_sql(s, who, "BEGIN");
    if (fence && !scene_is(scene_sql(s, who, "SELECT holdfast_fence('A-1', %s)", fence), "done")) {
        scene_think(s, "My fence is stale: I was replaced. I write nothing.");
        (void)scene_sql(s, who, "ROLLBACK");
        return;
    }
    (void)scene_sql(s, who, "UPDATE seats SET status = 'SOLD', buyer = '%s' WHERE id = 'A-1'", who);
    (void)scene_sql(s, who, "INSERT INTO tickets (seat, buyer) VALUES ('A-1', '%s')", who);
    (void)scene_sql(s, who, "COMMIT");
    scene_think(s, "I had the lock, so A-1 is mine.");
}

static void play(struct scene *s, bool is_protected)
{
    if (is_protected)
        scene_prepare(s, asset_fence_sql);
    const char *ann = lock(s, "Ann", SHORT_MS);
    bool ann_buys = *ann && finds_it_free(s, "Ann");
    scene_note(s, "Ann", "stands still: swapped out, collecting garbage, stopped");
    scene_await_expiry(s, LOCK);
    scene_note(s, SCENE_REDIS, "the lock of Ann expires");
    const char *bob = lock(s, "Bob", LONG_MS);
    if (*bob && finds_it_free(s, "Bob"))
        sell(s, "Bob", is_protected ? bob : NULL);
    scene_note(s, "Ann", "goes on, as if no time had passed");
    if (ann_buys)
        sell(s, "Ann", is_protected ? ann : NULL);
    scene_judge_tickets(s);
}

const struct anomaly anomaly_paused_holder = {
    .name = "paused-holder",
    .title = "A holder sleeps through the end of its lock, and writes",
    .moral = "Nobody can know that a lock is still theirs at the moment of a write. The target of "
             "the write can: give it the fence.",
    .actors = {"Ann", "Bob", SCENE_REDIS, SCENE_POSTGRES},
    .strategies = {"Redis lock", "Redis lock with a fence"},
    .play = play,
};
