/* Renewal without an owner check: a holder whose lock has passed on renews whatever lock is there,
 * is told that it worked, and goes on as the holder.  The cure is to compare the token before the
 * renewal, in one script: the answer "not yours" is the notice of the loss. */
#include "lab/scene.h"

#define SHORT_MS 200  /* a TTL that ends during the scene */
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

static void play(struct scene *s, bool is_protected)
{
    bool ann = lock(s, "Ann", SHORT_MS) && finds_it_free(s, "Ann");
    scene_note(s, "Ann", "her renewal is late: the thread that renews did not run");
    scene_await_expiry(s, "Ann");
    bool bob = lock(s, "Bob", LONG_MS) && finds_it_free(s, "Bob");
    bool renewed = scene_renew(s, "Ann", LONG_MS, !is_protected);
    scene_think(s,
                renewed ? "Renewed in time: the lock is still mine." : "I have lost it. I stop.");
    if (ann && renewed)
        sell(s, "Ann");
    if (bob)
        sell(s, "Bob");
    scene_judge_tickets(s);
}

const struct anomaly anomaly_blind_renewal = {
    .name = "blind-renewal",
    .title = "A late renewal extends somebody else's lock",
    .moral = "A renewal asks a question: is it still mine? Compare the token, and stop if it is "
             "not.",
    .more = "docs/locks.md (Renewal)",
    .actors = {"Ann", "Bob", SCENE_REDIS, SCENE_POSTGRES},
    .actors_sqlite = {"Ann", "Bob", SCENE_SQLITE},
    .strategies = {"renew the lock", "renew the lock if it is mine"},
    .play = play,
};
