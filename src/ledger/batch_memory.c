/* The memory of a struct batch_read.  It has a file of its own because it needs no database: the
 * simulation of tests/sim replaces the rest of this room, and uses this.  Called by the thread that
 * owns the struct. */
#include "ledger/ledger.h"

void batch_read_clear(struct batch_read *r)
{
    for (size_t i = 0; i < r->since.holds.n; i++)
        hold_row_close(&r->since.holds.v[i]);
    for (size_t i = 0; i < r->since.waits.n; i++)
        wait_row_close(&r->since.waits.v[i]);
    vec_clear(&r->clocks);
    vec_clear(&r->keys);
    vec_clear(&r->holds);
    vec_clear(&r->webhooks);
    vec_clear(&r->since.audit);
    vec_clear(&r->since.holds);
    vec_clear(&r->since.waits);
    vec_clear(&r->waits);
}

void batch_read_close(struct batch_read *r)
{
    batch_read_clear(r);
    vec_close(&r->clocks);
    vec_close(&r->keys);
    vec_close(&r->holds);
    vec_close(&r->webhooks);
    vec_close(&r->since.audit);
    vec_close(&r->since.holds);
    vec_close(&r->since.waits);
    vec_close(&r->waits);
}
