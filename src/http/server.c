/* See server.h. */
#include "http/server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/log.h"
#include "base/wait.h"
#include "http/admission.h"
#include "http/listen.h"
#include "http/server_internal.h"

#define CONNECTIONS_MAX 131072
#define CONNECTIONS_MIN 64
#define FILES_RESERVED 128    /* database, log; the threads' epoll and eventfd come on top */
#define ADDRESSES_KNOWN 32768 /* besides those that have a connection; see quota.h */
#define IDLE_POLL_US 5000
#define CLIENT_WAIT_MS 1000 /* for clients to take the last of their answers and streams */
#define STOP_WAIT_MS 1000
#define HANDSHAKES_US 1000    /* for connections that are being made */
#define LAST_REQUESTS_MS 100  /* for requests that are on their way */
#define FIRST_REQUEST_MS 1000 /* for that of a connection that was accepted last */

void server_log_places(const struct server *s)
{
    const size_t *levels = s->config.quotas.levels;
    log_write(LOG_INFO, "places for clients", "connections", LOG_INT(s->connections_max),
              "of_an_address", LOG_INT(levels[QUOTA_CONNECTIONS]), "streams",
              LOG_INT(s->config.streams_max), "streams_of_an_address",
              LOG_INT(levels[QUOTA_STREAMS]), NULL);
}

/* ---- life ---- */

/* Raises the limit of open files as far as it goes.  Returns how many of them connections may take,
 * up to CONNECTIONS_MAX; 0: too few. */
static size_t files_for_connections(unsigned threads, struct hf_err *err)
{
    const rlim_t reserved = FILES_RESERVED + GUESTS_MAX + ARRIVING_MAX + 2 * (rlim_t)threads;
    struct rlimit limit = {0};
    (void)getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
    (void)getrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur < CONNECTIONS_MIN + reserved) {
        (void)hf_err_set(err, HF_INTERNAL,
                         "%llu files may be open (RLIMIT_NOFILE), and at least %llu are needed; "
                         "raise the limit with `ulimit -n` or LimitNOFILE=, or use fewer "
                         "--http-threads",
                         (unsigned long long)limit.rlim_cur,
                         (unsigned long long)(CONNECTIONS_MIN + reserved));
        return 0;
    }
    rlim_t left = limit.rlim_cur - reserved;
    return left < CONNECTIONS_MAX ? (size_t)left : CONNECTIONS_MAX;
}

static void *loop_main(void *arg)
{
    struct loop *l = arg;
    while (!atomic_load(&l->server->stopping))
        loop_turn(l, -1);
    return NULL;
}

void server_free(struct server *s)
{
    for (unsigned i = 0; i < s->n_loops; i++)
        loop_close(&s->loops[i]);
    for (int i = 0; i < LISTENERS_MAX; i++)
        if (s->listeners[i].fd >= 0)
            (void)close(s->listeners[i].fd);
    free(s->loops);
    traffic_close(&s->traffic);
    quotas_free(s->quotas);
    guesses_close(&s->guesses);
    free(s);
}

static void wake_all(struct server *s)
{
    for (unsigned i = 0; i < s->n_loops; i++)
        inbox_wake(&s->loops[i].inbox);
}

static void join(struct server *s, unsigned n_threads)
{
    atomic_store(&s->stopping, true);
    wake_all(s);
    for (unsigned i = 0; i < n_threads; i++)
        pthread_join(s->loops[i].thread, NULL);
}

static size_t two_thirds(size_t n) { return n - n / 3; }

static struct quotas *quotas_open(struct server *s)
{
    struct quota_limits *limits = &s->config.quotas;
    if (!limits->levels[QUOTA_CONNECTIONS])
        limits->levels[QUOTA_CONNECTIONS] = two_thirds(s->connections_max);
    if (!limits->levels[QUOTA_STREAMS])
        limits->levels[QUOTA_STREAMS] = two_thirds(s->config.streams_max);
    return quotas_new(limits, s->connections_max + ADDRESSES_KNOWN);
}

static struct access access_open; /* never changed */
static const struct cors cors_off;

struct server *server_new(const struct server_config *config, struct hf_err *err)
{
    size_t connections_max = files_for_connections(config->threads, err);
    if (!connections_max)
        return NULL;
    struct server *s = hf_alloc(sizeof *s);
    bool opened = true;
    s->config = *config;
    if (!config->access)
        s->config.access = &access_open;
    if (!config->cors)
        s->config.cors = &cors_off;
    s->connections_max = connections_max;
    if (!s->config.streams_max)
        s->config.streams_max = s->connections_max / 3 * 2;
    s->quotas = quotas_open(s);
    s->listeners[0] = (struct listener){.fd = config->listen_fd};
    s->listeners[1] = (struct listener){.fd = config->stream_fd, .streams_only = true};
    traffic_open(&s->traffic, &s->config, connections_max);
    guesses_open(&s->guesses, config->metrics);
    unsent_budget_open(&s->unsent, config->answer_bytes_max, config->metrics);
    s->n_loops = config->threads;
    s->loops = hf_alloc(sizeof *s->loops * s->n_loops);
    for (unsigned i = 0; i < s->n_loops; i++)
        opened = loop_open(&s->loops[i], s, err) && opened;
    if (opened)
        return s;
    server_free(s);
    return NULL;
}

enum hf_status server_start(const struct server_config *config, struct server **ret,
                            struct hf_err *err)
{
    struct server *s = server_new(config, err);
    if (!s)
        return HF_INTERNAL;
    atomic_store(&s->listening, true);
    bool started = loop_listen(&s->loops[0]);
    unsigned n = 0;
    while (started && n < s->n_loops) {
        errno = pthread_create(&s->loops[n].thread, NULL, loop_main, &s->loops[n]);
        started = errno == 0;
        n += started;
    }
    if (started) {
        *ret = s;
        return HF_OK;
    }
    (void)hf_err_set(err, HF_INTERNAL, "the HTTP threads do not start: %s", strerror(errno));
    join(s, n);
    server_free(s);
    return HF_INTERNAL;
}

/* Reads `completed` first: whatever it counts has been counted in `accepted` before. */
static bool all_answered(const struct server *s)
{
    uint64_t completed = counter_read(&s->traffic.completed);
    return completed >= counter_read(&s->traffic.accepted);
}

/* Polls, since this happens once in a server's life and requests then need no lock for it. */
static bool wait_idle(struct server *s, int wait_ms)
{
    int64_t until_us = wait_now_us() + (int64_t)wait_ms * 1000;
    while (!all_answered(s)) {
        if (wait_now_us() >= until_us)
            return false;
        wait_sleep_us(IDLE_POLL_US);
    }
    return true;
}

void server_leave(struct server *s) { atomic_store(&s->leaving, true); }

/* A proxy that does not ask whether the server is ready sends requests up to this moment, each on a
 * new connection.  Closing a listening socket resets connections that are complete for the client,
 * so there must be none.  Attempts are ignored for no longer than they take, since a proxy that is
 * ignored finds out after a second and counts it as a failure of the server. */
static void stop_listening(struct server *s)
{
    for (int i = 0; i < LISTENERS_MAX; i++)
        if (s->listeners[i].fd >= 0)
            listen_ignore_new(s->listeners[i].fd);
    wait_sleep_us(HANDSHAKES_US);
    atomic_store(&s->closing, true);
    wake_all(s);
    wait_sleep_us(LAST_REQUESTS_MS * 1000);
    int64_t until_us = wait_now_us() + (FIRST_REQUEST_MS - LAST_REQUESTS_MS) * 1000;
    while ((atomic_load(&s->listening) || atomic_load(&s->n_fresh)) && wait_now_us() < until_us)
        wait_sleep_us(IDLE_POLL_US);
}

bool server_drain(struct server *s, int wait_ms)
{
    int64_t began_us = wait_now_us();
    if (atomic_load(&s->leaving))
        stop_listening(s);
    atomic_store(&s->draining, true);
    wake_all(s);
    bool answered = wait_idle(s, wait_ms);
    while (
        (atomic_load(&s->listening) || atomic_load(&s->n_streams) || atomic_load(&s->n_blocked)) &&
        wait_now_us() - began_us < CLIENT_WAIT_MS * 1000)
        wait_sleep_us(IDLE_POLL_US);
    return answered;
}

void server_stop(struct server *s)
{
    /* Requests that waited until a moment ago still have to be answered. */
    (void)wait_idle(s, STOP_WAIT_MS);
    join(s, s->n_loops);
    server_free(s);
}
