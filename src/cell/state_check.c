/* The invariants S1 to S3, and that all lists and counts agree.  A snapshot from outside must pass,
 * and tests check after every command. */
#include "cell/state_internal.h"

/* ---- one name ---- */

static const char *holders_defect(const struct cell_state *s, const struct cell_name *n)
{
    size_t held[CELL_MODES] = {0}, count = 0;
    int64_t last = 0;
    for (const struct cell_acquisition *a = n->holders.first; a; a = a->next, count++) {
        held[a->mode]++;
        if (a->name != n || a->stage == CELL_WAITING || a->passed_over)
            return "S1: a holder does not hold";
        if (a->fence <= last || a->fence > s->fence || a->fence > n->last_fence)
            return "S3: the fences of holders do not grow";
        if ((a->stage == CELL_DELAYED) != (a->session == NULL) || (a->cached && !a->session))
            return "S1: only delayed holders have no session";
        if (a->mode == CELL_EXCLUSIVE && (a->slot >= a->slots || a->slots != n->slots))
            return "S1: a holder has a wrong slot";
        last = a->fence;
    }
    if (count != n->holders.n || memcmp(held, n->held, sizeof held) != 0)
        return "the holders are miscounted";
    return NULL;
}

/* S1: no holder of the name conflicts with another of it, of an ancestor or of a descendant. */
static const char *conflict_defect(const struct cell_name *n)
{
    for (int i = 0; i < CELL_MODES; i++) {
        if (!n->held[i])
            continue;
        for (int k = 0; k < CELL_MODES; k++)
            if (n->held[k] && conflicts[i][k] && !(i == CELL_EXCLUSIVE && k == CELL_EXCLUSIVE))
                return "S1: two holders conflict";
        for (int k = 0; k < INTENTS; k++)
            if (n->below_held[k] && conflicts[i][intention_mode((enum cell_intent)k)])
                return "S1: a holder conflicts with one below it";
    }
    return n->held[CELL_EXCLUSIVE] > n->slots ? "S1: there are more holders than slots" : NULL;
}

static const char *line_defect(const struct cell_name *n, enum cell_mode mode)
{
    size_t count = 0;
    for (const struct cell_acquisition *a = n->lines[mode].first; a; a = a->next, count++) {
        if (a->name != n || a->mode != mode || a->stage != CELL_WAITING || a->passed_over)
            return "a waiter is in the wrong line";
        if (a->prev && !line_goes_before(a->prev, a))
            return "a line is out of order";
        if (!line_is_blocked(a))
            return "S2: a waiter could be granted";
    }
    return count != n->lines[mode].n ? "a line is miscounted" : NULL;
}

static const char *waiters_defect(const struct cell_name *n)
{
    size_t lines = 0, arrivals = 0, passed_over = 0;
    for (int i = 0; i < CELL_MODES; i++) {
        const char *wrong = line_defect(n, (enum cell_mode)i);
        if (wrong)
            return wrong;
        lines += n->lines[i].n;
    }
    for (const struct acquisition *a = n->arrival_first; a; a = a->arrival_next, arrivals++)
        if (a->arrival_prev && a->arrival_prev->pub.arrival >= a->pub.arrival)
            return "arrivals are out of order";
    for (const struct cell_acquisition *a = n->passed_over.first; a; a = a->next, passed_over++)
        if (!a->passed_over || a->stage != CELL_WAITING || a->name != n)
            return "a waiter was not passed over";
    if (lines != n->n_waiting || arrivals != lines || passed_over != n->passed_over.n)
        return "the waiters of a name are miscounted";
    return NULL;
}

static const char *tree_defect(const struct cell_name *n)
{
    size_t held[INTENTS] = {0}, waiting[INTENTS] = {0}, n_waiting = 0, n_linked = 0;
    for (const struct cell_name *c = n->children; c; c = c->sibling_next) {
        if (c->parent != n || !c->is_live)
            return "a child does not know its parent";
        for (int i = 0; i < CELL_MODES; i++) {
            held[intent_of((enum cell_mode)i)] += c->held[i];
            waiting[intent_of((enum cell_mode)i)] += c->lines[i].n;
        }
        for (int i = 0; i < INTENTS; i++) {
            held[i] += c->below_held[i];
            waiting[i] += c->below_waiting[i];
        }
        n_waiting += c->n_waiting + c->below_waiting[0] + c->below_waiting[1] > 0;
    }
    for (const struct cell_name *c = n->waiting_children; c; c = c->waiting_next)
        n_linked += c->parent == n;
    if (n_waiting != n_linked || memcmp(held, n->below_held, sizeof held) != 0 ||
        memcmp(waiting, n->below_waiting, sizeof waiting) != 0)
        return "what is below a name is miscounted";
    return NULL;
}

static const char *name_defect(const struct cell_state *s, const struct cell_name *n)
{
    const char *wrong;
    bool should_live = n->n_acquisitions || n->children;
    if (n->is_live != should_live || n->is_free == n->is_live || n->last_fence > s->fence)
        return "a name is there that nobody uses";
    if (n->is_free && (n->last_fence == 0 || n->parent || n->value))
        return "a free name is not free";
    if (n->n_acquisitions != n->holders.n + n->n_waiting + n->passed_over.n)
        return "the acquisitions of a name are miscounted";
    if ((wrong = holders_defect(s, n)) || (wrong = conflict_defect(n)) || (wrong = tree_defect(n)))
        return wrong;
    return waiters_defect(n);
}

/* ---- one session ---- */

static const char *session_defect(const struct session *session)
{
    size_t count = 0, n_ended = 0;
    for (const struct cell_acquisition *a = session->pub.first; a; a = a->session_next, count++) {
        if (a->session != &session->pub ||
            (a->session_prev && a->session_prev->arrival >= a->arrival))
            return "the acquisitions of a session are out of order";
        if (!private_of(a)->agent || private_of(a)->agent->session != session)
            return "an acquisition has a wrong agent";
    }
    for (const struct ended *e = session->ended_first; e; e = e->session_next)
        n_ended += e->session == session;
    if (count != session->pub.n_acquisitions || n_ended != session->n_ended)
        return "a session is miscounted";
    return NULL;
}

/* ---- the whole ---- */

struct totals {
    size_t used, held, waiting, delayed, cached, free_names, value_bytes;
};

static void count_name(const struct cell_name *n, struct totals *t)
{
    t->used += n->n_acquisitions > 0;
    t->waiting += n->n_waiting + n->passed_over.n;
    t->free_names += n->is_free;
    t->value_bytes += n->value_len;
    for (const struct cell_acquisition *a = n->holders.first; a; a = a->next) {
        t->held += a->stage == CELL_HELD;
        t->delayed += a->stage == CELL_DELAYED;
        t->cached += a->cached;
        t->value_bytes += private_of(a)->value_len;
    }
    for (const struct acquisition *a = n->arrival_first; a; a = a->arrival_next)
        t->value_bytes += a->value_len;
    for (const struct cell_acquisition *a = n->passed_over.first; a; a = a->next)
        t->value_bytes += private_of(a)->value_len;
}

static const char *totals_defect(const struct cell_state *s, const struct totals *t)
{
    if (t->used != s->n_used_names || t->held != s->n_held || t->waiting != s->n_waiting ||
        t->delayed != s->n_delayed || t->cached != s->n_cached ||
        t->value_bytes != s->value_bytes || t->free_names != s->n_free)
        return "the state is miscounted";
    if (s->acquisitions.n != t->held + t->waiting)
        return "the table of acquisitions is wrong";
    return s->n_free > CELL_FREE_NAMES_MAX ? "there are too many free names" : NULL;
}

const char *state_defect(const struct cell_state *s)
{
    struct totals totals = {0};
    const char *wrong;
    const struct table_node *node = table_first(&s->names);
    for (; node; node = table_after(&s->names, node)) {
        if ((wrong = name_defect(s, (const struct cell_name *)node)))
            return wrong;
        count_name((const struct cell_name *)node, &totals);
    }
    for (node = table_first(&s->sessions); node; node = table_after(&s->sessions, node))
        if ((wrong = session_defect(heap_item(node, struct session, node))))
            return wrong;
    return totals_defect(s, &totals);
}

void cell_state_check(const struct cell_state *s)
{
    const char *wrong = state_defect(s);
    if (wrong)
        hf_check_failed(wrong, __FILE__, __LINE__);
}
