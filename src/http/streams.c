/* See stream.h: when the streams of a loop begin, send and end.  Runs on the thread of the loop. */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "http/conn.h"
#include "http/server_internal.h"
#include "http/stream_internal.h"

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

/* ---- sending ---- */

static void wait_for_socket(struct stream *s)
{
    stream_enter_slow(s);
    int64_t spent_us = s->message ? s->conn->loop->now_us - s->begun_us : 0;
    s->blocked = true;
    conn_set_deadline(s->conn, SLOW_US - spent_us);
}

/* Sends what there is.  The stream may be gone afterwards.  Returns how many bytes that were. */
static size_t send_all(struct stream *s)
{
    struct conn *c = s->conn;
    bool behind = false;
    size_t total = 0;
    while (stream_take_next(s, &behind)) {
        char frame[STREAM_FRAME_SIZE];
        struct iovec parts[3];
        int n;
        size_t left = stream_unsent(s, frame, parts, &n);
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
            stream_sent_whole(s);
    }
    if (behind) {
        counter_add(c->loop->server->traffic.dropped, 1);
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
    const int send_buffer = SEND_BUFFER; /* what a client that stops reading costs the kernel */
    struct stream *s = stream_new(c);
    (void)setsockopt(c->fd, SOL_SOCKET, SO_SNDBUF, &send_buffer, sizeof send_buffer);
    c->state = CONN_STREAM;
    /* Edges, so that a stream needs no further call however often its socket fills and empties. */
    conn_watch(c, EPOLLOUT | EPOLLRDHUP | EPOLLET);
    conn_request_over(c);
    if (l->streams_ended)
        stream_end(s);
    else
        (void)send_all(s);
}

void stream_event(struct stream *s, uint32_t events)
{
    if (events & EPOLLRDHUP) {
        conn_close(s->conn);
    } else if (s->blocked) {
        s->blocked = false;
        stream_queue(&s->subscriber); /* it has to wait for its turn like the others */
    }
}

void stream_due(struct stream *s)
{
    if (s->queued) { /* it goes on with what it was sending */
        conn_set_deadline(s->conn, SILENCE_US);
        return;
    }
    if (s->blocked) {
        counter_add(s->conn->loop->server->traffic.dropped, 1);
        conn_close(s->conn);
        return;
    }
    stream_put_comment(s);
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
    counter_add(l->server->traffic.too_soon[QUOTA_REPLAYS], 1);
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
        counter_add(l->server->traffic.dropped, 1);
        conn_close(s->conn);
    }
}

static void begin_round(struct loop *l)
{
    cut_off_slow(l);
    l->round_us = l->now_us;
    l->round_bytes = 0;
    l->round_messages = hub_round(&l->hub, l->now_us, stream_queue);
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
        stream_unqueue(s);
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
