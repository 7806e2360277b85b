/* See conn.h and conn_internal.h: how a connection begins and ends. */
#include "http/conn_internal.h"

#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/server_internal.h"
#include "http/stream.h"
#include "http/tls.h"

#define HANDSHAKE_US (10 * SECOND_US) /* from the connection to the end of the handshake of TLS */
#define LINGER_US (2 * SECOND_US)     /* for a client that keeps sending after its refusal */

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
    place_rest(c);
    if (epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, c->fd, &event) != 0)
        conn_close(c); /* the kernel has no memory for it */
}

void conn_release_request(struct conn *c)
{
    struct request *r = c->request;
    if (!r)
        return;
    request_count_completed(r);
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
    conn_release_request(c);
    conn_give_block(c);
}

static void end_tls(struct conn *c)
{
    handshakes_leave(c);
    conn_unlink_unread(c);
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

void conn_close(struct conn *c)
{
    struct loop *l = c->loop;
    hang_up(c);
    if (c->request && c->request->waits) {
        request_tell_gone(c->request);
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
    place_leave(c);
    atomic_fetch_sub(&l->server->n_connections, 1);
    atomic_fetch_sub(&l->server->n_fresh, c->has_asked ? 0 : 1);
    gauge_add(l->server->traffic.connections, -1);
    free(c);
}

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
    place_rest_on(c);
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

void conn_reset(struct conn *c)
{
    hang_up_by_reset(c);
    conn_close(c);
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
