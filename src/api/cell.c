/* /v1/cell: the servers of the lock service, which of them is the master, and handing that over.
 * Every server answers GET, from what it has read of the journal.  On HTTP threads, but for the
 * looks. */
#include "api/lock_render.h"
#include "api/routes.h"

static void look_at_cell(struct cell_request *r, const struct node *n, const struct cell_state *s)
{
    const struct call *c = r->context;
    lock_render_cell(n, s, call_api(c), &r->out);
}

static void cell_looked_at(struct request *r)
{
    struct call *c = call_of(r);
    if (!lock_done(c))
        return;
    buf_put(&r->out, c->lock.request.out.data, c->lock.request.out.len);
    answer_out(r, HTTP_OK, type_json);
}

void cell_get(struct request *r)
{
    struct call *c = call_of(r);
    if (lock_begin(c, true))
        lock_look(c, true, cell_looked_at, look_at_cell);
}

/* ---- handing over ---- */

static void transferred(struct request *r)
{
    struct call *c = call_of(r);
    if (lock_done(c))
        lock_look(c, true, cell_looked_at, look_at_cell);
}

void cell_transfer(struct request *r)
{
    struct call *c = call_of(r);
    if (lock_begin(c, false) && lock_empty_body(c))
        lock_submit(c, CELL_REQUEST_TRANSFER, transferred);
}
