/* The state of the lock service against a simple model (support/cell_model.h): whatever clients and
 * masters say in whatever order, both give the same verdicts and effects, and have the same
 * holders, fences, slots, lines, values and blockers after every command.  The fixture restores the
 * state from its snapshot after each command, so a restored state goes on as the original. */
#include "support/fixtures.h"

#include <stdio.h>

#include "cell/state_internal.h"
#include "support/cell_fixture.h"
#include "support/cell_model.h"

#define SESSIONS 5

/* "a!" sorts between "a" and "a/b", and is no relative of theirs. */
static const char *const all_names[] = {"a",   "a/b", "a/b/c", "a/b/d", "a!",
                                        "a/e", "f/g", "f",     "h",     NULL};
static const char *const few_names[] = {"a", "a/b", "f", NULL};

struct run {
    struct cell_fixture fixture;
    struct model model;
    struct random random;
    int n_names;
    bool is_calm; /* no session ends, so that waiters grow old */
    bool is_old;  /* requests are as older versions stored them */
    uint64_t n_of_result[CELL_RESULTS], n_aged, n_wanted, n_passed_over, n_delayed;
};

static struct run run;

/* ---- comparing ---- */

static int index_of(const struct cell_acquisition *a)
{
    size_t len;
    const char *text = cell_name_text(a->name, &len);
    int session = a->session ? (int)a->session->id.key - 1 : -1;
    for (int i = 0; i < run.model.n; i++) {
        const struct model_acquisition *m = &run.model.all[i];
        const char *name = run.model.names[m->name];
        if (m->exists && m->session == session && cell_owner_equal(&m->owner, &a->owner) &&
            strlen(name) == len && memcmp(name, text, len) == 0 &&
            (session >= 0 || m->fence == a->fence))
            return i;
    }
    fail_msg("the model has no acquisition of %.*s like this", (int)len, text);
    return -1;
}

static void same_acquisition(const struct cell_acquisition *a, int index)
{
    const struct model_acquisition *m = &run.model.all[index];
    assert_int_equal(index_of(a), index);
    assert_int_equal(a->mode, m->mode);
    assert_int_equal(a->stage, m->stage == MODEL_WAITING ? CELL_WAITING
                               : m->stage == MODEL_HELD  ? CELL_HELD
                                                         : CELL_DELAYED);
    assert_int_equal(a->passed_over, m->passed_over);
    assert_int_equal(a->cached, m->cached);
    assert_int_equal(a->fence, m->fence);
    assert_int_equal(a->slot, m->slot);
    assert_int_equal(a->overtaken, m->overtaken);
    assert_int_equal(a->arrival, m->arrival);
    if (m->stage != MODEL_DELAYED)
        assert_string_equal(a->agent, m->agent);
    assert_int_equal(cell_acquisition_is_wanted(run.fixture.state, a),
                     m->stage == MODEL_HELD && m->cached && model_is_wanted(&run.model, index));
    run.n_aged += a->stage == CELL_WAITING && a->overtaken == CELL_OVERTAKEN_MAX;
    run.n_passed_over += a->passed_over;
    run.n_delayed += a->stage == CELL_DELAYED;
}

static void same_blockers(const struct cell_acquisition *a, int index)
{
    cell_acquisitions list = {0};
    size_t n = 0;
    cell_acquisition_blockers(run.fixture.state, a, &list);
    for (int i = 0; i < run.model.n; i++)
        n += run.model.all[i].exists && !a->passed_over && model_is_blocker(&run.model, index, i);
    assert_int_equal(list.n, n);
    for (size_t i = 0; i < list.n; i++)
        assert_true(model_is_blocker(&run.model, index, index_of(list.v[i])));
    vec_close(&list);
}

static void same_name(int name)
{
    const char *text = run.model.names[name];
    const struct cell_name *n = cell_name_find(run.fixture.state, text, strlen(text));
    int holders[MODEL_MAX], waiters[MODEL_MAX];
    int n_holders = model_holders(&run.model, name, holders);
    int n_waiters = model_waiters(&run.model, name, waiters), i = 0;
    if (!n) {
        assert_int_equal(n_holders + n_waiters, 0);
        assert_int_equal(run.model.of_name[name].last_fence, 0);
        return;
    }
    size_t len;
    const char *value = cell_name_value(n, &len);
    assert_int_equal(value != NULL, run.model.of_name[name].value_fence != 0);
    if (value)
        assert_string_equal(value, run.model.of_name[name].value);
    assert_int_equal(cell_name_last_fence(n), run.model.of_name[name].last_fence);
    for (const struct cell_acquisition *a = cell_name_holders(n); a; a = a->next, i++) {
        assert_true(i < n_holders);
        same_acquisition(a, holders[i]);
    }
    assert_int_equal(i, n_holders);
    cell_acquisitions line = {0};
    cell_name_waiters(n, &line);
    assert_int_equal(line.n, n_waiters);
    assert_int_equal(cell_name_n_waiters(n), n_waiters);
    for (i = 0; i < n_waiters; i++) {
        same_acquisition(line.v[i], waiters[i]);
        same_blockers(line.v[i], waiters[i]);
        if (!line.v[i]->passed_over)
            assert_int_equal(cell_acquisition_position(line.v[i]), i + 1);
    }
    vec_close(&line);
}

static void same_verdict(void)
{
    const struct cell_verdict *v = &run.fixture.verdict, *m = &run.model.verdict;
    assert_int_equal(v->result, m->result);
    assert_int_equal(v->mode, m->mode);
    assert_int_equal(v->fence, m->fence);
    assert_int_equal(v->slot, m->slot);
    assert_int_equal(v->position, m->position);
    assert_int_equal(v->repeated, m->repeated);
    assert_int_equal(v->slots, m->slots);
    if (v->result != CELL_DEADLOCK)
        assert_int_equal(v->people.n, m->people.n);
    run.n_of_result[v->result]++;
}

/* Called before the effects go: the ended are still there. */
static void same_effects(struct cell_fixture *d, void *context)
{
    (void)context;
    int wanted[MODEL_MAX] = {0};
    size_t n, n_told = 0;
    const struct cell_effect *effects = cell_state_effects(d->state, &n);
    struct buf told = {0};
    for (const char *at = d->effects.data; *at;) { /* without "wanted" */
        size_t len = strcspn(at, ",");
        if (strncmp(at, "wanted", 6) != 0)
            buf_printf(&told, "%s%.*s", n_told++ ? ", " : "", (int)len, at);
        at += len + (at[len] ? 2 : 0);
    }
    buf_char(&told, '\0');
    assert_string_equal(told.data, run.model.effects.data);
    for (size_t i = 0; i < n; i++)
        if (effects[i].kind == CELL_EFFECT_WANTED)
            wanted[index_of(effects[i].acquisition)]++;
    assert_memory_equal(wanted, run.model.n_wanted, sizeof wanted);
    for (int i = 0; i < run.model.n; i++)
        run.n_wanted += (uint64_t)wanted[i];
    buf_close(&told);
}

/* ---- the cycle that a deadlock is explained with ---- */

static bool has_label(const struct model_acquisition *a, const char *label)
{
    char text[16];
    snprintf(text, sizeof text, "s%d", a->session + 1);
    return a->session >= 0 && strcmp(text, label) == 0;
}

/* Somebody with the label of `p` awaits its name, and is blocked by somebody with the label of
 * `next`.  The refused request itself is not in the model any more, so the first person only has to
 * be the one that asked. */
static bool is_link(const struct cell_person *p, const struct cell_person *next)
{
    for (int w = 0; w < run.model.n; w++) {
        const struct model_acquisition *a = &run.model.all[w];
        if (!a->exists || a->stage != MODEL_WAITING || !has_label(a, p->label) ||
            strcmp(run.model.names[a->name], p->name) != 0)
            continue;
        for (int i = 0; i < run.model.n; i++)
            if (run.model.all[i].exists && has_label(&run.model.all[i], next->label) &&
                model_is_blocker(&run.model, w, i))
                return true;
    }
    return false;
}

static void cycle_is_one(const struct cell_command *c)
{
    const struct cell_verdict *v = &run.fixture.verdict;
    char label[16];
    snprintf(label, sizeof label, "s%lld", (long long)c->session.key);
    assert_true(v->people.n >= 1);
    assert_string_equal(v->people.v[0].label, label);
    assert_memory_equal(v->people.v[0].name, c->name.data, c->name.len + 1);
    for (size_t i = 1; i + 1 < v->people.n; i++)
        assert_true(is_link(&v->people.v[i], &v->people.v[i + 1]));
}

/* ---- commands at random ---- */

static bool chance(uint64_t one_in) { return random_below(&run.random, one_in) == 0; }

static const char *pick_name(void)
{
    return run.model.names[random_below(&run.random, (uint64_t)run.n_names)];
}

static const char *pick_owner(void)
{
    static const char *const owners[] = {"1", "2", "3", "4", "05", "5"};
    return owners[random_below(&run.random, 6)];
}

static int64_t pick_fence(const char *name)
{
    const struct cell_name *n = cell_name_find(run.fixture.state, name, strlen(name));
    const struct cell_acquisition *a = n ? cell_name_holders(n) : NULL;
    while (a && a->next && chance(2))
        a = a->next;
    return a && !chance(10) ? a->fence : (int64_t)random_below(&run.random, 5);
}

static struct cell_command pick_acquire(void)
{
    static const char *const agents[] = {"", "", "t", "u"}, *const values[] = {NULL, NULL, "v",
                                                                               "w"};
    static const enum cell_mode modes[] = {
        CELL_EXCLUSIVE, CELL_EXCLUSIVE,           CELL_EXCLUSIVE,       CELL_SHARED,
        CELL_SHARED,    CELL_INTENTION_EXCLUSIVE, CELL_INTENTION_SHARED};
    static const int32_t priorities[] = {0, 0, 0, 0, 1, 9, -1};
    const char *name = pick_name();
    struct cell_ask ask = {.session = 1 + (int64_t)random_below(&run.random, SESSIONS),
                           .name = name,
                           .owner = pick_owner(),
                           .agent = agents[random_below(&run.random, 4)],
                           .value = values[random_below(&run.random, 4)],
                           .mode = modes[random_below(&run.random, 7)],
                           .priority = priorities[random_below(&run.random, 7)],
                           .slots = (name[0] == 'f' ? 2U : 1U) + (chance(30) ? 1U : 0U),
                           .delay_ms = chance(3) ? 100 : 0,
                           .cached = chance(2),
                           .is_old = run.is_old,
                           .no_queue = chance(6)};
    struct cell_command c = cell_fixture_command(CELL_ACQUIRE, &ask);
    c.by_master = chance(50);
    if (chance(50))
        c.session.secret[0] ^= 1;
    return c;
}

/* Repeats the request of somebody who waits or holds, as clients do. */
static bool repeat(struct cell_command *c)
{
    int i = (int)random_below(&run.random, MODEL_MAX);
    const struct model_acquisition *m = &run.model.all[i % 32];
    if (!m->exists || m->session < 0)
        return false;
    struct cell_ask ask = {.session = m->session + 1,
                           .name = run.model.names[m->name],
                           .mode = chance(8) ? CELL_SHARED : m->mode,
                           .no_queue = chance(4),
                           .cached = chance(2)};
    *c = cell_fixture_command(CELL_ACQUIRE, &ask);
    c->owner = m->owner;
    return true;
}

static struct cell_command pick(void)
{
    static const enum cell_kind kinds[] = {CELL_RELEASE, CELL_RELEASE,  CELL_RELEASE,  CELL_RELEASE,
                                           CELL_CANCEL,  CELL_WITHDRAW, CELL_WITHDRAW, CELL_VALUE};
    struct cell_command c;
    uint64_t dice = random_below(&run.random, run.is_calm ? 85 : 100);
    if (dice < 45)
        return pick_acquire();
    if (dice < 55 && repeat(&c))
        return c;
    struct cell_ask ask = {.session = 1 + (int64_t)random_below(&run.random, SESSIONS),
                           .name = pick_name(),
                           .owner = pick_owner(),
                           .value = chance(3) ? NULL : "x"};
    ask.fence = chance(3) ? 0 : pick_fence(ask.name);
    if (dice < 90) {
        c = cell_fixture_command(kinds[random_below(&run.random, 8)], &ask);
        const struct model_acquisition *m = &run.model.all[random_below(&run.random, 24)];
        if (m->exists && m->session >= 0 && !chance(5)) { /* one that is there */
            struct cell_ask its = {.session = m->session + 1,
                                   .name = run.model.names[m->name],
                                   .fence = chance(10) ? ask.fence : m->fence,
                                   .value = ask.value};
            enum cell_kind kind = c.kind;
            c = cell_fixture_command(kind, &its);
            c.owner = m->owner;
        }
        return c;
    }
    enum cell_kind kind = dice < 92   ? CELL_EXPIRE
                          : dice < 93 ? CELL_CLOSE
                          : dice < 94 ? CELL_BREAK
                          : dice < 95 ? CELL_FORGET
                          : dice < 97 ? CELL_UNDELAY
                                      : CELL_OPEN;
    return cell_fixture_command(kind, &ask);
}

static void step(void)
{
    struct cell_command c = pick();
    model_apply(&run.model, &c);
    cell_fixture_apply(&run.fixture, &c);
    same_verdict();
    if (run.fixture.verdict.result == CELL_DEADLOCK)
        cycle_is_one(&c);
    for (int i = 0; i < run.n_names; i++)
        same_name(i);
    assert_int_equal(run.fixture.state->fence, run.model.fence);
}

static void begin(uint64_t seed, const char *const *names)
{
    random_init_seeded(&run.random, seed);
    cell_fixture_open(&run.fixture);
    model_open(&run.model, names);
    run.fixture.on_applied = same_effects;
    run.is_calm = seed % 2;
    run.is_old = seed % 4 == 0;
    for (run.n_names = 0; names[run.n_names];)
        run.n_names++;
    for (int64_t i = 1; i <= SESSIONS; i++) {
        struct cell_command c = cell_fixture_command(CELL_OPEN, &(struct cell_ask){.session = i});
        model_apply(&run.model, &c);
        cell_fixture_apply(&run.fixture, &c);
    }
}

static void finish(void)
{
    cell_fixture_close(&run.fixture);
    model_close(&run.model);
}

static void verdicts_lines_and_fences_are_those_of_the_model(void **state)
{
    (void)state;
    uint64_t seed = test_seed(1);
    size_t n = test_steps(600);
    for (uint64_t i = 0; i < n; i++) {
        print_message(i ? "" : "HF_SEED=%llu\n", (unsigned long long)seed);
        begin(seed + i, i % 3 ? all_names : few_names);
        size_t steps = i % 60 ? 50 : 500;
        for (size_t k = 0; k < steps; k++)
            step();
        finish();
    }
    /* A run in which something never happened has not tried it. */
    for (int i = CELL_DONE; i <= CELL_STALE_FENCE; i++)
        assert_true(run.n_of_result[i] > 0);
    assert_true(run.n_aged && run.n_wanted && run.n_passed_over && run.n_delayed);
    print_message("%llu granted, %llu taken, %llu deadlocks, %llu aged, %llu wanted\n",
                  (unsigned long long)run.n_of_result[CELL_DONE],
                  (unsigned long long)run.n_of_result[CELL_TAKEN],
                  (unsigned long long)run.n_of_result[CELL_DEADLOCK],
                  (unsigned long long)run.n_aged, (unsigned long long)run.n_wanted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verdicts_lines_and_fences_are_those_of_the_model),
    };
    return cmocka_run_group_tests_name("cell_model", tests, NULL, NULL);
}
