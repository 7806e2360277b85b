/* Lost answer to COMMIT: the sale is committed but the answer never comes, because the connection
 * breaks or, where the database is in the process (SQLite), the process dies.  The buyer cannot
 * know the outcome, and trying again blindly sells twice.  The cure is a key that is chosen before
 * the first try, stored with the sale and looked up before the second.  The key is UNIQUE because
 * the first try may still be under way during that look. */
#include "lab/relay.h"
#include "lab/scene.h"

#define NETWORK "Network"
#define SHOP "Shop"
#define REQUEST "order-7"

static const char sold_once[] =
    "SELECT 'request ' || request || ' was sold once: ' || seat || ' to ' || buyer FROM tickets";

/* Buys any free seat for Ann; `who` is Ann herself or the shop. */
static void buy_any(struct scene *s, const char *who)
{
    char seat[16];
    scene_begin(s, who);
    const char *found =
        scene_sql(s, who, "SELECT id FROM seats WHERE status = 'FREE' ORDER BY id LIMIT 1%s",
                  s->on_sqlite ? "" : " FOR UPDATE");
    snprintf(seat, sizeof seat, "%s", found);
    scene_think(s, "%s will do.", seat);
    (void)scene_sql(s, who, "UPDATE seats SET status = 'SOLD', buyer = 'Ann' WHERE id = '%s'",
                    seat);
    (void)scene_sql(
        s, who, "INSERT INTO tickets (seat, buyer, request) VALUES ('%s', 'Ann', '" REQUEST "')",
        seat);
}

/* Records the answer that is lost, and what Ann sees instead. */
static void record_loss(struct scene *s)
{
    char *n = scene_ask(s, "SELECT count(*) FROM tickets WHERE request = '" REQUEST "'");
    scene_arrow(s, SCENE_POSTGRES, NETWORK, "COMMIT (tickets of " REQUEST " there are now: %s)",
                n ? n : "?");
    scene_arrow(s, NETWORK, "Ann", SCENE_LOST);
    free(n);
}

static void try_again(struct scene *s, const char *who, bool is_protected)
{
    if (is_protected) {
        const char *seat =
            scene_sql(s, who, "SELECT seat FROM tickets WHERE request = '" REQUEST "'");
        if (!scene_is(seat, "no row")) {
            scene_think(s, "It had gone through: %s is sold, and paid for once.", seat);
            return;
        }
        scene_think(s, "It had not gone through.");
    }
    buy_any(s, who);
    if (scene_is(scene_sql(s, who, "COMMIT"), "COMMIT"))
        scene_think(s, "At last: one ticket.");
}

/* The answer to the first COMMIT is lost: PostgreSQL has committed, and the client does not hear of
 * it. */
static void play_network(struct scene *s, bool is_protected)
{
    char path[256];
    const PGconn *pg = scene_pg(s, "Ann");
    if (!pg)
        return;
    (void)snprintf(path, sizeof path, "%s/.s.PGSQL.%s", PQhost(pg), PQport(pg));
    struct relay *network = relay_start_unix(path, &s->err);
    if (!network) {
        s->failed = true;
        return;
    }
    relay_lose_only(network, "COMMIT");
    relay_set(network, RELAY_CUT);
    scene_reconnect(s, "Ann", relay_port(network));
    buy_any(s, "Ann");
    if (scene_is(scene_sql(s, "Ann", "COMMIT"), SCENE_LOST)) {
        relay_set(network, RELAY_PASS);
        record_loss(s);
        scene_note(s, "Ann", "connects again");
        scene_think(s, is_protected ? "Did it go through? I do not know, so I look."
                                    : "An error! So it did not go through: again.");
        scene_reconnect(s, "Ann", relay_port(network));
        try_again(s, "Ann", is_protected);
    }
    if (relay_count(network).lost == 0)
        scene_fail(s, "the proxy saw no COMMIT");
    relay_stop(network);
}

static void play_process(struct scene *s, bool is_protected)
{
    scene_arrow(s, "Ann", SHOP, "any seat, please; this is " REQUEST);
    buy_any(s, SHOP);
    (void)scene_sql(s, SHOP, "COMMIT");
    scene_note(s, SHOP, "dies before it can answer, and is started again");
    scene_disconnect(s, SHOP);
    scene_arrow(s, SHOP, "Ann", SCENE_LOST);
    scene_arrow(s, "Ann", SHOP, "again: any seat, please; this is " REQUEST);
    scene_think(s, "An error! So it did not go through.");
    if (is_protected)
        scene_note(s, SHOP, "has it gone through before? It does not know, so it looks");
    try_again(s, SHOP, is_protected);
}

static void play(struct scene *s, bool is_protected)
{
    if (is_protected)
        scene_prepare(s, "CREATE UNIQUE INDEX one_sale_a_request ON tickets (request)");
    (s->on_sqlite ? play_process : play_network)(s, is_protected);
    if (s->on_sqlite)
        scene_judge(s,
                    "SELECT 'request ' || request || ' was sold ' || count(*) || ' times: '"
                    " || group_concat(seat, ' and ') || ', both charged to ' || min(buyer)"
                    " FROM (SELECT * FROM tickets ORDER BY n) GROUP BY request HAVING count(*) > 1",
                    sold_once);
    else
        scene_judge(s,
                    "SELECT 'request ' || request || ' was sold ' || count(*) || ' times: '"
                    " || string_agg(seat, ' and ' ORDER BY n) || ', both charged to ' || min(buyer)"
                    " FROM tickets GROUP BY request HAVING count(*) > 1",
                    sold_once);
}

const struct anomaly anomaly_lost_commit = {
    .name = "lost-commit",
    .title = "The answer to COMMIT is lost on its way",
    .moral = "No answer is not a no. Choose the key before the first try, store it with the sale, "
             "look it up before the second.",
    .more = "docs/api.md (Repeat without fear)",
    .actors = {"Ann", NETWORK, SCENE_POSTGRES},
    .actors_sqlite = {"Ann", SHOP, SCENE_SQLITE},
    .strategies = {"try again", "look up the idempotency key, then try again"},
    .play = play,
};
