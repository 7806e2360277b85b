/* The state of the lock service as JSON.  These functions run on the cell's thread, between two
 * entries of the journal, so what they do is bounded: lists are cut and counts say how long they
 * are, and a page ends early where a line of waiters is long. */
#ifndef HF_API_LOCK_RENDER_H
#define HF_API_LOCK_RENDER_H

#include "api/lock_call.h"
#include "base/clock.h"

#define LOCK_PAGE_MAX 100     /* names of a page */
#define LOCK_PEOPLE_MAX 1000  /* holders, and waiters, of one name that is shown alone */
#define LOCK_PAGE_PEOPLE 100  /* the same for each name of a page */
#define LOCK_PAGE_NAMES 10000 /* names that are looked at for one page */
#define LOCK_WORK_MAX 20000   /* holders and waiters that are looked at for one answer */
#define LOCK_BLOCKERS_MAX 16  /* of each waiter that are shown */

/* One name; an unknown one is free. */
void lock_render_name(const struct cell_state *s, const char *name, size_t len,
                      const struct clock *clock, struct buf *out);
/* The entries of a page, with commas between them.  Fills in what the page has to say. */
void lock_render_page(const struct cell_state *s, struct lock_page *page, const struct clock *clock,
                      struct buf *out);
struct api;
/* The answer to GET /v1/cell. */
void lock_render_cell(const struct node *n, const struct cell_state *s, const struct api *api,
                      struct buf *out);

#endif
