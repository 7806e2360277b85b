/* The counter's asynchronous write: a shop counts down in Redis, says yes at once, and writes the
 * row later from a list in its memory.  If it dies with the list, a buyer who was told yes has
 * nothing, and the counter differs from the rows.  The cure is to write the list in the same step
 * as the counter, where it outlives the shop, to write each row once by the key of its request, and
 * to compare counter, list and rows when the shop starts. */
#include "lab/scene.h"

#define STOCK "stock:show"
#define SOLD "sold:show"
#define SHOP "Shop"
#define REQUEST "order-7"

/* Returns whether Ann was told yes. */
static bool sell(struct scene *s, bool is_protected)
{
    static const char script[] = "if tonumber(redis.call('GET', KEYS[1])) < 1 then return -1 end"
                                 " redis.call('RPUSH', KEYS[2], ARGV[1])"
                                 " return redis.call('DECR', KEYS[1])";
    static const char *const words[] = {"EVAL", script, "2", STOCK, SOLD, "Ann:" REQUEST};
    scene_arrow(s, "Ann", SHOP, "a place, please; this is " REQUEST);
    const char *left = is_protected ? scene_redis_words(s, SHOP,
                                                        "EVAL if GET " STOCK " > 0 then RPUSH " SOLD
                                                        " Ann:" REQUEST ", DECR " STOCK,
                                                        6, words)
                                    : scene_redis(s, SHOP, "DECR " STOCK);
    bool yes = *left && left[0] != '-';
    scene_think(s, is_protected ? "Sold, and noted where it outlives me."
                                : "Sold. I note it and write the row when I have time.");
    scene_arrow(s, SHOP, "Ann", yes ? "yes: you have a place" : "sold out");
    return yes;
}

static void die(struct scene *s)
{
    scene_note(s, SHOP, "dies, with everything in its memory, and is started again");
    scene_disconnect(s, SHOP);
}

/* Writes the rows that the list has and the ledger has not. */
static void catch_up(struct scene *s)
{
    const char *first = scene_redis(s, SHOP, "LINDEX " SOLD " 0");
    if (scene_is(first, "(nil)"))
        return;
    scene_think(s,
                "Told yes, perhaps not written. The key of the request makes it safe to repeat.");
    (void)scene_sql(s, SHOP,
                    "WITH taken AS (UPDATE seats SET status = 'SOLD', buyer = 'Ann' WHERE id ="
                    " (SELECT id FROM seats WHERE status = 'FREE' AND NOT EXISTS"
                    " (SELECT FROM tickets WHERE request = '" REQUEST "') ORDER BY id LIMIT 1"
                    " FOR UPDATE SKIP LOCKED) RETURNING id)"
                    " INSERT INTO tickets (seat, buyer, request)"
                    " SELECT id, 'Ann', '" REQUEST "' FROM taken ON CONFLICT DO NOTHING");
    (void)scene_redis(s, SHOP, "LPOP " SOLD);
    const char *n = scene_sql(s, SHOP, "SELECT count(*) FROM seats WHERE status = 'FREE'");
    bool agree = scene_is(scene_redis(s, SHOP, "GET " STOCK), n);
    scene_think(s, agree ? "Counter and rows agree." : "They differ: I set the counter.");
    if (!agree)
        (void)scene_redis(s, SHOP, "SET " STOCK " %s", n);
}

static void judge(struct scene *s, bool was_told_yes)
{
    char *ticket = scene_ask(s, "SELECT seat FROM tickets WHERE request = '" REQUEST "'");
    char *n = scene_ask(s, "SELECT count(*) FROM seats WHERE status = 'FREE'");
    long long left = scene_ask_redis(s, "GET " STOCK);
    if (was_told_yes && !ticket)
        scene_verdict(s, true,
                      "Ann was told yes and has no ticket; the counter has %lld left, the rows %s",
                      left, n ? n : "?");
    else
        scene_verdict(s, false, "Ann has a ticket for %s; the counter has %lld left, the rows %s",
                      ticket ? ticket : "nothing", left, n ? n : "?");
    free(ticket);
    free(n);
}

static void play(struct scene *s, bool is_protected)
{
    if (is_protected)
        scene_prepare(s, "CREATE UNIQUE INDEX one_sale_a_request ON tickets (request)");
    (void)scene_redis(s, SHOP, "SET " STOCK " 2");
    scene_think(s, "Two rows are free: A-1 and A-2.");
    bool was_told_yes = sell(s, is_protected);
    die(s);
    if (is_protected)
        catch_up(s);
    judge(s, was_told_yes);
}

const struct anomaly anomaly_counter_async = {
    .name = "counter-async",
    .title = "A shop says yes, and dies before it writes the sale",
    .moral = "What was promised must be stored before it is promised. Write the list of sales in "
             "the same step as the counter, and repeat it by the keys of the requests.",
    .more = "docs/strategies.md (What the rows say)",
    .actors = {"Ann", SHOP, SCENE_REDIS, SCENE_POSTGRES},
    .not_on_sqlite = "there is no counter in front of SQLite",
    .strategies = {"counter, the row later from memory", "counter and list in one step, then rows"},
    .play = play,
};
