/* See conn.h and conn_internal.h: steps and answers. */
#include "http/conn_internal.h"

#include <errno.h>
#include <sys/epoll.h>

#include "http/response.h"
#include "http/server_internal.h"
#include "http/stream.h"

/* A client that has ended its direction has this long to be answered, and until it takes some more:
 * twice that is less than 5 s, since its kernel takes something without it. */
#define LEFT_US (4 * SECOND_US)

static bool answer_sent(struct conn *c)
{
    struct request *r = c->request;
    bool close = r->answer.close;
    unsent_over(c);
    conn_release_request(c);
    if (close) {
        conn_finish(c);
        return false;
    }
    c->state = CONN_HEAD;
    return true;
}

/* The client has ended its direction while nothing is read.  It may have closed its socket, or it
 * may still read what it asked for. */
void conn_note_left(struct conn *c)
{
    c->left = true;
    unsent_look(c);
    conn_set_deadline(c, LEFT_US);
}

/* Waits until the client takes some of its answers. */
void conn_watch_for_room(struct conn *c)
{
    conn_set_deadline(c, conn_time_of(c, c->left ? UNSENT_LEFT_US : UNSENT_STALL_US));
    conn_watch(c, c->left ? EPOLLOUT : EPOLLOUT | EPOLLRDHUP);
}

bool conn_send_answer(struct conn *c)
{
    struct request *r = c->request;
    const size_t head_len = r->answer_head.len, len = answer_has_body(r) ? r->answer.len : 0;
    while (c->sent < head_len + len) {
        struct iovec parts[2];
        int n = 0;
        size_t at = c->sent > head_len ? c->sent - head_len : 0;
        if (c->sent < head_len)
            parts[n++] = (struct iovec){r->answer_head.data + c->sent, head_len - c->sent};
        if (len > 0)
            parts[n++] = (struct iovec){(char *)(uintptr_t)r->answer.data + at, len - at};
        ssize_t sent = conn_write(c, parts, n);
        if (sent < 0 && !conn_must_wait()) {
            conn_close(c);
            return false;
        }
        if (sent < 0 && errno != EINTR) {
            unsent_wait(c);
            return false;
        }
        c->sent += sent > 0 ? (size_t)sent : 0;
    }
    return answer_sent(c);
}

/* The request has been answered. */
bool conn_begin_answer(struct conn *c)
{
    struct request *r = c->request;
    if (r->answer.reset) {
        conn_reset(c);
        return false;
    }
    response_write_head(r, c->loop->date);
    traffic_note_answer(r);
    request_count_completed(r);
    if (r->answer.topic && answer_has_body(r)) {
        stream_open(c);
        return false;
    }
    c->state = CONN_SEND;
    c->sent = 0;
    return conn_send_answer(c);
}

bool conn_run_step(struct conn *c)
{
    struct request *r = c->request;
    c->state = CONN_WAIT;
    r->step(r);
    if (r->answer.status)
        return conn_begin_answer(c);
    hf_check(r->waits);
    if (c->left)
        conn_set_deadline(c, LEFT_US);
    if (r->gone && c->events == 0) /* otherwise see conn_event: most requests need no call */
        conn_watch(c, EPOLLRDHUP);
    return false;
}

/* Answers a request of which it is not known, or does not matter any more, where it ends. */
bool conn_refuse(struct conn *c, const struct problem *problem, const char *detail)
{
    struct request *r = c->request;
    r->server = c->loop->server;
    r->conn = c;
    if (!r->method && c->in && r->head.method.len)
        request_read_method(r, c->in->data + c->in->at);
    r->answer.close = true;
    answer_problem(r, problem, detail);
    return conn_begin_answer(c);
}
