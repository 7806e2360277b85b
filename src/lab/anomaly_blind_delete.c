/* Blind DEL: a holder that is slower than the TTL of its lock releases the lock of the next holder,
 * and so lets a third in.  The cure is to compare the token before deleting, in one script. */
#include "lab/scene.h"

#define SHORT_MS 200  /* a TTL that ends during the scene */
#define LONG_MS 30000 /* a TTL that does not */

static bool lock(struct scene *s, const char *who, int ttl_ms)
{
    bool got = scene_lock(s, who, ttl_ms, false) != NULL;
    scene_think(s, got ? "The lock is mine: nobody else sells A-1 now." : "Locked. I wait.");
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

static void unlock(struct scene *s, const char *who, bool is_protected)
{
    bool deleted = scene_unlock(s, who, !is_protected);
    scene_think(s,
                deleted ? "I have released my lock." : "Not my lock any more: I leave it alone.");
}

static void play(struct scene *s, bool is_protected)
{
    (void)lock(s, "Ann", SHORT_MS);
    scene_note(s, "Ann", "waits for her bank, longer than the %d ms of her lock", SHORT_MS);
    scene_await_expiry(s, "Ann");
    bool bob = lock(s, "Bob", LONG_MS) && finds_it_free(s, "Bob");
    scene_note(s, "Ann", "her card is declined: she gives up and releases");
    unlock(s, "Ann", is_protected);
    bool carl = lock(s, "Carl", LONG_MS) && finds_it_free(s, "Carl");
    if (bob)
        sell(s, "Bob");
    if (carl)
        sell(s, "Carl");
    scene_judge_tickets(s);
}

const struct anomaly anomaly_blind_delete = {
    .name = "blind-delete",
    .title = "A blind DEL releases somebody else's lock",
    .moral = "A lock with a TTL may have passed on. Release it only if the token in it is yours.",
    .more = "docs/locks.md (What a lock guarantees); Redis documentation, \"Distributed Locks with "
            "Redis\"",
    .actors = {"Ann", "Bob", "Carl", SCENE_REDIS, SCENE_POSTGRES},
    .actors_sqlite = {"Ann", "Bob", "Carl", SCENE_SQLITE},
    .strategies = {"lock with a TTL, delete it", "lock with a TTL, delete it if it is mine"},
    .play = play,
};
