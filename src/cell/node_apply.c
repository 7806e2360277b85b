/* What an applied entry means: its commands change the state, and what they changed moves deadlines
 * and answers the requests that wait.  Keeps N3.  Owner: the thread that runs the node. */
#include <string.h>

#include "cell/node_internal.h"

static bool is_found(const struct node *n)
{
    return n->journal.call.op == JOURNAL_APPEND && n->journal.call.result == JOURNAL_FOUND;
}

/* Gives a request back.  If the entry was stored by an attempt whose answer was lost, the answer
 * waits for one more append, which proves that this node still leads (N3). */
static void reply(struct node *n, struct cell_request *r, enum cell_result result)
{
    r->verdict.result = result;
    if (is_found(n))
        requests_push(&n->requests.found, r);
    else
        node_give_back(r);
}

/* ---- effects ---- */

/* The answer to a grant shows the value of the name. */
static void show_value(const struct cell_acquisition *a, struct cell_request *r)
{
    size_t len;
    const char *value = cell_name_value(a->name, &len);
    r->out.len = 0;
    if (value)
        buf_put(&r->out, value, len);
}

/* A grant is answered now, or when there is a proof (requests_note_answered).  Until then it
 * is not withdrawn if nobody has received it yet. */
static void note_reply(struct node *n, struct cell_acquisition *a, struct cell_request *r,
                       int64_t now_us)
{
    if (!r->is_unclaimed && !a->local.is_counted) {
        a->local.is_counted = r->is_grant = true;
        r->earlier_us = r->received_us - a->local.asked_us;
    }
    if (is_found(n)) {
        if (a->local.deadline)
            deadline_acquisition(n, a, DEADLINE_GRANT, NEVER_US);
    } else if (r->is_unclaimed) {
        deadline_unreceived(n, a, now_us);
    } else {
        deadline_drop(n, &a->local.deadline);
    }
}

static void granted(struct node *n, struct cell_acquisition *a, int64_t now_us)
{
    struct cell_request *r = a->local.waiter;
    a->local.since_us = now_us;
    if (!r) {
        deadline_unreceived(n, a, now_us);
        return;
    }
    a->local.waiter = NULL;
    r->acquisition = NULL;
    requests_remove(&n->requests.waiting, r);
    r->is_unclaimed = r->claims;
    note_reply(n, a, r, now_us);
    r->verdict.fence = a->fence;
    r->verdict.slot = a->slot;
    r->verdict.position = 0;
    show_value(a, r);
    reply(n, r, CELL_DONE);
}

/* The acquisition ends while a request waits for it. */
static void ended(struct node *n, struct cell_acquisition *a)
{
    struct cell_request *r = a->local.waiter;
    n->lead.has_ended = true;
    n->counts.n_timed_out += a->local.asked_us && !a->local.is_counted;
    deadline_drop(n, &a->local.deadline);
    if (!r)
        return;
    a->local.waiter = NULL;
    r->acquisition = NULL;
    requests_remove(&n->requests.waiting, r);
    bool lives = a->session && cell_session_find(n->replica.state, a->session->id.key);
    reply(n, r, lives ? CELL_LOST : CELL_NO_SESSION);
}

static void follow_effect(struct node *n, const struct cell_effect *e, int64_t now_us)
{
    struct cell_acquisition *a = e->acquisition;
    switch (e->kind) {
    case CELL_EFFECT_OPENED:
        deadline_session(n, e->session, now_us + e->session->ttl_ms * INT64_C(1000));
        break;
    case CELL_EFFECT_CLOSED:
        deadline_drop(n, &e->session->local.deadline);
        break;
    case CELL_EFFECT_QUEUED:
        n->counts.n_queued++;
        a->local.since_us = now_us;
        deadline_acquisition(n, a, DEADLINE_PLACE, now_us + NODE_PLACE_MS * INT64_C(1000));
        break;
    case CELL_EFFECT_GRANTED:
        granted(n, a, now_us);
        break;
    case CELL_EFFECT_RELEASED:
        if (e->withdrawn)
            deadline_acquisition(n, a, DEADLINE_PLACE, now_us + NODE_PLACE_MS * INT64_C(1000));
        else
            ended(n, a);
        break;
    case CELL_EFFECT_LOST:
        n->counts.n_lost++;
        ended(n, a);
        break;
    case CELL_EFFECT_CANCELLED:
    case CELL_EFFECT_UNDELAYED:
        ended(n, a);
        break;
    case CELL_EFFECT_DELAYED:
        deadline_acquisition(n, a, DEADLINE_DELAY, now_us + a->delay_ms * INT64_C(1000));
        break;
    case CELL_EFFECT_VALUE:
    case CELL_EFFECT_WANTED:
        break;
    }
}

static void follow_effects(struct node *n, int64_t index, int64_t now_us)
{
    size_t n_effects;
    const struct cell_effect *e = cell_state_effects(n->replica.state, &n_effects);
    for (size_t i = 0; i < n_effects; i++) {
        if (node_leads(n))
            follow_effect(n, &e[i], now_us);
        if (n->config.on_effect)
            n->config.on_effect(n->config.context, index, &e[i]);
    }
    cell_state_clear_effects(n->replica.state);
}

/* ---- what became of the requests ---- */

/* Puts the request in the place of the one that waited for the acquisition, if there is one. */
static void begin_wait(struct node *n, struct cell_request *r, struct cell_acquisition *a)
{
    struct cell_request *before = a->local.waiter;
    if (before) {
        requests_remove(&n->requests.waiting, before);
        before->acquisition = NULL;
        before->verdict.position = cell_acquisition_position(a);
        reply(n, before, CELL_TAKEN);
    }
    a->local.waiter = r;
    r->acquisition = a;
    requests_push(&n->requests.waiting, r);
    deadline_request(n, a, r);
}

static void settle_acquire(struct node *n, struct cell_request *r, int64_t now_us)
{
    const struct cell_command *c = &r->command;
    struct cell_acquisition *a = NULL;
    if (r->verdict.result == CELL_DONE || r->verdict.position > 0)
        a = cell_acquisition_find(n->replica.state, c->session.key, c->name.data, c->name.len,
                                  &c->owner);
    r->until_us = r->received_us + r->wait_ms * 1000;
    if (a && !a->local.asked_us)
        a->local.asked_us = r->received_us;
    if (a && a->stage == CELL_HELD) {
        show_value(a, r);
        if (!r->gone)
            note_reply(n, a, r, now_us);
        else if (a->local.deadline)
            deadline_unreceived(n, a, now_us);
    } else if (a && r->wait_ms > 0 && !r->gone && r->until_us > now_us) {
        begin_wait(n, r, a);
        return;
    } else if (a && !a->local.waiter) {
        deadline_acquisition(n, a, DEADLINE_PLACE, now_us + NODE_PLACE_MS * INT64_C(1000));
    }
    reply(n, r, r->verdict.result);
}

/* A command of the request has been applied: it is answered, or waits. */
static void settle(struct node *n, struct cell_request *r, int64_t now_us)
{
    if (r->command.kind == CELL_OPEN)
        r->ttl_ms = r->command.ttl_ms;
    if (r->command.kind == CELL_ACQUIRE)
        settle_acquire(n, r, now_us);
    else
        reply(n, r, r->verdict.result);
}

/* ---- entries ---- */

bool node_apply(struct node *n, const void *data, size_t len, struct cell_request *const *authors,
                size_t n_authors, struct hf_err *err)
{
    struct entry_reader reader = {0};
    struct entry_head head;
    struct cell_command c;
    size_t i = 0;
    int64_t now_us = node_now_us(n);
    err->code = HF_OK;
    bool good = entry_open(&reader, data, len, &head, err);
    if (good && memcmp(head.previous, n->replica.chain, CELL_DIGEST_SIZE) != 0) {
        (void)hf_err_set(err, HF_INTERNAL, "entry %lld continues another history",
                         (long long)n->replica.index + 1);
        good = false;
    }
    while (good && entry_next(&reader, &c, err)) {
        struct cell_request *author = i < n_authors ? authors[i] : NULL;
        cell_state_apply(n->replica.state, &c, author ? &author->verdict : NULL);
        follow_effects(n, n->replica.index + 1, now_us);
        if (author)
            settle(n, author, now_us);
        i++;
    }
    entry_close(&reader);
    if (!good || err->code != HF_OK)
        return false;
    entry_chain(n->replica.chain, data, len, n->replica.chain);
    n->replica.index++;
    return true;
}
