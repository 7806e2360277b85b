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

int port_free(int *ret_fd)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    uint32_t number = 0;
    hf_check(fd >= 0);
    do {
        hf_check(getrandom(&number, sizeof number, 0) == sizeof number);
        at.sin_port = htons((uint16_t)(PORT_FIRST + number % PORTS));
    } while (bind(fd, (struct sockaddr *)&at, sizeof at) != 0);
    hf_check(listen(fd, 16) == 0);
    if (ret_fd)
        *ret_fd = fd;
    else
        close(fd);
    return ntohs(at.sin_port);
}
