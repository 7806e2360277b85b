/* Opens many connections to a server and leaves them idle.  Every second one first asks for a hold
 * and reads the refusal.
 *
 *   build/bench/idle HOST PORT N BODY SECONDS
 *
 * HOST is an IPv4 address, BODY the JSON of a hold that is refused.  The program prints `open N in
 * MS ms` when all connections are open and all answers were read, waits for SECONDS or SIGTERM, and
 * prints the totals.  It exits with 1 if a connection was refused or cut. */
#include <signal.h>
#include <stdbool.h>
#include <unistd.h>

#include "connections.h"

#define READY_MAX 512
#define AT_ONCE 200
#define OPEN_WITHIN_MS 30000

static int epoll_fd;
static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
    (void)number;
    stopped = 1;
}

struct counts {
    int asked, answered, cut;
};

static void read_one(int fd, struct counts *c)
{
    char data[4096];
    ssize_t n = recv(fd, data, sizeof data, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        c->cut++;
        close(fd);
        return;
    }
    if (n < 12 || memcmp(data + 8, " 409", 4) != 0) {
        (void)fprintf(stderr, "idle: not a refusal: %.*s\n", (int)(n < 200 ? n : 200), data);
        exit(1);
    }
    c->answered++;
}

static void read_until(int64_t until_ms, bool until_answered, struct counts *c)
{
    struct epoll_event ready[READY_MAX];
    for (int64_t left; (left = until_ms - now_ms()) > 0 && !stopped;) {
        if (until_answered && c->answered + c->cut >= c->asked)
            return;
        int n = epoll_wait(epoll_fd, ready, READY_MAX, (int)left);
        for (int i = 0; i < n; i++)
            read_one(ready[i].data.fd, c);
    }
}

static void open_all(const struct sockaddr_in *to, const char *request, int n, struct counts *c)
{
    const int64_t until_ms = now_ms() + OPEN_WITHIN_MS;
    for (int i = 0; i < n && !stopped;) {
        for (int end = n - i < AT_ONCE ? n : i + AT_ONCE; i < end; i++) {
            int fd = connect_from(0, to, epoll_fd);
            if (i % 2) {
                send_all(fd, request);
                c->asked++;
            }
        }
        read_until(until_ms, true, c);
    }
    if (c->answered < c->asked || c->cut) {
        (void)fprintf(stderr, "idle: %d of %d requests answered, %d connections cut\n", c->answered,
                      c->asked, c->cut);
        exit(1);
    }
}

int main(int argc, char **argv)
{
    if (argc != 6) {
        (void)fprintf(stderr, "usage: idle HOST PORT N BODY SECONDS\n");
        return 64;
    }
    const int n = (int)strtol(argv[3], NULL, 10), seconds = (int)strtol(argv[5], NULL, 10);
    const struct sockaddr_in to = address_of(argv[1], argv[2]);
    char request[1024];
    int len = snprintf(request, sizeof request,
                       "POST /v1/holds HTTP/1.1\r\nHost: %s:%s\r\n"
                       "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                       argv[1], argv[2], strlen(argv[4]), argv[4]);
    if (len < 0 || (size_t)len >= sizeof request)
        die("the body is too long");
    allow_connections(n);
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (epoll_fd < 0)
        die("epoll_create1");
    (void)signal(SIGTERM, on_signal);

    struct counts c = {0};
    const int64_t begun_ms = now_ms();
    open_all(&to, request, n, &c);
    printf("open %d in %lld ms\n", n, (long long)(now_ms() - begun_ms));
    (void)fflush(stdout);
    read_until(now_ms() + seconds * INT64_C(1000), false, &c);
    printf("total open %d cut %d answered %d\n", n - c.cut, c.cut, c.answered);
    return c.cut > 0;
}
