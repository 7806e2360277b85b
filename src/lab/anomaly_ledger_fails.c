/* Redis says yes and the database fails: the key of the gate is set, the write is refused (here by
 * a PostgreSQL that is read-only for the moment of a failover), and the buyer gets an error.  If
 * nobody takes the key back, the gate refuses a seat that the ledger has free, until the key's TTL
 * ends.  The cure is to take back the first step when the second fails, by comparing and deleting.
 */
#include "lab/scene.h"

#define KEY "seat:A-1"

static void take_key_back(struct scene *s, const char *who)
{
    static const char script[] = "if redis.call('GET', KEYS[1]) == ARGV[1] then"
                                 " return redis.call('DEL', KEYS[1]) end return 0";
    char shown[96];
    snprintf(shown, sizeof shown, "EVAL if GET " KEY " = %s then DEL " KEY, who);
    const char *const words[] = {"EVAL", script, "1", KEY, who};
    (void)scene_redis_words(s, who, shown, 5, words);
    scene_think(s, "The seat is not mine, so the key must not be.");
}

static void buy(struct scene *s, const char *who, bool is_protected)
{
    if (!scene_is(scene_redis(s, who, "SET " KEY " %s NX EX 480", who), "OK")) {
        scene_think(s, "The gate says taken. I leave.");
        return;
    }
    scene_think(s, "The gate let me pass.");
    const char *answer = scene_sql(s, who,
                                   "UPDATE seats SET status = 'SOLD', buyer = '%s'"
                                   " WHERE id = 'A-1' AND status = 'FREE'",
                                   who);
    if (scene_is(answer, "1 row")) {
        (void)scene_sql(s, who, "INSERT INTO tickets (seat, buyer) VALUES ('A-1', '%s')", who);
        scene_think(s, "A-1 is mine.");
        return;
    }
    scene_think(s, "An error. I try another shop.");
    if (is_protected)
        take_key_back(s, who);
}

/* The ledger refuses the writes of this session, as a standby does during a failover. */
static void refuse_writes(struct scene *s, const char *who)
{
    PGconn *pg = scene_pg(s, who);
    if (pg)
        PQclear(PQexec(pg, "SET default_transaction_read_only = on"));
    scene_note(s, SCENE_POSTGRES, "fails over: for a moment it takes no writes");
}

static void judge(struct scene *s)
{
    char *status = scene_ask(s, "SELECT status FROM seats WHERE id = 'A-1'");
    long long left_s = scene_ask_redis(s, "TTL " KEY);
    bool is_blocked = status && scene_is(status, "FREE") && left_s > 0;
    if (is_blocked)
        scene_verdict(s, true,
                      "A-1 is FREE and has no ticket, but the gate refuses it for %lld s more",
                      left_s);
    else
        scene_judge_tickets(s);
    free(status);
}

static void play(struct scene *s, bool is_protected)
{
    refuse_writes(s, "Ann");
    buy(s, "Ann", is_protected);
    scene_note(s, SCENE_POSTGRES, "takes writes again");
    buy(s, "Bob", is_protected);
    judge(s);
}

const struct anomaly anomaly_ledger_fails = {
    .name = "ledger-fails",
    .title = "Redis says yes, and the database fails",
    .moral = "Two stores do not commit together. If the second step fails, take the first back, "
             "and let a TTL do it where the process dies as well.",
    .more = "docs/strategies.md (What the rows say); docs/reference.md (The gate)",
    .actors = {"Ann", "Bob", SCENE_REDIS, SCENE_POSTGRES},
    .not_on_sqlite = "there is no gate in front of SQLite",
    .strategies = {"gate, then the ledger", "gate, then the ledger, and back if it fails"},
    .play = play,
};
