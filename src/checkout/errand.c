/* What the payment thread lends to the engine: an errand goes out with its command, and comes back
 * to this thread's next turn.  See checkout_internal.h. */
#include "checkout/checkout_internal.h"

static void returned(struct pending *pending)
{
    struct errand *errand = pending->waiter;
    struct checkout *c = errand->checkout;
    pthread_mutex_lock(&c->lock);
    errand->next = c->returned;
    c->returned = errand;
    pthread_mutex_unlock(&c->lock);
    http_pool_wake(c->pool);
}

void errand_submit(struct errand *errand, void (*then)(struct errand *errand))
{
    struct checkout *c = errand->checkout;
    errand->then = then;
    errand->command.pending = (struct pending){.done = returned, .waiter = errand};
    c->n_lent++;
    enum hf_status status = engine_submit(c->engine, &errand->command);
    if (status != HF_OK) {
        errand->command.verdict = verdict_of(status);
        pending_done(&errand->command.pending);
    }
}

void errands_collect(struct checkout *c)
{
    pthread_mutex_lock(&c->lock);
    struct errand *list = c->returned, *oldest_first = NULL;
    c->returned = NULL;
    pthread_mutex_unlock(&c->lock);
    while (list) {
        struct errand *next = list->next;
        list->next = oldest_first;
        oldest_first = list;
        list = next;
    }
    while (oldest_first) {
        struct errand *errand = oldest_first;
        oldest_first = errand->next;
        c->n_lent--;
        errand->then(errand);
    }
}
