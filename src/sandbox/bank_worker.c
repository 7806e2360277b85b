/* See bank_worker.h. */
#include "sandbox/bank_worker.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/wait.h"
#include "sandbox/faults.h"
#include "sandbox/operations.h"
#include "sandbox/refuse.h"
#include "sandbox/render.h"
#include "sandbox/store.h"
#include "sandbox/webhook_sender.h"

#define COMMIT_RETRY_US 100000 /* a commit that failed is tried again after this */

/* What the sender reports about an attempt. */
struct delivered {
    int64_t event, attempts, retry_ms;
};
struct reports {
    struct delivered *v;
    size_t n, cap;
};

struct bank_worker {
    struct bank_worker_config config;
    /* Of the thread. */
    struct bank bank;
    struct answers answers;
    struct faults faults;
    struct random random; /* of chances */
    struct store *store;  /* NULL: in memory */
    struct webhook_sender *sender;
    struct heap waiting; /* orders that are delayed or held, by time */
    struct order *done;  /* to be answered after the commit */
    struct store_batch batch;
    /* Shared. */
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    struct order *first, **last; /* those that have arrived */
    size_t n_orders;             /* taken and not answered */
    struct reports reports;
    bool closing;
    pthread_t thread;
};

/* ---- the queue ---- */

bool bank_worker_submit(struct bank_worker *w, struct order *o)
{
    pthread_mutex_lock(&w->mutex);
    bool takes = !w->closing && w->n_orders < BANK_QUEUE_MAX;
    if (takes) {
        o->next = NULL;
        *w->last = o;
        w->last = &o->next;
        w->n_orders++;
        pthread_cond_signal(&w->wake);
    }
    pthread_mutex_unlock(&w->mutex);
    return takes;
}

/* On the sender's thread. */
static void report(void *context, int64_t event, int64_t attempts, int64_t retry_ms)
{
    struct bank_worker *w = context;
    pthread_mutex_lock(&w->mutex);
    *vec_push(&w->reports) = (struct delivered){event, attempts, retry_ms};
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->mutex);
}

/* ---- answers ---- */

static void finish(struct bank_worker *w, struct order *o)
{
    o->next = w->done;
    w->done = o;
}

/* The answer will be a reset connection, after a while. */
static void hold(struct bank_worker *w, struct order *o)
{
    o->resets = true;
    o->is_done = true;
    heap_set(&w->waiting, &o->due, wait_now_us() + w->faults.hold_ms * 1000);
}

/* The work is done, or has been refused. */
static void conclude(struct bank_worker *w, struct order *o)
{
    if (o->fault == FAULT_TIMEOUT_AFTER)
        hold(w, o);
    else
        finish(w, o);
}

static void answer_refusal(struct bank_worker *w, struct order *o, const struct api_error *refusal)
{
    o->out->len = 0;
    o->status = refusal->status;
    render_error(o->out, &w->bank, refusal);
}

/* ---- idempotency keys ---- */

static void order_digest(const struct order *o, uint8_t ret[DIGEST_SIZE])
{
    char prefix[ORDER_SEGMENT_SIZE + FAULT_ROUTE_SIZE];
    (void)snprintf(prefix, sizeof prefix, "%s %s", o->operation->name, o->segment);
    form_digest(&o->form, prefix, ret);
}

static void replay(struct order *o, const struct stored_answer *s)
{
    o->status = s->status;
    o->is_replayed = true;
    memcpy(o->original_request, s->request_id, sizeof o->original_request);
    buf_put(o->out, s->body, s->len);
}

/* Looks the order's key up.  Returns true if that is the end of it: it is replayed or refused. */
static bool key_decides(struct bank_worker *w, struct order *o)
{
    struct api_error refusal = {0};
    uint8_t digest[DIGEST_SIZE];
    order_digest(o, digest);
    struct stored_answer *s = answers_find(&w->answers, o->account, o->key);
    if (!s) {
        o->in_flight = answers_begin(&w->answers, o->account, o->key, digest);
        memcpy(o->in_flight->request_id, o->request_id, sizeof o->request_id);
        return false;
    }
    if (memcmp(s->digest, digest, sizeof digest) != 0)
        refuse(&refusal, 400, "idempotency_error", NULL, NULL,
               "Keys for idempotent requests can only be used with the same parameters they were "
               "first used with. Try using a key other than '%.60s' if you meant to execute a "
               "different request.",
               o->key);
    else if (s->status == 0)
        refuse(&refusal, 409, "idempotency_error", "idempotency_key_in_use", NULL,
               "There is currently another in-progress request using this Idempotent Key (that "
               "probably means you submitted twice, and the other request is still going "
               "through). Please try again later.");
    if (refusal.status)
        answer_refusal(w, o, &refusal);
    else
        replay(o, s);
    conclude(w, o);
    return true;
}

/* Keeps the answer under the order's key, unless nothing was carried out. */
static void keep_answer(struct bank_worker *w, struct order *o, const struct api_error *refusal)
{
    struct stored_answer *s = o->in_flight;
    o->in_flight = NULL;
    if (!s)
        return;
    if (refusal->is_validation) {
        answers_forget(&w->answers, s);
        return;
    }
    answers_store(&w->answers, s, o->status, o->out->data, o->out->len, w->bank.now_ms);
    *vec_push(&w->batch.stored) = s;
}

static void forget_old_answers(struct bank_worker *w)
{
    for (struct stored_answer *s; (s = answers_expire(&w->answers, w->bank.now_ms));)
        *vec_push(&w->batch.forgotten) = s;
}

/* ---- carrying out ---- */

static bool run_operation(struct bank_worker *w, struct order *o, struct api_error *ret)
{
    struct bank *b = &w->bank;
    const char *unknown = form_unknown(&o->form, o->operation->parameters);
    if (o->fault == FAULT_FAIL) {
        refuse(ret, 500, "api_error", NULL, NULL, "The sandbox fails on purpose.");
        return false;
    }
    if (unknown) {
        refuse_parameter(ret, "parameter_unknown", unknown, "Received unknown parameter: %.100s",
                         unknown);
        return false;
    }
    if (o->operation->writes && !bank_has_room(b)) {
        refuse(ret, 500, "api_error", NULL, NULL, "The sandbox is full.");
        return false;
    }
    b->request_id = o->request_id;
    b->key = *o->key ? o->key : NULL;
    b->version = *o->version ? o->version : NULL;
    b->processes = chance(&w->random, w->faults.processing);
    bool ok = o->operation->run(b, o, ret);
    b->request_id = b->key = b->version = NULL;
    return ok;
}

static void execute(struct bank_worker *w, struct order *o)
{
    struct api_error refusal = {0};
    o->status = 200;
    if (!run_operation(w, o, &refusal))
        answer_refusal(w, o, &refusal);
    keep_answer(w, o, &refusal);
    conclude(w, o);
}

/* Does what goes wrong before the work.  Returns true if nothing else is to be done. */
static bool fault_decides(struct bank_worker *w, struct order *o)
{
    struct api_error refusal = {0};
    switch (o->fault) {
    case FAULT_RATE_LIMIT:
        refuse(&refusal, 429, "rate_limit_error", "rate_limit", NULL,
               "Too many requests hit the API too quickly.");
        answer_refusal(w, o, &refusal);
        finish(w, o);
        return true;
    case FAULT_RESET:
        o->resets = true;
        finish(w, o);
        return true;
    case FAULT_TIMEOUT_BEFORE:
        hold(w, o);
        return true;
    default:
        return false;
    }
}

static void receive(struct bank_worker *w, struct order *o)
{
    if (o->operation->run_own) {
        o->operation->run_own(w, o);
        finish(w, o);
        return;
    }
    if (o->operation->is_own) {
        execute(w, o);
        return;
    }
    o->fault = faults_draw(&w->faults, &w->random, o->operation->name, !o->is_publishable);
    if (fault_decides(w, o) || (*o->key && o->operation->writes && key_decides(w, o)))
        return;
    int64_t delay_ms = o->is_publishable ? 0 : chance_within(&w->random, w->faults.delay_ms);
    if (delay_ms)
        heap_set(&w->waiting, &o->due, wait_now_us() + delay_ms * 1000);
    else
        execute(w, o);
}

/* The time of a delayed or held order has come. */
static void go_on(struct bank_worker *w, struct order *o)
{
    heap_remove(&w->waiting, &o->due);
    if (o->is_done)
        finish(w, o);
    else
        execute(w, o);
}

/* ---- turns ---- */

static void note_reports(struct bank_worker *w, const struct reports *reports)
{
    for (size_t i = 0; i < reports->n; i++) {
        const struct delivered *report = &reports->v[i];
        struct stripe_event *e = bank_event(&w->bank, report->event);
        if (!e)
            continue;
        e->attempts = report->attempts;
        e->due_ms = report->retry_ms ? w->bank.now_ms + report->retry_ms : 0;
        bank_mark_event(&w->bank, e);
    }
}

static bool has_changes(const struct bank_worker *w)
{
    const struct bank *b = &w->bank;
    return b->changed.intents.n || b->changed.charges.n || b->changed.refunds.n ||
           b->changed.disputes.n || b->changed.events.n || w->batch.stored.n ||
           w->batch.forgotten.n;
}

static bool is_closing(struct bank_worker *w)
{
    pthread_mutex_lock(&w->mutex);
    bool closing = w->closing;
    pthread_mutex_unlock(&w->mutex);
    return closing;
}

/* Nothing is answered before it is stored: a commit that fails is tried until it succeeds. */
static void commit(struct bank_worker *w)
{
    struct hf_err err = {0};
    if (!has_changes(w))
        return;
    while (w->store && store_commit(w->store, &w->bank, &w->batch, &err) != HF_OK) {
        log_write(LOG_ERROR, "sandbox: the commit failed", "why", err.msg, NULL);
        if (is_closing(w)) {
            for (struct order *o = w->done; o; o = o->next)
                o->resets = true; /* it is not known what a restart will find */
            break;
        }
        wait_sleep_us(COMMIT_RETRY_US);
    }
    bank_clear_changed(&w->bank);
    for (size_t i = 0; i < w->batch.forgotten.n; i++)
        answer_free(w->batch.forgotten.v[i]);
    vec_clear(&w->batch.stored);
    vec_clear(&w->batch.forgotten);
}

/* Hands the events of this turn over, those that are new: the sender knows the others. */
static void send_events(struct bank_worker *w, int64_t after)
{
    for (int64_t n = after + 1; w->sender && n <= w->bank.n_events; n++) {
        const struct stripe_event *e = bank_event(&w->bank, n);
        if (e && e->due_ms)
            sender_send(w->sender, n, e->body, e->len, e->attempts, 0);
    }
}

static void reply(struct bank_worker *w)
{
    size_t n = 0;
    pending_batch_begin();
    for (struct order *o = w->done, *next; o; o = next, n++) {
        next = o->next;
        pending_done(&o->pending);
    }
    pending_batch_end();
    w->done = NULL;
    pthread_mutex_lock(&w->mutex);
    w->n_orders -= n;
    pthread_mutex_unlock(&w->mutex);
}

/* Returns when the next turn is due without anybody asking, on wait_now_us(). */
static int64_t turn(struct bank_worker *w, struct order *orders, const struct reports *reports,
                    bool closing)
{
    struct bank *b = &w->bank;
    int64_t last_event = b->n_events, now = wait_now_us();
    b->now_ms = clock_wall_us(w->config.clock) / 1000;
    b->later_ms = w->faults.later_ms;
    note_reports(w, reports);
    for (struct heap_node *node; (node = heap_first(&w->waiting)) && (node->key <= now || closing);)
        go_on(w, heap_item(node, struct order, due));
    for (struct order *o = orders, *next; o; o = next) {
        next = o->next;
        receive(w, o);
    }
    int64_t settle_ms = bank_settle(b);
    forget_old_answers(w);
    commit(w);
    send_events(w, last_event);
    reply(w);
    const struct heap_node *first = heap_first(&w->waiting);
    int64_t due = first ? first->key : INT64_MAX;
    if (settle_ms != INT64_MAX && now + (settle_ms - b->now_ms) * 1000 < due)
        due = now + (settle_ms - b->now_ms) * 1000;
    return due;
}

/* Waits for something to do, until `due_us`. */
static void wait_for_work(struct bank_worker *w, int64_t due_us)
{
    while (!w->first && !w->reports.n && !w->closing) {
        if (due_us == INT64_MAX)
            pthread_cond_wait(&w->wake, &w->mutex);
        else if (!wait_cond_until(&w->wake, &w->mutex, due_us))
            return;
    }
}

static void *run(void *arg)
{
    struct bank_worker *w = arg;
    struct reports reports = {0};
    int64_t due_us = 0;
    for (bool closing = false; !closing;) {
        pthread_mutex_lock(&w->mutex);
        wait_for_work(w, due_us);
        struct order *orders = w->first;
        w->first = NULL;
        w->last = &w->first;
        struct reports taken = w->reports;
        w->reports = reports;
        closing = w->closing;
        pthread_mutex_unlock(&w->mutex);
        due_us = turn(w, orders, &taken, closing);
        vec_clear(&taken);
        reports = taken;
    }
    vec_close(&reports);
    return NULL;
}

/* ---- the sandbox's own operations ---- */

static const char *const no_parameters[] = {NULL};

static void run_books(struct bank_worker *w, struct order *o)
{
    o->status = 200;
    bank_books(&w->bank, o->out);
}

static void run_faults(struct bank_worker *w, struct order *o)
{
    o->status = 200;
    faults_render(&w->faults, o->out);
}

static void use_faults(struct bank_worker *w, const struct faults *f)
{
    if (f->seed && f->seed != w->faults.seed)
        random_init_seeded(&w->random, f->seed);
    w->faults = *f;
    if (w->sender)
        sender_set_faults(w->sender, f);
}

static void run_set_faults(struct bank_worker *w, struct order *o)
{
    struct hf_err err = {0};
    struct faults f = w->faults;
    if (!faults_parse(&f, o->body, o->body_len, &err)) {
        struct api_error refusal = {0};
        refuse_parameter(&refusal, NULL, NULL, "%s", err.msg);
        answer_refusal(w, o, &refusal);
        return;
    }
    use_faults(w, &f);
    run_faults(w, o);
}

const struct operation operation_books = {
    .name = "books", .parameters = no_parameters, .is_own = true, .run_own = run_books};
const struct operation operation_faults = {
    .name = "faults", .parameters = no_parameters, .is_own = true, .run_own = run_faults};
const struct operation operation_set_faults = {
    .name = "set_faults", .parameters = no_parameters, .is_own = true, .run_own = run_set_faults};

/* ---- life ---- */

void bank_worker_free(struct bank_worker *w)
{
    if (!w)
        return;
    sender_stop(w->sender);
    note_reports(w, &w->reports); /* of the sender's last attempts */
    commit(w);
    store_close(w->store);
    answers_close(&w->answers);
    bank_close(&w->bank);
    heap_close(&w->waiting);
    vec_close(&w->batch.stored);
    vec_close(&w->batch.forgotten);
    vec_close(&w->reports);
    pthread_cond_destroy(&w->wake);
    pthread_mutex_destroy(&w->mutex);
    free(w);
}

/* Events that had not been delivered when the sandbox stopped. */
static void resend(struct bank_worker *w)
{
    int64_t now_ms = clock_wall_us(w->config.clock) / 1000;
    for (int64_t n = w->bank.n_events - EVENTS_MAX + 1; w->sender && n <= w->bank.n_events; n++) {
        const struct stripe_event *e = bank_event(&w->bank, n);
        if (e && e->due_ms)
            sender_send(w->sender, n, e->body, e->len, e->attempts,
                        e->due_ms > now_ms ? e->due_ms - now_ms : 0);
    }
}

static enum hf_status open_all(struct bank_worker *w, struct hf_err *err)
{
    const struct bank_worker_config *config = &w->config;
    const struct webhook_sender_config sender = {.url = config->webhook,
                                                 .secret = config->webhook_secret,
                                                 .clock = config->clock,
                                                 .report = report,
                                                 .context = w};
    struct faults f;
    faults_init(&f);
    if (config->faults && !faults_parse(&f, config->faults, strlen(config->faults), err))
        return HF_INVALID_REQUEST;
    if (config->data) {
        enum hf_status status =
            store_open(config->data, config->clock, &w->bank, &w->answers, &w->store, err);
        if (status != HF_OK)
            return status;
    }
    if (config->webhook) {
        enum hf_status status = sender_start(&sender, &w->sender, err);
        if (status != HF_OK)
            return status;
    }
    use_faults(w, &f);
    resend(w);
    return HF_OK;
}

enum hf_status bank_worker_start(const struct bank_worker_config *config, struct bank_worker **ret,
                                 struct hf_err *err)
{
    struct bank_worker *w = hf_alloc(sizeof *w);
    w->config = *config;
    w->last = &w->first;
    pthread_mutex_init(&w->mutex, NULL);
    wait_cond_init(&w->wake);
    bank_init(&w->bank);
    random_init_system(&w->random);
    w->bank.base_url = config->base_url;
    w->bank.has_webhook = config->webhook != NULL;
    enum hf_status status = open_all(w, err);
    if (status == HF_OK && pthread_create(&w->thread, NULL, run, w) != 0)
        status = hf_err_set(err, HF_INTERNAL, "no thread for the sandbox");
    if (status != HF_OK) {
        bank_worker_free(w);
        return status;
    }
    *ret = w;
    return HF_OK;
}

void bank_worker_close(struct bank_worker *w)
{
    pthread_mutex_lock(&w->mutex);
    w->closing = true;
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->mutex);
    pthread_join(w->thread, NULL);
}
