/* The peer of the contended rows that does the least: an epoll loop without a server around it. One
 * thread accepts connections and deals them out in turn.  Each other thread waits in a
 * level-triggered epoll of its own, reads a request to its end (head, Content-Length, body) and
 * sends the bytes of a file in one call.  It does not look at method, path or body, and has no
 * deadlines.
 *
 *   loop THREADS FILE     prints `loop listening on http://127.0.0.1:PORT`; runs until it is killed
 *
 * FILE is an answer as it goes over the wire, head and body.  bench/run records one of holdfastd,
 * so both send the same number of bytes. */
#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "loopback.h"
#include "message.h"

#define THREADS_MAX 64
#define READY_MAX 64
#define REQUEST_LEN_MAX 8192
#define ANSWER_LEN_MAX 65536

struct connection {
    int fd;
    size_t len;
    char data[REQUEST_LEN_MAX];
};

static char answer[ANSWER_LEN_MAX];
static size_t answer_len;

/* Returns false if the connection is to be closed.  An answer that does not fit into the socket's
 * buffer is such a case: the clients of the bench read theirs. */
static bool serve(struct connection *c)
{
    ssize_t n = recv(c->fd, c->data + c->len, sizeof c->data - c->len, 0);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR;
    if (n == 0)
        return false;
    c->len += (size_t)n;
    for (size_t used, body; (used = message_len(c->data, c->len, &body)) > 0;) {
        if (send(c->fd, answer, answer_len, MSG_NOSIGNAL) != (ssize_t)answer_len)
            return false;
        c->len -= used;
        memmove(c->data, c->data + used, c->len);
    }
    return c->len < sizeof c->data;
}

static void *thread_main(void *arg)
{
    const int epoll_fd = *(const int *)arg;
    struct epoll_event ready[READY_MAX];
    for (;;) {
        int n = epoll_wait(epoll_fd, ready, READY_MAX, -1);
        for (int i = 0; i < n; i++) {
            struct connection *c = ready[i].data.ptr;
            if (!serve(c)) {
                close(c->fd);
                free(c);
            }
        }
    }
    return NULL;
}

_Noreturn static void die(const char *what)
{
    perror(what);
    exit(1);
}

static void accept_one(int listen_fd, int epoll_fd)
{
    int fd = accept4(listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0 && (errno == EINTR || errno == ECONNABORTED))
        return;
    const int one = 1;
    struct connection *c = calloc(1, sizeof *c);
    if (fd < 0 || !c || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) != 0)
        die("accept");
    c->fd = fd;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0)
        die("epoll_ctl");
}

static void read_answer(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        die(path);
    answer_len = fread(answer, 1, sizeof answer, file);
    (void)fclose(file);
}

int main(int argc, char **argv)
{
    static int epoll_fds[THREADS_MAX];
    unsigned threads = argc == 3 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
    if (threads < 1 || threads > THREADS_MAX) {
        (void)fprintf(stderr, "usage: loop THREADS FILE\n");
        return 64;
    }
    read_answer(argv[2]);
    for (unsigned i = 0; i < threads; i++) {
        pthread_t thread;
        epoll_fds[i] = epoll_create1(EPOLL_CLOEXEC);
        if (epoll_fds[i] < 0 || pthread_create(&thread, NULL, thread_main, &epoll_fds[i]) != 0)
            die("thread");
    }
    unsigned port;
    int listen_fd = loopback_listen(&port);
    printf("loop listening on http://127.0.0.1:%u\n", port);
    (void)fflush(stdout);
    for (unsigned turn = 0;; turn++)
        accept_one(listen_fd, epoll_fds[turn % threads]);
}
