/* Calls of the lock service over HTTP/1.1, for programs that read and write their sockets
 * themselves: what a request looks like, and where its answer is. */
#ifndef HF_BENCH_CELL_CALLS_H
#define HF_BENCH_CELL_CALLS_H

#include <netinet/tcp.h>
#include <stdbool.h>

#include "base/buf.h"
#include "connections.h"
#include "message.h"

#define CELL_ANSWER_ROOM 4096
#define CELL_SESSION_SIZE 64
#define CELL_ANSWERS_WITHIN_S 30

static inline int64_t now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* Connects to HOST:PORT.  A read that waits too long fails. */
static inline int cell_connect(const char *host)
{
    const struct timeval within = {.tv_sec = CELL_ANSWERS_WITHIN_S};
    const int yes = 1;
    char name[64], *colon;
    snprintf(name, sizeof name, "%s", host);
    if (!(colon = strchr(name, ':')))
        die("an address is HOST:PORT");
    *colon = '\0';
    struct sockaddr_in at = address_of(name, colon + 1);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof at) != 0)
        die(host);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &within, sizeof within);
    return fd;
}

static inline void cell_put(struct buf *out, const char *method, const char *host, const char *path,
                            const char *body)
{
    buf_printf(out, "%s /v1/%s HTTP/1.1\r\nHost: %s\r\nContent-Length: %zu\r\n\r\n%s", method, path,
               host, strlen(body), body);
}

static inline void cell_send(int fd, struct buf *out)
{
    ssize_t n = send(fd, out->data, out->len, MSG_NOSIGNAL);
    if (n != (ssize_t)out->len) /* a few hundred bytes always fit */
        die("send");
    out->len = 0;
}

/* Reads what has come, or waits for it unless `flags` is MSG_DONTWAIT.  Returns false if nothing
 * has come. */
static inline bool cell_receive(int fd, struct buf *in, int flags)
{
    buf_reserve(in, CELL_ANSWER_ROOM);
    ssize_t n = recv(fd, in->data + in->len, in->cap - in->len - 1, flags);
    if (n < 0 && flags && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n <= 0)
        die("a server has not answered");
    in->len += (size_t)n;
    return true;
}

/* Takes an answer; its body begins at *ret_body and ends with NUL.  1: it has the wanted status; 0:
 * it is not complete; -1: it has another status. */
static inline int cell_take(struct buf *in, const char *status, const char **ret_body)
{
    size_t at, len = message_len(in->data, in->len, &at);
    if (len == 0)
        return 0;
    in->data[in->len] = '\0';
    in->len = 0;
    *ret_body = in->data + at;
    return memcmp(in->data + strlen("HTTP/1.1 "), status, 3) == 0 ? 1 : -1;
}

/* Waits for an answer.  The program ends if it has another status. */
static inline const char *cell_await(int fd, struct buf *in, const char *status)
{
    const char *body = NULL;
    int result = 0;
    while ((result = cell_take(in, status, &body)) == 0)
        (void)cell_receive(fd, in, 0);
    if (result < 0) {
        (void)fprintf(stderr, "not the answer that was to be measured: %.400s\n", in->data);
        exit(1);
    }
    return body;
}

static inline void cell_put_open(struct buf *out, const char *host, int ttl_ms)
{
    char body[64];
    snprintf(body, sizeof body, "{\"ttl_ms\":%d}", ttl_ms);
    cell_put(out, "POST", host, "sessions", body);
}

/* Reads the id of a session from the body of the answer. */
static inline void cell_read_session(const char *body, char ret[CELL_SESSION_SIZE])
{
    static const char before[] = "\"id\":\"";
    const char *id = strstr(body, before);
    if (!id || sscanf(id + sizeof before - 1, "%63[A-Za-z0-9_]", ret) != 1)
        die("a session has no id");
}

#endif
