/* See http.h. */
#include "lab/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define ANSWER_MAX ((size_t)16 << 20)

static void hang_up(struct http *h)
{
    if (h->socket > 0)
        (void)close(h->socket);
    h->socket = 0;
}

void http_close(struct http *h)
{
    hang_up(h);
    buf_close(&h->in);
}

bool http_ready(struct http *h, const char *url, int timeout_s, struct hf_err *err)
{
    const struct timeval timeout = {.tv_sec = timeout_s};
    struct sockaddr_in at = {.sin_family = AF_INET};
    char host[64] = "";
    unsigned short port = 0;
    if (h->socket > 0)
        return true;
    if (sscanf(url, "http://%63[0-9.]:%hu", host, &port) != 2 ||
        inet_pton(AF_INET, host, &at.sin_addr) != 1) {
        (void)hf_err_set(err, HF_INVALID_REQUEST, "not http://ADDRESS:PORT: %s", url);
        return false;
    }
    at.sin_port = htons(port);
    h->socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (h->socket >= 0 &&
        setsockopt(h->socket, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout) == 0 &&
        setsockopt(h->socket, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout) == 0 &&
        setsockopt(h->socket, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)) == 0 &&
        connect(h->socket, (struct sockaddr *)&at, sizeof at) == 0)
        return true;
    (void)hf_err_set(err, HF_LEDGER_UNAVAILABLE, "%s: %s", url, strerror(errno));
    hang_up(h);
    return false;
}

static bool send_all(int fd, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = send(fd, data, len, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        data += n;
        len -= (size_t)n;
    }
    return true;
}

static bool receive(struct http *h)
{
    buf_reserve(&h->in, 16384);
    ssize_t n;
    do
        n = recv(h->socket, h->in.data + h->in.len, 16383, 0);
    while (n < 0 && errno == EINTR);
    if (n <= 0 || h->in.len > ANSWER_MAX)
        return false;
    h->in.len += (size_t)n;
    h->in.data[h->in.len] = '\0';
    return true;
}

/* Of the header in h->in; 0: none. */
static size_t content_length(const char *header)
{
    for (const char *line = header; (line = strstr(line, "\r\n")) && line[2] != '\r'; line += 2)
        if (strncasecmp(line + 2, "content-length:", 15) == 0)
            return strtoul(line + 17, NULL, 10);
    return 0;
}

static int read_answer(struct http *h, const char **ret_body)
{
    char *end;
    int status;
    h->in.len = 0;
    do
        if (!receive(h))
            return 0;
    while (!(end = strstr(h->in.data, "\r\n\r\n")));
    size_t header = (size_t)(end + 4 - h->in.data), body = content_length(h->in.data);
    if (sscanf(h->in.data, "HTTP/1.1 %d", &status) != 1)
        return 0;
    while (h->in.len < header + body)
        if (!receive(h))
            return 0;
    if (ret_body)
        *ret_body = h->in.data + header;
    return status;
}

int http_call(struct http *h, const char *method, const char *path, const struct buf *body,
              const char **ret_body)
{
    struct buf out = {0};
    size_t len = body ? body->len : 0;
    buf_printf(&out, "%s %s HTTP/1.1\r\nHost: lab\r\nContent-Length: %zu\r\n\r\n", method, path,
               len);
    if (body)
        buf_put(&out, body->data, len);
    int status = send_all(h->socket, out.data, out.len) ? read_answer(h, ret_body) : 0;
    buf_close(&out);
    if (status == 0)
        hang_up(h);
    return status;
}
