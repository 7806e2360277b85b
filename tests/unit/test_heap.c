/* The heap of deadlines against a list that is searched from end to end: whatever is put in, moved
 * and removed in any order, the first and the due ones are the same. */
#include "support/fixtures.h"

#include <stdlib.h>

#include "base/heap.h"

#define ITEMS 64

struct item {
    int before; /* the node is not the first member, so that heap_item has to look for it */
    struct heap_node node;
    bool is_in;
};

static struct item items[ITEMS];
static struct heap heap;

static void assert_order(void)
{
    size_t n = 0;
    int64_t least = INT64_MAX;
    for (size_t i = 0; i < ITEMS; i++) {
        assert_int_equal(items[i].node.place != 0, items[i].is_in);
        if (!items[i].is_in)
            continue;
        n++;
        assert_ptr_equal(heap.nodes.v[items[i].node.place - 1], &items[i].node);
        least = items[i].node.key < least ? items[i].node.key : least;
    }
    assert_int_equal(heap.nodes.n, n);
    struct heap_node *first = heap_first(&heap);
    if (n)
        assert_int_equal(first->key, least);
    else
        assert_null(first);
}

static void assert_due(int64_t key)
{
    struct heap_node *due[ITEMS];
    size_t n = 0, found = heap_up_to(&heap, key, due, ITEMS);
    for (size_t i = 0; i < ITEMS; i++)
        n += items[i].is_in && items[i].node.key <= key;
    assert_int_equal(found, n);
    for (size_t i = 0; i < found; i++) {
        const struct item *item = heap_item(due[i], struct item, node);
        assert_true(item >= items && item < items + ITEMS && item->is_in);
        assert_true(item->node.key <= key);
        for (size_t k = 0; k < i; k++)
            assert_ptr_not_equal(due[i], due[k]);
    }
    assert_int_equal(heap_up_to(&heap, key, due, n / 2), n / 2); /* never more than asked for */
}

static void first_and_due_are_those_of_a_plain_list(void **state)
{
    (void)state;
    struct random r;
    uint64_t seed = test_seed(4);
    print_message("HF_SEED=%llu\n", (unsigned long long)seed);
    random_init_seeded(&r, seed);
    for (size_t step = 0; step < test_steps(20000); step++) {
        struct item *item = &items[random_below(&r, ITEMS)];
        if (random_below(&r, 3)) {
            heap_set(&heap, &item->node, (int64_t)random_below(&r, 100) - 50);
            item->is_in = true;
        } else {
            heap_remove(&heap, &item->node); /* also those that are not in it */
            item->is_in = false;
        }
        assert_order();
        if (step % 16 == 0)
            assert_due((int64_t)random_below(&r, 120) - 60);
    }
    heap_close(&heap);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(first_and_due_are_those_of_a_plain_list)};
    return cmocka_run_group_tests_name("heap", tests, NULL, NULL);
}
