/* The load of the checkout row: buyers who complete checkouts, or who only make holds.  Each
 * connection is one buyer at a time:
 *
 *   POST /v1/holds            201: a seat of its own, far from the previous one
 *   POST /v1/bookings         201: with the intent to be paid
 *   POST /v1/webhooks/stripe  200: the signed `payment_intent.succeeded` that the provider would
 *                             send after the buyer has paid; the booking is confirmed now
 *
 *   buyers PORT EVENTS SECTIONS ROWS SEATS [name=value ...]
 *
 * EVENTS is a comma-separated list of event ids, as for scattered.lua; every seat costs PRICE.
 *   connections=N   default 64
 *   seconds=N       default 3; checkouts that have begun by then are completed
 *   rate=N          begin N per second, whether or not the earlier ones have ended (open loop);
 *                   default 0: each connection begins the next one when the last one has ended
 *   holds=1         only the first request
 *   first=N         the number of the first seat; default 0
 *
 * Prints one line of JSON: what was completed within the seconds, what was completed at all, and
 * latencies in microseconds.  With a rate, the latency of the first request counts from the instant
 * at which it was due, so a server that stalls does not hide the requests that had to wait.  Any
 * other answer than those above ends the program with an error. */
#include <errno.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/digest.h"
#include "base/hex.h"
#include "base/random.h"
#include "connections.h"
#include "message.h"

#define CONNECTIONS_MAX 1024
#define EVENTS_MAX 64
#define EVENT_SIZE 64
#define SAMPLES_MAX 8000000
#define MESSAGE_LEN_MAX 16384
#define READY_MAX 64
#define DRAIN_MAX_US 10000000
#define STRIDE UINT64_C(61803399) /* no factor in common with any number of seats used here */
#define ID_SIZE 160
#define PRICE 5000
#define SECRET "whsec_benchbenchbenchbench"

enum step { IDLE, HOLD, BOOKING, WEBHOOK, STEPS };

struct buyer {
    int fd;
    enum step step;
    int64_t begun_us, sent_us; /* the checkout; the request under way */
    size_t len;
    char data[MESSAGE_LEN_MAX];
};

/* Latencies of one kind, in microseconds. */
struct samples {
    uint32_t *list;
    size_t n, cap;
};

static struct {
    unsigned connections, seconds, rate;
    bool only_holds;
    uint64_t first;
    char events[EVENTS_MAX][EVENT_SIZE];
    unsigned n_events, sections, rows, seats;
} load = {.connections = 64, .seconds = 3};

static struct {
    struct buyer *buyers;
    int epoll_fd;
    struct random random;
    int64_t start_us, end_us;
    uint64_t n_begun, n_completed, n_in_time;
    unsigned n_busy;
    struct samples latency[STEPS]; /* those of IDLE are of whole checkouts */
} run;

static int64_t now_us(void) { return clock_monotonic_us(&clock_system); }

static void sample(struct samples *s, int64_t us)
{
    if (s->n == s->cap) {
        s->cap = s->cap ? 2 * s->cap : 65536;
        s->list = s->cap <= 2 * SAMPLES_MAX ? realloc(s->list, s->cap * sizeof *s->list) : NULL;
        if (!s->list)
            die("samples");
    }
    s->list[s->n++] = (uint32_t)(us < UINT32_MAX ? us : UINT32_MAX);
}

/* ---- requests ---- */

static void send_request(struct buyer *b, enum step step, const char *path, const char *headers,
                         const char *body)
{
    char out[MESSAGE_LEN_MAX];
    int n = snprintf(out, sizeof out,
                     "POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
                     "%sContent-Length: %zu\r\n\r\n%s",
                     path, headers, strlen(body), body);
    b->step = step;
    b->sent_us = now_us();
    if ((size_t)n >= sizeof out || send(b->fd, out, (size_t)n, MSG_NOSIGNAL) != n)
        die("send");
}

/* Writes the name of row `i`, from 0: A, B ... Z, AA, AB ... */
static const char *row_name(unsigned i, char text[8])
{
    char *at = text + 7;
    *at = '\0';
    for (i++; i > 0; i = (i - 1) / 26)
        *--at = (char)('A' + (i - 1) % 26);
    return at;
}

/* `begun_us` is when the buyer wanted to begin. */
static void send_hold(struct buyer *b, int64_t begun_us)
{
    char body[256], text[8];
    uint64_t per_event = (uint64_t)load.sections * load.rows * load.seats;
    uint64_t n = load.first + run.n_begun++;
    uint64_t seat = n % per_event * STRIDE % per_event, row = seat / load.seats;
    if (n / per_event >= load.n_events) {
        (void)fprintf(stderr, "buyers: the seats did not last\n");
        exit(1);
    }
    (void)snprintf(body, sizeof body,
                   "{\"event\":\"%s\",\"seats\":[\"S%" PRIu64 "-%s-%" PRIu64 "\"]}",
                   load.events[n / per_event], row / load.rows + 1,
                   row_name((unsigned)(row % load.rows), text), seat % load.seats + 1);
    b->begun_us = begun_us;
    run.n_busy++;
    send_request(b, HOLD, "/v1/holds", "", body);
}

static void send_booking(struct buyer *b, const char *hold)
{
    char body[ID_SIZE + 64], key[80];
    (void)snprintf(key, sizeof key, "Idempotency-Key: %016" PRIx64 "%016" PRIx64 "\r\n",
                   random_u64(&run.random), random_u64(&run.random));
    (void)snprintf(body, sizeof body, "{\"hold\":\"%s\",\"email\":\"buyer@example.com\"}", hold);
    send_request(b, BOOKING, "/v1/bookings", key, body);
}

/* Writes the event as Stripe sends it, shortened. */
static void write_event(char *out, size_t size, const char *intent, const char *payment)
{
    long long now_s = clock_wall_us(&clock_system) / 1000000;
    (void)snprintf(
        out, size,
        "{\"id\":\"evt_%016" PRIx64 "\",\"object\":\"event\",\"api_version\":\"2024-06-20\","
        "\"created\":%lld,\"data\":{\"object\":{\"id\":\"%s\",\"object\":\"payment_intent\","
        "\"amount\":%d,\"amount_capturable\":0,\"amount_details\":{\"tip\":{}},"
        "\"amount_received\":%d,\"application\":null,\"application_fee_amount\":null,"
        "\"automatic_payment_methods\":null,\"canceled_at\":null,\"cancellation_reason\":null,"
        "\"capture_method\":\"automatic\",\"client_secret\":\"%s_secret_bench\","
        "\"confirmation_method\":\"automatic\",\"created\":%lld,\"currency\":\"usd\","
        "\"customer\":null,\"description\":null,\"last_payment_error\":null,"
        "\"latest_charge\":\"ch_bench\",\"livemode\":false,\"metadata\":{\"holdfast_payment\":"
        "\"%s\"},\"next_action\":null,\"on_behalf_of\":null,\"payment_method\":\"pm_bench\","
        "\"payment_method_options\":{\"card\":{\"request_three_d_secure\":\"automatic\"}},"
        "\"payment_method_types\":[\"card\"],\"processing\":null,\"receipt_email\":"
        "\"buyer@example.com\",\"review\":null,\"setup_future_usage\":null,\"shipping\":null,"
        "\"statement_descriptor\":null,\"status\":\"succeeded\",\"transfer_data\":null,"
        "\"transfer_group\":null}},\"livemode\":false,\"pending_webhooks\":1,\"request\":"
        "{\"id\":\"req_bench\",\"idempotency_key\":null},\"type\":\"payment_intent.succeeded\"}",
        random_u64(&run.random), now_s, intent, PRICE, PRICE, intent, now_s, payment);
}

static void send_webhook(struct buyer *b, const char *intent, const char *payment)
{
    char body[4096], time[24], hex[2 * DIGEST_SIZE + 1], header[160];
    uint8_t code[DIGEST_SIZE];
    write_event(body, sizeof body, intent, payment);
    int time_len =
        snprintf(time, sizeof time, "%lld", (long long)clock_wall_us(&clock_system) / 1000000);
    const struct iovec parts[] = {digest_part(time, (size_t)time_len), digest_part(".", 1),
                                  digest_part(body, strlen(body))};
    digest_hmac(SECRET, strlen(SECRET), parts, 3, code);
    hex_format(code, sizeof code, hex);
    (void)snprintf(header, sizeof header, "Stripe-Signature: t=%s,v1=%s\r\n", time, hex);
    send_request(b, WEBHOOK, "/v1/webhooks/stripe", header, body);
}

/* ---- answers ---- */

_Noreturn static void fail(const struct buyer *b, const char *what)
{
    (void)fprintf(stderr, "buyers: %s: %.*s\n", what, (int)(b->len < 600 ? b->len : 600), b->data);
    exit(1);
}

/* Copies the text that begins with `prefix` after `name`, up to its closing quote. */
static bool text_after(const char *body, const char *name, const char *prefix, char *ret,
                       size_t size)
{
    const char *at = strstr(body, name);
    at = at ? strstr(at, prefix) : NULL;
    size_t len = at ? strcspn(at, "\"") : 0;
    if (len == 0 || len >= size)
        return false;
    memcpy(ret, at, len);
    ret[len] = '\0';
    return true;
}

static void complete(struct buyer *b, int64_t at_us)
{
    sample(&run.latency[IDLE], at_us - b->begun_us);
    run.n_completed++;
    run.n_in_time += at_us <= run.end_us;
    run.n_busy--;
    b->step = IDLE;
    if (!load.rate && at_us < run.end_us)
        send_hold(b, at_us);
}

/* `body` is terminated. */
static void answered(struct buyer *b, int status, const char *body)
{
    char id[ID_SIZE], intent[ID_SIZE];
    int64_t at_us = now_us();
    enum step step = b->step;
    if (step == IDLE || status != (step == WEBHOOK ? 200 : 201))
        fail(b, "not the answer that a buyer expects");
    sample(&run.latency[step], at_us - (step == HOLD ? b->begun_us : b->sent_us));
    if (step == WEBHOOK || load.only_holds) {
        complete(b, at_us);
    } else if (step == HOLD) {
        if (!text_after(body, "\"id\":", "hold_", id, sizeof id))
            fail(b, "a hold without an id");
        send_booking(b, id);
    } else {
        if (!text_after(body, "\"payment\":", "pay_", id, sizeof id) ||
            !text_after(body, "\"intent\":", "pi_", intent, sizeof intent))
            fail(b, "a booking without an intent");
        send_webhook(b, intent, id);
    }
}

static void receive(struct buyer *b)
{
    ssize_t n = recv(b->fd, b->data + b->len, sizeof b->data - 1 - b->len, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0)
        die("the server closed a connection");
    b->len += (size_t)n;
    b->data[b->len] = '\0';
    size_t body, used = message_len(b->data, b->len, &body);
    if (!used) {
        if (b->len == sizeof b->data - 1)
            fail(b, "an answer that is too long");
        return;
    }
    if (used != b->len)
        fail(b, "more than one answer");
    int status = (int)strtol(b->data + sizeof "HTTP/1.1", NULL, 10);
    answered(b, status, b->data + body);
    b->len = 0;
}

/* ---- the run ---- */

/* With a rate: begins what is due as far as buyers are idle.  Returns when the next one is due. */
static int64_t begin_due(int64_t at_us)
{
    unsigned next = 0;
    for (;;) {
        int64_t due_us = run.start_us + (int64_t)(run.n_begun * 1000000 / load.rate);
        if (due_us > at_us || due_us >= run.end_us)
            return due_us < run.end_us ? due_us : run.end_us;
        while (next < load.connections && run.buyers[next].step != IDLE)
            next++;
        if (next == load.connections)
            return run.end_us; /* the next answer makes room */
        send_hold(&run.buyers[next], due_us);
    }
}

static void wait_until(int64_t until_us)
{
    struct epoll_event ready[READY_MAX];
    int64_t us = until_us - now_us();
    us = us > 0 ? us : 0;
    const struct timespec timeout = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
    int n = epoll_pwait2(run.epoll_fd, ready, READY_MAX, &timeout, NULL);
    for (int i = 0; i < n; i++)
        receive(&run.buyers[ready[i].data.u32]);
}

static void run_load(void)
{
    run.start_us = now_us();
    run.end_us = run.start_us + (int64_t)load.seconds * 1000000;
    for (unsigned i = 0; !load.rate && i < load.connections; i++)
        send_hold(&run.buyers[i], run.start_us);
    while (now_us() < run.end_us)
        wait_until(load.rate ? begin_due(now_us()) : run.end_us);
    while (run.n_busy) {
        if (now_us() > run.end_us + DRAIN_MAX_US) {
            (void)fprintf(stderr, "buyers: %u wait for an answer\n", run.n_busy);
            exit(1);
        }
        wait_until(run.end_us + DRAIN_MAX_US);
    }
}

static int by_size(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void print_latency(const char *name, struct samples *s)
{
    if (s->n == 0)
        return;
    qsort(s->list, s->n, sizeof *s->list, by_size);
    printf(",\"%s_p50_us\":%" PRIu32 ",\"%s_p99_us\":%" PRIu32 ",\"%s_max_us\":%" PRIu32, name,
           s->list[s->n / 2], name, s->list[s->n * 99 / 100], name, s->list[s->n - 1]);
}

static void print_result(void)
{
    uint64_t missed = load.rate ? (uint64_t)load.rate * load.seconds - run.n_begun : 0;
    printf("{\"in_time\":%" PRIu64 ",\"per_second\":%.1f,\"requests\":%" PRIu64
           ",\"missed\":%" PRIu64,
           run.n_in_time, (double)run.n_in_time / load.seconds, run.n_completed, missed);
    print_latency("all", &run.latency[IDLE]);
    print_latency("hold", &run.latency[HOLD]);
    print_latency("booking", &run.latency[BOOKING]);
    print_latency("webhook", &run.latency[WEBHOOK]);
    printf("}\n");
}

/* ---- options ---- */

_Noreturn static void usage(void)
{
    (void)fprintf(stderr, "usage: buyers PORT EVENTS SECTIONS ROWS SEATS [connections=N]"
                          " [seconds=N] [rate=N] [holds=1] [first=N]\n");
    exit(64);
}

static unsigned whole(const char *text, unsigned max)
{
    char *end;
    unsigned long n = strtoul(text, &end, 10);
    if (*end || end == text || n > max)
        usage();
    return (unsigned)n;
}

/* Returns the value of `text` if it is NAME=VALUE of this name; NULL otherwise. */
static const char *value_of(const char *text, const char *name)
{
    size_t len = strlen(name);
    return strncmp(text, name, len) == 0 && text[len] == '=' ? text + len + 1 : NULL;
}

static void read_option(const char *text)
{
    const char *value;
    if ((value = value_of(text, "connections")))
        load.connections = whole(value, CONNECTIONS_MAX);
    else if ((value = value_of(text, "seconds")))
        load.seconds = whole(value, 60);
    else if ((value = value_of(text, "rate")))
        load.rate = whole(value, 1000000);
    else if ((value = value_of(text, "holds")))
        load.only_holds = whole(value, 1) == 1;
    else if ((value = value_of(text, "first")))
        load.first = whole(value, 100000000);
    else
        usage();
}

static void read_options(int argc, char **argv)
{
    if (argc < 6)
        usage();
    for (char *rest = argv[2], *id; (id = strsep(&rest, ","));) {
        if (load.n_events == EVENTS_MAX || strlen(id) >= EVENT_SIZE)
            usage();
        (void)snprintf(load.events[load.n_events++], EVENT_SIZE, "%s", id);
    }
    load.sections = whole(argv[3], 1000);
    load.rows = whole(argv[4], 1000);
    load.seats = whole(argv[5], 1000);
    for (int i = 6; i < argc; i++)
        read_option(argv[i]);
    if (!load.connections || !load.seconds || !load.sections || !load.rows || !load.seats)
        usage();
}

int main(int argc, char **argv)
{
    read_options(argc, argv);
    random_init_system(&run.random);
    allow_connections((int)load.connections);
    run.buyers = calloc(load.connections, sizeof *run.buyers);
    run.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (!run.buyers || run.epoll_fd < 0)
        die("start");
    const struct sockaddr_in to = address_of("127.0.0.1", argv[1]);
    const int one = 1;
    for (unsigned i = 0; i < load.connections; i++) {
        struct buyer *b = &run.buyers[i];
        b->fd = connect_from(0, &to, run.epoll_fd);
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = i};
        if (epoll_ctl(run.epoll_fd, EPOLL_CTL_MOD, b->fd, &event) != 0 ||
            setsockopt(b->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) != 0)
            die("connect");
    }
    run_load();
    print_result();
    return 0;
}
