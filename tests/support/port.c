/* See port.h. */
#include "support/port.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/status.h"

/* The port is below the ephemeral range: the tests make thousands of outgoing connections, and the
 * kernel could assign the port to one of them before the server listens. */
#define PORT_FIRST 12000
#define PORTS 20000

static int socket_at(int type, int port)
{
    const struct sockaddr_in at = {.sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
    hf_check(fd >= 0);
    if (bind(fd, (const struct sockaddr *)&at, sizeof at) == 0)
        return fd;
    close(fd);
    return -1;
}

int port_free(int *ret_fd)
{
    for (;;) {
        uint32_t number = 0;
        hf_check(getrandom(&number, sizeof number, 0) == sizeof number);
        int port = (int)(PORT_FIRST + number % PORTS);
        int claim = socket_at(SOCK_DGRAM, port); /* is closed when this process ends */
        int fd = claim >= 0 ? socket_at(SOCK_STREAM, port) : -1;
        if (fd < 0) {
            if (claim >= 0)
                close(claim);
            continue;
        }
        hf_check(listen(fd, 16) == 0);
        if (ret_fd)
            *ret_fd = fd;
        else
            close(fd);
        return port;
    }
}
