/* See link.h.  This file has the socket, the greeting (AUTH, SELECT) and exchanges.
 *
 * Cost: an exchange on an open link is one send and one recv.  The first recv of an exchange blocks
 * for at most timeout_ms, by an option of the socket; every other wait is limited by the rest of
 * the deadline and goes through wait_files. */
#include "redis/link.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/status.h"
#include "base/wait.h"

#define IDLE_US 100000 /* after this the link checks whether the server has closed it */
#define READ_SIZE 16384
#define OUT_KEPT_MAX 65536
/* Elements of one answer: more than any script returns.  A server that is not Redis may announce
 * billions. */
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
    lookup_abandon(k->lookup);
    k->lookup = NULL;
    k->first_len = k->n_out = 0;
}

/* ---- faults ---- */

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

/* Is it an error after which the server has done nothing?  Our scripts write nothing before the
 * first command that can be refused, and undo their writes if a later one is. */
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
    /* an ACL forbids what a script does; a command was renamed */
    return strstr(error, "can't run this command") || strstr(error, "can't access at least one") ||
           strncmp(error, "ERR unknown command", 19) == 0;
}

/* Servers quote the arguments of unknown commands and the text of scripts: the message is cut
 * there. */
enum hf_result redis_refusal(const struct redis_link *k, const redisReply *reply,
                             struct hf_fault *fault)
{
    char where_text[WHERE_SIZE];
    const char *error =
        reply->type == REDIS_REPLY_ERROR ? reply->str : "an answer of an unexpected type";
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

/* Returns 0 if nothing happened within `ms`, as poll does. */
static int wait_for(int fd, short events, int64_t ms)
{
    struct pollfd p = {.fd = fd, .events = events};
    int n;
    do
        n = wait_files(&p, 1, 1000 * ms);
    while (n < 0 && errno == EINTR);
    return n;
}

/* Returns a connected socket, or -1 with errno. */
static int dial(const struct sockaddr *to, socklen_t len, int64_t ms)
{
    int fd = socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    int error = connect(fd, to, len) == 0 ? 0 : errno;
    if (error == EINPROGRESS || error == EINTR) {
        int n = wait_for(fd, POLLOUT, ms);
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

/* Tries every address of the host in turn, each for its share of the time that is left. */
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

/* Returns how much of `out` was sent, with errno if that is not all. */
static size_t send_out(struct redis_link *k, const struct buf *out, int64_t deadline_us)
{
    size_t sent = 0;
    while (sent < out->len) {
        ssize_t n = send(k->fd, out->data + sent, out->len - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n >= 0) {
            sent += (size_t)n;
        } else if (errno == EAGAIN) {
            if (wait_for(k->fd, POLLOUT, ms_left(k, deadline_us)) == 0) {
                errno = ETIMEDOUT;
                break;
            }
        } else if (errno != EINTR) {
            break;
        }
    }
    return sent;
}

/* Returns 1 if bytes came, 0 if none came in time (errno EAGAIN), -1 if the link failed (errno). */
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

/* Returns the next answer, or NULL with errno.  `at_once`: the exchange has just begun, so the
 * socket's own limit of timeout_ms applies and poll is not needed. */
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
        if (!at_once && wait_for(k->fd, POLLIN, ms_left(k, deadline_us)) == 0) {
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

/* An error of AUTH may repeat what was sent, so the fault only names its kind. */
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

/* Sends AUTH, SELECT and PING in one exchange; PING makes a server that wants a password say so. */
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

/* Has the server closed the connection, or sent something that was not asked for? */
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
/* hiredis before 1.0 has no limit of its own. */
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

/* Connects if necessary and sends the commands.  Closes the link on failure; empties the buffer in
 * any case. */
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

enum hf_result redis_exchange(struct redis_link *k, int64_t limit_ms, redisReply **replies,
                              struct hf_fault *fault)
{
    bool limited = limit_ms > 0 && limit_ms < k->timeout_ms;
    k->allowed_ms = limited ? limit_ms : k->timeout_ms;
    int64_t now_us = clock_boot_us(k->clock);
    int64_t deadline_us = k->deadline_us ? k->deadline_us : now_us + 1000 * k->allowed_ms;
    if (k->fd >= 0 && now_us - k->used_us > IDLE_US && is_stale(k))
        hang_up(k);
    /* a longer request may have to wait for room in the socket, which takes time off the limit */
    bool at_once = k->fd >= 0 && !k->deadline_us && k->out.len <= OUT_KEPT_MAX;
    size_t n = k->n_out;
    enum hf_result result = send_all(k, deadline_us, fault);
    if (result != HF_DONE)
        return result;
    for (size_t i = 0; i < n; i++) {
        replies[i] = next_reply(k, deadline_us, at_once && !limited && i == 0);
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

/* Sleeps until the link or wake_fd is readable, or the time is up. */
static void wait_for_message(const struct redis_link *k, int wake_fd, int64_t ms)
{
    struct pollfd files[] = {{.fd = k->fd, .events = POLLIN}, {.fd = wake_fd, .events = POLLIN}};
    (void)wait_files(files, 2, 1000 * ms);
}

enum hf_result redis_receive(struct redis_link *k, int64_t timeout_ms, int wake_fd,
                             redisReply **ret, struct hf_fault *fault)
{
    int64_t deadline_us = clock_boot_us(k->clock) + 1000 * timeout_ms;
    *ret = next_reply(k, wake_fd >= 0 ? 0 : deadline_us, false);
    if (!*ret && errno == ETIMEDOUT && wake_fd >= 0) {
        wait_for_message(k, wake_fd, timeout_ms);
        *ret = next_reply(k, 0, false);
    }
    if (*ret || errno == ETIMEDOUT)
        return HF_DONE;
    enum hf_result result = fail_errno(k, HF_UNREACHABLE, errno, fault);
    hang_up(k);
    return result;
}
