/* Redlock with a server that is restarted empty: a client that cannot reach R3 has the lock on R1
 * and R2.  R2 restarts without its data, and another client gets R2 and R3: two holders, each with
 * a majority.  The cure that the article names, and that our driver keeps, is that a server which
 * has restarted does not count until every lock that it may have forgotten has expired. */
#include "lab/scene_client.h"
#include "lab/scene_nodes.h"

#define SHOWN "redlock://R1,R2,R3"
#define LONG_MS 30000 /* a TTL that does not end during the scene */

static void break_r2(struct scene *s)
{
    size_t r2 = scene_node_index(s, "R2");
    coordinator_kill(s->coordinator, r2);
    if (!coordinator_restart(s->coordinator, r2, true, &s->err))
        s->failed = true;
    scene_note(s, "R2", "is restarted, and has lost its data");
}

static void play_article(struct scene *s)
{
    scene_note(s, "R3", "cannot be reached by Ann");
    bool ann = scene_redlock_lock(s, "Ann", "R3", LONG_MS) && scene_client_finds_it_free(s, "Ann");
    break_r2(s);
    bool bob = scene_redlock_lock(s, "Bob", NULL, LONG_MS) && scene_client_finds_it_free(s, "Bob");
    if (bob)
        scene_client_sell(s, "Bob", NULL);
    if (ann)
        scene_client_sell(s, "Ann", NULL);
}

static void play_driver(struct scene *s)
{
    char url[SERVER_URL_SIZE];
    scene_client_prepare(s);
    scene_redlock_vouch(s);
    scene_redlock_url(s, "R3", url);
    scene_note(s, "R3", "cannot be reached by Ann");
    struct scene_client how = {.url = url, .shown = SHOWN, .to = "R3", .ttl_s = LONG_MS / 1000};
    const char *ann = scene_client_lock(s, "Ann", &how);
    if (ann)
        scene_think(s, "R1 and R2: the lock is mine.");
    bool ann_buys = ann && scene_client_finds_it_free(s, "Ann");
    break_r2(s);
    scene_redlock_url(s, NULL, url);
    const char *bob = scene_client_lock(s, "Bob", &how);
    if (bob)
        scene_think(s, "R2 and R3: the lock is mine.");
    else
        scene_think(s, "No majority that can be trusted. I wait.");
    if (bob && scene_client_finds_it_free(s, "Bob"))
        scene_client_sell(s, "Bob", bob);
    if (ann_buys)
        scene_client_sell(s, "Ann", ann);
}

static void play(struct scene *s, bool is_protected)
{
    (is_protected ? play_driver : play_article)(s);
    scene_judge_tickets(s);
}

const struct anomaly anomaly_redlock_restart = {
    .name = "redlock-restart",
    .title = "Redlock: one server is restarted empty",
    .moral = "A server that has forgotten its locks must not vote until they have expired. Check "
             "the fence as well: there are other ways to forget.",
    .more = "docs/locks.md (Redlock); Redis documentation, \"Distributed Locks with "
            "Redis\": "
            "delayed restarts",
    .actors = {"Ann", "Bob", "R1", "R2", "R3", SCENE_POSTGRES},
    .not_on_sqlite = "it needs PostgreSQL for the rows",
    .driver = "redlock",
    .servers = COORDINATOR_REDLOCK,
    .nodes = {"R1", "R2", "R3"},
    .strategies = {"Redlock", "Redlock whose restarted servers sit out"},
    .play = play,
};
