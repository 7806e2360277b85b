/* See strategy.h: the tables of strategies, and one attempt. */
#include "lab/strategy.h"

#include <string.h>

#include "lab/runner.h"

extern const struct strategy strategy_naive, strategy_pessimistic, strategy_optimistic,
    strategy_unique, strategy_redis_lease, strategy_two_layer, strategy_skip_locked,
    strategy_counter, strategy_counter_async, strategy_inventory, strategy_queue;
extern const struct strategy strategy_naive_sqlite, strategy_optimistic_sqlite,
    strategy_unique_sqlite, strategy_inventory_sqlite, strategy_queue_sqlite;

const struct strategy *const strategies[] = {
    &strategy_naive,         &strategy_pessimistic, &strategy_optimistic,  &strategy_unique,
    &strategy_redis_lease,   &strategy_two_layer,   &strategy_skip_locked, &strategy_counter,
    &strategy_counter_async, &strategy_inventory,   &strategy_queue,       NULL,
};

const struct strategy *const strategies_sqlite[] = {
    &strategy_naive_sqlite,     &strategy_optimistic_sqlite, &strategy_unique_sqlite,
    &strategy_inventory_sqlite, &strategy_queue_sqlite,      NULL,
};

const struct strategy *strategy_find(const char *name)
{
    for (const struct strategy *const *s = strategies; *s; s++)
        if (strcmp((*s)->name, name) == 0)
            return *s;
    return NULL;
}

void strategy_attempt(const struct strategy *strategy, struct runner *runner,
                      const struct strategy_want *want, struct strategy_outcome *ret)
{
    hf_check(want->n_seats >= 1 && want->n_seats <= STRATEGY_SEATS_MAX);
    bool won = runner_begin(runner, want, ret) && strategy->attempt(runner, want);
    runner_end(runner);
    ret->verdict = runner_failed(runner) ? STRATEGY_ERROR : won ? STRATEGY_WON : STRATEGY_LOST;
}
