/* See load_client.h. */
#include "lab/load_client.h"

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

#define ANSWER_LEN_MAX ((size_t)1 << 20)
#define READ_SIZE 16384

static void disconnect(struct load_client *c)
{
    if (c->socket > 0)
        (void)close(c->socket);
    c->socket = 0;
}

void load_client_close(struct load_client *c)
{
    disconnect(c);
    buf_close(&c->out);
    buf_close(&c->answer);
}

bool load_client_connect(struct load_client *c, const char *url, int timeout_s, struct hf_err *err)
{
    const struct timeval timeout = {.tv_sec = timeout_s};
    struct sockaddr_in at = {.sin_family = AF_INET};
    char host[64] = "";
    unsigned short port = 0;
    if (c->socket > 0)
        return true;
    if (sscanf(url, "http://%63[0-9.]:%hu", host, &port) != 2 ||
        inet_pton(AF_INET, host, &at.sin_addr) != 1) {
        (void)hf_err_set(err, HF_INVALID_REQUEST, "not http://ADDRESS:PORT: %s", url);
        return false;
    }
    at.sin_port = htons(port);
    c->socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->socket >= 0 &&
        setsockopt(c->socket, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout) == 0 &&
        setsockopt(c->socket, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout) == 0 &&
        setsockopt(c->socket, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)) == 0 &&
        connect(c->socket, (struct sockaddr *)&at, sizeof at) == 0)
        return true;
    (void)hf_err_set(err, HF_UNAVAILABLE, "%s: %s", url, strerror(errno));
    disconnect(c);
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

/* Appends what one recv() returns to the answer, with a NUL after it. */
static bool receive_more(struct load_client *c)
{
    buf_reserve(&c->answer, READ_SIZE);
    ssize_t n;
    do
        n = recv(c->socket, c->answer.data + c->answer.len, READ_SIZE - 1, 0);
    while (n < 0 && errno == EINTR);
    if (n <= 0 || c->answer.len > ANSWER_LEN_MAX)
        return false;
    c->answer.len += (size_t)n;
    c->answer.data[c->answer.len] = '\0';
    return true;
}

/* Returns 0 if the header names no length. */
static size_t content_length(const char *header)
{
    for (const char *line = header; (line = strstr(line, "\r\n")) && line[2] != '\r'; line += 2)
        if (strncasecmp(line + 2, "content-length:", 15) == 0)
            return strtoul(line + 17, NULL, 10);
    return 0;
}

/* Returns the status of the response, or 0 if the connection ends before the response does. */
static int read_answer(struct load_client *c)
{
    char *end;
    int status;
    c->answer.len = 0;
    do
        if (!receive_more(c))
            return 0;
    while (!(end = strstr(c->answer.data, "\r\n\r\n")));
    size_t header_len = (size_t)(end + 4 - c->answer.data);
    size_t body_len = content_length(c->answer.data);
    if (sscanf(c->answer.data, "HTTP/1.1 %d", &status) != 1)
        return 0;
    while (c->answer.len < header_len + body_len)
        if (!receive_more(c))
            return 0;
    return status;
}

int load_client_post(struct load_client *c, const char *path, const struct buf *body)
{
    c->out.len = 0;
    buf_printf(&c->out, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n", path,
               body->len);
    buf_put(&c->out, body->data, body->len);
    int status = send_all(c->socket, c->out.data, c->out.len) ? read_answer(c) : 0;
    if (status == 0)
        disconnect(c);
    return status;
}
