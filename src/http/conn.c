/* See conn.h.  Functions that return bool return false if there is nothing more to be done for this
 * connection in this turn; it may have been freed by then. */
#include "http/conn.h"

#include <errno.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/response.h"
#include "http/route.h"
#include "http/server_internal.h"
#include "http/stream.h"

#define SECOND_US INT64_C(1000000)
#define IDLE_US (30 * SECOND_US)  /* between requests */
#define HEAD_US (30 * SECOND_US)  /* from the first byte of a request to the end of its head */
#define BODY_US (30 * SECOND_US)  /* from there to the end of its body */
#define SEND_US (30 * SECOND_US)  /* until the client takes some more of its answer */
#define LINGER_US (2 * SECOND_US) /* for a client that keeps sending after its refusal */
#define ANSWERS_A_TURN 32         /* then the others have their turn */
#define BODIES_BYTES_MAX ((size_t)256 << 20) /* of those that are, of all threads */

/* ---- sockets ---- */

ssize_t conn_read(struct conn *c, void *data, size_t len) { return recv(c->fd, data, len, 0); }

ssize_t conn_write(struct conn *c, const struct iovec *parts, int n)
{
    const struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)parts,
                                   .msg_iovlen = (size_t)n};
    return sendmsg(c->fd, &message, MSG_NOSIGNAL);
}

/* How much of what was sent the client has not taken yet. */
static int unacknowledged(const struct conn *c)
{
    int n = 0;
    return ioctl(c->fd, SIOCOUTQ, &n) == 0 ? n : 0;
}

static bool try_again(void) { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

void conn_watch(struct conn *c, uint32_t events)
{
    if (c->events == events)
        return;
    struct epoll_event event = {.events = events, .data.ptr = c};
    hf_check(epoll_ctl(c->loop->epoll_fd, EPOLL_CTL_MOD, c->fd, &event) == 0);
    c->events = events;
}

void conn_set_deadline(struct conn *c, int64_t after_us)
{
    wheel_set(&c->loop->wheel, &c->timer, c->loop->now_us + after_us);
}

/* ---- life ---- */

struct conn *conn_new(int fd, const struct sockaddr *peer, bool streams_only)
{
    struct conn *c = hf_alloc(sizeof *c);
    c->fd = fd;
    c->streams_only = streams_only;
    c->knows_peer = peer && address_from_socket(peer, &c->peer);
    return c;
}

void conn_start(struct conn *c, struct loop *l)
{
    c->loop = l;
    c->prev = NULL;
    c->next = l->conns;
    if (c->next)
        c->next->prev = c;
    l->conns = c;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
    c->events = event.events;
    conn_set_deadline(c, IDLE_US);
    if (epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, c->fd, &event) != 0)
        conn_close(c); /* the kernel has no memory for it */
}

static void count_completed(struct request *r)
{
    if (r->accepted && !r->completed)
        counter_add(&r->server->completed, 1);
    r->completed = true;
}

static void release_request(struct conn *c)
{
    struct server *s = c->loop->server;
    struct request *r = c->request;
    if (!r)
        return;
    count_completed(r);
    if (r->large)
        atomic_fetch_sub(&s->large, 1);
    if (r->body_counted)
        atomic_fetch_sub(&s->body_bytes, r->body_counted);
    c->request = NULL;
    request_release(&c->loop->requests, r);
}

static void give_block(struct conn *c)
{
    block_give(&c->loop->blocks, c->in);
    c->in = NULL;
}

void conn_request_over(struct conn *c)
{
    release_request(c);
    give_block(c);
}

static void hang_up(struct conn *c)
{
    if (c->fd >= 0)
        (void)close(c->fd);
    c->fd = -1;
}

static void unblock(struct conn *c)
{
    atomic_fetch_sub(&c->loop->server->n_blocked, c->blocked);
    c->blocked = false;
}

void conn_close(struct conn *c)
{
    struct loop *l = c->loop;
    hang_up(c);
    if (c->request && c->request->waits)
        return;
    unblock(c);
    if (c->stream)
        stream_close(c->stream);
    conn_request_over(c);
    wheel_cancel(&l->wheel, &c->timer);
    if (c->next)
        c->next->prev = c->prev;
    *(c->prev ? &c->prev->next : &l->conns) = c->next;
    atomic_fetch_sub(&l->server->n_connections, 1);
    gauge_add(l->server->connections, -1);
    free(c);
}

/* ---- answers ---- */

void conn_finish(struct conn *c)
{
    if (c->ended) {
        conn_close(c);
        return;
    }
    if (c->stream)
        stream_close(c->stream);
    give_block(c);
    (void)shutdown(c->fd, SHUT_WR);
    c->state = CONN_LINGER;
    conn_set_deadline(c, LINGER_US);
    conn_watch(c, EPOLLIN);
}

static bool answer_sent(struct conn *c)
{
    struct request *r = c->request;
    bool close = r->answer.close;
    unblock(c);
    release_request(c);
    if (close) {
        conn_finish(c);
        return false;
    }
    c->state = CONN_HEAD;
    return true;
}

/* The socket takes no more of the answer for now. */
static void block_on_client(struct conn *c)
{
    atomic_fetch_add(&c->loop->server->n_blocked, !c->blocked);
    c->blocked = true;
    c->unacknowledged = unacknowledged(c);
    conn_set_deadline(c, SEND_US);
    conn_watch(c, EPOLLOUT);
}

/* The time for an answer has passed.  The socket is reported as writable only when much of its
 * buffer is free, so a slow reader may have taken something all the same. */
static void answer_due(struct conn *c)
{
    int before = c->unacknowledged, now = unacknowledged(c);
    c->unacknowledged = now;
    if (now < before)
        conn_set_deadline(c, SEND_US);
    else
        conn_close(c);
}

static bool send_answer(struct conn *c)
{
    struct request *r = c->request;
    const size_t head_len = r->answer_head.len, len = response_has_body(r) ? r->answer.len : 0;
    while (c->sent < head_len + len) {
        struct iovec parts[2];
        int n = 0;
        size_t at = c->sent > head_len ? c->sent - head_len : 0;
        if (c->sent < head_len)
            parts[n++] = (struct iovec){r->answer_head.data + c->sent, head_len - c->sent};
        if (len > 0)
            parts[n++] = (struct iovec){(char *)(uintptr_t)r->answer.data + at, len - at};
        ssize_t sent = conn_write(c, parts, n);
        if (sent < 0 && !try_again()) {
            conn_close(c);
            return false;
        }
        if (sent < 0 && errno != EINTR) {
            block_on_client(c);
            return false;
        }
        c->sent += sent > 0 ? (size_t)sent : 0;
    }
    return answer_sent(c);
}

/* Ends the connection so that the client sees an error and not an end. */
static void reset(struct conn *c)
{
    const struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    (void)setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    conn_close(c);
}

/* The request has been answered. */
static bool begin_answer(struct conn *c)
{
    struct request *r = c->request;
    if (r->answer.reset) {
        reset(c);
        return false;
    }
    response_write_head(r, c->loop->date);
    server_note_answer(r);
    count_completed(r);
    if (r->answer.topic && response_has_body(r)) {
        stream_open(c, r->answer.topic);
        return false;
    }
    c->state = CONN_SEND;
    c->sent = 0;
    return send_answer(c);
}

static bool run_step(struct conn *c)
{
    struct request *r = c->request;
    c->state = CONN_WAIT;
    r->step(r);
    if (r->answer.status)
        return begin_answer(c);
    hf_check(r->waits);
    return false;
}

/* Answers a request of which it is not known, or does not matter any more, where it ends. */
static bool refuse(struct conn *c, const struct problem *problem, const char *detail)
{
    struct request *r = c->request;
    r->server = c->loop->server;
    r->conn = c;
    if (!r->method && r->head.method.len)
        request_read_method(r, c->in->data + c->in->at);
    r->answer.close = true;
    answer_problem(r, problem, detail);
    return begin_answer(c);
}

/* ---- bodies ---- */

static void draining(struct request *r)
{
    r->answer.close = true;
    answer_problem(r, &problem_draining, NULL);
}

static void too_much_at_once(struct request *r) { answer_problem(r, &problem_overloaded, NULL); }

static void too_many_parameters(struct request *r)
{
    answer_problem(r, &problem_invalid_request, "query must have at most 16 parameters");
}

static void wrong_parameters(struct request *r)
{
    char detail[128];
    hf_check(!route_check_query(r, detail, sizeof detail));
    answer_problem(r, &problem_invalid_request, detail);
}

static void too_large(struct request *r)
{
    char detail[64];
    (void)snprintf(detail, sizeof detail, "body must have at most %zu bytes", r->body_max);
    answer_problem(r, &problem_body_too_large, detail);
}

/* Does the budget of bodies allow `len` bytes in all for this one? */
static bool count_body(struct request *r, size_t len)
{
    atomic_size_t *all = &r->server->body_bytes;
    if (len <= BLOCK_BODY_FREE || len <= r->body_counted)
        return true;
    size_t more = 2 * len - r->body_counted; /* buffers grow by doubling */
    if (atomic_fetch_add(all, more) + more > BODIES_BYTES_MAX) {
        atomic_fetch_sub(all, more);
        return false;
    }
    r->body_counted += more;
    return true;
}

/* Keeps a part of the body, or discards it if the request is or has to be refused.  Returns false
 * if the client goes on sending for too long after that. */
static bool take_part(struct request *r, struct text part)
{
    bool fits = !r->discards && part.len <= r->body_max - r->body.len;
    size_t len = r->body.len + part.len;
    if (fits && (len <= BODY_MAX || server_admit_large(r)) && count_body(r, len)) {
        buf_put(&r->body, part.data, part.len);
        return true;
    }
    if (!r->discards) {
        r->discards = true;
        r->step = fits ? too_much_at_once : too_large;
        r->drained = fits ? 0 : len - r->body_max;
        buf_close(&r->body);
    } else {
        r->drained += part.len;
    }
    return r->drained <= BODY_DRAIN_MAX;
}

static bool refuse_unread(struct conn *c)
{
    struct request *r = c->request;
    r->step(r);
    r->answer.close = true;
    return begin_answer(c);
}

static bool request_whole(struct conn *c)
{
    struct request *r = c->request;
    r->accepted = true;
    counter_add(&r->server->accepted, 1);
    return run_step(c);
}

static bool take_body(struct conn *c)
{
    struct request *r = c->request;
    struct block *b = c->in;
    while (b->at < b->len) {
        struct text part = {0};
        size_t used = 0;
        enum parse result =
            body_parse(&r->body_state, b->data + b->at, b->len - b->at, &used, &part);
        if (result == PARSE_REFUSED)
            return refuse(c, r->body_state.refusal.problem, r->body_state.refusal.detail);
        hf_check(used > 0);
        b->at += used;
        if (part.len && !take_part(r, part))
            return refuse_unread(c);
        if (result == PARSE_DONE)
            return request_whole(c);
    }
    b->at = b->len = (size_t)(r->text - b->data) + r->head.len; /* the head stays */
    if (c->ended)
        conn_close(c);
    else
        conn_watch(c, EPOLLIN);
    return false;
}

/* The client asked whether it may send its body ("Expect: 100-continue"). */
static bool answer_expectation(struct conn *c)
{
    static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
    const struct iovec part = {(char *)(uintptr_t)go_on, sizeof go_on - 1};
    struct request *r = c->request;
    if (r->discards)
        return refuse_unread(c);
    if (c->in->at < c->in->len) /* it did not wait for the answer */
        return true;
    ssize_t sent = conn_write(c, &part, 1);
    if (sent == (ssize_t)part.iov_len || (sent < 0 && try_again())) /* it sends its body in time */
        return true;
    conn_close(c);
    return false;
}

/* ---- heads ---- */

/* While the server drains, a stream is opened and ends at once, with the time to come back: a
 * browser whose stream is refused does not try again. */
static bool may_begin(const struct request *r)
{
    return !server_draining(r->server) ||
           (r->route && (r->route->while_draining || r->route->streams));
}

/* The step that refuses the request for what its head says; NULL: it may go on. */
static step_fn refusal_of(struct request *r)
{
    if (!access_check(r))
        return r->step;
    if (!may_begin(r))
        return draining;
    if (r->n_parameters > PARAMETERS_MAX)
        return too_many_parameters;
    char detail[128];
    if (r->needs != SCOPE_UNSET && !route_check_query(r, detail, sizeof detail))
        return wrong_parameters;
    return r->head.has_length && r->head.length > r->body_max ? too_large : NULL;
}

/* The head is whole: routes the request and checks its access. */
static bool begin(struct conn *c)
{
    struct request *r = c->request;
    struct server *s = c->loop->server;
    struct block *b = c->in;
    r->server = s;
    r->conn = c;
    r->arrived_us = c->loop->now_us;
    request_read_head(r, b->data + b->at);
    b->at += r->head.len;
    r->cors_origin = cors_match(s->config.cors, r->origin.data, r->origin.len);
    if (!r->cors_origin && stream_is_for_own_page(r))
        r->cors_origin = r->origin.data;
    route_find(r, s->config.app->routes, c->streams_only);
    step_fn refusal = refusal_of(r);
    if (refusal)
        r->step = refusal;
    r->discards = refusal != NULL;
    if (!body_begin(&r->body_state, &r->head))
        return request_whole(c);
    c->state = CONN_BODY;
    conn_set_deadline(c, BODY_US);
    return !r->head.expects || answer_expectation(c);
}

/* Makes the connection's block hold at least `cap` bytes from b->at on.  Returns false if there is
 * no memory for it. */
static bool make_room(struct conn *c, size_t cap)
{
    struct block *b = c->in;
    if (b->cap - b->at >= cap)
        return true;
    struct block *larger = b;
    if (b->cap < cap) {
        larger = block_take(&c->loop->blocks, cap);
        if (!larger)
            return false;
    }
    size_t len = b->len - b->at;
    memmove(larger->data, b->data + b->at, len);
    larger->at = 0;
    larger->len = len;
    if (larger != b) {
        block_give(&c->loop->blocks, b);
        c->in = larger;
    }
    return true;
}

/* Between requests. */
static bool idle(struct conn *c)
{
    give_block(c);
    if (c->ended) {
        conn_close(c);
        return false;
    }
    conn_set_deadline(c, IDLE_US);
    conn_watch(c, EPOLLIN);
    return false;
}

static bool take_head(struct conn *c)
{
    struct block *b = c->in;
    if (!b || b->at == b->len)
        return idle(c);
    struct request *r = c->request;
    if (!r) {
        c->request = r = request_take(&c->loop->requests);
        conn_set_deadline(c, HEAD_US);
    }
    enum parse result = head_parse(&r->head, b->data + b->at, b->len - b->at);
    if (result == PARSE_REFUSED)
        return refuse(c, r->head.refusal.problem, r->head.refusal.detail);
    if (result == PARSE_MORE && c->ended) {
        conn_close(c);
        return false;
    }
    size_t needs = result == PARSE_DONE ? r->head.len + BLOCK_BODY_MIN : b->len - b->at + 1;
    if (!make_room(c, needs))
        return refuse(c, &problem_overloaded, NULL);
    if (result == PARSE_DONE)
        return begin(c);
    conn_watch(c, EPOLLIN);
    return false;
}

/* ---- events ---- */

static void advance(struct conn *c)
{
    for (int answered = 0;;) {
        bool more = c->state == CONN_BODY ? take_body(c) : take_head(c);
        if (!more)
            return;
        answered += c->state == CONN_HEAD;
        if (answered == ANSWERS_A_TURN) {
            /* Reported at once, or when the client has taken some of its answers.  Nothing more is
             * read until then: the block may be full. */
            conn_watch(c, EPOLLOUT);
            return;
        }
    }
}

static void fill(struct conn *c)
{
    if (!c->in)
        c->in = block_take(&c->loop->blocks, BLOCK_SMALL_MAX);
    struct block *b = c->in;
    if (!b) {
        c->request = request_take(&c->loop->requests);
        (void)refuse(c, &problem_overloaded, NULL);
        return;
    }
    ssize_t n = conn_read(c, b->data + b->len, b->cap - b->len);
    if (n < 0 && !try_again()) {
        conn_close(c);
        return;
    }
    if (n < 0) {
        if (!c->request)
            give_block(c);
        return;
    }
    c->ended = n == 0;
    b->len += (size_t)n;
    advance(c);
}

static void discard(struct conn *c)
{
    char nothing[4096];
    ssize_t n = conn_read(c, nothing, sizeof nothing);
    if (n == 0 || (n < 0 && !try_again()))
        conn_close(c);
}

void conn_event(struct conn *c, uint32_t events)
{
    /* A lingering connection has ended its own direction, so the client's end is a hang-up; what
     * the client sent before it is still to be discarded. */
    bool gone = events & EPOLLERR || (events & EPOLLHUP && c->state != CONN_LINGER);
    if (gone) {
        conn_close(c);
        return;
    }
    switch (c->state) {
    case CONN_HEAD:
        if (!(events & EPOLLOUT))
            fill(c);
        else
            advance(c);
        break;
    case CONN_BODY:
        fill(c);
        break;
    case CONN_WAIT:
        conn_watch(c, 0); /* nothing is read until the answer has been sent */
        break;
    case CONN_SEND:
        if (send_answer(c))
            advance(c);
        break;
    case CONN_STREAM:
        stream_event(c->stream, events);
        break;
    case CONN_LINGER:
        discard(c);
        break;
    default:
        hf_check(false);
    }
}

void conn_resume(struct conn *c)
{
    c->request->waits = false;
    if (c->fd < 0)
        conn_close(c);
    else if (run_step(c))
        advance(c);
}

/* Some clients send an empty line after a body, which is no request that has begun. */
static bool only_empty_lines(const struct conn *c)
{
    const struct head *h = &c->request->head;
    return c->state == CONN_HEAD && !h->has_request_line && h->line == c->in->len - c->in->at;
}

void conn_due(struct conn *c)
{
    switch (c->state) {
    case CONN_HEAD:
    case CONN_BODY:
        if (c->request && !only_empty_lines(c))
            (void)refuse(c, &problem_request_timeout, NULL);
        else
            conn_close(c);
        break;
    case CONN_WAIT:
        break;
    case CONN_STREAM:
        stream_due(c->stream);
        break;
    case CONN_SEND:
        answer_due(c);
        break;
    default:
        conn_close(c);
    }
}

void conn_request_done(struct request *r) { loop_request_done(r->conn->loop, r); }

const struct address *request_peer(const struct request *r)
{
    return r->conn->knows_peer ? &r->conn->peer : NULL;
}
