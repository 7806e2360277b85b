/* See stream.h.  Everything runs on the thread of the stream's loop. */
#include "http/stream.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/gzip.h"
#include "http/conn.h"
#include "http/server_internal.h"

#define SEND_BUFFER (32 * 1024)
#define ROUND_MIN_US 112000
#define ROUND_MAX_US 2000000
#define MESSAGE_COST_US 100 /* of the pause after a round: a message, or bytes if they are many */
#define BYTES_A_US 300
#define SLICE 16 /* streams that send before requests have their turn, and how much */
#define SLICE_BYTES ((size_t)256 * 1024)
#define SLICE_BUSY 4 /* if requests are coming in */
#define SLICE_BUSY_BYTES ((size_t)32 * 1024)
#define SILENCE_US 14500000
#define SLOW_US 30000000
#define RETRY_TEXT_SIZE 80

struct stream {
    struct subscriber subscriber; /* first: the hub wakes a stream by it */
    struct conn *conn;
    struct stream *next, **link; /* of those that have something to send; what points to this */
    struct stream *newer,
        **older;             /* of those that are slow; what points to this, NULL: it is not */
    struct address client;   /* whose streams are counted, if is_counted */
    struct buf text;         /* being sent: the head, a comment or the end; empty: none */
    struct message *message; /* being sent after that; NULL: none */
    size_t sent;             /* of the text or of the message with its frame */
    int64_t begun_us;        /* when the message was begun */
    bool packed;             /* the client accepts gzip */
    bool chunked;            /* the client is one of HTTP/1.1 */
    bool queued;             /* in the loop's list */
    bool blocked;            /* the socket takes no more for now */
    bool ending;             /* after what is being sent */
    bool is_counted;
    bool over; /* the text is the end, or the end has been sent */
};

/* ---- answers ---- */

/* Reads a seq in decimal. */
static bool read_seq(const char *text, int64_t *ret)
{
    int64_t n = 0;
    size_t len = strlen(text);
    if (len == 0 || len > 18)
        return false;
    for (; *text; text++) {
        if (*text < '0' || *text > '9')
            return false;
        n = n * 10 + (*text - '0');
    }
    *ret = n;
    return true;
}

/* The header wins over the parameter, since a browser that reconnects sends it beside the URL it
 * began with. */
bool stream_read_place(struct request *r)
{
    const char *last = request_header(r, "Last-Event-ID"), *after = request_query(r, "after");
    r->answer.after = AFTER_NOW;
    if (last) {
        if (!read_seq(last, &r->answer.after))
            r->answer.after = AFTER_UNKNOWN;
    } else if (after && !read_seq(after, &r->answer.after)) {
        answer_problem(r, &problem_invalid_request, "after must be a seq");
        return false;
    }
    return true;
}

/* The length of the name in a Host header, without the port. */
static size_t host_len(const char *host)
{
    const char *end = *host == '[' ? strchr(host, ']') : NULL;
    return end ? (size_t)(end - host) + 1 : strcspn(host, ":");
}

/* A page of the main port that reads a stream of the streams' own port comes from another origin:
 * is it SCHEME://NAME:PORT, where NAME is the server's name in this request and PORT the main one?
 */
bool stream_is_for_own_page(const struct request *r)
{
    const char *origin = r->origin.data;
    if (!origin || !r->conn->streams_only) /* of nearly every request */
        return false;
    const char *host = request_header(r, "Host");
    unsigned page_port = r->server->config.page_port, usual = r->server->config.tls ? 443 : 80;
    char scheme[16], port[16];
    int scheme_len = snprintf(scheme, sizeof scheme, "%s://", server_scheme(r->server));
    if (!host || strncmp(origin, scheme, (size_t)scheme_len) != 0)
        return false;
    origin += scheme_len;
    size_t len = host_len(host);
    (void)snprintf(port, sizeof port, ":%u", page_port);
    return len > 0 && strncasecmp(origin, host, len) == 0 &&
           (strcmp(origin + len, port) == 0 || (page_port == usual && origin[len] == '\0'));
}

/* Finds the address with which a stream is counted.  Returns false if it is not: there are no keys,
 * or the client has one, or is a proxy. */
static bool counts_with(const struct request *r, struct address *ret)
{
    const struct access *access = server_access(r->server);
    return access->has_keys && !r->caller.has_key && access_address(r, ret) &&
           !networks_have(&access->trusted, ret);
}

/* Has the client's address as many streams as it may? */
static bool has_its_share(const struct request *r)
{
    struct address client;
    if (!counts_with(r, &client))
        return false;
    if (!quota_take(r->server->quotas, &client, QUOTA_STREAMS))
        return true;
    quota_give(r->server->quotas, &client, QUOTA_STREAMS); /* until stream_open */
    return false;
}

static void refuse_stream(struct request *r, const struct stream_source *source, void *topic,
                          const struct problem *problem, const char *detail)
{
    if (source->unref)
        source->unref(topic);
    r->answer.close = true;
    answer_problem(r, problem, detail);
}

void answer_stream(struct request *r, const struct stream_source *source, void *topic)
{
    const struct server *s = r->server;
    struct answer *a = &r->answer;
    if (atomic_load(&s->n_streams) >= s->config.streams_max) {
        refuse_stream(r, source, topic, &problem_overloaded,
                      "There are as many streams as this server may have.");
        return;
    }
    if (has_its_share(r)) {
        refuse_stream(r, source, topic, &problem_too_many_streams, NULL);
        return;
    }
    a->status = HTTP_OK;
    a->type = "text/event-stream";
    a->topic = topic;
    a->source = source;
    a->varies = true;
    a->gzipped = gzip_accepted(request_header(r, "Accept-Encoding"));
}

/* ---- bytes out ---- */

/* Appends text as the client wants it: plain or as a block of its gzip stream, as a chunk or not.
 */
static void put_text(struct stream *s, const char *text, bool first)
{
    struct buf bytes = {0};
    if (s->packed && first)
        gzip_begin(&bytes);
    if (s->packed)
        gzip_block_stored(text, strlen(text), &bytes);
    else
        buf_str(&bytes, text);
    if (s->chunked)
        buf_printf(&s->text, "%zx\r\n", bytes.len);
    buf_put(&s->text, bytes.data, bytes.len);
    if (s->chunked)
        buf_lit(&s->text, "\r\n");
    buf_close(&bytes);
}

/* The field, which is also a message without data; see stream.h. */
static void put_retry(const struct stream *s, const char *id, char text[static RETRY_TEXT_SIZE])
{
    struct loop *l = s->conn->loop;
    size_t spread_ms = atomic_load(&l->server->n_streams) / RETRIES_A_MS;
    if (spread_ms < RETRY_SPREAD_MS)
        spread_ms = RETRY_SPREAD_MS;
    uint64_t ms = RETRY_MIN_MS + random_below(&l->random, spread_ms);
    (void)snprintf(text, RETRY_TEXT_SIZE, "retry: %llu\n%s\n", (unsigned long long)ms, id);
}

/* The last words of a stream. */
static void put_end(struct stream *s)
{
    char text[RETRY_TEXT_SIZE];
    put_retry(s, "", text);
    put_text(s, text, false);
    if (s->chunked)
        buf_lit(&s->text, "0\r\n\r\n");
}

/* Makes sure that there is something to send.  Returns false if there is nothing; *ret_behind says
 * that the message it needs is gone. */
static bool take_next(struct stream *s, bool *ret_behind)
{
    enum hub_place place = HUB_WAITS;
    if (s->text.len || s->message)
        return true;
    if (!s->ending)
        s->message = hub_next(&s->subscriber, &place);
    if (place == HUB_ENDED)
        s->ending = true;
    *ret_behind = place == HUB_BEHIND;
    if (s->ending) {
        if (!s->over)
            put_end(s);
        s->over = true;
        return s->text.len > 0;
    }
    if (!s->message)
        return false;
    s->begun_us = s->conn->loop->now_us;
    counter_add(s->conn->loop->server->messages, 1);
    return true;
}

static size_t add_part(struct iovec *parts, int *n, const void *data, size_t len, size_t *skip)
{
    size_t cut = *skip < len ? *skip : len;
    *skip -= cut;
    if (len > cut)
        parts[(*n)++] = (struct iovec){(char *)(uintptr_t)data + cut, len - cut};
    return len - cut;
}

/* What is left of the text or the message with its frame.  Returns how many bytes that are. */
static size_t unsent(const struct stream *s, char frame[24], struct iovec parts[3], int *ret_n)
{
    size_t skip = s->sent;
    *ret_n = 0;
    if (s->text.len)
        return add_part(parts, ret_n, s->text.data, s->text.len, &skip);
    const struct buf *bytes = message_bytes(s->message, s->packed);
    if (!s->chunked)
        return add_part(parts, ret_n, bytes->data, bytes->len, &skip);
    int len = snprintf(frame, 24, "%zx\r\n", bytes->len);
    size_t left = add_part(parts, ret_n, frame, (size_t)len, &skip);
    left += add_part(parts, ret_n, bytes->data, bytes->len, &skip);
    return left + add_part(parts, ret_n, "\r\n", 2, &skip);
}

static void enter_slow(struct stream *s)
{
    struct loop *l = s->conn->loop;
    if (s->older)
        return;
    s->newer = NULL;
    s->older = l->slow_end;
    *s->older = s;
    l->slow_end = &s->newer;
}

static void leave_slow(struct stream *s)
{
    if (!s->older)
        return;
    *s->older = s->newer;
    *(s->newer ? &s->newer->older : &s->conn->loop->slow_end) = s->older;
    s->older = NULL;
}

static void wait_for_socket(struct stream *s)
{
    enter_slow(s);
    int64_t spent_us = s->message ? s->conn->loop->now_us - s->begun_us : 0;
    s->blocked = true;
    conn_set_deadline(s->conn, SLOW_US - spent_us);
}

static void sent_whole(struct stream *s)
{
    s->sent = 0;
    leave_slow(s);
    if (s->text.len) {
        buf_close(&s->text);
    } else {
        const struct loop *l = s->conn->loop;
        if (s->message->since_us)
            histogram_observe(l->server->stream_lag, (uint64_t)(l->now_us - s->message->since_us));
        message_unref(s->message);
        s->message = NULL;
    }
}

/* Sends what there is.  The stream may be gone afterwards.  Returns how many bytes that were. */
static size_t send_all(struct stream *s)
{
    struct conn *c = s->conn;
    bool behind = false;
    size_t total = 0;
    while (take_next(s, &behind)) {
        char frame[24];
        struct iovec parts[3];
        int n;
        size_t left = unsent(s, frame, parts, &n);
        ssize_t sent = conn_write(c, parts, n);
        if (sent < 0 && errno != EINTR && errno != EAGAIN) {
            conn_close(c);
            return total;
        }
        if (sent < 0 && errno == EAGAIN) {
            wait_for_socket(s);
            return total;
        }
        s->sent += sent > 0 ? (size_t)sent : 0;
        total += sent > 0 ? (size_t)sent : 0;
        if (sent == (ssize_t)left)
            sent_whole(s);
    }
    if (behind) {
        counter_add(c->loop->server->dropped, 1);
        conn_close(c);
    } else if (s->over) {
        conn_finish(c);
    } else {
        conn_set_deadline(c, SILENCE_US);
    }
    return total;
}

/* ---- life ---- */

static void stream_end(struct stream *s)
{
    s->ending = true;
    if (!s->blocked)
        (void)send_all(s);
}

void stream_open(struct conn *c)
{
    struct loop *l = c->loop;
    struct request *r = c->request;
    const int send_buffer = SEND_BUFFER; /* what a client that stops reading costs the kernel */
    struct stream *s = hf_alloc(sizeof *s);
    *s = (struct stream){.conn = c,
                         .packed = r->answer.gzipped,
                         .chunked = r->head.minor > 0,
                         .text = r->answer_head};
    r->answer_head = (struct buf){0};
    s->is_counted =
        counts_with(r, &s->client) && quota_take(l->server->quotas, &s->client, QUOTA_STREAMS);
    hub_join(&l->hub, &s->subscriber, r->answer.source, r->answer.topic, r->answer.after);
    r->answer.topic = NULL; /* the hub has it */
    /* The id tells a client that is cut off before its first message where it was. */
    char id[32] = "", text[RETRY_TEXT_SIZE];
    if (r->answer.after == AFTER_NOW)
        (void)snprintf(id, sizeof id, "id: %lld\n", (long long)s->subscriber.seq);
    put_retry(s, id, text);
    put_text(s, text, true);
    (void)setsockopt(c->fd, SOL_SOCKET, SO_SNDBUF, &send_buffer, sizeof send_buffer);
    c->stream = s;
    c->state = CONN_STREAM;
    /* Edges, so that a stream needs no further call however often its socket fills and empties. */
    conn_watch(c, EPOLLOUT | EPOLLRDHUP | EPOLLET);
    conn_request_over(c);
    atomic_fetch_add(&l->server->n_streams, 1);
    gauge_add(l->server->streams_open, 1);
    if (l->streams_ended)
        stream_end(s);
    else
        (void)send_all(s);
}

static void unqueue(struct stream *s)
{
    if (!s->queued)
        return;
    *s->link = s->next;
    *(s->next ? &s->next->link : &s->conn->loop->sending_end) = s->link;
    s->queued = false;
}

void stream_close(struct stream *s)
{
    struct loop *l = s->conn->loop;
    unqueue(s);
    leave_slow(s);
    message_unref(s->message);
    if (s->is_counted)
        quota_give(l->server->quotas, &s->client, QUOTA_STREAMS);
    hub_leave(&l->hub, &s->subscriber);
    buf_close(&s->text);
    s->conn->stream = NULL;
    atomic_fetch_sub(&l->server->n_streams, 1);
    gauge_add(l->server->streams_open, -1);
    free(s);
}

/* ---- events ---- */

static void queue(struct subscriber *subscriber)
{
    struct stream *s = (struct stream *)subscriber;
    struct loop *l = s->conn->loop;
    if (s->queued || s->blocked)
        return;
    s->queued = true;
    s->next = NULL;
    s->link = l->sending_end;
    *s->link = s;
    l->sending_end = &s->next;
}

void stream_event(struct stream *s, uint32_t events)
{
    if (events & EPOLLRDHUP) {
        conn_close(s->conn);
    } else if (s->blocked) {
        s->blocked = false;
        queue(&s->subscriber); /* it has to wait for its turn like the others */
    }
}

void stream_due(struct stream *s)
{
    if (s->queued) { /* it goes on with what it was sending */
        conn_set_deadline(s->conn, SILENCE_US);
        return;
    }
    if (s->blocked) {
        counter_add(s->conn->loop->server->dropped, 1);
        conn_close(s->conn);
        return;
    }
    put_text(s, ":\n\n", false);
    (void)send_all(s);
}

/* ---- the loop's part ---- */

static bool may_replay(struct subscriber *subscriber)
{
    const struct stream *s = (struct stream *)subscriber;
    const struct loop *l = s->conn->loop;
    int64_t wait_us;
    if (!s->is_counted ||
        quota_spend(l->server->quotas, &s->client, QUOTA_REPLAYS, l->now_us, &wait_us))
        return true;
    server_note_too_soon(l->server, QUOTA_REPLAYS);
    return false;
}

void streams_open(struct loop *l)
{
    l->hub.bytes_max = MESSAGES_BYTES_MAX / l->server->n_loops;
    l->hub.clock = l->server->config.clock;
    l->hub.may_replay = may_replay;
    l->sending_end = &l->sending;
    l->slow_end = &l->slow;
    random_init_system(&l->random);
}

void streams_close(struct loop *l) { hub_close(&l->hub); }

static bool pins(const struct message *m) { return m && m->is_pinned; }

/* Cuts off the readers that have been slow for longest, so that their messages leave room for
 * news. */
static void cut_off_slow(struct loop *l)
{
    struct stream *next;
    for (struct stream *s = l->slow; s && hub_is_short(&l->hub); s = next) {
        next = s->newer;
        if (!pins(s->message) && !pins(s->subscriber.missed))
            continue;
        counter_add(l->server->dropped, 1);
        conn_close(s->conn);
    }
}

static void begin_round(struct loop *l)
{
    cut_off_slow(l);
    l->round_us = l->now_us;
    l->round_bytes = 0;
    l->round_messages = hub_round(&l->hub, l->now_us, queue);
}

/* The next round: the later, the more this one has to send, so that streams leave most of the
 * machine to requests. */
static int64_t next_round_us(const struct loop *l)
{
    int64_t cost_us = (int64_t)(l->round_messages * MESSAGE_COST_US);
    int64_t bytes_us = (int64_t)(l->round_bytes / BYTES_A_US);
    cost_us = (cost_us > bytes_us ? cost_us : bytes_us) * (int64_t)l->server->n_loops;
    cost_us = cost_us > ROUND_MIN_US ? cost_us : ROUND_MIN_US;
    return l->round_us + (cost_us < ROUND_MAX_US ? cost_us : ROUND_MAX_US);
}

int64_t streams_next_us(const struct loop *l)
{
    if (l->sending)
        return l->now_us;
    return l->hub.channels ? next_round_us(l) : -1;
}

void streams_turn(struct loop *l, bool busy)
{
    /* Readers that take their time must not keep the news from the others for long. */
    bool over = !l->sending || l->now_us - l->round_us >= ROUND_MAX_US;
    if (l->hub.channels && over && l->now_us >= next_round_us(l))
        begin_round(l);
    size_t left = busy ? SLICE_BUSY_BYTES : SLICE_BYTES;
    for (int n = busy ? SLICE_BUSY : SLICE; n > 0 && left > 0 && l->sending; n--) {
        struct stream *s = l->sending;
        unqueue(s);
        size_t sent = send_all(s);
        l->round_bytes += sent;
        left -= sent < left ? sent : left;
    }
}

void streams_end(struct loop *l)
{
    if (l->streams_ended)
        return;
    l->streams_ended = true;
    for (struct conn *c = l->conns, *next; c; c = next) {
        next = c->next;
        if (c->stream)
            stream_end(c->stream);
    }
}
