/* See unsent.h: the answers that wait, and what they cost. */
#include "http/unsent.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>

#include "base/pin.h"
#include "http/conn.h"
#include "http/server_internal.h"

void unsent_budget_open(struct unsent_budget *b, size_t max, struct metrics *m)
{
    static const char *const reasons[UNSENT_CUTS] = {"reason=\"slow\"", "reason=\"memory\"",
                                                     "reason=\"outdated\""};
    b->max = max ? max : UNSENT_BYTES_MAX_DEFAULT;
    b->bytes_now = metrics_gauge(m, "holdfast_http_answer_bytes", NULL,
                                 "Memory of answers that wait for their clients.");
    gauge_set(metrics_gauge(m, "holdfast_http_answer_bytes_max", NULL,
                            "Memory that such answers may take."),
              (int64_t)b->max);
    for (int i = 0; i < UNSENT_CUTS; i++)
        b->cuts[i] = metrics_counter(m, "holdfast_http_answers_cut_total", reasons[i],
                                     "Answers whose clients were cut off, by reason.");
}

void unsent_list_open(struct unsent_list *a) { atomic_init(&a->oldest_us, INT64_MAX); }

/* ---- the list ---- */

static void show_oldest(struct unsent_list *a)
{
    atomic_store(&a->oldest_us, a->oldest ? a->oldest->begun_us : INT64_MAX);
}

static void list_add(struct unsent_list *a, struct unsent *u)
{
    u->newer = NULL;
    u->older = a->newest;
    *(u->older ? &u->older->newer : &a->oldest) = u;
    a->newest = u;
    a->n_shared += u->pin != NULL;
    show_oldest(a);
}

static void list_remove(struct unsent_list *a, struct unsent *u)
{
    *(u->older ? &u->older->newer : &a->oldest) = u->newer;
    *(u->newer ? &u->newer->older : &a->newest) = u->older;
    a->n_shared -= u->pin != NULL;
    show_oldest(a);
}

/* ---- the budget ---- */

static void charge(struct unsent_budget *b, size_t bytes)
{
    size_t now = atomic_fetch_add(&b->bytes, bytes) + bytes;
    gauge_set(b->bytes_now, (int64_t)now);
}

static void discharge(struct unsent_budget *b, size_t bytes)
{
    size_t now = atomic_fetch_sub(&b->bytes, bytes) - bytes;
    gauge_set(b->bytes_now, (int64_t)now);
}

/* ---- one answer ---- */

/* How much of what the connection has sent the client has taken, counted from some moment on. */
static int64_t taken_in_all(const struct conn *c)
{
    int unacknowledged = 0;
    if (ioctl(c->fd, SIOCOUTQ, &unacknowledged) != 0)
        unacknowledged = 0;
    return (int64_t)c->sent - unacknowledged;
}

/* The memory that only this answer keeps alive. */
static size_t own_bytes(const struct request *r)
{
    const struct answer *a = &r->answer;
    return r->out.cap + r->answer_head.cap + (a->keeper.sent && !a->keeper.pin ? a->len : 0);
}

static void shrink_out(struct request *r)
{
    if (r->answer.data != r->out.data || !answer_has_body(r))
        buf_close(&r->out);
    else if (r->out.len >= BODIES_LEN_MIN)
        bodies_share(&r->server->bodies, r);
}

/* Gives back everything that sending the answer does not need. */
static void shrink(struct request *r)
{
    r->server->config.app->release(r);
    request_uncount_body(r);
    buf_close(&r->body);
    shrink_out(r);
}

void unsent_begin(struct conn *c)
{
    struct server *s = c->loop->server;
    struct request *r = c->request;
    struct unsent *u = &r->unsent;
    const int64_t now_us = c->loop->now_us;
    shrink(r);
    c->blocked = true;
    atomic_fetch_add(&s->n_blocked, 1);
    *u = (struct unsent){.conn = c,
                         .pin = r->answer.keeper.pin,
                         .bytes = own_bytes(r),
                         .begun_us = now_us,
                         .moved_us = now_us,
                         .taken_base = taken_in_all(c)};
    charge(&s->unsent, u->bytes + (u->pin ? pin_take(u->pin, r->answer.keeper.pinned) : 0));
    list_add(&c->loop->unsent, u);
}

void unsent_over(struct conn *c)
{
    if (!c->blocked)
        return;
    struct server *s = c->loop->server;
    struct unsent *u = &c->request->unsent;
    list_remove(&c->loop->unsent, u);
    discharge(&s->unsent, u->bytes + (u->pin ? pin_give(u->pin) : 0));
    atomic_fetch_sub(&s->n_blocked, 1);
    *u = (struct unsent){0};
    c->blocked = false;
}

/* The socket is reported as writable only when much of its buffer is free, so a slow reader may
 * have taken something all the same: the kernel is asked. */
void unsent_look(struct conn *c)
{
    if (!c->blocked)
        return;
    struct unsent *u = &c->request->unsent;
    int64_t taken = taken_in_all(c) - u->taken_base;
    if (taken > u->taken)
        u->moved_us = c->loop->now_us;
    u->taken = taken;
}

int64_t unsent_next_us(const struct unsent_list *a) { return a->n_shared ? a->look_us : -1; }
