/* Deadlocks.  The nodes of the waits-for graph are agents; an agent that waits has edges to the
 * agents of whatever blocks it: holders and earlier waiters.  A holder that is only cached, and one
 * without a session (delayed), make no edge: they go away by themselves.  A waiter that was passed
 * over makes none in either direction.
 *
 * A waiter for one of several slots needs only one of their holders to go on, so its edges to them
 * count only if every one of these is stuck.  The search therefore has up to three steps.
 *   1. It follows all edges.  If that leads back to the agent that asks, and no slots are involved,
 *      that is a cycle.
 *   2. If slots are involved, it computes which of the agents found are stuck.  It begins with all
 *      of them that wait, and lets go on whoever waits for no stuck agent, or for one slot of which
 *      a holder is not stuck, until nothing changes.  What is left waits for each other for ever.
 *   3. It follows the edges between those that are stuck.  If that leads back to the agent that
 *      asks, the agent is part of the deadlock, and the path is the cycle that is named; otherwise
 *      it only waits for others that are in one.
 *
 * Requests of older entries (finds_knots) are judged by another second step, which begins with the
 * agent that asks and adds whoever waits for a stuck agent.  It misses deadlocks in which two
 * agents are stuck only because of each other and of the agent that asks.
 *
 * Cost: the first step visits each agent once, and of waiters for one name in one mode it expands
 * only the last one met, since that one's blockers include the others'.  The second step is
 * quadratic in what it found, and happens only if there is a path through a semaphore. */
#include "cell/state_internal.h"

#define FEW_ACQUISITIONS 32

struct search {
    struct cell_state *s;
    const struct acquisition *from;    /* the request that is judged */
    const struct acquisition *waiter;  /* whose blockers are being listed */
    struct agent *first, *last;        /* agents found, in the order in which they were */
    const struct acquisition *closing; /* the waiter that waits for the agent that asks */
    bool has_slots;
    bool only_stuck; /* edges to agents that are not stuck do not count */
};

static bool makes_edge(const struct cell_acquisition *a)
{
    return a->session && (a->stage == CELL_WAITING || !a->cached);
}

static bool is_slot_holder(const struct cell_acquisition *waiter,
                           const struct cell_acquisition *blocker)
{
    return blocker->stage != CELL_WAITING && waiter->name == blocker->name && waiter->slots > 1 &&
           waiter->mode == CELL_EXCLUSIVE && blocker->mode == CELL_EXCLUSIVE;
}

static bool visit(void *context, struct cell_acquisition *blocker)
{
    struct search *search = context;
    struct agent *agent = private_of(blocker)->agent;
    search->has_slots |= is_slot_holder(&search->waiter->pub, blocker);
    if (!makes_edge(blocker))
        return false;
    if (agent == search->from->agent) {
        search->closing = search->closing ? search->closing : search->waiter;
        return false;
    }
    if (agent->search == search->s->n_searches || (search->only_stuck && !agent->stuck))
        return false;
    agent->search = search->s->n_searches;
    agent->reached_by = search->waiter;
    agent->found_next = NULL;
    *(search->last ? &search->last->found_next : &search->first) = agent;
    search->last = agent;
    return false;
}

/* Lists the blockers of a waiter, unless those of a later one of its name and mode were listed. */
static void expand(struct search *search, const struct acquisition *a)
{
    struct cell_name *n = a->pub.name;
    if (n->search != search->s->n_searches) {
        n->search = search->s->n_searches;
        memset(n->searched, 0, sizeof n->searched);
    }
    const struct cell_acquisition **last = &n->searched[a->pub.mode];
    if (*last && !line_goes_before(*last, &a->pub))
        return;
    *last = &a->pub;
    search->waiter = a;
    line_each_blocker(&a->pub, true, visit, search);
}

static void follow_all(struct search *search)
{
    search->s->n_searches++;
    search->first = search->last = NULL;
    search->closing = NULL;
    expand(search, search->from);
    for (struct agent *agent = search->first; agent; agent = agent->found_next) {
        /* Without slots, or if all of them are stuck, the first path will do. */
        if (search->closing && (!search->has_slots || search->only_stuck))
            return;
        for (const struct acquisition *a = agent->waiting; a; a = a->agent_next)
            expand(search, a);
    }
}

/* ---- which agents are stuck ---- */

struct judgement {
    const struct acquisition *waiter, *from;
    bool needs_stuck; /* it cannot do without one that is stuck */
    bool has_slots, a_slot_will_be_free;
};

static bool judge(void *context, struct cell_acquisition *blocker)
{
    struct judgement *j = context;
    const struct agent *agent = private_of(blocker)->agent;
    bool stuck = makes_edge(blocker) && (agent == j->from->agent || agent->stuck);
    if (is_slot_holder(&j->waiter->pub, blocker)) {
        j->has_slots = true;
        j->a_slot_will_be_free |= !stuck;
    } else {
        j->needs_stuck = stuck;
    }
    return j->needs_stuck;
}

/* If a waiter is not stuck, those before it of its name and mode are not either. */
static bool is_stuck(const struct search *search, const struct acquisition *waiter)
{
    struct cell_name *n = waiter->pub.name;
    if (n->search != search->s->n_searches) {
        n->search = search->s->n_searches;
        memset(n->searched, 0, sizeof n->searched);
    }
    const struct cell_acquisition **free_one = &n->searched[waiter->pub.mode];
    if (*free_one && !line_goes_before(*free_one, &waiter->pub))
        return false;
    struct judgement j = {.waiter = waiter, .from = search->from};
    line_each_blocker(&waiter->pub, true, judge, &j);
    if (j.needs_stuck || (j.has_slots && !j.a_slot_will_be_free))
        return true;
    *free_one = &waiter->pub;
    return false;
}

static bool is_agent_stuck(const struct search *search, const struct agent *agent)
{
    for (const struct acquisition *a = agent->waiting; a; a = a->agent_next)
        if (is_stuck(search, a))
            return true;
    return false;
}

/* Says which of the agents found are stuck as long as the one that asks is, and whether that one is
 * then stuck, too.  Agents only stop to be stuck, or, without `finds_knots`, only begin to be: the
 * order in which they are judged makes no difference.  Those found first come first in their
 * lines. */
static bool judge_all(struct search *search, bool finds_knots)
{
    bool changed;
    for (struct agent *agent = search->first; agent; agent = agent->found_next)
        agent->stuck = finds_knots && agent->waiting;
    do {
        changed = false;
        search->s->n_searches++;
        for (struct agent *agent = search->first; agent; agent = agent->found_next) {
            if (agent->stuck != finds_knots || is_agent_stuck(search, agent) == finds_knots)
                continue;
            agent->stuck = !finds_knots;
            changed = true;
        }
    } while (changed);
    search->s->n_searches++;
    return is_stuck(search, search->from);
}

/* ---- naming the cycle ---- */

/* The path to the closing waiter was recorded backwards. */
static void name_cycle(const struct search *search, struct cell_verdict *ret)
{
    VEC(const struct acquisition *) path = {0};
    for (const struct acquisition *a = search->closing;; a = a->agent->reached_by) {
        *vec_push(&path) = a;
        if (a == search->from)
            break;
    }
    while (path.n > 0)
        cell_verdict_add_person(ret, &path.v[--path.n]->pub);
    vec_close(&path);
}

/* May somebody wait for this waiter?  Whoever is behind it, or waits below it. */
static bool may_have_followers(const struct cell_acquisition *a)
{
    const struct cell_name *n = a->name;
    if (n->below_waiting[INTENT_EXCLUSIVE] || n->below_waiting[INTENT_SHARED])
        return true;
    for (; n; n = n->parent)
        for (int i = 0; i < CELL_MODES; i++)
            if (n->lines[i].last && line_goes_before(a, n->lines[i].last))
                return true;
    return false;
}

/* Only somebody who waits for an acquisition of the agent can close a cycle.  That is mostly
 * nobody, which is quickly seen if the session has few acquisitions. */
static bool is_awaited(const struct acquisition *a)
{
    const struct cell_session *session = a->pub.session;
    if (a->agent->n_acquisitions == 1)
        return may_have_followers(&a->pub);
    if (session->n_acquisitions > FEW_ACQUISITIONS)
        return true;
    for (const struct cell_acquisition *x = session->first; x; x = x->session_next) {
        if (private_of(x)->agent != a->agent || !makes_edge(x) || x->passed_over)
            continue;
        if (x->stage == CELL_WAITING ? may_have_followers(x) : line_is_wanted(x))
            return true;
    }
    return false;
}

bool graph_closes_cycle(struct cell_state *s, const struct acquisition *a, bool finds_knots,
                        struct cell_verdict *ret)
{
    struct search search = {.s = s, .from = a};
    if (!is_awaited(a))
        return false;
    follow_all(&search);
    if (!search.closing)
        return false;
    if (search.has_slots) {
        if (!judge_all(&search, finds_knots))
            return false;
        search.only_stuck = true;
        follow_all(&search);
    }
    if (search.closing && ret)
        name_cycle(&search, ret);
    return search.closing;
}
