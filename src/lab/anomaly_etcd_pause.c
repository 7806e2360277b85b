/* etcd's client paused past its session: a lock in etcd belongs to a lease, which the client keeps
 * alive.  A client that stands still for longer loses the lease and the lock; consensus between
 * servers says nothing about a client that does not run.  It wakes up and writes.  The revision of
 * the grant is a fence: a majority agreed on it, and it grows with every grant. */
#include "lab/scene_client.h"

#define SERVER "etcd"

static void play(struct scene *s, bool is_protected)
{
    if (is_protected)
        scene_client_prepare(s);
    scene_client_sleeps(s, s->coordinator->url, "etcd://etcd", SERVER, is_protected);
    scene_judge_tickets(s);
}

const struct anomaly anomaly_etcd_pause = {
    .name = "etcd-pause",
    .title = "etcd: a client sleeps through the end of its session",
    .moral = "Consensus decides who has the lock, not who is awake. Give the fence to the target "
             "of the write.",
    .more = "docs/locks.md (etcd); docs/fences.md",
    .actors = {"Ann", "Bob", SERVER, SCENE_POSTGRES},
    .not_on_sqlite = "it needs PostgreSQL for the rows",
    .driver = "etcd",
    .servers = COORDINATOR_ETCD,
    .strategies = {"lock in etcd", "lock in etcd with a fence"},
    .play = play,
};
