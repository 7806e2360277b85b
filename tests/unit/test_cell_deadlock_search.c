/* The detection of deadlocks, compared with a search of what could still happen, over random graphs
 * of slots, shared locks, intentions, hierarchies and sets.
 *
 * Agents do one thing at a time: an agent that waits does nothing else, and one that does not wait
 * may give back all it has.  The search tries every order in which they could do so.  A request is
 * a deadlock if it would be granted in none of these orders.  The search knows nothing of the
 * graph: only which locks exclude each other, and the order of a line. */
#include "support/fixtures.h"

#include <stdio.h>

#include "base/random.h"
#include "support/cell_fixture.h"

#define AGENTS 6
#define GRAPHS 3000
#define STEPS 60
#define LOCKS_MAX 64

static const struct {
    const char *name;
    uint32_t slots;
} names[] = {{"a", 1},     {"b", 1}, {"a/x", 1}, {"a/y", 1},
             {"a/x/1", 1}, {"p", 2}, {"q", 3},   {"p/z", 2}};
#define NAMES (sizeof names / sizeof names[0])

/* An acquisition. */
struct claim {
    int64_t agent; /* its session */
    const char *name;
    enum cell_mode mode;
    uint32_t slots;
    int32_t priority;
    int64_t arrival;
    bool holds, is_gone;
};

struct scene {
    struct claim all[LOCKS_MAX];
    size_t n;
};

static struct cell_fixture d;
static struct random dice;

/* ---- what excludes what ---- */

static bool modes_exclude(enum cell_mode a, enum cell_mode b)
{
    bool intends_a = a == CELL_INTENTION_EXCLUSIVE || a == CELL_INTENTION_SHARED;
    bool intends_b = b == CELL_INTENTION_EXCLUSIVE || b == CELL_INTENTION_SHARED;
    if (intends_a && intends_b)
        return false;
    if (a == CELL_EXCLUSIVE || b == CELL_EXCLUSIVE)
        return true;
    return a == CELL_INTENTION_EXCLUSIVE || b == CELL_INTENTION_EXCLUSIVE;
}

static enum cell_mode seen_from_above(enum cell_mode mode)
{
    return mode == CELL_EXCLUSIVE || mode == CELL_INTENTION_EXCLUSIVE ? CELL_INTENTION_EXCLUSIVE
                                                                      : CELL_INTENTION_SHARED;
}

static bool is_below(const char *name, const char *above)
{
    size_t len = strlen(above);
    return strncmp(name, above, len) == 0 && name[len] == '/';
}

static bool exclude(const struct claim *a, const struct claim *b)
{
    if (strcmp(a->name, b->name) == 0)
        return modes_exclude(a->mode, b->mode);
    if (is_below(a->name, b->name))
        return modes_exclude(seen_from_above(a->mode), b->mode);
    return is_below(b->name, a->name) && modes_exclude(a->mode, seen_from_above(b->mode));
}

static bool share_slots(const struct claim *a, const struct claim *b)
{
    return strcmp(a->name, b->name) == 0 && a->mode == CELL_EXCLUSIVE && b->mode == CELL_EXCLUSIVE;
}

static bool goes_before(const struct claim *a, const struct claim *b)
{
    return a->priority != b->priority ? a->priority > b->priority : a->arrival < b->arrival;
}

/* ---- what could still happen ---- */

static bool can_be_granted(const struct scene *s, const struct claim *w)
{
    uint32_t n_slots = 0;
    for (size_t i = 0; i < s->n; i++) {
        const struct claim *other = &s->all[i];
        if (other == w || other->is_gone || !exclude(w, other))
            continue;
        if (!other->holds && goes_before(other, w))
            return false;
        if (other->holds && !share_slots(w, other))
            return false;
        n_slots += other->holds;
    }
    return n_slots < w->slots;
}

static void grant_all(struct scene *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (!s->all[i].is_gone && !s->all[i].holds && can_be_granted(s, &s->all[i])) {
            s->all[i].holds = true;
            i = (size_t)-1; /* from the beginning: others may go on */
        }
}

static bool waits(const struct scene *s, int64_t agent)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->all[i].agent == agent && !s->all[i].is_gone && !s->all[i].holds)
            return true;
    return false;
}

/* Is there an order in which the last claim is granted?  `done` has a bit for each agent that has
 * given everything back. */
static bool may_be_granted(const struct scene *before, unsigned done, bool tried[1 << (AGENTS + 1)])
{
    struct scene s = *before;
    grant_all(&s);
    if (s.all[s.n - 1].holds)
        return true;
    if (tried[done])
        return false;
    tried[done] = true;
    for (int64_t agent = 1; agent <= AGENTS; agent++) {
        if (done >> agent & 1 || waits(&s, agent))
            continue;
        struct scene after = s;
        for (size_t i = 0; i < after.n; i++)
            after.all[i].is_gone |= after.all[i].agent == agent;
        if (may_be_granted(&after, done | 1u << agent, tried))
            return true;
    }
    return false;
}

/* ---- the comparison ---- */

static void look_at_all(struct scene *s)
{
    s->n = 0;
    for (int64_t agent = 1; agent <= AGENTS; agent++) {
        const struct cell_session *session = cell_session_find(d.state, agent);
        for (const struct cell_acquisition *a = session->first; a; a = a->session_next) {
            size_t len;
            assert_true(s->n < LOCKS_MAX - 1);
            s->all[s->n++] = (struct claim){.agent = agent,
                                            .name = cell_name_text(a->name, &len),
                                            .mode = a->mode,
                                            .slots = a->slots,
                                            .priority = a->priority,
                                            .arrival = a->arrival,
                                            .holds = a->stage == CELL_HELD};
        }
    }
}

/* The owner of a request that the agent has not made yet. */
static const char *new_owner(void)
{
    static char owner[16];
    static unsigned n;
    snprintf(owner, sizeof owner, "%x", ++n);
    return owner;
}

static enum cell_result ask_and_compare(int64_t agent, uint64_t seed)
{
    static const enum cell_mode modes[] = {
        CELL_EXCLUSIVE, CELL_EXCLUSIVE,           CELL_EXCLUSIVE,       CELL_SHARED,
        CELL_SHARED,    CELL_INTENTION_EXCLUSIVE, CELL_INTENTION_SHARED};
    struct scene s;
    bool tried[1 << (AGENTS + 1)] = {0};
    size_t i = random_below(&dice, NAMES);
    struct claim ask = {.agent = agent,
                        .name = names[i].name,
                        .mode = modes[random_below(&dice, sizeof modes / sizeof modes[0])],
                        .priority = random_below(&dice, 8) == 0 ? 1 : 0,
                        .arrival = INT64_MAX};
    ask.slots = ask.mode == CELL_EXCLUSIVE ? names[i].slots : 1;
    look_at_all(&s);
    s.all[s.n++] = ask;
    bool is_deadlock = !may_be_granted(&s, 0, tried);
    enum cell_result result =
        cell_fixture_ask(&d, CELL_ACQUIRE, .session = agent, .name = ask.name, .owner = new_owner(),
                         .mode = ask.mode, .slots = ask.slots, .priority = ask.priority)
            ->result;
    if ((result == CELL_DEADLOCK) != is_deadlock)
        fail_msg("seed %llu: the request of s%lld for %s, mode %d, is %s, but %s",
                 (unsigned long long)seed, (long long)agent, ask.name, (int)ask.mode,
                 result == CELL_DEADLOCK ? "refused as a deadlock" : "not refused",
                 is_deadlock ? "is one" : "could be granted");
    return result;
}

static void release_one(int64_t agent)
{
    const struct cell_session *session = cell_session_find(d.state, agent);
    size_t n = session->n_acquisitions ? random_below(&dice, session->n_acquisitions) : 0;
    const struct cell_acquisition *a = session->first;
    while (n-- > 0)
        a = a->session_next;
    if (!a)
        return;
    size_t len;
    struct cell_command c =
        cell_fixture_command(CELL_RELEASE, &(struct cell_ask){.session = agent});
    c.name.data = cell_name_text(a->name, &len);
    c.name.len = len;
    c.owner = a->owner;
    assert_int_equal(cell_fixture_apply(&d, &c)->result, CELL_DONE);
}

static void detection_agrees_with_a_search_of_what_could_happen(void **state)
{
    (void)state;
    unsigned n_deadlocks = 0, n_waits = 0;
    for (uint64_t seed = 1; seed <= GRAPHS; seed++) {
        random_init_seeded(&dice, seed);
        cell_fixture_open(&d);
        d.keeps_state = true;
        for (int64_t agent = 1; agent <= AGENTS; agent++)
            assert_int_equal(cell_fixture_ask(&d, CELL_OPEN, .session = agent)->result, CELL_DONE);
        for (int step = 0; step < STEPS; step++) {
            struct scene s;
            int64_t agent = 1 + (int64_t)random_below(&dice, AGENTS);
            look_at_all(&s);
            if (waits(&s, agent))
                continue;
            if (random_below(&dice, 4) == 0) {
                release_one(agent);
                continue;
            }
            enum cell_result result = ask_and_compare(agent, seed);
            n_deadlocks += result == CELL_DEADLOCK;
            n_waits += result == CELL_TAKEN;
        }
        cell_fixture_close(&d);
    }
    assert_true(n_deadlocks > GRAPHS && n_waits > GRAPHS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(detection_agrees_with_a_search_of_what_could_happen)};
    return cmocka_run_group_tests_name("cell_deadlock_search", tests, NULL, NULL);
}
