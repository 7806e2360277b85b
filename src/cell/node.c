/* A node's roles, its requests and its calls to the journal.  node_follow.c has what a standby
 * does, node_lead.c what a master does.  Keeps N1.  Owner: the thread that runs the node. */
#include <stdio.h>
#include <string.h>

#include "base/backoff.h"
#include "base/log.h"
#include "cell/node_internal.h"

const char *const node_role_names[] = {[NODE_FOLLOWING] = "standby",
                                       [NODE_CLAIMING] = "claiming",
                                       [NODE_CATCHING_UP] = "catching_up",
                                       [NODE_LEADING] = "master",
                                       [NODE_RESIGNING] = "resigning"};

static void note_silence(struct node *n, const char *why)
{
    if (n->answers)
        log_write(LOG_WARN, "the journal of the locks does not answer", "why", why, NULL);
    n->answers = false;
    (void)snprintf(n->why, sizeof n->why, "%s", why);
}

static void note_failure(struct node *n, int64_t now_us)
{
    n->retry_us = now_us + backoff_pause(RETRY_MIN_US, RETRY_MAX_US, n->n_failures++);
    note_silence(n, n->call.err.msg);
}

static void note_answer(struct node *n)
{
    if (!n->answers && *n->why)
        log_write(LOG_INFO, "the journal of the locks answers again", NULL);
    n->answers = true;
    n->n_failures = 0;
    n->retry_us = 0;
    n->why[0] = '\0';
}

/* ---- the next call ---- */

static bool choose(struct node *n, int64_t now_us)
{
    struct journal_call *c = &n->call;
    if (now_us < n->retry_us)
        return false;
    if (!n->loaded) {
        c->op = JOURNAL_LOAD;
        c->snapshot.len = 0;
        return true;
    }
    switch (n->role) {
    case NODE_LEADING:
    case NODE_RESIGNING:
        if (n->entry.len == 0 && now_us > n->report_us + REPORT_US && report_next(n, now_us))
            return true; /* also under load */
        return lead_next(n, now_us) || report_next(n, now_us);
    case NODE_CLAIMING:
        c->op = JOURNAL_CLAIM;
        c->mandate = n->mandate;
        c->url = n->config.url;
        return true;
    case NODE_CATCHING_UP:
        if (n->entry.len > 0)
            return lead_next(n, now_us); /* the first entry */
        break;
    case NODE_FOLLOWING:
        if (report_next(n, now_us))
            return true;
        if (now_us < n->read_us)
            return false;
        break;
    }
    c->op = JOURNAL_READ;
    c->index = n->checks_tail ? n->index - 1 : n->index;
    journal_page_clear(&c->page);
    return true;
}

/* A master that stood still for half the shortest TTL may not have heard its clients (N4). */
static void note_seen(struct node *n, int64_t now_us)
{
    bool leads = n->role == NODE_LEADING || n->role == NODE_RESIGNING;
    if (leads && n->seen_us &&
        now_us - n->seen_us > cell_state_shortest_ttl_ms(n->state) * INT64_C(500))
        deadlines_renew(n, now_us);
    n->seen_us = now_us;
}

struct journal_call *node_next(struct node *n)
{
    int64_t now_us = node_now_us(n);
    hf_check(!n->calling);
    note_seen(n, now_us);
    requests_give_up(n, now_us);
    if (!choose(n, now_us))
        return NULL;
    n->calling = true;
    n->sent_us = now_us;
    n->call.err = (struct hf_err){0};
    return &n->call;
}

void node_done(struct node *n, struct journal_call *call)
{
    int64_t now_us = node_now_us(n);
    hf_check(n->calling && call == &n->call);
    note_seen(n, now_us);
    requests_give_up(n, now_us);
    n->calling = false;
    if (journal_is_failure(call->result))
        note_failure(n, now_us);
    else
        note_answer(n);
    switch (call->op) {
    case JOURNAL_READ:
        follow_done_read(n, now_us);
        break;
    case JOURNAL_CLAIM:
        follow_done_claim(n, now_us);
        break;
    case JOURNAL_LOAD:
        follow_done_load(n, now_us);
        break;
    case JOURNAL_REPORT:
        report_done(n, now_us);
        break;
    default:
        lead_done(n, now_us);
    }
    note_seen(n, node_now_us(n)); /* it may have stood still here, too */
}

int64_t node_wait_until_us(const struct node *n)
{
    int64_t at = n->role == NODE_LEADING || n->role == NODE_RESIGNING ? lead_wait_until_us(n)
                 : n->role == NODE_FOLLOWING && n->loaded             ? n->read_us
                                                                      : 0;
    if (n->config.shared && n->report_us < at)
        at = n->report_us;
    return at > n->retry_us ? at : n->retry_us;
}

/* ---- requests ---- */

static void complete(struct node *n, struct cell_request *r)
{
    struct cell_command *c = &r->command;
    if (c->kind == CELL_OPEN && c->session.key == 0) {
        c->session.key = (int64_t)(random_u64(n->config.random) >> 1 | 1);
        random_bytes(n->config.random, c->session.secret, sizeof c->session.secret);
    }
    if (c->kind == CELL_ACQUIRE && c->owner.digits == 0) {
        random_bytes(n->config.random, c->owner.bytes, sizeof c->owner.bytes);
        c->owner.digits = 2 * CELL_OWNER_SIZE;
    }
    if (c->kind == CELL_ACQUIRE)
        c->queue = c->finds_knots = r->wait_ms > 0;
}

void node_submit(struct node *n, struct cell_request *r)
{
    r->received_us = node_now_us(n);
    r->verdict.result = CELL_DONE;
    if (r->kind == CELL_REQUEST_LOOK && r->stale) {
        r->look(r, n, n->state);
        node_give_back(r);
    } else if (n->retires) {
        node_answer(n, r, n->role == NODE_FOLLOWING ? CELL_NO_MASTER : CELL_STOPPING);
    } else if (n->role == NODE_FOLLOWING || n->role == NODE_RESIGNING) {
        node_answer(n, r, CELL_NO_MASTER);
    } else if (r->kind == CELL_REQUEST_KEEPALIVE) {
        n->n_queued_keepalives++;
        requests_push(&n->queue, r);
    } else if (n->queue.n - n->n_queued_keepalives >= n->config.queue_max) {
        node_answer(n, r, CELL_OVERLOADED);
    } else {
        complete(n, r);
        /* An entry that no server can read would end the cell. */
        if (r->kind == CELL_REQUEST_COMMAND && cell_command_check(&r->command))
            node_answer(n, r, CELL_UNAVAILABLE);
        else
            requests_push(&n->queue, r);
    }
}

void node_gone(struct node *n, struct cell_request *r)
{
    r->gone = true;
    if (r->acquisition) {
        struct cell_acquisition *a = r->acquisition;
        requests_remove(&n->waiting, r);
        a->local.waiter = NULL;
        r->acquisition = NULL;
        deadline_acquisition(n, a, DEADLINE_PLACE, node_now_us(n) + NODE_PLACE_MS * INT64_C(1000));
        node_answer(n, r, CELL_TAKEN);
        return;
    }
    /* A request whose entry is under way is judged when that is stored. */
    if (r->list == &n->queue && r->kind == CELL_REQUEST_COMMAND) {
        requests_remove(&n->queue, r);
        node_answer(n, r, CELL_STOPPING);
    }
}

/* ---- beginning and end ---- */

struct node *node_new(const struct node_config *config)
{
    struct node *n = hf_alloc(sizeof *n);
    n->config = *config;
    if (!n->config.snapshot_entries)
        n->config.snapshot_entries = SNAPSHOT_ENTRIES;
    n->state = cell_state_new();
    n->changed_us = node_now_us(n);
    n->answers = true;
    n->beat = (int64_t)random_below(n->config.random, 1 << 30); /* other than before a restart */
    return n;
}

void node_begins_without_journal(struct node *n, const char *why) { note_silence(n, why); }

void node_free(struct node *n)
{
    if (!n)
        return;
    deadlines_clear(n);
    cell_state_free(n->state);
    journal_call_close(&n->call);
    buf_close(&n->entry);
    buf_close(&n->snapshot);
    vec_close(&n->authors);
    vec_close(&n->known);
    vec_close(&n->ttls);
    heap_close(&n->deadlines);
    free(n);
}

void node_retire(struct node *n)
{
    n->retires = true;
    if (n->role == NODE_LEADING)
        node_change_role(n, NODE_RESIGNING);
}

bool node_is_retired(const struct node *n) { return n->retires && n->role == NODE_FOLLOWING; }

void node_status(const struct node *n, struct node_status *ret)
{
    *ret = (struct node_status){
        .role = n->role,
        .epoch = n->role == NODE_LEADING ? n->mandate.epoch : n->head.epoch,
        .index = n->index,
        .n_sessions = cell_state_n_sessions(n->state),
        .n_held = cell_state_n_held(n->state),
        .n_waiting = cell_state_n_waiting(n->state),
        .last = n->head.last > n->index ? n->head.last : n->index,
        .servers = n->fresh,
        .n_servers = n->n_fresh,
        .counts = n->counts,
        .appended_ms = n->role == NODE_LEADING || n->role == NODE_RESIGNING
                           ? (node_now_us(n) - n->appended_us) / 1000
                           : -1,
        .journal_answers = n->answers,
    };
    (void)snprintf(ret->why, sizeof ret->why, "%s", n->why);
    (void)snprintf(ret->master_url, sizeof ret->master_url, "%s",
                   n->role == NODE_LEADING || n->role == NODE_RESIGNING ? n->config.url
                                                                        : node_master_url(n));
}
