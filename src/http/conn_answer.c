/* See conn.h and conn_internal.h: sockets, the life of a connection, and answers. */
#include "http/conn_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/response.h"
#include "http/server_internal.h"
#include "http/stream.h"
#include "http/tls.h"

#define HANDSHAKE_US (10 * SECOND_US) /* from the connection to the end of the handshake of TLS */
/* A client that has ended its direction has this long to be answered, and until it takes some more:
 * twice that is less than 5 s, since its kernel takes something without it. */
#define LEFT_US (4 * SECOND_US)
#define LINGER_US (2 * SECOND_US) /* for a client that keeps sending after its refusal */

/* ---- sockets ---- */

ssize_t conn_read(struct conn *c, void *data, size_t len)
{
    return c->tls ? tls_read(c->tls, data, len) : recv(c->fd, data, len, 0);
}

ssize_t conn_write(struct conn *c, const struct iovec *parts, int n)
{
    const struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)parts,
                                   .msg_iovlen = (size_t)n};
    if (c->tls)
        return tls_write(c->tls, parts, n);
    return sendmsg(c->fd, &message, MSG_NOSIGNAL);
}

bool conn_has_unread(const struct conn *c)
{
    char byte;
    return recv(c->fd, &byte, sizeof byte, MSG_PEEK | MSG_DONTWAIT) > 0;
}

bool conn_must_wait(void) { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

static void unlink_unread(struct conn *c)
{
    if (!c->unread_link)
        return;
    *c->unread_link = c->unread_next;
    if (c->unread_next)
        c->unread_next->unread_link = c->unread_link;
    c->unread_link = NULL;
}

static void link_unread(struct conn *c)
{
    struct loop *l = c->loop;
    if (c->unread_link)
        return;
    c->unread_next = l->unread;
    c->unread_link = &l->unread;
    if (l->unread)
        l->unread->unread_link = &c->unread_next;
    l->unread = c;
}

void conn_take_unread(struct conn *c)
{
    unlink_unread(c);
    if (c->events & EPOLLIN)
        conn_event(c, EPOLLIN);
}

void conn_watch(struct conn *c, uint32_t events)
{
    if (c->tls && events & EPOLLIN && tls_has_data(c->tls))
        link_unread(c);
    if (c->events == events)
        return;
    struct epoll_event event = {.events = events, .data.ptr = c};
    hf_check(epoll_ctl(c->loop->epoll_fd, EPOLL_CTL_MOD, c->fd, &event) == 0);
    c->events = events;
}

/* A guest has no more than its second for anything. */
int64_t conn_time_of(const struct conn *c, int64_t us) { return c->place.is_guest ? GUEST_US : us; }

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
    c->state = l->server->config.tls ? CONN_HANDSHAKE : CONN_HEAD;
    conn_set_deadline(c, conn_time_of(c, c->state == CONN_HANDSHAKE ? HANDSHAKE_US : IDLE_US));
    admission_rest(c);
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
    struct request *r = c->request;
    if (!r)
        return;
    count_completed(r);
    request_uncount_body(r);
    c->request = NULL;
    request_release(&c->loop->requests, r);
}

void conn_give_block(struct conn *c)
{
    block_give(&c->loop->blocks, c->in);
    c->in = NULL;
}

void conn_request_over(struct conn *c)
{
    release_request(c);
    conn_give_block(c);
}

static void end_tls(struct conn *c)
{
    handshakes_leave(c);
    unlink_unread(c);
    tls_session_end(c->tls);
    c->tls = NULL;
}

static void hang_up(struct conn *c)
{
    end_tls(c);
    if (c->fd >= 0)
        (void)close(c->fd);
    c->fd = -1;
}

/* Tells the handler of a waiting request, once. */
void conn_tell_gone(struct request *r)
{
    step_fn gone = r->gone;
    r->gone = NULL;
    if (gone)
        gone(r);
}

void conn_close(struct conn *c)
{
    struct loop *l = c->loop;
    hang_up(c);
    if (c->request && c->request->waits) {
        conn_tell_gone(c->request);
        return;
    }
    unsent_over(c);
    if (c->stream)
        stream_close(c->stream);
    conn_request_over(c);
    wheel_cancel(&l->wheel, &c->timer);
    if (c->next)
        c->next->prev = c->prev;
    *(c->prev ? &c->prev->next : &l->conns) = c->next;
    admission_leave(c);
    atomic_fetch_sub(&l->server->n_connections, 1);
    atomic_fetch_sub(&l->server->n_fresh, c->has_asked ? 0 : 1);
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
    conn_give_block(c);
    end_tls(c);
    (void)shutdown(c->fd, SHUT_WR);
    c->state = CONN_LINGER;
    conn_set_deadline(c, conn_time_of(c, LINGER_US));
    conn_watch(c, EPOLLIN);
    admission_rest_on(c);
}

static bool answer_sent(struct conn *c)
{
    struct request *r = c->request;
    bool close = r->answer.close;
    unsent_over(c);
    release_request(c);
    if (close) {
        conn_finish(c);
        return false;
    }
    c->state = CONN_HEAD;
    return true;
}

/* The client has ended its direction while nothing is read.  It may have closed its socket, or it
 * may still read what it asked for. */
void conn_note_left(struct conn *c)
{
    c->left = true;
    unsent_look(c);
    conn_set_deadline(c, LEFT_US);
}

/* Waits until the client takes some of its answers. */
void conn_watch_for_room(struct conn *c)
{
    conn_set_deadline(c, conn_time_of(c, c->left ? UNSENT_LEFT_US : UNSENT_STALL_US));
    conn_watch(c, c->left ? EPOLLOUT : EPOLLOUT | EPOLLRDHUP);
}

bool conn_send_answer(struct conn *c)
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
    return answer_sent(c);
}

/* Closes the socket so that the client sees an error and not an end. */
static void hang_up_by_reset(struct conn *c)
{
    const struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    (void)setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    tls_session_abort(c->tls);
    c->tls = NULL;
    hang_up(c);
}

void conn_cut(struct conn *c)
{
    hf_check(c->state == CONN_SEND || c->state == CONN_HEAD || c->state == CONN_BODY);
    hang_up_by_reset(c);
    unsent_over(c);
    conn_request_over(c);
    c->state = CONN_CUT;
    conn_set_deadline(c, 0);
}

/* The request has been answered. */
bool conn_begin_answer(struct conn *c)
{
    struct request *r = c->request;
    if (r->answer.reset) {
        hang_up_by_reset(c);
        conn_close(c);
        return false;
    }
    response_write_head(r, c->loop->date);
    server_note_answer(r);
    count_completed(r);
    if (r->answer.topic && answer_has_body(r)) {
        stream_open(c);
        return false;
    }
    c->state = CONN_SEND;
    c->sent = 0;
    return conn_send_answer(c);
}

bool conn_run_step(struct conn *c)
{
    struct request *r = c->request;
    c->state = CONN_WAIT;
    r->step(r);
    if (r->answer.status)
        return conn_begin_answer(c);
    hf_check(r->waits);
    if (c->left)
        conn_set_deadline(c, LEFT_US);
    if (r->gone && c->events == 0) /* otherwise see conn_event: most requests need no call */
        conn_watch(c, EPOLLRDHUP);
    return false;
}

/* Answers a request of which it is not known, or does not matter any more, where it ends. */
bool conn_refuse(struct conn *c, const struct problem *problem, const char *detail)
{
    struct request *r = c->request;
    r->server = c->loop->server;
    r->conn = c;
    if (!r->method && c->in && r->head.method.len)
        request_read_method(r, c->in->data + c->in->at);
    r->answer.close = true;
    answer_problem(r, problem, detail);
    return conn_begin_answer(c);
}
