/* Naive double sale: a buyer who reads first and writes afterwards decides on something that may no
 * longer be true.  The cure is to decide in the write: UPDATE ... WHERE status = 'FREE' changes one
 * row or none. */
#include "lab/scene.h"

static bool finds_it_free(struct scene *s, const char *who)
{
    bool is_free = scene_is(scene_sql(s, who, "SELECT status FROM seats WHERE id = 'A-1'"), "FREE");
    scene_think(s, is_free ? "It is free, I take it." : "Taken: sorry, next seat.");
    return is_free;
}

static void buy(struct scene *s, const char *who, bool is_protected)
{
    const char *condition = is_protected ? " AND status = 'FREE'" : "";
    if (!scene_is(scene_sql(s, who,
                            "UPDATE seats SET status = 'SOLD', buyer = '%s' WHERE id = 'A-1'%s",
                            who, condition),
                  "1 row")) {
        scene_think(s, "Nothing changed: somebody was faster. Sorry, next seat.");
        return;
    }
    scene_think(s, "One row changed: A-1 is mine.");
    (void)scene_sql(s, who, "INSERT INTO tickets (seat, buyer) VALUES ('A-1', '%s')", who);
}

static void play(struct scene *s, bool is_protected)
{
    bool ann = finds_it_free(s, "Ann"), bob = finds_it_free(s, "Bob");
    if (ann)
        buy(s, "Ann", is_protected);
    if (bob)
        buy(s, "Bob", is_protected);
    scene_judge_tickets(s);
}

const struct anomaly anomaly_double_sale = {
    .name = "naive-double-sale",
    .title = "Two buyers look before either writes",
    .moral = "A check may be outdated before the write. Let the write check, and count its rows.",
    .more = "docs/strategies.md (What the rows say)",
    .actors = {"Ann", "Bob", SCENE_POSTGRES},
    .actors_sqlite = {"Ann", "Bob", SCENE_SQLITE},
    .strategies = {"SELECT, then UPDATE", "UPDATE on condition that it is free"},
    .play = play,
};
