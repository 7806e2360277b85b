/* Lines: who goes before whom, what blocks whom, granting and ageing.
 *
 * A name has one line of waiters, kept as one list per mode.  Two waiters of one name and mode are
 * blocked by the same things, and the later one by the earlier one's blockers at least; so of each
 * list only the first can be grantable.  Granting one waiter never makes another one grantable that
 * was tried before it (a holder blocks whatever the waiter blocked), except the next of its own
 * list.  So one pass in order of rank grants all that can be granted. */
#include "cell/state_internal.h"

const bool conflicts[CELL_MODES][CELL_MODES] = {
    [CELL_EXCLUSIVE] = {true, true, true, true},
    [CELL_SHARED] = {true, false, true, false},
    [CELL_INTENTION_EXCLUSIVE] = {true, true, false, false},
    [CELL_INTENTION_SHARED] = {true, false, false, false},
};

static bool is_aged(const struct cell_acquisition *a) { return a->overtaken >= CELL_OVERTAKEN_MAX; }

/* Smaller is earlier.  Among those that were overtaken too often arrival alone decides, so that
 * each of them has a bounded number of others before it. */
static int64_t rank_of(const struct cell_acquisition *a)
{
    return is_aged(a) ? INT64_MIN : -(int64_t)a->priority;
}

bool line_goes_before(const struct cell_acquisition *a, const struct cell_acquisition *b)
{
    int64_t rank_a = rank_of(a), rank_b = rank_of(b);
    return rank_a != rank_b ? rank_a < rank_b : a->arrival < b->arrival;
}

/* ---- lists ---- */

static void insert_after(struct line *line, struct cell_acquisition *after,
                         struct cell_acquisition *a)
{
    a->prev = after;
    a->next = after ? after->next : line->first;
    *(a->prev ? &a->prev->next : &line->first) = a;
    *(a->next ? &a->next->prev : &line->last) = a;
    line->n++;
}

static void unlink_from(struct line *line, struct cell_acquisition *a)
{
    *(a->prev ? &a->prev->next : &line->first) = a->next;
    *(a->next ? &a->next->prev : &line->last) = a->prev;
    a->prev = a->next = NULL;
    line->n--;
}

static void insert_by_rank(struct line *line, struct cell_acquisition *a)
{
    struct cell_acquisition *after = line->last;
    while (after && line_goes_before(a, after))
        after = after->prev;
    insert_after(line, after, a);
}

static void insert_by_arrival(struct cell_name *n, struct acquisition *a)
{
    struct acquisition *after = n->arrival_last;
    while (after && after->pub.arrival > a->pub.arrival)
        after = after->arrival_prev;
    a->arrival_prev = after;
    a->arrival_next = after ? after->arrival_next : n->arrival_first;
    *(after ? &after->arrival_next : &n->arrival_first) = a;
    *(a->arrival_next ? &a->arrival_next->arrival_prev : &n->arrival_last) = a;
}

static void add_passed_over(struct acquisition *a)
{
    struct line *line = &a->pub.name->passed_over;
    struct cell_acquisition *after = line->last;
    while (after && after->arrival > a->pub.arrival)
        after = after->prev;
    insert_after(line, after, &a->pub);
}

void line_add(struct acquisition *a)
{
    struct cell_name *n = a->pub.name;
    if (a->pub.passed_over) {
        add_passed_over(a);
        return;
    }
    insert_by_rank(&n->lines[a->pub.mode], &a->pub);
    insert_by_arrival(n, a);
    name_count_waiter(n, a->pub.mode, 1);
    a->agent_next = a->agent->waiting;
    a->agent_prev = NULL;
    if (a->agent_next)
        a->agent_next->agent_prev = a;
    a->agent->waiting = a;
}

void line_remove(struct acquisition *a)
{
    struct cell_name *n = a->pub.name;
    if (a->pub.passed_over) {
        unlink_from(&n->passed_over, &a->pub);
        return;
    }
    unlink_from(&n->lines[a->pub.mode], &a->pub);
    *(a->arrival_prev ? &a->arrival_prev->arrival_next : &n->arrival_first) = a->arrival_next;
    *(a->arrival_next ? &a->arrival_next->arrival_prev : &n->arrival_last) = a->arrival_prev;
    a->arrival_prev = a->arrival_next = NULL;
    name_count_waiter(n, a->pub.mode, -1);
    *(a->agent_prev ? &a->agent_prev->agent_next : &a->agent->waiting) = a->agent_next;
    if (a->agent_next)
        a->agent_next->agent_prev = a->agent_prev;
    a->agent_prev = a->agent_next = NULL;
}

void holders_add(struct acquisition *a)
{
    struct line *line = &a->pub.name->holders;
    insert_after(line, line->last, &a->pub);
    name_count_holder(a->pub.name, a->pub.mode, 1);
}

void holders_remove(struct acquisition *a)
{
    struct cell_name *n = a->pub.name;
    unlink_from(&n->holders, &a->pub);
    name_count_holder(n, a->pub.mode, -1);
    if (a->pub.mode == CELL_EXCLUSIVE)
        slots_give(&n->slots_held, a->pub.slot);
}

/* ---- what blocks whom ---- */

/* Do holders of `mode` of the name itself block `a`?  There is at least one. */
static bool holders_conflict(const struct cell_acquisition *a, enum cell_mode mode)
{
    if (a->mode == CELL_EXCLUSIVE && mode == CELL_EXCLUSIVE)
        return a->name->held[CELL_EXCLUSIVE] >= a->slots;
    return conflicts[a->mode][mode];
}

/* Is there, at a name, a holder or an earlier waiter that conflicts with `mode`, which is that of
 * `a` itself or, at an ancestor, its intention? */
static bool is_blocked_at(const struct cell_name *n, const struct cell_acquisition *a,
                          enum cell_mode mode)
{
    for (int i = 0; i < CELL_MODES; i++) {
        enum cell_mode other = (enum cell_mode)i;
        if (n->held[other] && (n == a->name ? holders_conflict(a, other) : conflicts[mode][other]))
            return true;
        const struct cell_acquisition *first = n->lines[other].first;
        if (first && conflicts[mode][other] && line_goes_before(first, a))
            return true;
    }
    return false;
}

static bool waits_below(const struct cell_name *n, const struct cell_acquisition *a)
{
    for (const struct cell_name *c = n->waiting_children; c; c = c->waiting_next) {
        for (int i = 0; i < CELL_MODES; i++) {
            const struct cell_acquisition *first = c->lines[i].first;
            if (first && conflicts[a->mode][intention_mode(intent_of((enum cell_mode)i))] &&
                line_goes_before(first, a))
                return true;
        }
        if (waits_below(c, a))
            return true;
    }
    return false;
}

bool line_is_blocked(const struct cell_acquisition *a)
{
    const struct cell_name *n = a->name;
    bool may_wait_below = false;
    if (is_blocked_at(n, a, a->mode))
        return true;
    for (const struct cell_name *up = n->parent; up; up = up->parent)
        if (is_blocked_at(up, a, intention_mode(intent_of(a->mode))))
            return true;
    for (int i = 0; i < INTENTS; i++) {
        if (!conflicts[a->mode][intention_mode((enum cell_intent)i)])
            continue;
        if (n->below_held[i])
            return true;
        may_wait_below |= n->below_waiting[i] > 0;
    }
    return may_wait_below && waits_below(n, a);
}

struct blocker_search {
    const struct cell_acquisition *a;
    bool waiters;
    blocker_fn *each;
    void *context;
};

/* `seen_as[m]`: do acquisitions of this name with mode m conflict with a? */
static bool each_blocker_at(const struct blocker_search *b, const struct cell_name *n,
                            const bool seen_as[CELL_MODES])
{
    for (struct cell_acquisition *h = n->holders.first, *next; h; h = next) {
        next = h->next;
        if (n == b->a->name ? holders_conflict(b->a, h->mode) : seen_as[h->mode])
            if (b->each(b->context, h))
                return true;
    }
    for (int i = 0; b->waiters && i < CELL_MODES; i++) {
        struct cell_acquisition *w = seen_as[i] ? n->lines[i].first : NULL;
        for (; w && line_goes_before(w, b->a); w = w->next)
            if (b->each(b->context, w))
                return true;
    }
    return false;
}

static bool each_blocker_below(const struct blocker_search *b, const struct cell_name *n,
                               const bool seen_as[CELL_MODES])
{
    for (const struct cell_name *c = n->children; c; c = c->sibling_next)
        if (each_blocker_at(b, c, seen_as) || each_blocker_below(b, c, seen_as))
            return true;
    return false;
}

bool line_each_blocker(const struct cell_acquisition *a, bool waiters, blocker_fn *each,
                       void *context)
{
    const struct blocker_search b = {a, waiters, each, context};
    const struct cell_name *n = a->name;
    const bool *intention = conflicts[intention_mode(intent_of(a->mode))];
    bool below[CELL_MODES];
    for (int i = 0; i < CELL_MODES; i++)
        below[i] = conflicts[a->mode][intention_mode(intent_of((enum cell_mode)i))];
    if (each_blocker_at(&b, n, conflicts[a->mode]))
        return true;
    for (const struct cell_name *up = n->parent; up; up = up->parent)
        if (each_blocker_at(&b, up, intention))
            return true;
    return (below[CELL_EXCLUSIVE] || below[CELL_SHARED]) && each_blocker_below(&b, n, below);
}

/* ---- cached locks ---- */

bool line_is_wanted(const struct cell_acquisition *holder)
{
    const struct cell_name *n = holder->name;
    for (int i = 0; i < CELL_MODES; i++)
        if (n->lines[i].n && conflicts[holder->mode][i])
            return true;
    const bool *intention = conflicts[intention_mode(intent_of(holder->mode))];
    for (const struct cell_name *up = n->parent; up; up = up->parent)
        for (int i = 0; i < CELL_MODES; i++)
            if (up->lines[i].n && intention[i])
                return true;
    for (int i = 0; i < INTENTS; i++)
        if (n->below_waiting[i] && conflicts[holder->mode][intention_mode((enum cell_intent)i)])
            return true;
    return false;
}

static bool want(void *context, struct cell_acquisition *holder)
{
    if (holder->cached)
        state_effect(context, CELL_EFFECT_WANTED, holder);
    return false;
}

void line_want(struct cell_state *s, const struct cell_acquisition *a)
{
    if (s->n_cached)
        line_each_blocker(a, false, want, s);
}

/* ---- ageing ---- */

/* Everybody who came before `granted`, conflicts with it and still waits was overtaken. */
static void overtake_at(const struct cell_name *n, const struct cell_acquisition *granted,
                        const bool seen_as[CELL_MODES])
{
    struct acquisition *next;
    for (struct acquisition *w = n->arrival_first; w && w->pub.arrival < granted->arrival;
         w = next) {
        next = w->arrival_next;
        if (!seen_as[w->pub.mode] || is_aged(&w->pub))
            continue;
        w->pub.overtaken++;
        if (is_aged(&w->pub)) {
            struct line *line = &w->pub.name->lines[w->pub.mode];
            unlink_from(line, &w->pub);
            insert_by_rank(line, &w->pub);
        }
    }
}

static void overtake_below(const struct cell_name *n, const struct cell_acquisition *granted,
                           const bool seen_as[CELL_MODES])
{
    for (const struct cell_name *c = n->waiting_children; c; c = c->waiting_next) {
        overtake_at(c, granted, seen_as);
        overtake_below(c, granted, seen_as);
    }
}

static void overtake(const struct cell_acquisition *granted)
{
    const struct cell_name *n = granted->name;
    const bool *intention = conflicts[intention_mode(intent_of(granted->mode))];
    bool below[CELL_MODES];
    for (int i = 0; i < CELL_MODES; i++)
        below[i] = conflicts[granted->mode][intention_mode(intent_of((enum cell_mode)i))];
    overtake_at(n, granted, conflicts[granted->mode]);
    for (const struct cell_name *up = n->parent; up; up = up->parent)
        overtake_at(up, granted, intention);
    if (below[CELL_EXCLUSIVE] || below[CELL_SHARED])
        overtake_below(n, granted, below);
}

/* ---- granting ---- */

void grant(struct cell_state *s, struct acquisition *a)
{
    struct cell_name *n = a->pub.name;
    a->pub.stage = CELL_HELD;
    a->pub.fence = n->last_fence = ++s->fence;
    a->pub.slot = a->pub.mode == CELL_EXCLUSIVE ? slots_take(&n->slots_held) : 0;
    holders_add(a);
    s->n_held++;
    s->n_cached += a->pub.cached;
    state_effect(s, CELL_EFFECT_GRANTED, &a->pub);
    if (a->value) {
        struct cell_text value = {.data = a->value, .len = a->value_len};
        name_set_value(s, n, value, a->pub.fence);
        state_effect(s, CELL_EFFECT_VALUE, &a->pub);
    }
    overtake(&a->pub);
    if (a->pub.cached && line_is_wanted(&a->pub))
        state_effect(s, CELL_EFFECT_WANTED, &a->pub);
}

static bool comes_before(const struct candidate *a, const struct candidate *b)
{
    return a->rank != b->rank ? a->rank < b->rank : a->arrival < b->arrival;
}

/* The candidates are a heap: the one that goes first is at the top.  A candidate that ages
 * meanwhile keeps its rank here: it is blocked by what has just overtaken it. */
static void push_candidate(struct cell_state *s, struct cell_acquisition *a)
{
    struct candidate new = {.a = a, .rank = rank_of(a), .arrival = a->arrival};
    size_t i = s->candidates.n;
    (void)vec_push(&s->candidates);
    struct candidate *v = s->candidates.v;
    for (; i > 0 && comes_before(&new, &v[(i - 1) / 2]); i = (i - 1) / 2)
        v[i] = v[(i - 1) / 2];
    v[i] = new;
}

static struct cell_acquisition *pop_candidate(struct cell_state *s)
{
    struct candidate *v = s->candidates.v;
    struct cell_acquisition *top = v[0].a;
    size_t n = --s->candidates.n, i = 0;
    struct candidate last = v[n];
    for (size_t down; (down = 2 * i + 1) < n; i = down) {
        if (down + 1 < n && comes_before(&v[down + 1], &v[down]))
            down++;
        if (!comes_before(&v[down], &last))
            break;
        v[i] = v[down];
    }
    v[i] = last;
    return top;
}

static void push_heads(struct cell_state *s, struct cell_name *n)
{
    if (n->pass == s->n_passes)
        return;
    n->pass = s->n_passes;
    for (int i = 0; i < CELL_MODES; i++)
        if (n->lines[i].first)
            push_candidate(s, n->lines[i].first);
}

static void push_below(struct cell_state *s, struct cell_name *n)
{
    if (n->pass_below == s->n_passes)
        return;
    n->pass_below = s->n_passes;
    for (struct cell_name *c = n->waiting_children; c; c = c->waiting_next) {
        push_heads(s, c);
        push_below(s, c);
    }
}

void grant_touched(struct cell_state *s)
{
    s->n_passes++;
    vec_clear(&s->candidates);
    for (size_t i = 0; i < s->touched.n; i++) {
        struct cell_name *n = s->touched.v[i];
        if (!n->is_live)
            continue;
        for (struct cell_name *up = n; up; up = up->parent)
            push_heads(s, up);
        push_below(s, n);
    }
    while (s->candidates.n > 0) {
        struct acquisition *a = private_of(pop_candidate(s));
        if (line_is_blocked(&a->pub))
            continue;
        line_remove(a);
        s->n_waiting--;
        grant(s, a);
        struct cell_acquisition *next = a->pub.name->lines[a->pub.mode].first;
        if (next)
            push_candidate(s, next);
    }
}
