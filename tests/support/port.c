/* See port.h. */
#include "support/port.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/status.h"

int port_free(int *ret_fd)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    hf_check(fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof at) == 0);
    hf_check(listen(fd, 16) == 0 && getsockname(fd, (struct sockaddr *)&at, &len) == 0);
    if (ret_fd)
        *ret_fd = fd;
    else
        close(fd);
    return ntohs(at.sin_port);
}
