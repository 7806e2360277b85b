/* The servers of a simulated cell: what cell/cell.c does with a thread and a journal, done here
 * step by step.  A call of the node's is sent, takes effect and is answered at three different
 * moments; before each of them the server may be paused, and after each it may be gone. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/cell_check.h"
#include "sim/cell_world.h"

static const char *const ops[] = {"read",  "claim", "append", "put_chunk",
                                  "point", "load",  "trim",   "report"};

/* A paused server meets what has happened meanwhile when it goes on, in any order. */
static bool put_off(struct cell_world *w, const struct cell_server *s, const struct sim_event *e)
{
    if (s->paused_until_us <= w->now_us)
        return false;
    sim_at(w, s->paused_until_us + sim_between(w, 0, 500), e->run, e->on, e->number);
    return true;
}

/* ---- the journal call under way ---- */

/* A call that is on its way, or in the journal.  It outlives the server's interest in it. */
struct sending {
    struct cell_server *server;
    int64_t life, call_no;
    struct sim_sent *sent;
    int64_t timeout_us;
    bool answered; /* nobody waits for the answer any more */
    bool gone;     /* it has run, or never will */
};

static void call_finished(struct cell_world *w, struct cell_server *s)
{
    struct journal_call *call = s->call;
    if (call->op != JOURNAL_READ || w->trace)
        sim_trace(w, s->who, "%s %" PRId64 " -> %s", ops[call->op], call->index,
                  journal_result_name(call->result));
    check_call_done(w, s, call);
    s->call = NULL;
    s->call_no++;
    node_done(s->node, call);
    check_server(w, s);
    server_turn(s);
}

static bool is_current(const struct sending *g)
{
    return g->server->node && g->server->life == g->life && g->server->call_no == g->call_no;
}

static void sending_free(struct sending *g)
{
    if (g->answered && g->gone) {
        sim_sent_free(g->sent);
        free(g);
    }
}

static void call_timed_out(struct cell_world *w, struct sim_event *e)
{
    struct sending *g = e->on;
    if (is_current(g)) {
        if (put_off(w, g->server, e))
            return;
        sim_sent_lose(g->sent, g->server->call);
        call_finished(w, g->server);
    }
    g->answered = true;
    sending_free(g);
}

static void call_answered(struct cell_world *w, struct sim_event *e)
{
    struct sending *g = e->on;
    if (is_current(g)) {
        if (put_off(w, g->server, e))
            return;
        if (!sim_sent_has_run(g->sent)) { /* the journal stands still meanwhile */
            sim_at(w, g->timeout_us, call_timed_out, g, 0);
            return;
        }
        sim_sent_answer(g->sent, g->server->call);
        call_finished(w, g->server);
    }
    g->answered = true;
    sending_free(g);
}

static void call_runs(struct cell_world *w, struct sim_event *e)
{
    struct sending *g = e->on;
    if (w->journal_stands_until_us > w->now_us) {
        sim_at(w, w->journal_stands_until_us + sim_between(w, 0, 500), e->run, g, 0);
        return;
    }
    w->running = g->server;
    w->running_life = g->life;
    sim_sent_run(g->sent);
    w->running = NULL;
    g->gone = true;
    sending_free(g);
}

/* What becomes of a call: usually it is done and answered; or the answer is lost, or the request,
 * or the request arrives when nobody waits for it any more. */
static void call_leaves(struct cell_world *w, struct sim_event *e)
{
    struct cell_server *s = e->on;
    const struct cell_weather *weather = &w->weather;
    if (!s->node || s->call_no != e->number || put_off(w, s, e))
        return;
    const int64_t timeout_us = weather->journal_timeout_ms * 1000;
    const bool faulty = w->now_us < weather->end_us;
    const int slow = faulty ? weather->journal_slow : 0;
    const int64_t to_us = sim_delay(w, weather->journal_us, slow);
    const int64_t back_us = sim_delay(w, weather->journal_us, slow);
    struct sending *g = hf_alloc(sizeof *g);
    *g = (struct sending){
        .server = s, .life = s->life, .call_no = s->call_no, .timeout_us = w->now_us + timeout_us};
    g->sent = sim_journal_send(w->journal, s->call);
    check_call_sent(w, s, s->call);
    if (s->pause_us && s->call->op == JOURNAL_APPEND) {
        server_pause(s, faulty ? w->now_us + s->pause_us : 0);
        s->pause_us = 0;
    }
    if (faulty && sim_chance(w, weather->journal_late)) {
        sim_at(w, g->timeout_us, call_timed_out, g, 0);
        sim_at(w, w->now_us + timeout_us + sim_between(w, 0, 3 * timeout_us), call_runs, g, 0);
    } else if (faulty && sim_chance(w, weather->journal_lost)) {
        sim_at(w, g->timeout_us, call_timed_out, g, 0);
        if (sim_chance(w, 500))
            sim_at(w, w->now_us + to_us, call_runs, g, 0);
        else
            g->gone = true;
    } else {
        bool late = to_us + back_us >= timeout_us;
        sim_at(w, w->now_us + to_us, call_runs, g, 0);
        sim_at(w, w->now_us + (late ? timeout_us : to_us + back_us + 1),
               late ? call_timed_out : call_answered, g, 0);
    }
}

/* ---- turns ---- */

static void wakes(struct cell_world *w, struct sim_event *e)
{
    struct cell_server *s = e->on;
    if (e->number != s->wake_no)
        return;
    s->wake_us = 0;
    (void)w;
    server_turn(s);
}

void server_turn(struct cell_server *s)
{
    struct cell_world *w = s->world;
    if (!s->node || s->call)
        return;
    if (s->paused_until_us > w->now_us) {
        if (s->wake_us == s->paused_until_us)
            return;
        s->wake_us = s->paused_until_us;
        sim_at(w, s->wake_us, wakes, s, ++s->wake_no);
        return;
    }
    s->call = node_next(s->node);
    check_server(w, s);
    if (s->call) {
        sim_at(w, w->now_us + sim_between(w, 1, 100), call_leaves, s, s->call_no);
        return;
    }
    int64_t at_us = sim_clock_true_us(&s->clock, node_wait_until_us(s->node));
    if (at_us <= w->now_us)
        at_us = w->now_us + 100; /* a thread takes that long for a round */
    if (s->wake_us && s->wake_us <= at_us)
        return; /* it will look then */
    s->wake_us = at_us;
    sim_at(w, at_us, wakes, s, ++s->wake_no);
}

struct cell_server *server_leader(struct cell_world *w)
{
    struct cell_server *leader = NULL;
    for (int i = 0; i < w->weather.servers; i++) {
        struct node_status status;
        if (!w->servers[i].node)
            continue;
        node_status(w->servers[i].node, &status);
        if (status.role == NODE_LEADING && (!leader || sim_chance(w, 500)))
            leader = &w->servers[i];
    }
    return leader;
}

/* ---- lives ---- */

static void on_effect(void *context, int64_t index, const struct cell_effect *e)
{
    (void)index;
    clients_effect(context, e);
}

static void on_change(void *context, enum node_role role)
{
    struct cell_server *s = context;
    sim_trace(s->world, s->who, "is %s", node_role_names[role]);
    if (role != NODE_LEADING)
        clients_role_changed(s);
}

void server_start(struct cell_server *s)
{
    struct cell_world *w = s->world;
    const struct node_config config = {.clock = &s->clock.clock,
                                       .random = &s->random,
                                       .url = s->url,
                                       .timeout_ms = w->weather.timeout_ms,
                                       .shared = true,
                                       .queue_max = w->weather.queue_max,
                                       .snapshot_entries = w->weather.snapshot_entries,
                                       .on_effect = on_effect,
                                       .on_change = on_change,
                                       .context = s};
    if (s->node)
        return;
    sim_trace(w, s->who, "starts");
    s->life++;
    s->call_no++;
    s->paused_from_us = s->paused_until_us = s->pause_us = 0;
    s->wake_us = 0;
    s->node = node_new(&config);
    check_server_started(s);
    server_turn(s);
}

static void end(struct cell_server *s)
{
    node_stop(s->node);
    node_free(s->node);
    s->node = NULL;
    s->call = NULL;
    s->call_no++;
    s->retiring = false;
}

void server_crash(struct cell_server *s)
{
    if (!s->node)
        return;
    sim_trace(s->world, s->who, "crashes");
    net_server_died(s);
    end(s);
}

static void retired(struct cell_world *w, struct sim_event *e)
{
    struct cell_server *s = e->on;
    if (!s->node || s->life != e->number)
        return;
    if ((!node_is_retired(s->node) || s->call) && w->now_us < s->retire_until_us) {
        server_turn(s);
        sim_at(w, w->now_us + 1000, retired, s, s->life);
        return;
    }
    sim_trace(w, s->who, "stops");
    end(s);
}

void server_retire(struct cell_server *s)
{
    struct cell_world *w = s->world;
    if (!s->node || s->retiring)
        return;
    sim_trace(w, s->who, "retires");
    s->retiring = true;
    s->retire_until_us = w->now_us + 2000000;
    node_retire(s->node);
    sim_at(w, w->now_us + 1000, retired, s, s->life);
    server_turn(s);
}

void server_pause(struct cell_server *s, int64_t until_us)
{
    if (until_us > s->world->weather.end_us)
        until_us = s->world->weather.end_us;
    sim_trace(s->world, s->who, "is paused until %.3f ms", (double)until_us / 1000);
    if (s->paused_until_us < s->world->now_us)
        s->paused_from_us = s->world->now_us;
    if (until_us > s->paused_until_us)
        s->paused_until_us = until_us;
}

/* ---- the end ---- */

void servers_close(struct cell_world *w)
{
    struct heap_node *node;
    for (int i = 0; i < w->weather.servers; i++)
        if (w->servers[i].node) {
            net_server_died(&w->servers[i]);
            end(&w->servers[i]);
        }
    /* Calls that are still on their way: two events may be left of one. */
    for (size_t i = 0; (node = i < w->events.nodes.n ? w->events.nodes.v[i] : NULL); i++) {
        struct sim_event *e = heap_item(node, struct sim_event, due);
        struct sending *g = e->on;
        if (e->run == call_runs)
            g->gone = true;
        else if (e->run == call_answered || e->run == call_timed_out)
            g->answered = true;
        else
            continue;
        sending_free(g);
    }
}
