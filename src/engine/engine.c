/* Start, stop and the calls of HTTP threads.  engine_refuse is the hottest code there is: most
 * clicks on a wanted seat end there, on the thread that read them, without a lock. */
#include "engine/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "engine/internal.h"

#define QUEUE_LEN_MAX 16384
#define BATCH_LEN_MAX 1024
#define WORKER_CACHE_KIB 65536
#define FIRST_READER 3 /* threads before the readers: loader, keeper, drawer */
#define FIRST_WORKER (FIRST_READER + READERS)

/* ---- for HTTP threads ---- */

struct event *engine_event(const struct engine *e, int64_t event)
{
    return event > 0 ? view_event(e->workers[event % e->n_workers].view, event) : NULL;
}

int64_t engine_now_ms(const struct engine *e)
{
    return clock_boot_us(e->config.clock) / 1000 +
           atomic_load_explicit(&e->now_offset_ms, memory_order_relaxed);
}

/* Too few places are left, and no hold runs out soon that could bring some back. */
static bool is_sold_out(const struct engine *e, struct command *c, int64_t now)
{
    const struct event *event = c->event;
    const struct worker *w = &e->workers[event->def->id.key % e->n_workers];
    bool soon =
        atomic_load_explicit(&w->first_due_ms, memory_order_relaxed) < now + REFUSE_MARGIN_MS;
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

/* Another server may have stored it a moment ago: only the ledger knows. */
bool engine_key_maybe(const struct engine *e, const struct command *c)
{
    return c->has_key && (e->has_others || key_filter_maybe(&e->filter, c->key_hash));
}

/* Is what the view shows the truth, give or take a second? */
static bool is_fresh(const struct engine *e, const struct event *event, int64_t now)
{
    return !e->has_others ||
           now - atomic_load_explicit(&event->confirmed_ms, memory_order_relaxed) < FRESH_MS;
}

bool engine_refuse(struct engine *e, struct command *c)
{
    int64_t now = engine_now_ms(e);
    bool sure = false;
    c->n_taken = 0;
    c->now = now;
    if (!is_fresh(e, c->event, now))
        return false;
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
        return lane_put(&engine_worker(e, c->event ? c->event->def->id.key : 0)->work, c);
    }
}

bool engine_ready(struct engine *e, char *why, size_t why_size)
{
    bool ready = atomic_load_explicit(&e->n_failing, memory_order_acquire) == 0;
    int64_t silent_ms = clock_boot_us(e->config.clock) / 1000 -
                        atomic_load_explicit(&e->contact_ms, memory_order_relaxed);
    if (e->has_others && silent_ms > CONTACT_MS) /* nobody has asked, and it would not answer */
        ready = false;
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

struct db_options engine_db_options(struct engine *e)
{
    return (struct db_options){
        .clock = e->config.clock, .reached_us = &e->reached_us, .give_up_us = &e->give_up_us};
}

bool engine_gave_up(const struct engine *e)
{
    int64_t at_us = atomic_load(&e->give_up_us);
    return at_us && clock_monotonic_us(&clock_system) >= at_us;
}

static void add_loaded(void *ctx, struct event *event)
{
    *vec_push(&((struct loaded *)ctx)->events) = event;
}

void engine_list_loaded(const struct engine *e, struct loaded *ret)
{
    for (int i = 0; i < e->n_workers; i++)
        view_each(e->workers[i].view, add_loaded, ret);
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
    em->requests_gate_taken = metrics_counter(m, name, "result=\"taken\",by=\"gate\"", help);
    em->requests_gate_sold_out = metrics_counter(m, name, "result=\"sold_out\",by=\"gate\"", help);
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
    em->conflicts = metrics_counter(m, "holdfast_ledger_conflicts_total", NULL,
                                    "Batches run again because of other servers' transactions");
    em->ledger_exchanges =
        metrics_counter(m, "holdfast_ledger_exchanges_total", NULL,
                        "Exchanges of batches with the ledger; SQLite: statements");
    em->gate_exchanges = metrics_counter(m, "holdfast_gate_exchanges_total", NULL,
                                         "Exchanges of batches with the gate");
    em->gate_errors =
        metrics_counter(m, "holdfast_gate_errors_total", NULL, "Times the gate did not answer");
    for (int i = 0; i < REPAIRS; i++) {
        char label[64];
        (void)snprintf(label, sizeof label, "kind=\"%s\"", repair_names[i]);
        em->repairs[i] = metrics_counter(m, "holdfast_reconcile_repairs_total", label,
                                         "What the reconciler put right, by kind");
    }
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
    struct db_options reader = engine_db_options(e), writer = reader, keeper = reader;
    writer.writer = true;
    writer.cache_kib = WORKER_CACHE_KIB;
    keeper.paced = true;
    int64_t now = 0;
    enum hf_status status = ledger_open(url, &writer, &e->workers[0].ledger, err);
    if (status != HF_OK)
        return status;
    e->has_others = ledger_has_others(e->workers[0].ledger);
    if (e->has_others)
        e->n_workers = e->config.workers ? e->config.workers : WORKERS_MAX;
    for (int i = 1; i < e->n_workers && status == HF_OK; i++)
        status = ledger_open(url, &writer, &e->workers[i].ledger, err);
    if (status == HF_OK)
        status = ledger_open(url, &reader, &e->loader, err);
    if (status == HF_OK)
        status = ledger_open(url, &keeper, &e->keeper, err);
    for (int i = 0; i < READERS && status == HF_OK; i++)
        status = ledger_open(url, &reader, &e->readers[i], err);
    if (status == HF_OK)
        status = ledger_now(e->workers[0].ledger, &now, err);
    if (status != HF_OK)
        return status;
    e->contact_ms = clock_boot_us(e->config.clock) / 1000;
    e->now_offset_ms = now - e->contact_ms;
    e->workers[0].noted_ms = now;
    key_filter_init(&e->filter, now);
    if (!e->has_others)
        status = ledger_keys_each(e->workers[0].ledger, now, add_key, e, err);
    return status == HF_OK ? ledger_probe(e->workers[0].ledger, err) : status;
}

static void log_warnings(struct engine *e)
{
    struct buf lines = {0};
    struct hf_err err;
    if (ledger_warnings(e->workers[0].ledger, &lines, &err) == HF_OK && lines.len) {
        buf_char(&lines, '\0');
        for (char *rest = lines.data, *line; (line = strsep(&rest, "\n"));)
            if (*line)
                log_write(LOG_WARN, "the ledger", "warning", line, NULL);
    }
    buf_close(&lines);
}

static enum hf_status open_gates(struct engine *e, struct hf_err *err)
{
    struct hf_fault fault = {0};
    for (int i = 0; e->config.gate_url && i < e->n_workers; i++)
        if (gate_open(e->config.gate_url, e->config.clock, GATE_TIMEOUT_MS, &e->workers[i].gate,
                      &fault) != HF_DONE)
            return hf_err_set(err, HF_INVALID_REQUEST, ENGINE_GATE_ERROR "%.200s", fault.msg);
    e->gate_up = e->config.gate_url && gate_ping(e->workers[0].gate, &fault) == HF_DONE;
    if (e->config.gate_url && !e->gate_up)
        log_write(LOG_WARN, "the gate does not answer; going on without it", "why", fault.msg,
                  NULL);
    return HF_OK;
}

static void worker_init(struct engine *e, int index)
{
    struct worker *w = &e->workers[index];
    size_t n = e->config.batch_len_max;
    w->engine = e;
    w->index = index;
    w->view = view_new();
    if (index)
        view_share_clients(w->view, e->workers[0].view);
    w->first_due_ms = INT64_MAX;
    lane_init(&w->work, e->config.queue_len_max);
    if (e->config.random_seed)
        random_init_seeded(&w->random, e->config.random_seed + (uint64_t)index);
    else
        random_init_system(&w->random);
    w->decision.view = w->view;
    w->decision.random = &w->random;
    w->decision.client_places_max = e->config.public_places_max;
    w->commands = hf_alloc(n * sizeof(struct command *));
    w->deferred = hf_alloc(n * sizeof(struct command *));
    w->late = hf_alloc(n * sizeof(struct command *));
    w->stored = hf_alloc(n * sizeof *w->stored);
}

static void worker_close(struct worker *w)
{
    if (!w->engine)
        return;
    ledger_close(w->ledger);
    gate_close(w->gate);
    decide_close(&w->decision);
    batch_read_close(&w->read);
    for (size_t i = 0; i < w->engine->config.batch_len_max; i++)
        key_row_close(&w->stored[i]);
    vec_close(&w->claims);
    vec_close(&w->claim_areas);
    vec_close(&w->claimed);
    vec_close(&w->gate_seats);
    vec_close(&w->gate_counts);
    free(w->commands);
    free(w->deferred);
    free(w->late);
    free(w->stored);
    view_free(w->view);
    lane_destroy(&w->work);
}

/* A thread and what it runs on; workers come last, so that they are there for all the others. */
struct thread {
    pthread_t *thread;
    void *(*main)(void *);
    void *arg;
};
#define THREADS_MAX (FIRST_READER + READERS + WORKERS_MAX)

static int list_threads(struct engine *e, struct thread *ret)
{
    int n = 0;
    ret[n++] = (struct thread){&e->loader_thread, loader_main, e};
    ret[n++] = (struct thread){&e->keeper_thread, keeper_main, e};
    ret[n++] = (struct thread){&e->drawer_thread, drawer_main, e};
    for (int i = 0; i < READERS; i++)
        ret[n++] = (struct thread){&e->reader_threads[i], reader_main, e};
    for (int i = 0; i < e->n_workers; i++)
        ret[n++] = (struct thread){&e->workers[i].thread, worker_main, &e->workers[i]};
    return n;
}

static enum hf_status start_threads(struct engine *e, struct hf_err *err)
{
    struct thread threads[THREADS_MAX];
    int n = list_threads(e, threads);
    enum hf_status status = e->has_others ? follower_start(e, err) : HF_OK;
    for (int i = 0; status == HF_OK && i < n; i++, e->threads_running++)
        if (pthread_create(threads[i].thread, NULL, threads[i].main, threads[i].arg) != 0)
            return hf_err_set(err, HF_INTERNAL, "cannot start a thread");
    return status == HF_OK && e->has_others ? reconciler_start(e, err) : status;
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
    hf_check(e->config.workers <= WORKERS_MAX);
    e->n_workers = 1;
    lane_init(&e->read, e->config.queue_len_max);
    lane_init(&e->search, e->config.queue_len_max);
    lane_init(&e->load, e->config.queue_len_max);
    lane_init(&e->draw, e->config.queue_len_max);
    pthread_mutex_init(&e->lock, NULL);
    pthread_cond_init(&e->keeper_wake, NULL);
    enum hf_status status = open_ledgers(e, err);
    for (int i = 0; i < e->n_workers; i++)
        worker_init(e, i);
    if (status == HF_OK)
        status = open_gates(e, err);
    if (status == HF_OK) {
        register_metrics(e);
        log_warnings(e);
        status = start_threads(e, err);
    }
    if (status != HF_OK) {
        engine_stop(e);
        return status;
    }
    *ret = e;
    return HF_OK;
}

static void join_up_to(struct engine *e, int *next, int last)
{
    struct thread threads[THREADS_MAX];
    int n = list_threads(e, threads);
    for (; *next < n && *next <= last && *next < e->threads_running; ++*next)
        pthread_join(*threads[*next].thread, NULL);
}

void engine_hurry(struct engine *e, int64_t ms)
{
    atomic_store(&e->give_up_us, clock_monotonic_us(&clock_system) + ms * 1000);
    reconciler_ask_to_stop(e);
}

/* Those who give the workers something to do first, then the workers one after the other, since a
 * list of events passes from each to the next. */
void engine_drain(struct engine *e)
{
    int next = 0;
    if (e->stopping)
        return;
    reconciler_stop(e);
    follower_stop(e);
    lane_close(&e->load);
    lane_close(&e->read);
    lane_close(&e->search);
    lane_close(&e->draw);
    pthread_mutex_lock(&e->lock);
    e->stopping = true;
    pthread_cond_signal(&e->keeper_wake);
    pthread_mutex_unlock(&e->lock);
    join_up_to(e, &next, FIRST_WORKER - 1);
    for (int i = 0; i < e->n_workers; i++) {
        lane_close(&e->workers[i].work);
        join_up_to(e, &next, FIRST_WORKER + i);
    }
    if (e->threads_running > FIRST_WORKER)
        worker_note_time(&e->workers[0]);
}

void engine_stop(struct engine *e)
{
    if (!e)
        return;
    engine_drain(e);
    follower_free(e);
    reconciler_free(e);
    for (int i = 0; i < READERS; i++)
        ledger_close(e->readers[i]);
    ledger_close(e->loader);
    ledger_close(e->keeper);
    for (int i = e->n_workers; i-- > 0;) /* the first one's view counts for all */
        worker_close(&e->workers[i]);
    key_filter_close(&e->filter);
    lane_destroy(&e->read);
    lane_destroy(&e->search);
    lane_destroy(&e->load);
    lane_destroy(&e->draw);
    pthread_mutex_destroy(&e->lock);
    pthread_cond_destroy(&e->keeper_wake);
    free(e);
}
