/* The socket of a link: what goes over it, and until when.  See link_parts.h.
 *
 * The first recv of an exchange blocks for at most timeout_ms, by an option of the socket; every
 * other wait is limited by the rest of the deadline and goes through wait_files.  With TLS no recv
 * blocks. */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/wait.h"
#include "redis/link_parts.h"

#define READ_SIZE 16384

void link_hang_up(struct redis_link *k)
{
    redis_tls_close(k->tls);
    if (k->fd >= 0) {
        close(k->fd);
        redisReaderFree(k->reader);
    }
    k->fd = -1;
    k->tls = NULL;
    k->reader = NULL;
}

int64_t link_ms_left(const struct redis_link *k, int64_t deadline_us)
{
    int64_t us = deadline_us - clock_boot_us(k->clock);
    return us > 0 ? (us + 999) / 1000 : 0;
}

int link_wait_for(int fd, short events, int64_t ms)
{
    struct pollfd p = {.fd = fd, .events = events};
    int n;
    do
        n = wait_files(&p, 1, 1000 * ms);
    while (n < 0 && errno == EINTR);
    return n;
}

/* As send on a socket that does not block. */
static ssize_t send_some(struct redis_link *k, const char *data, size_t len)
{
    if (!k->tls)
        return send(k->fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT);
    ssize_t n = redis_tls_send(k->tls, data, len);
    if (n == 0)
        errno = ECONNRESET;
    return n == 0 ? -1 : n;
}

size_t link_send(struct redis_link *k, const struct buf *out, int64_t deadline_us)
{
    size_t sent = 0;
    while (sent < out->len) {
        ssize_t n = send_some(k, out->data + sent, out->len - sent);
        if (n >= 0) {
            sent += (size_t)n;
        } else if (errno == EAGAIN) {
            if (link_wait_for(k->fd, POLLOUT, link_ms_left(k, deadline_us)) == 0) {
                errno = ETIMEDOUT;
                break;
            }
        } else if (errno != EINTR) {
            break;
        }
    }
    return sent;
}

/* Returns 1 if bytes came, 0 if none came in time (errno EAGAIN), -1 if the link failed (errno). */
static int recv_some(struct redis_link *k, int flags)
{
    char data[READ_SIZE];
    ssize_t n =
        k->tls ? redis_tls_recv(k->tls, data, sizeof data) : recv(k->fd, data, sizeof data, flags);
    if (n > 0) {
        if (redisReaderFeed(k->reader, data, (size_t)n) == REDIS_OK)
            return 1;
        errno = EPROTO;
        return -1;
    }
    if (n == 0) {
        errno = ECONNRESET;
        return -1;
    }
    return errno == EAGAIN || errno == EINTR ? 0 : -1;
}

redisReply *link_next_reply(struct redis_link *k, int64_t deadline_us, bool at_once)
{
    for (;;) {
        void *reply = NULL;
        if (redisReaderGetReply(k->reader, &reply) != REDIS_OK) {
            errno = EPROTO;
            return NULL;
        }
        if (reply)
            return reply;
        bool is_here = at_once || (k->tls && redis_tls_has_data(k->tls));
        if (!is_here && link_wait_for(k->fd, POLLIN, link_ms_left(k, deadline_us)) == 0) {
            errno = ETIMEDOUT;
            return NULL;
        }
        int got = recv_some(k, at_once ? 0 : MSG_DONTWAIT);
        if (got < 0)
            return NULL;
        at_once = false;
    }
}

void link_encode(struct buf *out, const struct redis_arg *args, size_t n)
{
    buf_char(out, '*');
    buf_int(out, (int64_t)n);
    for (size_t i = 0; i < n; i++) {
        buf_lit(out, "\r\n$");
        buf_int(out, (int64_t)args[i].len);
        buf_lit(out, "\r\n");
        buf_put(out, args[i].data, args[i].len);
    }
    buf_lit(out, "\r\n");
}

bool link_is_stale(const struct redis_link *k)
{
    char c;
    if (k->tls)
        return redis_tls_is_stale(k->tls);
    return recv(k->fd, &c, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 || (errno != EAGAIN && errno != EINTR);
}
