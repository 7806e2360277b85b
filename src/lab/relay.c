/* See relay.h.  The thread sleeps in epoll.  Each direction of a connection has one buffer: the
 * relay reads only into an empty one, so a slow reader slows its sender down and memory is
 * bounded.  The mutex protects the mode and is held while the thread works on events, so that
 * relay_set returns only when nothing of the old mode is under way. */
#include "lab/relay.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/vec.h"
#include "base/wait.h"

#define BUFFER_SIZE 16384
#define EVENTS_MAX 64

/* One socket of a connection and the bytes that were read from it and not yet written to its
 * peer. */
struct end {
    int fd;
    uint32_t watched; /* the events that epoll reports for it */
    struct pair *pair;
    size_t at, len;
    char bytes[BUFFER_SIZE];
};

struct pair {
    struct end ends[2];  /* the client's, the server's */
    bool is_broken;      /* the thread closes it */
    bool is_deaf;        /* made a black hole by RELAY_SWALLOW_ONCE */
    bool has_word;       /* the last request contained one of the words */
    bool awaits;         /* in turn: a request was passed on, and no answer has come since */
    bool was_held;       /* by RELAY_HOLD, at some time */
    bool client_is_gone; /* of a pair that was held */
};

struct relay {
    int listen_fd, epoll_fd, wake_fd, port;
    struct sockaddr_storage to;
    pthread_t thread;
    pthread_mutex_t lock;
    enum relay_mode mode;
    const char *words; /* NULL: none */
    bool takes_turns, stops;
    VEC(struct pair *) pairs;
    _Atomic uint64_t messages, bytes, lost;
};

static bool is_client(const struct end *e) { return e == &e->pair->ends[0]; }
static struct end *peer_of(struct end *e) { return &e->pair->ends[is_client(e)]; }

/* Does anything pass at all? */
static bool is_up(const struct relay *r)
{
    return r->mode != RELAY_SILENT && r->mode != RELAY_CLOSED;
}

/* ---- connections ---- */

/* An end is read while its buffer is empty and written while its peer's is not. */
static void watch(struct relay *r, struct end *e)
{
    uint32_t want = 0;
    bool waits =
        is_client(e) && (r->mode == RELAY_HOLD || e->pair->awaits || e->pair->client_is_gone);
    if (is_up(r)) {
        want |= e->len == 0 && !waits ? (uint32_t)EPOLLIN : 0;
        want |= peer_of(e)->len > 0 ? (uint32_t)EPOLLOUT : 0;
    }
    if (want == e->watched)
        return;
    struct epoll_event event = {.events = want, .data.ptr = e};
    /* A socket that nothing is wanted of is taken out, since epoll always reports a hang-up. */
    int op = !want ? EPOLL_CTL_DEL : e->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
    hf_check(epoll_ctl(r->epoll_fd, op, e->fd, &event) == 0);
    e->watched = want;
}

static void watch_both(struct relay *r, struct pair *p)
{
    watch(r, &p->ends[0]);
    watch(r, &p->ends[1]);
}

static int connect_to(const struct sockaddr_storage *to)
{
    socklen_t len =
        to->ss_family == AF_UNIX ? sizeof(struct sockaddr_un) : sizeof(struct sockaddr_in);
    int fd = socket(to->ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)to, len) != 0) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static void set_up_socket(int fd)
{
    const int on = 1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

/* A connection to a server that is not there is closed, as the server's machine would do it. */
static void accept_one(struct relay *r)
{
    int client = accept4(r->listen_fd, NULL, NULL, SOCK_CLOEXEC);
    if (client < 0)
        return;
    bool wanted = is_up(r) && r->pairs.n < RELAY_CONNECTIONS_MAX;
    int server = wanted ? connect_to(&r->to) : -1;
    if (server < 0) {
        close(client);
        return;
    }
    set_up_socket(client);
    set_up_socket(server);
    struct pair *p = hf_alloc(sizeof *p);
    p->ends[0].fd = client;
    p->ends[1].fd = server;
    p->ends[0].pair = p->ends[1].pair = p;
    p->was_held = r->mode == RELAY_HOLD;
    *vec_push(&r->pairs) = p;
    watch_both(r, p);
}

/* A socket leaves epoll before it is closed: a child that has been forked and not yet run its
 * program has the socket open, too, and epoll would go on reporting it. */
static void close_pair(struct relay *r, struct pair *p)
{
    for (int i = 0; i < 2; i++) {
        if (p->ends[i].watched)
            hf_check(epoll_ctl(r->epoll_fd, EPOLL_CTL_DEL, p->ends[i].fd, NULL) == 0);
        close(p->ends[i].fd);
    }
    free(p);
}

/* Closes the connections that broke, or all of them.  Only the thread calls it while it runs, since
 * the events that it has fetched refer to them. */
static void sweep(struct relay *r, bool all)
{
    size_t kept = 0;
    for (size_t i = 0; i < r->pairs.n; i++) {
        if (all || r->pairs.v[i]->is_broken)
            close_pair(r, r->pairs.v[i]);
        else
            r->pairs.v[kept++] = r->pairs.v[i];
    }
    r->pairs.n = kept;
}

/* ---- passing on ---- */

/* Do the bytes contain one of the words? */
static bool has_word(const char *bytes, size_t n, const char *words)
{
    for (;; words++) {
        size_t len = strcspn(words, "|");
        if (memmem(bytes, n, words, len))
            return true;
        words += len;
        if (!*words)
            return false;
    }
}

/* Loses the answer that has been read, if it is to be lost. */
static void judge_answer(struct relay *r, struct end *e)
{
    struct pair *p = e->pair;
    bool is_chosen = !r->words || p->has_word;
    p->awaits = false;
    if (r->mode == RELAY_SWALLOW_ONCE && is_chosen) {
        r->mode = RELAY_PASS;
        p->is_deaf = true;
    }
    if (!p->client_is_gone && !p->is_deaf && (r->mode == RELAY_PASS || !is_chosen))
        return;
    e->len = 0;
    r->lost++;
    p->is_broken = p->client_is_gone || (!p->is_deaf && r->mode != RELAY_SWALLOW);
}

/* Reads the next request alone, or what begins with no length of a request as it comes. */
static ssize_t read_request(struct end *e)
{
    uint32_t len;
    if (recv(e->fd, &len, sizeof len, MSG_PEEK | MSG_WAITALL) != sizeof len ||
        ntohl(len) > sizeof e->bytes - sizeof len)
        return recv(e->fd, e->bytes, sizeof e->bytes, MSG_DONTWAIT);
    return recv(e->fd, e->bytes, sizeof len + ntohl(len), MSG_WAITALL);
}

static void read_from(struct relay *r, struct end *e)
{
    bool is_alone = r->takes_turns && is_client(e);
    ssize_t n = is_alone ? read_request(e) : recv(e->fd, e->bytes, sizeof e->bytes, MSG_DONTWAIT);
    if (n > 0) {
        e->at = 0;
        e->len = (size_t)n;
        r->messages++;
        r->bytes += (uint64_t)n;
    } else if (n == 0 || errno != EAGAIN) {
        e->pair->client_is_gone = is_client(e) && e->pair->was_held;
        e->pair->is_broken = !e->pair->client_is_gone;
    }
    if (n > 0 && is_client(e)) {
        e->pair->awaits = is_alone;
        e->pair->has_word = r->words && has_word(e->bytes, e->len, r->words);
    } else if (n > 0) {
        judge_answer(r, e);
    }
}

static void write_from(struct end *e)
{
    if (e->len == 0)
        return;
    ssize_t n = send(peer_of(e)->fd, e->bytes + e->at, e->len, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n > 0) {
        e->at += (size_t)n;
        e->len -= (size_t)n;
    } else if (errno != EAGAIN) {
        e->pair->is_broken = true;
    }
}

static void serve(struct relay *r, struct end *e, uint32_t events)
{
    if (e->pair->is_broken)
        return;
    if (e->watched & EPOLLIN && events & (uint32_t)~EPOLLOUT)
        read_from(r, e);
    write_from(e);
    write_from(peer_of(e));
    if (!e->pair->is_broken)
        watch_both(r, e->pair);
}

/* Handles one event of epoll: of the eventfd (data is the relay), of the listening socket (data is
 * NULL) or of a connection.  The mode may have changed since epoll looked. */
static void handle(struct relay *r, const struct epoll_event *event)
{
    eventfd_t ignored;
    if (event->data.ptr == r)
        (void)eventfd_read(r->wake_fd, &ignored);
    else if (event->data.ptr && is_up(r))
        serve(r, event->data.ptr, event->events);
    else if (!event->data.ptr && r->mode != RELAY_SILENT)
        accept_one(r);
}

static void *relay_main(void *arg)
{
    struct relay *r = arg;
    struct epoll_event events[EVENTS_MAX];
    for (bool stops = false; !stops;) {
        int n = wait_epoll(r->epoll_fd, events, EVENTS_MAX, -1);
        pthread_mutex_lock(&r->lock);
        for (int i = 0; i < n; i++)
            handle(r, &events[i]);
        sweep(r, false);
        stops = r->stops;
        pthread_mutex_unlock(&r->lock);
    }
    return NULL;
}

/* ---- the outside ---- */

static bool listen_anywhere(struct relay *r)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    bool good = r->listen_fd >= 0 && bind(r->listen_fd, (struct sockaddr *)&at, sizeof at) == 0 &&
                getsockname(r->listen_fd, (struct sockaddr *)&at, &len) == 0 &&
                listen(r->listen_fd, 512) == 0;
    r->port = ntohs(at.sin_port);
    return good;
}

static void watch_listener(struct relay *r, bool on)
{
    struct epoll_event event = {.events = on ? (uint32_t)EPOLLIN : 0, .data.ptr = NULL};
    hf_check(epoll_ctl(r->epoll_fd, EPOLL_CTL_MOD, r->listen_fd, &event) == 0);
}

static void set_target(struct relay *r, int port)
{
    const struct sockaddr_in to = {.sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                   .sin_port = htons((uint16_t)port)};
    memcpy(&r->to, &to, sizeof to);
}

/* Uses up `r`, which has its target. */
static struct relay *start(struct relay *r, struct hf_err *err)
{
    r->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    r->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    r->wake_fd = eventfd(0, EFD_CLOEXEC);
    pthread_mutex_init(&r->lock, NULL);
    struct epoll_event accepts = {.events = EPOLLIN, .data.ptr = NULL};
    struct epoll_event wakes = {.events = EPOLLIN, .data.ptr = r};
    bool good = r->epoll_fd >= 0 && r->wake_fd >= 0 && listen_anywhere(r) &&
                epoll_ctl(r->epoll_fd, EPOLL_CTL_ADD, r->listen_fd, &accepts) == 0 &&
                epoll_ctl(r->epoll_fd, EPOLL_CTL_ADD, r->wake_fd, &wakes) == 0 &&
                pthread_create(&r->thread, NULL, relay_main, r) == 0;
    if (good)
        return r;
    (void)hf_err_set(err, HF_UNAVAILABLE, "no relay on 127.0.0.1: %m");
    close(r->listen_fd);
    close(r->epoll_fd);
    close(r->wake_fd);
    free(r);
    return NULL;
}

struct relay *relay_start(int to_port, struct hf_err *err)
{
    struct relay *r = hf_alloc(sizeof *r);
    set_target(r, to_port);
    return start(r, err);
}

struct relay *relay_start_unix(const char *path, struct hf_err *err)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof to.sun_path) {
        (void)hf_err_set(err, HF_UNAVAILABLE, "%.200s: too long for a socket", path);
        return NULL;
    }
    struct relay *r = hf_alloc(sizeof *r);
    memcpy(to.sun_path, path, strlen(path));
    memcpy(&r->to, &to, sizeof to);
    return start(r, err);
}

void relay_stop(struct relay *r)
{
    if (!r)
        return;
    pthread_mutex_lock(&r->lock);
    r->stops = true;
    pthread_mutex_unlock(&r->lock);
    hf_check(eventfd_write(r->wake_fd, 1) == 0);
    pthread_join(r->thread, NULL);
    sweep(r, true);
    vec_close(&r->pairs);
    pthread_mutex_destroy(&r->lock);
    close(r->listen_fd);
    close(r->epoll_fd);
    close(r->wake_fd);
    free(r);
}

int relay_port(const struct relay *r) { return r->port; }

void relay_set(struct relay *r, enum relay_mode mode)
{
    pthread_mutex_lock(&r->lock);
    r->mode = mode;
    for (size_t i = 0; i < r->pairs.n; i++) {
        struct pair *p = r->pairs.v[i];
        p->was_held |= mode == RELAY_HOLD;
        watch_both(r, p);
        if (mode != RELAY_CLOSED)
            continue;
        p->is_broken = true;
        (void)shutdown(p->ends[0].fd, SHUT_RDWR);
        (void)shutdown(p->ends[1].fd, SHUT_RDWR);
    }
    watch_listener(r, mode != RELAY_SILENT);
    pthread_mutex_unlock(&r->lock);
    hf_check(eventfd_write(r->wake_fd, 1) == 0);
}

void relay_lose_only(struct relay *r, const char *words)
{
    pthread_mutex_lock(&r->lock);
    r->words = words;
    pthread_mutex_unlock(&r->lock);
}

enum relay_mode relay_mode(struct relay *r)
{
    pthread_mutex_lock(&r->lock);
    enum relay_mode mode = r->mode;
    pthread_mutex_unlock(&r->lock);
    return mode;
}

void relay_redirect(struct relay *r, int to_port)
{
    pthread_mutex_lock(&r->lock);
    set_target(r, to_port);
    pthread_mutex_unlock(&r->lock);
}

void relay_take_turns(struct relay *r)
{
    pthread_mutex_lock(&r->lock);
    r->takes_turns = true;
    pthread_mutex_unlock(&r->lock);
}

struct relay_count relay_count(const struct relay *r)
{
    return (struct relay_count){.messages = r->messages, .bytes = r->bytes, .lost = r->lost};
}
