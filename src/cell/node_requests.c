/* The requests that a node has, how they are given back, and what becomes of those that no entry of
 * this mastership will answer: the journal does not answer, the node leads no more, or it stops.
 * Keeps N1.  Owner: the thread that runs the node. */
#include <stdio.h>
#include <string.h>

#include "cell/node_internal.h"

/* ---- lists ---- */

void requests_push(struct requests_list *l, struct cell_request *r)
{
    r->next = NULL;
    r->prev = l->tail;
    if (l->tail)
        l->tail->next = r;
    else
        l->head = r;
    l->tail = r;
    r->list = l;
    l->n++;
}

void requests_remove(struct requests_list *l, struct cell_request *r)
{
    if (r->prev)
        r->prev->next = r->next;
    else
        l->head = r->next;
    if (r->next)
        r->next->prev = r->prev;
    else
        l->tail = r->prev;
    r->next = r->prev = NULL;
    r->list = NULL;
    l->n--;
}

struct cell_request *requests_pop(struct requests_list *l)
{
    struct cell_request *r = l->head;
    if (r)
        requests_remove(l, r);
    return r;
}

/* ---- answers ---- */

void cell_request_close(struct cell_request *r)
{
    cell_verdict_close(&r->verdict);
    buf_close(&r->out);
    vec_close(&r->wanted);
}

void node_give_back(struct cell_request *r) { pending_done(&r->pending); }

const char *node_master_url(const struct node *n)
{
    if (n->role != NODE_FOLLOWING || n->journal.head.epoch == 0 || !n->journal.answers ||
        (cell_state_is_resigned(n->replica.state) &&
         cell_state_epoch(n->replica.state) == n->journal.head.epoch) ||
        strcmp(n->journal.head.url, n->config.url) == 0)
        return "";
    return n->journal.head.url;
}

void node_answer(struct node *n, struct cell_request *r, enum cell_result result)
{
    r->verdict.result = result;
    if (result == CELL_NO_MASTER)
        (void)snprintf(r->master_url, sizeof r->master_url, "%s", node_master_url(n));
    node_give_back(r);
}

static void answer_all(struct node *n, struct requests_list *l, enum cell_result result)
{
    for (struct cell_request *r; (r = requests_pop(l));) {
        r->acquisition = NULL;
        node_answer(n, r, result);
    }
}

static void answer_authors(struct node *n, enum cell_result result)
{
    for (size_t i = 0; i < n->entry.authors.n; i++)
        if (n->entry.authors.v[i])
            node_answer(n, n->entry.authors.v[i], result);
    vec_clear(&n->entry.authors);
    answer_all(n, &n->entry.proofs, result == CELL_UNKNOWN ? CELL_UNAVAILABLE : result);
}

/* ---- grants and waits ---- */

/* If the client has gone meanwhile, or has still to claim the grant, nobody has received it, unless
 * another request has: then the deadline is gone. */
void requests_note_answered(struct node *n, const struct cell_request *r, int64_t now_us)
{
    const struct cell_command *c = &r->command;
    if (c->kind != CELL_ACQUIRE || r->verdict.result != CELL_DONE)
        return;
    struct cell_acquisition *a = cell_acquisition_find(n->replica.state, c->session.key,
                                                       c->name.data, c->name.len, &c->owner);
    const struct deadline *d = a ? a->local.deadline : NULL;
    if (!d || d->kind != DEADLINE_GRANT)
        return;
    if (r->gone || r->is_unclaimed)
        deadline_unreceived(n, a, now_us);
    else
        deadline_drop(n, &a->local.deadline);
}

/* The request is told that its outcome is not known: its grant, if it has one, is kept only if it
 * asks again. */
static void note_unknown(struct node *n, struct cell_request *r, int64_t now_us)
{
    r->gone = true;
    requests_note_answered(n, r, now_us);
}

/* Lists the holders that are in the way now. */
static void list_holders(struct node *n, const struct cell_acquisition *a, struct cell_verdict *v)
{
    cell_acquisitions blockers = {0};
    vec_clear(&v->people);
    cell_acquisition_blockers(n->replica.state, a, &blockers);
    for (size_t i = 0; i < blockers.n; i++)
        if (blockers.v[i]->stage != CELL_WAITING)
            cell_verdict_add_person(v, blockers.v[i]);
    vec_close(&blockers);
}

void requests_end_wait(struct node *n, struct deadline *d, int64_t now_us)
{
    struct cell_acquisition *a = d->acquisition;
    struct cell_request *r = a->local.waiter;
    a->local.waiter = NULL;
    requests_remove(&n->requests.waiting, r);
    r->acquisition = NULL;
    r->verdict.position = cell_acquisition_position(a);
    list_holders(n, a, &r->verdict);
    node_answer(n, r, CELL_TAKEN);
    deadline_acquisition(n, a, DEADLINE_PLACE, now_us + NODE_PLACE_MS * INT64_C(1000));
}

static void end_waits(struct node *n, int64_t now_us)
{
    struct cell_request *next;
    for (struct cell_request *r = n->requests.waiting.head; r; r = next) {
        next = r->next;
        if (r->until_us <= now_us)
            requests_end_wait(n, r->acquisition->local.deadline, now_us);
    }
}

/* ---- giving up ---- */

/* Their sessions, which do not expire while a keep-alive is under way, have a deadline again. */
static void give_up_proofs(struct node *n, int64_t now_us)
{
    for (struct cell_request *r; (r = requests_pop(&n->entry.proofs));) {
        struct cell_session *s = r->kind == CELL_REQUEST_KEEPALIVE
                                     ? cell_session_find(n->replica.state, r->command.session.key)
                                     : NULL;
        if (s)
            deadline_session(n, s, now_us + s->ttl_ms * INT64_C(1000));
        node_answer(n, r, CELL_UNAVAILABLE);
    }
}

/* The entry was found, but the append that was to prove it is not resolved. */
static void give_up_found(struct node *n, int64_t now_us)
{
    for (struct cell_request *r; (r = requests_pop(&n->requests.found));) {
        if (r->kind == CELL_REQUEST_COMMAND) {
            note_unknown(n, r, now_us);
            node_answer(n, r, CELL_UNKNOWN);
        } else {
            requests_push(&n->entry.proofs, r);
        }
    }
    give_up_proofs(n, now_us);
}

void requests_give_up(struct node *n, int64_t now_us)
{
    bool leads = node_leads(n);
    while (n->requests.queue.head &&
           now_us - n->requests.queue.head->received_us > NODE_UNKNOWN_MS * INT64_C(1000)) {
        struct cell_request *r = requests_pop(&n->requests.queue);
        if (r->kind == CELL_REQUEST_KEEPALIVE)
            n->requests.n_keepalives--;
        node_answer(n, r, leads ? CELL_UNAVAILABLE : CELL_NO_MASTER);
    }
    if (!leads || n->entry.bytes.len == 0)
        return;
    end_waits(n, now_us);
    if (now_us - n->entry.begun_us > NODE_UNKNOWN_MS * INT64_C(1000)) {
        for (size_t i = 0; i < n->entry.authors.n; i++)
            if (n->entry.authors.v[i]) {
                node_answer(n, n->entry.authors.v[i], CELL_UNKNOWN);
                n->entry.authors.v[i] = NULL;
            }
        give_up_proofs(n, now_us);
        give_up_found(n, now_us);
    }
}

/* ---- the end of a mastership, and of the node ---- */

void node_change_role(struct node *n, enum node_role role)
{
    if (n->role == role)
        return;
    n->role = role;
    if (n->config.on_change)
        n->config.on_change(n->config.context, role);
}

void node_step_down(struct node *n, enum cell_result of_entry)
{
    int64_t now_us = node_now_us(n);
    deadlines_clear(n);
    n->follow.changed_us = n->follow.read_us = now_us;
    n->snapshot.step = SNAPSHOT_IDLE;
    n->follow.checks_tail = false;
    n->entry.bytes.len = 0;
    node_change_role(n, NODE_FOLLOWING);
    answer_authors(n, of_entry);
    answer_all(n, &n->requests.found, CELL_UNKNOWN);
    answer_all(n, &n->requests.queue, CELL_NO_MASTER);
    n->requests.n_keepalives = 0;
    answer_all(n, &n->requests.waiting, CELL_UNKNOWN);
    answer_all(n, &n->requests.transfers, of_entry);
}

void node_stop(struct node *n)
{
    n->retires = true;
    answer_authors(n, CELL_UNKNOWN);
    answer_all(n, &n->requests.found, CELL_UNKNOWN);
    answer_all(n, &n->requests.queue, CELL_STOPPING);
    deadlines_clear(n);
    answer_all(n, &n->requests.waiting, CELL_UNKNOWN);
    answer_all(n, &n->requests.transfers, CELL_STOPPING);
}
