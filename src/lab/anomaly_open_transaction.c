/* A transaction held open across the buyer's thinking time: SELECT ... FOR UPDATE when the buyer
 * opens the page, COMMIT when it has paid.  A buyer that goes away leaves a row that nobody can
 * sell, a connection that nobody can use, and waiting buyers who get an error instead of an answer.
 * The cure is a hold: a short transaction that writes who has the seat and until when. */
#include "lab/scene.h"

#define HOLD_MS 300
#define LOCK_TIMEOUT_MS 300

/* ---- without protection ---- */

static void lock_and_think(struct scene *s)
{
    (void)scene_sql(s, "Ann", "BEGIN");
    (void)scene_sql(s, "Ann", "SELECT status FROM seats WHERE id = 'A-1' FOR UPDATE");
    scene_think(s, "Locked for me. Where is my card?");
    scene_note(s, "Ann", "looks for her card, and goes to lunch with the page open");
}

static void wait_for_the_row(struct scene *s)
{
    (void)scene_sql(s, "Bob", "SET lock_timeout = '%d ms'", LOCK_TIMEOUT_MS);
    scene_think(s, "I am patient, but not for ever.");
    const char *answer = scene_sql(s, "Bob",
                                   "UPDATE seats SET status = 'SOLD', buyer = 'Bob'"
                                   " WHERE id = 'A-1' AND status = 'FREE'");
    if (scene_is(answer, "1 row")) {
        (void)scene_sql(s, "Bob", "INSERT INTO tickets (seat, buyer) VALUES ('A-1', 'Bob')");
        return;
    }
    scene_think(s, "An error. Is it taken? Is it broken? I take my money elsewhere.");
}

/* ---- with protection ---- */

static void hold_and_think(struct scene *s)
{
    (void)scene_sql(s, "Ann",
                    "UPDATE seats SET status = 'HELD', buyer = 'Ann',"
                    " held_until = now() + interval '%d ms' WHERE id = 'A-1' AND status = 'FREE'",
                    HOLD_MS);
    scene_think(s, "On hold for me, and no transaction is open. Where is my card?");
    scene_note(s, "Ann", "looks for her card, and goes to lunch with the page open");
}

static bool buy(struct scene *s, const char *who)
{
    const char *answer =
        scene_sql(s, who,
                  "UPDATE seats SET status = 'SOLD', buyer = '%s' WHERE id = 'A-1'"
                  " AND (status = 'FREE' OR status = 'HELD' AND held_until <= now())",
                  who);
    if (!scene_is(answer, "1 row")) {
        scene_think(s, "On hold for another buyer: a clear answer, at once.");
        return false;
    }
    (void)scene_sql(s, who, "INSERT INTO tickets (seat, buyer) VALUES ('A-1', '%s')", who);
    scene_think(s, "A-1 is mine.");
    return true;
}

static bool hold_has_expired(struct scene *s, const char *who)
{
    (void)who;
    char *live = scene_ask(s, "SELECT 1 FROM seats WHERE held_until > now()");
    free(live);
    return !live;
}

static void come_back_after_the_hold(struct scene *s)
{
    scene_await(s, hold_has_expired, "Ann", "a hold expires");
    scene_note(s, SCENE_POSTGRES, "the hold of Ann expires");
    (void)buy(s, "Bob");
}

static void play(struct scene *s, bool is_protected)
{
    if (is_protected) {
        scene_prepare(s, "ALTER TABLE seats ADD held_until timestamptz");
        hold_and_think(s);
        if (!buy(s, "Bob"))
            come_back_after_the_hold(s);
    } else {
        lock_and_think(s);
        wait_for_the_row(s);
    }
    scene_judge(s,
                "SELECT 'A-1 is ' || status || ' and has no ticket: a transaction that has been"
                " idle for ' || (extract(epoch FROM clock_timestamp() - a.state_change)"
                " * 1000)::int || ' ms locks it' FROM pg_stat_activity a, seats"
                " WHERE a.state = 'idle in transaction' AND seats.id = 'A-1'"
                " AND NOT EXISTS (SELECT FROM tickets)",
                "SELECT string_agg(seat || ' has 1 ticket: ' || buyer, '; ') FROM tickets");
}

const struct anomaly anomaly_open_transaction = {
    .name = "open-transaction",
    .title = "A transaction stays open while the buyer thinks",
    .moral = "Never wait for a person inside a transaction. Write a hold with an expiry, commit, "
             "and let the next buyer read it.",
    .more = "docs/api.md (Hold); PostgreSQL manual, \"idle_in_transaction_session_timeout\"",
    .actors = {"Ann", "Bob", SCENE_POSTGRES},
    .not_on_sqlite = "SQLite has one writer: an open transaction stops the buyers of every seat",
    .strategies = {"FOR UPDATE while the buyer thinks", "a hold with an expiry"},
    .play = play,
};
