/* See courier.h. */
#include "sandbox/courier.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/hex.h"
#include "base/log.h"
#include "base/wait.h"
#include "net/http_client.h"
#include "sandbox/render.h"

#define TIMEOUT_MS 5000
#define RETRY_MS_FIRST 500
#define RETRY_MS_MAX 60000
#define LATE_MS_MAX 2000     /* of events that are to overtake each other */
#define DUPLICATE_MS_MAX 500 /* between an event and its duplicate */
#define ANSWER_BYTES_MAX 65536

struct delivery {
    struct heap_node due; /* on wait_now_us() */
    int64_t event, attempts;
    bool is_extra; /* a duplicate, whose outcome nobody stores */
    size_t len;
    char body[];
};

struct courier {
    struct courier_config config;
    pthread_mutex_t mutex; /* of what follows, up to `stopping` */
    pthread_cond_t wake;
    struct heap waiting;
    struct faults faults;
    struct random random;
    uint64_t seed; /* that `random` was begun with */
    bool stopping;
    struct http_client *client; /* of the thread */
    pthread_t thread;
};

/* ---- signatures ---- */

void courier_sign(const char *secret, int64_t now_s, const char *body, size_t len,
                  char out[SIGNATURE_SIZE])
{
    uint8_t code[DIGEST_SIZE];
    char time[24], hex[2 * DIGEST_SIZE + 1];
    int time_len = snprintf(time, sizeof time, "%lld", (long long)now_s);
    const struct iovec parts[] = {digest_part(time, (size_t)time_len), digest_part(".", 1),
                                  digest_part(body, len)};
    digest_hmac(secret, strlen(secret), parts, 3, code);
    hex_format(code, sizeof code, hex);
    (void)snprintf(out, SIGNATURE_SIZE, "t=%s,v1=%s", time, hex);
}

/* ---- the queue ---- */

static void enqueue(struct courier *c, struct delivery *d, int64_t in_ms)
{
    heap_set(&c->waiting, &d->due, wait_now_us() + in_ms * 1000);
    pthread_cond_signal(&c->wake);
}

static struct delivery *delivery_new(int64_t event, const char *body, size_t len, int64_t attempts)
{
    struct delivery *d = hf_alloc(sizeof *d + len);
    d->event = event;
    d->attempts = attempts;
    d->len = len;
    memcpy(d->body, body, len);
    return d;
}

/* Decides what the faults do to a new event, with the mutex.  Returns false if it is dropped. */
static bool disturb(struct courier *c, int64_t *in_ms, bool *ret_twice)
{
    const struct faults *f = &c->faults;
    if (!f->webhooks || chance(&c->random, f->webhook_drop))
        return false;
    *in_ms += chance_within(&c->random, f->webhook_delay_ms);
    if (chance(&c->random, f->webhook_reorder))
        *in_ms += chance_within(&c->random, (int64_t[]){0, LATE_MS_MAX});
    *ret_twice = chance(&c->random, f->webhook_duplicate);
    return true;
}

void courier_send(struct courier *c, int64_t event, const char *body, size_t len, int64_t attempts,
                  int64_t in_ms)
{
    bool twice = false, dropped, full;
    pthread_mutex_lock(&c->mutex);
    full = c->waiting.nodes.n >= COURIER_QUEUE_MAX;
    dropped = full || !disturb(c, &in_ms, &twice);
    if (!dropped)
        enqueue(c, delivery_new(event, body, len, attempts), in_ms);
    if (!dropped && twice) {
        struct delivery *extra = delivery_new(event, body, len, attempts);
        extra->is_extra = true;
        enqueue(c, extra, in_ms + chance_within(&c->random, (int64_t[]){0, DUPLICATE_MS_MAX}));
    }
    pthread_mutex_unlock(&c->mutex);
    if (full)
        log_write(LOG_WARN, "sandbox: too many webhooks wait, an event is not sent", NULL);
    if (dropped)
        c->config.report(c->config.context, event, attempts, 0);
}

void courier_set_faults(struct courier *c, const struct faults *f)
{
    pthread_mutex_lock(&c->mutex);
    c->faults = *f;
    if (f->seed && f->seed != c->seed)
        random_init_seeded(&c->random, f->seed);
    c->seed = f->seed;
    pthread_mutex_unlock(&c->mutex);
}

/* ---- the thread ---- */

/* Waits until deliveries are due and takes up to COURIER_PARALLEL of them.  Returns 0 at the end.
 */
static size_t take(struct courier *c, struct delivery **ret)
{
    size_t n = 0;
    pthread_mutex_lock(&c->mutex);
    while (!c->stopping) {
        int64_t now = wait_now_us();
        struct heap_node *first = heap_first(&c->waiting);
        if (first && first->key <= now)
            break;
        if (first)
            (void)wait_cond_until(&c->wake, &c->mutex, first->key);
        else
            pthread_cond_wait(&c->wake, &c->mutex);
    }
    int64_t now = wait_now_us();
    for (struct heap_node *node; !c->stopping && n < COURIER_PARALLEL &&
                                 (node = heap_first(&c->waiting)) && node->key <= now;) {
        heap_remove(&c->waiting, node);
        ret[n++] = heap_item(node, struct delivery, due);
    }
    pthread_mutex_unlock(&c->mutex);
    return n;
}

static int64_t retry_ms(int64_t attempts)
{
    int64_t ms = RETRY_MS_FIRST;
    for (int64_t i = 1; i < attempts && ms < RETRY_MS_MAX; i++)
        ms *= 2;
    return ms < RETRY_MS_MAX ? ms : RETRY_MS_MAX;
}

static void settle(struct courier *c, struct delivery *d, const struct http_exchange *e)
{
    bool delivered = e->result == HF_OK && e->response.status >= 200 && e->response.status < 300;
    d->attempts++;
    bool again = !delivered && !d->is_extra && d->attempts < COURIER_ATTEMPTS_MAX;
    int64_t in_ms = again ? retry_ms(d->attempts) : 0;
    if (!delivered)
        log_write(LOG_DEBUG, "sandbox: a webhook was not accepted", "status",
                  LOG_INT(e->response.status), "attempts", LOG_INT(d->attempts), NULL);
    if (!d->is_extra)
        c->config.report(c->config.context, d->event, d->attempts, in_ms);
    if (!again) {
        free(d);
        return;
    }
    pthread_mutex_lock(&c->mutex);
    enqueue(c, d, in_ms);
    pthread_mutex_unlock(&c->mutex);
}

static void deliver(struct courier *c, struct delivery **batch, size_t n)
{
    struct http_exchange exchanges[COURIER_PARALLEL] = {0};
    struct http_header headers[COURIER_PARALLEL][2];
    char signatures[COURIER_PARALLEL][SIGNATURE_SIZE];
    int64_t now_s = clock_wall_us(c->config.clock) / 1000000;
    for (size_t i = 0; i < n; i++) {
        courier_sign(c->config.secret, now_s, batch[i]->body, batch[i]->len, signatures[i]);
        headers[i][0] = (struct http_header){"Content-Type", "application/json; charset=utf-8"};
        headers[i][1] = (struct http_header){"Stripe-Signature", signatures[i]};
        exchanges[i].request = (struct http_request){.method = "POST",
                                                     .url = c->config.url,
                                                     .headers = headers[i],
                                                     .n_headers = 2,
                                                     .body = batch[i]->body,
                                                     .body_len = batch[i]->len,
                                                     .is_repeatable = true};
    }
    http_client_run(c->client, exchanges, n);
    for (size_t i = 0; i < n; i++) {
        settle(c, batch[i], &exchanges[i]);
        http_response_close(&exchanges[i].response);
    }
}

static void *run(void *arg)
{
    struct courier *c = arg;
    struct delivery *batch[COURIER_PARALLEL];
    for (size_t n; (n = take(c, batch));)
        deliver(c, batch, n);
    return NULL;
}

static void courier_free(struct courier *c)
{
    for (struct heap_node *node; (node = heap_first(&c->waiting));) {
        heap_remove(&c->waiting, node);
        free(heap_item(node, struct delivery, due));
    }
    heap_close(&c->waiting);
    http_client_free(c->client);
    pthread_cond_destroy(&c->wake);
    pthread_mutex_destroy(&c->mutex);
    free(c);
}

enum hf_status courier_start(const struct courier_config *config, struct courier **ret,
                             struct hf_err *err)
{
    const struct http_client_options options = {.connect_timeout_ms = TIMEOUT_MS,
                                                .timeout_ms = TIMEOUT_MS,
                                                .body_len_max = ANSWER_BYTES_MAX,
                                                .connections_max = COURIER_PARALLEL};
    struct courier *c = hf_alloc(sizeof *c);
    c->config = *config;
    faults_init(&c->faults);
    random_init_system(&c->random);
    pthread_mutex_init(&c->mutex, NULL);
    wait_cond_init(&c->wake);
    c->client = http_client_new(&options);
    if (pthread_create(&c->thread, NULL, run, c) != 0) {
        courier_free(c);
        return hf_err_set(err, HF_INTERNAL, "no thread for webhooks");
    }
    *ret = c;
    return HF_OK;
}

void courier_stop(struct courier *c)
{
    if (!c)
        return;
    pthread_mutex_lock(&c->mutex);
    c->stopping = true;
    pthread_cond_signal(&c->wake);
    pthread_mutex_unlock(&c->mutex);
    pthread_join(c->thread, NULL);
    courier_free(c);
}
