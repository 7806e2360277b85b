/* See conn.h and conn_internal.h: reads requests and takes events. */
#include "http/conn_internal.h"

#include <string.h>
#include <sys/epoll.h>

#include "http/admission.h"
#include "http/door.h"
#include "http/route.h"
#include "http/server_internal.h"
#include "http/stream.h"
#include "http/tls.h"

#define HEAD_US (10 * SECOND_US)  /* from the first byte of a request to the end of its head */
#define BODY_US (30 * SECOND_US)  /* from there to the end of its body and trailers, and... */
#define BODY_BYTES_A_SECOND 65536 /* ... a second longer for each so many bytes of content */
#define LATE_US (1 * SECOND_US)   /* to read what came before a deadline that has passed */
#define ANSWERS_A_TURN 32         /* then the others have their turn */

/* ---- bodies ---- */

static bool refuse_unread(struct conn *c)
{
    struct request *r = c->request;
    r->step(r);
    r->answer.close = true;
    return conn_begin_answer(c);
}

static bool request_whole(struct conn *c)
{
    struct request *r = c->request;
    r->accepted = true;
    counter_add(&r->server->traffic.accepted, 1);
    if (!c->has_asked) /* who waits for that must find the request counted */
        atomic_fetch_sub(&r->server->n_fresh, 1);
    c->has_asked = true;
    return conn_run_step(c);
}

/* Content that arrives earns the time that it takes at the slowest pace; framing and trailers earn
 * nothing. */
static void extend_deadline(struct conn *c)
{
    const struct request *r = c->request;
    int64_t len = (int64_t)(r->body.len + r->drained);
    int64_t due_us = r->arrived_us + BODY_US + len * SECOND_US / BODY_BYTES_A_SECOND;
    if (due_us > c->timer.due_us && !c->place.is_guest)
        wheel_set(&c->loop->wheel, &c->timer, due_us);
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
            return conn_refuse(c, r->body_state.refusal.problem, r->body_state.refusal.detail);
        hf_check(used > 0);
        b->at += used;
        if (part.len && !conn_keep_part(r, part))
            return refuse_unread(c);
        if (result == PARSE_DONE)
            return request_whole(c);
    }
    b->at = b->len = (size_t)(r->text - b->data) + r->head.len; /* the head stays */
    if (c->ended) {
        conn_close(c);
        return false;
    }
    extend_deadline(c);
    conn_watch(c, EPOLLIN);
    place_rest_on(c);
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
    if (sent == (ssize_t)part.iov_len ||
        (sent < 0 && conn_must_wait())) /* it sends its body in time */
        return true;
    conn_close(c);
    return false;
}

/* ---- heads ---- */

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
    r->cors_origin = door_origin(r);
    route_find(r, s->config.app->routes, c->streams_only);
    step_fn refusal = door_refusal(r);
    if (!refusal)
        refusal = conn_body_refusal(r);
    if (refusal)
        r->step = refusal;
    r->discards = refusal != NULL;
    if (!body_begin(&r->body_state, &r->head))
        return request_whole(c);
    c->state = CONN_BODY;
    conn_set_deadline(c, conn_time_of(c, BODY_US));
    return !r->head.expects || answer_expectation(c);
}

/* Requests of which only a part has come must not keep whole ones out. */
static struct block *take_block(struct conn *c, size_t cap)
{
    struct block *b = block_take(&c->loop->blocks, cap);
    while (!b && admission_make_room(c, ROOM_REQUEST))
        b = block_take(&c->loop->blocks, cap);
    return b;
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
        larger = take_block(c, cap);
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
    conn_give_block(c);
    if (c->ended) {
        conn_close(c);
        return false;
    }
    c->late = false;
    conn_set_deadline(c, conn_time_of(c, IDLE_US));
    conn_watch(c, EPOLLIN);
    place_rest(c);
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
        c->late = false;
        conn_set_deadline(c, conn_time_of(c, HEAD_US));
    }
    enum parse result = head_parse(&r->head, b->data + b->at, b->len - b->at);
    if (result == PARSE_REFUSED)
        return conn_refuse(c, r->head.refusal.problem, r->head.refusal.detail);
    if (result == PARSE_MORE && c->ended) {
        conn_close(c);
        return false;
    }
    size_t needs = result == PARSE_DONE ? r->head.len + BLOCK_BODY_MIN : b->len - b->at + 1;
    if (!make_room(c, needs))
        return conn_refuse(c, &problem_overloaded, NULL);
    if (result == PARSE_DONE)
        return begin(c);
    conn_watch(c, EPOLLIN);
    place_rest_on(c);
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
            conn_watch_for_room(c);
            return;
        }
    }
}

static void fill(struct conn *c)
{
    if (!c->in)
        c->in = take_block(c, BLOCK_SMALL_MAX);
    struct block *b = c->in;
    if (!b) {
        c->request = request_take(&c->loop->requests);
        (void)conn_refuse(c, &problem_overloaded, NULL);
        return;
    }
    ssize_t n = conn_read(c, b->data + b->len, b->cap - b->len);
    if (n < 0 && !conn_must_wait()) {
        conn_close(c);
        return;
    }
    if (n < 0) {
        if (!c->request)
            conn_give_block(c);
        return;
    }
    c->ended = n == 0;
    b->len += (size_t)n;
    advance(c);
}

/* The first byte of a connection decides whether it has TLS. */
static bool begin_tls(struct conn *c)
{
    struct tls *tls = c->loop->server->config.tls;
    switch (tls_look(c->fd)) {
    case TLS_FIRST_NONE:
        return false;
    case TLS_FIRST_HELLO:
        c->tls = tls_session_new(tls, c->fd);
        if (c->tls)
            handshakes_enter(c);
        break;
    case TLS_FIRST_PLAIN:
        c->request = request_take(&c->loop->requests);
        (void)conn_refuse(c, &problem_tls_required, NULL);
        return false;
    default:
        break;
    }
    if (c->tls)
        return true;
    conn_close(c);
    return false;
}

static void shake_hands(struct conn *c)
{
    if (!handshakes_step(&c->loop->handshakes) || (!c->tls && !begin_tls(c)))
        return;
    switch (tls_handshake(c->tls)) {
    case TLS_DONE:
        handshakes_leave(c);
        c->state = CONN_HEAD;
        (void)idle(c);
        break;
    case TLS_WANTS_READ:
        conn_watch(c, EPOLLIN);
        break;
    case TLS_WANTS_WRITE:
        conn_watch(c, EPOLLOUT);
        break;
    default:
        conn_close(c);
    }
}

static void discard(struct conn *c)
{
    char nothing[4096];
    ssize_t n = conn_read(c, nothing, sizeof nothing);
    if (n == 0 || (n < 0 && !conn_must_wait()))
        conn_close(c);
}

void conn_event(struct conn *c, uint32_t events)
{
    if (c->state == CONN_CUT)
        return;
    /* A lingering connection has ended its own direction, so the client's end is a hang-up; what
     * the client sent before it is still to be discarded. */
    bool gone = events & EPOLLERR || (events & EPOLLHUP && c->state != CONN_LINGER);
    if (gone) {
        conn_close(c);
        return;
    }
    if (events & EPOLLRDHUP && (c->state == CONN_HEAD || c->state == CONN_SEND)) {
        conn_note_left(c);
        conn_watch_for_room(c);
        if (!(events & EPOLLOUT))
            return;
    }
    switch (c->state) {
    case CONN_HANDSHAKE:
        shake_hands(c);
        break;
    case CONN_HEAD:
        if (!(events & EPOLLOUT))
            fill(c);
        else
            advance(c);
        break;
    case CONN_BODY:
        fill(c);
        break;
    case CONN_WAIT: /* nothing is read until the answer has been sent */
        if (events & EPOLLRDHUP && !c->left)
            conn_note_left(c);
        if (c->left)
            request_tell_gone(c->request);
        conn_watch(c, c->left ? 0 : EPOLLRDHUP);
        break;
    case CONN_SEND:
        if (conn_send_answer(c))
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
    c->request->gone = NULL;
    if (c->fd < 0)
        conn_close(c);
    else if (conn_run_step(c))
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
        if (!c->late && conn_has_unread(c)) {
            /* This process may have stood still, and the client was in time. */
            c->late = true;
            conn_set_deadline(c, LATE_US);
        } else if (c->request && !only_empty_lines(c))
            (void)conn_refuse(c, &problem_request_timeout, NULL);
        else
            conn_close(c);
        break;
    case CONN_WAIT:
        if (c->left)
            conn_close(c);
        break;
    case CONN_STREAM:
        stream_due(c->stream);
        break;
    case CONN_SEND:
        unsent_due(c);
        break;
    default:
        conn_close(c);
    }
}

void conn_take_unread(struct conn *c)
{
    conn_unlink_unread(c);
    if (c->events & EPOLLIN)
        conn_event(c, EPOLLIN);
}
