/* How long a lock of the cell takes to pass from one client to the next in a line of waiters.
 *
 *   build/bench/handover HOST:PORT WAITERS COUNT
 *
 * Each client has a connection and a session.  One of them holds the lock, the others wait for it.
 * The holder releases, the next client is granted the lock, and the old holder goes to the end of
 * the line; the next release is sent when the server lists it there, so that nothing but the
 * release is under way.  A sample is the time from sending a release to reading the grant.
 *
 * One line of JSON goes to stdout.  The program exits with 1 if an answer is not the expected one:
 * also if another client than the next one is granted the lock, since it waits for that one. */
#include <unistd.h>

#include "base/vec.h"
#include "cell_calls.h"

#define WAITERS_MAX 1000
#define COUNT_MAX 100000
#define TTL_MS 600000
#define LOOKS_MAX 1000

struct client {
    int fd;
    char session[CELL_SESSION_SIZE];
    unsigned owner;
    struct buf in, out;
};

static const char *host;
static char lock_path[64];
static struct client watcher, clients[WAITERS_MAX + 1];

static void open_client(struct client *c)
{
    c->fd = cell_connect(host);
    cell_put_open(&c->out, host, TTL_MS);
    cell_send(c->fd, &c->out);
    cell_read_session(cell_await(c->fd, &c->in, "201"), c->session);
}

static void close_client(struct client *c)
{
    close(c->fd);
    buf_close(&c->in);
    buf_close(&c->out);
}

static void send_acquire(struct client *c)
{
    char body[256];
    snprintf(body, sizeof body, "{\"session\":\"%s\",\"owner\":\"%x\",\"wait_ms\":60000}",
             c->session, ++c->owner);
    cell_put(&c->out, "POST", host, lock_path, body);
    cell_send(c->fd, &c->out);
}

static void send_release(struct client *c)
{
    char body[256], path[96];
    snprintf(path, sizeof path, "%s/release", lock_path);
    snprintf(body, sizeof body, "{\"session\":\"%s\",\"owner\":\"%x\"}", c->session, c->owner);
    cell_put(&c->out, "POST", host, path, body);
    cell_send(c->fd, &c->out);
}

/* Waits until `n` clients wait for the lock. */
static void await_waiters(int n)
{
    char wanted[32];
    snprintf(wanted, sizeof wanted, "\"n_waiters\":%d,", n);
    for (int i = 0; i < LOOKS_MAX; i++) {
        cell_put(&watcher.out, "GET", host, lock_path, "");
        cell_send(watcher.fd, &watcher.out);
        if (strstr(cell_await(watcher.fd, &watcher.in, "200"), wanted))
            return;
    }
    (void)fprintf(stderr, "handover: there are never %d waiters\n", n);
    exit(1);
}

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

int main(int argc, char **argv)
{
    int n = argc == 4 ? atoi(argv[2]) : 0, count = argc == 4 ? atoi(argv[3]) : 0;
    VEC(int64_t) samples = {0};
    if (n < 1 || n > WAITERS_MAX || count < 1 || count > COUNT_MAX) {
        (void)fprintf(stderr, "usage: handover HOST:PORT WAITERS COUNT\n");
        return 64;
    }
    host = argv[1];
    snprintf(lock_path, sizeof lock_path, "locks/handover-%d", (int)getpid());
    allow_connections(n + 2);
    open_client(&watcher);
    for (int i = 0; i <= n; i++) {
        open_client(&clients[i]);
        send_acquire(&clients[i]);
        if (i == 0)
            (void)cell_await(clients[0].fd, &clients[0].in, "200");
        else
            await_waiters(i);
    }
    for (int i = 0; i < count; i++) {
        struct client *holder = &clients[i % (n + 1)], *next = &clients[(i + 1) % (n + 1)];
        int64_t begun_us = now_us();
        send_release(holder);
        (void)cell_await(next->fd, &next->in, "200");
        *vec_push(&samples) = now_us() - begun_us;
        (void)cell_await(holder->fd, &holder->in, "200");
        send_acquire(holder);
        await_waiters(n);
    }
    qsort(samples.v, samples.n, sizeof *samples.v, by_size);
    printf("{\"requests\":%d,\"p50_us\":%lld,\"p99_us\":%lld}\n", count,
           (long long)samples.v[samples.n / 2], (long long)samples.v[samples.n * 99 / 100]);
    for (int i = 0; i <= n; i++)
        close_client(&clients[i]);
    close_client(&watcher);
    vec_close(&samples);
    return 0;
}
