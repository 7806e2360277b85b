/* What the gate reads from its Redis: the protocol, the answers of its scripts, keys and values.
 * The first byte of the input picks the call; the rest is all that the server says after its
 * greeting.  Whatever that is, the gate makes nothing up and stays within its bounds.
 *
 * The server is a thread behind a socket in a temporary directory; the gate is the real one. */
#include "fuzz.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "gate/gate.h"

#define SEATS 3
#define AREAS 2
#define PAGES_MAX 16
#define INPUT_MAX 4096 /* see run */

/* ---- the server ---- */

static struct {
    char dir[32], path[64], url[80];
    int fd;
    pthread_t thread;
    pthread_mutex_t lock; /* for the rest */
    uint8_t answer[INPUT_MAX];
    size_t len; /* 0 after it was said */
} server = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void send_all(int fd, const void *data, size_t len)
{
    for (ssize_t n; len > 0; data = (const char *)data + n, len -= (size_t)n)
        if ((n = send(fd, data, len, MSG_NOSIGNAL)) <= 0)
            return;
}

/* Both sides have a copy: an input may be gone while its end is still being sent. */
static void set_answer(const uint8_t *data, size_t len)
{
    pthread_mutex_lock(&server.lock);
    memcpy(server.answer, data, len);
    server.len = len;
    pthread_mutex_unlock(&server.lock);
}

static size_t take_answer(uint8_t ret[INPUT_MAX])
{
    pthread_mutex_lock(&server.lock);
    size_t len = server.len;
    memcpy(ret, server.answer, len);
    server.len = 0;
    pthread_mutex_unlock(&server.lock);
    return len;
}

static void *serve(void *arg)
{
    char request[16384];
    uint8_t answer[INPUT_MAX];
    (void)arg;
    for (int fd; (fd = accept(server.fd, NULL, NULL)) >= 0; close(fd)) {
        if (recv(fd, request, sizeof request, 0) <= 0)
            continue;
        send_all(fd, "+PONG\r\n", 7);
        if (recv(fd, request, sizeof request, 0) <= 0)
            continue;
        send_all(fd, answer, take_answer(answer));
        (void)shutdown(fd, SHUT_WR);
        while (recv(fd, request, sizeof request, 0) > 0)
            ;
    }
    return NULL;
}

static void remove_socket(void)
{
    (void)unlink(server.path);
    (void)rmdir(server.dir);
}

static void server_start(void)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    (void)snprintf(server.dir, sizeof server.dir, "/tmp/holdfast-fuzz-XXXXXX");
    hf_check(mkdtemp(server.dir));
    (void)snprintf(server.path, sizeof server.path, "%s/redis", server.dir);
    (void)snprintf(server.url, sizeof server.url, "unix:%s", server.path);
    memcpy(at.sun_path, server.path, strlen(server.path) + 1);
    server.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    hf_check(server.fd >= 0 && bind(server.fd, (void *)&at, sizeof at) == 0);
    hf_check(listen(server.fd, 16) == 0);
    hf_check(atexit(remove_socket) == 0);
    hf_check(pthread_create(&server.thread, NULL, serve, NULL) == 0);
}

/* ---- claims ---- */

static const uint8_t token[GATE_TOKEN_SIZE] = {1, 2, 3};

static void claim(struct gate *g)
{
    static const uint32_t seats[SEATS] = {4, 5, 6};
    uint32_t taken[2][SEATS];
    struct gate_area areas[AREAS] = {{.area = 7, .quantity = 1}, {.area = 8, .quantity = 2}};
    struct gate_claim claims[] = {
        {.event = 1, .seats = seats, .n_seats = SEATS, .taken = taken[0]},
        {.event = 2,
         .seats = seats,
         .n_seats = 1,
         .taken = taken[1],
         .areas = areas,
         .n_areas = AREAS},
    };
    struct hf_fault fault = {0};
    enum hf_result result = gate_claim(g, token, claims, 2, &fault);
    for (size_t i = 0; i < 2; i++) {
        const struct gate_claim *c = &claims[i];
        hf_check(c->n_taken <= c->n_seats);
        for (uint32_t s = 0; s < c->n_taken; s++)
            hf_check(memmem(seats, c->n_seats * sizeof *seats, &c->taken[s], sizeof *seats));
        hf_check(c->short_area == -1 || (i == 1 && (c->short_area == 7 || c->short_area == 8)));
        hf_check(result == HF_DONE || (c->n_taken == 0 && c->short_area == -1));
    }
}

static void settle(struct gate *g)
{
    const struct gate_seat seats[] = {{.event = 1, .seat = 4, .hold = 9, .ttl_ms = 1000},
                                      {.event = 2, .seat = 5, .hold = 9}};
    const struct gate_count counts[] = {{.event = 1, .seq = 3, .available = 4, .ttl_ms = 1000}};
    struct hf_fault fault = {0};
    enum hf_result result = gate_settle(g, token, seats, 2, counts, 1, &fault);
    hf_check(result == HF_DONE || fault.msg[0]);
}

/* What the server said, so that the claims can look for it. */
struct scan {
    const uint8_t *said;
    size_t len;
    int pages;
};

static void check_said(const struct scan *s, int64_t number)
{
    char text[24];
    int len = snprintf(text, sizeof text, "%lld", (long long)number);
    hf_check(memmem(s->said, s->len, text, (size_t)len));
}

static void saw_seat(void *ctx, int64_t event, uint32_t seat, int64_t hold, int64_t ttl_ms)
{
    hf_check(event >= 0 && hold > 0 && ttl_ms >= 0);
    check_said(ctx, event);
    check_said(ctx, seat);
    check_said(ctx, hold);
}

static void saw_count(void *ctx, int64_t event, uint32_t area, int64_t seq, int64_t available)
{
    hf_check(event >= 0 && seq >= 0);
    check_said(ctx, area);
    check_said(ctx, seq);
    check_said(ctx, available < 0 ? -available : available);
}

static void saw_strange(void *ctx, const char *key, size_t len)
{
    const struct scan *s = ctx;
    hf_check(len >= 6 && (memcmp(key, "seat:{", 6) == 0 || memcmp(key, "area:{", 6) == 0));
    hf_check(memmem(s->said, s->len, key, len));
}

static bool stop(void *ctx) { return ++((struct scan *)ctx)->pages > PAGES_MAX; }

static void scan(struct gate *g, const uint8_t *data, size_t size)
{
    struct scan s = {.said = data, .len = size};
    const struct gate_visitor visitor = {&s, saw_seat, saw_count, saw_strange, stop};
    struct hf_fault fault = {0};
    enum hf_result result = gate_scan(g, &visitor, &fault);
    hf_check(result == HF_DONE || fault.msg[0]);
}

static void drop(struct gate *g)
{
    const char *const keys[] = {"seat:{1}:x"};
    const size_t lens[] = {10};
    struct hf_fault fault = {0};
    enum hf_result result = gate_drop(g, keys, lens, 1, &fault);
    hf_check(result == HF_DONE || fault.msg[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gate *g = NULL;
    struct hf_fault fault = {0};
    if (!server.path[0])
        server_start();
    if (size == 0 || size > sizeof server.answer)
        return 0;
    set_answer(data + 1, size - 1);
    hf_check(gate_open(server.url, &clock_system, 1000, &g, &fault) == HF_DONE);
    switch (data[0]) {
    case 'c':
        claim(g);
        break;
    case 's':
        settle(g);
        break;
    case 'd':
        drop(g);
        break;
    case 'p':
        (void)gate_ping(g, &fault);
        break;
    default:
        scan(g, data + 1, size - 1);
    }
    gate_close(g);
    return 0;
}
