/* The two hash tables of src/base against lists that are searched from end to end.  Whatever is
 * added and removed in any order, a chain has every item of its hash, and a walk meets each item
 * once; a number has its slot until that is empty. */
#include "support/fixtures.h"

#include "base/heap.h"
#include "base/slots.h"
#include "base/table.h"

#define ITEMS 500 /* more than three times as many as there are buckets at first */

struct item {
    int before; /* the node is not the first member */
    struct table_node node;
    bool is_in;
    unsigned met;
};

static struct item items[ITEMS];

static bool is_found(const struct table *t, const struct item *item, uint64_t hash)
{
    const struct table_node *node = table_chain(t, hash);
    while (node && node != &item->node)
        node = node->next;
    return node != NULL;
}

/* Hashes are few and some differ only in high bits, so that chains have several of one hash as well
 * as several hashes. */
static uint64_t hash_of(size_t i) { return i % 100 + ((uint64_t)(i % 3) << 40); }

static void assert_as_in_the_list(const struct table *t)
{
    size_t n = 0;
    for (const struct table_node *x = table_first(t); x; x = table_after(t, x))
        heap_item(x, struct item, node)->met++;
    for (size_t i = 0; i < ITEMS; i++) {
        assert_int_equal(items[i].met, items[i].is_in);
        bool is_in = is_found(t, &items[i], hash_of(i));
        assert_int_equal(is_in, items[i].is_in);
        items[i].met = 0;
        n += items[i].is_in;
    }
    assert_int_equal(t->n, n);
    assert_true(t->n <= t->cap);
}

static void a_table_has_what_a_plain_list_has(void **state)
{
    (void)state;
    struct table t = {0};
    struct random r;
    uint64_t seed = test_seed(4);
    print_message("HF_SEED=%llu\n", (unsigned long long)seed);
    random_init_seeded(&r, seed);
    assert_as_in_the_list(&t); /* also while it has no buckets */
    for (size_t step = 0; step < test_steps(20000); step++) {
        size_t i = random_below(&r, ITEMS);
        if (items[i].is_in)
            table_remove(&t, &items[i].node);
        else
            table_add(&t, &items[i].node, hash_of(i));
        items[i].is_in = !items[i].is_in;
        if (step % 64 == 0)
            assert_as_in_the_list(&t);
    }
    assert_int_equal(t.cap, 512); /* it grew with its items, not with what was added in all */
    for (struct table_node *x = table_first(&t), *next; x; x = next) {
        next = table_after(&t, x);
        table_remove(&t, x); /* amid a walk */
        heap_item(x, struct item, node)->is_in = false;
    }
    assert_as_in_the_list(&t);
    assert_int_equal(t.n, 0);
    table_close(&t);
    assert_as_in_the_list(&t);
}

/* ---- slots ---- */

#define KEYS 3000

struct slot {
    uint64_t key;
    int64_t value, other;
};

static bool slot_is_empty(const void *slot) { return ((const struct slot *)slot)->value == 0; }
static uint64_t slot_hash(uint64_t key) { return key % 1000 * 3; } /* neighbours get in the way */
static const struct slots_kind slot_kind = {sizeof(struct slot), slot_hash, slot_is_empty};

static void slots_have_what_a_plain_list_has(void **state)
{
    (void)state;
    static int64_t values[KEYS + 1];
    struct slots s = {0};
    struct random r;
    random_init_seeded(&r, test_seed(5));
    assert_null(slots_find(&s, &slot_kind, 1));
    for (size_t step = 0; step < test_steps(60000); step++) {
        bool is_used = step >= 10000 && random_below(&r, 3);
        uint64_t key = 1 + random_below(&r, KEYS);
        struct slot *slot = slots_get(&s, &slot_kind, key);
        assert_int_equal(slot->key, key);
        assert_int_equal(slot->value, values[key]);
        assert_int_equal(slot->other, values[key] ? 7 : slot->other); /* it moves with its key */
        slot->value = values[key] = is_used ? (int64_t)random_below(&r, 1000) : 0;
        slot->other = 7;
        assert_ptr_equal(slots_find(&s, &slot_kind, key), slot);
        assert_true(s.n_used * 2 <= s.n + 2);
        if (step < 10000)
            assert_int_equal(s.n, 256); /* it grows with what is used, not with what was */
    }
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++)
        n += !slot_is_empty(slots_at(&s, &slot_kind, i));
    for (uint64_t key = 1; key <= KEYS; key++) {
        const struct slot *slot = slots_find(&s, &slot_kind, key);
        assert_int_equal(slot ? slot->value : 0, values[key]);
        n -= values[key] != 0;
    }
    assert_int_equal(n, 0);
    slots_close(&s);
    assert_null(slots_find(&s, &slot_kind, 1));
}

static void room_is_made_in_one_step(void **state)
{
    (void)state;
    struct table t = {0};
    struct table_node nodes[ITEMS];
    table_reserve(&t, 0);
    assert_null(t.buckets);
    table_add(&t, &nodes[0], hash_of(0));
    table_reserve(&t, ITEMS - 1);
    struct table_node **buckets = t.buckets;
    for (size_t i = 1; i < ITEMS; i++)
        table_add(&t, &nodes[i], hash_of(i));
    assert_ptr_equal(t.buckets, buckets);
    for (size_t i = 0; i < ITEMS; i++)
        table_remove(&t, &nodes[i]); /* each is in its chain, the one from before, too */
    assert_null(table_first(&t));
    table_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_table_has_what_a_plain_list_has),
                                       cmocka_unit_test(room_is_made_in_one_step),
                                       cmocka_unit_test(slots_have_what_a_plain_list_has)};
    return cmocka_run_group_tests_name("table", tests, NULL, NULL);
}
