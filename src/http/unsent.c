/* See unsent.h. */
#include "http/unsent.h"

#include <linux/sockios.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>

#include "base/pin.h"
#include "http/conn.h"
#include "http/server_internal.h"

#define CHECK_US INT64_C(2000000) /* how often the pace of a client is looked at */
#define LOOK_US INT64_C(100000)   /* how often revoked bodies are looked for */

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
            loop_wake(oldest);
            return;
        }
        if (!l->unsent.oldest)
            return;
        cut(l->unsent.oldest, CUT_MEMORY);
    }
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
    return r->out.cap + r->answer_head.cap + (a->sent && !a->pin ? a->len : 0);
}

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

static void begin(struct conn *c)
{
    struct server *s = c->loop->server;
    struct request *r = c->request;
    struct unsent *u = &r->unsent;
    const int64_t now_us = c->loop->now_us;
    shrink(r);
    c->blocked = true;
    atomic_fetch_add(&s->n_blocked, 1);
    *u = (struct unsent){.conn = c,
                         .pin = r->answer.pin,
                         .bytes = own_bytes(r),
                         .begun_us = now_us,
                         .moved_us = now_us,
                         .taken_base = taken_in_all(c)};
    charge(&s->unsent, u->bytes + (u->pin ? pin_take(u->pin, r->answer.pinned) : 0));
    list_add(&c->loop->unsent, u);
    conn_set_deadline(c, check_us(c));
}

/* An answer that does not fit into the budget by itself goes at once: to make room for it, all
 * others would be cut off first. */
static bool fits(const struct conn *c)
{
    const struct request *r = c->request;
    size_t bytes = r->unsent.bytes + (r->unsent.pin ? r->answer.pinned : 0);
    return bytes <= c->loop->server->unsent.max;
}

void unsent_wait(struct conn *c)
{
    struct loop *l = c->loop;
    if (c->blocked)
        c->request->unsent.moved_us = l->now_us; /* the socket had taken some more */
    else
        begin(c);
    if (!fits(c)) {
        cut(&c->request->unsent, CUT_MEMORY);
        return;
    }
    conn_watch(c, c->left ? EPOLLOUT : EPOLLOUT | EPOLLRDHUP);
    keep_to_budget(l);
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

int64_t unsent_next_us(const struct unsent_list *a) { return a->n_shared ? a->look_us : -1; }
