/* See conn.h and conn_internal.h: a connection's bytes in and out, and what its loop watches. */
#include "http/conn_internal.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "http/tls.h"

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

void conn_unlink_unread(struct conn *c)
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
