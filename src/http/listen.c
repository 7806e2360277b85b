/* See listen.h. */
#include "http/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Splits at the last colon; brackets around an IPv6 address are dropped. */
static bool split(const char *text, char host[256], const char **port)
{
    const char *colon = strrchr(text, ':');
    if (!colon || colon == text || colon[1] == '\0')
        return false;
    const char *start = text, *end = colon;
    if (*start == '[' && end[-1] == ']') {
        start++;
        end--;
    } else if (memchr(start, ':', (size_t)(end - start))) {
        return false;
    }
    size_t len = (size_t)(end - start);
    if (len == 0 || len >= 256)
        return false;
    memcpy(host, start, len);
    host[len] = '\0';
    *port = colon + 1;
    return true;
}

static bool is_port(const char *text)
{
    return strspn(text, "0123456789") == strlen(text) && strlen(text) <= 5 && atoi(text) <= 65535;
}

bool listen_parse(const char *text, struct listen_address *ret, struct hf_err *err)
{
    char host[256];
    const char *port;
    if (!split(text, host, &port) || !is_port(port)) {
        (void)hf_err_set(err, HF_INVALID_REQUEST, "%.100s is not ADDR:PORT", text);
        return false;
    }
    const struct addrinfo hints = {.ai_family = AF_UNSPEC,
                                   .ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    int code = getaddrinfo(host, port, &hints, &found);
    if (code != 0 || !found) {
        (void)hf_err_set(err, HF_INVALID_REQUEST, "%.100s: %s", text, gai_strerror(code));
        return false;
    }
    memcpy(&ret->addr, found->ai_addr, found->ai_addrlen);
    ret->len = found->ai_addrlen;
    freeaddrinfo(found);
    return true;
}

bool listen_is_loopback(const struct listen_address *a)
{
    if (a->addr.ss_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)&a->addr;
        return ntohl(in->sin_addr.s_addr) >> 24 == 127;
    }
    if (a->addr.ss_family == AF_INET6) {
        const struct sockaddr_in6 *in = (const struct sockaddr_in6 *)&a->addr;
        return IN6_IS_ADDR_LOOPBACK(&in->sin6_addr);
    }
    return false;
}

bool listen_open(const struct listen_address *a, int *ret_fd, struct hf_err *err)
{
    int fd = socket(a->addr.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const int on = 1, unsent_max = LISTEN_UNSENT_MAX;
    /* Accepted sockets inherit these.  TCP_NODELAY: an answer leaves in one piece, and the next one
     * must not wait until the client has acknowledged it.  TCP_NOTSENT_LOWAT: see listen.h. */
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0 ||
        setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent_max, sizeof unsent_max) != 0 ||
        bind(fd, (const struct sockaddr *)&a->addr, a->len) != 0 ||
        listen(fd, LISTEN_QUEUE_MAX) != 0) {
        (void)hf_err_set(err, HF_INTERNAL, "%s", strerror(errno));
        if (fd >= 0)
            close(fd);
        return false;
    }
    *ret_fd = fd;
    return true;
}

void listen_ignore_new(int fd)
{
    static const struct sock_filter drop_syn[] = {
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, offsetof(struct tcphdr, th_flags)),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, TH_SYN, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, 0),
        BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
    };
    const struct sock_fprog program = {.len = sizeof drop_syn / sizeof *drop_syn,
                                       .filter = (struct sock_filter *)(uintptr_t)drop_syn};
    /* Where this is not possible, connections may be lost when the socket is closed. */
    (void)setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
}

void listen_text(int fd, char out[LISTEN_TEXT_SIZE])
{
    struct sockaddr_storage addr = {0};
    socklen_t len = sizeof addr;
    char host[INET6_ADDRSTRLEN] = "?", port[8] = "?";
    if (getsockname(fd, (struct sockaddr *)&addr, &len) == 0)
        (void)getnameinfo((struct sockaddr *)&addr, len, host, sizeof host, port, sizeof port,
                          NI_NUMERICHOST | NI_NUMERICSERV);
    bool brackets = addr.ss_family == AF_INET6;
    (void)snprintf(out, LISTEN_TEXT_SIZE, "%s%s%s:%s", brackets ? "[" : "", host,
                   brackets ? "]" : "", port);
}
