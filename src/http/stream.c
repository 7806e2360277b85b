/* See stream.h: what a stream is, and what it has to send.  Runs on the thread of its loop. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/gzip.h"
#include "http/conn.h"
#include "http/server_internal.h"
#include "http/stream_internal.h"

#define RETRY_TEXT_SIZE 80

/* ---- its places in the lists of the loop ---- */

void stream_queue(struct subscriber *subscriber)
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

void stream_unqueue(struct stream *s)
{
    if (!s->queued)
        return;
    *s->link = s->next;
    *(s->next ? &s->next->link : &s->conn->loop->sending_end) = s->link;
    s->queued = false;
}

void stream_enter_slow(struct stream *s)
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

/* ---- bytes ---- */

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

void stream_put_comment(struct stream *s) { put_text(s, ":\n\n", false); }

bool stream_take_next(struct stream *s, bool *ret_behind)
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
    counter_add(s->conn->loop->server->traffic.messages, 1);
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

size_t stream_unsent(const struct stream *s, char frame[STREAM_FRAME_SIZE], struct iovec parts[3],
                     int *ret_n)
{
    size_t skip = s->sent;
    *ret_n = 0;
    if (s->text.len)
        return add_part(parts, ret_n, s->text.data, s->text.len, &skip);
    const struct buf *bytes = message_bytes(s->message, s->packed);
    if (!s->chunked)
        return add_part(parts, ret_n, bytes->data, bytes->len, &skip);
    int len = snprintf(frame, STREAM_FRAME_SIZE, "%zx\r\n", bytes->len);
    size_t left = add_part(parts, ret_n, frame, (size_t)len, &skip);
    left += add_part(parts, ret_n, bytes->data, bytes->len, &skip);
    return left + add_part(parts, ret_n, "\r\n", 2, &skip);
}

void stream_sent_whole(struct stream *s)
{
    s->sent = 0;
    leave_slow(s);
    if (s->text.len) {
        buf_close(&s->text);
    } else {
        const struct loop *l = s->conn->loop;
        if (s->message->since_us)
            histogram_observe(l->server->traffic.stream_lag,
                              (uint64_t)(l->now_us - s->message->since_us));
        message_unref(s->message);
        s->message = NULL;
    }
}

/* ---- life ---- */

struct stream *stream_new(struct conn *c)
{
    struct loop *l = c->loop;
    struct request *r = c->request;
    struct stream *s = hf_alloc(sizeof *s);
    *s = (struct stream){.conn = c,
                         .packed = r->answer.headers.gzipped,
                         .chunked = r->head.minor > 0,
                         .text = r->answer_head};
    r->answer_head = (struct buf){0};
    s->is_counted = stream_counts_with(r, &s->client) &&
                    quota_take(l->server->quotas, &s->client, QUOTA_STREAMS);
    hub_join(&l->hub, &s->subscriber, r->answer.stream.source, r->answer.stream.topic,
             r->answer.stream.after);
    r->answer.stream.topic = NULL; /* the hub has it */
    /* The id tells a client that is cut off before its first message where it was. */
    char id[32] = "", text[RETRY_TEXT_SIZE];
    if (r->answer.stream.after == AFTER_NOW)
        (void)snprintf(id, sizeof id, "id: %lld\n", (long long)s->subscriber.seq);
    put_retry(s, id, text);
    put_text(s, text, true);
    c->stream = s;
    atomic_fetch_add(&l->server->n_streams, 1);
    gauge_add(l->server->traffic.streams, 1);
    return s;
}

void stream_close(struct stream *s)
{
    struct loop *l = s->conn->loop;
    stream_unqueue(s);
    leave_slow(s);
    message_unref(s->message);
    if (s->is_counted)
        quota_give(l->server->quotas, &s->client, QUOTA_STREAMS);
    hub_leave(&l->hub, &s->subscriber);
    buf_close(&s->text);
    s->conn->stream = NULL;
    atomic_fetch_sub(&l->server->n_streams, 1);
    gauge_add(l->server->traffic.streams, -1);
    free(s);
}
