/* A node's roles, its requests and its calls to the journal.  node_follow.c has what a standby
 * does, node_lead.c what a master does.  Keeps N1.  Owner: the thread that runs the node. */
#include <stdio.h>

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
    if (n->journal.answers)
        log_write(LOG_WARN, "the journal of the locks does not answer", "why", why, NULL);
    n->journal.answers = false;
    (void)snprintf(n->journal.why, sizeof n->journal.why, "%s", why);
}

static void note_failure(struct node *n, int64_t now_us)
{
    n->journal.retry_us =
        now_us + backoff_pause(RETRY_MIN_US, RETRY_MAX_US, n->journal.n_failures++);
    note_silence(n, n->journal.call.err.msg);
}

static void note_answer(struct node *n)
{
    if (!n->journal.answers && *n->journal.why)
        log_write(LOG_INFO, "the journal of the locks answers again", NULL);
    n->journal.answers = true;
    n->journal.n_failures = 0;
    n->journal.retry_us = 0;
    n->journal.why[0] = '\0';
}

/* ---- the next call ---- */

static bool choose(struct node *n, int64_t now_us)
{
    struct journal_call *c = &n->journal.call;
    if (now_us < n->journal.retry_us)
        return false;
    if (!n->replica.is_loaded) {
        c->op = JOURNAL_LOAD;
        return true;
    }
    switch (n->role) {
    case NODE_LEADING:
    case NODE_RESIGNING:
        if (n->entry.bytes.len == 0 && now_us > n->reports.due_us + REPORT_US &&
            report_next(n, now_us))
            return true; /* also under load */
        return lead_next(n, now_us) || report_next(n, now_us);
    case NODE_CLAIMING:
        c->op = JOURNAL_CLAIM;
        c->mandate = n->mandate;
        c->url = n->config.url;
        return true;
    case NODE_CATCHING_UP:
        if (n->entry.bytes.len > 0)
            return lead_next(n, now_us); /* the first entry */
        break;
    case NODE_FOLLOWING:
        if (report_next(n, now_us))
            return true;
        if (now_us < n->follow.read_us)
            return false;
        break;
    }
    c->op = JOURNAL_READ;
    c->index = n->follow.checks_tail ? n->replica.index - 1 : n->replica.index;
    return true;
}

/* A master that stood still for half the shortest TTL may not have heard its clients (N4). */
static void note_seen(struct node *n, int64_t now_us)
{
    bool leads = node_leads(n);
    if (leads && n->seen_us &&
        now_us - n->seen_us > cell_state_shortest_ttl_ms(n->replica.state) * INT64_C(500))
        deadlines_renew(n, now_us);
    n->seen_us = now_us;
}

struct journal_call *node_next(struct node *n)
{
    int64_t now_us = node_now_us(n);
    hf_check(!n->journal.is_calling);
    note_seen(n, now_us);
    requests_give_up(n, now_us);
    if (!choose(n, now_us))
        return NULL;
    n->journal.is_calling = true;
    n->journal.sent_us = now_us;
    n->journal.call.err = (struct hf_err){0};
    return &n->journal.call;
}

void node_done(struct node *n, struct journal_call *call)
{
    int64_t now_us = node_now_us(n);
    hf_check(n->journal.is_calling && call == &n->journal.call);
    note_seen(n, now_us);
    requests_give_up(n, now_us);
    n->journal.is_calling = false;
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
    int64_t at = node_leads(n)                                       ? lead_wait_until_us(n)
                 : n->role == NODE_FOLLOWING && n->replica.is_loaded ? n->follow.read_us
                                                                     : 0;
    if (n->config.shared && n->reports.due_us < at)
        at = n->reports.due_us;
    return at > n->journal.retry_us ? at : n->journal.retry_us;
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
        r->look(r, n, n->replica.state);
        node_give_back(r);
    } else if (n->retires) {
        node_answer(n, r, n->role == NODE_FOLLOWING ? CELL_NO_MASTER : CELL_STOPPING);
    } else if (n->role == NODE_FOLLOWING || n->role == NODE_RESIGNING) {
        node_answer(n, r, CELL_NO_MASTER);
    } else if (r->kind == CELL_REQUEST_KEEPALIVE) {
        n->requests.n_keepalives++;
        requests_push(&n->requests.queue, r);
    } else if (n->requests.queue.n - n->requests.n_keepalives >= n->config.queue_max) {
        node_answer(n, r, CELL_OVERLOADED);
    } else {
        complete(n, r);
        /* An entry that no server can read would end the cell. */
        if (r->kind == CELL_REQUEST_COMMAND && cell_command_check(&r->command))
            node_answer(n, r, CELL_UNAVAILABLE);
        else
            requests_push(&n->requests.queue, r);
    }
}

void node_gone(struct node *n, struct cell_request *r)
{
    r->gone = true;
    if (r->acquisition) {
        struct cell_acquisition *a = r->acquisition;
        requests_remove(&n->requests.waiting, r);
        a->local.waiter = NULL;
        r->acquisition = NULL;
        deadline_acquisition(n, a, DEADLINE_PLACE, node_now_us(n) + NODE_PLACE_MS * INT64_C(1000));
        node_answer(n, r, CELL_TAKEN);
        return;
    }
    /* A request whose entry is under way is judged when that is stored. */
    if (r->list == &n->requests.queue && r->kind == CELL_REQUEST_COMMAND) {
        requests_remove(&n->requests.queue, r);
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
    n->replica.state = cell_state_new();
    n->follow.changed_us = node_now_us(n);
    n->journal.answers = true;
    n->reports.beat =
        (int64_t)random_below(n->config.random, 1 << 30); /* other than before a restart */
    return n;
}

void node_begins_without_journal(struct node *n, const char *why) { note_silence(n, why); }

void node_free(struct node *n)
{
    if (!n)
        return;
    deadlines_clear(n);
    cell_state_free(n->replica.state);
    journal_call_close(&n->journal.call);
    buf_close(&n->entry.bytes);
    buf_close(&n->snapshot.bytes);
    vec_close(&n->entry.authors);
    vec_close(&n->reports.known);
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
        .epoch = n->role == NODE_LEADING ? n->mandate.epoch : n->journal.head.epoch,
        .index = n->replica.index,
        .n_sessions = cell_state_n_sessions(n->replica.state),
        .n_held = cell_state_n_held(n->replica.state),
        .n_waiting = cell_state_n_waiting(n->replica.state),
        .last = n->journal.head.last > n->replica.index ? n->journal.head.last : n->replica.index,
        .servers = n->reports.fresh,
        .n_servers = n->reports.n_fresh,
        .counts = n->counts,
        .appended_ms = node_leads(n) ? (node_now_us(n) - n->lead.appended_us) / 1000 : -1,
        .journal_answers = n->journal.answers,
    };
    (void)snprintf(ret->why, sizeof ret->why, "%s", n->journal.why);
    (void)snprintf(ret->master_url, sizeof ret->master_url, "%s",
                   node_leads(n) ? n->config.url : node_master_url(n));
}
