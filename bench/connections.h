/* What the clients with thousands of connections share: the limit of open files, and source
 * addresses.  One address has 28,000 ports, so many connections need several. */
#ifndef HF_BENCH_CONNECTIONS_H
#define HF_BENCH_CONNECTIONS_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>

#define FILES_RESERVED 64 /* what a client opens besides its connections */

static inline int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

_Noreturn static inline void die(const char *what)
{
    perror(what);
    exit(1);
}

/* Raises the limit of open files to what n connections need, or ends the program. */
static inline void allow_connections(int n)
{
    const rlim_t need = (rlim_t)n + FILES_RESERVED;
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0)
        die("getrlimit");
    if (files.rlim_max < need) {
        (void)fprintf(stderr, "%d connections need %llu open files; the limit is %llu\n", n,
                      (unsigned long long)need, (unsigned long long)files.rlim_max);
        exit(1);
    }
    files.rlim_cur = files.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &files) != 0)
        die("setrlimit");
}

static inline struct sockaddr_in address_of(const char *host, const char *port)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)strtoul(port, NULL, 10))};
    if (inet_pton(AF_INET, host, &at.sin_addr) != 1)
        die(host);
    return at;
}

/* Connects, and adds the socket to the epoll.  Sources differ in the last three bytes of their
 * address: source 0 is 127.0.0.1, source 1 127.1.1.2, and so on. */
static inline int connect_from(uint32_t source, const struct sockaddr_in *to, int epoll_fd)
{
    struct sockaddr_in from = {.sin_family = AF_INET,
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK + source * 0x010101)};
    const int one = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        die("socket");
    if (setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof one) != 0 ||
        bind(fd, (const struct sockaddr *)&from, sizeof from) != 0)
        die("bind");
    if (connect(fd, (const struct sockaddr *)to, sizeof *to) != 0)
        die("connect");
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0)
        die("epoll_ctl");
    return fd;
}

static inline void send_all(int fd, const char *text)
{
    if (send(fd, text, strlen(text), MSG_NOSIGNAL) != (ssize_t)strlen(text))
        die("send");
}

#endif
