/* See link.h.  This file dials, shakes hands if TLS is wanted, and greets (AUTH, SELECT). */
#include <errno.h>
#include <fcntl.h>
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
#include "redis/link_parts.h"

/* Elements of one answer: more than any script returns.  A server that is not Redis may announce
 * billions. */
#define ELEMENTS_MAX (1 << 20)

/* ---- the socket ---- */

/* Returns a connected socket, or -1 with errno. */
static int dial(const struct sockaddr *to, socklen_t len, int64_t ms)
{
    int fd = socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    int error = connect(fd, to, len) == 0 ? 0 : errno;
    if (error == EINPROGRESS || error == EINTR) {
        int n = link_wait_for(fd, POLLOUT, ms);
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
    int error =
        lookup_address(&k->lookup, link_host(k), link_port(k), link_ms_left(k, deadline_us), &all);
    if (error == EAI_AGAIN && k->lookup) {
        link_fail(k, HF_UNREACHABLE, "looking up its name takes too long", fault);
        return -1;
    }
    if (error != 0) {
        link_fail(k, HF_UNREACHABLE, gai_strerror(error), fault);
        return -1;
    }
    int n = 0, fd = -1;
    for (const struct addrinfo *a = all; a; a = a->ai_next)
        n++;
    for (const struct addrinfo *a = all; a && fd < 0; a = a->ai_next, n--)
        fd = dial(a->ai_addr, a->ai_addrlen, link_ms_left(k, deadline_us) / n);
    error = errno;
    freeaddrinfo(all);
    if (fd < 0)
        link_fail_errno(k, HF_UNREACHABLE, error, fault);
    return fd;
}

static void set_options(const struct redis_link *k, int fd)
{
    int on = 1;
    struct timeval bound = {.tv_sec = (time_t)(k->timeout_ms / 1000),
                            .tv_usec = (suseconds_t)(k->timeout_ms % 1000 * 1000)};
    if (!k->address->tls) {
        fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &bound, sizeof bound);
    }
    if (!k->address->path) {
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    }
}

/* ---- greeting ---- */

/* An error of AUTH may repeat what was sent, so the fault only names its kind. */
static enum hf_result judge_greeting(struct redis_link *k, const redisReply *reply, bool auth,
                                     struct hf_fault *fault)
{
    if (reply->type != REDIS_REPLY_ERROR)
        return HF_DONE;
    if (auth)
        return link_fail(k, HF_UNREACHABLE,
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

/* With TLS 1.3 the server looks at our certificate after the handshake. */
static enum hf_result greeting_lost(const struct redis_link *k, int error, struct hf_fault *fault)
{
    if (k->tls && !k->address->cert && (error == ECONNRESET || error == EPIPE || error == EPROTO))
        return link_fail(k, HF_UNREACHABLE,
                         "TLS: it hung up after the handshake; it may want our certificate (cert=, "
                         "key=)",
                         fault);
    return link_fail_errno(k, HF_UNREACHABLE, error, fault);
}

/* Is it the answer of a primary to ROLE? */
static bool is_primary(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_ARRAY && reply->elements > 0 && reply->element[0]->str &&
           strcmp(reply->element[0]->str, "master") == 0;
}

/* Sends AUTH, SELECT and PING in one exchange; PING makes a server that wants a password say so.
 * A server that sentinels named gets ROLE instead: what they say may be out of date. */
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
        link_encode(&out, args, n_args);
        n++;
    }
    if (a->db) {
        char db[16];
        int len = snprintf(db, sizeof db, "%d", a->db);
        link_encode(&out, (struct redis_arg[]){REDIS_ARG("SELECT"), {db, (size_t)len}}, 2);
        n++;
    }
    link_encode(&out, a->n_sentinels ? &REDIS_ARG("ROLE") : &REDIS_ARG("PING"), 1);
    bool sent = link_send(k, &out, deadline_us) == out.len;
    int error = errno;
    explicit_bzero(out.data, out.len);
    buf_close(&out);
    if (!sent)
        return greeting_lost(k, error, fault);
    enum hf_result result = HF_DONE;
    for (size_t i = 0; i < n && result == HF_DONE; i++) {
        redisReply *reply = link_next_reply(k, deadline_us, false);
        if (!reply)
            return greeting_lost(k, errno, fault);
        result = judge_greeting(k, reply, i == 0 && a->password, fault);
        if (result == HF_DONE && a->n_sentinels && i == n - 1 && !is_primary(reply))
            result = link_fail(k, HF_UNREACHABLE, "it is not the primary that it was", fault);
        freeReplyObject(reply);
    }
    return result;
}

/* ---- answers ---- */

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

/* ---- connecting ---- */

enum hf_result link_connect_host(struct redis_link *k, int64_t deadline_us, struct hf_fault *fault)
{
    int fd;
    if (k->address->path) {
        fd = dial_unix(k->address->path, link_ms_left(k, deadline_us));
        if (fd < 0)
            return link_fail_errno(k, HF_UNREACHABLE, errno, fault);
    } else {
        fd = dial_tcp(k, deadline_us, fault);
        if (fd < 0)
            return HF_UNREACHABLE;
    }
    set_options(k, fd);
    if (k->address->tls) {
        char why[REDIS_TLS_WHY_SIZE];
        k->tls = redis_tls_open(k->address, link_host(k), fd, link_ms_left(k, deadline_us), why);
        if (!k->tls) {
            close(fd);
            return link_fail(k, HF_UNREACHABLE, why, fault);
        }
    }
    k->fd = fd;
    k->dials++;
    k->reader = reader_new(k);
    enum hf_result result = greet(k, deadline_us, fault);
    if (result != HF_DONE)
        link_hang_up(k);
    return result;
}
