/* Deadlock by unsorted seats: each of two buyers has locked one of two rows and waits for the
 * other. PostgreSQL finds out after deadlock_timeout and ends one of them with SQLSTATE 40P01.  The
 * cure is that everybody locks in the same order: the second buyer then waits before it has locked
 * anything that the first could want. */
#include "lab/scene.h"

#define TAKE "UPDATE seats SET status = 'SOLD', buyer = '%s' WHERE id = '%s' AND status = 'FREE'"

static void judge(struct scene *s, long before)
{
    char harm[256];
    scene_dismiss(s);
    snprintf(harm, sizeof harm,
             "SELECT 'PostgreSQL counted ' || deadlocks - %ld || ' deadlock; tickets of the rest: '"
             " || (SELECT coalesce(string_agg(seat || ' ' || buyer, ', '), 'nothing') FROM tickets)"
             " FROM pg_stat_database WHERE datname = current_database() AND deadlocks > %ld",
             before, before);
    scene_judge(s, harm,
                "SELECT 'no deadlock; tickets: ' || string_agg(seat || ' ' || buyer, ', ')"
                " FROM tickets");
}

static void finish(struct scene *s, const char *who)
{
    (void)scene_sql(s, who, "INSERT INTO tickets (seat, buyer) VALUES ('A-1', '%s'), ('A-2', '%s')",
                    who, who);
    (void)scene_sql(s, who, "COMMIT");
    scene_think(s, "Both are mine.");
}

/* What a buyer does after the wait; `got` is the answer about its last seat. */
static void go_on(struct scene *s, const char *who, const char *got)
{
    if (scene_is(got, "1 row")) {
        finish(s, who);
        return;
    }
    (void)scene_sql(s, who, "ROLLBACK");
    scene_think(s, scene_is(got, "0 rows") ? "Taken: a clear answer. Sorry, other seats."
                                           : "An error. Is it taken? Is it broken? Again?");
}

static void crosswise(struct scene *s)
{
    (void)scene_sql(s, "Ann", TAKE, "Ann", "A-1");
    (void)scene_sql(s, "Bob", TAKE, "Bob", "A-2");
    scene_send(s, "Ann", TAKE, "Ann", "A-2");
    scene_think(s, "Bob will be done in a moment: I wait.");
    scene_send(s, "Bob", TAKE, "Bob", "A-1");
    scene_think(s, "Ann will be done in a moment: I wait.");
    scene_note(s, SCENE_POSTGRES, "after deadlock_timeout: Ann waits for Bob, Bob waits for Ann");
    /* The buyer that is ended frees the other.  Which one it is depends on whose timer fires first.
     */
    const char *ann = scene_wait(s, "Ann");
    if (!scene_is(ann, "1 row"))
        go_on(s, "Ann", ann);
    const char *bob = scene_wait(s, "Bob");
    go_on(s, "Bob", bob);
    if (scene_is(ann, "1 row"))
        go_on(s, "Ann", ann);
}

static void sorted(struct scene *s)
{
    (void)scene_sql(s, "Ann", TAKE, "Ann", "A-1");
    scene_send(s, "Bob", TAKE, "Bob", "A-1");
    scene_think(s, "I want A-2 and A-1, but ask for A-1 first like everybody. I wait.");
    go_on(s, "Ann", scene_sql(s, "Ann", TAKE, "Ann", "A-2"));
    const char *first = scene_wait(s, "Bob");
    go_on(s, "Bob", scene_is(first, "1 row") ? scene_sql(s, "Bob", TAKE, "Bob", "A-2") : first);
}

static void play(struct scene *s, bool is_protected)
{
    char *text = scene_ask(s, "SELECT deadlocks FROM pg_stat_database"
                              " WHERE datname = current_database()");
    long before = text ? strtol(text, NULL, 10) : 0;
    free(text);
    (void)scene_sql(s, "Ann", "BEGIN");
    scene_think(s, "I want A-1 and A-2.");
    (void)scene_sql(s, "Bob", "BEGIN");
    scene_think(s, "I want A-2 and A-1.");
    (is_protected ? sorted : crosswise)(s);
    judge(s, before);
}

const struct anomaly anomaly_deadlock = {
    .name = "deadlock",
    .title = "Two buyers take the same two seats from both ends",
    .moral = "A transaction that locks several rows locks them in the same order as every other.",
    .more = "docs/locks.md (Several locks: the order of names); PostgreSQL manual, \"Deadlocks\"",
    .actors = {"Ann", "Bob", SCENE_POSTGRES},
    .not_on_sqlite = "SQLite locks the whole file: no buyer can lock one row and wait for another",
    .strategies = {"rows in the order of the wish", "rows in sorted order"},
    .play = play,
};
