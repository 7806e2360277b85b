/* See acceptor.h.  Runs from server_start to server_drain; touches nothing but sockets. */
#include "http/acceptor.h"

#include <errno.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/wait.h"

#define REST_US 10000 /* when files, memory or places for connections have run out */

/* Accepts every connection that waits.  libmicrohttpd picks the thread by the number of the file,
 * and the kernel hands numbers out in turn, so the threads get equal shares. */
static void accept_all(struct acceptor *a)
{
    for (;;) {
        struct sockaddr_storage from;
        socklen_t len = sizeof from;
        int fd =
            accept4(a->listen_fd, (struct sockaddr *)&from, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0 && (errno == EINTR || errno == ECONNABORTED))
            continue;
        if (fd < 0) {
            if (errno != EAGAIN)
                wait_sleep_us(REST_US);
            return;
        }
        /* libmicrohttpd closes the socket if there is no place for it. */
        if (MHD_add_connection(a->daemon, fd, (struct sockaddr *)&from, len) != MHD_YES)
            wait_sleep_us(REST_US);
    }
}

static void *acceptor_main(void *arg)
{
    struct acceptor *a = arg;
    struct pollfd fds[2] = {{.fd = a->listen_fd, .events = POLLIN},
                            {.fd = a->stop_fd, .events = POLLIN}};
    while (wait_files(fds, 2, -1) >= 0 || errno == EINTR) {
        if (fds[1].revents)
            break;
        if (fds[0].revents)
            accept_all(a);
    }
    return NULL;
}

bool acceptor_start(struct acceptor *a, struct MHD_Daemon *daemon, int listen_fd)
{
    *a = (struct acceptor){.daemon = daemon, .listen_fd = listen_fd};
    a->stop_fd = eventfd(0, EFD_CLOEXEC);
    if (a->stop_fd < 0)
        return false;
    errno = pthread_create(&a->thread, NULL, acceptor_main, a);
    a->running = errno == 0;
    if (!a->running)
        close(a->stop_fd);
    return a->running;
}

void acceptor_stop(struct acceptor *a)
{
    if (!a->running)
        return;
    const uint64_t one = 1;
    (void)!write(a->stop_fd, &one, sizeof one);
    pthread_join(a->thread, NULL);
    close(a->stop_fd);
    close(a->listen_fd);
    a->running = false;
}
