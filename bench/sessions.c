/* Opens many sessions with the lock service, each on a connection of its own, and keeps them alive.
 *
 *   build/bench/sessions HOST PORT N TTL_MS EVERY_MS SECONDS
 *
 * Each session is kept alive every EVERY_MS; the requests of all of them are spread evenly over
 * that time.  The program prints `open N in MS ms` when all sessions are open, keeps them alive for
 * SECONDS or until SIGTERM, and prints the totals.  It exits with 1 if an answer was not the
 * expected one, or if an answer takes longer than EVERY_MS. */
#include <signal.h>
#include <unistd.h>

#include "cell_calls.h"

#define N_MAX 100000
#define READY_MAX 512
#define AT_ONCE 100

struct session {
    int fd;
    bool is_asked; /* a request is under way */
    char id[CELL_SESSION_SIZE];
};

static struct session *sessions;
static struct buf in, out;
static char host[64];
static int epoll_fd, n_asked, n_answered;
static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
    (void)number;
    stopped = 1;
}

static void ask(struct session *s, const char *path)
{
    if (s->is_asked) {
        (void)fprintf(stderr, "sessions: an answer took too long\n");
        exit(1);
    }
    if (path)
        cell_put(&out, "POST", host, path, "");
    cell_send(s->fd, &out);
    s->is_asked = true;
    n_asked++;
}

/* Answers are short and come as one segment, so all sessions share one buffer. */
static void answered(struct session *s)
{
    in.len = 0;
    const char *body = cell_await(s->fd, &in, s->id[0] ? "200" : "201");
    if (!s->id[0])
        cell_read_session(body, s->id);
    s->is_asked = false;
    n_answered++;
}

static void read_answers(int64_t until_us)
{
    struct epoll_event ready[READY_MAX];
    int64_t left_ms = (until_us - now_us()) / 1000;
    int n = epoll_wait(epoll_fd, ready, READY_MAX, left_ms > 0 ? (int)left_ms : 0);
    for (int i = 0; i < n; i++)
        answered(ready[i].data.ptr);
}

static void open_all(int n, int ttl_ms)
{
    const int64_t until_us = now_us() + ttl_ms * INT64_C(1000);
    for (int i = 0; i < n && !stopped; i++) {
        struct session *s = &sessions[i];
        s->fd = cell_connect(host);
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = s};
        if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, s->fd, &event) != 0)
            die("epoll_ctl");
        cell_put_open(&out, host, ttl_ms);
        ask(s, NULL);
        while (n_asked - n_answered >= AT_ONCE || (i == n - 1 && n_answered < n_asked))
            read_answers(until_us);
    }
}

/* Request k is due k * every_ms / n after the beginning. */
static void keep_alive(int n, int64_t every_us, int64_t until_us)
{
    const int64_t begun_us = now_us();
    char path[128];
    for (int64_t k = 0; !stopped && now_us() < until_us; k++) {
        const int64_t due_us = begun_us + k * every_us / n;
        struct session *s = &sessions[k % n];
        while (now_us() < due_us && !stopped)
            read_answers(due_us);
        snprintf(path, sizeof path, "sessions/%s/keepalive", s->id);
        ask(s, path);
    }
    for (int64_t end_us = now_us() + every_us; n_answered < n_asked && now_us() < end_us;)
        read_answers(end_us);
}

int main(int argc, char **argv)
{
    const int n = argc == 7 ? atoi(argv[3]) : 0;
    if (n < 1 || n > N_MAX) {
        (void)fprintf(stderr, "usage: sessions HOST PORT N TTL_MS EVERY_MS SECONDS\n");
        return 64;
    }
    const int ttl_ms = atoi(argv[4]), every_ms = atoi(argv[5]), seconds = atoi(argv[6]);
    snprintf(host, sizeof host, "%s:%s", argv[1], argv[2]);
    allow_connections(n);
    sessions = calloc((size_t)n, sizeof *sessions);
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (epoll_fd < 0 || !sessions)
        die("epoll_create1");
    (void)signal(SIGTERM, on_signal);

    const int64_t begun_ms = now_ms();
    open_all(n, ttl_ms);
    printf("open %d in %lld ms\n", n, (long long)(now_ms() - begun_ms));
    (void)fflush(stdout);
    n_asked = n_answered = 0;
    keep_alive(n, every_ms * INT64_C(1000), now_us() + seconds * INT64_C(1000000));
    printf("total open %d cut %d answered %d of %d\n", n, 0, n_answered, n_asked);
    for (int i = 0; i < n; i++)
        close(sessions[i].fd);
    free(sessions);
    buf_close(&in);
    buf_close(&out);
    return n_answered != n_asked;
}
