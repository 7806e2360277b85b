/* How many locks a second a lock service grants: each of many clients takes and releases a lock of
 * its own, again and again.  The same loop drives two of them:
 *
 * - what clients of an etcd can do by themselves.  A lock is a key that a transaction creates if it
 *   is absent, and that a second transaction deletes if it is still the owner's.  There is no
 *   lease, no queue and no fence: this is the least that a lock on etcd can cost.
 * - the cell of holdfastd.  Every client has a session, and every acquisition an owner of its own.
 *
 *   build/bench/lock_pairs json|grpc|cell HOST:PORT[,HOST:PORT...] CLIENTS SECONDS
 *
 * `json` is etcd's JSON gateway over HTTP/1.1, `grpc` its own protocol over HTTP/2, `cell` the API
 * of holdfastd over HTTP/1.1 (give it the address of the master).  Every client has a connection
 * of its own, to the servers in turn, and one request in flight.  One thread drives them all and
 * reads answers only as far as needed, so that the CPU is left to the servers.
 *
 * A readable line goes to stderr, one line of JSON to stdout: `requests` counts all pairs, the
 * other numbers are of those that ended within SECONDS, after a warm-up.  It exits with 1 if a lock
 * was not granted or not released. */
#include <unistd.h>

#include "base/vec.h"
#include "cell_calls.h"
#include "etcd/base64.h"

#define CLIENTS_MAX 1024
#define SERVERS_MAX 8
#define SECONDS_MAX 50 /* the sessions of a cell are not kept alive */
#define SESSION_TTL_MS 60000
#define WARM_MS 500
#define SAMPLES_MAX 4000000

struct client {
    int fd;
    char host[64], key[32], owner[33];
    size_t key_len, owner_len;
    bool is_held;                    /* the request in flight releases the lock */
    uint32_t stream;                 /* grpc */
    char session[CELL_SESSION_SIZE]; /* cell */
    uint64_t n_owners;               /* cell: drawn so far */
    struct buf in, out;
    int64_t begun_us; /* the pair */
};

/* A way to talk to a lock service. */
struct protocol {
    const char *name;
    void (*hello)(struct client *c);
    void (*ask)(struct client *c);
    /* Takes what has arrived.  1: the answer says that it succeeded; 0: it is not whole yet; -1: it
     * says anything else. */
    int (*take)(struct client *c);
};

struct samples {
    VEC(int64_t) us;
};

static struct client clients[CLIENTS_MAX];
static struct samples pairs, grants; /* from asking to the end of the release, or to the grant */
static uint64_t n_pairs;             /* that the clients have released, the warm-up included */
static bool is_counting, is_over;
static int n_resting; /* clients that have released their last lock */

_Noreturn static void give_up(const char *what)
{
    (void)fprintf(stderr, "lock_pairs: %s\n", what);
    exit(1);
}

/* ---- the JSON gateway ---- */

static void no_hello(struct client *c) { (void)c; }

static void put_field(struct buf *b, const char *name, const char *data, size_t len)
{
    buf_printf(b, "\"%s\":\"", name);
    base64_put(b, data, len);
    buf_char(b, '"');
}

static void json_ask(struct client *c)
{
    struct buf body = {0};
    buf_lit(&body, "{\"compare\":[{");
    put_field(&body, "key", c->key, c->key_len);
    if (c->is_held) {
        buf_lit(&body, ",\"target\":\"VALUE\",\"result\":\"EQUAL\",");
        put_field(&body, "value", c->owner, c->owner_len);
        buf_lit(&body, "}],\"success\":[{\"request_delete_range\":{");
        put_field(&body, "key", c->key, c->key_len);
    } else {
        buf_lit(&body, ",\"target\":\"CREATE\",\"result\":\"EQUAL\",\"create_revision\":\"0\"}],"
                       "\"success\":[{\"request_put\":{");
        put_field(&body, "key", c->key, c->key_len);
        buf_char(&body, ',');
        put_field(&body, "value", c->owner, c->owner_len);
    }
    buf_lit(&body, "}}]}");
    buf_printf(&c->out, "POST /v3/kv/txn HTTP/1.1\r\nHost: %s\r\nContent-Length: %zu\r\n\r\n",
               c->host, body.len);
    buf_put(&c->out, body.data, body.len);
    buf_close(&body);
}

static int json_take(struct client *c)
{
    static const char length[] = "Content-Length: ";
    const char *end = memmem(c->in.data, c->in.len, "\r\n\r\n", 4);
    if (!end)
        return 0;
    const char *at = memmem(c->in.data, c->in.len, length, sizeof length - 1);
    if (!at || at > end)
        return -1;
    size_t head_len = (size_t)(end + 4 - c->in.data);
    size_t body_len = strtoul(at + sizeof length - 1, NULL, 10);
    if (c->in.len < head_len + body_len)
        return 0;
    bool is_done = memmem(end, body_len + 4, "\"succeeded\":true", 16) != NULL;
    c->in.len = 0;
    return is_done ? 1 : -1;
}

static const struct protocol json = {"json", no_hello, json_ask, json_take};

/* ---- gRPC ---- */

enum { FRAME_DATA = 0, FRAME_HEADERS = 1, FRAME_SETTINGS = 4, FRAME_PING = 6 };
enum { FLAG_END = 1, FLAG_ACK = 1, FLAG_END_HEADERS = 4 };
#define FRAME_HEAD 9

static void put_frame(struct buf *b, uint8_t type, uint8_t flags, uint32_t stream, const void *data,
                      size_t len)
{
    const uint8_t head[FRAME_HEAD] = {(uint8_t)(len >> 16),
                                      (uint8_t)(len >> 8),
                                      (uint8_t)len,
                                      type,
                                      flags,
                                      (uint8_t)(stream >> 24),
                                      (uint8_t)(stream >> 16),
                                      (uint8_t)(stream >> 8),
                                      (uint8_t)stream};
    buf_put(b, head, sizeof head);
    buf_put(b, data, len);
}

static void grpc_hello(struct client *c)
{
    static const uint8_t window[] = {0x3f, 0, 0, 0}; /* all answers of a run fit into it */
    buf_lit(&c->out, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    put_frame(&c->out, FRAME_SETTINGS, 0, 0, NULL, 0);
    put_frame(&c->out, 8, 0, 0, window, sizeof window);
    c->stream = 1;
}

/* A field of a message that consists of bytes shorter than 128. */
static void put_bytes(struct buf *b, int field, const void *data, size_t len)
{
    buf_char(b, (char)(field << 3 | 2));
    buf_char(b, (char)len);
    buf_put(b, data, len);
}

static void put_enum(struct buf *b, int field, int value)
{
    buf_char(b, (char)(field << 3));
    buf_char(b, (char)value);
}

/* The message TxnRequest of etcd's rpc.proto. */
static void put_txn(struct buf *b, const struct client *c)
{
    struct buf compare = {0}, operation = {0}, request = {0};
    put_enum(&compare, 2, c->is_held ? 3 : 1); /* target: the value, or the revision of creation */
    put_bytes(&compare, 3, c->key, c->key_len);
    put_bytes(&operation, 1, c->key, c->key_len);
    if (c->is_held) {
        put_bytes(&compare, 7, c->owner, c->owner_len);
    } else {
        put_enum(&compare, 5, 0);
        put_bytes(&operation, 2, c->owner, c->owner_len);
    }
    put_bytes(&request, c->is_held ? 3 : 2, operation.data, operation.len);
    put_bytes(b, 1, compare.data, compare.len);
    put_bytes(b, 2, request.data, request.len);
    buf_close(&compare);
    buf_close(&operation);
    buf_close(&request);
}

static void put_header(struct buf *b, int index, const char *value)
{
    if (index < 15) {
        buf_char(b, (char)index);
    } else {
        buf_char(b, 15);
        buf_char(b, (char)(index - 15));
    }
    buf_char(b, (char)strlen(value));
    buf_str(b, value);
}

static void grpc_ask(struct client *c)
{
    struct buf headers = {0}, message = {0}, txn = {0};
    buf_lit(&headers, "\x83\x86"); /* POST, http */
    put_header(&headers, 4, "/etcdserverpb.KV/Txn");
    put_header(&headers, 1, c->host);
    put_header(&headers, 31, "application/grpc");
    buf_put(&headers, "\0\2te\x8trailers", 13);
    put_txn(&txn, c);
    const uint8_t prefix[5] = {0, 0, 0, 0, (uint8_t)txn.len};
    buf_put(&message, prefix, sizeof prefix);
    buf_put(&message, txn.data, txn.len);
    put_frame(&c->out, FRAME_HEADERS, FLAG_END_HEADERS, c->stream, headers.data, headers.len);
    put_frame(&c->out, FRAME_DATA, FLAG_END, c->stream, message.data, message.len);
    c->stream += 2;
    buf_close(&headers);
    buf_close(&message);
    buf_close(&txn);
}

/* Looks for `succeeded` among the fields of a TxnResponse, all of which are short. */
static bool has_succeeded(const uint8_t *p, size_t len)
{
    for (const uint8_t *end = p + len; p + 1 < end;) {
        if (*p == (2 << 3))
            return p[1] == 1;
        if ((*p & 7) != 2 || p[1] >= 128)
            return false;
        p += 2 + p[1];
    }
    return false;
}

static int grpc_take(struct client *c)
{
    int result = 0;
    size_t at = 0;
    while (c->in.len - at >= FRAME_HEAD) {
        const uint8_t *p = (const uint8_t *)c->in.data + at;
        size_t len = (size_t)p[0] << 16 | (size_t)p[1] << 8 | p[2];
        const uint8_t type = p[3], flags = p[4], *data = p + FRAME_HEAD;
        if (c->in.len - at < FRAME_HEAD + len)
            break;
        at += FRAME_HEAD + len;
        if (type == FRAME_SETTINGS && !(flags & FLAG_ACK))
            put_frame(&c->out, FRAME_SETTINGS, FLAG_ACK, 0, NULL, 0);
        else if (type == FRAME_PING && !(flags & FLAG_ACK))
            put_frame(&c->out, FRAME_PING, FLAG_ACK, 0, data, len);
        else if (type == FRAME_DATA && len > 5)
            c->stream |= has_succeeded(data + 5, len - 5) ? UINT32_C(1) << 31 : 0;
        else if (type == FRAME_HEADERS && (flags & FLAG_END))
            result = c->stream >> 31 ? 1 : -1;
        else if (type == 3 || type == 7) /* the stream is reset, or the server goes away */
            result = -1;
    }
    memmove(c->in.data, c->in.data + at, c->in.len - at);
    c->in.len -= at;
    if (result)
        c->stream &= INT32_MAX;
    return result;
}

static const struct protocol grpc = {"grpc", grpc_hello, grpc_ask, grpc_take};

/* ---- the cell ---- */

static void cell_hello(struct client *c)
{
    cell_put_open(&c->out, c->host, SESSION_TTL_MS);
    cell_send(c->fd, &c->out);
    cell_read_session(cell_await(c->fd, &c->in, "201"), c->session);
}

static void cell_ask(struct client *c)
{
    char path[64], body[192];
    if (!c->is_held)
        snprintf(c->owner, sizeof c->owner, "%016llx%016llx", (unsigned long long)++c->n_owners,
                 (unsigned long long)(c - clients));
    snprintf(path, sizeof path, "locks/%s%s", c->key, c->is_held ? "/release" : "");
    snprintf(body, sizeof body, "{\"session\":\"%s\",\"owner\":\"%s\"}", c->session, c->owner);
    cell_put(&c->out, "POST", c->host, path, body);
}

static int cell_answer(struct client *c)
{
    const char *body;
    return cell_take(&c->in, "200", &body);
}

static const struct protocol cell = {"cell", cell_hello, cell_ask, cell_answer};

/* ---- clients ---- */

static void next(struct client *c, const struct protocol *p)
{
    int64_t now = now_us();
    if (is_counting && pairs.us.n < SAMPLES_MAX)
        *vec_push(c->is_held ? &pairs.us : &grants.us) = now - c->begun_us;
    if (c->is_held) {
        c->begun_us = now;
        n_pairs++;
    }
    c->is_held = !c->is_held;
    if (is_over && !c->is_held) {
        n_resting++;
        return;
    }
    p->ask(c);
    cell_send(c->fd, &c->out);
}

static void on_readable(struct client *c, const struct protocol *p)
{
    if (!cell_receive(c->fd, &c->in, MSG_DONTWAIT))
        return;
    int result = p->take(c);
    if (result < 0)
        give_up(c->is_held ? "a lock was not released" : "a lock was not granted");
    if (result > 0)
        next(c, p);
    else if (c->out.len)
        cell_send(c->fd, &c->out);
}

static void open_client(struct client *c, int i, const char *host, int epoll_fd,
                        const struct protocol *p)
{
    snprintf(c->host, sizeof c->host, "%s", host);
    c->fd = cell_connect(host);
    c->key_len = (size_t)snprintf(c->key, sizeof c->key, "bench-%d-%d", (int)getpid(), i);
    c->owner_len = (size_t)snprintf(c->owner, sizeof c->owner, "owner %d", i);
    struct epoll_event want = {.events = EPOLLIN, .data.ptr = c};
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, c->fd, &want) != 0)
        die("epoll_ctl");
    c->begun_us = now_us();
    p->hello(c);
    p->ask(c);
    cell_send(c->fd, &c->out);
}

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static long long percentile(struct samples *s, size_t percent)
{
    if (s->us.n == 0)
        give_up("no lock was granted and released in time");
    qsort(s->us.v, s->us.n, sizeof *s->us.v, by_size);
    return (long long)s->us.v[s->us.n * percent / 100];
}

static void say(const struct protocol *p, int n, int64_t taken_us)
{
    double rate = 1e6 * (double)pairs.us.n / (double)taken_us;
    long long p50 = percentile(&pairs, 50), p99 = percentile(&pairs, 99);
    (void)fprintf(stderr, "%s, %d clients: %.0f acquire+release/s, p50 %lld us, p99 %lld us\n",
                  p->name, n, rate, p50, p99);
    printf("{\"requests\":%llu,\"per_second\":%.1f,\"p50_us\":%lld,\"p99_us\":%lld,"
           "\"grant_p50_us\":%lld,\"grant_p99_us\":%lld}\n",
           (unsigned long long)n_pairs, rate, p50, p99, percentile(&grants, 50),
           percentile(&grants, 99));
}

static const struct protocol *protocol_of(const char *name)
{
    static const struct protocol *const all[] = {&json, &grpc, &cell};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i]->name, name) == 0)
            return all[i];
    return NULL;
}

int main(int argc, char **argv)
{
    const struct protocol *p = argc == 5 ? protocol_of(argv[1]) : NULL;
    int n = argc == 5 ? atoi(argv[3]) : 0, seconds = argc == 5 ? atoi(argv[4]) : 0, n_hosts = 0;
    if (!p || n < 1 || n > CLIENTS_MAX || seconds < 1 || seconds > SECONDS_MAX)
        give_up("usage: lock_pairs json|grpc|cell HOST:PORT[,HOST:PORT...] CLIENTS SECONDS");
    char *hosts[SERVERS_MAX];
    for (char *rest = NULL, *h = strtok_r(argv[2], ",", &rest); h && n_hosts < SERVERS_MAX;
         h = strtok_r(NULL, ",", &rest))
        hosts[n_hosts++] = h;
    allow_connections(n);
    int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    for (int i = 0; n_hosts && i < n; i++)
        open_client(&clients[i], i, hosts[i % n_hosts], epoll_fd, p);
    int64_t counts_us = now_us() + WARM_MS * 1000, ends_us = counts_us + seconds * 1000000LL;
    while (n_resting < n) {
        struct epoll_event ready[64];
        int n_ready = epoll_wait(epoll_fd, ready, 64, 1000);
        int64_t now = now_us();
        is_over = now >= ends_us;
        is_counting = now >= counts_us && !is_over;
        for (int i = 0; i < n_ready; i++)
            on_readable(ready[i].data.ptr, p);
        if (n_ready == 0 && now > ends_us + 10000000)
            give_up("a server does not answer");
    }
    say(p, n, ends_us - counts_us);
    for (int i = 0; i < n; i++) {
        close(clients[i].fd);
        buf_close(&clients[i].in);
        buf_close(&clients[i].out);
    }
    vec_close(&pairs.us);
    vec_close(&grants.us);
    close(epoll_fd);
    return 0;
}
