/* Quotas per address beside a list of prefixes that is searched from end to end, and what is
 * forgotten when there are more addresses than there is room for. */
#include "support/fixtures.h"

#include <pthread.h>
#include <string.h>

#include "http/quota.h"

#define SECOND_US INT64_C(1000000)
#define SECOND_NS INT64_C(1000000000)

static struct address v4(unsigned n)
{
    return (struct address){.v4 = true,
                            .bytes = {10, (uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n}};
}

/* An address of the n-th /64 of the m-th /48. */
static struct address v6(unsigned m, unsigned n, unsigned host)
{
    return (struct address){.bytes = {0x20, 1, 0x0d, 0xb8, (uint8_t)(m >> 8), (uint8_t)m,
                                      (uint8_t)(n >> 8), (uint8_t)n, [15] = (uint8_t)host}};
}

/* ---- the model ---- */

enum { STEPS = 200000, MODEL_PREFIXES = 200 };

static const struct quota_limits model_limits = {
    .levels = {[QUOTA_CONNECTIONS] = 3, [QUOTA_STREAMS] = 2},
    .rates = {[QUOTA_OF_APP] = {.per_minute = 60, .burst = 3},
              [QUOTA_OF_APP + 1] = {.per_minute = 90, .burst = 4},
              [QUOTA_WRONG_KEYS] = {.per_minute = 30, .burst = 1},
              [QUOTA_REPLAYS] = {.per_minute = 120, .burst = 5}},
};

/* A prefix, its levels, and how much its buckets hold: nanoseconds that are saved up. */
struct model_prefix {
    uint8_t bytes[8];
    size_t len;
    size_t levels[QUOTA_LEVELS];
    int64_t saved_ns[QUOTA_RATES];
};

static struct model {
    struct quotas *quotas;
    struct model_prefix prefixes[MODEL_PREFIXES];
    size_t n;
    int64_t now_us;
    struct random random;
    size_t refused[QUOTA_LEVELS + QUOTA_RATES], refused_wide, taken;
} model;

static unsigned below(struct model *m, unsigned limit)
{
    return (unsigned)random_below(&m->random, limit);
}

/* A bucket takes a second of the narrow prefix's time for each of a minute's 60, and so on; the
 * wide one's things are QUOTA_WIDE times as cheap. */
static int64_t cost_ns(const struct model_prefix *p, int rate)
{
    int64_t narrow_ns = 60 * SECOND_NS / model_limits.rates[rate].per_minute;
    narrow_ns += QUOTA_WIDE - narrow_ns % QUOTA_WIDE; /* as exact as the clock of the quotas */
    return p->len == 6 ? narrow_ns / QUOTA_WIDE : narrow_ns;
}

static int64_t full_ns(int rate)
{
    static const struct model_prefix narrow = {.len = 4};
    return cost_ns(&narrow, rate) * model_limits.rates[rate].burst;
}

static struct model_prefix *model_find(struct model *m, const struct address *a, size_t len)
{
    for (size_t i = 0; i < m->n; i++)
        if (m->prefixes[i].len == len && memcmp(m->prefixes[i].bytes, a->bytes, len) == 0)
            return &m->prefixes[i];
    assert_true(m->n < MODEL_PREFIXES);
    struct model_prefix *p = &m->prefixes[m->n++];
    *p = (struct model_prefix){.len = len};
    memcpy(p->bytes, a->bytes, len);
    for (int i = 0; i < QUOTA_RATES; i++)
        p->saved_ns[i] = full_ns(i);
    return p;
}

static size_t model_find_all(struct model *m, const struct address *a, struct model_prefix *ret[2])
{
    ret[0] = model_find(m, a, a->v4 ? 4 : 8);
    if (!a->v4)
        ret[1] = model_find(m, a, 6);
    return a->v4 ? 1 : 2;
}

static void model_pass(struct model *m, int64_t us)
{
    m->now_us += us;
    for (size_t i = 0; i < m->n; i++)
        for (int rate = 0; rate < QUOTA_RATES; rate++) {
            int64_t *saved = &m->prefixes[i].saved_ns[rate];
            *saved += us * 1000;
            *saved = *saved > full_ns(rate) ? full_ns(rate) : *saved;
        }
}

static void model_level(struct model *m, const struct address *a)
{
    struct model_prefix *p[2];
    size_t n = model_find_all(m, a, p);
    enum quota_level level = (enum quota_level)below(m, QUOTA_LEVELS);
    if (below(m, 2) && p[0]->levels[level]) {
        quota_give(m->quotas, a, level);
        for (size_t i = 0; i < n; i++)
            p[i]->levels[level]--;
        return;
    }
    bool may = p[0]->levels[level] < model_limits.levels[level];
    if (n == 2)
        may = may && p[1]->levels[level] < QUOTA_WIDE * model_limits.levels[level];
    assert_int_equal(quota_take(m->quotas, a, level), may);
    for (size_t i = 0; i < n && may; i++)
        p[i]->levels[level]++;
    m->taken += may;
    m->refused[level] += !may;
}

static void model_rate(struct model *m, const struct address *a)
{
    struct model_prefix *p[2];
    size_t n = model_find_all(m, a, p);
    enum quota_rate rate = (enum quota_rate)below(m, QUOTA_RATES);
    int64_t short_ns = 0, wait_us = -1;
    for (size_t i = 0; i < n; i++) {
        int64_t missing_ns = cost_ns(p[i], (int)rate) - p[i]->saved_ns[rate];
        short_ns = missing_ns > short_ns ? missing_ns : short_ns;
    }
    bool spends = below(m, 4);
    bool may = (spends ? quota_spend : quota_allows)(m->quotas, a, rate, m->now_us, &wait_us);
    assert_int_equal(may, short_ns <= 0);
    assert_int_equal(wait_us, may ? -1 : (short_ns + 999) / 1000);
    bool gives_back = may && spends && below(m, 4) == 0;
    if (gives_back)
        quota_unspend(m->quotas, a, rate);
    for (size_t i = 0; i < n && may && spends && !gives_back; i++)
        p[i]->saved_ns[rate] -= cost_ns(p[i], (int)rate);
    m->refused[QUOTA_LEVELS + rate] += !may;
    m->refused_wide += !may && p[0]->saved_ns[rate] >= cost_ns(p[0], (int)rate);
}

static struct address some_address(struct model *m)
{
    if (below(m, 3) == 0)
        return v4(below(m, 10));
    return v6(below(m, 3), below(m, 15), below(m, 3));
}

static void quotas_count_as_a_list_of_prefixes_does(void **state)
{
    (void)state;
    struct model *m = &model;
    random_init_seeded(&m->random, test_seed(18));
    m->now_us = 1000 * SECOND_US;
    m->quotas = quotas_new(&model_limits, 1000);
    for (size_t n = test_steps(STEPS); n > 0; n--) {
        struct address a = some_address(m);
        if (below(m, 3) == 0)
            model_level(m, &a);
        else
            model_rate(m, &a);
        if (below(m, 4) == 0)
            model_pass(m, below(m, 100) ? below(m, 10000) : below(m, 20 * (unsigned)SECOND_US));
    }
    for (int i = 0; i < QUOTA_LEVELS + QUOTA_RATES; i++)
        assert_true(m->refused[i] > 100);
    assert_true(m->refused_wide > 100 && m->taken > 1000);
    quotas_free(m->quotas);
}

/* ---- claims ---- */

static struct quotas *quotas_small(void)
{
    return quotas_new(
        &(struct quota_limits){
            .levels = {[QUOTA_CONNECTIONS] = 2},
            .rates = {[QUOTA_WRONG_KEYS] = {.per_minute = 1, .burst = 20}},
        },
        64);
}

static void what_has_no_limit_is_always_allowed(void **state)
{
    (void)state;
    struct quotas *q = quotas_small();
    struct address a = v4(1);
    int64_t wait_us = -1;
    for (int i = 0; i < 1000; i++) {
        assert_true(quota_take(q, &a, QUOTA_STREAMS));
        assert_true(quota_spend(q, &a, QUOTA_OF_APP, SECOND_US, &wait_us));
    }
    assert_int_equal(wait_us, -1);
    quotas_free(q);
}

static void a_mapped_address_does_not_meet_a_prefix_of_ipv6(void **state)
{
    (void)state;
    struct quotas *q = quotas_small();
    struct address a = {.v4 = true, .bytes = {32, 1, 13, 184}}, b = {.bytes = {32, 1, 13, 184}};
    assert_true(quota_take(q, &a, QUOTA_CONNECTIONS));
    assert_true(quota_take(q, &a, QUOTA_CONNECTIONS));
    assert_false(quota_take(q, &a, QUOTA_CONNECTIONS));
    assert_true(quota_take(q, &b, QUOTA_CONNECTIONS));
    quotas_free(q);
}

/* An attacker with many addresses does not make the server forget the one that did most. */
static void crowds_do_not_displace_those_with_more_to_remember(void **state)
{
    (void)state;
    struct quotas *q = quotas_small();
    struct address spender = v4(1), connected = v4(2);
    int64_t wait_us = 0, now_us = SECOND_US;
    for (int i = 0; i < 20; i++)
        assert_true(quota_spend(q, &spender, QUOTA_WRONG_KEYS, now_us, &wait_us));
    assert_true(quota_take(q, &connected, QUOTA_CONNECTIONS));
    assert_true(quota_take(q, &connected, QUOTA_CONNECTIONS));
    for (unsigned i = 0; i < 10000; i++) {
        struct address other = v4(100 + i);
        assert_true(quota_spend(q, &other, QUOTA_WRONG_KEYS, now_us, &wait_us));
        other = v6(i, i, 1);
        assert_true(quota_spend(q, &other, QUOTA_WRONG_KEYS, now_us, &wait_us));
    }
    assert_false(quota_allows(q, &spender, QUOTA_WRONG_KEYS, now_us, &wait_us));
    assert_int_equal(wait_us / SECOND_US, 60);
    assert_false(quota_take(q, &connected, QUOTA_CONNECTIONS));
    quotas_free(q);
}

/* Where there is room for none of them, newcomers are served, and nobody's count stays behind. */
static void more_addresses_than_there_is_room_for_are_all_served(void **state)
{
    (void)state;
    struct quotas *q = quotas_small();
    for (unsigned i = 0; i < 5000; i++) {
        struct address a = v4(i);
        assert_true(quota_take(q, &a, QUOTA_CONNECTIONS));
    }
    for (unsigned i = 0; i < 5000; i++) {
        struct address a = v4(i);
        quota_give(q, &a, QUOTA_CONNECTIONS);
    }
    for (unsigned i = 0; i < 5000; i++) {
        struct address a = v4(i);
        assert_true(quota_take(q, &a, QUOTA_CONNECTIONS));
        assert_true(quota_take(q, &a, QUOTA_CONNECTIONS));
        quota_give(q, &a, QUOTA_CONNECTIONS);
        quota_give(q, &a, QUOTA_CONNECTIONS);
    }
    quotas_free(q);
}

/* ---- threads ---- */

enum { THREADS = 4, ROUNDS = 20000 };

static void *take_and_give(void *arg)
{
    struct quotas *q = arg;
    for (unsigned i = 0; i < ROUNDS; i++) {
        struct address a = i % 2 ? v4(i % 5) : v6(1, i % 3, 1);
        int64_t wait_us;
        if (quota_take(q, &a, QUOTA_CONNECTIONS))
            quota_give(q, &a, QUOTA_CONNECTIONS);
        (void)quota_spend(q, &a, QUOTA_WRONG_KEYS, (int64_t)i * 1000, &wait_us);
    }
    return NULL;
}

static void threads_give_back_what_they_took(void **state)
{
    (void)state;
    struct quotas *q = quotas_small();
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_and_give, q), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (unsigned i = 0; i < 8; i++) {
        struct address a = i < 5 ? v4(i) : v6(1, i - 5, 1);
        assert_true(quota_take(q, &a, QUOTA_CONNECTIONS));
        assert_true(quota_take(q, &a, QUOTA_CONNECTIONS));
        assert_false(quota_take(q, &a, QUOTA_CONNECTIONS));
    }
    quotas_free(q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quotas_count_as_a_list_of_prefixes_does),
        cmocka_unit_test(what_has_no_limit_is_always_allowed),
        cmocka_unit_test(a_mapped_address_does_not_meet_a_prefix_of_ipv6),
        cmocka_unit_test(crowds_do_not_displace_those_with_more_to_remember),
        cmocka_unit_test(more_addresses_than_there_is_room_for_are_all_served),
        cmocka_unit_test(threads_give_back_what_they_took),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
