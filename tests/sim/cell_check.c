/* See cell_check.h.  The observer reads every entry at the moment at which the journal stores it,
 * and applies it to a state of its own. */
#include "sim/cell_check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#define DIGEST_EVERY 16 /* entries */
#define ROOTS 2
static const char *const roots[ROOTS] = {"try0", "try1"};
#define LINEAR_VISITS_MAX 50000

struct cell_counts cell_counts;

/* A grant as the journal has it, or as a client has heard of it. */
struct grant {
    int64_t fence, session, at_us;
    uint64_t name; /* its hash */
};

/* When a server last proved to a session that it lives. */
struct proof {
    int64_t session, at_us;
};

struct digest {
    uint8_t bytes[CELL_DIGEST_SIZE];
};

struct cell_check {
    struct cell_state *state;
    int64_t index, epoch;
    uint8_t chain[CELL_DIGEST_SIZE];
    VEC(struct grant) stored, heard;
    VEC(int64_t) sessions; /* that were opened */
    VEC(struct digest) digests;
    linear_history histories[ROOTS];
    struct {
        VEC(struct proof) proofs;
        int64_t lead_us; /* the first append of its mastership was acknowledged then */
        int64_t epoch;   /* of that mastership */
        bool handed_over;
    } servers[CELL_SERVERS_MAX];
    bool resigned; /* the last mastership ended by CELL_RESIGN */
};

/* ---- beliefs ---- */

static void check_exclusion(struct cell_world *w, const struct belief *all, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < i; k++) {
            const struct belief *a = &all[i], *b = &all[k];
            if (a->slots > 1 || a->fence == b->fence ||
                !linear_conflict(a->name, a->mode, b->name, b->mode))
                continue;
            sim_fail(w,
                     "I15: c%d holds %s (%s, fence %" PRId64 ") and c%d holds %s (%s, fence "
                     "%" PRId64 ")",
                     a->client, a->name, cell_mode_names[a->mode], a->fence, b->client, b->name,
                     cell_mode_names[b->mode], b->fence);
        }
}

static void check_kept(struct cell_world *w, const struct belief *b)
{
    const struct cell_session *session = cell_session_find(w->check->state, b->session);
    const struct cell_acquisition *a = session ? session->first : NULL;
    while (a && (a->fence != b->fence || a->stage != CELL_HELD))
        a = a->session_next;
    if (!a)
        sim_fail(w,
                 "kept: c%d believes that it holds %s with fence %" PRId64 ", the journal has %s",
                 b->client, b->name, b->fence, session ? "another grant" : "ended its session");
}

static void check_beliefs(struct cell_world *w)
{
    struct belief all[BELIEFS_MAX];
    size_t n = clients_beliefs(w, all, BELIEFS_MAX);
    check_exclusion(w, all, n);
    for (size_t i = 0; i < n && !w->outside_only; i++)
        check_kept(w, &all[i]);
}

void check_granted(struct cell_world *w, const struct belief *b, int64_t asked_us)
{
    struct cell_check *c = w->check;
    const uint64_t name = hash_bytes(b->name, strlen(b->name));
    for (size_t i = 0; i < c->heard.n; i++) {
        const struct grant *g = &c->heard.v[i];
        if (g->name == name && g->at_us < asked_us && g->fence > b->fence)
            sim_fail(w,
                     "fences: %s was granted with fence %" PRId64 ", then asked for and granted "
                     "with %" PRId64,
                     b->name, g->fence, b->fence);
        if (g->fence == b->fence && (g->name != name || g->session != b->session))
            sim_fail(w, "fences: %" PRId64 " was given twice", b->fence);
    }
    *vec_push(&c->heard) =
        (struct grant){.fence = b->fence, .session = b->session, .at_us = w->now_us, .name = name};
    check_beliefs(w);
}

/* ---- what the journal stores ---- */

static void see_effects(struct cell_world *w)
{
    struct cell_check *c = w->check;
    size_t n;
    const struct cell_effect *e = cell_state_effects(c->state, &n);
    for (; n > 0; n--, e++) {
        size_t len;
        switch (e->kind) {
        case CELL_EFFECT_OPENED:
            *vec_push(&c->sessions) = e->session->id.key;
            break;
        case CELL_EFFECT_GRANTED: {
            const char *name = cell_name_text(e->name, &len);
            if (c->stored.n && c->stored.v[c->stored.n - 1].fence >= e->fence)
                sim_fail(w, "fences: the journal grants %" PRId64 " after %" PRId64, e->fence,
                         c->stored.v[c->stored.n - 1].fence);
            *vec_push(&c->stored) =
                (struct grant){e->fence, e->session->id.key, w->now_us, hash_bytes(name, len)};
            cell_counts.grants++;
            cell_counts.cached += e->acquisition->cached;
            break;
        }
        case CELL_EFFECT_QUEUED:
            cell_counts.waits++;
            break;
        case CELL_EFFECT_RELEASED:
            cell_counts.withdrawn += e->withdrawn;
            break;
        default:
            break;
        }
    }
    cell_state_clear_effects(c->state);
}

/* Has this master stood still for half a TTL, and not given a whole one since? */
static bool stood_still(const struct cell_world *w, const struct cell_server *s, int64_t ttl_us)
{
    const int64_t stood_us = s->paused_until_us - s->paused_from_us;
    return w->check->servers[s->no].lead_us < s->paused_from_us && stood_us > ttl_us * 52 / 100 &&
           s->first_sent_us > s->paused_until_us && w->now_us - s->paused_until_us < ttl_us;
}

/* A session is ended only when it has had its TTL since the last answer to it, since the server
 * began to lead, and since it stood still (N4). */
static void check_expiry(struct cell_world *w, int64_t key)
{
    struct cell_check *c = w->check;
    struct cell_server *s = w->running;
    const struct cell_session *session = cell_session_find(c->state, key);
    cell_counts.expired++;
    if (!session || w->outside_only || !s || s->life != w->running_life)
        return;
    const int64_t ttl_us = (int64_t)session->ttl_ms * 1000 * 1000000 / (1000000 + s->clock.ppm);
    for (size_t i = 0; i < c->servers[s->no].proofs.n; i++) {
        const struct proof *p = &c->servers[s->no].proofs.v[i];
        if (p->session == key && w->now_us - p->at_us < ttl_us)
            sim_fail(w, "N4: %s ends a session %" PRId64 " us after it answered it", s->who,
                     w->now_us - p->at_us);
    }
    if (stood_still(w, s, ttl_us))
        sim_fail(w, "N4: %s ends a session %" PRId64 " us after it stood still", s->who,
                 w->now_us - s->paused_until_us);
    if (!c->servers[s->no].handed_over && w->now_us - c->servers[s->no].lead_us < ttl_us)
        sim_fail(w, "N4: %s ends a session %" PRId64 " us after it became the master", s->who,
                 w->now_us - c->servers[s->no].lead_us);
}

static void apply(struct cell_world *w, const struct cell_command *command)
{
    struct cell_check *c = w->check;
    struct cell_verdict verdict = {0};
    const bool asks = command->kind == CELL_ACQUIRE && command->queue;
    bool cycle = false, certain = false; /* without the slots, of which any would do */
    if (command->kind == CELL_EXPIRE)
        check_expiry(w, command->session.key);
    if (command->kind == CELL_MASTER) {
        cell_counts.epochs++;
        if (w->running && w->running->life == w->running_life)
            c->servers[w->running->no].handed_over = c->resigned;
    }
    if (command->kind != CELL_RESIGN)
        c->resigned = false;
    else
        c->resigned = true, cell_counts.resigned++;
    if (asks && w->weather.pairs && !w->outside_only) {
        cycle = check_graph_has_cycle(c->state, command, true);
        certain = cycle && check_graph_has_cycle(c->state, command, false);
    }
    cell_state_apply(c->state, command, &verdict);
    if (asks && !w->outside_only && w->weather.pairs && !verdict.repeated) {
        if (verdict.result == CELL_DEADLOCK && !cycle)
            sim_fail(w, "deadlocks: %.*s was refused, but there is no cycle",
                     (int)command->name.len, command->name.data);
        if (verdict.result == CELL_TAKEN && certain)
            sim_fail(w, "deadlocks: %.*s waits in a cycle", (int)command->name.len,
                     command->name.data);
    }
    cell_counts.deadlocks += verdict.result == CELL_DEADLOCK;
    see_effects(w);
    cell_verdict_close(&verdict);
}

static void stored(void *context, int64_t epoch, int64_t index, const void *data, size_t len)
{
    struct cell_world *w = context;
    struct cell_check *c = w->check;
    struct entry_reader reader = {0};
    struct entry_head head;
    struct cell_command command;
    struct hf_err err = {0};
    int n = 0;
    if (index != c->index + 1 || epoch < c->epoch)
        sim_fail(w, "journal: entry %" PRId64 " of epoch %" PRId64 " follows %" PRId64, index,
                 epoch, c->index);
    if (!entry_open(&reader, data, len, &head, &err))
        sim_fail(w, "journal: %s", err.msg);
    else if (head.epoch != epoch || memcmp(head.previous, c->chain, sizeof c->chain) != 0)
        sim_fail(w, "replicas: entry %" PRId64 " is not the next of the chain", index);
    for (; !w->failure[0] && entry_next(&reader, &command, &err); n++) {
        sim_trace(w, "journal", "%" PRId64 "/%" PRId64 ": command %d, session %" PRId64 " %.*s",
                  epoch, index, command.kind, command.session.key % 10000, (int)command.name.len,
                  command.name.data ? command.name.data : "");
        apply(w, &command);
    }
    if (err.code != HF_OK)
        sim_fail(w, "journal: %s", err.msg);
    entry_close(&reader);
    entry_chain(c->chain, data, len, c->chain);
    c->index = index;
    c->epoch = epoch;
    cell_counts.entries++;
    if (index % DIGEST_EVERY == 0) {
        cell_state_check(c->state);
        cell_state_digest(c->state, vec_push(&c->digests)->bytes);
    }
    if (n > 0)
        check_beliefs(w);
}

/* ---- what servers do ---- */

void check_server_started(struct cell_server *s)
{
    struct cell_check *c = s->world->check;
    s->repeats = s->owes_append = false;
    s->proven_us = -1;
    s->checked_index = 0;
    vec_clear(&c->servers[s->no].proofs);
    c->servers[s->no].epoch = 0;
}

void check_call_sent(struct cell_world *w, struct cell_server *s, const struct journal_call *call)
{
    if (call->op != JOURNAL_APPEND)
        return;
    uint64_t hash = hash_more(HASH_START, call->data, call->len);
    hash = hash_more(hash, call->id, sizeof call->id);
    hash = hash_more(hash, &call->index, sizeof call->index);
    if (s->repeats && s->append_epoch == call->mandate.epoch && s->last_append != hash &&
        !w->outside_only)
        sim_fail(w, "N3: %s appends another entry while the fate of the last is unknown", s->who);
    if (s->last_append != hash)
        s->first_sent_us = w->now_us;
    cell_counts.repeated += s->repeats && s->last_append == hash;
    s->last_append = hash;
    s->append_epoch = call->mandate.epoch;
    s->sent_us = w->now_us;
}

static bool has_another_leader(const struct cell_world *w, const struct cell_server *s)
{
    for (int i = 0; i < w->weather.servers; i++) {
        struct node_status status;
        if (!w->servers[i].node || i == s->no)
            continue;
        node_status(w->servers[i].node, &status);
        if (status.role == NODE_LEADING)
            return true;
    }
    return false;
}

void check_call_done(struct cell_world *w, struct cell_server *s, const struct journal_call *call)
{
    struct cell_check *c = w->check;
    cell_counts.restored += call->op == JOURNAL_LOAD && call->result == JOURNAL_DONE;
    if (call->op != JOURNAL_APPEND)
        return;
    if (call->result == JOURNAL_UNKNOWN)
        s->repeats = true;
    else if (call->result != JOURNAL_UNREACHABLE)
        s->repeats = false;
    if (call->result == JOURNAL_FOUND) {
        s->owes_append = true;
        cell_counts.found++;
    }
    if (call->result == JOURNAL_DONE) {
        s->owes_append = false;
        s->proven_us = s->sent_us;
    }
    if (call->result == JOURNAL_DONE || call->result == JOURNAL_FOUND) {
        if (c->servers[s->no].epoch != call->mandate.epoch) {
            c->servers[s->no].epoch = call->mandate.epoch;
            c->servers[s->no].lead_us = w->now_us;
            cell_counts.two_leaders += has_another_leader(w, s);
            vec_clear(&c->servers[s->no].proofs);
        }
    }
}

static void look(struct cell_request *r, const struct node *n, const struct cell_state *state)
{
    (void)n;
    cell_state_digest(state, r->context);
}

static void nothing(struct pending *pending) { (void)pending; }

static void check_digest(struct cell_world *w, struct cell_server *s, int64_t index,
                         const uint8_t expected[CELL_DIGEST_SIZE])
{
    uint8_t digest[CELL_DIGEST_SIZE] = {0};
    struct cell_request r = {.pending = {nothing, NULL},
                             .kind = CELL_REQUEST_LOOK,
                             .stale = true,
                             .look = look,
                             .context = digest};
    node_submit(s->node, &r);
    if (r.verdict.result == CELL_DONE && memcmp(digest, expected, sizeof digest) != 0)
        sim_fail(w, "replicas: %s has another state after entry %" PRId64, s->who, index);
    cell_counts.digests += r.verdict.result == CELL_DONE;
    cell_request_close(&r);
}

void check_server(struct cell_world *w, struct cell_server *s)
{
    struct cell_check *c = w->check;
    struct node_status status;
    if (w->outside_only)
        return;
    node_status(s->node, &status);
    if (status.index > c->index)
        sim_fail(w, "N1: %s has applied entry %" PRId64 ", the journal has %" PRId64, s->who,
                 status.index, c->index);
    else if (status.index % DIGEST_EVERY == 0 && status.index > s->checked_index) {
        s->checked_index = status.index;
        check_digest(w, s, status.index, c->digests.v[status.index / DIGEST_EVERY - 1].bytes);
    }
}

/* ---- what servers answer ---- */

static bool was_opened(const struct cell_check *c, int64_t session)
{
    for (size_t i = 0; i < c->sessions.n; i++)
        if (c->sessions.v[i] == session)
            return true;
    return false;
}

static bool was_granted(const struct cell_check *c, const struct exchange *x)
{
    const struct cell_command *command = &x->request.command;
    const uint64_t name = hash_bytes(command->name.data, command->name.len);
    for (size_t i = c->stored.n; i-- > 0;) {
        const struct grant *g = &c->stored.v[i];
        if (g->fence == x->request.verdict.fence)
            return g->session == command->session.key && g->name == name;
    }
    return false;
}

static void prove(struct cell_check *c, const struct cell_server *s, int64_t session, int64_t at_us)
{
    struct proof *p = NULL;
    for (size_t i = 0; i < c->servers[s->no].proofs.n && !p; i++)
        if (c->servers[s->no].proofs.v[i].session == session)
            p = &c->servers[s->no].proofs.v[i];
    if (!p)
        p = vec_push(&c->servers[s->no].proofs);
    *p = (struct proof){session, at_us};
}

void check_answered(struct cell_world *w, const struct exchange *x)
{
    struct cell_check *c = w->check;
    const struct cell_server *s = x->server;
    const enum cell_result result = x->request.verdict.result;
    const struct cell_command *command = &x->request.command;
    const bool proves = x->request.kind == CELL_REQUEST_KEEPALIVE ||
                        (x->request.kind == CELL_REQUEST_LOOK && !x->request.stale);
    if (w->outside_only)
        return;
    if (x->request.kind == CELL_REQUEST_KEEPALIVE && result == CELL_OVERLOADED)
        sim_fail(w, "N5: %s refuses a keep-alive", s->who);
    if (result != CELL_DONE)
        return;
    if (s->owes_append)
        sim_fail(w, "N3: %s answers after an entry was found, without a further append", s->who);
    if (proves && s->proven_us < x->received_us)
        sim_fail(w,
                 "N2: %s answers what it received at %" PRId64 ", its last append left at %" PRId64,
                 s->who, x->received_us, s->proven_us);
    if (proves && x->request.kind == CELL_REQUEST_KEEPALIVE)
        prove(c, s, command->session.key, w->now_us);
    if (x->request.kind != CELL_REQUEST_COMMAND)
        return;
    if (command->kind == CELL_OPEN) {
        if (!was_opened(c, command->session.key))
            sim_fail(w, "N1: %s answers with a session that the journal does not have", s->who);
        /* Its client counts from before it asked; the answer may have waited for a proof. */
        prove(c, s, command->session.key, x->received_us);
    } else if (command->kind == CELL_ACQUIRE && !was_granted(c, x)) {
        sim_fail(w, "N1: %s answers with a grant of %s that the journal does not have", s->who,
                 x->name);
    } else if (command->kind == CELL_RELEASE &&
               cell_acquisition_find(c->state, command->session.key, command->name.data,
                                     command->name.len, &command->owner)) {
        sim_fail(w, "N1: %s says that %s is released, the journal has it held", s->who, x->name);
    }
}

/* ---- histories ---- */

linear_history *check_history(struct cell_world *w, const char *name)
{
    for (int i = 0; i < ROOTS; i++)
        if (strncmp(name, roots[i], strlen(roots[i])) == 0)
            return &w->check->histories[i];
    return NULL;
}

static void check_linear(struct cell_world *w, linear_history *history)
{
    struct buf text = {0};
    size_t n = 0;
    for (size_t i = 0; i < history->n; i++) /* those that were not carried out have no name */
        if (history->v[i].name[0])
            history->v[n++] = history->v[i];
    history->n = n;
    cell_counts.linear_ops += history->n;
    switch (linear_check(history, LINEAR_VISITS_MAX)) {
    case LINEAR_YES:
        break;
    case LINEAR_TOO_LONG:
        cell_counts.linear_given_up++;
        break;
    case LINEAR_NO:
        sim_fail(w, "order: the history of %s is not linearizable", history->v[0].name);
        linear_print(history, &text);
        if (w->trace)
            fprintf(stderr, "%.*s", (int)text.len, text.data);
        break;
    }
    buf_close(&text);
}

/* ---- for people ---- */

void check_print(const struct cell_world *w)
{
    static const char *const stages[] = {"waits", "held", "delayed"};
    const struct cell_state *state = w->check->state;
    for (const struct cell_session *s = cell_session_next(state, 0); s;
         s = cell_session_next(state, s->id.key))
        for (const struct cell_acquisition *a = s->first; a; a = a->session_next) {
            size_t len;
            const char *name = cell_name_text(a->name, &len);
            fprintf(stderr, "  %s %.*s %s %s%s%s, fence %" PRId64 ", arrival %" PRId64 "\n",
                    s->label, (int)len, name, cell_mode_names[a->mode], stages[a->stage],
                    a->passed_over ? ", passed over" : "", a->cached ? ", cached" : "", a->fence,
                    a->arrival);
        }
}

/* ---- a run ---- */

void check_open(struct cell_world *w)
{
    w->check = hf_alloc(sizeof *w->check);
    w->check->state = cell_state_new();
    sim_journal_on_stored(w->journal, stored, w);
}

void check_end(struct cell_world *w)
{
    struct cell_check *c = w->check;
    uint8_t digest[CELL_DIGEST_SIZE];
    cell_counts.events += w->n_events;
    if (w->failure[0])
        return;
    cell_state_digest(c->state, digest);
    for (int i = 0; i < w->weather.servers && !w->outside_only; i++) {
        struct node_status status;
        if (!w->servers[i].node)
            continue;
        node_status(w->servers[i].node, &status);
        if (status.index == c->index)
            check_digest(w, &w->servers[i], c->index, digest);
    }
    clients_end_histories(w);
    for (int i = 0; i < ROOTS && !w->failure[0]; i++)
        check_linear(w, &c->histories[i]);
}

void check_close(struct cell_world *w)
{
    struct cell_check *c = w->check;
    cell_state_free(c->state);
    vec_close(&c->stored);
    vec_close(&c->heard);
    vec_close(&c->sessions);
    vec_close(&c->digests);
    for (int i = 0; i < ROOTS; i++)
        vec_close(&c->histories[i]);
    for (int i = 0; i < CELL_SERVERS_MAX; i++)
        vec_close(&c->servers[i].proofs);
    free(c);
}
