/* GET, then DEL: the owner compares the token before it deletes the lock, but in a step of its own.
 * If the lock passes on between the two steps, DEL hits the lock of the next holder after all, and
 * lets a third in.  The cure is to compare and delete in one script, which the server runs without
 * a break. */
#include "lab/scene.h"

#define SHORT_MS 500  /* a TTL that ends during the scene, but not before Ann's GET */
#define LONG_MS 30000 /* a TTL that does not */

static bool lock(struct scene *s, const char *who, int ttl_ms)
{
    bool got = scene_lock(s, who, ttl_ms, false) != NULL;
    scene_think(s, got ? "The lock is mine." : "Locked. I wait.");
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

/* Ann's lock passes to Bob while her next command is on its way. */
static bool lock_passes_to_bob(struct scene *s)
{
    scene_note(s, "Ann", "her next command is delayed on its way");
    scene_await_expiry(s, "Ann");
    return lock(s, "Bob", LONG_MS) && finds_it_free(s, "Bob");
}

static void play(struct scene *s, bool is_protected)
{
    bool is_hers = lock(s, "Ann", SHORT_MS);
    if (!is_protected) {
        is_hers = is_hers && scene_owns_lock(s, "Ann");
        scene_think(s, is_hers ? "It is mine, so I may delete it." : "Not mine: I leave it alone.");
    }
    bool bob = lock_passes_to_bob(s);
    if (is_hers) {
        bool deleted = scene_unlock(s, "Ann", !is_protected);
        scene_think(s, deleted ? "I have released my lock."
                               : "Not mine any more: the server left it alone.");
    }
    bool carl = lock(s, "Carl", LONG_MS) && finds_it_free(s, "Carl");
    if (bob)
        sell(s, "Bob");
    if (carl)
        sell(s, "Carl");
    scene_judge_tickets(s);
}

const struct anomaly anomaly_get_then_delete = {
    .name = "get-then-delete",
    .title = "The lock changes hands between GET and DEL",
    .moral = "Two commands are two moments. Compare the token and delete in one script.",
    .more =
        "docs/locks.md (What a lock guarantees); Redis documentation, \"SET\": the pattern with "
        "a script",
    .actors = {"Ann", "Bob", "Carl", SCENE_REDIS, SCENE_POSTGRES},
    .actors_sqlite = {"Ann", "Bob", "Carl", SCENE_SQLITE},
    .strategies = {"GET, compare, DEL", "compare and delete in one step"},
    .play = play,
};
