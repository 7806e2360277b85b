/* See conn_internal.h: the handshake that a connection with TLS begins with. */
#include <sys/epoll.h>

#include "http/conn_internal.h"
#include "http/server_internal.h"
#include "http/tls.h"

/* The first byte of a connection decides whether it has TLS.  Returns false if there is nothing
 * more to be done in this turn. */
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
        return conn_refuse(c, &problem_tls_required, NULL);
    default:
        break;
    }
    if (c->tls)
        return true;
    conn_close(c);
    return false;
}

bool conn_shake_hands(struct conn *c)
{
    if (!handshakes_step(&c->loop->handshakes))
        return false;
    if (!c->tls && !begin_tls(c))
        return false;
    if (c->state != CONN_HANDSHAKE) /* it has been refused */
        return true;
    switch (tls_handshake(c->tls)) {
    case TLS_DONE:
        handshakes_leave(c);
        c->state = CONN_HEAD;
        return true;
    case TLS_WANTS_READ:
        conn_watch(c, EPOLLIN);
        return false;
    case TLS_WANTS_WRITE:
        conn_watch(c, EPOLLOUT);
        return false;
    default:
        conn_close(c);
        return false;
    }
}
