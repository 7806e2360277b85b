/* Claims about net/http_pool.h beyond those of net/http_client.h, which runs on it: many requests
 * in flight, the waiting, and the life of a request.  The server is a thread of the test that
 * answers every request with the path that was asked for; a path that begins with /silent gets no
 * answer. */
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/vec.h"
#include "base/wait.h"
#include "net/http_pool.h"
#include "support/port.h"

#define CONNECTIONS_MAX 128
#define IN_MAX 1024

/* ---- a server ---- */

struct server {
    int listen_fd, stop_fd;
    struct pollfd fds[CONNECTIONS_MAX + 2]; /* stop, listen, connections */
    char in[CONNECTIONS_MAX + 2][IN_MAX];
    size_t len[CONNECTIONS_MAX + 2];
    nfds_t n;
    atomic_int accepted, requests;
    pthread_t thread;
    char url[64];
};

static void hang_up(struct server *s, nfds_t i)
{
    close(s->fds[i].fd);
    s->n--;
    s->fds[i] = s->fds[s->n];
    memcpy(s->in[i], s->in[s->n], IN_MAX);
    s->len[i] = s->len[s->n];
}

static bool answer(struct server *s, nfds_t i)
{
    ssize_t n = recv(s->fds[i].fd, s->in[i] + s->len[i], IN_MAX - 1 - s->len[i], 0);
    if (n <= 0)
        return false;
    s->len[i] += (size_t)n;
    s->in[i][s->len[i]] = '\0';
    if (!strstr(s->in[i], "\r\n\r\n"))
        return true;
    char path[64] = "", out[256];
    (void)sscanf(s->in[i], "GET %63s", path);
    s->len[i] = 0;
    atomic_fetch_add(&s->requests, 1);
    if (strncmp(path, "/silent", 7) == 0)
        return true;
    int len = snprintf(out, sizeof out, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s",
                       strlen(path), path);
    return send(s->fds[i].fd, out, (size_t)len, MSG_NOSIGNAL) == len;
}

static void *serve(void *arg)
{
    struct server *s = arg;
    for (;;) {
        (void)poll(s->fds, s->n, -1);
        if (s->fds[0].revents)
            return NULL;
        for (nfds_t i = s->n; i-- > 2;)
            if (s->fds[i].revents && !answer(s, i))
                hang_up(s, i);
        if (s->fds[1].revents && s->n < CONNECTIONS_MAX + 2) {
            int fd = accept(s->listen_fd, NULL, NULL);
            atomic_fetch_add(&s->accepted, 1);
            s->len[s->n] = 0;
            s->fds[s->n++] = (struct pollfd){.fd = fd, .events = POLLIN};
        }
    }
}

static int server_start(void **state)
{
    struct server *s = hf_alloc(sizeof *s);
    int port = port_free(&s->listen_fd);
    snprintf(s->url, sizeof s->url, "http://127.0.0.1:%d", port);
    s->stop_fd = eventfd(0, EFD_CLOEXEC);
    s->fds[0] = (struct pollfd){.fd = s->stop_fd, .events = POLLIN};
    s->fds[1] = (struct pollfd){.fd = s->listen_fd, .events = POLLIN};
    s->n = 2;
    *state = s;
    return pthread_create(&s->thread, NULL, serve, s);
}

static int server_stop(void **state)
{
    struct server *s = *state;
    eventfd_write(s->stop_fd, 1);
    pthread_join(s->thread, NULL);
    for (nfds_t i = 0; i < s->n; i++)
        close(s->fds[i].fd);
    free(s);
    return 0;
}

/* ---- calls ---- */

#define URL_SIZE 96
struct call {
    struct http_exchange x; /* the first member: `done` gets a pointer to it */
    char url[URL_SIZE];
    struct http_pool *pool;
    int done, again; /* how often it was done; how often it is to be started again */
};

static void call_init(struct call *c, const struct server *s, const char *path)
{
    *c = (struct call){0};
    snprintf(c->url, sizeof c->url, "%s%s", s->url, path);
    c->x.request = (struct http_request){.method = "GET", .url = c->url};
}

static void done(struct http_exchange *x)
{
    struct call *c = (struct call *)x;
    c->done++;
    if (c->again > 0) {
        c->again--;
        http_pool_start(c->pool, x, done);
    }
}

/* Turns until nothing runs, for at most a minute. */
static void finish(struct http_pool *pool)
{
    int64_t until_us = wait_now_us() + 60000000;
    while (http_pool_running(pool) > 0) {
        assert_true(wait_now_us() < until_us);
        http_pool_turn(pool, 1000000);
    }
}

/* ---- claims ---- */

static void many_requests_run_at_once_and_connections_are_kept(void **state)
{
    enum { N = 64, TIMES = 20 };
    struct server *s = *state;
    struct http_pool *pool = http_pool_new(&(struct http_client_options){.connections_max = N});
    struct call *calls = hf_alloc(N * sizeof *calls);
    for (int i = 0; i < N; i++) {
        char path[32];
        snprintf(path, sizeof path, "/call/%d", i);
        call_init(&calls[i], s, path);
        calls[i].pool = pool;
        calls[i].again = TIMES - 1;
        http_pool_start(pool, &calls[i].x, done);
    }
    assert_int_equal(http_pool_running(pool), N);
    finish(pool);
    for (int i = 0; i < N; i++) {
        char path[32];
        snprintf(path, sizeof path, "/call/%d", i);
        assert_int_equal(calls[i].done, TIMES);
        assert_int_equal(calls[i].x.result, HF_OK);
        assert_string_equal(calls[i].x.response.body.data, path);
        http_response_close(&calls[i].x.response);
    }
    assert_int_equal(atomic_load(&s->requests), N * TIMES);
    assert_in_range(atomic_load(&s->accepted), 1, N);
    free(calls);
    http_pool_free(pool);
}

static void one_silent_server_does_not_hold_up_the_others(void **state)
{
    struct server *s = *state;
    struct http_pool *pool = http_pool_new(NULL);
    struct call silent, quick;
    call_init(&silent, s, "/silent");
    call_init(&quick, s, "/quick");
    http_pool_start(pool, &silent.x, done);
    http_pool_start(pool, &quick.x, done);
    while (!quick.done)
        http_pool_turn(pool, 1000000);
    assert_int_equal(silent.done, 0);
    assert_int_equal(quick.x.result, HF_OK);
    assert_int_equal(http_pool_running(pool), 1);
    http_response_close(&quick.x.response);
    http_response_close(&silent.x.response);
    http_pool_free(pool);
}

static void a_malformed_request_ends_in_the_next_turn(void **state)
{
    (void)state;
    struct http_pool *pool = http_pool_new(NULL);
    struct call c = {.pool = pool, .again = 2};
    c.x.request = (struct http_request){.method = "GET", .url = "ftp://127.0.0.1/"};
    http_pool_start(pool, &c.x, done);
    assert_int_equal(c.done, 0);
    for (int i = 1; i <= 3; i++) {
        assert_int_equal(http_pool_running(pool), 1);
        http_pool_turn(pool, -1); /* does not wait */
        assert_int_equal(c.done, i);
        assert_int_equal(c.x.result, HF_INVALID_REQUEST);
    }
    assert_int_equal(http_pool_running(pool), 0);
    http_pool_free(pool);
}

static void a_refused_connection_ends_without_a_wait_for_the_others(void **state)
{
    struct server *s = *state;
    struct http_pool *pool = http_pool_new(NULL);
    struct call refused, silent;
    int fd, port = port_free(&fd);
    close(fd);
    call_init(&silent, s, "/silent");
    call_init(&refused, s, "");
    snprintf(refused.url, sizeof refused.url, "http://127.0.0.1:%d/", port);
    http_pool_start(pool, &silent.x, done);
    http_pool_start(pool, &refused.x, done);
    int64_t began_us = wait_now_us();
    while (!refused.done)
        http_pool_turn(pool, -1);
    assert_true(wait_now_us() - began_us < 20000000); /* the silent one has 30 s */
    assert_int_equal(refused.x.result, HF_UNAVAILABLE);
    http_pool_free(pool);
    assert_int_equal(silent.done, 0); /* dropped */
    http_response_close(&silent.x.response);
    http_response_close(&refused.x.response);
}

static void *wake_later(void *arg)
{
    wait_sleep_us(50000);
    http_pool_wake(arg);
    return NULL;
}

static void another_thread_ends_the_wait(void **state)
{
    (void)state;
    struct http_pool *pool = http_pool_new(NULL);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, wake_later, pool), 0);
    http_pool_turn(pool, -1); /* without the wake it would not return */
    pthread_join(thread, NULL);
    /* Any number of wakes before a turn end one wait. */
    http_pool_wake(pool);
    http_pool_wake(pool);
    http_pool_turn(pool, -1);
    int64_t began_us = wait_now_us();
    http_pool_turn(pool, 20000);
    assert_true(wait_now_us() - began_us >= 20000);
    http_pool_free(pool);
}

struct waker {
    struct http_pool *pool;
    atomic_bool stop;
};

static void *wake_always(void *arg)
{
    struct waker *w = arg;
    while (!atomic_load(&w->stop))
        http_pool_wake(w->pool);
    return NULL;
}

/* The list of files that a pool waits for grows while another thread wakes it. */
static void a_pool_that_opens_connections_can_be_woken_by_another_thread(void **state)
{
    enum { N = 64 };
    struct server *s = *state;
    struct call *calls = hf_alloc(N * sizeof *calls);
    struct waker w = {.pool = http_pool_new(&(struct http_client_options){.connections_max = N})};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, wake_always, &w), 0);
    for (int i = 0; i < N; i++) {
        call_init(&calls[i], s, "/");
        http_pool_start(w.pool, &calls[i].x, done);
    }
    finish(w.pool);
    atomic_store(&w.stop, true);
    pthread_join(thread, NULL);
    for (int i = 0; i < N; i++) {
        assert_int_equal(calls[i].x.result, HF_OK);
        http_response_close(&calls[i].x.response);
    }
    free(calls);
    http_pool_free(w.pool);
}

static void a_pool_can_be_freed_with_requests_in_flight(void **state)
{
    struct server *s = *state;
    struct http_pool *pool = http_pool_new(NULL);
    struct call calls[3];
    for (size_t i = 0; i < 3; i++) {
        call_init(&calls[i], s, "/silent");
        http_pool_start(pool, &calls[i].x, done);
    }
    while (atomic_load(&s->requests) < 3)
        http_pool_turn(pool, 10000);
    http_pool_free(pool);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(calls[i].done, 0);
        http_response_close(&calls[i].x.response);
    }
    http_pool_free(NULL);
}

static void an_origin_is_read_from_a_url(void **state)
{
    (void)state;
    struct http_origin o;
    assert_true(http_origin_parse("https://API.example", &o));
    assert_true(o.is_tls && o.is_bare && !o.is_loopback);
    assert_true(http_origin_parse("http://127.0.0.1:80/a?b", &o));
    assert_true(!o.is_tls && !o.is_bare && o.is_loopback);
    assert_string_equal(o.text, "http://127.0.0.1:80");
    assert_true(http_origin_parse("http://127.0.0.1@example.org:81", &o));
    assert_true(!o.is_bare && !o.is_loopback);
    assert_string_equal(o.text, "http://example.org:81");
    assert_false(http_origin_parse("", &o));
    assert_false(http_origin_parse("file:///etc/passwd", &o));
}

int main(void)
{
#define CLAIM(name) cmocka_unit_test_setup_teardown(name, server_start, server_stop)
    const struct CMUnitTest tests[] = {
        CLAIM(many_requests_run_at_once_and_connections_are_kept),
        CLAIM(one_silent_server_does_not_hold_up_the_others),
        cmocka_unit_test(a_malformed_request_ends_in_the_next_turn),
        CLAIM(a_refused_connection_ends_without_a_wait_for_the_others),
        cmocka_unit_test(another_thread_ends_the_wait),
        CLAIM(a_pool_that_opens_connections_can_be_woken_by_another_thread),
        CLAIM(a_pool_can_be_freed_with_requests_in_flight),
        cmocka_unit_test(an_origin_is_read_from_a_url),
    };
    return cmocka_run_group_tests_name("http_pool", tests, NULL, NULL);
}
