/* Whole connections: what clients send, cut at any place, between turns of the loop, work that is
 * finished in any order, steps of the clock, partial reads, half-closes and resets.  The input is
 * what the clients send; 0xff begins a command (see `command`), 0xff 0xff is one 0xff.
 *
 * At the end each client's bytes are taken apart into requests, and its answers are compared with
 * them: in order, each answered once, and nothing after an answer that closes. */
#include "fuzz.h"

#include "http/conn.h"
#include "support/site.h"

enum { CLIENTS = 3, SETTLE_ROUNDS = 5000, READ_LEN = 16384 };
#define DEADLINE_US INT64_C(9900000) /* from here on a connection may have timed out... */
#define LEFT_US INT64_C(1900000)     /* ... and here, if its client has ended its direction */
#define TICK_US INT64_C(200000)
#define LINGER_US INT64_C(1900000) /* from here on what follows a refusal may be unread */

struct visitor {
    struct client client;
    struct buf out;    /* not sent yet */
    struct buf sent;   /* everything that has been sent */
    int64_t passed_us; /* since it came */
    bool here, left;   /* has connected; has reset its connection */
    bool finished;     /* has half-closed, as soon as everything is sent */
    bool done_sending; /* has half-closed */
    bool streams;      /* its last answer is a stream */
};

struct play {
    struct site site;
    struct visitor visitors[CLIENTS];
    struct visitor *now; /* whose bytes the input is */
    bool drained;
};

/* ---- the script ---- */

static void come(struct play *p, struct visitor *v)
{
    static const int rooms[CLIENTS] = {0, 4608, 2304};
    if (v->here)
        return;
    site_turn(&p->site, 1); /* connections begin in a turn, which knows what time it is */
    client_open(&v->client, &p->site, rooms[v - p->visitors]);
    v->here = true;
}

static void flush(struct visitor *v)
{
    size_t n = v->out.len && !v->left ? client_write(&v->client, v->out.data, v->out.len) : 0;
    buf_put(&v->sent, v->out.data, n);
    if (n)
        memmove(v->out.data, v->out.data + n, v->out.len - n);
    v->out.len -= n;
    if (v->finished && !v->done_sending && v->out.len == 0) {
        client_finish(&v->client);
        v->done_sending = true;
    }
}

static void leave(struct visitor *v)
{
    if (!v->here || v->left)
        return;
    (void)client_read(&v->client, READ_LEN);
    client_leave(&v->client);
    v->left = true;
}

static void pass(struct play *p, int64_t us)
{
    for (int i = 0; i < CLIENTS; i++)
        p->visitors[i].passed_us += p->visitors[i].here ? us : 0;
    clock_fake_advance(&p->site.clock, us);
}

static void command(struct play *p, char what, uint8_t n)
{
    struct visitor *v = p->now;
    flush(v);
    switch (what) {
    case 't': /* turns of the loop */
        site_turn(&p->site, n % 8 + 1);
        break;
    case 'f': /* work is finished */
        (void)site_finish_nth(&p->site, n % 4);
        break;
    case 'r': /* a partial read */
        (void)client_read(&v->client, (size_t)n * n + 1);
        break;
    case 'c': /* another client */
        p->now = &p->visitors[n % CLIENTS];
        come(p, p->now);
        break;
    case 'h':
        v->finished = true;
        break;
    case 'x':
        leave(v);
        break;
    case 'p': /* time */
        pass(p, (int64_t)n * n * 2000);
        break;
    case 'm': /* something to tell to streams */
        p->site.topic.seq++;
        p->site.topic.padding = (size_t)n * 100;
        break;
    case 'd':
        atomic_store(&p->site.server->draining, true);
        p->drained = true;
        break;
    default:
        break;
    }
}

static void run(struct play *p, const uint8_t *data, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        bool escaped = data[i] == 0xff && i + 1 < size;
        if (escaped && data[i + 1] != 0xff) {
            command(p, (char)data[i + 1], i + 2 < size ? data[i + 2] : 0);
            i += 2;
            continue;
        }
        i += escaped;
        if (!p->now->finished)
            buf_char(&p->now->out, (char)data[i]);
    }
}

/* Sends, finishes and receives everything, without time passing. */
static void settle(struct play *p)
{
    for (int idle = 0, rounds = 0; idle < 5; idle++, rounds++) {
        hf_check(rounds < SETTLE_ROUNDS);
        while (site_finish_nth(&p->site, 0))
            idle = 0;
        site_turn(&p->site, 2);
        for (int i = 0; i < CLIENTS; i++) {
            struct visitor *v = &p->visitors[i];
            size_t before = v->sent.len;
            flush(v);
            if (v->sent.len != before || (v->here && client_read(&v->client, READ_LEN) > 0))
                idle = 0;
        }
    }
}

/* ---- what must have come of it ---- */

static bool is(struct text t, const char *text)
{
    return t.len == strlen(text) && memcmp(t.data, text, t.len) == 0;
}

static bool begins(struct text t, const char *text)
{
    return t.len >= strlen(text) && memcmp(t.data, text, strlen(text)) == 0;
}

struct asked {
    struct text method, path;
    struct buf body;
    bool expects;
};

/* Takes the next request of what was sent.  Returns PARSE_MORE if it is incomplete. */
static enum parse next_request(const struct buf *sent, size_t *at, struct asked *ret)
{
    struct head h;
    struct body b;
    if (*at == sent->len)
        return PARSE_MORE;
    const char *data = sent->data + *at;
    size_t len = sent->len - *at;
    head_begin(&h);
    enum parse result = head_parse(&h, data, len);
    ret->method = (struct text){data + h.method.at, h.method.len};
    if (result != PARSE_DONE)
        return result;
    ret->path = (struct text){data + h.path.at, h.path.len};
    ret->expects = h.expects;
    size_t used = h.len;
    if (body_begin(&b, &h)) {
        do {
            struct text part = {0};
            size_t n = 0;
            if (used == len)
                return PARSE_MORE;
            result = body_parse(&b, data + used, len - used, &n, &part);
            if (result == PARSE_REFUSED)
                return result;
            used += n;
            buf_put(&ret->body, part.data, part.len);
        } while (result == PARSE_MORE);
    }
    *at += used;
    return PARSE_DONE;
}

static void fits(const struct play *p, const struct asked *a, const struct reply *r)
{
    if (p->drained && r->status == 503)
        return;
    if (is(a->path, "/now") && is(a->method, "GET"))
        hf_check(r->status == 200 && is(r->body, "now"));
    if (is(a->path, "/now") && is(a->method, "HEAD"))
        hf_check(r->status == 200 && r->body.len == 0);
    if (is(a->path, "/echo") && is(a->method, "POST"))
        hf_check(r->status == 201 && r->body.len == a->body.len &&
                 (r->body.len == 0 || memcmp(r->body.data, a->body.data, r->body.len) == 0));
    if (begins(a->path, "/wait/") && (is(a->method, "GET") || is(a->method, "POST")) &&
        a->path.len > 6 && !memchr(a->path.data, '%', a->path.len) &&
        !memchr(a->path.data, '?', a->path.len) &&
        !memchr(a->path.data + 6, '/', a->path.len - 6)) {
        hf_check(r->status == 200 && begins(r->body, "waited "));
        hf_check(r->body.len == a->path.len + 1 &&
                 memcmp(r->body.data + 7, a->path.data + 6, a->path.len - 6) == 0);
    }
}

/* The chunks of a stream, of which the last may be incomplete. */
static void chunks_are_whole(struct text body)
{
    while (body.len > 0) {
        char *end = NULL;
        const char *lf = memchr(body.data, '\n', body.len);
        if (!lf)
            return;
        size_t len = strtoul(body.data, &end, 16), head = (size_t)(lf + 1 - body.data);
        hf_check(end != body.data && end + 1 == lf && *end == '\r');
        if (body.len < head + len + 2)
            return;
        hf_check(memcmp(body.data + head + len, "\r\n", 2) == 0);
        body = (struct text){body.data + head + len + 2, body.len - head - len - 2};
        hf_check(len > 0 || body.len == 0); /* nothing follows the last chunk */
    }
}

/* Returns false after the last answer of the connection. */
static bool take_answer(struct visitor *v, bool to_head, struct reply *r)
{
    do {
        if (!client_take(&v->client, to_head, r))
            return false;
        hf_check(r->status != 100 || !r->close);
    } while (r->status == 100);
    struct text encoding = reply_header(r, "Transfer-Encoding");
    v->streams |= is(reply_header(r, "Content-Type"), "text/event-stream") && !to_head;
    if (encoding.data && !to_head)
        chunks_are_whole(r->body);
    if (r->status >= 400)
        hf_check(to_head || (r->body.len > 2 && r->body.data[r->body.len - 1] == '}'));
    hf_check(reply_header(r, "X-Request-Id").len == REQUEST_ID_LEN);
    if (to_head && r->status == 408) /* the time was up before the server could know the method */
        v->client.in.len = 0;
    hf_check(!r->close || v->client.in.len == 0);
    return true;
}

static void answers_are_those_of(const struct play *p, struct visitor *v)
{
    bool late = v->passed_us >= (v->done_sending ? LEFT_US : DEADLINE_US), closed = false;
    size_t at = 0;
    for (;;) {
        struct asked a = {0};
        struct reply r;
        enum parse result = next_request(&v->sent, &at, &a);
        bool answered = take_answer(v, is(a.method, "HEAD"), &r);
        hf_check(!answered || !closed);
        if (answered && result == PARSE_DONE && !(late && r.status == 408) && r.status != 413)
            fits(p, &a, &r);
        if (answered && result == PARSE_REFUSED)
            hf_check(r.close && r.status >= 400);
        if (answered && result == PARSE_MORE) /* refused before it was complete */
            hf_check(r.close && r.status >= 400 && (late || a.expects || p->drained));
        if (!answered && !closed && !v->left && !late)
            hf_check(result == PARSE_MORE); /* whatever is whole has been answered */
        closed = answered && r.close;
        buf_close(&a.body);
        if (!answered || closed)
            break;
    }
    if (!v->left && !late) {
        hf_check(v->client.in.len == 0);
        /* What a client sends after it asked for a stream is never read. */
        hf_check(!v->client.failed || v->passed_us >= LINGER_US || v->streams);
        bool ends = v->streams ? v->done_sending || p->drained : closed || v->done_sending;
        hf_check(v->client.ended == ends);
    }
}

static void nothing_is_left(struct play *p)
{
    const struct server *s = p->site.server;
    while (site_finish_nth(&p->site, 0))
        ;
    site_turn(&p->site, 5);
    site_jump(&p->site, TICK_US); /* one that was cut off stays until the next tick of the timers */
    hf_check(site_connections(&p->site) == 0 && !p->site.loop->conns);
    hf_check(site_blocks_in_use(&p->site) == 0 && p->site.bodies == 0);
    hf_check(atomic_load(&s->body_bytes) == 0 && atomic_load(&s->large) == 0);
    hf_check(atomic_load(&s->n_streams) == 0 && p->site.loop->hub.bytes == 0);
    hf_check(counter_read(&s->traffic.accepted) == counter_read(&s->traffic.completed));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct play p = {.now = &p.visitors[0]};
    site_open(&p.site);
    p.site.bytes_max = 30000;
    come(&p, p.now);
    run(&p, data, size);
    settle(&p);
    for (int i = 0; i < CLIENTS; i++)
        if (p.visitors[i].here)
            answers_are_those_of(&p, &p.visitors[i]);
    for (int i = 0; i < CLIENTS; i++)
        leave(&p.visitors[i]);
    nothing_is_left(&p);
    site_close(&p.site);
    for (int i = 0; i < CLIENTS; i++) {
        client_close(&p.visitors[i].client);
        buf_close(&p.visitors[i].out);
        buf_close(&p.visitors[i].sent);
    }
    return 0;
}
