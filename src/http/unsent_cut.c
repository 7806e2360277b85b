/* See unsent.h: which clients are cut off. */
#include "http/unsent.h"

#include <sys/epoll.h>

#include "base/pin.h"
#include "http/conn.h"
#include "http/server_internal.h"

#define CHECK_US INT64_C(2000000) /* how often the pace of a client is looked at */
#define LOOK_US INT64_C(100000)   /* how often revoked bodies are looked for */

/* ---- the budget ---- */

static void cut(struct unsent *u, enum unsent_cut why)
{
    struct conn *c = u->conn;
    counter_add(c->loop->server->unsent.cuts[why], 1);
    conn_cut(c);
}

/* The loop whose oldest answer has waited longest; NULL: none waits. */
static struct loop *loop_of_oldest(const struct server *s)
{
    struct loop *found = NULL;
    int64_t found_us = INT64_MAX;
    for (unsigned i = 0; i < s->n_loops; i++) {
        int64_t us = atomic_load(&s->loops[i].unsent.oldest_us);
        if (us < found_us) {
            found_us = us;
            found = &s->loops[i];
        }
    }
    return found;
}

static void keep_to_budget(struct loop *l)
{
    struct server *s = l->server;
    const struct unsent_budget *b = &s->unsent;
    size_t bytes;
    while ((bytes = atomic_load(&b->bytes)) > b->max) {
        struct loop *oldest = loop_of_oldest(s);
        bool must = bytes > b->max + b->max / 8 && l->unsent.oldest;
        if (oldest && oldest != l && !must) {
            inbox_wake(&oldest->inbox);
            return;
        }
        if (!l->unsent.oldest)
            return;
        cut(l->unsent.oldest, CUT_MEMORY);
    }
}

/* ---- one answer ---- */

/* How long the client may take nothing. */
static int64_t stall_us(const struct conn *c)
{
    if (c->place.is_guest)
        return GUEST_US;
    return c->left ? UNSENT_LEFT_US : UNSENT_STALL_US;
}

/* When to look at the client's pace next. */
static int64_t check_us(const struct conn *c)
{
    return stall_us(c) < CHECK_US ? stall_us(c) : CHECK_US;
}

/* An answer that does not fit into the budget by itself goes at once: to make room for it, all
 * others would be cut off first. */
static bool fits(const struct conn *c)
{
    const struct request *r = c->request;
    size_t bytes = r->unsent.bytes + (r->unsent.pin ? r->answer.keeper.pinned : 0);
    return bytes <= c->loop->server->unsent.max;
}

void unsent_wait(struct conn *c)
{
    struct loop *l = c->loop;
    if (c->blocked) {
        c->request->unsent.moved_us = l->now_us; /* the socket had taken some more */
    } else {
        unsent_begin(c);
        conn_set_deadline(c, check_us(c));
    }
    if (!fits(c)) {
        cut(&c->request->unsent, CUT_MEMORY);
        return;
    }
    conn_watch(c, c->left ? EPOLLOUT : EPOLLOUT | EPOLLRDHUP);
    keep_to_budget(l);
}

void unsent_due(struct conn *c)
{
    struct unsent *u = &c->request->unsent;
    const int64_t now_us = c->loop->now_us;
    unsent_look(c);
    int64_t owed = (now_us - u->begun_us - UNSENT_GRACE_US) / 1000000 * UNSENT_RATE;
    if ((owed > 0 && u->taken < owed) || now_us - u->moved_us >= stall_us(c))
        cut(u, CUT_SLOW);
    else
        conn_set_deadline(c, check_us(c));
}

/* ---- turns ---- */

static void cut_revoked(struct unsent_list *a)
{
    for (struct unsent *u = a->oldest, *newer; u; u = newer) {
        newer = u->newer;
        if (u->pin && atomic_load_explicit(&u->pin->revoked, memory_order_relaxed))
            cut(u, CUT_OUTDATED);
    }
}

void unsent_turn(struct loop *l)
{
    struct unsent_list *a = &l->unsent;
    if (!a->oldest)
        return;
    keep_to_budget(l);
    if (a->n_shared && l->now_us >= a->look_us) {
        a->look_us = l->now_us + LOOK_US;
        cut_revoked(a);
    }
}
