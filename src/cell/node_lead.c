/* What a master does: gather -> append -> apply -> answer, heartbeats, the last entry.
 * Keeps N1 to N5; the places where it does are marked. */
#include <string.h>

#include "base/log.h"
#include "cell/node_internal.h"

/* ---- gathering ---- */

static void entry_begin(struct node *n)
{
    struct entry_head head = {.epoch = n->mandate.epoch};
    random_bytes(n->config.random, n->entry_id, sizeof n->entry_id);
    memcpy(head.id, n->entry_id, sizeof head.id);
    memcpy(head.previous, n->chain, sizeof head.previous);
    n->entry.len = 0;
    entry_put_head(&n->entry, &head);
    vec_clear(&n->authors);
}

void lead_prepare_first(struct node *n)
{
    entry_begin(n);
    entry_put(&n->entry, &(struct cell_command){
                             .kind = CELL_MASTER,
                             .epoch = n->mandate.epoch,
                             .fence = clock_wall_us(n->config.clock),
                             .url = {n->config.url, strlen(n->config.url)},
                             .by_master = true,
                         });
    *vec_push(&n->authors) = NULL;
    n->entry_us = node_now_us(n);
}

/* Its session has been heard of: it does not expire while the answer is under way. */
static void note_keepalive(struct node *n, struct cell_request *r)
{
    struct cell_session *s = cell_session_find(n->state, r->command.session.key);
    n->n_queued_keepalives--;
    if (s && id_secret_equal(s->id.secret, r->command.session.secret))
        deadline_session(n, s, NEVER_US);
}

/* The acquisition is asked for: it neither loses its place nor its grant by this entry. */
static void note_ask(struct node *n, const struct cell_command *c, int64_t now_us)
{
    struct cell_acquisition *a =
        c->kind == CELL_ACQUIRE
            ? cell_acquisition_find(n->state, c->session.key, c->name.data, c->name.len, &c->owner)
            : NULL;
    const struct deadline *d = a ? a->local.deadline : NULL;
    if (d && (d->kind == DEADLINE_PLACE || d->kind == DEADLINE_GRANT))
        deadline_acquisition(n, a, d->kind,
                             now_us + (NODE_UNKNOWN_MS + NODE_PLACE_MS) * INT64_C(1000));
}

static void take_transfer(struct node *n, struct cell_request *r, int64_t now_us)
{
    if (!report_has_successor(n, now_us)) {
        node_answer(n, r, CELL_LOST);
        return;
    }
    requests_push(&n->transfers, r);
    node_change_role(n, NODE_RESIGNING);
}

/* Moves queued requests into the entry.  Keep-alives and looks are proved by this append, which is
 * sent after they were received (N2). */
static void gather_requests(struct node *n, int64_t now_us)
{
    struct cell_request *next;
    for (struct cell_request *r = n->queue.head; r; r = next) {
        next = r->next;
        bool fits = n->entry.len + CELL_COMMAND_MAX < CELL_ENTRY_MAX;
        if (r->kind == CELL_REQUEST_COMMAND && !fits)
            continue; /* keep-alives behind it are not held up (N5) */
        requests_remove(&n->queue, r);
        switch (r->kind) {
        case CELL_REQUEST_COMMAND:
            note_ask(n, &r->command, now_us);
            entry_put(&n->entry, &r->command);
            *vec_push(&n->authors) = r;
            break;
        case CELL_REQUEST_KEEPALIVE:
            note_keepalive(n, r);
            requests_push(&n->proofs, r);
            break;
        case CELL_REQUEST_LOOK:
            requests_push(&n->proofs, r);
            break;
        case CELL_REQUEST_TRANSFER:
            take_transfer(n, r, now_us);
            break;
        }
    }
}

static void put_own(struct node *n, const struct cell_command *c)
{
    entry_put(&n->entry, c);
    *vec_push(&n->authors) = NULL;
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
           n->entry.len + CELL_COMMAND_MAX < CELL_ENTRY_MAX) {
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
    if (now_us < n->forget_us)
        return;
    n->forget_us = now_us + FORGET_US;
    if (!n->has_ended)
        return;
    n->has_ended = false;
    entry_put(&n->entry, &(struct cell_command){.kind = CELL_FORGET, .by_master = true});
    *vec_push(&n->authors) = NULL;
}

/* The last entry of this mastership: how much of its TTL each session has left. */
static void gather_resign(struct node *n, int64_t now_us)
{
    int64_t key = 0;
    vec_clear(&n->ttls);
    for (struct cell_session *s;
         n->ttls.n < CELL_TTLS_MAX && (s = cell_session_next(n->state, key)); key = s->id.key) {
        int64_t left_us = s->local.deadline_us - now_us;
        if (left_us >= s->ttl_ms * INT64_C(1000))
            continue; /* it has all of it */
        *vec_push(&n->ttls) =
            (struct cell_ttl){s->id.key, left_us > 0 ? left_us / 1000 : INT64_C(0)};
    }
    entry_put(&n->entry, &(struct cell_command){.kind = CELL_RESIGN,
                                                .ttls = n->ttls.v,
                                                .n_ttls = n->ttls.n,
                                                .epoch = n->mandate.epoch,
                                                .by_master = true});
    *vec_push(&n->authors) = NULL;
    n->resigns = true;
}

/* Only keep-alives wait, and not for long: others may come that the same append can serve. */
static bool lingers(const struct node *n, int64_t now_us)
{
    return n->queue.n == n->n_queued_keepalives && n->queue.n > 0 &&
           now_us < n->queue.head->received_us + LINGER_US;
}

static bool is_entry_due(const struct node *n, int64_t now_us)
{
    if (n->role == NODE_RESIGNING || n->found.n > 0)
        return true;
    if (n->queue.n > 0 && !lingers(n, now_us))
        return true;
    return deadlines_first_us(n) <= now_us || (n->config.shared && now_us >= n->heartbeat_us);
}

/* Fills the entry; false: there is nothing to append now. */
static bool gather(struct node *n, int64_t now_us)
{
    if (!is_entry_due(n, now_us))
        return false;
    bool resigns = n->role == NODE_RESIGNING;
    bool needed = resigns || n->found.n > 0 || (n->config.shared && now_us >= n->heartbeat_us);
    entry_begin(n);
    if (resigns) {
        gather_resign(n, now_us);
    } else {
        gather_requests(n, now_us);
        gather_due(n, now_us);
        gather_forget(n, now_us);
    }
    if (!needed && n->authors.n == 0 && n->proofs.n == 0) {
        n->entry.len = 0; /* waits of requests ended, and nothing else */
        return false;
    }
    n->entry_us = now_us;
    n->in_doubt = false;
    return true;
}

/* ---- the next call ---- */

static void next_append(struct node *n)
{
    struct journal_call *c = &n->call;
    c->op = JOURNAL_APPEND;
    c->mandate = n->mandate;
    c->index = n->index + 1;
    memcpy(c->id, n->entry_id, sizeof c->id);
    c->data = n->entry.data;
    c->len = n->entry.len;
}

bool lead_next(struct node *n, int64_t now_us)
{
    /* An entry whose fate is not known comes first, as it was (N3). */
    if (n->entry.len == 0) {
        if (!n->chunk_was_last && snapshot_next(n, now_us))
            return true;
        n->chunk_was_last = false;
        if (!gather(n, now_us))
            return snapshot_next(n, now_us);
    }
    next_append(n);
    return true;
}

int64_t lead_wait_until_us(const struct node *n)
{
    int64_t at = deadlines_first_us(n);
    if (n->role == NODE_RESIGNING || n->entry.len > 0 || n->found.n > 0 ||
        n->queue.n > n->n_queued_keepalives)
        return 0;
    if (n->queue.n > 0 && n->queue.head->received_us + LINGER_US < at)
        at = n->queue.head->received_us + LINGER_US;
    if (n->config.shared && n->heartbeat_us < at)
        at = n->heartbeat_us;
    if (n->snapshot_step != SNAPSHOT_IDLE && n->snapshot_try_us < at)
        at = n->snapshot_try_us;
    return at;
}

/* ---- what became of the entry ---- */

static void answer_keepalive(struct node *n, struct cell_request *r, int64_t now_us)
{
    struct cell_session *s = cell_session_find(n->state, r->command.session.key);
    if (!s || !id_secret_equal(s->id.secret, r->command.session.secret)) {
        node_answer(n, r, CELL_NO_SESSION);
        return;
    }
    deadline_session(n, s, now_us + s->ttl_ms * INT64_C(1000));
    r->ttl_ms = s->ttl_ms;
    for (struct cell_acquisition *a = s->first; a && r->wanted.n < WANTED_MAX;
         a = a->session_next) {
        size_t len;
        if (!a->cached || a->stage != CELL_HELD || !cell_acquisition_is_wanted(n->state, a))
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
        r->look(r, n, n->state);
        node_answer(n, r, CELL_DONE);
    } else {
        requests_note_answered(n, r, now_us);
        node_give_back(r);
    }
}

/* The append has been acknowledged, so everything that waited for a proof may be answered. */
static void answer_all_proved(struct node *n, int64_t now_us)
{
    for (struct cell_request *r; (r = requests_pop(&n->found));)
        answer_proved(n, r, now_us);
    for (struct cell_request *r; (r = requests_pop(&n->proofs));)
        answer_proved(n, r, now_us);
}

static void begin_leading(struct node *n, int64_t now_us)
{
    deadlines_begin(n, now_us); /* a full TTL, or what a clean hand-over left (N4) */
    n->role = NODE_LEADING;     /* told when the first entry is applied */
    n->forget_us = now_us + FORGET_US;
    n->has_ended = true;
    n->snapshot_step = SNAPSHOT_IDLE;
    n->snapshot_try_us = 0;
    n->snapshot_index = n->head.snapshot;
    n->snapshot_bytes = 0;
    n->head.epoch = n->mandate.epoch;
}

static void entry_stored(struct node *n, int64_t now_us, bool found)
{
    struct hf_err err = {0};
    bool first = n->role == NODE_CATCHING_UP;
    uint32_t shortest_ms = cell_state_shortest_ttl_ms(n->state);
    if (first)
        begin_leading(n, now_us);
    if (now_us - n->entry_us > shortest_ms * INT64_C(500))
        deadlines_renew(n, now_us); /* the node could not append (N4) */
    if (!found)
        n->appended_us = n->sent_us;
    n->counts.n_entries++;
    n->counts.n_commands += n->authors.n;
    n->snapshot_bytes += n->entry.len;
    hf_check(node_apply(n, n->entry.data, n->entry.len, n->authors.v, n->authors.n, &err));
    n->head.last = n->index;
    n->entry.len = 0;
    vec_clear(&n->authors);
    int64_t beat_ms = n->config.timeout_ms / 4;
    n->heartbeat_us = now_us + beat_ms * 1000;
    if (found) {
        for (struct cell_request *r; (r = requests_pop(&n->proofs));)
            requests_push(&n->found, r);
    } else {
        answer_all_proved(n, now_us);
    }
    if (first && n->config.on_change)
        n->config.on_change(n->config.context, NODE_LEADING);
}

static void resigned(struct node *n, int64_t now_us)
{
    struct requests_list transfers = n->transfers;
    n->transfers = (struct requests_list){0};
    n->no_claim_us = now_us + n->config.timeout_ms * 1000; /* others first */
    node_step_down(n, CELL_NO_MASTER);
    for (struct cell_request *r; (r = requests_pop(&transfers));)
        node_answer(n, r, CELL_DONE);
}

static void done_append(struct node *n, int64_t now_us)
{
    switch (n->call.result) {
    case JOURNAL_DONE:
    case JOURNAL_FOUND: {
        bool resigns = n->resigns;
        entry_stored(n, now_us, n->call.result == JOURNAL_FOUND);
        if (resigns)
            resigned(n, now_us);
        else if (n->retires && n->role == NODE_LEADING)
            node_change_role(n, NODE_RESIGNING);
        break;
    }
    case JOURNAL_DEPOSED: {
        /* If an attempt had no answer, the new master may have found what it stored. */
        enum cell_result result = n->in_doubt ? CELL_UNKNOWN : CELL_NO_MASTER;
        n->entry.len = 0;
        node_step_down(n, result);
        break;
    }
    case JOURNAL_UNKNOWN:
        n->in_doubt = true;
        break;
    case JOURNAL_DAMAGED: /* for instance, a backup was restored under a living master */
        log_write(LOG_ERROR, "the journal of the locks is not as this server left it", "why",
                  n->call.err.msg, NULL);
        n->entry.len = 0;
        node_step_down(n, CELL_UNKNOWN);
        break;
    default:
        break; /* nothing was done; the same entry again */
    }
}

void lead_done(struct node *n, int64_t now_us)
{
    if (n->call.op == JOURNAL_APPEND)
        done_append(n, now_us);
    else
        snapshot_done(n, now_us);
}
