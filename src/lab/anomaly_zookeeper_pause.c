/* ZooKeeper's client paused past its session: the ephemeral node that is the lock disappears with
 * the session, which ends when the client has been silent for too long.  A client that stood still
 * hears of that only when it runs again, and may write before it does.  The transaction number of
 * the grant is a fence: it grows with every change that the ensemble makes. */
#include "lab/scene_client.h"

#define SERVER "ZooKeeper"

static void play(struct scene *s, bool is_protected)
{
    if (is_protected)
        scene_client_prepare(s);
    scene_client_sleeps(s, s->coordinator->url, "zookeeper://zookeeper", SERVER, is_protected);
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
