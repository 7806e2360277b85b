/* The peer of the scale rows: a seat server as articles describe it.  It has libmicrohttpd, the
 * body reader of holdfastd, and behind them a pool of workers.  Each worker has one connection to
 * PostgreSQL and one to Redis, and handles one request at a time with one of the strategies of
 * src/lab.
 *
 *   peer --strategy NAME --postgres CONNINFO --redis URL [--http-threads N] [--workers N]
 *   peer --provider URL (--postgres CONNINFO | --sqlite FILE) [--http-threads N] [--workers N]
 *
 * With --provider it is the peer of the checkout row: peer_checkout.h says how it sells.  Recreates
 * its tables and prints `peer listening on http://127.0.0.1:PORT`; ends on SIGTERM.
 *
 *   POST /v1/events   {"sections":[{"name","rows","seats_per_row"}]}   201 {"id"}
 *   POST /v1/holds    {"event","seats":[...]}                          201, 409, 500
 * and with --provider, as holdfastd has them:
 *   POST /v1/bookings {"hold"}                                         201, 404, 500
 *   POST /v1/webhooks/stripe   an event, signed with STRIPE_WEBHOOK_SECRET   200, 400, 500 */
#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <microhttpd.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/hold_parse.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/random.h"
#include "lab/stage.h"
#include "lab/strategy.h"
#include "loopback.h"
#include "peer_checkout.h"

#define BODY_LEN_MAX 65536
#define CONNECTION_MEMORY ((size_t)16 * 1024)
#define WORKERS_MAX 64
#define ROWS_MAX 1000

struct request {
    struct MHD_Connection *connection;
    struct request *next; /* in the queue */
    enum route { EVENTS, HOLDS, BOOKINGS, WEBHOOKS, NOWHERE } route;
    bool queued;
    const char *signature; /* of a webhook; belongs to the connection */
    struct buf body;
    unsigned status; /* 0 until it is answered */
    struct buf answer;
};

static const struct strategy *strategy;
static struct strategy_settings settings = {STRATEGY_SETTINGS_USUAL};

static struct queue {
    pthread_mutex_t lock;
    pthread_cond_t filled;
    struct request *first, **last;
    bool stopping;
} queue = {
    .lock = PTHREAD_MUTEX_INITIALIZER, .filled = PTHREAD_COND_INITIALIZER, .last = &queue.first};

static void queue_put(struct request *r)
{
    pthread_mutex_lock(&queue.lock);
    r->next = NULL;
    *queue.last = r;
    queue.last = &r->next;
    pthread_cond_signal(&queue.filled);
    pthread_mutex_unlock(&queue.lock);
}

/* Returns NULL when the queue is closed and empty. */
static struct request *queue_take(void)
{
    pthread_mutex_lock(&queue.lock);
    while (!queue.first && !queue.stopping)
        pthread_cond_wait(&queue.filled, &queue.lock);
    struct request *r = queue.first;
    if (r) {
        queue.first = r->next;
        if (!queue.first)
            queue.last = &queue.first;
    }
    pthread_mutex_unlock(&queue.lock);
    return r;
}

static void queue_stop(void)
{
    pthread_mutex_lock(&queue.lock);
    queue.stopping = true;
    pthread_cond_broadcast(&queue.filled);
    pthread_mutex_unlock(&queue.lock);
}

/* ---- answers ---- */

static void answer_text(struct request *r, unsigned status, const char *text)
{
    r->status = status;
    buf_str(&r->answer, text);
}

static void put_seats(struct buf *b, const struct strategy_want *want)
{
    buf_lit(b, ",\"seats\":[");
    for (size_t i = 0; i < want->n_seats; i++) {
        if (i)
            buf_char(b, ',');
        buf_json(b, want->seats[i], strlen(want->seats[i]));
    }
    buf_lit(b, "]");
}

/* About as long as holdfastd's representation of a hold. */
static void answer_won(struct request *r, const struct strategy_want *want)
{
    int64_t now = clock_wall_us(&clock_system) / 1000, ttl = settings.hold_s * INT64_C(1000);
    struct buf *b = &r->answer;
    r->status = MHD_HTTP_CREATED;
    buf_printf(b, "{\"object\":\"hold\",\"id\":\"hold_%s\",\"event\":", want->user);
    buf_json(b, want->event, strlen(want->event));
    buf_lit(b, ",\"status\":\"active\",\"owner\":null,\"fence\":1");
    put_seats(b, want);
    buf_lit(b, ",\"areas\":{},\"amount\":5000,\"currency\":\"usd\",\"created_at\":");
    buf_json_time(b, now);
    buf_lit(b, ",\"expires_at\":");
    buf_json_time(b, now + ttl);
    buf_printf(b, ",\"expires_in_ms\":%lld,\"max_expires_at\":", (long long)ttl);
    buf_json_time(b, now + 2 * ttl);
    buf_lit(b, "}");
}

static void answer_lost(struct request *r, const struct strategy_want *want)
{
    struct buf *b = &r->answer;
    r->status = MHD_HTTP_CONFLICT;
    buf_printf(b,
               "{\"type\":\"/problems/seat_taken\",\"title\":\"A seat is already taken\","
               "\"status\":409,\"code\":\"seat_taken\",\"detail\":\"A seat is already taken\","
               "\"request_id\":\"req_%s\"",
               want->user);
    put_seats(b, want);
    buf_lit(b, "}");
}

/* ---- workers ---- */

struct worker {
    struct runner *runner; /* of the strategy */
    struct till *till;     /* of the checkout; one of the two is NULL */
    struct random random;
};

static void hold(struct worker *w, struct request *r)
{
    struct hold_body body = {0};
    struct hf_err err = {0};
    json_t *json = NULL;
    char *seats[STRATEGY_SEATS_MAX], user[40];
    if (!(hold_scan(&r->body, &body) || hold_parse(&r->body, &body, &json, &err)) ||
        body.n_seats < 1 || body.n_seats > STRATEGY_SEATS_MAX) {
        answer_text(r, MHD_HTTP_BAD_REQUEST, "{\"code\":\"invalid_request\"}");
        hold_body_close(&body);
        json_decref(json);
        return;
    }
    if (w->till) {
        r->status = till_hold(w->till, &body, &r->answer);
        hold_body_close(&body);
        json_decref(json);
        return;
    }
    snprintf(user, sizeof user, "%014llx%014llx",
             (unsigned long long)random_u64(&w->random) & 0xffffffffffffff,
             (unsigned long long)random_u64(&w->random) & 0xffffffffffffff);
    char *event = hf_strndup(body.event.data, body.event.len);
    for (size_t i = 0; i < body.n_seats; i++)
        seats[i] = hf_strndup(body.seats[i].data, body.seats[i].len);
    const struct strategy_want want = {
        .user = user, .event = event, .seats = (const char *const *)seats, .n_seats = body.n_seats};
    struct strategy_outcome outcome;
    strategy_attempt(strategy, w->runner, &want, &outcome);
    if (outcome.verdict == STRATEGY_WON) {
        answer_won(r, &want);
    } else if (outcome.verdict == STRATEGY_LOST) {
        answer_lost(r, &want);
    } else {
        fprintf(stderr, "peer: %s\n", outcome.why);
        answer_text(r, MHD_HTTP_INTERNAL_SERVER_ERROR, "{\"code\":\"internal\"}");
    }
    for (size_t i = 0; i < body.n_seats; i++)
        free(seats[i]);
    free(event);
    hold_body_close(&body);
    json_decref(json);
}

/* Names rows A, B ... Z, AA, AB ... as holdfastd does. */
static char *name_of_row(int i)
{
    char name[8], *at = name + sizeof name - 1;
    *at = '\0';
    for (; i > 0; i = (i - 1) / 26)
        *--at = (char)('A' + (i - 1) % 26);
    return hf_strndup(at, strlen(at));
}

static bool create_section(struct worker *w, const char *event, const json_t *section,
                           struct hf_err *err)
{
    int n_rows = (int)json_integer_value(json_object_get(section, "rows"));
    char *rows[ROWS_MAX];
    if (n_rows < 1 || n_rows > ROWS_MAX)
        return false;
    for (int i = 0; i < n_rows; i++)
        rows[i] = name_of_row(i + 1);
    struct stage_section s = {
        .event = event,
        .section = json_string_value(json_object_get(section, "name")),
        .rows = (const char *const *)rows,
        .n_rows = (size_t)n_rows,
        .seats_per_row = (int)json_integer_value(json_object_get(section, "seats_per_row")),
    };
    bool good =
        s.section && (w->till ? till_add_section(w->till, &s) : stage_seats(&settings, &s, err));
    for (int i = 0; i < n_rows; i++)
        free(rows[i]);
    return good;
}

static void create_event(struct worker *w, struct request *r)
{
    static atomic_int n_events;
    char event[40];
    struct hf_err err = {0};
    const json_t *section;
    size_t i;
    json_t *body = json_loadb(r->body.data, r->body.len, 0, NULL);
    bool good = body != NULL;
    snprintf(event, sizeof event, "evt_%028d", atomic_fetch_add(&n_events, 1));
    json_array_foreach(json_object_get(body, "sections"), i, section) good =
        good && create_section(w, event, section, &err);
    json_decref(body);
    if (good) {
        r->status = MHD_HTTP_CREATED;
        buf_printf(&r->answer, "{\"id\":\"%s\"}", event);
    } else {
        fprintf(stderr, "peer: no event: %s\n", err.msg);
        answer_text(r, MHD_HTTP_BAD_REQUEST, "{\"code\":\"invalid_request\"}");
    }
}

static struct worker *worker_new(struct hf_err *err)
{
    struct worker *w = hf_alloc(sizeof *w);
    random_init_system(&w->random);
    if (checkout.provider)
        w->till = till_open(&settings, err);
    else if (!strategy->open(strategy, &settings, &w->runner, err))
        w->runner = NULL;
    if (w->till || w->runner)
        return w;
    free(w);
    return NULL;
}

static void serve(struct worker *w, struct request *r)
{
    switch (r->route) {
    case EVENTS:
        create_event(w, r);
        return;
    case HOLDS:
        hold(w, r);
        return;
    case BOOKINGS:
        r->status = till_book(w->till, &r->body, &r->answer);
        return;
    case WEBHOOKS:
        r->status = till_webhook(w->till, r->signature, &r->body, &r->answer);
        return;
    case NOWHERE:
        break;
    }
    hf_check(!"a request that was answered");
}

static void *worker_main(void *arg)
{
    struct worker *w = arg;
    for (struct request *r = queue_take(); r; r = queue_take()) {
        serve(w, r);
        MHD_resume_connection(r->connection);
    }
    if (w->till)
        till_close(w->till);
    else
        strategy->close(w->runner);
    free(w);
    return NULL;
}

/* ---- HTTP ---- */

static enum route route_of(const char *url)
{
    static const char *const urls[] = {[EVENTS] = "/v1/events",
                                       [HOLDS] = "/v1/holds",
                                       [BOOKINGS] = "/v1/bookings",
                                       [WEBHOOKS] = "/v1/webhooks/stripe"};
    const enum route end = checkout.provider ? NOWHERE : BOOKINGS;
    for (enum route i = EVENTS; i < end; i++)
        if (strcmp(url, urls[i]) == 0)
            return i;
    return NOWHERE;
}

static struct request *begin(struct MHD_Connection *connection, const char *url)
{
    struct request *r = hf_alloc(sizeof *r);
    r->connection = connection;
    r->route = route_of(url);
    if (r->route == WEBHOOKS)
        r->signature = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Stripe-Signature");
    if (r->route == NOWHERE)
        answer_text(r, MHD_HTTP_NOT_FOUND, "{\"code\":\"not_found\"}");
    return r;
}

static enum MHD_Result answer(struct request *r)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(r->answer.len, r->answer.data, MHD_RESPMEM_MUST_FREE);
    if (!response)
        return MHD_NO;
    r->answer = (struct buf){0};
    (void)MHD_add_response_header(response, "Content-Type",
                                  r->status < 400 ? "application/json"
                                                  : "application/problem+json");
    enum MHD_Result result = MHD_queue_response(r->connection, r->status, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result on_access(void *cls, struct MHD_Connection *connection, const char *url,
                                 const char *method, const char *version, const char *upload_data,
                                 size_t *upload_len, void **request)
{
    (void)cls, (void)method, (void)version;
    struct request *r = *request;
    if (!r) {
        *request = begin(connection, url);
        return MHD_YES;
    }
    if (*upload_len) {
        if (*upload_len > BODY_LEN_MAX - r->body.len)
            return MHD_NO;
        buf_put(&r->body, upload_data, *upload_len);
        *upload_len = 0;
        return MHD_YES;
    }
    if (r->status)
        return answer(r);
    if (!r->queued) {
        r->queued = true;
        MHD_suspend_connection(connection);
        queue_put(r);
    }
    return MHD_YES;
}

static void on_completed(void *cls, struct MHD_Connection *connection, void **request,
                         enum MHD_RequestTerminationCode why)
{
    (void)cls, (void)connection, (void)why;
    struct request *r = *request;
    *request = NULL;
    if (!r)
        return;
    buf_close(&r->body);
    buf_close(&r->answer);
    free(r);
}

static struct MHD_Daemon *daemon_start(unsigned threads)
{
    struct MHD_OptionItem pool[2] = {{MHD_OPTION_THREAD_POOL_SIZE, (intptr_t)threads, NULL},
                                     {MHD_OPTION_END, 0, NULL}};
    return MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_TURBO | MHD_ALLOW_SUSPEND_RESUME |
            MHD_USE_ERROR_LOG | MHD_USE_NO_LISTEN_SOCKET,
        0, NULL, NULL, on_access, NULL, MHD_OPTION_NOTIFY_COMPLETED, on_completed, NULL,
        MHD_OPTION_CONNECTION_LIMIT, 16384u, MHD_OPTION_CONNECTION_TIMEOUT, 30u,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_MEMORY, MHD_OPTION_ARRAY,
        threads > 1 ? pool : pool + 1, MHD_OPTION_END);
}

/* Accepts connections until the socket is shut down.  The threads of libmicrohttpd's pool would
 * race for the socket, and the first to wake would take all connections in the queue.  A connection
 * that is added goes to the thread that the number of its file selects, so all get equal shares. */
struct acceptor {
    struct MHD_Daemon *daemon;
    int listen_fd;
};

static void *acceptor_main(void *arg)
{
    const struct acceptor *a = arg;
    for (;;) {
        struct sockaddr_storage from;
        socklen_t len = sizeof from;
        int fd =
            accept4(a->listen_fd, (struct sockaddr *)&from, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0)
            (void)MHD_add_connection(a->daemon, fd, (struct sockaddr *)&from, len);
        else if (errno != EINTR && errno != ECONNABORTED)
            return NULL;
    }
}

/* ---- main ---- */

_Noreturn static void usage(void)
{
    fprintf(stderr, "usage: peer --strategy NAME --postgres CONNINFO --redis URL"
                    " [--http-threads N] [--workers N]\n"
                    "       peer --provider URL (--postgres CONNINFO | --sqlite FILE)"
                    " [--http-threads N] [--workers N]\nstrategies:\n");
    for (const struct strategy *const *s = strategies; *s; s++)
        fprintf(stderr, "  %-12s %s\n", (*s)->name, (*s)->summary);
    exit(64);
}

_Noreturn static void die(const struct hf_err *err)
{
    fprintf(stderr, "peer: %s\n", err->msg);
    exit(1);
}

struct options {
    unsigned http_threads, workers;
};

static struct options read_options(int argc, char **argv)
{
    static const struct option names[] = {
        {"strategy", 1, NULL, 's'}, {"postgres", 1, NULL, 'p'},
        {"redis", 1, NULL, 'r'},    {"http-threads", 1, NULL, 't'},
        {"workers", 1, NULL, 'w'},  {"sqlite", 1, NULL, 'q'},
        {"provider", 1, NULL, 'v'}, {0},
    };
    struct options o = {.http_threads = 2, .workers = 32};
    for (int c; (c = getopt_long(argc, argv, "", names, NULL)) != -1;) {
        if (c == 's')
            strategy = strategy_find(optarg);
        else if (c == 'p')
            settings.postgres = optarg;
        else if (c == 'r')
            settings.redis = optarg;
        else if (c == 'q')
            settings.sqlite = optarg;
        else if (c == 'v')
            checkout.provider = optarg;
        else if (c == 't')
            o.http_threads = (unsigned)strtoul(optarg, NULL, 10);
        else if (c == 'w')
            o.workers = (unsigned)strtoul(optarg, NULL, 10);
        else
            usage();
    }
    bool is_complete = checkout.provider ? !strategy && !settings.postgres != !settings.sqlite
                                         : strategy && settings.postgres && settings.redis;
    if (!is_complete || optind != argc || o.http_threads < 1 || o.http_threads > 64 ||
        o.workers < 1 || o.workers > WORKERS_MAX)
        usage();
    return o;
}

/* Creates the tables of the checkout, besides those of the stage. */
static bool build_checkout(struct hf_err *err)
{
    const char *secret = getenv("STRIPE_WEBHOOK_SECRET");
    struct till *t = till_open(&settings, err);
    bool good = t && till_build(t);
    if (t && !good)
        (void)hf_err_set(err, HF_UNAVAILABLE, "%s", t->outcome.why);
    if (t)
        till_close(t);
    return good && signature_read_stripe_secrets(secret ? secret : "", &checkout.secrets, err);
}

int main(int argc, char **argv)
{
    struct options options = read_options(argc, argv);
    struct hf_err err = {0};
    sigset_t stop;
    sigemptyset(&stop);
    sigaddset(&stop, SIGTERM);
    sigaddset(&stop, SIGINT);
    sigprocmask(SIG_BLOCK, &stop, NULL);
    signal(SIGPIPE, SIG_IGN);

    if (!stage_build(&settings, &err) || (checkout.provider && !build_checkout(&err)))
        die(&err);
    pthread_t workers[WORKERS_MAX];
    for (unsigned i = 0; i < options.workers; i++) {
        struct worker *worker = worker_new(&err);
        if (!worker)
            die(&err);
        hf_check(pthread_create(&workers[i], NULL, worker_main, worker) == 0);
    }

    unsigned port;
    struct acceptor acceptor = {.daemon = daemon_start(options.http_threads),
                                .listen_fd = loopback_listen(&port)};
    pthread_t accepting;
    hf_check(acceptor.daemon && pthread_create(&accepting, NULL, acceptor_main, &acceptor) == 0);
    printf("peer listening on http://127.0.0.1:%u\n", port);
    fflush(stdout);

    int signal_number;
    sigwait(&stop, &signal_number);
    (void)shutdown(acceptor.listen_fd, SHUT_RDWR);
    pthread_join(accepting, NULL);
    close(acceptor.listen_fd);
    queue_stop();
    for (unsigned i = 0; i < options.workers; i++)
        pthread_join(workers[i], NULL);
    MHD_stop_daemon(acceptor.daemon);
    return 0;
}
