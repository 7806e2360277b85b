/* How the clients of a simulated cell talk with its servers: what lease/holdfast does with HTTP and
 * JSON.  A message of the core becomes a request of the node, and the verdict an answer for the
 * core. A client follows the servers' hints to the master, and tries the next one if a server is
 * silent.
 *
 * What is asked and answered about the names of a history is written down there.  Every message is
 * an operation of its own; one that was not answered may have happened or not, and if it was a
 * grant, the service may have taken it back, since nobody received it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "sim/cell_clients.h"

#define HOPS_MAX 4

struct letter {
    struct client_message message;
    struct sim_client *client;
    int64_t life;
    struct task *task; /* NULL: the session's own */
    int64_t turn;      /* the task waits for the answer while it has this turn */
    int hops;
    linear_history *history; /* NULL: none */
    size_t op;               /* in the history */
    const char *look;        /* it is a look at this name, not a message of the core's */
};

/* ---- histories ---- */

/* An owner means something only within its session. */
static uint64_t owner_number(const uint8_t *owner, int64_t session)
{
    uint64_t number;
    memcpy(&number, owner, sizeof number);
    return hash_int(number ^ (uint64_t)session);
}

static struct linear_op *add_op(linear_history *history, enum linear_kind kind, uint64_t owner,
                                const char *name, enum cell_mode mode, int64_t at_us)
{
    struct linear_op *op = vec_push(history);
    *op = (struct linear_op){.kind = kind,
                             .invoked_us = at_us,
                             .answered_us = LINEAR_NEVER,
                             .owner = owner,
                             .name = name,
                             .mode = mode};
    return op;
}

static void note_claim(struct sim_client *c, struct past_claim claim)
{
    for (size_t i = c->claims.n; i-- > 0;)
        if (c->claims.v[i].owner == claim.owner)
            return;
    *vec_push(&c->claims) = claim;
}

static void begin_op(struct letter *l)
{
    struct sim_client *c = l->client;
    const struct client_message *m = &l->message;
    struct id session;
    if (l->look) {
        l->history = check_history(c->world, l->look);
        l->op = l->history->n;
        add_op(l->history, LINEAR_GET, 0, l->look, 0, c->world->now_us);
        return;
    }
    if (m->kind != CLIENT_ACQUIRE && m->kind != CLIENT_RELEASE)
        return;
    if (c->world->now_us >= c->world->weather.end_us)
        return; /* one client waits for these names, too */
    l->history = check_history(c->world, m->name);
    if (!l->history)
        return;
    const char *name = cell_sim_name(m->name);
    hf_check(id_parse(m->session, strlen(m->session), "ses_", &session));
    l->op = l->history->n;
    add_op(l->history, m->kind == CLIENT_ACQUIRE ? LINEAR_ACQUIRE : LINEAR_RELEASE,
           owner_number(m->owner, session.key), name,
           m->mode == HF_SHARED ? CELL_SHARED : CELL_EXCLUSIVE, c->world->now_us);
    if (m->kind == CLIENT_ACQUIRE)
        note_claim(c, (struct past_claim){l->history, owner_number(m->owner, session.key), name,
                                          session.key});
}

/* Nothing was done, and nothing will be. */
static void void_op(struct letter *l)
{
    if (l->history)
        l->history->v[l->op].name = "";
    l->history = NULL;
}

/* A grant that nobody received may have been given and taken back. */
static void doubt_op(const struct letter *l)
{
    if (!l->history)
        return;
    const struct linear_op op = l->history->v[l->op];
    if (op.kind == LINEAR_ACQUIRE)
        add_op(l->history, LINEAR_RELEASE, op.owner, op.name, op.mode, op.invoked_us);
}

static void end_op(struct letter *l, const struct exchange *x)
{
    if (!l->history)
        return;
    struct linear_op *op = &l->history->v[l->op];
    if (x->world->now_us >= x->world->weather.end_us) {
        doubt_op(l);
        return;
    }
    op->answered_us = x->world->now_us;
    switch (x->request.verdict.result) {
    case CELL_DONE:
        op->outcome = op->kind == LINEAR_ACQUIRE   ? LINEAR_GRANTED
                      : op->kind == LINEAR_RELEASE ? LINEAR_DONE
                                                   : LINEAR_SEEN;
        op->fence = op->kind == LINEAR_ACQUIRE ? x->request.verdict.fence : 0;
        memcpy(op->fences, x->fences, sizeof op->fences);
        op->n_fences = x->n_fences;
        break;
    case CELL_TAKEN:
        op->outcome = LINEAR_TAKEN;
        break;
    case CELL_LOST:
        op->outcome = LINEAR_LOST;
        break;
    default:
        void_op(l); /* its session is gone */
    }
}

void wire_end_histories(struct sim_client *c)
{
    for (size_t i = 0; i < c->claims.n; i++)
        for (size_t k = 0; k < c->sessions.n; k++) {
            const struct past_claim *claim = &c->claims.v[i];
            const struct past_session *session = &c->sessions.v[k];
            if (session->key == claim->session && session->end_us < c->world->weather.end_us)
                add_op(claim->history, LINEAR_RELEASE, claim->owner, claim->name, 0,
                       session->end_us);
        }
}

/* ---- sessions ---- */

/* Notes how long the session is proved to live: the service may end it from then on, and not
 * before. */
void wire_note_session(struct sim_client *c)
{
    struct id id;
    const char *text = client_session(c->core);
    if (!id_parse(text, strlen(text), "ses_", &id))
        return;
    int64_t end_us = client_end_us(c->core) - client_margin_us(c->world->weather.ttl_ms);
    end_us = sim_clock_true_us(&c->clock, end_us);
    for (size_t i = 0; i < c->sessions.n; i++)
        if (c->sessions.v[i].key == id.key) {
            c->sessions.v[i].end_us = end_us;
            return;
        }
    *vec_push(&c->sessions) = (struct past_session){id.key, end_us};
}

/* ---- requests ---- */

static void see(struct cell_request *r, const struct node *n, const struct cell_state *s)
{
    struct exchange *x = r->context;
    const struct cell_name *name = cell_name_find(s, x->name, strlen(x->name));
    (void)n;
    x->n_fences = 0;
    for (const struct cell_acquisition *a = name ? cell_name_holders(name) : NULL; a; a = a->next)
        if (a->stage == CELL_HELD && x->n_fences < 16)
            x->fences[x->n_fences++] = a->fence;
}

static void fill_text(struct cell_text *text, char *to, size_t size, const char *from)
{
    (void)snprintf(to, size, "%s", from);
    *text = (struct cell_text){to, strlen(to)};
}

/* What src/api makes of the JSON. */
static void fill(struct exchange *x, const struct letter *l)
{
    static const enum cell_kind kinds[] = {[CLIENT_OPEN] = CELL_OPEN,
                                           [CLIENT_CLOSE] = CELL_CLOSE,
                                           [CLIENT_ACQUIRE] = CELL_ACQUIRE,
                                           [CLIENT_RELEASE] = CELL_RELEASE};
    struct cell_world *w = x->world;
    const struct client_message *m = &l->message;
    struct cell_command *c = &x->command;
    if (l->look) {
        x->request.kind = CELL_REQUEST_LOOK;
        x->request.look = see;
        x->request.context = x;
        (void)snprintf(x->name, sizeof x->name, "%s", l->look);
        return;
    }
    x->request.kind = m->kind == CLIENT_KEEPALIVE ? CELL_REQUEST_KEEPALIVE : CELL_REQUEST_COMMAND;
    *c = (struct cell_command){.kind = kinds[m->kind], .ttl_ms = (uint32_t)m->ttl_ms};
    if (m->kind != CLIENT_OPEN)
        hf_check(id_parse(m->session, strlen(m->session), "ses_", &c->session));
    else
        fill_text(&c->label, x->label, sizeof x->label, l->client->who);
    if (m->kind != CLIENT_ACQUIRE && m->kind != CLIENT_RELEASE)
        return;
    fill_text(&c->name, x->name, sizeof x->name, m->name);
    memcpy(c->owner.bytes, m->owner, sizeof c->owner.bytes);
    c->owner.digits = 2 * CELL_OWNER_SIZE;
    if (m->kind == CLIENT_RELEASE)
        return;
    fill_text(&c->agent, x->agent, sizeof x->agent, m->agent);
    c->mode = m->mode == HF_SHARED ? CELL_SHARED : CELL_EXCLUSIVE;
    c->slots = m->slots;
    c->priority = m->priority;
    c->cached = m->cache;
    if (!check_history(w, m->name)) /* whose model knows no delays */
        c->delay_ms = w->weather.delay_ms;
    x->request.wait_ms = m->queue ? sim_between(w, 1, 1500) : 0;
    x->request.claim_ms = m->claim_ms;
    x->request.claims = m->wait_ms > 0;
}

static void send_letter(struct letter *l)
{
    struct sim_client *c = l->client;
    struct cell_world *w = c->world;
    struct exchange *x = net_new(w, c->no, c->server);
    x->number = ++c->n_sent;
    x->letter = l;
    fill(x, l);
    sim_trace(w, c->who, "asks s%d #%" PRId64 ": %s %s %s", c->server, x->number,
              l->look ? "look at"
                      : (const char *[]){"open", "keep-alive", "close", "acquire",
                                         "release"}[l->message.kind],
              x->name, x->request.wait_ms ? "and waits" : "");
    net_send(x, 1000 * (x->request.wait_ms + w->weather.client_timeout_ms));
    if (l->look || l->message.kind == CLIENT_OPEN || w->now_us >= w->weather.end_us ||
        !sim_chance(w, w->weather.doubled))
        return;
    net_double(x);
    if (l->history) { /* it may be done once more, or instead */
        const struct linear_op op = l->history->v[l->op];
        add_op(l->history, op.kind, op.owner, op.name, op.mode, op.invoked_us);
        doubt_op(l);
    }
}

static struct letter *letter_new(struct sim_client *c, struct task *task)
{
    struct letter *l = hf_alloc(sizeof *l);
    l->client = c;
    l->life = c->life;
    l->task = task;
    l->turn = task ? task->turn : 0;
    return l;
}

void wire_send(struct sim_client *c, const struct client_message *m, struct task *task)
{
    struct letter *l = letter_new(c, task);
    l->message = *m;
    begin_op(l);
    send_letter(l);
}

void wire_look(struct sim_client *c, const char *name)
{
    struct letter *l = letter_new(c, NULL);
    l->look = name;
    begin_op(l);
    send_letter(l);
}

/* ---- answers ---- */

static void told(struct letter *l, enum client_result result, const struct exchange *x)
{
    struct sim_client *c = l->client;
    const char *wanted[CLIENT_WANTED_MAX];
    struct client_answer a = {.result = result, .wanted = wanted};
    if (x) {
        a.ttl_ms = x->request.ttl_ms;
        a.fence = x->request.verdict.fence;
        a.slot = x->request.verdict.slot;
        a.is_unclaimed = x->request.is_unclaimed;
        a.position = x->request.verdict.position;
        for (; a.n_wanted < x->request.wanted.n && a.n_wanted < CLIENT_WANTED_MAX; a.n_wanted++)
            wanted[a.n_wanted] = x->request.wanted.v[a.n_wanted].name;
        if (l->message.kind == CLIENT_OPEN && result == CLIENT_DONE) {
            char text[ID_TEXT_SIZE];
            id_format(text, "ses_", &x->request.command.session);
            (void)snprintf(a.session, sizeof a.session, "%s", text);
        }
    }
    result = client_answer(c->core, &l->message, &a, client_now_us(c));
    if (l->message.kind == CLIENT_OPEN || l->message.kind == CLIENT_KEEPALIVE)
        wire_note_session(c);
    if (l->task && l->task->turn == l->turn)
        task_told(l->task, result);
    client_pump(c);
}

/* The client goes on to another server.  Returns false if it has tried enough. */
static bool try_another(struct letter *l, const struct exchange *x);

static void send_again(struct cell_world *w, struct sim_event *e)
{
    struct letter *l = e->on;
    struct sim_client *c = l->client;
    if (c->life == l->life && c->paused_until_us > w->now_us) {
        sim_at(w, c->paused_until_us, send_again, l, 0);
    } else if (c->life != l->life || !c->core) {
        void_op(l);
        free(l);
    } else {
        send_letter(l);
    }
}

static bool try_another(struct letter *l, const struct exchange *x)
{
    struct sim_client *c = l->client;
    struct cell_world *w = c->world;
    int next = (x->server->no + 1) % w->weather.servers;
    int64_t pause_us = sim_between(w, 1000, 40000);
    for (int i = 0; i < w->weather.servers; i++)
        if (x->request.verdict.result == CELL_NO_MASTER &&
            strcmp(x->request.master_url, w->servers[i].url) == 0) {
            next = i;
            pause_us = 0;
        }
    c->server = next;
    if (++l->hops > HOPS_MAX)
        return false;
    sim_at(w, w->now_us + pause_us, send_again, l, 0);
    return true;
}

void client_received(struct cell_world *w, struct exchange *x, bool answered)
{
    struct letter *l = x->letter;
    struct sim_client *c = l->client;
    const enum cell_result verdict = x->request.verdict.result;
    enum client_result result = CLIENT_REFUSED;
    x->letter = NULL;
    if (c->life != l->life || !c->core) { /* it has crashed meanwhile */
        doubt_op(l);
        free(l);
        return;
    }
    sim_trace(w, c->who, "#%" PRId64 ": %s %d", x->number, answered ? "answer" : "no answer",
              verdict);
    if (answered && (verdict == CELL_NO_MASTER || verdict == CELL_STOPPING) && try_another(l, x))
        return;
    if (!answered || verdict == CELL_UNKNOWN) {
        doubt_op(l);
        result = CLIENT_NO_ANSWER;
        c->server = (x->server->no + 1) % w->weather.servers;
    } else if (verdict == CELL_NO_MASTER || verdict == CELL_STOPPING ||
               verdict == CELL_UNAVAILABLE || verdict == CELL_OVERLOADED) {
        void_op(l);
        result = CLIENT_NOT_DONE;
    } else {
        end_op(l, x);
        result = verdict == CELL_DONE         ? CLIENT_DONE
                 : verdict == CELL_TAKEN      ? CLIENT_TAKEN
                 : verdict == CELL_LOST       ? CLIENT_LOST
                 : verdict == CELL_NO_SESSION ? CLIENT_GONE
                 : verdict == CELL_DEADLOCK   ? CLIENT_DEADLOCK
                                              : CLIENT_REFUSED;
    }
    if (!l->look)
        told(l, result, answered ? x : NULL);
    free(l);
}

/* ---- streams ---- */

struct news {
    struct sim_client *client;
    int64_t life, stream;
    enum client_event_kind kind;
    char name[CELL_NAME_MAX + 1];
    struct cell_owner owner;
    int64_t fence;
};

static void hears(struct cell_world *w, struct sim_event *e)
{
    struct news *n = e->on;
    struct sim_client *c = n->client;
    if (c->life == n->life && c->core && c->stream.number == n->stream) {
        if (c->paused_until_us > w->now_us) {
            sim_at(w, c->paused_until_us, hears, n, 0);
            return;
        }
        sim_trace(w, c->who, "hears %d %s", n->kind, n->name);
        client_event(c->core, n->kind, n->name[0] ? n->name : NULL, strlen(n->name),
                     n->owner.digits ? n->owner.bytes : NULL, n->fence, client_now_us(c));
        client_pump(c);
    }
    free(n);
}

static void tell(struct sim_client *c, enum client_event_kind kind, const struct cell_effect *e)
{
    struct cell_world *w = c->world;
    struct news *n = hf_alloc(sizeof *n);
    *n = (struct news){
        .client = c, .life = c->life, .stream = c->stream.number, .kind = kind, .fence = 0};
    if (e) {
        size_t len;
        const char *name = cell_name_text(e->name, &len);
        memcpy(n->name, name, len);
        n->owner = e->acquisition->owner;
        n->fence = e->fence;
    }
    sim_at(w, w->now_us + sim_delay(w, w->weather.network_us, w->weather.slow), hears, n, 0);
}

/* Streams are of one master and end with it; one that is cut ends, too. */
static bool is_connected(const struct sim_client *c)
{
    const struct cell_world *w = c->world;
    if (c->stream.server < 0)
        return false;
    const struct cell_server *s = &w->servers[c->stream.server];
    return s->node && s->life == c->stream.server_life &&
           w->cut_until_us[c->no][s->no] <= w->now_us;
}

void wire_stream(struct sim_client *c)
{
    struct cell_world *w = c->world;
    struct cell_server *s = &w->servers[c->server];
    struct node_status status;
    if (is_connected(c) || !client_wants_stream(c->core) || !s->node ||
        s->paused_until_us > w->now_us || w->cut_until_us[c->no][s->no] > w->now_us)
        return;
    node_status(s->node, &status);
    if (status.role != NODE_LEADING)
        return;
    c->stream.server = s->no;
    c->stream.server_life = s->life;
    c->stream.number++;
    tell(c, CLIENT_EVENT_CONNECTED, NULL);
}

void clients_effect(struct cell_server *s, const struct cell_effect *e)
{
    struct cell_world *w = s->world;
    if (!e->session || !e->acquisition ||
        (e->kind != CELL_EFFECT_GRANTED && e->kind != CELL_EFFECT_LOST &&
         e->kind != CELL_EFFECT_WANTED))
        return;
    for (int i = 0; i < CELL_CLIENTS_MAX; i++) {
        struct sim_client *c = w->clients[i];
        struct id id;
        if (!c || !c->core || c->stream.server != s->no || !is_connected(c))
            continue;
        const char *text = client_session(c->core);
        if (id_parse(text, strlen(text), "ses_", &id) && id.key == e->session->id.key)
            tell(c,
                 e->kind == CELL_EFFECT_GRANTED ? CLIENT_EVENT_GRANTED
                 : e->kind == CELL_EFFECT_LOST  ? CLIENT_EVENT_LOST
                                                : CLIENT_EVENT_WANTED,
                 e);
    }
}

void clients_role_changed(struct cell_server *s)
{
    for (int i = 0; i < CELL_CLIENTS_MAX; i++) {
        struct sim_client *c = s->world->clients[i];
        if (c && c->stream.server == s->no)
            c->stream.server = -1;
    }
}

/* ---- the end ---- */

void wire_free_letter(struct exchange *x)
{
    free(x->letter);
    x->letter = NULL;
}

void wire_close(struct cell_world *w)
{
    for (size_t i = 0; i < w->events.nodes.n; i++) {
        struct sim_event *e = heap_item(w->events.nodes.v[i], struct sim_event, due);
        if (e->run == hears || e->run == send_again)
            free(e->on);
    }
}
