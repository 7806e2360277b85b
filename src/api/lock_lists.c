/* GET /v1/locks/{name} and GET /v1/locks: who holds and awaits what.  The answers are linearizable:
 * the cell's thread looks at its state after an append that was sent after the request came.  With
 * ?stale=true this server answers from what it has.  On HTTP threads, but for the looks. */
#include <string.h>

#include "api/lock_render.h"
#include "api/page.h"
#include "api/routes.h"

#define LOCK_PACK_MIN 1400 /* a shorter page fits into a packet */

/* Begins a look.  Returns false if the call has been answered. */
static bool begin(struct call *c, bool *ret_stale)
{
    return page_flag(c, "stale", ret_stale) && lock_begin(c, *ret_stale);
}

static void look_at_name(struct cell_request *r, const struct node *n, const struct cell_state *s)
{
    const struct call *c = r->context;
    (void)n;
    lock_render_name(s, r->command.name.data, r->command.name.len, call_api(c)->clock, &r->out);
}

static void name_looked_at(struct request *r)
{
    struct call *c = call_of(r);
    if (!lock_done(c))
        return;
    buf_put(&r->out, c->lock.request.out.data, c->lock.request.out.len);
    answer_out(r, HTTP_OK, type_json);
}

void locks_get(struct request *r)
{
    struct call *c = call_of(r);
    bool stale;
    if (begin(c, &stale) && lock_read_name(c))
        lock_look(c, stale, name_looked_at, look_at_name);
}

/* ---- lists ---- */

static void look_at_page(struct cell_request *r, const struct node *n, const struct cell_state *s)
{
    struct call *c = r->context;
    (void)n;
    lock_render_page(s, &c->lock.page, call_api(c)->clock, &r->out);
}

static void page_looked_at(struct request *r)
{
    struct call *c = call_of(r);
    const struct lock_page *page = &c->lock.page;
    if (!lock_done(c))
        return;
    page_open(c);
    buf_put(&r->out, c->lock.request.out.data, c->lock.request.out.len);
    page_close(c, page->more ? page->cursor : NULL);
    if (r->out.len > LOCK_PACK_MIN)
        answer_pack(r);
}

static bool read_cursor(struct call *c, const char **ret)
{
    const char *cursor = request_query(&c->http, "cursor");
    *ret = cursor ? cursor : "";
    if (!cursor || !cell_name_check(cursor, strlen(cursor)))
        return true;
    page_bad_cursor(c);
    return false;
}

void locks_list(struct request *r)
{
    struct call *c = call_of(r);
    struct lock_page *page = &c->lock.page;
    bool stale;
    if (!begin(c, &stale))
        return;
    page->limit = PAGE_LIMIT_DEFAULT;
    if (!page_filter(c, "prefix", &page->prefix) || !page_flag(c, "waiting", &page->waiting) ||
        !page_limit(c, LOCK_PAGE_MAX, &page->limit) || !read_cursor(c, &page->after))
        return;
    if (!page->prefix)
        page->prefix = "";
    lock_look(c, stale, page_looked_at, look_at_page);
}
