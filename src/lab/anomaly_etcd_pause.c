/* etcd's client paused past its session: a lock in etcd belongs to a lease, which the client keeps
 * alive.  A client that stands still for longer loses the lease and the lock; consensus between
 * servers says nothing about a client that does not run.  It wakes up and writes.  The revision of
 * the grant is a fence: a majority agreed on it, and it grows with every grant. */
#include "lab/scene_client.h"

#define SERVER "etcd"
#define PAUSED_S 2 /* a TTL that ends during the scene */
#define LONG_S 30  /* a TTL that does not */
#define WAIT_S 20

static void play(struct scene *s, bool is_protected)
{
    if (is_protected)
        scene_client_prepare(s);
    struct scene_client how = {
        .url = s->coordinator->url, .shown = "etcd://etcd", .to = SERVER, .ttl_s = PAUSED_S};
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
