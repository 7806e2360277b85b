/* Failover to a replica that had not heard of the lock: Redis answers before its replicas have
 * heard, so a primary can grant a lock, die, and be replaced by a replica that has no such key.
 * The next client gets the lock while the first still holds it.  The fence of our driver is the
 * server's clock in microseconds, so the replica, whose clock is about right, issues a larger one,
 * and the target refuses the first holder. */
#include "lab/scene_client.h"
#include "lab/scene_nodes.h"

#define PRIMARY "Primary"
#define REPLICA "Replica"
#define TTL_MS 30000

static bool is_linked(struct scene *s, const char *who)
{
    (void)who;
    return scene_node_ask(s, PRIMARY, "WAIT 1 100") == 1;
}

/* The replica follows the primary, and then loses its connection to it. */
static void set_up(struct scene *s)
{
    const struct coordinator_node *primary = &s->coordinator->nodes[scene_node_index(s, PRIMARY)];
    (void)scene_node_ask(s, PRIMARY, "CONFIG SET repl-diskless-sync-delay 0");
    (void)scene_node_ask(s, REPLICA, "REPLICAOF 127.0.0.1 %d", relay_port(primary->relay));
    scene_await(s, is_linked, REPLICA, "the replica follows");
    relay_set(primary->relay, RELAY_CLOSED);
    s->began_us = clock_monotonic_us(s->clock);
    scene_note(s, REPLICA, "follows the primary; now the network between them is cut");
}

static void fail_over(struct scene *s)
{
    coordinator_kill(s->coordinator, scene_node_index(s, PRIMARY));
    scene_note(s, PRIMARY, "dies");
    (void)scene_node_ask(s, REPLICA, "REPLICAOF NO ONE");
    scene_note(s, REPLICA, "is promoted: clients are sent here from now on");
}

static bool lock(struct scene *s, const char *who, const char *node)
{
    bool got =
        scene_is(scene_node(s, who, node, "SET lock:A-1 token-%s NX PX %d", who, TTL_MS), "OK");
    scene_think(s, got ? "The lock is mine." : "Locked. I wait.");
    return got;
}

static const char *lock_with_fence(struct scene *s, const char *who, const char *node)
{
    char url[SERVER_URL_SIZE];
    int port = s->coordinator->nodes[scene_node_index(s, node)].port;
    (void)snprintf(url, sizeof url, "redis://127.0.0.1:%d", port);
    const struct scene_client how = {
        .url = url, .shown = "redis://redis", .to = node, .ttl_s = TTL_MS / 1000};
    const char *fence = scene_client_lock(s, who, &how);
    scene_think(s, fence ? "The lock is mine." : "Locked. I wait.");
    return fence;
}

static void play(struct scene *s, bool is_protected)
{
    if (is_protected)
        scene_client_prepare(s);
    set_up(s);
    const char *ann = is_protected ? lock_with_fence(s, "Ann", PRIMARY) : NULL;
    bool ann_buys = (is_protected ? ann != NULL : lock(s, "Ann", PRIMARY)) &&
                    scene_client_finds_it_free(s, "Ann");
    fail_over(s);
    const char *bob = is_protected ? lock_with_fence(s, "Bob", REPLICA) : NULL;
    bool bob_buys = (is_protected ? bob != NULL : lock(s, "Bob", REPLICA)) &&
                    scene_client_finds_it_free(s, "Bob");
    if (bob_buys)
        scene_client_sell(s, "Bob", bob);
    if (ann_buys)
        scene_client_sell(s, "Ann", ann);
    scene_judge_tickets(s);
}

const struct anomaly anomaly_redis_failover = {
    .name = "redis-failover",
    .title = "A Redis primary dies before its replica has heard of the lock",
    .moral = "Redis grants first and replicates afterwards. Check the fence; min_replicas= makes "
             "the loss of a grant less likely, not impossible.",
    .more = "docs/locks.md (Redis); Redis documentation, \"Redis replication\"",
    .actors = {"Ann", "Bob", PRIMARY, REPLICA, SCENE_POSTGRES},
    .not_on_sqlite = "it needs PostgreSQL for the rows",
    .driver = "redis",
    .servers = COORDINATOR_REDLOCK, /* two of its three servers */
    .nodes = {PRIMARY, REPLICA},
    .strategies = {"SET NX PX on the primary", "lock with a fence"},
    .play = play,
};
