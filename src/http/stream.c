/* Streams: libmicrohttpd's daemon of the streams' port, and the one thread that runs it and
 * everything here.
 *
 *   turn of the thread:  wait (sockets, time, stop) -> round -> sweep the silent -> MHD_run
 *
 * A stream is a suspended connection.  A round resumes it when there is a message for it; its
 * content reader copies messages out (stream_hub.h) and suspends it again.  The thread drives
 * libmicrohttpd's epoll itself instead of letting the library have a thread.  So all state belongs
 * to one thread, one scan of the suspended connections serves a whole round (libmicrohttpd scans
 * all of them after any resume), and a round that takes long delays the next one instead of piling
 * up.
 *
 * Pace: rounds are at least 112 ms apart, so that with the message that opens a stream no client
 * gets more than ten in a second.  Each message that a round sends adds 100 us to the pause, up to
 * 2 s.  A message costs 11 us (two epoll_ctl and a send), 20 us if it has 8 KB.  So streams take an
 * eighth to a fifth of a core while 10,000 clients follow a busy topic, and each of these gets a
 * message per second.
 *
 * Dead clients: libmicrohttpd does not watch suspended connections.  They are in an epoll set of
 * this thread, which reports hang-ups only.  A client whose machine vanished is found by the
 * comment that is sent within 15 s of silence, which TCP gives up on.  A client that shuts down its
 * sending direction counts as gone.
 *
 * Slow clients: a client that takes 30 s for a message, or falls out of the channel's recent
 * messages, is cut off and resumes with Last-Event-ID.
 *
 * Memory: 8.5 KB per stream (measured: 6 KiB of libmicrohttpd's, its response, struct stream), and
 * up to twice SEND_BUFFER in the kernel while the client does not read.  Messages are shared and
 * bounded, see stream_hub.h. */
#include "http/stream.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/gzip.h"
#include "base/wait.h"
#include "http/server.h"
#include "http/stream_internal.h"

#define STREAMS_MAX 16384
#define STREAMS_MIN 64
#define FILES_RESERVED 128
#define CONNECTIONS_SPARE 64 /* for clients that are told that there is no place */
#define CONNECTION_MEMORY ((size_t)6 * 1024)
#define SEND_BUFFER (32 * 1024)
#define ROUND_MIN_US 112000
#define ROUND_MAX_US 2000000
#define ROUND_US_A_MESSAGE 100
#define SILENCE_US 14500000
#define SLOW_US 30000000
#define SWEEP_EVERY_US 500000
#define TIMEOUT_S 30 /* of a connection that is no stream, or whose bytes do not leave */
#define EVENTS_MAX 256
#define LIBRARY_WAIT_MAX_US 1000000
#define DRAIN_POLL_US 5000
#define NICE 10

/* ---- messages out ---- */

static int socket_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    return info ? info->connect_fd : -1;
}

static void list_remove(struct stream *s)
{
    struct streams *all = s->streams;
    *(s->older ? &s->older->newer : &all->oldest) = s->newer;
    *(s->newer ? &s->newer->older : &all->newest) = s->older;
    s->older = s->newer = NULL;
}

static void list_append(struct stream *s)
{
    struct streams *all = s->streams;
    s->touched_us = all->now_us;
    s->older = all->newest;
    *(s->older ? &s->older->newer : &all->oldest) = s;
    all->newest = s;
}

static void resume(struct stream *s)
{
    if (!s->suspended)
        return;
    s->suspended = false;
    MHD_resume_connection(s->connection);
}

static void wake(struct subscriber *s) { resume((struct stream *)s); }

static size_t copy_part(struct stream *s, const char *text, size_t len, char *out, size_t max)
{
    size_t n = len - s->sent < max ? len - s->sent : max;
    memcpy(out, text + s->sent, n);
    s->sent += n;
    return n;
}

/* Appends text as the client wants it: plain, or as a block of its gzip stream. */
static void put_text(const struct stream *s, const char *text, struct buf *out)
{
    if (s->packed)
        gzip_block_stored(text, strlen(text), out);
    else
        buf_str(out, text);
}

static size_t put_comment(const struct stream *s, char *out, size_t max)
{
    struct buf b = {.data = out, .cap = max}; /* max is some hundred bytes, so it never grows */
    if (max >= 16)
        put_text(s, ":\n\n", &b);
    return b.len;
}

/* Copies as much as fits and returns its length; 0 if there is nothing to send.  *ret_behind: the
 * client is too slow, cut it off. */
static size_t fill(struct stream *s, char *out, size_t max, bool *ret_behind)
{
    size_t n = 0;
    if (s->head_len) {
        n = copy_part(s, s->head, s->head_len, out, max);
        if (s->sent < s->head_len)
            return n;
        s->head_len = 0;
    }
    while (n < max) {
        if (!s->message) {
            s->message = hub_next(&s->subscriber, ret_behind);
            if (!s->message)
                break;
            s->sent = 0;
            s->begun_us = s->streams->now_us;
            counter_add(s->streams->messages, 1);
        }
        const struct buf *bytes = message_bytes(s->message, s->packed);
        n += copy_part(s, bytes->data, bytes->len, out + n, max - n);
        if (s->sent < bytes->len)
            break;
        message_unref(s->message);
        s->message = NULL;
    }
    if (n == 0 && s->comment_due)
        n = put_comment(s, out, max);
    s->comment_due = false;
    return n;
}

ssize_t stream_read(void *ctx, uint64_t pos, char *out, size_t max)
{
    struct stream *s = ctx;
    struct streams *all = s->streams;
    bool behind = false;
    (void)pos;
    if (all->ended)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (s->gone)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    list_remove(s);
    list_append(s);
    size_t n = fill(s, out, max, &behind);
    if (behind || (s->message && all->now_us - s->begun_us > SLOW_US)) {
        counter_add(all->dropped, 1);
        return MHD_CONTENT_READER_END_WITH_ERROR;
    }
    if (n == 0) {
        s->suspended = true;
        MHD_suspend_connection(s->connection);
    }
    return (ssize_t)n;
}

/* ---- libmicrohttpd's callbacks ---- */

void stream_join(struct stream *s, void *topic)
{
    struct streams *all = s->streams;
    hub_join(&all->hub, &s->subscriber, topic, s->after);
    list_append(s);
    /* The id tells a client that is cut off before its first message where it was. */
    char text[48] = "retry: 2000\n\n";
    if (s->after == AFTER_NOW)
        (void)snprintf(text, sizeof text, "retry: 2000\nid: %lld\n\n",
                       (long long)s->subscriber.seq);
    struct buf head = {.data = s->head, .cap = sizeof s->head}; /* 10 + 5 + 47 bytes at most */
    if (s->packed)
        gzip_begin(&head);
    put_text(s, text, &head);
    s->head_len = head.len;
    gauge_set(all->open, (int64_t)atomic_fetch_add(&all->n_open, 1) + 1);
    struct epoll_event hang_up = {.events = EPOLLRDHUP | EPOLLET, .data.ptr = s};
    (void)epoll_ctl(all->epoll_fd, EPOLL_CTL_ADD, socket_of(s->connection), &hang_up);
}

/* Answers on the first call, before any body is read; a body then ends the connection. */
static enum MHD_Result on_access(void *ctx, struct MHD_Connection *connection, const char *path,
                                 const char *method, const char *version, const char *upload,
                                 size_t *upload_len, void **request)
{
    struct streams *all = ctx;
    struct stream *s = *request;
    (void)version, (void)upload, (void)upload_len;
    if (!s) {
        *request = s = hf_alloc(sizeof *s);
        s->streams = all;
        s->connection = connection;
        request_id_write(s->id);
    }
    stream_lookup_ended(s);
    return stream_answer(s, path, method);
}

static void on_completed(void *ctx, struct MHD_Connection *connection, void **request,
                         enum MHD_RequestTerminationCode why)
{
    struct streams *all = ctx;
    struct stream *s = *request;
    if (!s)
        return;
    *request = NULL;
    stream_lookup_ended(s);
    if (s->subscriber.channel) {
        counter_add(all->dropped, why == MHD_REQUEST_TERMINATED_TIMEOUT_REACHED);
        (void)epoll_ctl(all->epoll_fd, EPOLL_CTL_DEL, socket_of(connection), NULL);
        list_remove(s);
        message_unref(s->message);
        hub_leave(&all->hub, &s->subscriber);
        gauge_set(all->open, (int64_t)atomic_fetch_sub(&all->n_open, 1) - 1);
    }
    if (s->lookup)
        all->config.source->lookup_free(s->lookup);
    free(s);
}

/* ---- the thread ---- */

void stream_wake(struct streams *all)
{
    const uint64_t one = 1;
    (void)!write(all->wake_fd, &one, sizeof one);
}

static void end_all(struct streams *all)
{
    all->ended = true;
    for (struct stream *s = all->oldest; s; s = s->newer)
        resume(s);
    /* The socket has to be closed here; that refuses the connections in its queue. */
    MHD_socket fd = MHD_quiesce_daemon(all->daemon);
    if (fd >= 0)
        close(fd);
}

/* Sends a comment to streams that have been silent for long, and cuts those off whose bytes do not
 * leave. */
static void sweep(struct streams *all)
{
    struct stream *s = all->oldest, *next;
    for (; s && all->now_us - s->touched_us >= SILENCE_US; s = next) {
        next = s->newer;
        if (s->suspended) {
            s->comment_due = true;
            resume(s);
        } else if (!s->gone && all->now_us - s->touched_us >= SLOW_US) {
            s->gone = true;
            counter_add(all->dropped, 1);
            (void)shutdown(socket_of(s->connection), SHUT_RDWR);
        }
    }
    all->next_sweep_us = all->now_us + SWEEP_EVERY_US;
}

static void round_now(struct streams *all)
{
    int64_t pause_us = (int64_t)hub_round(&all->hub, wake) * ROUND_US_A_MESSAGE;
    if (pause_us < ROUND_MIN_US)
        pause_us = ROUND_MIN_US;
    if (pause_us > ROUND_MAX_US)
        pause_us = ROUND_MAX_US;
    all->next_round_us = all->now_us + pause_us;
}

/* How long to wait for sockets; negative: without end. */
static int64_t wait_us(struct streams *all)
{
    MHD_UNSIGNED_LONG_LONG ms;
    int64_t wait = -1;
    if (MHD_get_timeout(all->daemon, &ms) == MHD_YES)
        wait = ms < LIBRARY_WAIT_MAX_US / 1000 ? (int64_t)ms * 1000 : LIBRARY_WAIT_MAX_US;
    if (all->oldest && !all->ended) {
        int64_t left = all->next_round_us - clock_monotonic_us(all->config.clock);
        left = left > 0 ? left : 0;
        wait = wait < 0 || left < wait ? left : wait;
    }
    return wait;
}

static void take_events(struct streams *all, const struct epoll_event *events, int n)
{
    for (int i = 0; i < n; i++) {
        struct stream *s = events[i].data.ptr;
        uint64_t count;
        if (events[i].data.ptr == all) {
            (void)!read(all->wake_fd, &count, sizeof count);
        } else if (s) { /* streams are freed by MHD_run alone, so all of these still exist */
            s->gone = true;
            resume(s);
        }
    }
}

static void *streams_main(void *arg)
{
    struct streams *all = arg;
    struct epoll_event events[EVENTS_MAX];
    /* On Linux this is the priority of this thread alone.  When there is not enough CPU time for
     * all, requests come before streams. */
    (void)setpriority(PRIO_PROCESS, 0, NICE);
    while (!atomic_load(&all->stopping) || !all->ended || all->n_lookups > 0) {
        int n = wait_epoll(all->epoll_fd, events, EVENTS_MAX, wait_us(all));
        all->now_us = clock_monotonic_us(all->config.clock);
        take_events(all, events, n);
        if (atomic_load(&all->draining) && !all->ended)
            end_all(all);
        if (!all->ended && all->oldest && all->now_us >= all->next_round_us)
            round_now(all);
        if (!all->ended && all->now_us >= all->next_sweep_us)
            sweep(all);
        (void)MHD_run(all->daemon);
    }
    return NULL;
}

/* ---- life ---- */

static size_t streams_max(void)
{
    struct rlimit limit; /* server.c raises the soft limit to the hard one, so that one counts */
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_max < FILES_RESERVED + STREAMS_MIN * 2)
        return STREAMS_MIN;
    size_t share = (size_t)(limit.rlim_max - FILES_RESERVED) / 3 * 2;
    return limit.rlim_max == RLIM_INFINITY || share > STREAMS_MAX ? STREAMS_MAX : share;
}

static struct MHD_Daemon *daemon_start(struct streams *all)
{
    const unsigned flags =
        MHD_USE_EPOLL | MHD_USE_TURBO | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG;
    return MHD_start_daemon(
        flags, 0, NULL, NULL, on_access, all, MHD_OPTION_EXTERNAL_LOGGER, http_log, NULL,
        MHD_OPTION_LISTEN_SOCKET, all->config.listen_fd, MHD_OPTION_NOTIFY_COMPLETED, on_completed,
        all, MHD_OPTION_CONNECTION_LIMIT, (unsigned)(all->config.streams_max + CONNECTIONS_SPARE),
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)TIMEOUT_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        CONNECTION_MEMORY, MHD_OPTION_UNESCAPE_CALLBACK, http_unescape, NULL,
        MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_END);
}

static bool watch(struct streams *all, int fd, void *ptr)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = ptr};
    return fd >= 0 && epoll_ctl(all->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

static bool loop_open(struct streams *all)
{
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(all->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    all->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    all->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return all->epoll_fd >= 0 && info && watch(all, info->epoll_fd, NULL) &&
           watch(all, all->wake_fd, all);
}

static void streams_free(struct streams *all)
{
    if (all->daemon)
        MHD_stop_daemon(all->daemon);
    if (all->epoll_fd >= 0)
        close(all->epoll_fd);
    if (all->wake_fd >= 0)
        close(all->wake_fd);
    hub_close(&all->hub);
    free(all);
}

enum hf_status stream_start(const struct stream_config *config, struct streams **ret,
                            struct hf_err *err)
{
    if (!http_threads_init())
        return hf_err_set(err, HF_INTERNAL, "no thread-specific data is left");
    struct streams *all = hf_alloc(sizeof *all);
    const int send_buffer = SEND_BUFFER;
    all->config = *config;
    all->hub.source = config->source;
    all->epoll_fd = all->wake_fd = -1;
    if (!all->config.streams_max)
        all->config.streams_max = streams_max();
    all->open = metrics_gauge(config->metrics, "holdfast_streams_open", NULL, "Streams open now.");
    all->messages = metrics_counter(config->metrics, "holdfast_stream_messages_total", NULL,
                                    "Messages begun on streams, each reader's counted.");
    all->dropped = metrics_counter(config->metrics, "holdfast_stream_dropped_total", NULL,
                                   "Streams cut off because their reader was too slow.");
    /* Accepted sockets inherit it, so a client that stops reading costs the kernel no more. */
    (void)setsockopt(config->listen_fd, SOL_SOCKET, SO_SNDBUF, &send_buffer, sizeof send_buffer);
    all->daemon = daemon_start(all);
    if (!all->daemon || !loop_open(all) ||
        (errno = pthread_create(&all->thread, NULL, streams_main, all)) != 0) {
        (void)hf_err_set(err, HF_INTERNAL, "the streams' daemon does not start: %s",
                         strerror(errno));
        streams_free(all);
        return HF_INTERNAL;
    }
    *ret = all;
    return HF_OK;
}

void stream_drain(struct streams *all, int wait_ms)
{
    int64_t until_us = wait_now_us() + (int64_t)wait_ms * 1000;
    atomic_store(&all->draining, true);
    stream_wake(all);
    while (all->n_open > 0 && wait_now_us() < until_us)
        wait_sleep_us(DRAIN_POLL_US);
}

void stream_stop(struct streams *all)
{
    atomic_store(&all->draining, true);
    atomic_store(&all->stopping, true);
    stream_wake(all);
    pthread_join(all->thread, NULL);
    streams_free(all);
}
