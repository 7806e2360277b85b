/* A holder paused past its TTL wakes up, still believes that it has the lock, and writes.  No lock
 * with a TTL can prevent that, but the target of the write can, with a fence: a number that grows
 * with each grant, and that the target refuses once it has seen a larger one.  On PostgreSQL the
 * guard is share/holdfast/fence.sql, installed as a user would; on SQLite it is one statement. */
#include "lab/assets.h"
#include "lab/scene.h"

#define SHORT_MS 200
#define LONG_MS 30000

/* Returns the answer, which is the fence if `with_fence`, or NULL if the lock is taken. */
static const char *lock(struct scene *s, const char *who, int ttl_ms, bool with_fence)
{
    const char *answer = scene_lock(s, who, ttl_ms, with_fence);
    if (!answer)
        scene_think(s, "Locked. I wait.");
    else if (with_fence)
        scene_think(s, "The lock is mine, with fence %s.", answer);
    else
        scene_think(s, "The lock is mine.");
    return answer;
}

static bool finds_it_free(struct scene *s, const char *who)
{
    bool is_free = scene_is(scene_sql(s, who, "SELECT status FROM seats WHERE id = 'A-1'"), "FREE");
    scene_think(s, is_free ? "Free, and I have the lock." : "Sold.");
    return is_free;
}

static bool passes(struct scene *s, const char *who, const char *fence)
{
    if (!s->on_sqlite)
        return scene_is(scene_sql(s, who, "SELECT holdfast_fence('A-1', %s)", fence), "done");
    return scene_is(scene_sql(s, who,
                              "INSERT INTO fences VALUES ('A-1', %s) ON CONFLICT (name) DO UPDATE"
                              " SET fence = excluded.fence WHERE excluded.fence >= fence",
                              fence),
                    "1 row");
}

static void sell(struct scene *s, const char *who, const char *fence)
{
    scene_begin(s, who);
    if (fence && !passes(s, who, fence)) {
        scene_think(s, "My fence is stale: I was replaced. I write nothing.");
        (void)scene_sql(s, who, "ROLLBACK");
        return;
    }
    if (fence)
        scene_think(s, "No larger fence has been here.");
    (void)scene_sql(s, who, "UPDATE seats SET status = 'SOLD', buyer = '%s' WHERE id = 'A-1'", who);
    (void)scene_sql(s, who, "INSERT INTO tickets (seat, buyer) VALUES ('A-1', '%s')", who);
    (void)scene_sql(s, who, "COMMIT");
    scene_think(s, "I had the lock, so A-1 is mine.");
}

static void play(struct scene *s, bool is_protected)
{
    if (is_protected && !s->on_sqlite)
        scene_prepare(s, asset_fence_sql);
    const char *ann = lock(s, "Ann", SHORT_MS, is_protected);
    bool ann_buys = ann && finds_it_free(s, "Ann");
    scene_note(s, "Ann", "stands still: swapped out, collecting garbage, stopped");
    scene_await_expiry(s, "Ann");
    const char *bob = lock(s, "Bob", LONG_MS, is_protected);
    if (bob && finds_it_free(s, "Bob"))
        sell(s, "Bob", is_protected ? bob : NULL);
    scene_note(s, "Ann", "goes on, as if no time had passed");
    if (ann_buys)
        sell(s, "Ann", is_protected ? ann : NULL);
    scene_judge_tickets(s);
}

const struct anomaly anomaly_paused_holder = {
    .name = "paused-holder",
    .title = "A holder sleeps through the end of its lock, and writes",
    .moral = "A holder cannot know whether the lock is still its own when its write arrives. The "
             "target of the write can: give it the fence.",
    .more = "docs/fences.md; Martin Kleppmann, \"How to do distributed locking\" (2016)",
    .actors = {"Ann", "Bob", SCENE_REDIS, SCENE_POSTGRES},
    .actors_sqlite = {"Ann", "Bob", SCENE_SQLITE},
    .strategies = {"lock with a TTL", "lock with a TTL and a fence"},
    .play = play,
};
