/* See cell_model.h. */
#include "support/cell_model.h"

#include <stdio.h>
#include <string.h>

void model_open(struct model *m, const char *const *names)
{
    memset(m, 0, sizeof *m);
    m->names = names;
}

void model_close(struct model *m)
{
    vec_close(&m->ended);
    vec_close(&m->verdict.people);
    buf_close(&m->effects);
}

/* ---- conflicts ---- */

static bool modes_conflict(enum cell_mode a, enum cell_mode b)
{
    if (a == CELL_EXCLUSIVE || b == CELL_EXCLUSIVE)
        return true;
    return (a == CELL_SHARED && b == CELL_INTENTION_EXCLUSIVE) ||
           (b == CELL_SHARED && a == CELL_INTENTION_EXCLUSIVE);
}

/* How an acquisition locks the name of `len` bytes; -1: not at all. */
static int locks_as(const struct model *m, const struct model_acquisition *a, const char *name,
                    size_t len)
{
    const char *own = m->names[a->name];
    if (strlen(own) == len && memcmp(own, name, len) == 0)
        return (int)a->mode;
    if (strlen(own) > len && memcmp(own, name, len) == 0 && own[len] == '/')
        return a->mode == CELL_SHARED || a->mode == CELL_INTENTION_SHARED
                   ? CELL_INTENTION_SHARED
                   : CELL_INTENTION_EXCLUSIVE;
    return -1;
}

static bool conflict(const struct model *m, const struct model_acquisition *a,
                     const struct model_acquisition *b)
{
    const char *name = m->names[a->name];
    for (size_t len = 1; len <= strlen(name); len++) {
        int as_a = locks_as(m, a, name, len), as_b = locks_as(m, b, name, len);
        if (as_a >= 0 && as_b >= 0 && modes_conflict((enum cell_mode)as_a, (enum cell_mode)as_b))
            return true;
    }
    return false;
}

static bool goes_before(const struct model_acquisition *a, const struct model_acquisition *b)
{
    bool a_first = a->overtaken == CELL_OVERTAKEN_MAX, b_first = b->overtaken == CELL_OVERTAKEN_MAX;
    if (a_first || b_first)
        return a_first && b_first ? a->arrival < b->arrival : a_first;
    return a->priority > b->priority || (a->priority == b->priority && a->arrival < b->arrival);
}

static bool is_in_line(const struct model_acquisition *a)
{
    return a->exists && a->stage == MODEL_WAITING && !a->passed_over;
}

static bool is_holder(const struct model_acquisition *a)
{
    return a->exists && a->stage != MODEL_WAITING;
}

static bool compete_for_slots(const struct model_acquisition *a, const struct model_acquisition *b)
{
    return a->name == b->name && a->mode == CELL_EXCLUSIVE && b->mode == CELL_EXCLUSIVE;
}

static uint32_t n_slots_held(const struct model *m, const struct model_acquisition *a)
{
    uint32_t n = 0;
    for (int i = 0; i < m->n; i++)
        n += is_holder(&m->all[i]) && compete_for_slots(a, &m->all[i]);
    return n;
}

bool model_is_blocker(const struct model *m, int waiter, int other)
{
    const struct model_acquisition *w = &m->all[waiter], *o = &m->all[other];
    if (waiter == other || !conflict(m, w, o))
        return false;
    if (is_holder(o))
        return !compete_for_slots(w, o) || n_slots_held(m, w) >= w->slots;
    return is_in_line(o) && goes_before(o, w);
}

static bool is_blocked(const struct model *m, int a)
{
    for (int i = 0; i < m->n; i++)
        if (model_is_blocker(m, a, i))
            return true;
    return false;
}

bool model_is_wanted(const struct model *m, int holder)
{
    for (int i = 0; i < m->n; i++)
        if (is_in_line(&m->all[i]) && conflict(m, &m->all[i], &m->all[holder]))
            return true;
    return false;
}

/* ---- what happens ---- */

static void effect(struct model *m, const char *kind, int a)
{
    const struct model_acquisition *acquisition = &m->all[a];
    buf_printf(&m->effects, "%s%s %s", m->effects.len ? ", " : "", kind,
               m->names[acquisition->name]);
    if (acquisition->session >= 0)
        buf_printf(&m->effects, " s%d", acquisition->session + 1);
}

static void drop_value(struct model *m, int a)
{
    int name = m->all[a].name;
    if (m->of_name[name].value_fence != m->all[a].fence)
        return;
    m->of_name[name].value_fence = 0;
    m->of_name[name].value[0] = '\0';
    effect(m, "value", a);
}

static void grant(struct model *m, int a)
{
    struct model_acquisition *g = &m->all[a];
    g->stage = MODEL_HELD;
    g->fence = ++m->fence;
    m->of_name[g->name].last_fence = g->fence;
    g->slot = 0;
    for (int i = 0; g->mode == CELL_EXCLUSIVE && i < m->n; i++)
        if (i != a && is_holder(&m->all[i]) && compete_for_slots(g, &m->all[i]) &&
            m->all[i].slot == g->slot) {
            g->slot++;
            i = -1; /* look at all of them again */
        }
    effect(m, "granted", a);
    if (g->value[0]) {
        m->of_name[g->name].value_fence = g->fence;
        memcpy(m->of_name[g->name].value, g->value, sizeof g->value);
        effect(m, "value", a);
    }
    for (int i = 0; i < m->n; i++) {
        struct model_acquisition *w = &m->all[i];
        if (is_in_line(w) && w->arrival < g->arrival && conflict(m, w, g) &&
            w->overtaken < CELL_OVERTAKEN_MAX)
            w->overtaken++;
    }
    if (g->cached && model_is_wanted(m, a))
        m->n_wanted[a]++;
}

/* The first in line that can be granted, over all names, until there is none. */
static void grant_all(struct model *m)
{
    for (;;) {
        int first = -1;
        for (int i = 0; i < m->n; i++)
            if (is_in_line(&m->all[i]) && (first < 0 || goes_before(&m->all[i], &m->all[first])) &&
                !is_blocked(m, i))
                first = i;
        if (first < 0)
            return;
        grant(m, first);
    }
}

static void end(struct model *m, int a, const char *kind, bool remember)
{
    struct model_acquisition *e = &m->all[a];
    effect(m, kind, a);
    if (e->stage == MODEL_HELD)
        drop_value(m, a);
    e->exists = false;
    if (remember)
        *vec_push(&m->ended) =
            (struct model_ended){.name = e->name, .session = e->session, .owner = e->owner};
}

/* ---- deadlocks ---- */

static bool same_agent(const struct model_acquisition *a, const struct model_acquisition *b)
{
    return a->session == b->session && strcmp(a->agent, b->agent) == 0;
}

static bool makes_edge(const struct model_acquisition *a)
{
    return a->session >= 0 && (a->stage == MODEL_WAITING || !a->cached);
}

/* stuck[i]: the agent of acquisition i cannot go on as long as that of `from` cannot. */
static bool must_wait_for_stuck(const struct model *m, const bool stuck[MODEL_MAX], int waiter)
{
    int n_slots = 0, n_stuck_slots = 0;
    for (int i = 0; i < m->n; i++) {
        if (!model_is_blocker(m, waiter, i))
            continue;
        bool is_stuck = makes_edge(&m->all[i]) && stuck[i];
        if (is_holder(&m->all[i]) && compete_for_slots(&m->all[waiter], &m->all[i])) {
            n_slots++;
            n_stuck_slots += is_stuck;
        } else if (is_stuck) {
            return true;
        }
    }
    return n_slots > 0 && n_slots == n_stuck_slots;
}

static void set_agent(const struct model *m, bool of[MODEL_MAX], int of_whom, bool value)
{
    for (int i = 0; i < m->n; i++)
        if (m->all[i].exists && same_agent(&m->all[i], &m->all[of_whom]))
            of[i] = value;
}

static bool is_agent_stuck(const struct model *m, const bool stuck[MODEL_MAX], int of_whom)
{
    for (int w = 0; w < m->n; w++)
        if (is_in_line(&m->all[w]) && same_agent(&m->all[w], &m->all[of_whom]) &&
            must_wait_for_stuck(m, stuck, w))
            return true;
    return false;
}

/* Does a path from the waiter through agents that are stuck lead to the agent of `to`? */
static bool leads_to(const struct model *m, const bool stuck[MODEL_MAX], bool visited[MODEL_MAX],
                     int waiter, int to)
{
    visited[waiter] = true;
    for (int i = 0; i < m->n; i++) {
        if (!model_is_blocker(m, waiter, i) || !makes_edge(&m->all[i]) || !stuck[i])
            continue;
        if (same_agent(&m->all[i], &m->all[to]))
            return true;
        for (int w = 0; w < m->n; w++)
            if (is_in_line(&m->all[w]) && same_agent(&m->all[w], &m->all[i]) && !visited[w] &&
                leads_to(m, stuck, visited, w, to))
                return true;
    }
    return false;
}

/* Who cannot go on?  All who wait, less those who wait for nobody who cannot; or, as older versions
 * had it, the one that asks, and those who wait for somebody who cannot. */
static bool closes_cycle(const struct model *m, int from, bool finds_knots)
{
    bool stuck[MODEL_MAX] = {0}, visited[MODEL_MAX] = {0};
    for (int w = 0; w < m->n; w++)
        if (finds_knots && is_in_line(&m->all[w]))
            set_agent(m, stuck, w, true);
    set_agent(m, stuck, from, true);
    for (bool changed = true; changed;) {
        changed = false;
        for (int w = 0; w < m->n; w++) {
            if (!is_in_line(&m->all[w]) || same_agent(&m->all[w], &m->all[from]) ||
                stuck[w] != finds_knots || is_agent_stuck(m, stuck, w) == finds_knots)
                continue;
            set_agent(m, stuck, w, !finds_knots);
            changed = true;
        }
    }
    return must_wait_for_stuck(m, stuck, from) && leads_to(m, stuck, visited, from, from);
}

/* ---- lists ---- */

static void sort(const struct model *m, int *list, int n,
                 bool (*before)(const struct model_acquisition *, const struct model_acquisition *))
{
    for (int i = 1; i < n; i++)
        for (int k = i; k > 0 && before(&m->all[list[k]], &m->all[list[k - 1]]); k--) {
            int other = list[k];
            list[k] = list[k - 1];
            list[k - 1] = other;
        }
}

static bool waits_before(const struct model_acquisition *a, const struct model_acquisition *b)
{
    if (a->passed_over != b->passed_over)
        return b->passed_over;
    return a->passed_over ? a->arrival < b->arrival : goes_before(a, b);
}

static bool was_granted_before(const struct model_acquisition *a, const struct model_acquisition *b)
{
    return a->fence < b->fence;
}

int model_waiters(const struct model *m, int name, int ret[MODEL_MAX])
{
    int n = 0;
    for (int i = 0; i < m->n; i++)
        if (m->all[i].exists && m->all[i].stage == MODEL_WAITING && m->all[i].name == name)
            ret[n++] = i;
    sort(m, ret, n, waits_before);
    return n;
}

int model_holders(const struct model *m, int name, int ret[MODEL_MAX])
{
    int n = 0;
    for (int i = 0; i < m->n; i++)
        if (is_holder(&m->all[i]) && m->all[i].name == name)
            ret[n++] = i;
    sort(m, ret, n, was_granted_before);
    return n;
}

/* ---- commands ---- */

static int name_of(const struct model *m, const struct cell_text *text)
{
    for (int i = 0; m->names[i]; i++)
        if (strlen(m->names[i]) == text->len && memcmp(m->names[i], text->data, text->len) == 0)
            return i;
    return -1;
}

static int find(const struct model *m, int session, int name, const struct cell_owner *owner)
{
    for (int i = 0; i < m->n; i++)
        if (m->all[i].exists && m->all[i].session == session && m->all[i].name == name &&
            cell_owner_equal(&m->all[i].owner, owner))
            return i;
    return -1;
}

static bool has_ended(const struct model *m, int session, int name, const struct cell_owner *owner)
{
    for (size_t i = 0; i < m->ended.n; i++)
        if (m->ended.v[i].session == session && m->ended.v[i].name == name &&
            cell_owner_equal(&m->ended.v[i].owner, owner))
            return true;
    return false;
}

static void say_taken(struct model *m, int a, bool has_place)
{
    m->verdict.result = CELL_TAKEN;
    for (int i = 0; i < m->n; i++)
        if (is_holder(&m->all[i]) && model_is_blocker(m, a, i) &&
            m->verdict.people.n < CELL_PEOPLE_MAX)
            (void)vec_push(&m->verdict.people);
    m->verdict.position = has_place;
    for (int i = 0; has_place && i < m->n; i++)
        m->verdict.position += i != a && is_in_line(&m->all[i]) &&
                               m->all[i].name == m->all[a].name &&
                               goes_before(&m->all[i], &m->all[a]);
}

static void want(struct model *m, int waiter)
{
    for (int i = 0; i < m->n; i++)
        if (is_holder(&m->all[i]) && m->all[i].cached && model_is_blocker(m, waiter, i))
            m->n_wanted[i]++;
}

static void say_granted(struct model *m, int a)
{
    m->verdict.fence = m->all[a].fence;
    m->verdict.slot = m->all[a].slot;
}

static void repeat(struct model *m, const struct cell_command *c, int a)
{
    struct model_acquisition *r = &m->all[a];
    m->verdict.repeated = true;
    m->verdict.mode = r->mode;
    if (r->mode != c->mode) {
        m->verdict.result = CELL_MODE_CONFLICT;
        return;
    }
    bool newly_cached = c->cached && !r->cached && r->mode == CELL_SHARED;
    r->cached = c->cached && r->mode == CELL_SHARED;
    if (r->stage == MODEL_HELD) {
        m->n_wanted[a] += newly_cached && model_is_wanted(m, a);
        say_granted(m, a);
        return;
    }
    bool returns = r->passed_over;
    r->passed_over = false;
    if (!is_blocked(m, a)) {
        grant(m, a);
        say_granted(m, a);
    } else if (c->queue && closes_cycle(m, a, c->finds_knots)) {
        m->verdict.result = CELL_DEADLOCK;
        end(m, a, "cancelled", false);
    } else {
        if (returns)
            want(m, a);
        say_taken(m, a, true);
    }
}

/* Other exclusive acquisitions of the name asked for another number of slots. */
static uint32_t other_slots(const struct model *m, int name, uint32_t slots)
{
    for (int i = 0; i < m->n; i++)
        if (m->all[i].exists && m->all[i].name == name && m->all[i].mode == CELL_EXCLUSIVE &&
            m->all[i].slots != slots)
            return m->all[i].slots;
    return 0;
}

static void acquire(struct model *m, const struct cell_command *c, int session, int name)
{
    int a = find(m, session, name, &c->owner);
    uint32_t others = c->mode == CELL_EXCLUSIVE ? other_slots(m, name, c->slots) : 0;
    m->verdict.mode = c->mode;
    if (a >= 0) {
        repeat(m, c, a);
        return;
    }
    if (has_ended(m, session, name, &c->owner)) {
        m->verdict.result = CELL_LOST;
        return;
    }
    if (others) {
        m->verdict.result = CELL_SLOTS_CONFLICT;
        m->verdict.slots = others;
        return;
    }
    for (a = 0; a < m->n && m->all[a].exists;)
        a++;
    hf_check(a < MODEL_MAX);
    m->n = a < m->n ? m->n : a + 1;
    struct model_acquisition *r = &m->all[a];
    *r = (struct model_acquisition){.exists = true,
                                    .stage = MODEL_WAITING,
                                    .name = name,
                                    .session = session,
                                    .owner = c->owner,
                                    .mode = c->mode,
                                    .slots = c->slots,
                                    .delay_ms = c->delay_ms,
                                    .priority = c->priority,
                                    .cached = c->cached && c->mode == CELL_SHARED,
                                    .arrival = m->arrival + 1};
    snprintf(r->agent, sizeof r->agent, "%.*s", (int)c->agent.len,
             c->agent.len ? c->agent.data : "");
    snprintf(r->value, sizeof r->value, "%.*s", (int)c->value.len,
             c->value.len ? c->value.data : "");
    if (!is_blocked(m, a)) {
        m->arrival++;
        grant(m, a);
        say_granted(m, a);
    } else if (!c->queue) {
        say_taken(m, a, false);
        r->exists = false;
    } else if (closes_cycle(m, a, c->finds_knots)) {
        m->verdict.result = CELL_DEADLOCK;
        r->exists = false;
    } else {
        m->arrival++;
        effect(m, "queued", a);
        want(m, a);
        say_taken(m, a, true);
    }
}

static void withdraw(struct model *m, int a)
{
    effect(m, "released*", a);
    drop_value(m, a);
    m->all[a].stage = MODEL_WAITING;
    m->all[a].passed_over = true;
    m->all[a].fence = 0;
    m->all[a].slot = 0;
}

static void to_owner(struct model *m, const struct cell_command *c, int session, int name)
{
    int a = find(m, session, name, &c->owner);
    struct model_acquisition *r = &m->all[a < 0 ? 0 : a];
    bool is_held = a >= 0 && r->stage == MODEL_HELD;
    bool is_stale = is_held && c->fence != r->fence && (c->fence || c->kind == CELL_VALUE);
    if (a >= 0)
        m->verdict.mode = r->mode;
    else if (c->kind == CELL_RELEASE && !has_ended(m, session, name, &c->owner))
        *vec_push(&m->ended) =
            (struct model_ended){.name = name, .session = session, .owner = c->owner};
    if (a < 0 || (is_held && c->kind == CELL_CANCEL) ||
        (!is_held && (c->kind == CELL_WITHDRAW || c->kind == CELL_VALUE))) {
        m->verdict.result = CELL_LOST;
    } else if (is_stale && c->kind != CELL_CANCEL) {
        m->verdict.result = CELL_STALE_FENCE;
    } else if (c->kind == CELL_WITHDRAW) {
        withdraw(m, a);
    } else if (c->kind == CELL_VALUE) {
        snprintf(m->of_name[name].value, sizeof m->of_name[name].value, "%.*s", (int)c->value.len,
                 c->value.len ? c->value.data : "");
        m->of_name[name].value_fence = c->value.data ? r->fence : 0;
        effect(m, "value", a);
    } else {
        end(m, a, is_held ? "released" : "cancelled", true);
    }
}

static void end_session(struct model *m, int session, bool is_lost)
{
    for (;;) { /* in the order of their arrival */
        int a = -1;
        for (int i = 0; i < m->n; i++)
            if (m->all[i].exists && m->all[i].session == session &&
                (a < 0 || m->all[i].arrival < m->all[a].arrival))
                a = i;
        if (a < 0)
            break;
        struct model_acquisition *r = &m->all[a];
        if (r->stage == MODEL_HELD && is_lost && r->delay_ms) {
            effect(m, "lost", a);
            drop_value(m, a);
            r->stage = MODEL_DELAYED;
            r->session = -1;
            r->cached = false;
            effect(m, "delayed", a);
        } else {
            end(m, a,
                r->stage == MODEL_WAITING ? "cancelled"
                : is_lost                 ? "lost"
                                          : "released",
                false);
        }
    }
    size_t n = 0;
    for (size_t i = 0; i < m->ended.n; i++)
        if (m->ended.v[i].session != session)
            m->ended.v[n++] = m->ended.v[i];
    m->ended.n = n;
    m->is_open[session] = false;
    buf_printf(&m->effects, "%sclosed s%d", m->effects.len ? ", " : "", session + 1);
}

static void free_name(struct model *m, const struct cell_command *c, int name)
{
    m->verdict.result = CELL_LOST;
    for (;;) { /* in the order of their fences */
        int holders[MODEL_MAX], a = -1, n = model_holders(m, name, holders);
        for (int i = 0; i < n && a < 0; i++)
            if (c->kind == CELL_BREAK ||
                (m->all[holders[i]].stage == MODEL_DELAYED && m->all[holders[i]].fence == c->fence))
                a = holders[i];
        if (a < 0)
            return;
        m->verdict.result = CELL_DONE;
        if (m->all[a].stage == MODEL_DELAYED)
            end(m, a, "undelayed", false);
        else
            end(m, a, "lost", true);
    }
}

static void forget(struct model *m)
{
    size_t n = 0;
    for (size_t i = 0; i < m->ended.n; i++)
        if (!m->ended.v[i].is_old) {
            m->ended.v[n] = m->ended.v[i];
            m->ended.v[n++].is_old = true;
        }
    m->ended.n = n;
}

static void apply(struct model *m, const struct cell_command *c)
{
    int session = (int)c->session.key - 1, name = c->name.len ? name_of(m, &c->name) : -1;
    uint8_t secret = (uint8_t)(c->session.key % 255 + 1);
    bool may_act = c->by_master || c->kind == CELL_EXPIRE || c->kind == CELL_CANCEL ||
                   c->kind == CELL_WITHDRAW || c->session.secret[0] == secret;
    if (c->kind == CELL_UNDELAY || c->kind == CELL_BREAK) {
        free_name(m, c, name);
    } else if (c->kind == CELL_FORGET) {
        forget(m);
    } else if (c->kind == CELL_OPEN) {
        m->verdict.repeated = m->is_open[session];
        if (!m->is_open[session])
            buf_printf(&m->effects, "opened s%d", session + 1);
        m->is_open[session] = true;
    } else if (session < 0 || !m->is_open[session] || !may_act) {
        m->verdict.result = CELL_NO_SESSION;
        m->verdict.mode = c->kind == CELL_ACQUIRE ? c->mode : CELL_EXCLUSIVE;
    } else if (c->kind == CELL_CLOSE || c->kind == CELL_EXPIRE) {
        end_session(m, session, c->kind == CELL_EXPIRE);
    } else if (c->kind == CELL_ACQUIRE) {
        acquire(m, c, session, name);
    } else {
        to_owner(m, c, session, name);
    }
}

void model_apply(struct model *m, const struct cell_command *c)
{
    vec_clear(&m->verdict.people);
    m->verdict = (struct cell_verdict){.people = m->verdict.people};
    m->effects.len = 0;
    memset(m->n_wanted, 0, sizeof m->n_wanted);
    apply(m, c);
    grant_all(m);
    while (m->n > 0 && !m->all[m->n - 1].exists)
        m->n--;
    buf_char(&m->effects, '\0');
}
