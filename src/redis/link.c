/* See redis_link.h: the socket, the greeting (AUTH, SELECT), exchanges.
 *
 * Cost: an exchange on an open link is one send and one recv.  The first recv blocks for at most
 * timeout_ms by the socket's own option; whatever must be bounded by what is left of a deadline
 * goes through poll. */
#include "redis/link.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define IDLE_US 100000 /* unused for longer: look whether the server has closed it */
#define READ_SIZE 16384
#define OUT_KEPT_MAX 65536
/* Of one answer's array: more than any of ours has, and what is not Redis may promise billions. */
#define ELEMENTS_MAX (1 << 20)

void redis_link_init(struct redis_link *k, const struct redis_address *address,
                     const struct clock *clock, int64_t timeout_ms)
{
    *k = (struct redis_link){.address = address,
                             .clock = clock,
                             .timeout_ms = timeout_ms,
                             .allowed_ms = timeout_ms,
                             .fd = -1};
}

static void out_clear(struct redis_link *k)
{
    k->out.len = k->first_len = k->n_out = 0;
    if (k->out.cap > OUT_KEPT_MAX)
        buf_close(&k->out);
}

static void hang_up(struct redis_link *k)
{
    if (k->fd >= 0) {
        close(k->fd);
        redisReaderFree(k->reader);
    }
    k->fd = -1;
    k->reader = NULL;
}

void redis_link_close(struct redis_link *k)
{
    hang_up(k);
    buf_close(&k->out);
    lookup_leave(k->lookup);
    k->lookup = NULL;
    k->first_len = k->n_out = 0;
}

/* ---- what faults say ---- */

#define WHERE_SIZE 160
static const char *where(const struct redis_link *k, char out[WHERE_SIZE])
{
    if (k->address->path)
        snprintf(out, WHERE_SIZE, "Redis at %.107s", k->address->path);
    else
        snprintf(out, WHERE_SIZE, "Redis at %.120s port %d", k->address->host, k->address->port);
    return out;
}

static enum hf_result fail(const struct redis_link *k, enum hf_result result, const char *why,
                           struct hf_fault *fault)
{
    char text[WHERE_SIZE];
    return fault_set(fault, result, "%s: %s", where(k, text), why);
}

static enum hf_result fail_timeout(const struct redis_link *k, enum hf_result result,
                                   struct hf_fault *fault)
{
    char text[WHERE_SIZE];
    return fault_set(fault, result, "%s: no answer within %" PRId64 " ms", where(k, text),
                     k->allowed_ms);
}

static enum hf_result fail_errno(const struct redis_link *k, enum hf_result result, int error,
                                 struct hf_fault *fault)
{
    char text[128];
    if (error == ETIMEDOUT || error == EAGAIN)
        return fail_timeout(k, result, fault);
    return fail(k, result, strerror_r(error, text, sizeof text), fault);
}

/* Errors after which the server has done nothing: our scripts write nothing before the first
 * command that could be refused, and what is refused later they take back. */
static bool is_refusal(const char *error)
{
    static const char *const codes[] = {"NOAUTH",   "WRONGPASS",  "NOPERM",     "READONLY",
                                        "LOADING",  "BUSY",       "MISCONF",    "OOM",
                                        "NOSCRIPT", "NOREPLICAS", "MASTERDOWN", "CLUSTERDOWN",
                                        "MOVED",    "ASK",        "TRYAGAIN",   "CROSSSLOT"};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        size_t len = strlen(codes[i]);
        if (strncmp(error, codes[i], len) == 0 && (error[len] == ' ' || error[len] == '\0'))
            return true;
    }
    /* of an ACL that forbids what a script does; of a command that was renamed away */
    return strstr(error, "can't run this command") || strstr(error, "can't access at least one") ||
           strncmp(error, "ERR unknown command", 19) == 0;
}

/* The server repeats arguments of commands it does not know, and a script's text: cut before. */
enum hf_result redis_refusal(const struct redis_link *k, const redisReply *reply,
                             struct hf_fault *fault)
{
    char where_text[WHERE_SIZE];
    const char *error = reply->type == REDIS_REPLY_ERROR ? reply->str : "an answer of another kind";
    const char *end = strstr(error, ", with args");
    const char *script = strstr(error, " script: ");
    end = script && (!end || script < end) ? script : end;
    size_t len = end ? (size_t)(end - error) : strlen(error);
    return fault_set(fault, is_refusal(error) ? HF_UNREACHABLE : HF_FAILED, "%s refuses: %.*s",
                     where(k, where_text), (int)(len < 120 ? len : 120), error);
}

/* ---- the socket ---- */

static int64_t ms_left(const struct redis_link *k, int64_t deadline_us)
{
    int64_t us = deadline_us - clock_boot_us(k->clock);
    return us > 0 ? (us + 999) / 1000 : 0;
}

/* 0: not within `ms`. */
static int poll_for(int fd, short events, int64_t ms)
{
    struct pollfd p = {.fd = fd, .events = events};
    int n;
    do
        n = poll(&p, 1, ms < 3600000 ? (int)ms : 3600000);
    while (n < 0 && errno == EINTR);
    return n;
}

/* A socket that is connected, or -1 and errno. */
static int dial(const struct sockaddr *to, socklen_t len, int64_t ms)
{
    int fd = socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    int error = connect(fd, to, len) == 0 ? 0 : errno;
    if (error == EINPROGRESS || error == EINTR) {
        int n = poll_for(fd, POLLOUT, ms);
        socklen_t size = sizeof error;
        if (n == 0)
            error = ETIMEDOUT;
        else if (n < 0 || getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
            error = errno;
    }
    if (error == 0)
        return fd;
    close(fd);
    errno = error;
    return -1;
}

static int dial_unix(const char *path, int64_t ms)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    memcpy(to.sun_path, path, strlen(path) + 1);
    return dial((const struct sockaddr *)&to, sizeof to, ms);
}

/* Every address of the host in turn, each with its share of the time that is left. */
static int dial_tcp(struct redis_link *k, int64_t deadline_us, struct hf_fault *fault)
{
    struct addrinfo *all;
    int error = lookup_address(&k->lookup, k->address->host, k->address->port,
                               ms_left(k, deadline_us), &all);
    if (error == EAI_AGAIN && k->lookup) {
        fail(k, HF_UNREACHABLE, "looking up its name takes too long", fault);
        return -1;
    }
    if (error != 0) {
        fail(k, HF_UNREACHABLE, gai_strerror(error), fault);
        return -1;
    }
    int n = 0, fd = -1;
    for (const struct addrinfo *a = all; a; a = a->ai_next)
        n++;
    for (const struct addrinfo *a = all; a && fd < 0; a = a->ai_next, n--)
        fd = dial(a->ai_addr, a->ai_addrlen, ms_left(k, deadline_us) / n);
    error = errno;
    freeaddrinfo(all);
    if (fd < 0)
        fail_errno(k, HF_UNREACHABLE, error, fault);
    return fd;
}

static void set_options(const struct redis_link *k, int fd)
{
    int on = 1;
    struct timeval bound = {.tv_sec = (time_t)(k->timeout_ms / 1000),
                            .tv_usec = (suseconds_t)(k->timeout_ms % 1000 * 1000)};
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &bound, sizeof bound);
    if (!k->address->path) {
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    }
}

/* ---- sending and receiving ---- */

/* How much of `out` went, and errno unless it was all. */
static size_t send_out(struct redis_link *k, const struct buf *out, int64_t deadline_us)
{
    size_t sent = 0;
    while (sent < out->len) {
        ssize_t n = send(k->fd, out->data + sent, out->len - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n >= 0) {
            sent += (size_t)n;
        } else if (errno == EAGAIN) {
            if (poll_for(k->fd, POLLOUT, ms_left(k, deadline_us)) == 0) {
                errno = ETIMEDOUT;
                break;
            }
        } else if (errno != EINTR) {
            break;
        }
    }
    return sent;
}

/* 1: some came; 0: none in time (errno EAGAIN); -1: the link is no more (errno). */
static int recv_some(struct redis_link *k, int flags)
{
    char data[READ_SIZE];
    ssize_t n = recv(k->fd, data, sizeof data, flags);
    if (n > 0) {
        if (redisReaderFeed(k->reader, data, (size_t)n) == REDIS_OK)
            return 1;
        errno = EPROTO;
        return -1;
    }
    if (n == 0) {
        errno = ECONNRESET;
        return -1;
    }
    return errno == EAGAIN || errno == EINTR ? 0 : -1;
}

/* The next answer, NULL and errno if none.  `at_once`: timeout_ms has just begun, so the socket's
 * own bound serves and poll is spared. */
static redisReply *next_reply(struct redis_link *k, int64_t deadline_us, bool at_once)
{
    for (;;) {
        void *reply = NULL;
        if (redisReaderGetReply(k->reader, &reply) != REDIS_OK) {
            errno = EPROTO;
            return NULL;
        }
        if (reply)
            return reply;
        if (!at_once && poll_for(k->fd, POLLIN, ms_left(k, deadline_us)) == 0) {
            errno = ETIMEDOUT;
            return NULL;
        }
        int got = recv_some(k, at_once ? 0 : MSG_DONTWAIT);
        if (got < 0)
            return NULL;
        at_once = false;
    }
}

static void encode(struct buf *out, const struct redis_arg *args, size_t n)
{
    buf_char(out, '*');
    buf_int(out, (int64_t)n);
    for (size_t i = 0; i < n; i++) {
        buf_lit(out, "\r\n$");
        buf_int(out, (int64_t)args[i].len);
        buf_lit(out, "\r\n");
        buf_put(out, args[i].data, args[i].len);
    }
    buf_lit(out, "\r\n");
}

/* ---- greeting ---- */

/* AUTH's errors may repeat what was sent: only their kind is told. */
static enum hf_result judge_greeting(const struct redis_link *k, const redisReply *reply, bool auth,
                                     struct hf_fault *fault)
{
    if (reply->type != REDIS_REPLY_ERROR)
        return HF_DONE;
    if (auth)
        return fail(k, HF_UNREACHABLE,
                    strncmp(reply->str, "WRONGPASS", 9) == 0 ||
                            strncmp(reply->str, "ERR invalid password", 20) == 0
                        ? "wrong user or password"
                        : "it takes no password, or not in this way",
                    fault);
    redis_refusal(k, reply, fault);
    if (fault)
        fault->result = HF_UNREACHABLE;
    return HF_UNREACHABLE;
}

/* AUTH, SELECT and, so that a server which wants a password says so now, PING: one exchange. */
static enum hf_result greet(struct redis_link *k, int64_t deadline_us, struct hf_fault *fault)
{
    const struct redis_address *a = k->address;
    struct buf out = {0};
    size_t n = 1;
    if (a->password) {
        struct redis_arg args[3] = {REDIS_ARG("AUTH")};
        size_t n_args = 1;
        if (a->user)
            args[n_args++] = (struct redis_arg){a->user, strlen(a->user)};
        args[n_args++] = (struct redis_arg){a->password, strlen(a->password)};
        encode(&out, args, n_args);
        n++;
    }
    if (a->db) {
        char db[16];
        int len = snprintf(db, sizeof db, "%d", a->db);
        encode(&out, (struct redis_arg[]){REDIS_ARG("SELECT"), {db, (size_t)len}}, 2);
        n++;
    }
    encode(&out, &REDIS_ARG("PING"), 1);
    bool sent = send_out(k, &out, deadline_us) == out.len;
    int error = errno;
    explicit_bzero(out.data, out.len);
    buf_close(&out);
    if (!sent)
        return fail_errno(k, HF_UNREACHABLE, error, fault);
    enum hf_result result = HF_DONE;
    for (size_t i = 0; i < n && result == HF_DONE; i++) {
        redisReply *reply = next_reply(k, deadline_us, false);
        if (!reply)
            return fail_errno(k, HF_UNREACHABLE, errno, fault);
        result = judge_greeting(k, reply, i == 0 && a->password, fault);
        freeReplyObject(reply);
    }
    return result;
}

/* Has the server closed it, or said something nobody asked for? */
static bool is_stale(const struct redis_link *k)
{
    char c;
    return recv(k->fd, &c, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 || (errno != EAGAIN && errno != EINTR);
}

#if HIREDIS_MAJOR >= 1
static redisReader *reader_new(struct redis_link *k)
{
    redisReader *reader = redisReaderCreate();
    (void)k;
    hf_check(reader);
    reader->maxelements = ELEMENTS_MAX;
    return reader;
}
#else
/* hiredis of that time has no bound of its own. */
static void *make_array(const redisReadTask *task, int n)
{
    const struct redis_link *k = task->privdata;
    return n <= ELEMENTS_MAX ? k->make_array(task, n) : NULL;
}

static redisReader *reader_new(struct redis_link *k)
{
    redisReader *reader = redisReaderCreate();
    hf_check(reader);
    k->functions = *reader->fn;
    k->make_array = k->functions.createArray;
    k->functions.createArray = make_array;
    reader->fn = &k->functions;
    reader->privdata = k;
    return reader;
}
#endif

static enum hf_result connect_now(struct redis_link *k, int64_t deadline_us, struct hf_fault *fault)
{
    if (k->address->path) {
        k->fd = dial_unix(k->address->path, ms_left(k, deadline_us));
        if (k->fd < 0)
            return fail_errno(k, HF_UNREACHABLE, errno, fault);
    } else {
        k->fd = dial_tcp(k, deadline_us, fault);
        if (k->fd < 0)
            return HF_UNREACHABLE;
    }
    k->reader = reader_new(k);
    set_options(k, k->fd);
    enum hf_result result = greet(k, deadline_us, fault);
    if (result != HF_DONE)
        hang_up(k);
    return result;
}

/* ---- exchanges ---- */

void redis_put(struct redis_link *k, const struct redis_arg *args, size_t n)
{
    encode(&k->out, args, n);
    if (k->n_out++ == 0)
        k->first_len = k->out.len;
}

/* Connected, and everything that was put is sent.  On failure the link is closed; either way the
 * buffer is empty. */
static enum hf_result send_all(struct redis_link *k, int64_t deadline_us, struct hf_fault *fault)
{
    enum hf_result result = HF_DONE;
    if (k->fd < 0)
        result = connect_now(k, deadline_us, fault);
    if (result == HF_DONE) {
        size_t sent = send_out(k, &k->out, deadline_us);
        if (sent < k->out.len)
            result = fail_errno(k, sent < k->first_len ? HF_UNREACHABLE : HF_UNKNOWN, errno, fault);
    }
    if (result != HF_DONE)
        hang_up(k);
    out_clear(k);
    return result;
}

enum hf_result redis_exchange(struct redis_link *k, int64_t hurry_ms, redisReply **replies,
                              struct hf_fault *fault)
{
    bool hurry = hurry_ms > 0 && hurry_ms < k->timeout_ms;
    k->allowed_ms = hurry ? hurry_ms : k->timeout_ms;
    int64_t now_us = clock_boot_us(k->clock);
    int64_t deadline_us = k->deadline_us ? k->deadline_us : now_us + 1000 * k->allowed_ms;
    if (k->fd >= 0 && now_us - k->used_us > IDLE_US && is_stale(k))
        hang_up(k);
    /* more than this might wait for room in the socket, and spend the time there */
    bool at_once = k->fd >= 0 && !k->deadline_us && k->out.len <= OUT_KEPT_MAX;
    size_t n = k->n_out;
    enum hf_result result = send_all(k, deadline_us, fault);
    if (result != HF_DONE)
        return result;
    for (size_t i = 0; i < n; i++) {
        replies[i] = next_reply(k, deadline_us, at_once && !hurry && i == 0);
        if (replies[i])
            continue;
        result = fail_errno(k, HF_UNKNOWN, errno, fault);
        while (i > 0)
            freeReplyObject(replies[--i]);
        hang_up(k);
        return result;
    }
    k->used_us = now_us;
    return HF_DONE;
}

enum hf_result redis_send(struct redis_link *k, struct hf_fault *fault)
{
    k->allowed_ms = k->timeout_ms;
    return send_all(k, clock_boot_us(k->clock) + 1000 * k->timeout_ms, fault);
}

enum hf_result redis_receive(struct redis_link *k, int64_t timeout_ms, redisReply **ret,
                             struct hf_fault *fault)
{
    *ret = next_reply(k, clock_boot_us(k->clock) + 1000 * timeout_ms, false);
    if (*ret || errno == ETIMEDOUT)
        return HF_DONE;
    enum hf_result result = fail_errno(k, HF_UNREACHABLE, errno, fault);
    hang_up(k);
    return result;
}
