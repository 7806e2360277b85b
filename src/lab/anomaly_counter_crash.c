/* Crash after the counter: a server counts a place down in Redis and dies before it writes the row.
 * The counter is now smaller than the number of free rows, for ever: a place that nobody has is
 * never sold.  The cure is a job that counts the rows again.  It may count a sale that is under way
 * as free; the rows refuse the request too many that the counter then lets through. */
#include "lab/scene.h"

#define STOCK "stock:show"
#define JOB "Job"

/* Takes any free row; returns false if there is none. */
static bool take_row(struct scene *s, const char *who)
{
    return scene_is(
        scene_sql(s, who,
                  "WITH taken AS (UPDATE seats SET status = 'SOLD', buyer = '%s' WHERE id ="
                  " (SELECT id FROM seats WHERE status = 'FREE' ORDER BY id LIMIT 1"
                  " FOR UPDATE SKIP LOCKED) RETURNING id)"
                  " INSERT INTO tickets (seat, buyer) SELECT id, '%s' FROM taken",
                  who, who),
        "1 row");
}

static void buy(struct scene *s, const char *who)
{
    if (scene_redis(s, who, "DECR " STOCK)[0] == '-') {
        scene_think(s, "Sold out. I leave.");
        (void)scene_redis(s, who, "INCR " STOCK);
        return;
    }
    scene_think(s, "There is a place for me.");
    bool got = take_row(s, who);
    scene_think(s, got ? "I have my ticket." : "No row is free: sold out after all.");
}

/* The server of Ann dies between the two steps. */
static void crash(struct scene *s)
{
    (void)scene_redis(s, "Ann", "DECR " STOCK);
    scene_think(s, "There is a place for me.");
    scene_note(s, "Ann", "her server dies before it writes the row; she gives up");
    scene_disconnect(s, "Ann");
}

static void recount(struct scene *s)
{
    const char *n = scene_sql(s, JOB, "SELECT count(*) FROM seats WHERE status = 'FREE'");
    (void)scene_redis(s, JOB, "SET " STOCK " %s", n);
    scene_think(s, "The rows are right, so the counter follows them.");
}

static void judge(struct scene *s)
{
    char *free_seats =
        scene_ask(s, "SELECT string_agg(id, ', ' ORDER BY id) FROM seats WHERE status = 'FREE'");
    char *sold = scene_ask(s, "SELECT string_agg(seat || ' to ' || buyer, ', ' ORDER BY n)"
                              " FROM tickets");
    long long left = scene_ask_redis(s, "GET " STOCK);
    if (free_seats)
        scene_verdict(s, left == 0,
                      "%s is free, but the counter has %lld left and refused a buyer; sold: %s",
                      free_seats, left, sold ? sold : "nothing");
    else
        scene_verdict(s, false, "every place is sold: %s; the counter has %lld left",
                      sold ? sold : "nothing", left);
    free(free_seats);
    free(sold);
}

static void play(struct scene *s, bool is_protected)
{
    (void)scene_redis(s, JOB, "SET " STOCK " 2");
    scene_think(s, "Two rows are free: A-1 and A-2.");
    crash(s);
    if (is_protected)
        recount(s);
    buy(s, "Bob");
    buy(s, "Carl");
    judge(s);
}

const struct anomaly anomaly_counter_crash = {
    .name = "counter-crash",
    .title = "A server dies between the counter and the row",
    .moral = "A counter beside the rows drifts with every crash. Count the rows again, regularly, "
             "and let the rows refuse what the counter should not have let through.",
    .more = "docs/strategies.md (What the rows say)",
    .actors = {"Ann", "Bob", "Carl", JOB, SCENE_REDIS, SCENE_POSTGRES},
    .not_on_sqlite = "there is no counter in front of SQLite",
    .strategies = {"counter, then a row", "counter, then a row, and a job that counts again"},
    .play = play,
};
