/* The listening socket of the bench's own servers: a free port of 127.0.0.1. */
#ifndef HF_BENCH_LOOPBACK_H
#define HF_BENCH_LOOPBACK_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#define LOOPBACK_BACKLOG 4096

/* Returns a blocking socket and its port; ends the program if there is none. */
static inline int loopback_listen(unsigned *ret_port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&at, len) != 0 ||
        listen(fd, LOOPBACK_BACKLOG) != 0 || getsockname(fd, (struct sockaddr *)&at, &len) != 0) {
        perror("cannot listen on 127.0.0.1");
        exit(1);
    }
    *ret_port = ntohs(at.sin_port);
    return fd;
}

#endif
