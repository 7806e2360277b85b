/* Deadlocks.  The nodes of the waits-for graph are agents; an agent that waits has edges to the
 * agents of whatever blocks it: holders and earlier waiters.  A holder that is only cached, and one
 * without a session (delayed), make no edge: they go away by themselves.  A waiter that was passed
 * over makes none in either direction.
 *
 * A waiter for one of several slots needs only one of their holders to go on, so its edges to them
 * count only if every one of these is stuck.  The search therefore has two steps.  It first follows
 * all edges.  If that leads back to the agent that asks, and no slots are involved, that is a
 * cycle. If slots are involved, it computes, among the agents found, which are stuck: those that
 * wait for a stuck agent, or only for stuck agents where one would do; the agent that asks is stuck
 * to begin with.
 *
 * Cost: the first step visits each agent once, and of waiters for one name in one mode it expands
 * only the last one met, since that one's blockers include the others'.  The second step is
 * quadratic in what it found, and happens only if there is a path through a semaphore. */
#include "cell/state_private.h"

#define FEW_ACQUISITIONS 32

struct search {
    struct cell_state *s;
    const struct acquisition *from;    /* the request that is judged */
    const struct acquisition *waiter;  /* whose blockers are being listed */
    struct agent *first, *last;        /* agents found, in the order in which they were */
    const struct acquisition *closing; /* the waiter that waits for the agent that asks */
    bool has_slots;
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
    if (agent->search == search->s->n_searches)
        return false;
    agent->search = search->s->n_searches;
    agent->reached_by = search->waiter;
    agent->stuck = 0;
    agent->found_next = NULL;
    agent->found_prev = search->last;
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
    expand(search, search->from);
    for (struct agent *agent = search->first; agent; agent = agent->found_next) {
        /* Without slots, the first path will do. */
        if (search->closing && !search->has_slots)
            return;
        for (const struct acquisition *a = agent->waiting; a; a = a->agent_next)
            expand(search, a);
    }
}

/* ---- which agents are stuck ---- */

#define STUCK_FROM 1 /* the number of the agent that asks */

struct judgement {
    const struct acquisition *waiter, *from;
    const struct agent *next; /* the stuck agent with the smallest number that it waits for */
    uint64_t next_stuck;
    bool needs_stuck; /* it cannot do without one that is stuck */
    bool has_slots, a_slot_will_be_free;
};

static bool judge(void *context, struct cell_acquisition *blocker)
{
    struct judgement *j = context;
    const struct agent *agent = private_of(blocker)->agent;
    uint64_t stuck = 0;
    if (makes_edge(blocker))
        stuck = agent == j->from->agent ? STUCK_FROM : agent->stuck;
    if (stuck && (!j->next || stuck < j->next_stuck)) {
        j->next = agent;
        j->next_stuck = stuck;
    }
    if (is_slot_holder(&j->waiter->pub, blocker)) {
        j->has_slots = true;
        j->a_slot_will_be_free |= !stuck;
    } else {
        j->needs_stuck |= stuck != 0;
    }
    return false;
}

static struct judgement judge_blockers(const struct search *search,
                                       const struct acquisition *waiter)
{
    struct judgement j = {.waiter = waiter, .from = search->from};
    line_each_blocker(&waiter->pub, true, judge, &j);
    return j;
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
    struct judgement j = judge_blockers(search, waiter);
    if (j.needs_stuck || (j.has_slots && !j.a_slot_will_be_free))
        return true;
    *free_one = &waiter->pub;
    return false;
}

static void judge_agent(const struct search *search, struct agent *agent, uint64_t *n_stuck)
{
    for (const struct acquisition *a = agent->waiting; a && !agent->stuck; a = a->agent_next)
        if (is_stuck(search, a)) {
            agent->stuck = ++*n_stuck;
            agent->stuck_by = a;
        }
}

/* Agents that were found last are nearest to the one that asks, and later in their lines. */
static bool judge_all(struct search *search)
{
    uint64_t n_stuck = STUCK_FROM, before;
    do {
        before = n_stuck;
        search->s->n_searches++;
        for (struct agent *agent = search->last; agent; agent = agent->found_prev)
            if (!agent->stuck)
                judge_agent(search, agent, &n_stuck);
    } while (n_stuck > before);
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

/* Each stuck agent waits for one with a smaller number. */
static void name_stuck_cycle(const struct search *search, struct cell_verdict *ret)
{
    const struct acquisition *a = search->from;
    for (;;) {
        struct judgement j = judge_blockers(search, a);
        cell_verdict_add_person(ret, &a->pub);
        if (j.next == search->from->agent)
            return;
        a = j.next->stuck_by;
    }
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

bool graph_closes_cycle(struct cell_state *s, const struct acquisition *a, struct cell_verdict *ret)
{
    struct search search = {.s = s, .from = a};
    if (!is_awaited(a))
        return false;
    s->n_searches++;
    follow_all(&search);
    if (!search.closing || (search.has_slots && !judge_all(&search)))
        return false;
    if (ret && search.has_slots)
        name_stuck_cycle(&search, ret);
    else if (ret)
        name_cycle(&search, ret);
    return true;
}
