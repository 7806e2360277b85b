/* Start, stop and the calls of HTTP threads.  engine_refuse is the hottest code there is: most
 * clicks on a wanted seat end there, on the thread that read them, without a lock. */
#include "engine/engine.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "engine/internal.h"

#define QUEUE_LEN_MAX 16384
#define BATCH_LEN_MAX 1024
#define WORKER_CACHE_KIB 65536
#define FIRST_READER 4 /* threads before the readers: worker, loader, keeper, drawer */

/* ---- for HTTP threads ---- */

struct view *engine_view(struct engine *e) { return e->view; }

int64_t engine_now_ms(const struct engine *e)
{
    return clock_boot_us(e->config.clock) / 1000 +
           atomic_load_explicit(&e->now_offset_ms, memory_order_relaxed);
}

/* Too few places are left, and no hold runs out soon that could bring some back. */
static bool is_sold_out(const struct engine *e, struct command *c, int64_t now)
{
    const struct event *event = c->event;
    bool soon =
        atomic_load_explicit(&e->first_due_ms, memory_order_relaxed) < now + REFUSE_MARGIN_MS;
    if (soon)
        return false;
    for (uint32_t i = 0; i < c->n_areas; i++) {
        c->available =
            atomic_load_explicit(&event->areas[c->areas[i].area].available, memory_order_relaxed);
        c->short_area = c->areas[i].area;
        if (c->available < c->areas[i].quantity)
            return true;
    }
    c->available = atomic_load_explicit(&event->counts[SEAT_AVAILABLE], memory_order_relaxed);
    c->short_area = -1;
    bool anywhere = c->best.section < 0 && !c->best.tier; /* else `available` is another number */
    return c->best.quantity && anywhere && c->available < c->best.quantity;
}

bool engine_key_maybe(const struct engine *e, const struct command *c)
{
    return c->has_key && key_filter_maybe(&e->filter, c->key_hash);
}

bool engine_refuse(struct engine *e, struct command *c)
{
    int64_t now = engine_now_ms(e);
    bool sure = false;
    c->n_taken = 0;
    c->now = now;
    if (atomic_load_explicit(&c->event->status, memory_order_relaxed) == EVENT_CLOSED)
        return false;
    if ((c->n_areas || c->best.quantity) && is_sold_out(e, c, now) && !engine_key_maybe(e, c)) {
        c->status = HF_SOLD_OUT;
        counter_add(e->metrics.requests_view_sold_out, 1);
        return true;
    }
    for (uint32_t i = 0; i < c->n_seats; i++) {
        uint64_t shown = seat_shown(c->event, c->seats[i]);
        enum seat_status status = seat_shown_status(shown);
        int64_t left_ms = seat_shown_until(shown) - now;
        if (status == SEAT_AVAILABLE || (status == SEAT_HELD && left_ms <= 0))
            continue;
        c->taken[c->n_taken++] = c->seats[i];
        sure |= status != SEAT_HELD || left_ms >= REFUSE_MARGIN_MS;
    }
    /* Asked after the seats: whoever took them put the key into the filter before showing them. */
    if (!sure || engine_key_maybe(e, c))
        return false;
    c->status = HF_SEAT_TAKEN;
    counter_add(e->metrics.requests_view_taken, 1);
    return true;
}

enum hf_status engine_submit(struct engine *e, struct command *c)
{
    c->submitted_us = clock_monotonic_us(e->config.clock);
    switch (c->kind) {
    case CMD_EVENT_LOAD:
    case CMD_EVENT_LIST:
        return lane_put(&e->load, c);
    case CMD_HOLD_GET:
    case CMD_BOOKING_GET:
        return lane_put(&e->read, c);
    case CMD_HOLD_LIST:
    case CMD_AUDIT_LIST:
    case CMD_SEAT_GET:
        return lane_put(&e->search, c);
    case CMD_SNAPSHOT:
        return lane_put(&e->draw, c);
    default:
        return lane_put(&e->work, c);
    }
}

bool engine_ready(struct engine *e, char *why, size_t why_size)
{
    bool ready = atomic_load_explicit(&e->ready, memory_order_acquire);
    if (!ready && why_size) {
        pthread_mutex_lock(&e->lock);
        size_t len = strnlen(e->why, why_size - 1);
        memcpy(why, e->why, len);
        why[len] = '\0';
        pthread_mutex_unlock(&e->lock);
    }
    return ready;
}

/* ---- for the engine's threads ---- */

void engine_finish(struct engine *e, struct command *c)
{
    if (c->internal)
        free(c);
    else
        (c->done ? c->done : e->config.done)(c);
}

void engine_set_ready(struct engine *e, bool ready, const char *why)
{
    if (atomic_load_explicit(&e->ready, memory_order_relaxed) == ready)
        return;
    pthread_mutex_lock(&e->lock);
    if (why) {
        size_t len = strnlen(why, sizeof e->why - 1);
        memcpy(e->why, why, len);
        e->why[len] = '\0';
    }
    atomic_store_explicit(&e->ready, ready, memory_order_release);
    pthread_mutex_unlock(&e->lock);
    if (ready)
        log_write(LOG_INFO, "the ledger answers again", NULL);
}

void engine_wants_checkpoint(struct engine *e)
{
    pthread_mutex_lock(&e->lock);
    e->checkpoint_due = true;
    pthread_cond_signal(&e->keeper_wake);
    pthread_mutex_unlock(&e->lock);
}

/* The keeper copies SQLite's log into the main file beside the worker, so no commit waits for it.
 */
static void *keeper_main(void *arg)
{
    struct engine *e = arg;
    struct hf_err err;
    pthread_mutex_lock(&e->lock);
    while (!e->stopping) {
        if (!e->checkpoint_due) {
            pthread_cond_wait(&e->keeper_wake, &e->lock);
            continue;
        }
        e->checkpoint_due = false;
        pthread_mutex_unlock(&e->lock);
        if (ledger_maintain(e->keeper, &err) != HF_OK)
            log_write(LOG_WARN, "checkpoint failed", "why", err.msg, NULL);
        pthread_mutex_lock(&e->lock);
    }
    pthread_mutex_unlock(&e->lock);
    return NULL;
}

/* ---- start and stop ---- */

static void register_metrics(struct engine *e)
{
    struct metrics *m = e->config.metrics;
    struct engine_metrics *em = &e->metrics;
    const char *name = "holdfast_hold_requests_total", *help = "Requests for a hold, by outcome";
    em->requests_view_taken = metrics_counter(m, name, "result=\"taken\",by=\"view\"", help);
    em->requests_view_sold_out = metrics_counter(m, name, "result=\"sold_out\",by=\"view\"", help);
    em->requests[RESULT_GRANTED] =
        metrics_counter(m, name, "result=\"granted\",by=\"ledger\"", help);
    em->requests[RESULT_TAKEN] = metrics_counter(m, name, "result=\"taken\",by=\"ledger\"", help);
    em->requests[RESULT_SOLD_OUT] =
        metrics_counter(m, name, "result=\"sold_out\",by=\"ledger\"", help);
    em->requests[RESULT_ERROR] = metrics_counter(m, name, "result=\"error\",by=\"ledger\"", help);
    em->hold_seconds =
        metrics_histogram(m, "holdfast_hold_seconds", "Time from queueing a hold to its answer",
                          1e-6, histogram_seconds, histogram_seconds_len);
    em->holds_active = metrics_gauge(m, "holdfast_holds_active", NULL, "Live holds in the view");
    em->holds_expired =
        metrics_counter(m, "holdfast_holds_expired_total", NULL, "Holds that ran out");
    em->renewals_ok =
        metrics_counter(m, "holdfast_renewals_total", "result=\"renewed\"", "Renewals, by outcome");
    em->renewals_refused =
        metrics_counter(m, "holdfast_renewals_total", "result=\"refused\"", "Renewals, by outcome");
    em->sale_conflicts = metrics_counter(m, "holdfast_sale_conflicts_total", NULL,
                                         "Sales the unique key of sold seats refused");
    em->bookings_confirmed = metrics_counter(m, "holdfast_bookings_total", "status=\"confirmed\"",
                                             "Bookings, by status reached");
    em->batch_commands = metrics_histogram(m, "holdfast_batch_commands", "Commands in a batch", 1,
                                           histogram_sizes, histogram_sizes_len);
    em->commit_seconds = metrics_histogram(m, "holdfast_commit_seconds", "Time of a COMMIT", 1e-6,
                                           histogram_seconds, histogram_seconds_len);
    em->queue_depth =
        metrics_gauge(m, "holdfast_queue_depth", NULL, "Commands queued when a batch was taken");
    em->surprises = metrics_counter(m, "holdfast_ledger_surprises_total", NULL,
                                    "Times the ledger and the view disagreed; expected 0");
}

static void add_key(void *ctx, const uint8_t *hash)
{
    struct engine *e = ctx;
    key_filter_add(&e->filter, hash, e->filter.turned_at);
}

static enum hf_status open_ledgers(struct engine *e, struct hf_err *err)
{
    const char *url = e->config.ledger_url;
    struct db_options writer = {
        .clock = e->config.clock, .writer = true, .cache_kib = WORKER_CACHE_KIB};
    struct db_options reader = {.clock = e->config.clock};
    struct db_options keeper = {.clock = e->config.clock, .paced = true};
    int64_t now = 0;
    enum hf_status status = ledger_open(url, &writer, &e->worker.ledger, err);
    if (status == HF_OK)
        status = ledger_open(url, &reader, &e->loader, err);
    if (status == HF_OK)
        status = ledger_open(url, &keeper, &e->keeper, err);
    for (int i = 0; i < READERS && status == HF_OK; i++)
        status = ledger_open(url, &reader, &e->readers[i], err);
    if (status == HF_OK)
        status = ledger_now(e->worker.ledger, &now, err);
    if (status != HF_OK)
        return status;
    e->now_offset_ms = now - clock_boot_us(e->config.clock) / 1000;
    e->worker.noted_ms = now;
    key_filter_init(&e->filter, now);
    status = ledger_keys_each(e->worker.ledger, now, add_key, e, err);
    return status == HF_OK ? ledger_probe(e->worker.ledger, err) : status;
}

static void worker_init(struct engine *e)
{
    struct worker *w = &e->worker;
    size_t n = e->config.batch_len_max;
    w->engine = e;
    if (e->config.random_seed)
        random_init_seeded(&w->random, e->config.random_seed);
    else
        random_init_system(&w->random);
    w->decision.view = e->view;
    w->decision.random = &w->random;
    w->decision.client_places_max = e->config.public_places_max;
    w->commands = hf_alloc(n * sizeof(struct command *));
    w->deferred = hf_alloc(n * sizeof(struct command *));
    w->stored = hf_alloc(n * sizeof *w->stored);
}

static enum hf_status start_threads(struct engine *e, struct hf_err *err)
{
    struct {
        pthread_t *thread;
        void *(*main)(void *);
    } threads[FIRST_READER + READERS] = {{&e->worker_thread, worker_main},
                                         {&e->loader_thread, loader_main},
                                         {&e->keeper_thread, keeper_main},
                                         {&e->drawer_thread, drawer_main}};
    for (int i = 0; i < READERS; i++) {
        threads[FIRST_READER + i].thread = &e->reader_threads[i];
        threads[FIRST_READER + i].main = reader_main;
    }
    for (int i = 0; i < FIRST_READER + READERS; i++, e->threads_running++)
        if (pthread_create(threads[i].thread, NULL, threads[i].main, e) != 0)
            return hf_err_set(err, HF_INTERNAL, "cannot start a thread");
    return HF_OK;
}

enum hf_status engine_start(const struct engine_config *config, struct engine **ret,
                            struct hf_err *err)
{
    struct engine *e = hf_alloc(sizeof *e);
    e->config = *config;
    if (!e->config.queue_len_max)
        e->config.queue_len_max = QUEUE_LEN_MAX;
    if (!e->config.batch_len_max)
        e->config.batch_len_max = BATCH_LEN_MAX;
    hf_check(e->config.batch_len_max * 2 <= KEYS_GRANTED_SLOTS);
    e->view = view_new();
    e->ready = true;
    e->first_due_ms = INT64_MAX;
    lane_init(&e->work, e->config.queue_len_max);
    lane_init(&e->read, e->config.queue_len_max);
    lane_init(&e->search, e->config.queue_len_max);
    lane_init(&e->load, e->config.queue_len_max);
    lane_init(&e->draw, e->config.queue_len_max);
    pthread_mutex_init(&e->lock, NULL);
    pthread_cond_init(&e->keeper_wake, NULL);
    worker_init(e);
    enum hf_status status = open_ledgers(e, err);
    if (status == HF_OK) {
        register_metrics(e);
        status = start_threads(e, err);
    }
    if (status != HF_OK) {
        engine_stop(e);
        return status;
    }
    *ret = e;
    return HF_OK;
}

/* Loader and readers first, since what they finish may pass through the worker; then the worker. */
void engine_drain(struct engine *e)
{
    if (e->stopping)
        return;
    lane_close(&e->load);
    lane_close(&e->read);
    lane_close(&e->search);
    lane_close(&e->draw);
    if (e->threads_running > 1)
        pthread_join(e->loader_thread, NULL);
    if (e->threads_running > 3)
        pthread_join(e->drawer_thread, NULL);
    for (int i = 0; i < READERS && e->threads_running > FIRST_READER + i; i++)
        pthread_join(e->reader_threads[i], NULL);
    lane_close(&e->work);
    if (e->threads_running > 0) {
        pthread_join(e->worker_thread, NULL);
        worker_note_time(&e->worker);
    }
    pthread_mutex_lock(&e->lock);
    e->stopping = true;
    pthread_cond_signal(&e->keeper_wake);
    pthread_mutex_unlock(&e->lock);
    if (e->threads_running > 2)
        pthread_join(e->keeper_thread, NULL);
}

void engine_stop(struct engine *e)
{
    if (!e)
        return;
    engine_drain(e);
    for (int i = 0; i < READERS; i++)
        ledger_close(e->readers[i]);
    ledger_close(e->loader);
    ledger_close(e->keeper);
    ledger_close(e->worker.ledger);
    decide_close(&e->worker.decision);
    for (size_t i = 0; i < e->config.batch_len_max; i++)
        key_row_close(&e->worker.stored[i]);
    free(e->worker.commands);
    free(e->worker.deferred);
    free(e->worker.stored);
    key_filter_close(&e->filter);
    view_free(e->view);
    lane_destroy(&e->work);
    lane_destroy(&e->read);
    lane_destroy(&e->search);
    lane_destroy(&e->load);
    lane_destroy(&e->draw);
    pthread_mutex_destroy(&e->lock);
    pthread_cond_destroy(&e->keeper_wake);
    free(e);
}
