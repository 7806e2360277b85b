/* Redlock with a paused client: a majority of servers granted the lock, and the holder stands still
 * until it has expired on all of them.  A majority does not change what a TTL is: the holder wakes
 * up, still believes that it has the lock, and writes.  This is the first objection of Kleppmann's
 * critique; antirez answers that every lock that expires has it.  The fence of our driver, which
 * grows over all servers, lets the target refuse the write. */
#include "lab/scene_client.h"
#include "lab/scene_nodes.h"

#define SHOWN "redlock://R1,R2,R3"
#define LONG_MS 30000 /* a TTL that does not end during the scene */
#define SHORT_MS 1000 /* a TTL that ends during the scene, once three servers were asked */

static void play_article(struct scene *s)
{
    bool ann = scene_redlock_lock(s, "Ann", NULL, SHORT_MS) && scene_client_finds_it_free(s, "Ann");
    scene_note(s, "Ann", "stands still: swapped out, collecting garbage, stopped");
    scene_redlock_await_expiry(s, "Ann");
    if (scene_redlock_lock(s, "Bob", NULL, LONG_MS) && scene_client_finds_it_free(s, "Bob"))
        scene_client_sell(s, "Bob", NULL);
    scene_note(s, "Ann", "goes on, as if no time had passed");
    if (ann)
        scene_client_sell(s, "Ann", NULL);
}

static void play_driver(struct scene *s)
{
    char url[SERVER_URL_SIZE];
    scene_client_prepare(s);
    scene_redlock_vouch(s);
    scene_redlock_url(s, NULL, url);
    scene_client_sleeps(s, url, SHOWN, "R3", true);
}

static void play(struct scene *s, bool is_protected)
{
    (is_protected ? play_driver : play_article)(s);
    scene_judge_tickets(s);
}

const struct anomaly anomaly_redlock_pause = {
    .name = "redlock-pause",
    .title = "Redlock: a client sleeps while its lock expires on every server",
    .moral = "More servers make the lock more available, not the client faster. Give the fence to "
             "the target of the write.",
    .more = "docs/locks.md (Redlock); Martin Kleppmann, \"How to do distributed "
            "locking\" (2016); "
            "Salvatore Sanfilippo, \"Is Redlock safe?\" (2016)",
    .actors = {"Ann", "Bob", "R1", "R2", "R3", SCENE_POSTGRES},
    .not_on_sqlite = "it needs PostgreSQL for the rows",
    .driver = "redlock",
    .servers = COORDINATOR_REDLOCK,
    .nodes = {"R1", "R2", "R3"},
    .strategies = {"Redlock", "Redlock with a fence"},
    .play = play,
};
