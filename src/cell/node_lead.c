/* What a master does: gather -> append -> apply -> answer, heartbeats, the last entry.
 * Keeps N1 to N5; the places that keep N2 to N5 are marked. */
#include <string.h>

#include "base/log.h"
#include "cell/node_internal.h"

/* ---- gathering ---- */

static void begin_entry(struct node *n, int64_t now_us)
{
    struct entry_head head = {.epoch = n->mandate.epoch};
    random_bytes(n->config.random, n->entry.id, sizeof n->entry.id);
    memcpy(head.id, n->entry.id, sizeof head.id);
    memcpy(head.previous, n->replica.chain, sizeof head.previous);
    n->entry.bytes.len = 0;
    entry_put_head(&n->entry.bytes, &head);
    vec_clear(&n->entry.authors);
    n->entry.in_doubt = n->entry.resigns = false;
    n->entry.begun_us = now_us;
}

/* Puts a command of the master's own into the entry. */
static void put_own(struct node *n, const struct cell_command *c)
{
    entry_put(&n->entry.bytes, c);
    *vec_push(&n->entry.authors) = NULL;
}

void lead_prepare_first(struct node *n)
{
    begin_entry(n, node_now_us(n));
    put_own(n, &(struct cell_command){
                   .kind = CELL_MASTER,
                   .epoch = n->mandate.epoch,
                   .fence = clock_wall_us(n->config.clock),
                   .url = {n->config.url, strlen(n->config.url)},
                   .by_master = true,
               });
}

/* Its session has been heard of: it does not expire while the answer is under way. */
static void note_keepalive(struct node *n, struct cell_request *r)
{
    struct cell_session *s = cell_session_find(n->replica.state, r->command.session.key);
    n->requests.n_keepalives--;
    if (s && id_secret_equal(s->id.secret, r->command.session.secret))
        deadline_session(n, s, NEVER_US);
}

/* The acquisition is asked for: it neither loses its place nor its grant by this entry. */
static void note_ask(struct node *n, const struct cell_command *c, int64_t now_us)
{
    struct cell_acquisition *a = c->kind == CELL_ACQUIRE
                                     ? cell_acquisition_find(n->replica.state, c->session.key,
                                                             c->name.data, c->name.len, &c->owner)
                                     : NULL;
    const struct deadline *d = a ? a->local.deadline : NULL;
    if (d && (d->kind == DEADLINE_PLACE || d->kind == DEADLINE_GRANT))
        deadline_acquisition(n, a, d->kind,
                             now_us + (NODE_UNKNOWN_MS + NODE_PLACE_MS) * INT64_C(1000));
}

static void take_transfer(struct node *n, struct cell_request *r, int64_t now_us)
{
    if (!report_has_successor(n, now_us)) {
        node_answer(n, r, CELL_NO_STANDBY);
        return;
    }
    requests_push(&n->requests.transfers, r);
    node_change_role(n, NODE_RESIGNING);
}

/* Moves queued requests into the entry.  Keep-alives and looks are proved by this append, which is
 * sent after they were received (N2). */
static void gather_requests(struct node *n, int64_t now_us)
{
    struct cell_request *next;
    for (struct cell_request *r = n->requests.queue.head; r; r = next) {
        next = r->next;
        bool fits = n->entry.bytes.len + CELL_COMMAND_MAX < CELL_ENTRY_MAX;
        if (r->kind == CELL_REQUEST_COMMAND && !fits)
            continue; /* keep-alives behind it are not held up (N5) */
        requests_remove(&n->requests.queue, r);
        switch (r->kind) {
        case CELL_REQUEST_COMMAND:
            note_ask(n, &r->command, now_us);
            entry_put(&n->entry.bytes, &r->command);
            *vec_push(&n->entry.authors) = r;
            break;
        case CELL_REQUEST_KEEPALIVE:
            note_keepalive(n, r);
            requests_push(&n->entry.proofs, r);
            break;
        case CELL_REQUEST_LOOK:
            requests_push(&n->entry.proofs, r);
            break;
        case CELL_REQUEST_TRANSFER:
            take_transfer(n, r, now_us);
            break;
        }
    }
}

static void put_about(struct node *n, enum cell_kind kind, const struct cell_acquisition *a)
{
    size_t len;
    const char *name = cell_name_text(a->name, &len);
    put_own(n, &(struct cell_command){.kind = kind,
                                      .session.key = a->session ? a->session->id.key : 0,
                                      .owner = a->owner,
                                      .name = {name, len},
                                      .fence = a->fence,
                                      .by_master = true});
}

static void gather_due(struct node *n, int64_t now_us)
{
    struct heap_node *node;
    while ((node = heap_first(&n->deadlines)) && node->key <= now_us &&
           n->entry.bytes.len + CELL_COMMAND_MAX < CELL_ENTRY_MAX) {
        struct deadline *d = heap_item(node, struct deadline, node);
        /* It is not due again: the effect of the command drops it. */
        if (d->kind != DEADLINE_REQUEST)
            heap_set(&n->deadlines, node, NEVER_US);
        switch (d->kind) {
        case DEADLINE_SESSION:
            put_own(n, &(struct cell_command){.kind = CELL_EXPIRE,
                                              .session.key = d->session->id.key,
                                              .by_master = true});
            n->counts.n_expired++;
            break;
        case DEADLINE_PLACE:
            put_about(n, CELL_CANCEL, d->acquisition);
            break;
        case DEADLINE_GRANT:
            put_about(n, CELL_WITHDRAW, d->acquisition);
            break;
        case DEADLINE_DELAY:
            put_about(n, CELL_UNDELAY, d->acquisition);
            break;
        case DEADLINE_REQUEST:
            requests_end_wait(n, d, now_us);
            break;
        }
    }
}

static void gather_forget(struct node *n, int64_t now_us)
{
    if (now_us < n->lead.forget_us)
        return;
    n->lead.forget_us = now_us + FORGET_US;
    if (!n->lead.has_ended)
        return;
    n->lead.has_ended = false;
    put_own(n, &(struct cell_command){.kind = CELL_FORGET, .by_master = true});
}

/* The last entry of this mastership: how much of its TTL each session has left. */
static void gather_resign(struct node *n, int64_t now_us)
{
    VEC(struct cell_ttl) ttls = {0};
    int64_t key = 0;
    for (struct cell_session *s;
         ttls.n < CELL_TTLS_MAX && (s = cell_session_next(n->replica.state, key));
         key = s->id.key) {
        int64_t left_us = s->local.deadline_us - now_us;
        if (left_us >= s->ttl_ms * INT64_C(1000))
            continue; /* it has all of it */
        *vec_push(&ttls) = (struct cell_ttl){s->id.key, left_us > 0 ? left_us / 1000 : INT64_C(0)};
    }
    put_own(n, &(struct cell_command){.kind = CELL_RESIGN,
                                      .ttls = ttls.v,
                                      .n_ttls = ttls.n,
                                      .epoch = n->mandate.epoch,
                                      .by_master = true});
    vec_close(&ttls);
    n->entry.resigns = true;
}

/* Only keep-alives wait, and not for long: others may come that the same append can serve. */
static bool lingers(const struct node *n, int64_t now_us)
{
    return n->requests.queue.n == n->requests.n_keepalives && n->requests.queue.n > 0 &&
           now_us < n->requests.queue.head->received_us + LINGER_US;
}

static bool is_entry_due(const struct node *n, int64_t now_us)
{
    if (n->role == NODE_RESIGNING || n->requests.found.n > 0)
        return true;
    if (n->requests.queue.n > 0 && !lingers(n, now_us))
        return true;
    return deadlines_first_us(n) <= now_us || (n->config.shared && now_us >= n->lead.heartbeat_us);
}

/* Fills the entry; false: there is nothing to append now. */
static bool gather(struct node *n, int64_t now_us)
{
    if (!is_entry_due(n, now_us))
        return false;
    bool resigns = n->role == NODE_RESIGNING;
    bool needed =
        resigns || n->requests.found.n > 0 || (n->config.shared && now_us >= n->lead.heartbeat_us);
    begin_entry(n, now_us);
    if (resigns) {
        gather_resign(n, now_us);
    } else {
        gather_requests(n, now_us);
        gather_due(n, now_us);
        gather_forget(n, now_us);
    }
    if (!needed && n->entry.authors.n == 0 && n->entry.proofs.n == 0) {
        n->entry.bytes.len = 0; /* waits of requests ended, and nothing else */
        return false;
    }
    return true;
}

/* ---- the next call ---- */

static void next_append(struct node *n)
{
    struct journal_call *c = &n->journal.call;
    c->op = JOURNAL_APPEND;
    c->mandate = n->mandate;
    c->index = n->replica.index + 1;
    memcpy(c->id, n->entry.id, sizeof c->id);
    c->data = n->entry.bytes.data;
    c->len = n->entry.bytes.len;
}

bool lead_next(struct node *n, int64_t now_us)
{
    /* An entry whose fate is not known comes first, as it was (N3). */
    if (n->entry.bytes.len == 0) {
        if (!n->snapshot.was_last && snapshot_next(n, now_us))
            return true;
        n->snapshot.was_last = false;
        if (!gather(n, now_us))
            return snapshot_next(n, now_us);
    }
    next_append(n);
    return true;
}

int64_t lead_wait_until_us(const struct node *n)
{
    int64_t at = deadlines_first_us(n);
    if (n->role == NODE_RESIGNING || n->entry.bytes.len > 0 || n->requests.found.n > 0 ||
        n->requests.queue.n > n->requests.n_keepalives)
        return 0;
    if (n->requests.queue.n > 0 && n->requests.queue.head->received_us + LINGER_US < at)
        at = n->requests.queue.head->received_us + LINGER_US;
    if (n->config.shared && n->lead.heartbeat_us < at)
        at = n->lead.heartbeat_us;
    if (n->snapshot.step != SNAPSHOT_IDLE && n->snapshot.try_us < at)
        at = n->snapshot.try_us;
    return at;
}

/* ---- what became of the entry ---- */

static void answer_keepalive(struct node *n, struct cell_request *r, int64_t now_us)
{
    struct cell_session *s = cell_session_find(n->replica.state, r->command.session.key);
    if (!s || !id_secret_equal(s->id.secret, r->command.session.secret)) {
        node_answer(n, r, CELL_NO_SESSION);
        return;
    }
    deadline_session(n, s, now_us + s->ttl_ms * INT64_C(1000));
    r->ttl_ms = s->ttl_ms;
    for (struct cell_acquisition *a = s->first; a && r->wanted.n < WANTED_MAX;
         a = a->session_next) {
        size_t len;
        if (!a->cached || a->stage != CELL_HELD || !cell_acquisition_is_wanted(n->replica.state, a))
            continue;
        const char *name = cell_name_text(a->name, &len);
        memcpy(vec_push(&r->wanted)->name, name, len);
    }
    node_answer(n, r, CELL_DONE);
}

static void answer_proved(struct node *n, struct cell_request *r, int64_t now_us)
{
    if (r->kind == CELL_REQUEST_KEEPALIVE) {
        answer_keepalive(n, r, now_us);
    } else if (r->kind == CELL_REQUEST_LOOK) {
        r->look(r, n, n->replica.state);
        node_answer(n, r, CELL_DONE);
    } else {
        requests_note_answered(n, r, now_us);
        node_give_back(r);
    }
}

/* The append has been acknowledged, so everything that waited for a proof may be answered. */
static void answer_all_proved(struct node *n, int64_t now_us)
{
    for (struct cell_request *r; (r = requests_pop(&n->requests.found));)
        answer_proved(n, r, now_us);
    for (struct cell_request *r; (r = requests_pop(&n->entry.proofs));)
        answer_proved(n, r, now_us);
}

static void begin_leading(struct node *n, int64_t now_us)
{
    deadlines_begin(n, now_us); /* a full TTL, or what a clean hand-over left (N4) */
    n->role = NODE_LEADING;     /* told when the first entry is applied */
    n->lead.forget_us = now_us + FORGET_US;
    n->lead.has_ended = true;
    n->snapshot.step = SNAPSHOT_IDLE;
    n->snapshot.try_us = 0;
    n->snapshot.index = n->journal.head.snapshot;
    n->snapshot.entry_bytes = 0;
    n->journal.head.epoch = n->mandate.epoch;
}

static void entry_stored(struct node *n, int64_t now_us, bool found)
{
    struct hf_err err = {0};
    bool first = n->role == NODE_CATCHING_UP;
    uint32_t shortest_ms = cell_state_shortest_ttl_ms(n->replica.state);
    if (first)
        begin_leading(n, now_us);
    if (now_us - n->entry.begun_us > shortest_ms * INT64_C(500))
        deadlines_renew(n, now_us); /* the node could not append (N4) */
    if (!found)
        n->lead.appended_us = n->journal.sent_us;
    n->counts.n_entries++;
    n->counts.n_commands += n->entry.authors.n;
    n->snapshot.entry_bytes += n->entry.bytes.len;
    hf_check(node_apply(n, n->entry.bytes.data, n->entry.bytes.len, n->entry.authors.v,
                        n->entry.authors.n, &err));
    n->journal.head.last = n->replica.index;
    n->entry.bytes.len = 0;
    vec_clear(&n->entry.authors);
    int64_t beat_ms = n->config.timeout_ms / 4;
    n->lead.heartbeat_us = now_us + beat_ms * 1000;
    if (found) {
        for (struct cell_request *r; (r = requests_pop(&n->entry.proofs));)
            requests_push(&n->requests.found, r);
    } else {
        answer_all_proved(n, now_us);
    }
    if (first && n->config.on_change)
        n->config.on_change(n->config.context, NODE_LEADING);
}

static void resigned(struct node *n, int64_t now_us)
{
    struct requests_list transfers = n->requests.transfers;
    n->requests.transfers = (struct requests_list){0};
    n->follow.no_claim_us = now_us + n->config.timeout_ms * 1000; /* others first */
    node_step_down(n, CELL_NO_MASTER);
    for (struct cell_request *r; (r = requests_pop(&transfers));)
        node_answer(n, r, CELL_DONE);
}

static void done_append(struct node *n, int64_t now_us)
{
    switch (n->journal.call.result) {
    case JOURNAL_DONE:
    case JOURNAL_FOUND: {
        bool resigns = n->entry.resigns;
        entry_stored(n, now_us, n->journal.call.result == JOURNAL_FOUND);
        if (resigns)
            resigned(n, now_us);
        else if (n->retires && n->role == NODE_LEADING)
            node_change_role(n, NODE_RESIGNING);
        break;
    }
    case JOURNAL_DEPOSED:
        /* If an attempt had no answer, the new master may have found what it stored. */
        node_step_down(n, n->entry.in_doubt ? CELL_UNKNOWN : CELL_NO_MASTER);
        break;
    case JOURNAL_UNKNOWN:
        n->entry.in_doubt = true;
        break;
    case JOURNAL_DAMAGED: /* for instance, a backup was restored under a living master */
        log_write(LOG_ERROR, "the journal of the locks is not as this server left it", "why",
                  n->journal.call.err.msg, NULL);
        node_step_down(n, CELL_UNKNOWN);
        break;
    default:
        break; /* nothing was done; the same entry again */
    }
}

void lead_done(struct node *n, int64_t now_us)
{
    if (n->journal.call.op == JOURNAL_APPEND)
        done_append(n, now_us);
    else
        snapshot_done(n, now_us);
}
