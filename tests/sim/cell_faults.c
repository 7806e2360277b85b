/* What goes wrong in a simulated cell.  Every seed has its own weather: how often messages are
 * lost, how slow the journal is, how many servers there are; and a list of misfortunes, the worst
 * of which make two servers believe that they lead.  All of it ends at weather.end_us. */
#include "sim/cell_world.h"

/* Most runs have a few kinds of trouble, not all of them, so that each is seen by itself. */
static int sometimes(struct cell_world *w, int of_1000, int from, int to)
{
    return sim_chance(w, of_1000) ? (int)sim_between(w, from, to) : 0;
}

void faults_draw(struct cell_world *w)
{
    struct cell_weather *weather = &w->weather;
    *weather = (struct cell_weather){
        .servers = sim_chance(w, 600) ? 2 : 3,
        .clients = sim_chance(w, 400) ? 8 : (int)sim_between(w, 2, 7),
        .timeout_ms = sim_chance(w, 500) ? sim_between(w, 120, 180) : sim_between(w, 180, 500),
        .ttl_ms = sim_chance(w, 600) ? 1000 : sim_between(w, 1000, 2200),
        .end_us = sim_between(w, 1500000, 4000000),
        .journal_us = sim_between(w, 500, 8000),
        .network_us = sim_between(w, 100, 5000),
        .lost = sometimes(w, 500, 5, 120),
        .doubled = sometimes(w, 300, 5, 60),
        .slow = sometimes(w, 500, 5, 100),
        .journal_lost = sometimes(w, 500, 5, 100),
        .journal_late = sometimes(w, 400, 5, 60),
        .journal_slow = sometimes(w, 400, 5, 100),
        .journal_timeout_ms = sim_between(w, 50, 300),
        .client_timeout_ms =
            sim_chance(w, 600) ? sim_between(w, 80, 250) : sim_between(w, 250, 900),
        .snapshot_entries = sim_chance(w, 600) ? sim_between(w, 3, 40) : 0,
        .queue_max = sim_chance(w, 200) ? (size_t)sim_between(w, 1, 8) : 1000,
        .delay_ms = sim_chance(w, 200) ? (uint32_t)sim_between(w, 1, 300) : 0,
        .hold_ms = sim_chance(w, 500) ? 300 : 3000,
        .crowded = sim_chance(w, 400),
        .waits = (int)sim_between(w, 0, 700),
        .shared = sometimes(w, 500, 100, 500),
        .cached = sometimes(w, 400, 300, 1000),
        .looks = (int)sim_between(w, 0, 200),
        .pairs = sometimes(w, 300, 100, 400),
    };
    /* Calls under way when the faults end, the silence of a master, two rounds of claims, a full
     * TTL for everybody, the lock delay, and what clients take to come back. */
    weather->patience_us = 1000 * (4 * weather->journal_timeout_ms + 3 * weather->timeout_ms +
                                   weather->ttl_ms * 102 / 100 + weather->delay_ms +
                                   6 * weather->client_timeout_ms + 2000);
}

/* ---- misfortunes ---- */

static int64_t until(struct cell_world *w, int64_t from_ms, int64_t to_ms)
{
    int64_t at_us = w->now_us + 1000 * sim_between(w, from_ms, to_ms);
    return at_us < w->weather.end_us ? at_us : w->weather.end_us;
}

static struct cell_server *some_server(struct cell_world *w)
{
    struct cell_server *leader = server_leader(w);
    if (leader && sim_chance(w, 700))
        return leader;
    return &w->servers[sim_between(w, 0, w->weather.servers - 1)];
}

static void starts(struct cell_world *w, struct sim_event *e)
{
    (void)w;
    server_start(e->on);
}

static void starts_if_down(struct cell_world *w, struct sim_event *e)
{
    struct cell_server *s = e->on;
    if (!s->node)
        server_start(s);
    else if (s->retiring)
        sim_at(w, w->now_us + 50000, starts_if_down, s, 0);
}

static void cut(struct cell_world *w, int client, int server, int64_t until_us)
{
    sim_trace(w, "network", "c%d is cut from s%d until %.3f ms", client, server,
              (double)until_us / 1000);
    w->cut_until_us[client][server] = until_us;
    w->cut_refuses[client][server] = sim_chance(w, 500);
}

/* The master stands still, often in the middle of an append, while another takes over; some clients
 * reach only the old one, and believe it when it goes on. */
static void two_masters(struct cell_world *w)
{
    const int64_t ttl_ms = w->weather.ttl_ms;
    struct cell_server *leader = server_leader(w);
    if (!leader)
        return;
    int64_t pause_ms = sim_between(w, w->weather.timeout_ms + 50, ttl_ms * 9 / 10);
    if (sim_chance(w, 700))
        leader->pause_us = pause_ms * 1000;
    else
        server_pause(leader, w->now_us + sim_between(w, pause_ms, 2 * ttl_ms) * 1000);
    for (int i = 0; i < w->weather.clients; i += 2) {
        clients_hold_on(w, i, until(w, 2 * ttl_ms, 3 * ttl_ms));
        for (int k = 0; k < w->weather.servers; k++)
            if (k != leader->no)
                cut(w, i, k, until(w, ttl_ms * 3 / 2, 3 * ttl_ms));
    }
}

static void misfortune(struct cell_world *w, struct sim_event *e)
{
    const int64_t ttl_ms = w->weather.ttl_ms;
    const int client = (int)sim_between(w, 0, w->weather.clients - 1);
    struct cell_server *s = some_server(w);
    (void)e;
    switch (sim_between(w, 0, 10)) {
    case 0:
        server_pause(s, until(w, 10, ttl_ms));
        break;
    case 1:
        server_pause(s, until(w, ttl_ms / 2, 2 * ttl_ms));
        break;
    case 2:
    case 3:
    case 10:
        two_masters(w);
        break;
    case 4:
        server_crash(s);
        sim_at(w, until(w, 1, ttl_ms), starts, s, 0);
        break;
    case 5:
        server_retire(s);
        sim_at(w, until(w, 50, ttl_ms), starts_if_down, s, 0);
        break;
    case 6:
        w->journal_stands_until_us = until(w, 10, ttl_ms);
        sim_trace(w, "journal", "stands still until %.3f ms",
                  (double)w->journal_stands_until_us / 1000);
        break;
    case 7:
        client_pause(w, client, until(w, 10, 2 * ttl_ms));
        break;
    case 8:
        client_crash(w, client);
        break;
    default:
        for (int i = 0; i < w->weather.servers; i++)
            if (sim_chance(w, 700))
                cut(w, client, i, until(w, 50, 2 * ttl_ms));
    }
}

/* The last one starts whatever is still down. */
static void mends(struct cell_world *w, struct sim_event *e)
{
    (void)e;
    sim_trace(w, "world", "the faults are over");
    for (int i = 0; i < w->weather.servers; i++)
        starts_if_down(w, &(struct sim_event){.on = &w->servers[i]});
}

void faults_open(struct cell_world *w)
{
    int n = (int)sim_between(w, 0, 6);
    for (int i = 0; i < n; i++)
        sim_at(w, sim_between(w, 200000, w->weather.end_us - 1), misfortune, NULL, 0);
    sim_at(w, w->weather.end_us, mends, NULL, 0);
}
