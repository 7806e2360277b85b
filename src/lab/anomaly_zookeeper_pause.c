/* ZooKeeper's client paused past its session: the ephemeral node that is the lock disappears with
 * the session, which ends when the client has been silent for too long.  A client that stood still
 * hears of that only when it runs again, and may write before it does.  The transaction number of
 * the grant is a fence: it grows with every change that the ensemble makes. */
#include "lab/scene_client.h"

#define SERVER "ZooKeeper"
#define PAUSED_S 2 /* a TTL that ends during the scene */
#define LONG_S 30  /* a TTL that does not */
#define WAIT_S 20

static void play(struct scene *s, bool is_protected)
{
    if (is_protected)
        scene_client_prepare(s);
    struct scene_client how = {.url = s->coordinator->url,
                               .shown = "zookeeper://zookeeper",
                               .to = SERVER,
                               .ttl_s = PAUSED_S};
    const char *ann = scene_client_lock(s, "Ann", &how);
    bool ann_buys = ann && scene_client_finds_it_free(s, "Ann");
    scene_client_stop(s, "Ann");
    how.ttl_s = LONG_S;
    how.wait_s = WAIT_S;
    const char *bob = scene_client_lock(s, "Bob", &how);
    if (bob && scene_client_finds_it_free(s, "Bob"))
        scene_client_sell(s, "Bob", is_protected ? bob : NULL);
    scene_client_continue(s, "Ann");
    if (ann_buys)
        scene_client_sell(s, "Ann", is_protected ? ann : NULL);
    scene_judge_tickets(s);
}

const struct anomaly anomaly_zookeeper_pause = {
    .name = "zookeeper-pause",
    .title = "ZooKeeper: a client sleeps through the end of its session",
    .moral = "Consensus decides who has the lock, not who is awake. Give the fence to the target "
             "of the write.",
    .more = "docs/locks.md (ZooKeeper); docs/fences.md",
    .actors = {"Ann", "Bob", SERVER, SCENE_POSTGRES},
    .not_on_sqlite = "it needs PostgreSQL for the rows",
    .driver = "zookeeper",
    .servers = COORDINATOR_ZOOKEEPER,
    .strategies = {"lock in ZooKeeper", "lock in ZooKeeper with a fence"},
    .play = play,
};
