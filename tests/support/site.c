/* See site.h. */
#include "support/site.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/conn.h"
#include "http/route.h"
#include "http/stream.h"

#define PASS_STEP_US 50000
#define BYTES_MAX ((size_t)2 << 20)
#define TURNS 6 /* that settle whatever one event of a client leads to */

/* ---- the application ---- */

struct work {
    struct request http;
    struct pending pending;
    struct work *next; /* of those that wait */
};

static struct site *site_of(const struct request *r) { return server_context(r->server); }

static void say(struct request *r, const char *text)
{
    buf_str(&r->out, text);
    answer_out(r, HTTP_OK, "text/plain");
}

static void now(struct request *r) { say(r, "now"); }
static void health(struct request *r) { say(r, "well"); }

static void waited(struct request *r)
{
    buf_str(&r->out, "waited ");
    buf_put(&r->out, r->segment.data, r->segment.len);
    answer_out(r, HTTP_OK, "text/plain");
}

static void gone(struct request *r)
{
    hf_check(r->waits);
    site_of(r)->n_gone++;
}

static void wait_for_work(struct request *r)
{
    struct site *s = site_of(r);
    struct work *work = (struct work *)r, **end = &s->work;
    if (r->route->get == r->route->post)
        request_wait(r, &work->pending, waited);
    else
        request_wait_or_gone(r, &work->pending, waited, gone);
    work->next = NULL;
    pthread_mutex_lock(&s->lock);
    while (*end)
        end = &(*end)->next;
    *end = work;
    s->n_work++;
    pthread_mutex_unlock(&s->lock);
}

char site_byte(size_t at) { return (char)('a' + at % 23); }

struct bytes {
    struct site *site;
    char data[];
};

static void bytes_sent(void *data)
{
    struct bytes *b = data;
    b->site->bodies--;
    free(b);
}

static void bytes(struct request *r)
{
    size_t n = strtoul(r->segment.data, NULL, 10) % site_of(r)->bytes_max;
    struct bytes *b = malloc(sizeof *b + n);
    hf_check(b);
    b->site = site_of(r);
    b->site->bodies++;
    for (size_t i = 0; i < n; i++)
        b->data[i] = site_byte(i);
    r->answer = (struct answer){.status = HTTP_OK,
                                .type = "text/plain",
                                .data = b->data,
                                .len = n,
                                .keeper = {.sent = bytes_sent, .owner = b}};
}

static void shared_sent(void *context) { ((struct site *)context)->n_shared_readers--; }

static void shared(struct request *r)
{
    struct site *s = site_of(r);
    s->n_shared_readers++;
    r->answer = (struct answer){.status = HTTP_OK,
                                .type = "text/plain",
                                .data = s->shared_body,
                                .len = SITE_SHARED_LEN,
                                .keeper = {.sent = shared_sent,
                                           .owner = s,
                                           .pin = &s->shared[r->segment.data[0] == 'b'],
                                           .pinned = SITE_SHARED_LEN}};
}

static void echo(struct request *r)
{
    buf_put(&r->out, r->body.data, r->body.len);
    answer_out(r, HTTP_CREATED, "text/plain");
}

static void length(struct request *r)
{
    buf_int(&r->out, (int64_t)r->body.len);
    answer_out(r, HTTP_OK, "text/plain");
}

static int64_t topic_seq(const void *topic) { return ((const struct site_topic *)topic)->seq; }

static enum stream_news topic_encode(void *topic, int64_t after, size_t len_max, struct buf *out,
                                     int64_t *ret_seq)
{
    struct site_topic *t = topic;
    *ret_seq = t->seq;
    if (after >= t->seq)
        return after > t->seq ? STREAM_RESET : STREAM_NOTHING;
    t->encoded++;
    if (t->cost_us)
        clock_fake_advance(&((struct site *)((char *)t - offsetof(struct site, topic)))->clock,
                           t->cost_us);
    stream_put_head(out, t->seq, "change");
    buf_lit(out, ",\"padding\":\"");
    for (size_t i = 0; i < t->padding; i++)
        buf_char(out, site_byte(i));
    buf_lit(out, "\"}\n\n");
    return out->len <= len_max ? STREAM_MESSAGE : STREAM_RESET;
}

static bool topic_has_ended(const void *topic) { return ((const struct site_topic *)topic)->ended; }
static void topic_unref(void *topic) { ((struct site_topic *)topic)->refs--; }

static const struct stream_source source = {
    .seq = topic_seq, .encode = topic_encode, .has_ended = topic_has_ended, .unref = topic_unref};

static void stream(struct request *r)
{
    if (!stream_read_place(r))
        return;
    site_of(r)->topic.refs++;
    answer_stream(r, &source, &site_of(r)->topic);
}

static void release(struct request *r)
{
    struct work *work = (struct work *)r;
    hf_check(!r->waits);
    memset(&work->pending, 0, sizeof work->pending);
    work->next = NULL;
}

static const char *const letters[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i",
                                      "j", "k", "l", "m", "n", "o", "p", NULL};

static const struct route routes[] = {
    {.path = "/now", .allow = "GET, HEAD", .get = now, .get_scope = SCOPE_PUBLIC, .query = letters},
    {.path = "/wait/*",
     .allow = "GET, HEAD, POST",
     .get = wait_for_work,
     .post = wait_for_work,
     .get_scope = SCOPE_PUBLIC,
     .post_scope = SCOPE_PUBLIC},
    {.path = "/await/*", .allow = "GET, HEAD", .get = wait_for_work, .get_scope = SCOPE_PUBLIC},
    {.path = "/bytes/*", .allow = "GET, HEAD", .get = bytes, .get_scope = SCOPE_PUBLIC},
    {.path = "/shared/*", .allow = "GET, HEAD", .get = shared, .get_scope = SCOPE_PUBLIC},
    {.path = "/health",
     .allow = "GET, HEAD",
     .get = health,
     .get_scope = SCOPE_PUBLIC,
     .while_draining = true},
    {.path = "/stream",
     .allow = "GET, HEAD",
     .get = stream,
     .get_scope = SCOPE_PUBLIC,
     .query = (const char *const[]){"after", NULL},
     .streams = true},
    {.path = "/echo",
     .allow = "POST, PUT",
     .post = echo,
     .put = length,
     .post_scope = SCOPE_PUBLIC,
     .put_scope = SCOPE_PUBLIC},
    {.path = "/large",
     .allow = "POST",
     .post = length,
     .post_scope = SCOPE_PUBLIC,
     .post_max = SITE_LARGE_MAX},
    {.path = "/seller",
     .allow = "POST, PUT",
     .post = echo,
     .put = length,
     .post_scope = SCOPE_SELLER,
     .put_scope = SCOPE_SELLER},
    {0},
};

/* ---- the site ---- */

void site_open(struct site *s) { site_open_loops(s, 1); }

void site_open_loops(struct site *s, unsigned n)
{
    struct hf_err err = {0};
    static const int64_t noon_us = INT64_C(1790000000000000);
    memset(s, 0, sizeof *s);
    pthread_mutex_init(&s->lock, NULL);
    clock_fake_init(&s->clock, noon_us);
    s->bytes_max = BYTES_MAX;
    s->shared_body = hf_alloc(SITE_SHARED_LEN);
    for (size_t i = 0; i < SITE_SHARED_LEN; i++)
        s->shared_body[i] = site_byte(i);
    s->metrics = metrics_new();
    hf_check(access_add_key(&s->access, SCOPE_SELLER, SITE_KEY, strlen(SITE_KEY), "test", &err));
    s->app = (struct http_app){
        .request_size = sizeof(struct work), .routes = routes, .release = release, .context = s};
    s->server = server_new(&(struct server_config){.listen_fd = -1,
                                                   .stream_fd = -1,
                                                   .threads = n,
                                                   .app = &s->app,
                                                   .metrics = s->metrics,
                                                   .clock = &s->clock.clock,
                                                   .access = &s->access},
                           &err);
    hf_check(s->server);
    s->loop = &s->server->loops[0];
}

void site_close(struct site *s)
{
    atomic_store(&s->server->draining, true); /* as before every stop */
    while (site_finish_nth(s, 0))
        ;
    server_free(s->server);
    hf_check(s->n_work == 0 && s->bodies == 0 && s->topic.refs == 0 && s->n_shared_readers == 0);
    free(s->shared_body);
    metrics_free(s->metrics);
    pthread_mutex_destroy(&s->lock);
}

void site_turn(struct site *s, int n)
{
    while (n-- > 0)
        loop_turn(s->loop, 0);
}

void site_jump(struct site *s, int64_t us)
{
    clock_fake_advance(&s->clock, us);
    site_turn(s, TURNS);
}

void site_pass(struct site *s, int64_t us)
{
    for (; us > PASS_STEP_US; us -= PASS_STEP_US)
        site_jump(s, PASS_STEP_US);
    site_jump(s, us);
}

/* Takes the first one that fits out of the list. */
static struct work *take_work(struct site *s, const char *name, size_t n)
{
    struct work **at = &s->work;
    pthread_mutex_lock(&s->lock);
    for (; *at; at = &(*at)->next) {
        const struct text *segment = &(*at)->http.segment;
        bool fits =
            name ? segment->len == strlen(name) && memcmp(segment->data, name, segment->len) == 0
                 : n-- == 0;
        if (fits)
            break;
    }
    struct work *work = *at;
    if (work) {
        *at = work->next;
        s->n_work--;
    }
    pthread_mutex_unlock(&s->lock);
    return work;
}

static bool finish(struct work *work)
{
    if (work)
        pending_done(&work->pending);
    return work;
}

bool site_finish(struct site *s, const char *name) { return finish(take_work(s, name, 0)); }
bool site_finish_nth(struct site *s, size_t n) { return finish(take_work(s, NULL, n)); }

size_t site_connections(const struct site *s) { return atomic_load(&s->server->n_connections); }

size_t site_blocks_in_use(const struct site *s)
{
    size_t free_bytes = 0;
    for (const struct block *b = s->loop->blocks.free; b; b = b->next)
        free_bytes += sizeof *b + b->cap + s->loop->blocks.extra;
    return atomic_load(&s->server->block_bytes) - free_bytes;
}

/* ---- clients ---- */

static void open_at(struct client *c, struct site *s, int room, const struct sockaddr *peer)
{
    int fds[2];
    hf_check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0);
    if (room)
        (void)setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    *c = (struct client){.site = s, .fd = fds[0]};
    loop_adopt(s->loop, fds[1], peer, false);
}

void client_open(struct client *c, struct site *s, int room) { open_at(c, s, room, NULL); }

void client_open_from(struct client *c, struct site *s, const char *address)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    if (inet_pton(AF_INET, address, &v4.sin_addr) == 1)
        open_at(c, s, 0, (const struct sockaddr *)&v4);
    else if (inet_pton(AF_INET6, address, &v6.sin6_addr) == 1)
        open_at(c, s, 0, (const struct sockaddr *)&v6);
    else
        hf_check(false);
}

void client_leave(struct client *c)
{
    if (c->fd >= 0)
        (void)close(c->fd);
    c->fd = -1;
}

void client_close(struct client *c)
{
    client_leave(c);
    buf_close(&c->in);
    free(c->last);
    c->last = NULL;
}

size_t client_write(struct client *c, const char *data, size_t len)
{
    ssize_t n = c->fd < 0 ? -1 : send(c->fd, data, len, MSG_NOSIGNAL);
    return n > 0 ? (size_t)n : 0;
}

void client_send(struct client *c, const char *text)
{
    size_t len = strlen(text);
    hf_check(client_write(c, text, len) == len);
}

void client_finish(struct client *c)
{
    if (c->fd >= 0)
        (void)shutdown(c->fd, SHUT_WR);
}

size_t client_read(struct client *c, size_t len)
{
    if (c->fd < 0 || c->ended || c->failed || len == 0)
        return 0;
    buf_reserve(&c->in, c->in.len + len);
    ssize_t n = recv(c->fd, c->in.data + c->in.len, len, 0);
    if (n == 0)
        c->ended = true;
    if (n < 0 && errno != EAGAIN)
        c->ended = c->failed = true;
    if (n <= 0)
        return 0;
    c->in.len += (size_t)n;
    return (size_t)n;
}

struct text reply_header(const struct reply *r, const char *name)
{
    size_t len = strlen(name);
    const char *line = r->head.data, *end = line + r->head.len;
    while ((line = memchr(line, '\n', (size_t)(end - line))) && ++line < end) {
        if ((size_t)(end - line) > len && line[len] == ':' && strncasecmp(line, name, len) == 0) {
            const char *value = line + len + 2, *cr = memchr(value, '\r', (size_t)(end - value));
            return (struct text){value, (size_t)(cr - value)};
        }
    }
    return (struct text){0};
}

/* How long the body is that follows this head; SIZE_MAX: it is a stream. */
static size_t body_len(const struct reply *r, bool to_head)
{
    struct text length_text = reply_header(r, "Content-Length");
    hf_check(r->status == 100 || r->status == 204 || length_text.data ||
             reply_header(r, "Transfer-Encoding").data || r->close);
    if (to_head || r->status < 200 || r->status == 204 || r->status == 304)
        return 0;
    return length_text.data ? strtoul(length_text.data, NULL, 10) : SIZE_MAX;
}

bool client_take(struct client *c, bool to_head, struct reply *ret_reply)
{
    *ret_reply = (struct reply){0};
    const char *end = c->in.len ? memmem(c->in.data, c->in.len, "\r\n\r\n", 4) : NULL;
    if (!end)
        return false;
    struct reply r = {.head = {c->in.data, (size_t)(end - c->in.data) + 2}};
    hf_check(r.head.len >= 12 && memcmp(r.head.data, "HTTP/1.1 ", 9) == 0);
    r.status = atoi(r.head.data + 9);
    hf_check(r.status >= 100 && r.status < 600);
    struct text connection = reply_header(&r, "Connection");
    r.close = connection.len == 5 && memcmp(connection.data, "close", 5) == 0;
    size_t head = r.head.len + 2, body = body_len(&r, to_head);
    if (body == SIZE_MAX)
        body = c->in.len - head;
    if (c->in.len - head < body)
        return false;
    char *copy = hf_strndup(c->in.data, head + body); /* which the next call frees */
    memmove(c->in.data, c->in.data + head + body, c->in.len - head - body);
    c->in.len -= head + body;
    free(c->last);
    c->last = copy;
    r.head.data = copy;
    r.body = (struct text){copy + head, body};
    *ret_reply = r;
    return true;
}

bool client_reply(struct client *c, bool to_head, struct reply *ret_reply)
{
    for (int i = 0; i < TURNS; i++) {
        site_turn(c->site, 1);
        while (client_read(c, 65536) > 0)
            ;
    }
    return client_take(c, to_head, ret_reply);
}
