/* Start, stop, and the calls of HTTP threads.  engine_refuse is the hottest code of the program:
 * most clicks on a wanted seat end there, on the thread that read them, without a lock. */
#include "engine/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/wait.h"
#include "engine/engine_internal.h"
#include "engine/follow.h"
#include "engine/load.h"
#include "engine/read.h"
#include "engine/reconcile.h"

#define QUEUE_LEN_MAX 16384
#define BATCH_LEN_MAX 1024
#define WORKER_CACHE_KIB 8192
#define FIRST_READER 4 /* threads before the readers: loader, keeper, drawer, preparer */
#define FIRST_WORKER (FIRST_READER + READERS + 1)
#define REFUSE_MARGIN_MS 250 /* a hold that ends sooner is no reason to refuse from the view */
/* Where other servers write too, a view that has not been compared with the ledger for this long
 * is not used to refuse a request. */
#define FRESH_MS 1000

/* ---- for HTTP threads ---- */

bool engine_is_shared(const struct engine *e) { return e->has_others; }

/* Are too few places left, with no hold about to run out that could bring some back? */
static bool is_sold_out(const struct engine *e, const struct event *event, struct hold_create *op,
                        int64_t now)
{
    const struct worker *w = &e->workers[event->def->id.key % e->n_workers];
    struct shortage *s = &op->shortage;
    bool soon =
        atomic_load_explicit(&w->first_due_ms, memory_order_relaxed) < now + REFUSE_MARGIN_MS;
    if (soon)
        return false;
    for (uint32_t i = 0; i < op->n_areas; i++) {
        s->available =
            atomic_load_explicit(&event->areas[op->areas[i].area].available, memory_order_relaxed);
        s->short_area = op->areas[i].area;
        if (s->available < op->areas[i].quantity)
            return true;
    }
    s->available = atomic_load_explicit(&event->shown.counts[SEAT_AVAILABLE], memory_order_relaxed);
    s->short_area = -1;
    /* For some seats only, `available` would have to be another number. */
    bool anywhere =
        op->best.section < 0 && !op->best.tier && !op->best.category && !op->best.accessible;
    return op->best.quantity && anywhere && s->available < op->best.quantity;
}

/* Is what the view shows at most a second old? */
static bool is_fresh(const struct engine *e, const struct event *event, int64_t now)
{
    return !e->has_others ||
           now - atomic_load_explicit(&event->sync.confirmed_ms, memory_order_relaxed) < FRESH_MS;
}

/* Lists the seats that are taken.  Returns true if one of them is certain to stay taken. */
static bool is_taken(const struct event *event, struct hold_create *op, int64_t now)
{
    struct shortage *s = &op->shortage;
    bool certain = false;
    s->n_taken = 0;
    for (uint32_t i = 0; i < op->n_seats; i++) {
        uint64_t shown = seat_shown(event, op->seats[i]);
        enum seat_status status = seat_shown_status(shown);
        int64_t left_ms = seat_shown_until(shown) - now;
        if (status == SEAT_AVAILABLE || (status == SEAT_HELD && left_ms <= 0))
            continue;
        s->taken[s->n_taken++] = op->seats[i];
        certain |= status != SEAT_HELD || left_ms >= REFUSE_MARGIN_MS;
    }
    return certain;
}

/* Is the event plainly on sale?  If it is not, the worker says why. */
static bool is_on_sale(const struct event *e, int64_t now)
{
    int64_t opens_at = atomic_load_explicit(&e->shown.sales_open_at, memory_order_relaxed);
    int64_t end = atomic_load_explicit(&e->shown.sales_end, memory_order_relaxed);
    return atomic_load_explicit(&e->shown.status, memory_order_relaxed) == EVENT_OPEN &&
           now >= opens_at && (!end || now < end);
}

bool engine_refuse(struct engine *e, struct command *c)
{
    struct hold_create *op = &c->create;
    int64_t now = c->now = engine_now_ms(e);
    if (op->channel || op->resume || !is_fresh(e, c->event, now) || !is_on_sale(c->event, now))
        return false;
    if ((op->n_areas || op->best.quantity) && is_sold_out(e, c->event, op, now) &&
        !engine_key_maybe(e, &c->key)) {
        c->verdict = VERDICT_SOLD_OUT;
        counter_add(e->metrics.requests_view_sold_out, 1);
        return true;
    }
    /* The key is looked up after the seats: the request that took them put its key into the
     * filter before the view showed them as taken. */
    if (!is_taken(c->event, op, now) || engine_key_maybe(e, &c->key))
        return false;
    c->verdict = VERDICT_SEAT_TAKEN;
    counter_add(e->metrics.requests_view_taken, 1);
    engine_note_heat(c);
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
    case CMD_PAYMENT_FIND:
    case CMD_KEY_GET:
    case CMD_WAIT_GET:
        return lane_put(&e->read, c);
    case CMD_JOBS_TAKE:
        return lane_put(&e->jobs, c);
    case CMD_HOLD_LIST:
    case CMD_BOOKING_LIST:
    case CMD_AUDIT_LIST:
    case CMD_SEAT_GET:
    case CMD_REFUND_LIST:
    case CMD_NOTICE_LIST:
    case CMD_WAIT_LIST:
    case CMD_CANCEL_LIST:
    case CMD_EVENT_PROGRESS:
    case CMD_EVENT_HEAT:
    case CMD_EVENT_REVENUE:
    case CMD_MAP_PAST:
        return lane_put(&e->search, c);
    case CMD_SNAPSHOT:
        return lane_put(&e->draw, c);
    case CMD_PREPARE:
        return lane_put(&e->prepare, c);
    default:
        return lane_put(&engine_worker(e, c->event ? c->event->def->id.key : 0)->work, c);
    }
}

bool engine_turned(struct engine *e)
{
    for (int i = 0; i < e->n_workers; i++)
        if (atomic_load_explicit(&e->workers[i].turns, memory_order_relaxed) == e->turns_seen[i])
            return false;
    for (int i = 0; i < e->n_workers; i++)
        e->turns_seen[i] = atomic_load_explicit(&e->workers[i].turns, memory_order_relaxed);
    return true;
}

bool engine_ready_for_reads(struct engine *e)
{
    return engine_ready(e, NULL, 0) ||
           atomic_load_explicit(&e->events_loaded, memory_order_relaxed) > 0;
}

/* Sets the metrics that are known only when somebody asks. */
static void collect(void *context)
{
    struct engine *e = context;
    size_t longest = 0;
    for (int i = 0; i < e->n_workers; i++) {
        size_t len = lane_len(&e->workers[i].work);
        longest = len > longest ? len : longest;
    }
    gauge_set(e->metrics.queue_depth, (int64_t)longest);
    gauge_set(e->metrics.events_loaded, atomic_load(&e->events_loaded));
    gauge_set(e->metrics.events_bytes, atomic_load(&e->events_bytes));
    gauge_set(e->metrics.ledger_up, engine_ready(e, NULL, 0));
    if (e->metrics.gate_up)
        gauge_set(e->metrics.gate_up, engine_gate_up(e));
}

static void register_metrics(struct engine *e)
{
    struct metrics *m = e->config.metrics;
    engine_metrics_register(&e->metrics, m, e->has_others);
    gauge_set(metrics_gauge(m, "holdfast_queue_capacity", NULL,
                            "Commands that a worker's queue takes before requests get 503"),
              (int64_t)e->config.queue_len_max);
    e->metrics.ledger_up =
        metrics_gauge(m, "holdfast_ledger_up", NULL, "1 while the ledger can be written");
    if (e->config.gate_url)
        e->metrics.gate_up = metrics_gauge(m, "holdfast_gate_up", NULL, "1 while the gate answers");
    metrics_collector(m, METRICS_AT_RENDER, collect, e);
}

/* ---- start and stop ---- */

static void add_key(void *ctx, const uint8_t *hash)
{
    struct engine *e = ctx;
    key_filter_add(&e->filter, hash, e->filter.turned_at);
}

/* Opens the connections of all threads.  After a failure engine_stop closes those that are open. */
static enum hf_status open_connections(struct engine *e, struct hf_err *err)
{
    const char *url = e->config.ledger_url;
    struct db_options reader = engine_db_options(e), writer = reader, keeper = reader;
    writer.writer = true;
    writer.cache_kib = WORKER_CACHE_KIB;
    keeper.hurry = &e->keeper.hurry;
    enum hf_status status = ledger_open(url, &writer, &e->workers[0].ledger, err);
    if (status != HF_OK)
        return status;
    e->has_others = ledger_has_others(e->workers[0].ledger);
    if (e->has_others)
        e->n_workers = e->config.workers ? e->config.workers : WORKERS_MAX;
    for (int i = 1; i < e->n_workers; i++) {
        status = ledger_join(url, &writer, &e->workers[i].ledger, err);
        if (status != HF_OK)
            return status;
    }
    status = ledger_join(url, &reader, &e->loader, err);
    if (status != HF_OK)
        return status;
    status = ledger_join(url, &keeper, &e->keeper.ledger, err);
    if (status != HF_OK)
        return status;
    for (int i = 0; i <= JOBS_READER;
         i++) { /* where servers share the ledger, this one leases jobs */
        status = ledger_join(url, i == JOBS_READER && e->has_others ? &writer : &reader,
                             &e->readers[i], err);
        if (status != HF_OK)
            return status;
    }
    return HF_OK;
}

/* Reads what the engine knows before its threads run: the time, and which keys are stored. */
static enum hf_status open_ledger(struct engine *e, struct hf_err *err)
{
    int64_t now = 0;
    enum hf_status status = open_connections(e, err);
    if (status != HF_OK)
        return status;
    struct ledger *l = e->workers[0].ledger;
    status = ledger_now(l, &now, err);
    if (status != HF_OK)
        return status;
    e->contact_ms = clock_boot_us(e->config.clock) / 1000;
    e->now_offset_ms = now - e->contact_ms;
    e->workers[0].noted_ms = now;
    key_filter_init(&e->filter, now);
    if (!e->has_others) {
        status = ledger_keys_each(l, now, add_key, e, err);
        if (status != HF_OK)
            return status;
    }
    return ledger_probe(l, 0, err);
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
    if (e->config.gate_url && gate_shows_password(e->workers[0].gate))
        log_write(LOG_WARN, "the gate's password goes over the network as it is; use rediss://",
                  NULL);
    e->gate_up = e->config.gate_url && gate_ping(e->workers[0].gate, &fault) == HF_DONE;
    if (e->config.gate_url && !e->gate_up)
        log_write(LOG_WARN, "the gate does not answer; going on without it", "why", fault.msg,
                  NULL);
    return HF_OK;
}

/* A thread and what it runs on.  Workers come last, so that they are there for all the others. */
struct thread {
    pthread_t *thread;
    void *(*main)(void *);
    void *arg;
};
#define THREADS_MAX (FIRST_WORKER + WORKERS_MAX)

/* The one thread that does what takes longer than an HTTP thread may: the bodies of new events
 * become commands, and plans become documents.  It touches neither the view nor a database by
 * itself. */
static void *preparer_main(void *arg)
{
    struct engine *e = arg;
    struct command *c;
    size_t n;
    while ((n = lane_take(&e->prepare, &c, 1, INT32_MAX)) != LANE_CLOSED) {
        if (!n)
            continue;
        c->prepare.run(c->prepare.context);
        c->verdict = VERDICT_OK;
        engine_finish(c);
    }
    return NULL;
}

static int list_threads(struct engine *e, struct thread *ret)
{
    int n = 0;
    ret[n++] = (struct thread){&e->loader_thread, loader_main, e};
    ret[n++] = (struct thread){&e->keeper.thread, keeper_main, e};
    ret[n++] = (struct thread){&e->drawer_thread, drawer_main, e};
    ret[n++] = (struct thread){&e->preparer_thread, preparer_main, e};
    for (int i = 0; i <= JOBS_READER; i++)
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

enum hf_status engine_open(const struct engine_config *config, struct engine **ret,
                           struct hf_err *err)
{
    struct engine *e = hf_alloc(sizeof *e);
    e->config = *config;
    if (!e->config.queue_len_max)
        e->config.queue_len_max = QUEUE_LEN_MAX;
    if (!e->config.batch_len_max)
        e->config.batch_len_max = BATCH_LEN_MAX;
    hf_check(e->config.batch_len_max * 2 <= KEYS_STORED_SLOTS);
    hf_check(e->config.workers <= WORKERS_MAX);
    e->n_workers = 1;
    lane_init(&e->read, e->config.queue_len_max);
    lane_init(&e->search, e->config.queue_len_max);
    lane_init(&e->jobs, e->config.queue_len_max);
    lane_init(&e->load, e->config.queue_len_max);
    lane_init(&e->draw, e->config.queue_len_max);
    lane_init(&e->prepare, e->config.queue_len_max);
    pthread_mutex_init(&e->lock, NULL);
    keeper_init(&e->keeper);
    enum hf_status status = open_ledger(e, err);
    for (int i = 0; i < e->n_workers; i++)
        worker_init(&e->workers[i], e, i);
    if (status == HF_OK)
        status = open_gates(e, err);
    if (status != HF_OK) {
        engine_stop(e);
        return status;
    }
    register_metrics(e);
    log_warnings(e);
    e->started_ms = engine_now_ms(e);
    *ret = e;
    return HF_OK;
}

enum hf_status engine_start(const struct engine_config *config, struct engine **ret,
                            struct hf_err *err)
{
    struct engine *e;
    enum hf_status status = engine_open(config, &e, err);
    if (status != HF_OK)
        return status;
    status = start_threads(e, err);
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
    atomic_store(&e->give_up_us, wait_now_us() + ms * 1000);
    reconciler_ask_to_stop(e);
}

/* Threads that give the workers something to do stop first, then the workers. */
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
    lane_close(&e->jobs);
    lane_close(&e->draw);
    lane_close(&e->prepare);
    pthread_mutex_lock(&e->lock);
    e->stopping = true;
    pthread_mutex_unlock(&e->lock);
    keeper_stop(&e->keeper);
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
    for (int i = 0; i <= JOBS_READER; i++)
        ledger_close(e->readers[i]);
    ledger_close(e->loader);
    keeper_close(&e->keeper);
    for (int i = e->n_workers; i-- > 0;) /* the first worker's view counts addresses for all */
        worker_close(&e->workers[i]);
    key_filter_close(&e->filter);
    lane_destroy(&e->read);
    lane_destroy(&e->search);
    lane_destroy(&e->jobs);
    lane_destroy(&e->load);
    lane_destroy(&e->draw);
    lane_destroy(&e->prepare);
    pthread_mutex_destroy(&e->lock);
    free(e);
}
