/* See lock_history.h. */
#include "lab/lock_history.h"

static int64_t earlier(int64_t a, int64_t b) { return a < b ? a : b; }

void history_add(struct history *h, const struct board_page *page, size_t client, int64_t died_us,
                 int64_t now_us)
{
    for (uint64_t i = 0; i < page->n_grants; i++) {
        const struct lock_grant *grant = &page->grants[i];
        int64_t lost_us = grant->lost_us, released_us = grant->released_us;
        int64_t end_us = lost_us ? lost_us : released_us ? released_us : died_us ? died_us : now_us;
        struct history_grant *g = vec_push(&h->grants);
        *g = (struct history_grant){.start_us = grant->granted_us,
                                    .end_us = earlier(end_us, grant->deadline_us),
                                    .fence = grant->fence,
                                    .client = client,
                                    .is_first = i == 0};
        g->was_lost = lost_us || g->end_us < end_us;
    }
}

static int by_start(const void *a, const void *b)
{
    const struct history_grant *x = a, *y = b;
    return x->start_us < y->start_us ? -1 : x->start_us > y->start_us;
}

void history_sort(struct history *h)
{
    if (h->grants.n)
        qsort(h->grants.v, h->grants.n, sizeof *h->grants.v, by_start);
}

void history_close(struct history *h) { vec_close(&h->grants); }

uint64_t history_overlaps(const struct history *h)
{
    uint64_t n = 0;
    int64_t held_until_us = INT64_MIN;
    for (size_t i = 0; i < h->grants.n; i++) {
        const struct history_grant *g = &h->grants.v[i];
        n += g->start_us < held_until_us;
        if (g->end_us > held_until_us)
            held_until_us = g->end_us;
    }
    return n;
}

uint64_t history_fences_fell(const struct history *h)
{
    uint64_t n = 0;
    int64_t largest = INT64_MIN;
    for (size_t i = 0; i < h->grants.n; i++) {
        const struct history_grant *g = &h->grants.v[i];
        n += g->fence <= largest;
        if (g->fence > largest)
            largest = g->fence;
    }
    return n;
}

int64_t history_gap_us(const struct history *h, int64_t from_us, int64_t to_us)
{
    int64_t longest = 0, held_until_us = from_us;
    for (size_t i = 0; i < h->grants.n && h->grants.v[i].start_us < to_us; i++) {
        const struct history_grant *g = &h->grants.v[i];
        if (g->start_us - held_until_us > longest)
            longest = g->start_us - held_until_us;
        if (g->end_us > held_until_us)
            held_until_us = g->end_us;
    }
    return to_us - held_until_us > longest ? to_us - held_until_us : longest;
}

void history_order(const struct history *h, uint64_t *ret_pairs, uint64_t *ret_in_order)
{
    const struct history_grant *before = NULL;
    *ret_pairs = *ret_in_order = 0;
    for (size_t i = 0; i < h->grants.n; i++) {
        const struct history_grant *g = &h->grants.v[i];
        if (!g->is_first)
            continue;
        if (before) {
            ++*ret_pairs;
            *ret_in_order += before->client < g->client;
        }
        before = g;
    }
}

void history_hand_overs(const struct history *h, size_t skip, struct history_times *ret)
{
    for (size_t i = skip; i + 1 < h->grants.n; i++)
        *vec_push(&ret->us) = h->grants.v[i + 1].start_us - h->grants.v[i].end_us;
}

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

double history_quantile(struct history_times *times, double q)
{
    if (times->us.n == 0)
        return 0;
    qsort(times->us.v, times->us.n, sizeof *times->us.v, by_size);
    return (double)times->us.v[(size_t)(q * (double)(times->us.n - 1))];
}

void history_times_close(struct history_times *times) { vec_close(&times->us); }
