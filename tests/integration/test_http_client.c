/* Claims about net/http_client.h, each against a socket server of the test's own that answers as
 * its script says. */
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

#include "base/wait.h"
#include "net/http_client.h"
#include "support/port.h"

#define CONNECTIONS_MAX 16
#define REPLIES_MAX 16
#define LAST_SIZE 4096

/* ---- a server ---- */

enum then { KEEP, CLOSE };

struct reply {
    const char *text; /* NULL: no byte */
    enum then then;
};

struct connection {
    int fd;
    struct buf in;
};

struct server {
    /* Set by the test.  Requests are answered in the order of their arrival, by the reply of the
     * same number; a request beyond the last reply is not answered. */
    struct reply replies[REPLIES_MAX];
    int answer_after;   /* answers nothing before this many requests have arrived */
    bool reads_nothing; /* closes each connection as soon as it is accepted */
    /* Read by the test. */
    atomic_int accepted, requests, closed;
    char last[LAST_SIZE]; /* the last request, header and body; read after server_stop */
    /* The thread's. */
    int listen_fd, stop_fd, n_answered;
    struct connection *waiting[REPLIES_MAX]; /* who sent request i */
    struct connection connections[CONNECTIONS_MAX];
    pthread_t thread;
    char url[64];
};

static void hang_up(struct connection *c)
{
    close(c->fd);
    c->fd = -1;
    c->in.len = 0;
}

/* The length of the request at the start of `in`; 0 if it is not complete. */
static size_t request_len(const struct buf *in)
{
    const char *end = in->len ? memmem(in->data, in->len, "\r\n\r\n", 4) : NULL;
    if (!end)
        return 0;
    size_t header = (size_t)(end + 4 - in->data), body = 0;
    const char *length = memmem(in->data, header, "Content-Length:", 15);
    if (length)
        body = strtoul(length + 15, NULL, 10);
    return in->len >= header + body ? header + body : 0;
}

static void answer(struct server *s)
{
    int n = atomic_load(&s->requests);
    while (n >= s->answer_after && s->n_answered < n && s->n_answered < REPLIES_MAX) {
        const struct reply *reply = &s->replies[s->n_answered];
        struct connection *c = s->waiting[s->n_answered];
        if (!reply->text && reply->then == KEEP)
            return;
        s->n_answered++;
        if (reply->text)
            (void)!send(c->fd, reply->text, strlen(reply->text), MSG_NOSIGNAL);
        if (reply->then == CLOSE) {
            hang_up(c);
            atomic_fetch_add(&s->closed, 1);
        }
    }
}

static void take(struct server *s, struct connection *c)
{
    buf_reserve(&c->in, 65536);
    ssize_t n = recv(c->fd, c->in.data + c->in.len, 65536, 0);
    if (n <= 0) {
        hang_up(c);
        return;
    }
    c->in.len += (size_t)n;
    size_t len = request_len(&c->in);
    if (!len)
        return;
    snprintf(s->last, sizeof s->last, "%.*s", (int)len, c->in.data);
    c->in.len = 0;
    int i = atomic_load(&s->requests);
    if (i < REPLIES_MAX)
        s->waiting[i] = c;
    atomic_store(&s->requests, i + 1);
    answer(s);
}

static void accept_one(struct server *s)
{
    int fd = accept(s->listen_fd, NULL, NULL);
    atomic_fetch_add(&s->accepted, 1);
    if (s->reads_nothing) {
        close(fd);
        return;
    }
    for (int i = 0; i < CONNECTIONS_MAX; i++)
        if (s->connections[i].fd < 0) {
            s->connections[i].fd = fd;
            return;
        }
    close(fd);
}

static void *serve(void *arg)
{
    struct server *s = arg;
    for (;;) {
        struct pollfd fds[CONNECTIONS_MAX + 2] = {{.fd = s->stop_fd, .events = POLLIN},
                                                  {.fd = s->listen_fd, .events = POLLIN}};
        for (int i = 0; i < CONNECTIONS_MAX; i++)
            fds[i + 2] = (struct pollfd){.fd = s->connections[i].fd, .events = POLLIN};
        (void)poll(fds, CONNECTIONS_MAX + 2, -1);
        if (fds[0].revents)
            return NULL;
        if (fds[1].revents)
            accept_one(s);
        for (int i = 0; i < CONNECTIONS_MAX; i++)
            if (fds[i + 2].revents && s->connections[i].fd == fds[i + 2].fd)
                take(s, &s->connections[i]);
    }
}

static void server_start(struct server *s)
{
    int port = port_free(&s->listen_fd);
    snprintf(s->url, sizeof s->url, "http://127.0.0.1:%d/path", port);
    s->stop_fd = eventfd(0, EFD_CLOEXEC);
    for (int i = 0; i < CONNECTIONS_MAX; i++)
        s->connections[i].fd = -1;
    assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

/* The server's thread counts after it has answered, and may be late. */
static void await_count(const atomic_int *count, int n)
{
    int64_t until_us = wait_now_us() + 60000000;
    while (atomic_load(count) < n) {
        assert_true(wait_now_us() < until_us);
        wait_sleep_us(1000);
    }
}

static void server_stop(struct server *s)
{
    eventfd_write(s->stop_fd, 1);
    pthread_join(s->thread, NULL);
    for (int i = 0; i < CONNECTIONS_MAX; i++) {
        if (s->connections[i].fd >= 0)
            close(s->connections[i].fd);
        buf_close(&s->connections[i].in);
    }
    close(s->stop_fd);
    close(s->listen_fd);
}

/* ---- calls ---- */

#define OK "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

static enum hf_status get(struct http_client *client, const char *url, struct http_response *ret,
                          struct hf_err *err)
{
    return http_client_call(client, &(struct http_request){.method = "GET", .url = url}, ret, err);
}

static enum hf_status post(struct http_client *client, const char *url, bool is_repeatable,
                           struct http_response *ret, struct hf_err *err)
{
    const struct http_request request = {
        .method = "POST", .url = url, .body = "{}", .body_len = 2, .is_repeatable = is_repeatable};
    return http_client_call(client, &request, ret, err);
}

/* ---- what comes back ---- */

static void a_response_has_status_headers_and_body(void **state)
{
    (void)state;
    struct server s = {.replies = {{"HTTP/1.1 503 Busy\r\nRetry-After: 7\r\nx-empty:\r\n"
                                    "Content-Length: 5\r\n\r\nlater",
                                    KEEP}}};
    struct http_client *client = http_client_new(NULL);
    struct http_response r = {0};
    struct hf_err err = {0};
    server_start(&s);
    assert_int_equal(get(client, s.url, &r, &err), HF_OK);
    assert_int_equal(r.status, 503);
    assert_string_equal(r.body.data, "later");
    assert_int_equal(r.body.len, 5);
    assert_string_equal(http_response_header(&r, "retry-after"), "7");
    assert_string_equal(http_response_header(&r, "X-Empty"), "");
    assert_null(http_response_header(&r, "Retry"));
    http_response_close(&r);
    http_client_free(client);
    server_stop(&s);
}

static void chunks_interim_responses_and_empty_bodies_are_understood(void **state)
{
    (void)state;
    struct server s = {.replies = {{"HTTP/1.1 100 Continue\r\nX-Interim: 1\r\n\r\n"
                                    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                                    "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
                                    KEEP},
                                   {"HTTP/1.1 204 No Content\r\n\r\n", KEEP},
                                   {"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n", KEEP}}};
    struct http_client *client = http_client_new(NULL);
    struct http_response r = {0};
    struct hf_err err = {0};
    server_start(&s);
    assert_int_equal(post(client, s.url, false, &r, &err), HF_OK);
    assert_int_equal(r.status, 200);
    assert_string_equal(r.body.data, "abcde");
    assert_null(http_response_header(&r, "X-Interim"));
    assert_int_equal(post(client, s.url, false, &r, &err), HF_OK);
    assert_int_equal(r.status, 204);
    assert_string_equal(r.body.data, "");
    const struct http_request head = {.method = "HEAD", .url = s.url};
    assert_int_equal(http_client_call(client, &head, &r, &err), HF_OK);
    assert_int_equal(r.body.len, 0);
    assert_string_equal(http_response_header(&r, "Content-Length"), "99");
    assert_int_equal(s.accepted, 1);
    http_response_close(&r);
    http_client_free(client);
    server_stop(&s);
}

static void a_request_has_the_headers_and_the_body_that_were_given_and_no_others(void **state)
{
    (void)state;
    struct server s = {.replies = {{OK, KEEP}, {OK, KEEP}}};
    const struct http_header headers[] = {{"Idempotency-Key", "k-1"}, {"X-Empty", ""}};
    struct http_client *client = http_client_new(NULL);
    struct http_response r = {0};
    struct hf_err err = {0};
    char body[] = "a\0b";
    server_start(&s);
    assert_int_equal(post(client, s.url, false, &r, &err), HF_OK);
    const struct http_request request = {.method = "PUT",
                                         .url = s.url,
                                         .headers = headers,
                                         .n_headers = 2,
                                         .body = body,
                                         .body_len = 3};
    assert_int_equal(http_client_call(client, &request, &r, &err), HF_OK);
    http_client_free(client);
    server_stop(&s);
    assert_non_null(strstr(s.last, "PUT /path HTTP/1.1\r\n"));
    assert_non_null(strstr(s.last, "Idempotency-Key: k-1\r\n"));
    assert_non_null(strstr(s.last, "X-Empty:\r\n"));
    assert_non_null(strstr(s.last, "Content-Length: 3\r\n"));
    assert_null(strstr(s.last, "Expect:"));
    assert_null(strstr(s.last, "Content-Type:"));
    http_response_close(&r);
}

/* ---- connections ---- */

static void a_connection_is_kept_and_used_again(void **state)
{
    (void)state;
    struct server s = {.replies = {{OK, KEEP}, {OK, KEEP}, {OK, CLOSE}, {OK, KEEP}}};
    struct http_client *client = http_client_new(NULL);
    struct http_response r = {0};
    struct hf_err err = {0};
    server_start(&s);
    for (int i = 0; i < 3; i++)
        assert_int_equal(post(client, s.url, false, &r, &err), HF_OK);
    assert_int_equal(s.accepted, 1);
    await_count(&s.closed, 1); /* now we can know */
    assert_int_equal(post(client, s.url, false, &r, &err), HF_OK);
    assert_int_equal(s.accepted, 2);
    http_response_close(&r);
    http_client_free(client);
    server_stop(&s);
}

/* The connection looks alive when the request is sent, and is closed without a byte. */
static void only_a_repeatable_request_is_sent_again(void **state)
{
    (void)state;
    struct server s = {.replies = {{OK, KEEP},
                                   {NULL, CLOSE}, /* of a GET: asked again */
                                   {OK, KEEP},
                                   {NULL, CLOSE}, /* of a POST that may be repeated */
                                   {OK, KEEP},
                                   {NULL, CLOSE}, /* of one that may not */
                                   {OK, KEEP}}};
    struct http_client *client = http_client_new(NULL);
    struct http_response r = {0};
    struct hf_err err = {0};
    server_start(&s);
    assert_int_equal(get(client, s.url, &r, &err), HF_OK);
    assert_int_equal(get(client, s.url, &r, &err), HF_OK);
    assert_int_equal(s.requests, 3);
    assert_int_equal(post(client, s.url, true, &r, &err), HF_OK);
    assert_int_equal(s.requests, 5);
    assert_int_equal(post(client, s.url, false, &r, &err), HF_OUTCOME_UNKNOWN);
    assert_int_equal(s.requests, 6);
    assert_int_equal(r.status, 0);
    assert_int_equal(post(client, s.url, false, &r, &err), HF_OK);
    assert_int_equal(s.requests, 7);
    http_response_close(&r);
    http_client_free(client);
    server_stop(&s);
}

static void several_requests_run_at_once(void **state)
{
    (void)state;
    struct server s = {.answer_after = 5};
    struct http_exchange exchanges[6] = {0};
    struct http_client *client = http_client_new(NULL);
    for (int i = 0; i < 5; i++)
        s.replies[i] = (struct reply){OK, KEEP};
    server_start(&s);
    for (int i = 0; i < 6; i++)
        exchanges[i].request = (struct http_request){.method = "GET", .url = s.url};
    exchanges[2].request.method = "NOT A METHOD";
    http_client_run(client, exchanges, 6);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(exchanges[i].result, i == 2 ? HF_INVALID_REQUEST : HF_OK);
        assert_int_equal(exchanges[i].response.status, i == 2 ? 0 : 200);
        http_response_close(&exchanges[i].response);
    }
    assert_int_equal(s.accepted, 5);
    http_client_free(client);
    server_stop(&s);
}

/* ---- nothing was sent ---- */

static void a_refused_connection_sent_nothing(void **state)
{
    (void)state;
    char url[64];
    struct http_client *client = http_client_new(NULL);
    struct http_response r = {0};
    struct hf_err err = {0};
    snprintf(url, sizeof url, "http://127.0.0.1:%d/secret", port_free(NULL));
    assert_int_equal(post(client, url, false, &r, &err), HF_UNAVAILABLE);
    assert_int_equal(err.code, HF_UNAVAILABLE);
    assert_non_null(strstr(err.msg, "http://127.0.0.1:"));
    assert_null(strstr(err.msg, "secret"));
    http_response_close(&r);
    http_client_free(client);
}

/* A queue of connections that is full takes no more: the kernel drops what knocks. */
static void a_connection_that_cannot_be_made_in_time_sent_nothing(void **state)
{
    (void)state;
    int listen_fd, fds[8];
    char url[64];
    struct http_client *client =
        http_client_new(&(struct http_client_options){.connect_timeout_ms = 100});
    struct http_response r = {0};
    struct hf_err err = {0};
    int port = port_free(&listen_fd);
    assert_int_equal(listen(listen_fd, 0), 0);
    struct sockaddr_storage at;
    socklen_t len = sizeof at;
    assert_int_equal(getsockname(listen_fd, (struct sockaddr *)&at, &len), 0);
    for (int i = 0; i < 8; i++) {
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        (void)!connect(fds[i], (struct sockaddr *)&at, len);
    }
    snprintf(url, sizeof url, "http://127.0.0.1:%d/", port);
    int64_t took_us = INT64_MAX;
    for (int i = 0; i < 5 && took_us > 4000000; i++) { /* a busy machine may delay one of them */
        int64_t began_us = wait_now_us();
        assert_int_equal(get(client, url, &r, &err), HF_UNAVAILABLE);
        took_us = wait_now_us() - began_us;
    }
    assert_in_range(took_us, 90000, 4000000);
    for (int i = 0; i < 8; i++)
        close(fds[i]);
    close(listen_fd);
    http_response_close(&r);
    http_client_free(client);
}

static void a_malformed_request_is_refused_before_it_is_sent(void **state)
{
    (void)state;
    struct server s = {.replies = {{OK, KEEP}}};
    struct http_client *client = http_client_new(NULL);
    struct http_response r = {0};
    struct hf_err err = {0};
    server_start(&s);
    const struct http_header split = {"X-A", "1\r\nX-B: 2"}, nameless = {"", "1"};
    const struct http_request requests[] = {
        {.method = "GET /", .url = s.url},
        {.method = "", .url = s.url},
        {.method = "GET", .url = "ftp://127.0.0.1/"},
        {.method = "GET", .url = "file:///etc/passwd"},
        {.method = "GET", .url = "no url"},
        {.method = "GET", .url = s.url, .headers = &split, .n_headers = 1},
        {.method = "GET", .url = s.url, .headers = &nameless, .n_headers = 1},
    };
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        assert_int_equal(http_client_call(client, &requests[i], &r, &err), HF_INVALID_REQUEST);
        assert_int_equal(err.code, HF_INVALID_REQUEST);
    }
    assert_int_equal(s.accepted, 0);
    assert_int_equal(get(client, s.url, &r, &err), HF_OK); /* the handle is as good as before */
    http_response_close(&r);
    http_client_free(client);
    server_stop(&s);
}

/* ---- the outcome is unknown ---- */

static void a_silent_server_is_given_up_in_time(void **state)
{
    (void)state;
    struct server s = {.replies = {{NULL, KEEP}}};
    struct http_client *client =
        http_client_new(&(struct http_client_options){.timeout_ms = 60000});
    struct http_response r = {0};
    struct hf_err err = {0};
    server_start(&s);
    const struct http_request request = {.method = "GET", .url = s.url, .timeout_ms = 500};
    int64_t began_us = wait_now_us();
    assert_int_equal(http_client_call(client, &request, &r, &err), HF_OUTCOME_UNKNOWN);
    assert_in_range(wait_now_us() - began_us, 490000, 30000000);
    await_count(&s.requests, 1);
    assert_int_equal(s.requests, 1);
    http_response_close(&r);
    http_client_free(client);
    server_stop(&s);
}

static void a_response_that_breaks_off_is_no_response(void **state)
{
    (void)state;
    struct server s = {
        .replies = {{"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", CLOSE},
                    {"HTTP/1.1 200 OK\r\nContent-", CLOSE},
                    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", CLOSE},
                    {NULL, CLOSE}}};
    struct http_client *client = http_client_new(NULL);
    struct http_response r = {0};
    struct hf_err err = {0};
    server_start(&s);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(get(client, s.url, &r, &err), HF_OUTCOME_UNKNOWN);
        assert_int_equal(err.code, HF_OUTCOME_UNKNOWN);
        assert_int_equal(r.status, 0);
        assert_int_equal(r.body.len, 0);
        assert_int_equal(r.headers.len, 0);
    }
    assert_int_equal(s.requests, 4);
    http_response_close(&r);
    http_client_free(client);
    server_stop(&s);
}

static void a_server_that_closes_while_we_send_raises_no_signal(void **state)
{
    (void)state;
    struct server s = {.reads_nothing = true};
    struct http_client *client = http_client_new(NULL);
    struct http_response r = {0};
    struct hf_err err = {0};
    size_t len = (size_t)8 << 20;
    char *body = hf_alloc(len);
    server_start(&s);
    const struct http_request request = {
        .method = "POST", .url = s.url, .body = body, .body_len = len};
    assert_int_equal(http_client_call(client, &request, &r, &err), HF_OUTCOME_UNKNOWN);
    free(body);
    http_response_close(&r);
    http_client_free(client);
    server_stop(&s);
}

static void a_response_larger_than_allowed_is_not_kept(void **state)
{
    (void)state;
    struct buf many_headers = {0};
    buf_str(&many_headers, "HTTP/1.1 200 OK\r\n");
    for (int i = 0; i < 2000; i++)
        buf_printf(&many_headers, "X-%d: 0123456789012345678901234567890123456789\r\n", i);
    buf_put(&many_headers, "\r\n", 3);
    struct server s = {.replies = {{"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfour", KEEP},
                                   {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfive!", KEEP},
                                   {"HTTP/1.1 200 OK\r\n\r\n0123456789", KEEP},
                                   {many_headers.data, KEEP},
                                   {OK, KEEP}}};
    struct http_client *client = http_client_new(&(struct http_client_options){.body_len_max = 4});
    struct http_response r = {0};
    struct hf_err err = {0};
    server_start(&s);
    assert_int_equal(get(client, s.url, &r, &err), HF_OK);
    assert_string_equal(r.body.data, "four");
    for (int i = 0; i < 3; i++) {
        assert_int_equal(get(client, s.url, &r, &err), HF_OUTCOME_UNKNOWN);
        assert_non_null(strstr(err.msg, "too large"));
        assert_int_equal(r.body.len, 0);
    }
    assert_int_equal(get(client, s.url, &r, &err), HF_OK);
    http_response_close(&r);
    http_client_free(client);
    server_stop(&s);
    buf_close(&many_headers);
}

/* ---- answers without an end ---- */

static bool keep_piece(void *ctx, const char *data, size_t len)
{
    struct buf *all = ctx;
    buf_put(all, data, len);
    return !memmem(all->data, all->len, "stop", 4);
}

static enum hf_status stream(struct http_client *client, const char *url, struct buf *all,
                             struct http_response *ret, struct hf_err *err)
{
    const struct http_request request = {
        .method = "GET", .url = url, .timeout_ms = 1, .on_body = keep_piece, .ctx = all};
    return http_client_call(client, &request, ret, err);
}

/* The limits of body_len_max and of the whole time are for other answers, also on the handle that
 * streamed before. */
static void a_body_is_given_away_piece_by_piece(void **state)
{
    (void)state;
    struct server s = {.replies = {{"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nwithout 1", KEEP},
                                   {"HTTP/1.1 200 OK\r\n\r\nand then stop", KEEP},
                                   {"HTTP/1.1 200 OK\r\n\r\nsilence", KEEP},
                                   {"HTTP/1.1 404 No\r\nContent-Length: 4\r\n\r\nnone", KEEP},
                                   {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfive!", KEEP}}};
    struct http_client *client = http_client_new(&(struct http_client_options){.body_len_max = 4});
    struct http_response r = {0};
    struct buf all = {0};
    struct hf_err err = {0};
    server_start(&s);
    assert_int_equal(stream(client, s.url, &all, &r, &err), HF_OK);
    assert_int_equal(r.status, 200);
    assert_int_equal(r.body.len, 0);
    assert_memory_equal(all.data, "without 1", 9);
    all.len = 0;
    assert_int_equal(stream(client, s.url, &all, &r, &err), HF_OUTCOME_UNKNOWN);
    assert_memory_equal(all.data, "and then stop", 13);
    all.len = 0;
    assert_int_equal(stream(client, s.url, &all, &r, &err), HF_OUTCOME_UNKNOWN);
    assert_memory_equal(all.data, "silence", 7);
    all.len = 0;
    assert_int_equal(stream(client, s.url, &all, &r, &err), HF_OK);
    assert_int_equal(r.status, 404);
    assert_int_equal(all.len, 0);
    assert_string_equal(r.body.data, "none");
    assert_int_equal(get(client, s.url, &r, &err), HF_OUTCOME_UNKNOWN);
    buf_close(&all);
    http_response_close(&r);
    http_client_free(client);
    server_stop(&s);
}

/* ---- proxies ---- */

static void a_proxy_of_the_environment_is_not_asked_for_loopback_unless_wanted(void **state)
{
    (void)state;
    struct server s = {.replies = {{OK, KEEP}}};
    struct http_client *direct = http_client_new(NULL);
    struct http_client *proxied =
        http_client_new(&(struct http_client_options){.proxy_even_to_loopback = true});
    struct http_response r = {0};
    struct hf_err err = {0};
    char proxy[64];
    snprintf(proxy, sizeof proxy, "http://127.0.0.1:%d", port_free(NULL));
    server_start(&s);
    setenv("http_proxy", proxy, 1);
    unsetenv("no_proxy");
    unsetenv("NO_PROXY");
    assert_int_equal(get(direct, s.url, &r, &err), HF_OK);
    assert_int_equal(get(proxied, s.url, &r, &err), HF_UNAVAILABLE);
    assert_int_equal(s.requests, 1);
    unsetenv("http_proxy");
    http_response_close(&r);
    http_client_free(direct);
    http_client_free(proxied);
    server_stop(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_response_has_status_headers_and_body),
        cmocka_unit_test(chunks_interim_responses_and_empty_bodies_are_understood),
        cmocka_unit_test(a_request_has_the_headers_and_the_body_that_were_given_and_no_others),
        cmocka_unit_test(a_connection_is_kept_and_used_again),
        cmocka_unit_test(only_a_repeatable_request_is_sent_again),
        cmocka_unit_test(several_requests_run_at_once),
        cmocka_unit_test(a_refused_connection_sent_nothing),
        cmocka_unit_test(a_connection_that_cannot_be_made_in_time_sent_nothing),
        cmocka_unit_test(a_malformed_request_is_refused_before_it_is_sent),
        cmocka_unit_test(a_silent_server_is_given_up_in_time),
        cmocka_unit_test(a_response_that_breaks_off_is_no_response),
        cmocka_unit_test(a_server_that_closes_while_we_send_raises_no_signal),
        cmocka_unit_test(a_response_larger_than_allowed_is_not_kept),
        cmocka_unit_test(a_body_is_given_away_piece_by_piece),
        cmocka_unit_test(a_proxy_of_the_environment_is_not_asked_for_loopback_unless_wanted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
