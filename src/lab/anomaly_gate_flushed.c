/* Gate flushed in the middle of a sale: Redis restarts without its keys, evicts them, or fails over
 * to a replica that lags.  A shop that sells whatever the gate lets through sells the seat again; a
 * shop whose ledger refuses, too, loses a quick refusal and nothing else. */
#include "lab/scene.h"

static void buy(struct scene *s, const char *who, bool is_protected)
{
    const char *condition = is_protected ? " AND status = 'FREE'" : "";
    if (!scene_is(scene_redis(s, who, "SET seat:A-1 %s NX EX 480", who), "OK")) {
        scene_think(s, "The gate says taken: sorry.");
        return;
    }
    scene_think(s, "The gate let me pass.");
    if (!scene_is(scene_sql(s, who,
                            "UPDATE seats SET status = 'SOLD', buyer = '%s' WHERE id = 'A-1'%s",
                            who, condition),
                  "1 row")) {
        scene_think(s, "The ledger says it is sold, and the ledger is right. Sorry.");
        return;
    }
    (void)scene_sql(s, who, "INSERT INTO tickets (seat, buyer) VALUES ('A-1', '%s')", who);
    scene_think(s, "A-1 is mine.");
}

static void play(struct scene *s, bool is_protected)
{
    buy(s, "Ann", is_protected);
    buy(s, "Bob", is_protected);
    (void)scene_redis(s, "Admin", "FLUSHALL");
    scene_think(s, "It is only a cache, is it not?");
    buy(s, "Bob", is_protected);
    scene_judge_tickets(s);
}

const struct anomaly anomaly_gate_flushed = {
    .name = "gate-flushed",
    .title = "The gate loses its memory in the middle of a sale",
    .moral = "A gate may refuse early; it must never be the reason to say yes. The ledger decides.",
    .more = "docs/strategies.md (What the rows say)",
    .actors = {"Ann", "Bob", "Admin", SCENE_REDIS, SCENE_POSTGRES},
    .not_on_sqlite = "there is no gate in front of SQLite",
    .strategies = {"gate alone", "gate, then the ledger's condition"},
    .play = play,
};
