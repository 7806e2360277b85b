/* Redlock with a server that is restarted empty: a client that cannot reach R3 has the lock on R1
 * and R2.  R2 restarts without its data, and another client gets R2 and R3: two holders, each with
 * a majority.  The cure that the article names, and that our driver keeps, is that a server which
 * has restarted does not count until every lock that it may have forgotten has expired. */
#include "lab/scene_nodes.h"

static void break_r2(struct scene *s)
{
    size_t r2 = scene_node_index(s, "R2");
    coordinator_kill(s->coordinator, r2);
    if (!coordinator_restart(s->coordinator, r2, true, &s->err))
        s->failed = true;
    scene_note(s, "R2", "is restarted, and has lost its data");
}

static void play(struct scene *s, bool is_protected)
{
    scene_redlock_forgets(s, is_protected, break_r2, 0);
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
