/* Requests for a booking that wait for its intent; see checkout.h.  HTTP threads begin to wait, the
 * payment thread ends the waits. */
#include <string.h>

#include "base/hash.h"
#include "base/wait.h"
#include "checkout/checkout_internal.h"

static int64_t *told_slot(struct checkout *c, int64_t booking)
{
    return &c->told[hash_int((uint64_t)booking) & (TOLD_BUCKETS - 1)];
}

void checkout_await(struct checkout *c, struct checkout_wait *wait)
{
    wait->until_us = wait_now_us() + CHECKOUT_WAIT_MS * 1000;
    wait->next = NULL;
    wait->has_payment = false;
    pthread_mutex_lock(&c->lock);
    int64_t *told = told_slot(c, wait->booking);
    bool ends_now = c->is_stopping || !c->is_running || *told == wait->booking;
    if (*told == wait->booking)
        *told = 0;
    if (!ends_now) {
        *c->last_wait = wait;
        c->last_wait = &wait->next;
    }
    pthread_mutex_unlock(&c->lock);
    if (ends_now)
        pending_done(&wait->pending);
}

bool checkout_is_awaited(struct checkout *c, const uint8_t *key)
{
    bool found = false;
    pthread_mutex_lock(&c->lock);
    for (const struct checkout_wait *w = c->first_wait; w && !found; w = w->next)
        found = w->key && memcmp(w->key, key, KEY_HASH_SIZE) == 0;
    pthread_mutex_unlock(&c->lock);
    return found;
}

void waits_end(struct checkout *c, int64_t booking, const struct payment_row *payment,
               int64_t now_us)
{
    struct checkout_wait *ended = NULL;
    pthread_mutex_lock(&c->lock);
    struct checkout_wait **link = &c->first_wait;
    while (*link) {
        struct checkout_wait *w = *link;
        if (booking ? w->booking != booking : w->until_us > now_us) {
            link = &w->next;
            continue;
        }
        *link = w->next;
        w->next = ended;
        ended = w;
        w->has_payment = payment != NULL;
        if (payment)
            w->payment = *payment;
    }
    c->last_wait = link;
    if (booking && !ended)
        *told_slot(c, booking) = booking; /* its request is still on its way to checkout_await */
    pthread_mutex_unlock(&c->lock);
    while (ended) {
        struct checkout_wait *next = ended->next;
        pending_done(&ended->pending);
        ended = next;
    }
}

void checkout_tell(struct checkout *c, int64_t booking, const struct payment_row *payment)
{
    waits_end(c, booking, payment, 0);
}

int64_t waits_first_end_us(struct checkout *c)
{
    pthread_mutex_lock(&c->lock);
    int64_t at_us = c->first_wait ? c->first_wait->until_us : INT64_MAX;
    pthread_mutex_unlock(&c->lock);
    return at_us;
}
