/* See words.h. */
#include "lease/zookeeper/words.h"

#include <errno.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/wait.h"

/* Waits until the socket is ready; false at the deadline. */
static bool await(int fd, short events, int64_t until_us)
{
    int64_t left_us = until_us - wait_now_us();
    struct pollfd file = {.fd = fd, .events = events};
    return left_us > 0 && wait_files(&file, 1, left_us) > 0;
}

/* Returns 0, or -1 if the connection is refused; errno is ETIMEDOUT if there is no answer. */
static int dial(int fd, const struct sockaddr *to, socklen_t to_len, int64_t until_us)
{
    if (connect(fd, to, to_len) == 0)
        return 0;
    if (errno != EINPROGRESS)
        return -1;
    if (!await(fd, POLLOUT, until_us)) {
        errno = ETIMEDOUT;
        return -1;
    }
    int error = 0;
    socklen_t len = sizeof error;
    getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len);
    errno = error;
    return error ? -1 : 0;
}

static size_t read_all(int fd, int64_t until_us, char *ret, size_t size)
{
    size_t len = 0;
    while (len < size - 1 && await(fd, POLLIN, until_us)) {
        ssize_t n = recv(fd, ret + len, size - 1 - len, MSG_DONTWAIT);
        if (n <= 0)
            break;
        len += (size_t)n;
    }
    return len;
}

int zk_word(const struct sockaddr *to, socklen_t to_len, const char *word, int64_t until_us,
            char *ret, size_t size)
{
    int fd = socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    size_t len = 0;
    ret[0] = '\0';
    if (fd < 0)
        return 0;
    int dialled = dial(fd, to, to_len, until_us), error = errno;
    if (dialled == 0 && send(fd, word, strlen(word), MSG_NOSIGNAL) == (ssize_t)strlen(word))
        len = read_all(fd, until_us, ret, size);
    ret[len] = '\0';
    close(fd);
    return dialled < 0 && error != ETIMEDOUT ? -1 : (int)len;
}

/* A server that has words disabled says so; then it is one, and it may serve. */
static enum zk_probe judge(const char *answer, int len)
{
    if (len < 0)
        return ZK_PROBE_REFUSES;
    if (len == 0)
        return ZK_PROBE_SILENT;
    if (strstr(answer, "not currently serving"))
        return ZK_PROBE_HAS_NO_QUORUM;
    if (strstr(answer, "Mode:") || strstr(answer, "whitelist"))
        return ZK_PROBE_SERVES;
    return ZK_PROBE_STRANGE;
}

enum zk_probe zk_probe(const char *server, int64_t until_us)
{
    char host[256], answer[1024];
    const char *colon = strrchr(server, ':');
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    if (!colon || (size_t)(colon - server) >= sizeof host)
        return ZK_PROBE_UNKNOWN;
    bool bracketed = server[0] == '[' && colon > server && colon[-1] == ']';
    snprintf(host, sizeof host, "%.*s", (int)(colon - server) - 2 * bracketed, server + bracketed);
    if (getaddrinfo(host, colon + 1, &hints, &found) != 0)
        return ZK_PROBE_UNKNOWN;
    enum zk_probe best = ZK_PROBE_COUNT;
    for (const struct addrinfo *at = found; at; at = at->ai_next) {
        int len = zk_word(at->ai_addr, at->ai_addrlen, "srvr", until_us, answer, sizeof answer);
        enum zk_probe probe = judge(answer, len);
        best = probe < best ? probe : best;
    }
    freeaddrinfo(found);
    return best;
}
