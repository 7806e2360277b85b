/* See conn.h and conn_internal.h: the way of a request, and the events that carry it on.
 *
 *   bytes -> head -> body -> step -> answer -> send
 *
 * The stages are in this order below, and `advance` calls them.  A stage is a function that sets
 * the state of the next one, and returns false if there is nothing more to be done for the
 * connection in this turn; the connection may have been freed by then. */
#include "http/conn_internal.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include "http/admission.h"
#include "http/door.h"
#include "http/response.h"
#include "http/route.h"
#include "http/server_internal.h"
#include "http/stream.h"

#define HEAD_US (10 * SECOND_US)  /* from the first byte of a request to the end of its head */
#define BODY_US (30 * SECOND_US)  /* from there to the end of its body and trailers, and... */
#define BODY_BYTES_A_SECOND 65536 /* ... a second longer for each so many bytes of content */
#define LATE_US (1 * SECOND_US)   /* to read what came before a deadline that has passed */
/* A client that has ended its direction has this long to be answered, and until it takes some more:
 * twice that is less than 5 s, since its kernel takes something without it. */
#define LEFT_US (4 * SECOND_US)
#define ANSWERS_A_TURN 32 /* then the others have their turn */

/* ---- refusals ---- */

bool conn_refuse(struct conn *c, const struct problem *problem, const char *detail)
{
    struct request *r = c->request;
    r->server = c->loop->server;
    r->conn = c;
    if (!r->method && c->in && r->head.method.len)
        request_read_method(r, c->in->data + c->in->at);
    r->answer.close = true;
    answer_problem(r, problem, detail);
    c->state = CONN_ANSWER;
    return true;
}

/* The client is answered before all of its body has come. */
static bool refuse_unread(struct conn *c)
{
    struct request *r = c->request;
    r->step(r);
    r->answer.close = true;
    c->state = CONN_ANSWER;
    return true;
}

/* ---- bytes ---- */

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

/* Bytes come in. */
static bool receive(struct conn *c)
{
    if (!c->in)
        c->in = take_block(c, BLOCK_SMALL_MAX);
    struct block *b = c->in;
    if (!b) {
        c->request = request_take(&c->loop->requests);
        return conn_refuse(c, &problem_overloaded, NULL);
    }
    ssize_t n = conn_read(c, b->data + b->len, b->cap - b->len);
    if (n < 0 && !conn_must_wait()) {
        conn_close(c);
        return false;
    }
    if (n < 0) {
        if (!c->request)
            conn_give_block(c);
        return false;
    }
    c->ended = n == 0;
    b->len += (size_t)n;
    return true;
}

/* ---- head ---- */

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

/* The whole request has arrived. */
static bool begin_step(struct conn *c)
{
    struct request *r = c->request;
    r->accepted = true;
    counter_add(&r->server->traffic.accepted, 1);
    if (!c->has_asked) /* who waits for that must find the request counted */
        atomic_fetch_sub(&r->server->n_fresh, 1);
    c->has_asked = true;
    c->state = CONN_WAIT;
    return true;
}

/* The client asked whether it may send its body ("Expect: 100-continue"). */
static bool answer_expectation(struct conn *c)
{
    static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
    const struct iovec part = {(char *)(uintptr_t)go_on, sizeof go_on - 1};
    struct request *r = c->request;
    if (r->upload.discards)
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

/* The whole head has arrived: finds the route, and judges the request by its head. */
static bool begin_body(struct conn *c)
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
    r->upload.discards = refusal != NULL;
    if (!body_begin(&r->body_state, &r->head))
        return begin_step(c);
    c->state = CONN_BODY;
    conn_set_deadline(c, conn_time_of(c, BODY_US));
    return !r->head.expects || answer_expectation(c);
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
        return begin_body(c);
    conn_watch(c, EPOLLIN);
    place_rest_on(c);
    return false;
}

/* ---- body ---- */

/* Content that arrives earns the time that it takes at the slowest pace; framing and trailers earn
 * nothing. */
static void extend_deadline(struct conn *c)
{
    const struct request *r = c->request;
    int64_t len = (int64_t)(r->body.len + r->upload.drained);
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
            return begin_step(c);
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

/* ---- step ---- */

/* Has the next step of the request carried out. */
static bool run_step(struct conn *c)
{
    struct request *r = c->request;
    r->step(r);
    if (r->answer.status) {
        c->state = CONN_ANSWER;
        return true;
    }
    hf_check(r->waits);
    if (c->left)
        conn_set_deadline(c, LEFT_US);
    if (r->gone && c->events == 0) /* otherwise see conn_event: most requests need no call */
        conn_watch(c, EPOLLRDHUP);
    return false;
}

/* ---- answer ---- */

static bool begin_answer(struct conn *c)
{
    struct request *r = c->request;
    if (r->answer.reset) {
        conn_reset(c);
        return false;
    }
    response_write_head(r, c->loop->date);
    traffic_note_answer(r);
    request_count_completed(r);
    if (r->answer.stream.topic && answer_has_body(r)) {
        stream_open(c);
        return false;
    }
    c->state = CONN_SEND;
    c->sent = 0;
    return true;
}

static bool end_answer(struct conn *c)
{
    struct request *r = c->request;
    bool close = r->answer.close;
    unsent_over(c);
    conn_release_request(c);
    if (close) {
        conn_finish(c);
        return false;
    }
    c->state = CONN_HEAD;
    return true;
}

static bool send_answer(struct conn *c)
{
    struct request *r = c->request;
    const size_t head_len = r->answer_head.len, len = answer_has_body(r) ? r->answer.len : 0;
    while (c->sent < head_len + len) {
        struct iovec parts[2];
        int n = 0;
        size_t at = c->sent > head_len ? c->sent - head_len : 0;
        if (c->sent < head_len)
            parts[n++] = (struct iovec){r->answer_head.data + c->sent, head_len - c->sent};
        if (len > 0)
            parts[n++] = (struct iovec){(char *)(uintptr_t)r->answer.data + at, len - at};
        ssize_t sent = conn_write(c, parts, n);
        if (sent < 0 && !conn_must_wait()) {
            conn_close(c);
            return false;
        }
        if (sent < 0 && errno != EINTR) {
            unsent_wait(c);
            return false;
        }
        c->sent += sent > 0 ? (size_t)sent : 0;
    }
    return end_answer(c);
}

/* ---- the way of a request ---- */

/* The client has ended its direction while nothing is read.  It may have closed its socket, or it
 * may still read what it asked for. */
static void note_left(struct conn *c)
{
    c->left = true;
    unsent_look(c);
    conn_set_deadline(c, LEFT_US);
}

/* Waits until the client takes some of its answers. */
static void watch_for_room(struct conn *c)
{
    conn_set_deadline(c, conn_time_of(c, c->left ? UNSENT_LEFT_US : UNSENT_STALL_US));
    conn_watch(c, c->left ? EPOLLOUT : EPOLLOUT | EPOLLRDHUP);
}

/* One stage after the other, as far as there is something to do. */
static void advance(struct conn *c)
{
    for (int answered = 0; answered < ANSWERS_A_TURN;) {
        bool more = false;
        switch (c->state) {
        case CONN_HEAD:
            more = take_head(c);
            break;
        case CONN_BODY:
            more = take_body(c);
            break;
        case CONN_WAIT:
            more = run_step(c);
            break;
        case CONN_ANSWER:
            more = begin_answer(c);
            break;
        default:
            more = send_answer(c);
            answered += more;
        }
        if (!more)
            return;
    }
    /* Reported at once, or when the client has taken some of its answers.  Nothing more is read
     * until then: the block may be full. */
    watch_for_room(c);
}

/* ---- events ---- */

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
        note_left(c);
        watch_for_room(c);
        if (!(events & EPOLLOUT))
            return;
    }
    switch (c->state) {
    case CONN_HANDSHAKE:
        if (conn_shake_hands(c))
            advance(c);
        break;
    case CONN_HEAD:
        if (events & EPOLLOUT || receive(c))
            advance(c);
        break;
    case CONN_BODY:
        if (receive(c))
            advance(c);
        break;
    case CONN_WAIT: /* nothing is read until the answer has been sent */
        if (events & EPOLLRDHUP && !c->left)
            note_left(c);
        if (c->left)
            request_tell_gone(c->request);
        conn_watch(c, c->left ? 0 : EPOLLRDHUP);
        break;
    case CONN_SEND:
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
    else
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
        } else if (c->request && !only_empty_lines(c)) {
            (void)conn_refuse(c, &problem_request_timeout, NULL);
            advance(c);
        } else {
            conn_close(c);
        }
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
