/* See lossy_proxy.h.  The proxy has one client, so it serves one connection at a time. */
#include "lab/lossy_proxy.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/wait.h"

static int connect_unix(const struct lossy_proxy *p)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int len = snprintf(to.sun_path, sizeof to.sun_path, "%s/.s.PGSQL.%s", p->host, p->target_port);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && ((size_t)len >= sizeof to.sun_path ||
                    connect(fd, (const struct sockaddr *)&to, sizeof to) != 0)) {
        close(fd);
        return -1;
    }
    return fd;
}

static bool send_all(int fd, const char *bytes, size_t len)
{
    for (ssize_t n; len > 0; bytes += n, len -= (size_t)n)
        if ((n = send(fd, bytes, len, MSG_NOSIGNAL)) <= 0)
            return false;
    return true;
}

/* Passes on what one read returns.  *commit_sent is whether the client's last message was a COMMIT.
 * Returns false if the connection is to be closed. */
static bool pass_on(struct lossy_proxy *p, int from, int to, bool is_answer, bool *commit_sent)
{
    char bytes[16384];
    ssize_t n = recv(from, bytes, sizeof bytes, 0);
    if (n <= 0)
        return false;
    if (is_answer && *commit_sent && !p->has_lost_answer) {
        p->has_lost_answer = true;
        return false;
    }
    if (!is_answer)
        *commit_sent = memmem(bytes, (size_t)n, "COMMIT", 6) != NULL;
    return send_all(to, bytes, (size_t)n);
}

static void serve(struct lossy_proxy *p, int client, int server)
{
    bool open = server >= 0, commit_sent = false;
    while (open) {
        struct pollfd fds[] = {{.fd = client, .events = POLLIN},
                               {.fd = server, .events = POLLIN},
                               {.fd = p->stop_fd, .events = POLLIN}};
        if (wait_files(fds, 3, -1) < 0)
            continue;
        open = !fds[2].revents &&
               (!fds[0].revents || pass_on(p, client, server, false, &commit_sent)) &&
               (!fds[1].revents || pass_on(p, server, client, true, &commit_sent));
    }
    close(client);
    if (server >= 0)
        close(server);
}

static void *proxy_main(void *arg)
{
    struct lossy_proxy *p = arg;
    for (;;) {
        struct pollfd fds[] = {{.fd = p->listen_fd, .events = POLLIN},
                               {.fd = p->stop_fd, .events = POLLIN}};
        if (wait_files(fds, 2, -1) < 0)
            continue;
        if (fds[1].revents)
            return NULL;
        int client = accept4(p->listen_fd, NULL, NULL, SOCK_CLOEXEC);
        if (client >= 0)
            serve(p, client, connect_unix(p));
    }
}

bool lossy_proxy_start(struct lossy_proxy *p, const char *host, const char *port,
                       struct hf_err *err)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    *p = (struct lossy_proxy){.stop_fd = eventfd(0, EFD_CLOEXEC),
                              .listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    snprintf(p->host, sizeof p->host, "%s", host);
    snprintf(p->target_port, sizeof p->target_port, "%s", port);
    bool good = p->stop_fd >= 0 && p->listen_fd >= 0 &&
                bind(p->listen_fd, (const struct sockaddr *)&at, sizeof at) == 0 &&
                getsockname(p->listen_fd, (struct sockaddr *)&at, &len) == 0 &&
                listen(p->listen_fd, 4) == 0;
    p->port = ntohs(at.sin_port);
    if (good && pthread_create(&p->thread, NULL, proxy_main, p) == 0)
        return true;
    close(p->stop_fd);
    close(p->listen_fd);
    (void)hf_err_set(err, HF_UNAVAILABLE, "no proxy on 127.0.0.1: %m");
    return false;
}

bool lossy_proxy_stop(struct lossy_proxy *p)
{
    hf_check(eventfd_write(p->stop_fd, 1) == 0);
    pthread_join(p->thread, NULL);
    close(p->stop_fd);
    close(p->listen_fd);
    return p->has_lost_answer;
}
