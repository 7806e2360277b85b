/* See webhook_sender.h. */
#include "sandbox/webhook_sender.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/backoff.h"
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

struct webhook_sender {
    struct webhook_sender_config config;
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

void sender_sign(const char *secret, int64_t now_s, const char *body, size_t len,
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

static void enqueue(struct webhook_sender *s, struct delivery *d, int64_t in_ms)
{
    heap_set(&s->waiting, &d->due, wait_now_us() + in_ms * 1000);
    pthread_cond_signal(&s->wake);
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
static bool disturb(struct webhook_sender *s, int64_t *in_ms, bool *ret_twice)
{
    const struct faults *f = &s->faults;
    if (!f->webhooks || chance(&s->random, f->webhook_drop))
        return false;
    *in_ms += chance_within(&s->random, f->webhook_delay_ms);
    if (chance(&s->random, f->webhook_reorder))
        *in_ms += chance_within(&s->random, (int64_t[]){0, LATE_MS_MAX});
    *ret_twice = chance(&s->random, f->webhook_duplicate);
    return true;
}

void sender_send(struct webhook_sender *s, int64_t event, const char *body, size_t len,
                 int64_t attempts, int64_t in_ms)
{
    bool twice = false, dropped, full;
    pthread_mutex_lock(&s->mutex);
    full = s->waiting.nodes.n >= SENDER_QUEUE_MAX;
    dropped = full || !disturb(s, &in_ms, &twice);
    if (!dropped)
        enqueue(s, delivery_new(event, body, len, attempts), in_ms);
    if (!dropped && twice) {
        struct delivery *extra = delivery_new(event, body, len, attempts);
        extra->is_extra = true;
        enqueue(s, extra, in_ms + chance_within(&s->random, (int64_t[]){0, DUPLICATE_MS_MAX}));
    }
    pthread_mutex_unlock(&s->mutex);
    if (full)
        log_write(LOG_WARN, "sandbox: too many webhooks wait, an event is not sent", NULL);
    if (dropped)
        s->config.report(s->config.context, event, attempts, 0);
}

void sender_set_faults(struct webhook_sender *s, const struct faults *f)
{
    pthread_mutex_lock(&s->mutex);
    s->faults = *f;
    if (f->seed && f->seed != s->seed)
        random_init_seeded(&s->random, f->seed);
    s->seed = f->seed;
    pthread_mutex_unlock(&s->mutex);
}

/* ---- the thread ---- */

/* Waits until deliveries are due and takes up to SENDER_PARALLEL of them.  Returns 0 at the end.
 */
static size_t take(struct webhook_sender *s, struct delivery **ret)
{
    size_t n = 0;
    pthread_mutex_lock(&s->mutex);
    while (!s->stopping) {
        int64_t now = wait_now_us();
        struct heap_node *first = heap_first(&s->waiting);
        if (first && first->key <= now)
            break;
        if (first)
            (void)wait_cond_until(&s->wake, &s->mutex, first->key);
        else
            pthread_cond_wait(&s->wake, &s->mutex);
    }
    int64_t now = wait_now_us();
    for (struct heap_node *node; !s->stopping && n < SENDER_PARALLEL &&
                                 (node = heap_first(&s->waiting)) && node->key <= now;) {
        heap_remove(&s->waiting, node);
        ret[n++] = heap_item(node, struct delivery, due);
    }
    pthread_mutex_unlock(&s->mutex);
    return n;
}

static void settle(struct webhook_sender *s, struct delivery *d, const struct http_exchange *e)
{
    bool delivered = e->result == HF_OK && e->response.status >= 200 && e->response.status < 300;
    int64_t pause_ms = backoff_pause(RETRY_MS_FIRST, RETRY_MS_MAX, (unsigned)d->attempts++);
    bool again = !delivered && !d->is_extra && d->attempts < SENDER_ATTEMPTS_MAX;
    int64_t in_ms = again ? pause_ms : 0;
    if (!delivered)
        log_write(LOG_DEBUG, "sandbox: a webhook was not accepted", "status",
                  LOG_INT(e->response.status), "attempts", LOG_INT(d->attempts), NULL);
    if (!d->is_extra)
        s->config.report(s->config.context, d->event, d->attempts, in_ms);
    if (!again) {
        free(d);
        return;
    }
    pthread_mutex_lock(&s->mutex);
    enqueue(s, d, in_ms);
    pthread_mutex_unlock(&s->mutex);
}

static void deliver(struct webhook_sender *s, struct delivery **batch, size_t n)
{
    struct http_exchange exchanges[SENDER_PARALLEL] = {0};
    struct http_header headers[SENDER_PARALLEL][2];
    char signatures[SENDER_PARALLEL][SIGNATURE_SIZE];
    int64_t now_s = clock_wall_us(s->config.clock) / 1000000;
    for (size_t i = 0; i < n; i++) {
        sender_sign(s->config.secret, now_s, batch[i]->body, batch[i]->len, signatures[i]);
        headers[i][0] = (struct http_header){"Content-Type", "application/json; charset=utf-8"};
        headers[i][1] = (struct http_header){"Stripe-Signature", signatures[i]};
        exchanges[i].request = (struct http_request){.method = "POST",
                                                     .url = s->config.url,
                                                     .headers = headers[i],
                                                     .n_headers = 2,
                                                     .body = batch[i]->body,
                                                     .body_len = batch[i]->len,
                                                     .is_repeatable = true};
    }
    http_client_run(s->client, exchanges, n);
    for (size_t i = 0; i < n; i++) {
        settle(s, batch[i], &exchanges[i]);
        http_response_close(&exchanges[i].response);
    }
}

static void *run(void *arg)
{
    struct webhook_sender *s = arg;
    struct delivery *batch[SENDER_PARALLEL];
    for (size_t n; (n = take(s, batch));)
        deliver(s, batch, n);
    return NULL;
}

static void sender_free(struct webhook_sender *s)
{
    for (struct heap_node *node; (node = heap_first(&s->waiting));) {
        heap_remove(&s->waiting, node);
        free(heap_item(node, struct delivery, due));
    }
    heap_close(&s->waiting);
    http_client_free(s->client);
    pthread_cond_destroy(&s->wake);
    pthread_mutex_destroy(&s->mutex);
    free(s);
}

enum hf_status sender_start(const struct webhook_sender_config *config, struct webhook_sender **ret,
                            struct hf_err *err)
{
    const struct http_client_options options = {.connect_timeout_ms = TIMEOUT_MS,
                                                .timeout_ms = TIMEOUT_MS,
                                                .body_len_max = ANSWER_BYTES_MAX,
                                                .connections_max = SENDER_PARALLEL};
    struct webhook_sender *s = hf_alloc(sizeof *s);
    s->config = *config;
    faults_init(&s->faults);
    random_init_system(&s->random);
    pthread_mutex_init(&s->mutex, NULL);
    wait_cond_init(&s->wake);
    s->client = http_client_new(&options);
    if (pthread_create(&s->thread, NULL, run, s) != 0) {
        sender_free(s);
        return hf_err_set(err, HF_INTERNAL, "no thread for webhooks");
    }
    *ret = s;
    return HF_OK;
}

void sender_stop(struct webhook_sender *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&s->mutex);
    s->stopping = true;
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->mutex);
    pthread_join(s->thread, NULL);
    sender_free(s);
}
