/* The waits-for graph of a simulated cell, drawn from the state's lists with rules of its own: the
 * conflicts of linearize.c, and the order of a line.  Simple and slow, so that it can be compared
 * with what the state finds. */
#include <string.h>

#include "sim/cell_check.h"

/* An acquisition, or the request that would become one. */
struct corner {
    int64_t session;
    const char *agent, *name;
    enum cell_mode mode;
    bool holds, asks; /* asks: it waits and was not passed over */
    uint32_t slots;
    uint32_t overtaken;
    int32_t priority;
    int64_t arrival;
    bool visited;
};
typedef VEC(struct corner) corners;

static void collect(const struct cell_state *s, corners *ret)
{
    for (const struct cell_session *session = cell_session_next(s, 0); session;
         session = cell_session_next(s, session->id.key))
        for (const struct cell_acquisition *a = session->first; a; a = a->session_next) {
            struct corner *c = vec_push(ret);
            size_t len;
            *c = (struct corner){.session = session->id.key,
                                 .agent = a->agent ? a->agent : "",
                                 .name = cell_name_text(a->name, &len),
                                 .mode = a->mode,
                                 .slots = a->slots,
                                 .holds = a->stage == CELL_HELD && !a->cached,
                                 .asks = a->stage == CELL_WAITING && !a->passed_over,
                                 .overtaken = a->overtaken,
                                 .priority = a->priority,
                                 .arrival = a->arrival};
        }
}

static bool is_same_agent(const struct corner *a, const struct corner *b)
{
    return a->session == b->session && strcmp(a->agent, b->agent) == 0;
}

static bool comes_before(const struct corner *a, const struct corner *b)
{
    bool first_a = a->overtaken >= CELL_OVERTAKEN_MAX, first_b = b->overtaken >= CELL_OVERTAKEN_MAX;
    if (first_a != first_b)
        return first_a;
    if (!first_a && a->priority != b->priority)
        return a->priority > b->priority;
    return a->arrival < b->arrival;
}

/* Does `waiter` wait for `other`?  Who waits for a name of several slots waits for any of its
 * holders; `any_slot` says whether that counts. */
static bool is_edge(const struct corner *waiter, const struct corner *other, bool any_slot)
{
    if (waiter->slots > 1 && !any_slot && strcmp(waiter->name, other->name) == 0)
        return false;
    return waiter->asks && waiter != other &&
           (other->holds || (other->asks && comes_before(other, waiter))) &&
           linear_conflict(waiter->name, waiter->mode, other->name, other->mode);
}

static bool agent_reaches(corners *all, const struct corner *from, const struct corner *target,
                          bool any_slot);

/* Does what this waiter waits for lead to the agent of `target`? */
static bool reaches(corners *all, struct corner *waiter, const struct corner *target, bool any_slot)
{
    waiter->visited = true;
    for (size_t i = 0; i < all->n; i++)
        if (is_edge(waiter, &all->v[i], any_slot) &&
            (is_same_agent(&all->v[i], target) || agent_reaches(all, &all->v[i], target, any_slot)))
            return true;
    return false;
}

static bool agent_reaches(corners *all, const struct corner *from, const struct corner *target,
                          bool any_slot)
{
    for (size_t i = 0; i < all->n; i++)
        if (!all->v[i].visited && all->v[i].asks && is_same_agent(&all->v[i], from) &&
            reaches(all, &all->v[i], target, any_slot))
            return true;
    return false;
}

/* Only what the new request waits for counts: if its agent has given up another one and does not
 * wait there any more, the service may not know that yet. */
bool check_graph_has_cycle(const struct cell_state *s, const struct cell_command *c, bool any_slot)
{
    char name[CELL_NAME_MAX + 1] = "", agent[CELL_AGENT_MAX + 1] = "";
    corners all = {0};
    memcpy(name, c->name.data, c->name.len);
    if (c->agent.data)
        memcpy(agent, c->agent.data, c->agent.len);
    collect(s, &all);
    struct corner *own = vec_push(&all);
    *own = (struct corner){.session = c->session.key,
                           .agent = agent,
                           .name = name,
                           .mode = c->mode,
                           .slots = c->slots,
                           .asks = true,
                           .priority = c->priority,
                           .arrival = INT64_MAX};
    bool found = reaches(&all, own, own, any_slot);
    vec_close(&all);
    return found;
}
