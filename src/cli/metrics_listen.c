/* See metrics_listen.h.  The first half renders, the second half is the server.  The main thread
 * says what the command does; the server's thread reads it under the mutex. */
#include "cli/metrics_listen.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/status.h"
#include "base/wait.h"
#include "cli/common.h"
#include "cli/prometheus.h"
#include "http/listen.h"

#define REQUEST_LEN_MAX 8192
#define EXCHANGE_US INT64_C(1000000)
#define BACKLOG 16

struct metrics_listen {
    struct lock lock; /* of the next five */
    const struct hf_locks *locks;
    const struct hf_lock_set *set; /* NULL: nothing is held */
    bool waits;
    int64_t since_ms; /* of the wait or of the grant, on the wall clock */
    struct hf_stats stats;
    const char *const *names;
    size_t n_names;
    char *path; /* of a socket in the file system; NULL: none */
    int listen_fd, stop_fd;
    pthread_t thread;
};

/* ---- what the page has ---- */

static struct hf_lock *find_lock(const struct metrics_listen *m, const char *name)
{
    struct hf_lock *lock;
    for (size_t i = 0; m->set && (lock = hf_lock_set_at(m->set, i)); i++)
        if (strcmp(hf_lock_name(lock), name) == 0)
            return lock;
    return NULL;
}

enum gauge_kind { IS_HELD, IS_WAITED_FOR, FENCE, SLOT, REMAINING, SINCE };

static void put_value(struct buf *b, const struct metrics_listen *m, const char *name,
                      enum gauge_kind kind)
{
    const struct hf_lock *lock = find_lock(m, name);
    int64_t left_ms = lock ? hf_lock_deadline_ms(lock) - cli_now_ms() : 0;
    switch (kind) {
    case IS_HELD:
        buf_int(b, lock && hf_lock_held(lock));
        break;
    case IS_WAITED_FOR:
        buf_int(b, m->waits);
        break;
    case FENCE:
        buf_int(b, lock ? hf_lock_fence(lock) : 0);
        break;
    case SLOT:
        buf_int(b, lock ? hf_lock_slot(lock) : 0);
        break;
    case REMAINING:
        prometheus_put_seconds(b, left_ms > 0 ? left_ms * 1000 : 0);
        break;
    case SINCE:
        prometheus_put_seconds(b, m->since_ms * 1000);
        break;
    }
}

static void put_gauges(struct buf *b, const struct metrics_listen *m)
{
    static const struct {
        enum gauge_kind kind;
        const char *name, *help;
    } gauges[] = {
        {IS_HELD, "held", "Whether this process holds the lock."},
        {IS_WAITED_FOR, "waiting", "Whether this process waits for the lock."},
        {FENCE, "fence", "Fence of the grant, 0 without one."},
        {SLOT, "slot", "Slot of the grant, from 0."},
        {REMAINING, "remaining_seconds", "Time until the deadline, which renewals move."},
        {SINCE, "since_timestamp_seconds", "Start of the wait, or the time of the grant."},
    };
    for (size_t i = 0; i < sizeof gauges / sizeof *gauges; i++) {
        prometheus_put_head(b, "holdfast_lock_", gauges[i].name, "gauge", gauges[i].help);
        for (size_t k = 0; k < m->n_names; k++) {
            prometheus_put_name(b, "holdfast_lock_", gauges[i].name, m->names[k]);
            put_value(b, m, m->names[k], gauges[i].kind);
            buf_char(b, '\n');
        }
    }
}

static void put_counters(struct buf *b, const struct hf_stats *s)
{
    const struct {
        const char *name, *help;
        uint64_t value;
    } counters[] = {
        {"granted_total", "Acquisitions that were granted.", s->granted},
        {"taken_total", "Acquisitions that were refused at once.", s->taken},
        {"timed_out_total", "Acquisitions that were refused after waiting.", s->timed_out},
        {"unknown_total", "Acquisitions without an answer.", s->unknown},
        {"failed_total", "Acquisitions that failed.", s->failed},
        {"lost_total", "Locks that were lost while they were held.", s->lost},
        {"waits_total", "Acquisitions that waited.", s->waits},
        {"renewals_total", "Renewals of leases.", s->renewals},
        {"renewal_failures_total", "Renewals that failed.", s->renewal_failures},
        {"releases_total", "Locks that were given back.", s->releases},
        {"cache_hits_total", "Shared locks that were granted from the cache.", s->cache_hits},
        {"cache_misses_total", "Shared locks that were not in the cache.", s->cache_misses},
    };
    for (size_t i = 0; i < sizeof counters / sizeof *counters; i++) {
        prometheus_put_head(b, "holdfast_lock_", counters[i].name, "counter", counters[i].help);
        buf_printf(b, "holdfast_lock_%s %" PRIu64 "\n", counters[i].name, counters[i].value);
    }
    prometheus_put_head(b, "holdfast_lock_", "wait_seconds_total", "counter",
                        "Time spent waiting for locks.");
    buf_lit(b, "holdfast_lock_wait_seconds_total ");
    prometheus_put_seconds(b, (int64_t)s->wait_us);
    buf_char(b, '\n');
}

static void put_histogram(struct buf *b, const struct hf_stats *s)
{
    static const char name[] = "holdfast_lock_acquire_seconds";
    uint64_t n = 0;
    prometheus_put_head(b, "", name, "histogram", "How long grants took, including the wait.");
    for (int i = 0; i < HF_LATENCY_BUCKETS - 1; i++) {
        n += s->latency[i];
        buf_printf(b, "%s_bucket{le=\"", name);
        prometheus_put_seconds(b, INT64_C(16) << i);
        buf_printf(b, "\"} %" PRIu64 "\n", n);
    }
    n += s->latency[HF_LATENCY_BUCKETS - 1];
    buf_printf(b, "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n%s_sum ", name, n, name);
    prometheus_put_seconds(b, (int64_t)s->latency_us);
    buf_printf(b, "\n%s_count %" PRIu64 "\n", name, n);
}

static void render(struct metrics_listen *m, struct buf *b)
{
    lock_take(&m->lock);
    if (m->locks)
        (void)!hf_stats(m->locks, &m->stats, NULL);
    put_gauges(b, m);
    put_counters(b, &m->stats);
    put_histogram(b, &m->stats);
    lock_give(&m->lock);
}

/* ---- what the command does ---- */

static void set(struct metrics_listen *m, const struct hf_locks *locks,
                const struct hf_lock_set *locked, bool waits)
{
    if (!m)
        return;
    lock_take(&m->lock);
    if (m->locks && !locks)
        (void)!hf_stats(m->locks, &m->stats, NULL); /* the counters outlive their back end */
    m->locks = locks;
    m->set = locked;
    m->waits = waits;
    m->since_ms = waits || locked ? clock_wall_us(&clock_system) / 1000 : 0;
    lock_give(&m->lock);
}

void metrics_listen_idle(struct metrics_listen *m) { set(m, NULL, NULL, false); }

void metrics_listen_waits(struct metrics_listen *m, const struct hf_locks *locks)
{
    set(m, locks, NULL, true);
}

void metrics_listen_holds(struct metrics_listen *m, const struct hf_locks *locks,
                          const struct hf_lock_set *locked)
{
    set(m, locks, locked, false);
}

/* ---- the server ---- */

/* Reads the head of a request.  Returns false if the client is too slow, too talkative or gone. */
static bool read_request(int fd, char *request, int64_t until_us)
{
    size_t len = 0;
    while (len < REQUEST_LEN_MAX) {
        struct pollfd file = {.fd = fd, .events = POLLIN};
        int64_t left_us = until_us - wait_now_us();
        if (left_us <= 0 || wait_files(&file, 1, left_us) <= 0)
            return false;
        ssize_t n = recv(fd, request + len, REQUEST_LEN_MAX - len, MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
            return false;
        len += n > 0 ? (size_t)n : 0;
        request[len] = '\0';
        if (strstr(request, "\r\n\r\n") || strstr(request, "\n\n"))
            return true;
    }
    return false;
}

static void send_all(int fd, const struct buf *b, int64_t until_us)
{
    for (size_t sent = 0; sent < b->len;) {
        struct pollfd file = {.fd = fd, .events = POLLOUT};
        int64_t left_us = until_us - wait_now_us();
        if (left_us <= 0 || wait_files(&file, 1, left_us) <= 0)
            return;
        ssize_t n = send(fd, b->data + sent, b->len - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            return;
        sent += n > 0 ? (size_t)n : 0;
    }
}

/* Returns whether the request line begins with this method, and sets *ret_path to what follows. */
static bool has_method(const char *request, const char *method, const char **ret_path)
{
    size_t len = strlen(method);
    *ret_path = request + len;
    return strncmp(request, method, len) == 0;
}

static void answer(struct metrics_listen *m, const char *request, struct buf *out)
{
    const char *path, *status = "200 OK";
    bool head = has_method(request, "HEAD ", &path);
    struct buf body = {0};
    if (!head && !has_method(request, "GET ", &path)) {
        status = "405 Method Not Allowed\r\nAllow: GET, HEAD";
    } else if (strncmp(path, "/metrics", 8) != 0 || !strchr(" ?\r\n", path[8])) {
        status = "404 Not Found";
        buf_lit(&body, "The metrics are at /metrics.\n");
    } else {
        render(m, &body);
    }
    buf_printf(out,
               "HTTP/1.1 %s\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
               "Content-Length: %zu\r\nConnection: close\r\n\r\n",
               status, body.len);
    if (!head && body.len)
        buf_put(out, body.data, body.len);
    buf_close(&body);
}

static void serve(struct metrics_listen *m, int fd)
{
    char request[REQUEST_LEN_MAX + 1];
    int64_t until_us = wait_now_us() + EXCHANGE_US;
    if (read_request(fd, request, until_us)) {
        struct buf out = {0};
        answer(m, request, &out);
        send_all(fd, &out, until_us);
        buf_close(&out);
        (void)shutdown(fd, SHUT_WR);
    }
    (void)close(fd);
}

static void *listen_main(void *arg)
{
    struct metrics_listen *m = arg;
    struct pollfd fds[] = {{.fd = m->stop_fd, .events = POLLIN},
                           {.fd = m->listen_fd, .events = POLLIN}};
    for (;;) {
        if (wait_files(fds, 2, -1) < 0)
            continue;
        if (fds[0].revents)
            return NULL;
        int fd = accept4(m->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0)
            serve(m, fd);
        else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
            wait_sleep_us(EXCHANGE_US / 10); /* out of files: the connection stays readable */
    }
}

/* ---- listening ---- */

/* Completes PORT and :PORT to a loopback address. */
static bool parse_address(const char *text, struct listen_address *ret, struct hf_err *err)
{
    char full[300];
    const char *port = text[0] == ':' ? text + 1 : text;
    bool is_port = *port && strspn(port, "0123456789") == strlen(port);
    snprintf(full, sizeof full, "%s%.280s", is_port ? "127.0.0.1:" : "", is_port ? port : text);
    return listen_parse(full, ret, err);
}

static bool parse_path(const char *path, struct sockaddr_un *ret, struct hf_err *err)
{
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof ret->sun_path) {
        (void)hf_err_set(err, HF_INVALID_REQUEST, "the path of a socket has at most %zu bytes",
                         sizeof ret->sun_path - 1);
        return false;
    }
    memcpy(ret->sun_path, path, strlen(path) + 1);
    return true;
}

bool metrics_listen_check(const char *command, const char *text)
{
    struct hf_err err = {0};
    struct listen_address address;
    struct sockaddr_un file;
    if (strchr(text, '/') ? parse_path(text, &file, &err) : parse_address(text, &address, &err))
        return true;
    cli_say(command, "--metrics-listen: %s", err.msg);
    return false;
}

/* Removes a socket that no process listens on any more. */
static void remove_stale(const struct sockaddr_un *address)
{
    struct stat st;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && lstat(address->sun_path, &st) == 0 && S_ISSOCK(st.st_mode) &&
        connect(fd, (const struct sockaddr *)address, sizeof *address) != 0 &&
        errno == ECONNREFUSED)
        (void)unlink(address->sun_path);
    if (fd >= 0)
        (void)close(fd);
}

static bool listen_path(const char *path, int *ret_fd, struct hf_err *err)
{
    struct sockaddr_un address;
    if (!parse_path(path, &address, err))
        return false;
    remove_stale(&address);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof address) != 0 ||
        listen(fd, BACKLOG) != 0) {
        (void)hf_err_set(err, HF_INTERNAL, "%s", strerror(errno));
        if (fd >= 0)
            (void)close(fd);
        return false;
    }
    *ret_fd = fd;
    return true;
}

static bool listen_at(struct metrics_listen *m, const char *text, struct hf_err *err)
{
    struct listen_address address;
    if (strchr(text, '/')) {
        if (!listen_path(text, &m->listen_fd, err))
            return false;
        m->path = hf_strndup(text, strlen(text));
        return true;
    }
    return parse_address(text, &address, err) && listen_open(&address, &m->listen_fd, err);
}

static void free_all(struct metrics_listen *m)
{
    if (m->path)
        (void)unlink(m->path);
    if (m->listen_fd >= 0)
        (void)close(m->listen_fd);
    if (m->stop_fd >= 0)
        (void)close(m->stop_fd);
    lock_close(&m->lock);
    free(m->path);
    free(m);
}

struct metrics_listen *metrics_listen_start(const char *command, const char *text,
                                            const char *const *names, size_t n)
{
    if (!text)
        return NULL;
    struct hf_err err = {0};
    struct metrics_listen *m = hf_alloc(sizeof *m);
    *m = (struct metrics_listen){.listen_fd = -1,
                                 .stop_fd = eventfd(0, EFD_CLOEXEC),
                                 .names = names,
                                 .n_names = n,
                                 .stats = HF_STATS_INIT};
    lock_init(&m->lock);
    bool ok = m->stop_fd >= 0 && listen_at(m, text, &err);
    if (ok && (errno = pthread_create(&m->thread, NULL, listen_main, m)) != 0)
        ok = false;
    if (!ok) {
        cli_say(command, "--metrics-listen: cannot listen on %s: %s", text,
                err.msg[0] ? err.msg : strerror(errno));
        free_all(m);
        return NULL;
    }
    return m;
}

void metrics_listen_stop(struct metrics_listen *m)
{
    if (!m)
        return;
    (void)eventfd_write(m->stop_fd, 1);
    pthread_join(m->thread, NULL);
    free_all(m);
}
