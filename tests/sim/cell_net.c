/* The network between clients and servers of a simulated cell.  A request may be lost, delayed or
 * delivered twice; so may its answer be lost or delayed; between some of them nothing passes for a
 * while.  A server that is paused gets its requests afterwards, and one that is down refuses them.
 *
 * An exchange is held by its client while that waits, by the server while it has the request, and
 * by each event that will bring it further. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cell_check.h"
#include "sim/cell_world.h"

static void unref(struct exchange *x, int n)
{
    if ((x->refs -= n) > 0)
        return;
    cell_request_close(&x->request);
    wire_free_letter(x);
    free(x);
}

struct exchange *net_new(struct cell_world *w, int client, int server)
{
    struct exchange *x = hf_alloc(sizeof *x);
    x->world = w;
    x->client = client;
    x->server = &w->servers[server];
    x->refs = 1;
    return x;
}

static bool is_cut(const struct exchange *x)
{
    const struct cell_world *w = x->world;
    return x->client >= 0 && w->cut_until_us[x->client][x->server->no] > w->now_us;
}

static bool is_lost(struct exchange *x)
{
    struct cell_world *w = x->world;
    return x->is_silent || is_cut(x) ||
           (w->now_us < w->weather.end_us && sim_chance(w, w->weather.lost));
}

static int64_t delay(struct cell_world *w)
{
    return sim_delay(w, w->weather.network_us, w->now_us < w->weather.end_us ? w->weather.slow : 0);
}

/* ---- the answer ---- */

/* A paused client hears of it when it goes on. */
static bool put_off(struct cell_world *w, const struct exchange *x, const struct sim_event *e)
{
    int64_t until_us = x->client_waits ? client_paused_until_us(w, x->client) : 0;
    if (until_us <= w->now_us)
        return false;
    sim_at(w, until_us + sim_between(w, 0, 500), e->run, e->on, e->number);
    return true;
}

static void returns(struct cell_world *w, struct sim_event *e)
{
    struct exchange *x = e->on;
    if (put_off(w, x, e))
        return;
    int n = 1;
    if (x->client_waits) {
        x->client_waits = false;
        client_received(w, x, true);
        n++;
    }
    unref(x, n);
}

static void forget(struct exchange *x)
{
    struct cell_world *w = x->world;
    for (size_t i = 0; i < w->exchanges.n; i++)
        if (w->exchanges.v[i] == x) {
            w->exchanges.v[i] = w->exchanges.v[--w->exchanges.n];
            return;
        }
}

/* The node has answered. */
static void answered(struct pending *pending)
{
    struct exchange *x = pending->waiter;
    struct cell_world *w = x->world;
    x->at_server = false;
    forget(x);
    if (x->life == x->server->life && !x->server_died) {
        sim_trace(w, x->server->who, "answers c%d #%" PRId64 ": %d, fence %" PRId64, x->client,
                  x->number, x->request.verdict.result, x->request.verdict.fence);
        check_answered(w, x);
        if (!is_lost(x)) {
            x->refs++;
            sim_at(w, w->now_us + delay(w), returns, x, 0);
        }
    }
    unref(x, 1);
}

/* ---- the request ---- */

static void refuse(struct exchange *x, enum cell_result result)
{
    if (x->is_silent)
        return;
    x->request.verdict.result = result;
    x->refs++;
    sim_at(x->world, x->world->now_us + delay(x->world), returns, x, 0);
}

static void arrives(struct cell_world *w, struct sim_event *e)
{
    struct exchange *x = e->on;
    struct cell_server *s = x->server;
    if (s->node && s->paused_until_us > w->now_us) {
        sim_at(w, s->paused_until_us + sim_between(w, 0, 500), arrives, x, 0);
        return;
    }
    if (!s->node) {
        refuse(x, CELL_STOPPING); /* no connection: nothing was done */
        unref(x, 1);
        return;
    }
    x->life = s->life;
    x->received_us = w->now_us;
    x->request.pending = (struct pending){answered, x};
    x->request.command = x->command;
    x->at_server = true;
    *vec_push(&w->exchanges) = x; /* it takes over the event's reference */
    node_submit(s->node, &x->request);
    server_turn(s);
}

/* The server notices that the client has closed the connection. */
static void abandoned(struct cell_world *w, struct sim_event *e)
{
    struct exchange *x = e->on;
    struct cell_server *s = x->server;
    if (x->at_server && s->node && s->life == x->life) {
        if (s->paused_until_us > w->now_us) {
            sim_at(w, s->paused_until_us + sim_between(w, 0, 500), abandoned, x, 0);
            return;
        }
        node_gone(s->node, &x->request);
        server_turn(s);
    }
    unref(x, 1);
}

static void times_out(struct cell_world *w, struct sim_event *e)
{
    struct exchange *x = e->on;
    if (put_off(w, x, e))
        return;
    if (x->client_waits) {
        x->client_waits = false;
        client_received(w, x, false);
        sim_at(w, w->now_us + delay(w), abandoned, x, 0); /* has the client's part */
    }
    unref(x, 1);
}

void net_send(struct exchange *x, int64_t timeout_us)
{
    struct cell_world *w = x->world;
    x->sent_us = w->now_us;
    x->client_waits = true;
    x->refs++;
    sim_at(w, w->now_us + timeout_us, times_out, x, 0);
    if (is_cut(x) && w->cut_refuses[x->client][x->server->no]) {
        refuse(x, CELL_STOPPING);
    } else if (!is_lost(x)) {
        x->refs++;
        sim_at(w, w->now_us + delay(w), arrives, x, 0);
    }
}

/* TCP doubles nothing, but something between client and server may repeat a request that it got no
 * answer to.  The client of an acquisition has no answer then, either: one that says that nothing
 * was done would be about the first attempt alone. */
void net_double(struct exchange *x)
{
    if (is_cut(x))
        return;
    struct exchange *copy = net_new(x->world, -1, x->server->no);
    copy->request.kind = x->request.kind;
    copy->request.wait_ms = x->request.wait_ms;
    copy->request.claim_ms = x->request.claim_ms;
    copy->request.claims = x->request.claims;
    copy->command = x->command;
    memcpy(copy->name, x->name, sizeof copy->name);
    memcpy(copy->agent, x->agent, sizeof copy->agent);
    copy->command.name.data = x->command.name.data ? copy->name : NULL;
    copy->command.agent.data = x->command.agent.data ? copy->agent : NULL;
    x->is_silent = x->command.kind == CELL_ACQUIRE;
    sim_at(x->world, x->world->now_us + delay(x->world), arrives, copy, 0);
}

void net_server_died(struct cell_server *s)
{
    struct cell_world *w = s->world;
    for (size_t i = 0; i < w->exchanges.n; i++)
        if (w->exchanges.v[i]->server == s)
            w->exchanges.v[i]->server_died = true;
}

void net_close(struct cell_world *w)
{
    for (size_t i = 0; i < w->events.nodes.n; i++) {
        struct sim_event *e = heap_item(w->events.nodes.v[i], struct sim_event, due);
        struct exchange *x = e->on;
        int n =
            e->run == times_out || e->run == arrives || e->run == returns || e->run == abandoned;
        if (e->run == times_out && x->client_waits) {
            x->client_waits = false;
            n++;
        }
        if (n)
            unref(x, n);
    }
    vec_close(&w->exchanges);
}
