/* Redlock with a jumped clock on one server: a client that cannot reach R3 has the lock on R1 and
 * R2. The clock of R2 jumps ahead by an hour, as an administrator or a time server may set it, and
 * R2 expires the key at once.  Another client gets R2 and R3: two holders, each with a majority. No
 * client can notice.  The fence does not depend on clocks: R2 counted the first grant, so the
 * second holder's fence is larger, and the target refuses the first. */
#include "lab/scene_client.h"
#include "lab/scene_nodes.h"

static void break_r2(struct scene *s)
{
    if (!coordinator_step_clock(s->coordinator, scene_node_index(s, "R2"), 3600, &s->err))
        s->failed = true;
    scene_note(s, "R2", "its clock is set ahead by an hour");
}

static void play(struct scene *s, bool is_protected)
{
    scene_redlock_forgets(s, is_protected, break_r2, SCENE_WAIT_S);
}

const struct anomaly anomaly_redlock_clock = {
    .name = "redlock-clock",
    .title = "Redlock: the clock of one server jumps",
    .moral = "A majority of clocks must be right while the lock is held. Where a clock can be set, "
             "only the fence protects the data.",
    .more = "docs/locks.md (Redlock); Martin Kleppmann, \"How to do distributed "
            "locking\" (2016)",
    .actors = {"Ann", "Bob", "R1", "R2", "R3", SCENE_POSTGRES},
    .not_on_sqlite = "it needs PostgreSQL for the rows",
    .driver = "redlock",
    .servers = COORDINATOR_REDLOCK,
    .steps_clock = true,
    .nodes = {"R1", "R2", "R3"},
    .strategies = {"Redlock", "Redlock with a fence"},
    .play = play,
};
