/* The payment provider of the checkout row: Stripe's protocol as far as a checkout needs it, from
 * memory, in microseconds.  One thread, a level-triggered epoll, no storage, no checks of keys, no
 * idempotency.  It sends no webhooks: the load generator (buyers.c) does, when its buyer has paid.
 *
 *   provider     prints `provider listening on http://127.0.0.1:PORT`; runs until it is killed
 *
 *   POST /v1/payment_intents                      an intent that requires a payment method
 *   GET  /v1/payment_intents/ID                   the intent
 *   POST /v1/payment_intents/ID/cancel, /capture  the intent, canceled or succeeded
 *   POST /v1/refunds                              a refund that succeeded
 *
 * Anything else, and an intent it does not know, is 404. */
#include <errno.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "loopback.h"
#include "message.h"

#define READY_MAX 64
#define REQUEST_LEN_MAX 8192
#define BODY_LEN_MAX 2048
#define ANSWER_LEN_MAX 4096
#define INTENTS_MAX 4000000
#define METADATA_SIZE 48
#define CREATED INT64_C(1790000000) /* no client reads it */

struct connection {
    int fd;
    size_t len;
    char data[REQUEST_LEN_MAX];
};

struct intent {
    int64_t amount;
    char currency[4], payment[METADATA_SIZE];
    enum { REQUIRES_PAYMENT, CANCELED, SUCCEEDED } status;
};

static struct {
    struct intent *list;
    size_t n, cap;
    uint64_t n_refunds;
} bank;

_Noreturn static void die(const char *what)
{
    perror(what);
    exit(1);
}

/* ---- forms ---- */

/* Copies the value of a parameter of a form, as far as it fits; "" if there is none.  Values with
 * percent signs are none that it is asked for; in names, brackets are escaped. */
static void form_value(const char *form, const char *name, char *ret, size_t size)
{
    size_t name_len = strlen(name), len = 0;
    ret[0] = '\0';
    for (const char *at = form; at; at = strchr(at, '&')) {
        at += *at == '&';
        if (strncmp(at, name, name_len) == 0 && at[name_len] == '=') {
            at += name_len + 1;
            len = strcspn(at, "&");
            len = len < size ? len : size - 1;
            memcpy(ret, at, len);
            ret[len] = '\0';
            return;
        }
    }
}

static int64_t form_amount(const char *form)
{
    char text[24];
    form_value(form, "amount", text, sizeof text);
    return strtoll(text, NULL, 10);
}

/* ---- intents ---- */

static struct intent *intent_new(void)
{
    if (bank.n == bank.cap) {
        bank.cap = bank.cap ? 2 * bank.cap : 65536;
        bank.list =
            bank.cap <= 2 * INTENTS_MAX ? realloc(bank.list, bank.cap * sizeof *bank.list) : NULL;
        if (!bank.list)
            die("intents");
    }
    struct intent *intent = &bank.list[bank.n++];
    *intent = (struct intent){0};
    return intent;
}

/* Finds the intent of a text that begins with its id; NULL if there is none. */
static struct intent *intent_find(const char *text)
{
    char *end;
    if (strncmp(text, "pi_", 3) != 0)
        return NULL;
    unsigned long i = strtoul(text + 3, &end, 10);
    return end > text + 3 && i < bank.n ? &bank.list[i] : NULL;
}

static int write_intent(const struct intent *intent, char *out, size_t size)
{
    static const char *const statuses[] = {"requires_payment_method", "canceled", "succeeded"};
    unsigned long i = (unsigned long)(intent - bank.list);
    return snprintf(out, size,
                    "{\"id\":\"pi_%012lu\",\"object\":\"payment_intent\",\"amount\":%" PRId64
                    ",\"amount_capturable\":0,\"amount_received\":%" PRId64
                    ",\"canceled_at\":null,\"cancellation_reason\":null,\"capture_method\":"
                    "\"automatic\",\"client_secret\":\"pi_%012lu_secret_bench\",\"confirmation_"
                    "method\":\"automatic\",\"created\":%" PRId64 ",\"currency\":\"%s\","
                    "\"customer\":null,\"description\":null,\"last_payment_error\":null,"
                    "\"latest_charge\":null,\"livemode\":false,\"metadata\":{\"holdfast_payment\":"
                    "\"%s\"},\"next_action\":null,\"payment_method\":null,\"payment_method_types\":"
                    "[\"card\"],\"receipt_email\":null,\"status\":\"%s\"}",
                    i, intent->amount, intent->status == SUCCEEDED ? intent->amount : 0, i, CREATED,
                    intent->currency, intent->payment, statuses[intent->status]);
}

static int create_intent(const char *form, char *out, size_t size)
{
    struct intent *intent = intent_new();
    intent->amount = form_amount(form);
    form_value(form, "currency", intent->currency, sizeof intent->currency);
    form_value(form, "metadata%5Bholdfast_payment%5D", intent->payment, sizeof intent->payment);
    return write_intent(intent, out, size);
}

static int write_refund(const char *form, char *out, size_t size)
{
    char intent[32], payment[METADATA_SIZE], refund[METADATA_SIZE];
    form_value(form, "payment_intent", intent, sizeof intent);
    form_value(form, "metadata%5Bholdfast_payment%5D", payment, sizeof payment);
    form_value(form, "metadata%5Bholdfast_refund%5D", refund, sizeof refund);
    const struct intent *of = intent_find(intent);
    return snprintf(out, size,
                    "{\"id\":\"re_%012" PRIu64 "\",\"object\":\"refund\",\"amount\":%" PRId64
                    ",\"created\":%" PRId64
                    ",\"currency\":\"%s\",\"metadata\":{\"holdfast_payment\":"
                    "\"%s\",\"holdfast_refund\":\"%s\"},\"payment_intent\":\"%s\",\"status\":"
                    "\"succeeded\"}",
                    bank.n_refunds++, form_amount(form), CREATED, of ? of->currency : "usd",
                    payment, refund, intent);
}

/* ---- HTTP ---- */

/* Writes the body of the answer; returns its length, or 0 if there is no such thing. */
static int answer(const char *request, const char *form, char *out, size_t size)
{
    static const char intents[] = "/v1/payment_intents";
    const char *path = strchr(request, ' ');
    bool is_post = strncmp(request, "POST ", 5) == 0;
    if (!path)
        return 0;
    path++;
    if (is_post && strncmp(path, "/v1/refunds ", 12) == 0)
        return write_refund(form, out, size);
    if (strncmp(path, intents, sizeof intents - 1) != 0)
        return 0;
    path += sizeof intents - 1;
    if (is_post && *path == ' ')
        return create_intent(form, out, size);
    struct intent *intent = *path == '/' ? intent_find(path + 1) : NULL;
    if (!intent)
        return 0;
    path += 1 + strcspn(path + 1, "/? ");
    if (is_post && strncmp(path, "/cancel ", 8) == 0)
        intent->status = CANCELED;
    else if (is_post && strncmp(path, "/capture ", 9) == 0)
        intent->status = SUCCEEDED;
    else if (is_post || *path == '/')
        return 0;
    return write_intent(intent, out, size);
}

/* Answers one request of `len` bytes.  Returns false if the client does not read its answers. */
static bool serve_request(int fd, char *data, size_t len, size_t body_at)
{
    static const char missing[] = "{\"error\":{\"type\":\"invalid_request_error\",\"code\":"
                                  "\"resource_missing\",\"message\":\"No such object\"}}";
    static char form[BODY_LEN_MAX + 1];
    char body[ANSWER_LEN_MAX / 2], out[ANSWER_LEN_MAX];
    size_t form_len = len - body_at < BODY_LEN_MAX ? len - body_at : BODY_LEN_MAX;
    memcpy(form, data + body_at, form_len);
    form[form_len] = '\0';
    data[body_at - 1] = '\0'; /* the end of the head */
    int body_len = answer(data, form, body, sizeof body);
    bool found = body_len > 0 && (size_t)body_len < sizeof body;
    int n = snprintf(out, sizeof out,
                     "HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n"
                     "\r\n%s",
                     found ? "200 OK" : "404 Not Found",
                     found ? (size_t)body_len : sizeof missing - 1, found ? body : missing);
    return send(fd, out, (size_t)n, MSG_NOSIGNAL) == n;
}

/* Returns false if the connection is to be closed. */
static bool serve(struct connection *c)
{
    ssize_t n = recv(c->fd, c->data + c->len, sizeof c->data - c->len, 0);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR;
    if (n == 0)
        return false;
    c->len += (size_t)n;
    for (size_t used, body; (used = message_len(c->data, c->len, &body)) > 0;) {
        if (!serve_request(c->fd, c->data, used, body))
            return false;
        c->len -= used;
        memmove(c->data, c->data + used, c->len);
    }
    return c->len < sizeof c->data;
}

static void accept_one(int listen_fd, int epoll_fd)
{
    int fd = accept4(listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0 && (errno == EINTR || errno == ECONNABORTED))
        return;
    const int one = 1;
    struct connection *c = calloc(1, sizeof *c);
    if (fd < 0 || !c || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) != 0)
        die("accept");
    c->fd = fd;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0)
        die("epoll_ctl");
} // NOLINT(clang-analyzer-unix.Malloc): the connection is the event's

int main(void)
{
    unsigned port;
    int listen_fd = loopback_listen(&port), epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event ready[READY_MAX], event = {.events = EPOLLIN, .data.ptr = NULL};
    if (epoll_fd < 0 || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, listen_fd, &event) != 0)
        die("epoll");
    printf("provider listening on http://127.0.0.1:%u\n", port);
    (void)fflush(stdout);
    for (;;) {
        int n = epoll_wait(epoll_fd, ready, READY_MAX, -1);
        for (int i = 0; i < n; i++) {
            struct connection *c = ready[i].data.ptr;
            if (!c) {
                accept_one(listen_fd, epoll_fd);
            } else if (!serve(c)) {
                close(c->fd);
                free(c);
            }
        }
    }
}
