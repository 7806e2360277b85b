/* Redlock with a jumped clock on one server: a client that cannot reach R3 has the lock on R1 and
 * R2. The clock of R2 jumps ahead by an hour, as an administrator or a time server may set it, and
 * R2 expires the key at once.  Another client gets R2 and R3: two holders, each with a majority. No
 * client can notice.  The fence does not depend on clocks: R2 counted the first grant, so the
 * second holder's fence is larger, and the target refuses the first. */
#include "lab/scene_client.h"
#include "lab/scene_nodes.h"

#define SHOWN "redlock://R1,R2,R3"
#define LONG_MS 30000 /* a TTL that does not end during the scene */

static void break_r2(struct scene *s)
{
    if (!coordinator_step_clock(s->coordinator, scene_node_index(s, "R2"), 3600, &s->err))
        s->failed = true;
    scene_note(s, "R2", "its clock is set ahead by an hour");
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
