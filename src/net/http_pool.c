/* See http_pool.h.
 *
 * libcurl's multi interface says which files and which moment it waits for (want_file, want_timer);
 * the waiting itself goes through base/wait.h.  The first file of the list is an eventfd, which
 * http_pool_wake writes to; nothing else of a pool is used by other threads. */
#include "net/http_pool.h"

#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/vec.h"
#include "base/wait.h"
#include "net/transfer.h"

#define CONNECT_TIMEOUT_MS 5000
#define TIMEOUT_MS 30000
#define BODY_LEN_MAX ((size_t)1 << 20)
#define CONNECTIONS_MAX 8

/* A request that was malformed, until the next turn tells its owner. */
struct pool_refusal {
    struct http_exchange *exchange;
    void (*done)(struct http_exchange *x);
};

struct http_pool {
    struct http_client_options options;
    CURLM *multi;
    int wake_fd;              /* an eventfd, which any thread may write to; never changes */
    VEC(struct pollfd) files; /* wake_fd, then what libcurl waits for */
    int64_t due_us;           /* when libcurl wants to be called anyway; -1: not at all */
    VEC(struct transfer *) running;
    VEC(struct transfer *) idle; /* configured handles that no request uses */
    VEC(struct pool_refusal) refused;
};

/* ---- what libcurl calls ---- */

static int want_file(CURL *curl, curl_socket_t fd, int what, void *ctx, void *file_ctx)
{
    (void)curl, (void)file_ctx;
    struct http_pool *pool = ctx;
    size_t i = 1;
    while (i < pool->files.n && pool->files.v[i].fd != fd)
        i++;
    if (what == CURL_POLL_REMOVE) {
        if (i < pool->files.n)
            pool->files.v[i] = pool->files.v[--pool->files.n];
        return 0;
    }
    struct pollfd *file = i < pool->files.n ? &pool->files.v[i] : vec_push(&pool->files);
    file->fd = fd;
    file->events =
        (short)((what & CURL_POLL_IN ? POLLIN : 0) | (what & CURL_POLL_OUT ? POLLOUT : 0));
    return 0;
}

static int want_timer(CURLM *multi, long timeout_ms, void *ctx)
{
    (void)multi;
    struct http_pool *pool = ctx;
    pool->due_us = timeout_ms < 0 ? -1 : wait_now_us() + (int64_t)timeout_ms * 1000;
    return 0;
}

/* ---- requests ---- */

void http_pool_start(struct http_pool *pool, struct http_exchange *x,
                     void (*done)(struct http_exchange *x))
{
    if (pool->idle.n == 0)
        *vec_push(&pool->idle) = transfer_new(&pool->options);
    struct transfer *t = pool->idle.v[pool->idle.n - 1];
    t->exchange = x;
    x->result = transfer_begin(t, &x->err);
    if (x->result != HF_OK) {
        t->exchange = NULL;
        *vec_push(&pool->refused) = (struct pool_refusal){.exchange = x, .done = done};
        return;
    }
    pool->idle.n--;
    t->done = done;
    t->at = pool->running.n;
    *vec_push(&pool->running) = t;
    hf_check(curl_multi_add_handle(pool->multi, t->curl) == CURLM_OK);
}

static void make_idle(struct http_pool *pool, struct transfer *t)
{
    struct transfer *last = pool->running.v[--pool->running.n];
    pool->running.v[t->at] = last;
    last->at = t->at;
    t->exchange = NULL;
    *vec_push(&pool->idle) = t;
}

/* Calls `done` for every request that has ended.  Requests that `done` starts, and that are
 * malformed, have to wait for the next turn, so that this loop ends. */
static void tell(struct http_pool *pool)
{
    size_t n_refused = pool->refused.n;
    for (size_t i = 0; i < n_refused; i++) {
        struct pool_refusal refusal = pool->refused.v[i];
        if (refusal.done)
            refusal.done(refusal.exchange);
    }
    pool->refused.n -= n_refused;
    if (pool->refused.n)
        memmove(pool->refused.v, pool->refused.v + n_refused,
                pool->refused.n * sizeof *pool->refused.v);
    int left;
    for (CURLMsg *msg; (msg = curl_multi_info_read(pool->multi, &left));) {
        struct transfer *t = NULL;
        CURLcode code = msg->data.result;
        curl_easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, (char **)&t);
        curl_multi_remove_handle(pool->multi, t->curl);
        transfer_end(t, code);
        struct http_exchange *x = t->exchange;
        void (*done)(struct http_exchange *) = t->done;
        make_idle(pool, t);
        if (done)
            done(x);
    }
}

void http_pool_cancel(struct http_pool *pool, struct http_exchange *x)
{
    for (size_t i = 0; i < pool->running.n; i++) {
        struct transfer *t = pool->running.v[i];
        if (t->exchange != x)
            continue;
        curl_multi_remove_handle(pool->multi, t->curl);
        make_idle(pool, t);
        return;
    }
    for (size_t i = 0; i < pool->refused.n; i++)
        if (pool->refused.v[i].exchange == x) {
            pool->refused.v[i] = pool->refused.v[--pool->refused.n];
            return;
        }
}

size_t http_pool_running(const struct http_pool *pool) { return pool->running.n + pool->refused.n; }

/* ---- the loop ---- */

/* Lets libcurl act on what is ready.  It may change the list of files meanwhile, so we look each
 * one up again. */
static void act_on_files(struct http_pool *pool)
{
    int running;
    for (size_t i = 1; i < pool->files.n; i++) {
        struct pollfd file = pool->files.v[i];
        if (!file.revents)
            continue;
        int what = (file.revents & (POLLIN | POLLHUP) ? CURL_CSELECT_IN : 0) |
                   (file.revents & POLLOUT ? CURL_CSELECT_OUT : 0) |
                   (file.revents & (POLLERR | POLLNVAL) ? CURL_CSELECT_ERR : 0);
        pool->files.v[i].revents = 0;
        curl_multi_socket_action(pool->multi, file.fd, what, &running);
        if (i < pool->files.n && pool->files.v[i].fd != file.fd)
            i--; /* another file took its place */
    }
}

/* How long a turn may wait for files. */
static int64_t wait_limit_us(const struct http_pool *pool, int64_t wait_us)
{
    if (pool->refused.n)
        return 0;
    if (pool->due_us < 0)
        return wait_us;
    int64_t left_us = pool->due_us - wait_now_us();
    if (left_us < 0)
        left_us = 0;
    return wait_us < 0 || left_us < wait_us ? left_us : wait_us;
}

void http_pool_turn(struct http_pool *pool, int64_t wait_us)
{
    http_pool_turn_or(pool, wait_us, -1);
}

void http_pool_turn_or(struct http_pool *pool, int64_t wait_us, int fd)
{
    if (pool->due_us >= 0 && pool->due_us <= wait_now_us()) {
        int running = 0;
        pool->due_us = -1;
        curl_multi_socket_action(pool->multi, CURL_SOCKET_TIMEOUT, 0, &running);
        if ((size_t)running < pool->running.n)
            wait_us = 0; /* a request has ended; its owner does not wait for the others */
    }
    if (fd >= 0)
        *vec_push(&pool->files) = (struct pollfd){.fd = fd, .events = POLLIN};
    int n = wait_files(pool->files.v, pool->files.n, wait_limit_us(pool, wait_us));
    if (fd >= 0 && pool->files.v[--pool->files.n].revents)
        n--;
    if (n > 0 && pool->files.v[0].revents) {
        eventfd_t count;
        (void)!eventfd_read(pool->wake_fd, &count);
        pool->files.v[0].revents = 0;
        n--;
    }
    if (n > 0)
        act_on_files(pool);
    tell(pool);
}

void http_pool_wake(struct http_pool *pool)
{
    /* A full counter makes the next turn return, too. */
    (void)!eventfd_write(pool->wake_fd, 1);
}

/* ---- pools ---- */

static void init_curl(void) { hf_check(curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK); }

struct http_pool *http_pool_new(const struct http_client_options *options)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    hf_check(pthread_once(&once, init_curl) == 0);
    struct http_pool *pool = hf_alloc(sizeof *pool);
    if (options)
        pool->options = *options;
    struct http_client_options *o = &pool->options;
    o->connect_timeout_ms = o->connect_timeout_ms ? o->connect_timeout_ms : CONNECT_TIMEOUT_MS;
    o->timeout_ms = o->timeout_ms ? o->timeout_ms : TIMEOUT_MS;
    o->body_len_max = o->body_len_max ? o->body_len_max : BODY_LEN_MAX;
    o->connections_max = o->connections_max ? o->connections_max : CONNECTIONS_MAX;
    pool->due_us = -1;
    pool->multi = curl_multi_init();
    hf_check(pool->multi);
    curl_multi_setopt(pool->multi, CURLMOPT_SOCKETFUNCTION, want_file);
    curl_multi_setopt(pool->multi, CURLMOPT_SOCKETDATA, pool);
    curl_multi_setopt(pool->multi, CURLMOPT_TIMERFUNCTION, want_timer);
    curl_multi_setopt(pool->multi, CURLMOPT_TIMERDATA, pool);
    curl_multi_setopt(pool->multi, CURLMOPT_MAXCONNECTS, (long)o->connections_max);
    pool->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    hf_check(pool->wake_fd >= 0);
    *vec_push(&pool->files) = (struct pollfd){.fd = pool->wake_fd, .events = POLLIN};
    return pool;
}

void http_pool_free(struct http_pool *pool)
{
    if (!pool)
        return;
    for (size_t i = 0; i < pool->running.n; i++) {
        curl_multi_remove_handle(pool->multi, pool->running.v[i]->curl);
        transfer_free(pool->running.v[i]);
    }
    for (size_t i = 0; i < pool->idle.n; i++)
        transfer_free(pool->idle.v[i]);
    curl_multi_cleanup(pool->multi);
    close(pool->wake_fd);
    vec_close(&pool->running);
    vec_close(&pool->idle);
    vec_close(&pool->refused);
    vec_close(&pool->files);
    free(pool);
}
