/* The payment thread: takes due jobs, and goes on with what has come back.  See checkout.h. */
#include "checkout/checkout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crash.h"
#include "base/secret.h"
#include "base/wait.h"
#include "checkout/checkout_internal.h"

#define TAKE_EVERY_US 500000   /* looks for jobs that nobody has told of, such as repetitions */
#define COUNT_EVERY_US 5000000 /* owed jobs, for the metrics */
#define TOKENS_AGAIN_US 20000  /* when the budget of this second is spent */
#define TURN_MAX_US 500000
/* No webhook for so long: they are lost, or there are none.  Payments that nothing was heard of are
 * then asked about, more often if no webhook has ever arrived. */
#define SILENCE_US 60000000
#define QUIET_MS 15000
#define QUIET_MS_UNHEARD 3000

/* ---- taking jobs ---- */

/* How many calls may be made now.  Where servers share the ledger, the ledger has the budget. */
static size_t tokens_left(struct checkout *c)
{
    int64_t rate = c->config.rate, now_us = checkout_now_us(c);
    if (!rate || engine_is_shared(c->engine))
        return SIZE_MAX;
    if (now_us - c->token_us >= 1000000) {
        c->tokens = rate;
        c->token_us = now_us;
    }
    int64_t left = c->tokens - c->spent;
    c->spent = left < 0 ? -left : 0;
    c->tokens = left < 0 ? 0 : left;
    return (size_t)c->tokens;
}

/* Where servers share the ledger, a job that was taken is leased, and nobody else runs it until the
 * lease ends.  So it waits here if a poll of its payment is under way, or if the job before it has
 * been stored and has not come back yet.  A poll that is no job may be left out: there will be
 * another. */
static void postpone(struct checkout *c, const struct job_row *job)
{
    if (engine_is_shared(c->engine) && job->job && c->postponed.n < INBOX_MAX)
        *vec_push(&c->postponed) = *job;
}

/* Starts what can be started.  A job whose lease has ended is taken again, by any server. */
static void start_postponed(struct checkout *c)
{
    size_t kept = 0;
    for (size_t i = 0; i < c->postponed.n; i++) {
        const struct job_row *job = &c->postponed.v[i];
        if (engine_now_ms(c->engine) >= job->leased_until)
            continue;
        if (work_is_running(c, job) || c->n_works >= WORKS_MAX)
            c->postponed.v[kept++] = *job;
        else
            work_begin(c, job);
    }
    c->postponed.n = kept;
}

/* Starts the jobs that workers have handed over. */
static void start_inbox(struct checkout *c)
{
    pthread_mutex_lock(&c->lock);
    const struct job_row *jobs = c->inbox.v;
    size_t n = c->inbox.n;
    memset(&c->inbox, 0, sizeof c->inbox);
    pthread_mutex_unlock(&c->lock);
    for (size_t i = 0; i < n; i++)
        if (work_is_running(c, &jobs[i]) || c->n_works >= WORKS_MAX)
            postpone(c, &jobs[i]); /* a ledger of one server has it for the next take */
        else
            work_begin(c, &jobs[i]);
    free((void *)jobs);
}

static void start_taken(struct checkout *c, const struct command *command)
{
    size_t left = tokens_left(c);
    bool has_started = false, is_spent = false;
    for (size_t i = 0; i < command->jobs_take.n; i++) {
        const struct job_row *job = &c->taken[i];
        bool is_call = job->kind != JOB_NOTIFY;
        if (work_is_running(c, job) || c->n_works >= WORKS_MAX) {
            postpone(c, job);
            continue;
        }
        if (is_call && !left) {
            is_spent = true;
            continue;
        }
        if (is_call && left != SIZE_MAX) {
            left--;
            c->tokens--;
        }
        work_begin(c, job);
        has_started = true;
    }
    if (is_spent)
        c->next_take_us = checkout_now_us(c) + TOKENS_AGAIN_US;
    else if (has_started)
        c->next_take_us = checkout_now_us(c); /* there may be more */
}

static void show_counts(struct checkout *c, const struct command *command)
{
    int64_t now = engine_now_ms(c->engine);
    gauge_set(c->metrics.restore_unchecked, command->jobs_take.counts[JOB_POLL].n);
    for (int kind = JOB_REFUND; kind <= JOB_NOTIFY; kind++) {
        const struct jobs_count *count = &command->jobs_take.counts[kind];
        gauge_set(c->metrics.jobs[kind], count->n);
        gauge_set(c->metrics.oldest[kind], count->n ? (now - count->oldest_at) / 1000 : 0);
    }
}

static void taken(struct errand *errand)
{
    struct checkout *c = errand->checkout;
    const struct command *command = &errand->command;
    c->is_taking = false;
    if (command->verdict == VERDICT_OK) { /* otherwise the next take asks again */
        if (command->jobs_take.n)
            CRASH_POINT(jobs_taken);
        start_taken(c, command);
        if (command->jobs_take.wants_counts)
            show_counts(c, command);
    }
    work_forget_ended(c);
}

/* Payments that have not changed since then are asked about; 0: only those whose time it is. */
static int64_t quiet_before(const struct checkout *c)
{
    int64_t webhook_us = atomic_load_explicit(&c->webhook_us, memory_order_relaxed);
    int64_t now = engine_now_ms(c->engine);
    if (!webhook_us)
        return now - QUIET_MS_UNHEARD;
    return checkout_now_us(c) - webhook_us > SILENCE_US ? now - QUIET_MS : 0;
}

static void take(struct checkout *c)
{
    int64_t now_us = checkout_now_us(c);
    if (c->is_taking || c->n_works >= WORKS_MAX)
        return;
    if (!atomic_exchange(&c->is_woken, false) && now_us < c->next_take_us)
        return;
    /* What this server runs already is among the rows, unless it is leased. */
    size_t running = engine_is_shared(c->engine) ? 0 : c->n_works;
    size_t room = WORKS_MAX - c->n_works;
    struct command *command = &c->take.command;
    *command = (struct command){.kind = CMD_JOBS_TAKE};
    command->jobs_take.query = (struct jobs_query){
        .quiet_before = quiet_before(c),
        .calls_max = c->config.stripe.secret_key ? room + running : 0,
        .notices_max = room / 4 + 1 + running,
        .rate = c->config.rate,
        .spent = c->spent,
    };
    if (engine_is_shared(c->engine))
        c->spent = 0;
    command->jobs_take.rows = c->taken;
    command->jobs_take.wants_counts = now_us >= c->next_count_us;
    if (command->jobs_take.wants_counts)
        c->next_count_us = now_us + COUNT_EVERY_US;
    c->next_take_us = now_us + TAKE_EVERY_US;
    c->is_taking = true;
    errand_submit(&c->take, taken);
}

/* ---- the thread ---- */

static bool is_stopping(struct checkout *c)
{
    pthread_mutex_lock(&c->lock);
    bool stopping = c->is_stopping;
    pthread_mutex_unlock(&c->lock);
    return stopping;
}

static int64_t turn_us(struct checkout *c)
{
    int64_t wait_us = TURN_MAX_US, end_us = waits_first_end_us(c) - wait_now_us();
    int64_t take_us = c->next_take_us - checkout_now_us(c);
    wait_us = end_us < wait_us ? end_us : wait_us;
    if (!c->is_taking && c->n_works < WORKS_MAX)
        wait_us = take_us < wait_us ? take_us : wait_us;
    return wait_us > 0 ? wait_us : 0;
}

static void *payment_main(void *arg)
{
    struct checkout *c = arg;
    while (!is_stopping(c)) {
        errands_collect(c);
        waits_end(c, 0, NULL, wait_now_us());
        start_postponed(c);
        start_inbox(c);
        take(c);
        cancelling_turn(c);
        http_pool_turn(c->pool, turn_us(c));
    }
    while (c->n_lent) { /* the engine gives everything back before it is drained */
        http_pool_turn(c->pool, TURN_MAX_US);
        errands_collect(c);
    }
    waits_end(c, 0, NULL, INT64_MAX);
    return NULL;
}

/* ---- life ---- */

enum hf_status checkout_new(const struct checkout_config *config, struct checkout **ret,
                            struct hf_err *err)
{
    if (config->stripe.secret_key && !stripe_check_config(&config->stripe, err))
        return HF_INVALID_REQUEST;
    struct checkout *c = secret_alloc(sizeof *c); /* its config has secrets */
    c->config = *config;
    (void)snprintf(c->actor, sizeof c->actor, ACTOR_PROVIDER "%s",
                   config->provider ? config->provider : "none");
    c->last_wait = &c->first_wait;
    c->taken = hf_alloc(3 * WORKS_MAX * sizeof *c->taken);
    c->take.checkout = c;
    random_init_system(&c->random);
    pthread_mutex_init(&c->lock, NULL);
    c->pool = http_pool_new(&(struct http_client_options){
        .timeout_ms = STRIPE_TIMEOUT_MS,
        .body_len_max = STRIPE_BODY_LEN_MAX,
        .connections_max = WORKS_MAX,
    });
    checkout_register_metrics(c);
    *ret = c;
    return HF_OK;
}

enum hf_status checkout_start(struct checkout *c, struct engine *engine, struct hf_err *err)
{
    c->engine = engine;
    pthread_mutex_lock(&c->lock);
    c->is_running = true;
    pthread_mutex_unlock(&c->lock);
    atomic_store(&c->is_woken, true); /* what an earlier process has left */
    if (pthread_create(&c->thread, NULL, payment_main, c) == 0)
        return HF_OK;
    c->is_running = false;
    return hf_err_set(err, HF_INTERNAL, "cannot start a thread");
}

void checkout_stop(struct checkout *c)
{
    if (!c || !c->is_running)
        return;
    pthread_mutex_lock(&c->lock);
    c->is_stopping = true;
    pthread_mutex_unlock(&c->lock);
    http_pool_wake(c->pool);
    pthread_join(c->thread, NULL);
    c->is_running = false;
}

void checkout_free(struct checkout *c)
{
    if (!c)
        return;
    checkout_stop(c);
    http_pool_free(c->pool);
    work_drop_all(c);
    signature_secrets_close(&c->config.webhook_secrets);
    signature_secrets_close(&c->config.notify_secrets);
    pthread_mutex_destroy(&c->lock);
    free(c->cancelling.errands);
    vec_close(&c->cancelling.page.finished);
    free(c->taken);
    vec_close(&c->postponed);
    vec_close(&c->inbox);
    secret_free(c, sizeof *c);
}

bool checkout_takes_at_once(const struct checkout *c)
{
    return c->config.stripe.secret_key && !c->config.rate;
}

/* Keeps jobs that create intents for the payment thread, which need not take them then. */
static size_t hand_over(struct checkout *c, const struct job_row *jobs, size_t n)
{
    size_t kept = 0;
    pthread_mutex_lock(&c->lock);
    for (size_t i = 0; i < n; i++)
        if (jobs[i].kind == JOB_CREATE && c->inbox.n < INBOX_MAX) {
            *vec_push(&c->inbox) = jobs[i];
            kept++;
        }
    pthread_mutex_unlock(&c->lock);
    return kept;
}

void checkout_jobs_made(void *checkout, const struct job_row *jobs, size_t n)
{
    struct checkout *c = checkout;
    size_t kept = n && checkout_takes_at_once(c) ? hand_over(c, jobs, n) : 0;
    bool was_woken = kept && kept == n ? false : atomic_exchange(&c->is_woken, true);
    if (!was_woken)
        http_pool_wake(c->pool);
}

const struct checkout_config *checkout_settings(const struct checkout *c) { return &c->config; }

const char *checkout_actor(const struct checkout *c) { return c->actor; }
