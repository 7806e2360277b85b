/* See teller.h. */
#include "sandbox/teller.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/wait.h"
#include "sandbox/courier.h"
#include "sandbox/faults.h"
#include "sandbox/operations.h"
#include "sandbox/refuse.h"
#include "sandbox/render.h"
#include "sandbox/store.h"

#define COMMIT_RETRY_US 100000 /* a commit that failed is tried again after this */

/* What the courier reports about an attempt. */
struct delivered {
    int64_t event, attempts, retry_ms;
};
struct reports {
    struct delivered *v;
    size_t n, cap;
};

struct teller {
    struct teller_config config;
    /* Of the thread. */
    struct bank bank;
    struct answers answers;
    struct faults faults;
    struct random random; /* of chances */
    struct store *store;  /* NULL: in memory */
    struct courier *courier;
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

bool teller_submit(struct teller *t, struct order *o)
{
    pthread_mutex_lock(&t->mutex);
    bool takes = !t->closing && t->n_orders < TELLER_QUEUE_MAX;
    if (takes) {
        o->next = NULL;
        *t->last = o;
        t->last = &o->next;
        t->n_orders++;
        pthread_cond_signal(&t->wake);
    }
    pthread_mutex_unlock(&t->mutex);
    return takes;
}

/* On the courier's thread. */
static void report(void *context, int64_t event, int64_t attempts, int64_t retry_ms)
{
    struct teller *t = context;
    pthread_mutex_lock(&t->mutex);
    *vec_push(&t->reports) = (struct delivered){event, attempts, retry_ms};
    pthread_cond_signal(&t->wake);
    pthread_mutex_unlock(&t->mutex);
}

/* ---- answers ---- */

static void finish(struct teller *t, struct order *o)
{
    o->next = t->done;
    t->done = o;
}

/* The answer will be a reset connection, after a while. */
static void hold(struct teller *t, struct order *o)
{
    o->resets = true;
    o->is_done = true;
    heap_set(&t->waiting, &o->due, wait_now_us() + t->faults.hold_ms * 1000);
}

/* The work is done, or has been refused. */
static void conclude(struct teller *t, struct order *o)
{
    if (o->fault == FAULT_TIMEOUT_AFTER)
        hold(t, o);
    else
        finish(t, o);
}

static void answer_refusal(struct teller *t, struct order *o, const struct api_error *refusal)
{
    o->out->len = 0;
    o->status = refusal->status;
    render_error(o->out, &t->bank, refusal);
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
static bool key_decides(struct teller *t, struct order *o)
{
    struct api_error refusal = {0};
    uint8_t digest[DIGEST_SIZE];
    order_digest(o, digest);
    struct stored_answer *s = answers_find(&t->answers, o->account, o->key);
    if (!s) {
        o->in_flight = answers_begin(&t->answers, o->account, o->key, digest);
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
        answer_refusal(t, o, &refusal);
    else
        replay(o, s);
    conclude(t, o);
    return true;
}

/* Keeps the answer under the order's key, unless nothing was carried out. */
static void keep_answer(struct teller *t, struct order *o, const struct api_error *refusal)
{
    struct stored_answer *s = o->in_flight;
    o->in_flight = NULL;
    if (!s)
        return;
    if (refusal->is_validation) {
        answers_forget(&t->answers, s);
        return;
    }
    answers_store(&t->answers, s, o->status, o->out->data, o->out->len, t->bank.now_ms);
    *vec_push(&t->batch.stored) = s;
}

static void forget_old_answers(struct teller *t)
{
    for (struct stored_answer *s; (s = answers_expire(&t->answers, t->bank.now_ms));)
        *vec_push(&t->batch.forgotten) = s;
}

/* ---- carrying out ---- */

static bool run_operation(struct teller *t, struct order *o, struct api_error *ret)
{
    struct bank *b = &t->bank;
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
    b->processes = chance(&t->random, t->faults.processing);
    bool ok = o->operation->run(b, o, ret);
    b->request_id = b->key = b->version = NULL;
    return ok;
}

static void execute(struct teller *t, struct order *o)
{
    struct api_error refusal = {0};
    o->status = 200;
    if (!run_operation(t, o, &refusal))
        answer_refusal(t, o, &refusal);
    keep_answer(t, o, &refusal);
    conclude(t, o);
}

/* Does what goes wrong before the work.  Returns true if nothing else is to be done. */
static bool fault_decides(struct teller *t, struct order *o)
{
    struct api_error refusal = {0};
    switch (o->fault) {
    case FAULT_RATE_LIMIT:
        refuse(&refusal, 429, "rate_limit_error", "rate_limit", NULL,
               "Too many requests hit the API too quickly.");
        answer_refusal(t, o, &refusal);
        finish(t, o);
        return true;
    case FAULT_RESET:
        o->resets = true;
        finish(t, o);
        return true;
    case FAULT_TIMEOUT_BEFORE:
        hold(t, o);
        return true;
    default:
        return false;
    }
}

static void receive(struct teller *t, struct order *o)
{
    if (o->operation->run_own) {
        o->operation->run_own(t, o);
        finish(t, o);
        return;
    }
    if (o->operation->is_own) {
        execute(t, o);
        return;
    }
    o->fault = faults_draw(&t->faults, &t->random, o->operation->name, !o->is_publishable);
    if (fault_decides(t, o) || (*o->key && o->operation->writes && key_decides(t, o)))
        return;
    int64_t delay_ms = o->is_publishable ? 0 : chance_within(&t->random, t->faults.delay_ms);
    if (delay_ms)
        heap_set(&t->waiting, &o->due, wait_now_us() + delay_ms * 1000);
    else
        execute(t, o);
}

/* The time of a delayed or held order has come. */
static void go_on(struct teller *t, struct order *o)
{
    heap_remove(&t->waiting, &o->due);
    if (o->is_done)
        finish(t, o);
    else
        execute(t, o);
}

/* ---- turns ---- */

static void note_reports(struct teller *t, const struct reports *reports)
{
    for (size_t i = 0; i < reports->n; i++) {
        const struct delivered *report = &reports->v[i];
        struct stripe_event *e = bank_event(&t->bank, report->event);
        if (!e)
            continue;
        e->attempts = report->attempts;
        e->due_ms = report->retry_ms ? t->bank.now_ms + report->retry_ms : 0;
        bank_mark_event(&t->bank, e);
    }
}

static bool has_changes(const struct teller *t)
{
    const struct bank *b = &t->bank;
    return b->changed.intents.n || b->changed.charges.n || b->changed.refunds.n ||
           b->changed.disputes.n || b->changed.events.n || t->batch.stored.n ||
           t->batch.forgotten.n;
}

static bool is_closing(struct teller *t)
{
    pthread_mutex_lock(&t->mutex);
    bool closing = t->closing;
    pthread_mutex_unlock(&t->mutex);
    return closing;
}

/* Nothing is answered before it is stored: a commit that fails is tried until it succeeds. */
static void commit(struct teller *t)
{
    struct hf_err err = {0};
    if (!has_changes(t))
        return;
    while (t->store && store_commit(t->store, &t->bank, &t->batch, &err) != HF_OK) {
        log_write(LOG_ERROR, "sandbox: the commit failed", "why", err.msg, NULL);
        if (is_closing(t)) {
            for (struct order *o = t->done; o; o = o->next)
                o->resets = true; /* it is not known what a restart will find */
            break;
        }
        wait_sleep_us(COMMIT_RETRY_US);
    }
    bank_clear_changed(&t->bank);
    for (size_t i = 0; i < t->batch.forgotten.n; i++)
        answer_free(t->batch.forgotten.v[i]);
    vec_clear(&t->batch.stored);
    vec_clear(&t->batch.forgotten);
}

/* Hands the events of this turn over, those that are new: the courier knows the others. */
static void send_events(struct teller *t, int64_t after)
{
    for (int64_t n = after + 1; t->courier && n <= t->bank.n_events; n++) {
        const struct stripe_event *e = bank_event(&t->bank, n);
        if (e && e->due_ms)
            courier_send(t->courier, n, e->body, e->len, e->attempts, 0);
    }
}

static void reply(struct teller *t)
{
    size_t n = 0;
    pending_batch_begin();
    for (struct order *o = t->done, *next; o; o = next, n++) {
        next = o->next;
        pending_done(&o->pending);
    }
    pending_batch_end();
    t->done = NULL;
    pthread_mutex_lock(&t->mutex);
    t->n_orders -= n;
    pthread_mutex_unlock(&t->mutex);
}

/* Returns when the next turn is due without anybody asking, on wait_now_us(). */
static int64_t turn(struct teller *t, struct order *orders, const struct reports *reports,
                    bool closing)
{
    struct bank *b = &t->bank;
    int64_t last_event = b->n_events, now = wait_now_us();
    b->now_ms = clock_wall_us(t->config.clock) / 1000;
    b->later_ms = t->faults.later_ms;
    note_reports(t, reports);
    for (struct heap_node *node; (node = heap_first(&t->waiting)) && (node->key <= now || closing);)
        go_on(t, heap_item(node, struct order, due));
    for (struct order *o = orders, *next; o; o = next) {
        next = o->next;
        receive(t, o);
    }
    int64_t settle_ms = bank_settle(b);
    forget_old_answers(t);
    commit(t);
    send_events(t, last_event);
    reply(t);
    const struct heap_node *first = heap_first(&t->waiting);
    int64_t due = first ? first->key : INT64_MAX;
    if (settle_ms != INT64_MAX && now + (settle_ms - b->now_ms) * 1000 < due)
        due = now + (settle_ms - b->now_ms) * 1000;
    return due;
}

/* Waits for something to do, until `due_us`. */
static void wait_for_work(struct teller *t, int64_t due_us)
{
    while (!t->first && !t->reports.n && !t->closing) {
        if (due_us == INT64_MAX)
            pthread_cond_wait(&t->wake, &t->mutex);
        else if (!wait_cond_until(&t->wake, &t->mutex, due_us))
            return;
    }
}

static void *run(void *arg)
{
    struct teller *t = arg;
    struct reports reports = {0};
    int64_t due_us = 0;
    for (bool closing = false; !closing;) {
        pthread_mutex_lock(&t->mutex);
        wait_for_work(t, due_us);
        struct order *orders = t->first;
        t->first = NULL;
        t->last = &t->first;
        struct reports taken = t->reports;
        t->reports = reports;
        closing = t->closing;
        pthread_mutex_unlock(&t->mutex);
        due_us = turn(t, orders, &taken, closing);
        vec_clear(&taken);
        reports = taken;
    }
    vec_close(&reports);
    return NULL;
}

/* ---- the sandbox's own operations ---- */

static const char *const no_parameters[] = {NULL};

static void run_books(struct teller *t, struct order *o)
{
    o->status = 200;
    bank_books(&t->bank, o->out);
}

static void run_faults(struct teller *t, struct order *o)
{
    o->status = 200;
    faults_render(&t->faults, o->out);
}

static void use_faults(struct teller *t, const struct faults *f)
{
    if (f->seed && f->seed != t->faults.seed)
        random_init_seeded(&t->random, f->seed);
    t->faults = *f;
    if (t->courier)
        courier_set_faults(t->courier, f);
}

static void run_set_faults(struct teller *t, struct order *o)
{
    struct hf_err err = {0};
    struct faults f = t->faults;
    if (!faults_parse(&f, o->body, o->body_len, &err)) {
        struct api_error refusal = {0};
        refuse_parameter(&refusal, NULL, NULL, "%s", err.msg);
        answer_refusal(t, o, &refusal);
        return;
    }
    use_faults(t, &f);
    run_faults(t, o);
}

const struct operation operation_books = {
    .name = "books", .parameters = no_parameters, .is_own = true, .run_own = run_books};
const struct operation operation_faults = {
    .name = "faults", .parameters = no_parameters, .is_own = true, .run_own = run_faults};
const struct operation operation_set_faults = {
    .name = "set_faults", .parameters = no_parameters, .is_own = true, .run_own = run_set_faults};

/* ---- life ---- */

void teller_free(struct teller *t)
{
    if (!t)
        return;
    courier_stop(t->courier);
    note_reports(t, &t->reports); /* of the courier's last attempts */
    commit(t);
    store_close(t->store);
    answers_close(&t->answers);
    bank_close(&t->bank);
    heap_close(&t->waiting);
    vec_close(&t->batch.stored);
    vec_close(&t->batch.forgotten);
    vec_close(&t->reports);
    pthread_cond_destroy(&t->wake);
    pthread_mutex_destroy(&t->mutex);
    free(t);
}

/* Events that had not been delivered when the sandbox stopped. */
static void resend(struct teller *t)
{
    int64_t now_ms = clock_wall_us(t->config.clock) / 1000;
    for (int64_t n = t->bank.n_events - EVENTS_MAX + 1; t->courier && n <= t->bank.n_events; n++) {
        const struct stripe_event *e = bank_event(&t->bank, n);
        if (e && e->due_ms)
            courier_send(t->courier, n, e->body, e->len, e->attempts,
                         e->due_ms > now_ms ? e->due_ms - now_ms : 0);
    }
}

static enum hf_status open_all(struct teller *t, struct hf_err *err)
{
    const struct teller_config *config = &t->config;
    const struct courier_config courier = {.url = config->webhook,
                                           .secret = config->webhook_secret,
                                           .clock = config->clock,
                                           .report = report,
                                           .context = t};
    struct faults f;
    faults_init(&f);
    if (config->faults && !faults_parse(&f, config->faults, strlen(config->faults), err))
        return HF_INVALID_REQUEST;
    if (config->data) {
        enum hf_status status =
            store_open(config->data, config->clock, &t->bank, &t->answers, &t->store, err);
        if (status != HF_OK)
            return status;
    }
    if (config->webhook) {
        enum hf_status status = courier_start(&courier, &t->courier, err);
        if (status != HF_OK)
            return status;
    }
    use_faults(t, &f);
    resend(t);
    return HF_OK;
}

enum hf_status teller_start(const struct teller_config *config, struct teller **ret,
                            struct hf_err *err)
{
    struct teller *t = hf_alloc(sizeof *t);
    t->config = *config;
    t->last = &t->first;
    pthread_mutex_init(&t->mutex, NULL);
    wait_cond_init(&t->wake);
    bank_init(&t->bank);
    answers_init(&t->answers);
    random_init_system(&t->random);
    t->bank.base_url = config->base_url;
    t->bank.has_webhook = config->webhook != NULL;
    enum hf_status status = open_all(t, err);
    if (status == HF_OK && pthread_create(&t->thread, NULL, run, t) != 0)
        status = hf_err_set(err, HF_INTERNAL, "no thread for the sandbox");
    if (status != HF_OK) {
        teller_free(t);
        return status;
    }
    *ret = t;
    return HF_OK;
}

void teller_close(struct teller *t)
{
    pthread_mutex_lock(&t->mutex);
    t->closing = true;
    pthread_cond_signal(&t->wake);
    pthread_mutex_unlock(&t->mutex);
    pthread_join(t->thread, NULL);
}
