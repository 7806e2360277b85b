/* See contention.h. */
#include "lease/sql/contention.h"

#include <string.h>

#define LONG_QUEUE 16

bool contention_is_known(const struct sql_lease *s, const struct lease_request *r)
{
    return s->contended_len == r->key_len && memcmp(s->contended, r->key, r->key_len) == 0;
}

bool contention_is_long_queue(const struct sql_lease *s, const struct lease_request *r)
{
    return contention_is_known(s, r) && s->contended_ahead >= LONG_QUEUE;
}

void contention_set(struct sql_lease *s, const struct lease_request *r)
{
    memcpy(s->contended, r->key, r->key_len);
    s->contended_len = r->key_len;
}

void contention_update(struct sql_lease *s, const struct lease_request *r,
                       const struct standing *st)
{
    if (st->ahead >= LONG_QUEUE)
        contention_set(s, r);
    if (!contention_is_known(s, r))
        return;
    s->contended_ahead = st->ahead;
    if (s->state.holders.n == 0 && s->state.waiters.n == (st->place ? 1 : 0))
        s->contended_len = 0;
}
