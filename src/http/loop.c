/* See loop.h. */
#include "http/loop.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/wait.h"
#include "http/admission.h"
#include "http/conn.h"
#include "http/listen.h"
#include "http/server_internal.h"
#include "http/stream.h"

#define EVENTS_MAX 128
#define ACCEPTS_A_TURN 64
#define REST_US 10000 /* when files or memory for new connections have run out */

/* ---- new connections ---- */

static void count_accepted(struct server *s, int n)
{
    atomic_fetch_add(&s->n_connections, (size_t)n);
    atomic_fetch_add(&s->n_fresh, (size_t)n);
    gauge_add(s->traffic.connections, n);
}

/* Tells a client that there is no place for its connection, as far as it can be told without one:
 * not with TLS.  Closes the socket. */
static void turn_away(struct loop *l, int fd)
{
    if (l->server->config.tls) {
        (void)close(fd);
        return;
    }
    char id[REQUEST_ID_LEN + 1], unread[4096];
    struct buf body = {0}, text = {0};
    request_id_write(&l->requests, id);
    problem_write(&body, &problem_overloaded, no_place_detail, id);
    buf_char(&body, '}');
    buf_printf(&text,
               "HTTP/1.1 503 Service Unavailable\r\n%sX-Content-Type-Options: "
               "nosniff\r\nX-Request-Id: %s\r\nContent-Type: %s\r\n"
               "Retry-After: 1\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n",
               l->date, id, type_problem, body.len);
    buf_put(&text, body.data, body.len);
    (void)!recv(fd, unread, sizeof unread, MSG_DONTWAIT); /* what is unread would undo the answer */
    (void)!send(fd, text.data, text.len, MSG_DONTWAIT | MSG_NOSIGNAL);
    (void)close(fd);
    buf_close(&body);
    buf_close(&text);
}

/* Serves a newcomer, if there is a place for it. */
static void begin(struct loop *l, struct conn *c)
{
    struct server *s = l->server;
    c->loop = l;
    if (admission_enter(c)) {
        conn_start(c, l);
        return;
    }
    counter_add(s->traffic.turned_away, 1);
    turn_away(l, c->fd);
    count_accepted(s, -1);
    free(c);
}

void loop_adopt(struct loop *l, int fd, const struct sockaddr *peer, bool streams_only)
{
    count_accepted(l->server, 1);
    begin(l, conn_new(fd, peer, streams_only));
}

static void take_arrived(struct loop *l)
{
    struct conn *c = inbox_take_arrived(&l->inbox);
    while (c) {
        struct conn *next = c->next;
        begin(l, c);
        c = next;
    }
}

/* Accepts up to `max` connections.  Loops get them in turn, so that they have equal shares.  Each
 * begins to serve them when it is done with its events, one of which may be of a connection that
 * has to make room. */
static void accept_some(struct loop *l, const struct listener *from, int max)
{
    struct server *s = l->server;
    for (int i = 0; i < max; i++) {
        struct sockaddr_storage peer;
        socklen_t len = sizeof peer;
        if (atomic_load(&s->n_connections) >= s->connections_max + GUESTS_MAX + ARRIVING_MAX) {
            l->rest_until_us = l->now_us + REST_US; /* other loops have not looked at theirs yet */
            return;
        }
        int fd = accept4(from->fd, (struct sockaddr *)&peer, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0 && (errno == EINTR || errno == ECONNABORTED))
            continue;
        if (fd < 0) {
            if (errno != EAGAIN)
                l->rest_until_us = l->now_us + REST_US;
            return;
        }
        count_accepted(s, 1);
        struct loop *to = &s->loops[l->next_loop++ % s->n_loops];
        inbox_put_arrived(&to->inbox, conn_new(fd, (struct sockaddr *)&peer, from->streams_only));
        if (to != l)
            inbox_wake(&to->inbox);
    }
}

/* While files are short, the listening sockets are not watched: they would be reported for ever. */
static void watch_listeners(struct loop *l, bool on)
{
    struct server *s = l->server;
    for (int i = 0; i < LISTENERS_MAX; i++) {
        struct epoll_event event = {.events = on ? EPOLLIN : 0, .data.ptr = &s->listeners[i]};
        if (s->listeners[i].fd >= 0)
            (void)epoll_ctl(l->epoll_fd, EPOLL_CTL_MOD, s->listeners[i].fd, &event);
    }
}

bool loop_listen(struct loop *l)
{
    struct server *s = l->server;
    for (int i = 0; i < LISTENERS_MAX; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &s->listeners[i]};
        if (s->listeners[i].fd >= 0 &&
            epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, s->listeners[i].fd, &event) != 0)
            return false;
    }
    return true;
}

/* The kernel resets connections that wait in the queue of a socket when it is closed, so they are
 * accepted first. */
static void stop_listening(struct loop *l)
{
    struct server *s = l->server;
    for (int i = 0; i < LISTENERS_MAX; i++) {
        if (s->listeners[i].fd < 0)
            continue;
        accept_some(l, &s->listeners[i], LISTEN_QUEUE_MAX);
        (void)close(s->listeners[i].fd);
        s->listeners[i].fd = -1;
    }
    take_arrived(l);
    atomic_store(&s->listening, false);
}

static bool is_listener(const struct server *s, const void *ptr)
{
    const char *p = ptr, *first = (const char *)s->listeners;
    return p >= first && p < first + sizeof s->listeners;
}

/* ---- turns ---- */

/* The header line, which is the same for a second. */
static void set_date(struct loop *l)
{
    time_t now_s = (time_t)(clock_wall_us(l->server->config.clock) / 1000000);
    if (now_s == l->date_s)
        return;
    struct tm tm;
    l->date_s = now_s;
    (void)gmtime_r(&now_s, &tm);
    (void)strftime(l->date, sizeof l->date, "Date: %a, %d %b %Y %H:%M:%S GMT\r\n", &tm);
}

static int64_t sooner(int64_t wait_us, int64_t at_us, int64_t now_us)
{
    int64_t left = at_us > now_us ? at_us - now_us : 0;
    return wait_us < 0 || left < wait_us ? left : wait_us;
}

/* How long to wait for sockets; negative: without end. */
static int64_t wait_for(struct loop *l, int64_t wait_us)
{
    if (l->unread)
        return 0;
    int64_t due_us = wheel_next_us(&l->wheel);
    if (due_us >= 0)
        wait_us = sooner(wait_us, due_us, l->now_us);
    int64_t streams_us = streams_next_us(l);
    if (streams_us >= 0)
        wait_us = sooner(wait_us, streams_us, l->now_us);
    int64_t unsent_us = unsent_next_us(&l->unsent);
    if (unsent_us >= 0)
        wait_us = sooner(wait_us, unsent_us, l->now_us);
    if (l->rest_until_us)
        wait_us = sooner(wait_us, l->rest_until_us, l->now_us);
    return wait_us;
}

static void take_events(struct loop *l, const struct epoll_event *events, int n)
{
    for (int i = 0; i < n; i++) {
        void *ptr = events[i].data.ptr;
        if (ptr == l) {
            inbox_awake(&l->inbox);
        } else if (is_listener(l->server, ptr)) {
            if (!l->rest_until_us)
                accept_some(l, ptr, ACCEPTS_A_TURN);
            if (l->rest_until_us)
                watch_listeners(l, false);
        } else {
            conn_event(ptr, events[i].events);
        }
    }
}

static void take_done(struct loop *l)
{
    struct request *r = inbox_take_done(&l->inbox);
    while (r) {
        struct request *next = r->next;
        conn_resume(r->conn);
        r = next;
    }
}

/* Connections that have still more afterwards wait for the next turn. */
static void take_unread(struct loop *l)
{
    struct conn *first = l->unread;
    if (!first)
        return;
    l->unread = NULL;
    first->unread_link = &first;
    while (first)
        conn_take_unread(first); /* takes it off the list */
}

static void go_on_accepting(struct loop *l)
{
    if (!l->rest_until_us || l->now_us < l->rest_until_us)
        return;
    l->rest_until_us = 0;
    watch_listeners(l, true);
}

void loop_turn(struct loop *l, int64_t wait_us)
{
    struct epoll_event events[EVENTS_MAX];
    struct server *s = l->server;
    int n = wait_epoll(l->epoll_fd, events, EVENTS_MAX, wait_for(l, wait_us));
    l->now_us = clock_monotonic_us(s->config.clock);
    set_date(l);
    handshakes_begin_turn(&l->handshakes);
    take_events(l, events, n);
    take_unread(l);
    for (struct conn *c; (c = handshakes_excess(&l->handshakes));)
        conn_close(c);
    take_arrived(l);
    take_done(l);
    go_on_accepting(l);
    bool draining = server_draining(s);
    if (l == s->loops && atomic_load(&s->listening) && (draining || atomic_load(&s->closing)))
        stop_listening(l);
    if (draining)
        streams_end(l);
    struct timer *due;
    while ((due = wheel_pop(&l->wheel, l->now_us)))
        conn_due((struct conn *)due);
    unsent_turn(l);
    streams_turn(l, n > 0);
}

/* ---- life ---- */

bool loop_open(struct loop *l, struct server *server, struct hf_err *err)
{
    l->server = server;
    l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    bool has_inbox = inbox_open(&l->inbox);
    l->now_us = clock_monotonic_us(server->config.clock);
    l->blocks.bytes = &server->block_bytes;
    l->blocks.extra = server->config.app->request_size + 2 * BLOCK_BODY_FREE;
    wheel_open(&l->wheel, l->now_us);
    unsent_list_open(&l->unsent);
    requests_open(&l->requests, server->config.app);
    streams_open(l);
    set_date(l);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = l};
    if (l->epoll_fd >= 0 && has_inbox &&
        epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, l->inbox.wake_fd, &event) == 0)
        return true;
    (void)hf_err_set(err, HF_INTERNAL, "%s", strerror(errno));
    return false;
}

void loop_close(struct loop *l)
{
    take_arrived(l);
    while (atomic_load(&l->inbox.done)) /* a step that goes on may be refused at once */
        take_done(l);
    for (struct conn *c = l->conns, *next; c; c = next) {
        next = c->next;
        conn_close(c);
    }
    streams_close(l);
    requests_close(&l->requests);
    blocks_close(&l->blocks);
    if (l->epoll_fd >= 0)
        (void)close(l->epoll_fd);
    inbox_close(&l->inbox);
}
