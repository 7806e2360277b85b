/* See cell.h.  The thread of the lock service:
 *
 *   turn:  take the inbox -> node_submit, node_gone -> node_next -> the journal works -> node_done
 *
 * Requests that come while the journal works gather in the inbox and become the next entry.
 *
 * Locks.  node_lock: the node, the topics' writing side and `is_stopped`.  The thread has it except
 * while the journal works and while it sleeps, so that cell_retire and cell_stop can answer every
 * request at once though the journal hangs.  The inbox has a lock of its own.  shown_lock: what
 * other threads see of the node.  Both are held for a few instructions and may be taken inside
 * node_lock.
 *
 * A request is lent to the cell from cell_submit until `answered` gives it back: the node's
 * pending_done comes here first.  Answers are given under node_lock, or by cell_submit itself. */
#include "cell/cell.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "base/log.h"
#include "base/wait.h"
#include "cell/cell_inbox.h"
#include "cell/cell_log.h"
#include "cell/cell_metrics.h"
#include "cell/topics.h"

#define QUEUE_MAX 16384
#define SLEEP_MIN_US 1000
#define SLEEP_MAX_US 100000
#define REOPEN_US 1000000     /* between two attempts to open a journal that is not reachable */
#define FIRST_WAIT_US 5000000 /* how long cell_start waits for the only server to lead */
#define GATHER_APPEND_US 1000 /* see gather_more: after a faster append it does not wait */
#define GATHER_MAX_US 5000    /* how long it waits at most, and at most for half an append */
#define GATHER_PAUSE 16       /* entries without it, after it was in vain */

/* What other threads may know of the node. */
struct shown {
    bool journal_answers;
    char master_url[CELL_URL_MAX + 1]; /* "": none is known, or this server is it */
    char why[256];
};

struct cell {
    struct cell_config config;
    char *journal_url, *url;
    const struct journal_driver *driver;
    struct cell_metrics metrics;
    struct topics *topics;
    struct random random; /* the node's */
    pthread_t thread;

    /* the thread's own */
    struct journal *journal; /* NULL: it could not be opened yet */
    struct hf_err open_err;  /* why */
    int64_t opened_us;       /* when it was last tried */
    struct node_status last; /* as last shown */
    int64_t deadlock_us;     /* see cell_log_deadlock */
    int64_t append_us;       /* how long the last call took, if it was an append; else 0 */
    int gather_pause;        /* entries until gather_more may wait again */

    pthread_mutex_t node_lock; /* of the next four */
    struct node *node;
    pthread_cond_t changed; /* the node's role, or that it is retired */
    size_t n_answered;      /* requests by the last call, without keep-alives */
    bool is_stopped;        /* every request has been answered, and the node is not run any more */

    struct cell_inbox inbox;

    struct lock shown_lock;
    struct shown shown;
    _Atomic enum node_role role; /* of the node, as last shown */
};

/* ---- answers ---- */

/* Gives a request back to its caller.  It may be gone when this returns. */
static void give_back(struct cell *c, struct cell_request *r)
{
    cell_inbox_end(&c->inbox, r);
    cell_metrics_answer(&c->metrics, r, clock_monotonic_us(c->config.clock) - r->submitted_us);
    r->pending = r->reply;
    pending_done(&r->pending);
}

/* The node has answered. */
static void answered(struct pending *pending)
{
    struct cell_request *r = (struct cell_request *)pending;
    struct cell *c = pending->waiter;
    c->n_answered += cell_inbox_is_queued(r);
    if (r->verdict.result == CELL_DEADLOCK)
        cell_log_deadlock(&r->verdict, clock_monotonic_us(c->config.clock), &c->deadlock_us);
    give_back(c, r);
}

/* The cell answers by itself. */
static void refuse(struct cell *c, struct cell_request *r, enum cell_result result)
{
    if (result == CELL_STOPPING) {
        lock_take(&c->shown_lock);
        memcpy(r->master_url, c->shown.master_url, sizeof r->master_url);
        lock_give(&c->shown_lock);
        if (*r->master_url)
            result = CELL_NO_MASTER; /* it has handed the mastership over */
    }
    r->verdict.result = result;
    give_back(c, r);
}

void cell_submit(struct cell *c, struct cell_request *r)
{
    r->reply = r->pending;
    r->pending = (struct pending){.done = answered, .waiter = c};
    r->submitted_us = clock_monotonic_us(c->config.clock);
    enum cell_result result = cell_inbox_put(&c->inbox, r);
    if (result != CELL_DONE)
        refuse(c, r, result);
}

void cell_gone(struct cell *c, struct cell_request *r) { cell_inbox_gone(&c->inbox, r); }

/* ---- what others see; with node_lock ---- */

static void on_effect(void *context, int64_t index, const struct cell_effect *e)
{
    topics_collect(((struct cell *)context)->topics, index, e);
}

static void on_change(void *context, enum node_role role)
{
    topics_lead(((struct cell *)context)->topics, role == NODE_LEADING);
}

static void show_shared(struct cell *c, const struct node_status *s)
{
    lock_take(&c->shown_lock);
    c->shown.journal_answers = s->journal_answers;
    (void)snprintf(c->shown.master_url, sizeof c->shown.master_url, "%s",
                   strcmp(s->master_url, c->url) == 0 ? "" : s->master_url);
    memcpy(c->shown.why, s->why, sizeof c->shown.why);
    lock_give(&c->shown_lock);
    atomic_store(&c->role, s->role);
}

/* Shows the node's state to other threads, in metrics and in the log. */
static void show(struct cell *c)
{
    struct node_status s;
    node_status(c->node, &s);
    cell_metrics_set(&c->metrics, &s,
                     c->journal && c->driver->syncs ? c->driver->syncs(c->journal) : -1);
    cell_metrics_grow(&c->metrics, &c->last.counts, &s.counts);
    cell_log_changes(&c->last, &s);
    if (s.role != c->last.role || s.journal_answers != c->last.journal_answers ||
        strcmp(s.master_url, c->last.master_url) != 0 || strcmp(s.why, c->last.why) != 0)
        show_shared(c, &s);
    if (s.role != c->last.role || node_is_retired(c->node))
        pthread_cond_broadcast(&c->changed);
    c->last = s;
}

/* ---- the journal ---- */

static void log_warnings(struct cell *c)
{
    struct buf lines = {0};
    struct hf_err err = {0};
    if (c->driver->warnings && c->driver->warnings(c->journal, &lines, &err) == HF_OK) {
        buf_char(&lines, '\0');
        for (char *rest = lines.data, *line; (line = strsep(&rest, "\n"));)
            if (*line)
                log_write(LOG_WARN, "the journal of the locks", "warning", line, NULL);
    }
    buf_close(&lines);
}

static enum hf_status open_journal(struct cell *c)
{
    const struct journal_options options = {.clock = c->config.clock,
                                            .may_lose = c->config.may_lose};
    c->opened_us = clock_monotonic_us(c->config.clock);
    c->open_err = (struct hf_err){0};
    enum hf_status status = c->driver->open(c->journal_url, &options, &c->journal, &c->open_err);
    if (status == HF_OK)
        log_warnings(c);
    return status;
}

static void run_call(struct cell *c, struct journal_call *call)
{
    int64_t begun_us = clock_monotonic_us(c->config.clock);
    c->append_us = 0;
    if (!c->journal && begun_us - c->opened_us >= REOPEN_US)
        (void)!open_journal(c);
    if (!c->journal) {
        call->result = JOURNAL_UNREACHABLE;
        call->err = c->open_err;
        return;
    }
    journal_run(c->journal, call);
    int64_t us = clock_monotonic_us(c->config.clock) - begun_us;
    if (call->op == JOURNAL_APPEND) {
        histogram_observe(c->metrics.append_seconds, us > 0 ? (uint64_t)us : 0);
        c->append_us = us;
    }
}

/* ---- the thread ---- */

/* Hands over what has come, and asks what to do.  Returns NULL if there is nothing to do before
 * *ret_sleep_us have passed. */
static struct journal_call *take_orders(struct cell *c, bool retires, int64_t *ret_sleep_us)
{
    struct journal_call *call = NULL;
    struct cell_request *r = cell_inbox_take(&c->inbox);
    *ret_sleep_us = SLEEP_MAX_US;
    pthread_mutex_lock(&c->node_lock);
    pending_batch_begin();
    if (retires && !c->is_stopped)
        node_retire(c->node);
    while (r) {
        struct cell_request *next = r->next;
        r->next = NULL;
        if (c->is_stopped)
            refuse(c, r, CELL_STOPPING);
        else
            node_submit(c->node, r);
        r = next;
    }
    while ((r = cell_inbox_take_gone(&c->inbox)))
        node_gone(c->node, r);
    if (!c->is_stopped) {
        call = node_next(c->node);
        *ret_sleep_us = node_wait_until_us(c->node) - clock_boot_us(c->config.clock);
        show(c);
    }
    pending_batch_end();
    pthread_mutex_unlock(&c->node_lock);
    return call;
}

/* Returns how many requests this has answered, without keep-alives. */
static size_t report_back(struct cell *c, struct journal_call *call)
{
    pthread_mutex_lock(&c->node_lock);
    c->n_answered = 0;
    pending_batch_begin();
    if (!c->is_stopped) {
        node_done(c->node, call);
        show(c);
        topics_publish(c->topics, c->last.index);
    }
    pending_batch_end();
    size_t n_answered = c->n_answered;
    pthread_mutex_unlock(&c->node_lock);
    return n_answered;
}

static void doze(struct cell *c, bool retires, int64_t sleep_us)
{
    if (sleep_us > SLEEP_MAX_US)
        sleep_us = SLEEP_MAX_US;
    if (sleep_us < SLEEP_MIN_US)
        sleep_us = SLEEP_MIN_US;
    cell_inbox_sleep(&c->inbox, retires, wait_now_us() + sleep_us);
}

/* Clients that ask again when they are answered would fall into two groups: one asks while the
 * entry of the other is stored, so that each waits for two appends.  After a slow append the thread
 * therefore waits a little for those that it has just answered, so that all share the next entry.
 * If most of them do not come back, it does not try again for a while. */
static void gather_more(struct cell *c, size_t n_answered)
{
    if (c->append_us < GATHER_APPEND_US || c->gather_pause > 0) {
        c->gather_pause -= c->gather_pause > 0;
        return;
    }
    int64_t half_us = c->append_us / 2;
    int64_t until_us = wait_now_us() + (half_us < GATHER_MAX_US ? half_us : GATHER_MAX_US);
    if (!cell_inbox_gather(&c->inbox, n_answered, until_us))
        c->gather_pause = GATHER_PAUSE;
}

static void *cell_main(void *arg)
{
    struct cell *c = arg;
    bool retires;
    while (cell_inbox_goes_on(&c->inbox, &retires)) {
        int64_t sleep_us;
        struct journal_call *call = take_orders(c, retires, &sleep_us);
        if (call) {
            run_call(c, call);
            gather_more(c, report_back(c, call));
        } else {
            doze(c, retires, sleep_us);
        }
    }
    return NULL;
}

/* ---- beginning ---- */

static void cell_free(struct cell *c)
{
    node_free(c->node);
    if (c->journal)
        c->driver->close(c->journal);
    topics_free(c->topics);
    pthread_mutex_destroy(&c->node_lock);
    cell_inbox_close(&c->inbox);
    pthread_cond_destroy(&c->changed);
    lock_close(&c->shown_lock);
    free(c->journal_url);
    free(c->url);
    free(c);
}

static struct cell *cell_new(const struct cell_config *config, const struct journal_driver *driver)
{
    struct cell *c = hf_alloc(sizeof *c);
    c->config = *config;
    if (!c->config.queue_max)
        c->config.queue_max = QUEUE_MAX;
    c->driver = driver;
    c->journal_url = hf_strndup(config->journal_url, strlen(config->journal_url));
    c->url = hf_strndup(config->url, strlen(config->url));
    c->topics = topics_new();
    pthread_mutex_init(&c->node_lock, NULL);
    cell_inbox_init(&c->inbox, c->config.queue_max);
    wait_cond_init(&c->changed);
    lock_init(&c->shown_lock);
    random_init_system(&c->random);
    c->node = node_new(&(struct node_config){.clock = config->clock,
                                             .random = &c->random,
                                             .url = c->url,
                                             .timeout_ms = config->timeout_ms,
                                             .shared = driver->shared,
                                             .queue_max = c->config.queue_max,
                                             .on_effect = on_effect,
                                             .on_change = on_change,
                                             .context = c});
    return c;
}

/* The only server of its journal leads as soon as it has read it; until then it would refuse what
 * comes. */
static void await_leading(struct cell *c)
{
    int64_t until_us = wait_now_us() + FIRST_WAIT_US;
    pthread_mutex_lock(&c->node_lock);
    while (atomic_load(&c->role) != NODE_LEADING &&
           wait_cond_until(&c->changed, &c->node_lock, until_us))
        ;
    pthread_mutex_unlock(&c->node_lock);
}

enum hf_status cell_start(const struct cell_config *config, struct cell **ret, struct hf_err *err)
{
    const struct journal_driver *driver = journal_driver_for(config->journal_url);
    if (!driver)
        return hf_err_set(err, HF_INVALID_REQUEST,
                          "there is no journal of this kind: sqlite:FILE, postgres://... or "
                          "etcd://...");
    if (strlen(config->url) > CELL_URL_MAX)
        return hf_err_set(err, HF_INVALID_REQUEST, "the URL of this server is too long");
    struct cell *c = cell_new(config, driver);
    enum hf_status status = open_journal(c);
    if (status != HF_OK && (status == HF_INVALID_REQUEST || !driver->shared)) {
        if (err)
            *err = c->open_err;
        cell_free(c);
        return status;
    }
    cell_metrics_register(&c->metrics, config->metrics);
    if (status != HF_OK)
        node_begins_without_journal(c->node, c->open_err.msg);
    c->last.journal_answers = c->shown.journal_answers = status == HF_OK;
    memcpy(c->shown.why, c->open_err.msg, sizeof c->shown.why);
    if (pthread_create(&c->thread, NULL, cell_main, c) != 0) {
        cell_free(c);
        return hf_err_set(err, HF_INTERNAL, "cannot start a thread");
    }
    if (!driver->shared)
        await_leading(c);
    *ret = c;
    return HF_OK;
}

/* ---- end ---- */

/* Answers everything, now and from now on, whatever the journal does. */
static void end_all(struct cell *c)
{
    cell_inbox_refuse(&c->inbox);
    pthread_mutex_lock(&c->node_lock);
    pending_batch_begin();
    if (!c->is_stopped) {
        struct node_status s;
        node_stop(c->node);
        topics_lead(c->topics, false);
        node_status(c->node, &s);
        s.role = NODE_FOLLOWING;
        s.master_url[0] = '\0';
        show_shared(c, &s);
        c->is_stopped = true;
    }
    struct cell_request *r = cell_inbox_take(&c->inbox);
    while (r) {
        struct cell_request *next = r->next;
        refuse(c, r, CELL_STOPPING);
        r = next;
    }
    pending_batch_end();
    pthread_mutex_unlock(&c->node_lock);
}

void cell_retire(struct cell *c, int64_t limit_ms)
{
    int64_t until_us = wait_now_us() + limit_ms * 1000;
    cell_inbox_retire(&c->inbox);
    pthread_mutex_lock(&c->node_lock);
    while (!node_is_retired(c->node) && wait_cond_until(&c->changed, &c->node_lock, until_us))
        ;
    bool is_retired = node_is_retired(c->node);
    pthread_mutex_unlock(&c->node_lock);
    if (is_retired)
        return;
    log_write(LOG_WARN, "the locks could not be handed over in time", NULL);
    end_all(c);
}

void cell_stop(struct cell *c)
{
    if (!c)
        return;
    end_all(c);
    cell_inbox_stop(&c->inbox);
    pthread_join(c->thread, NULL);
    cell_free(c);
}

/* ---- for other threads ---- */

const char *cell_redirect(const struct cell *c, char ret[CELL_URL_MAX + 1])
{
    struct cell *writable = (struct cell *)(uintptr_t)c;
    switch (atomic_load_explicit(&c->role, memory_order_relaxed)) {
    case NODE_LEADING:
    case NODE_CLAIMING: /* the node keeps requests until it knows */
    case NODE_CATCHING_UP:
        return NULL;
    default:
        break;
    }
    lock_take(&writable->shown_lock);
    memcpy(ret, c->shown.master_url, sizeof c->shown.master_url);
    lock_give(&writable->shown_lock);
    return ret;
}

bool cell_ready(const struct cell *c, char *why, size_t size)
{
    struct cell *writable = (struct cell *)(uintptr_t)c;
    lock_take(&writable->shown_lock);
    bool answers = c->shown.journal_answers;
    if (!answers)
        (void)snprintf(why, size, "%s", c->shown.why);
    lock_give(&writable->shown_lock);
    return answers;
}

struct cell_topic *cell_topic_of_name(struct cell *c, const char *name, size_t len)
{
    return topics_get(c->topics, 0, name, len);
}

struct cell_topic *cell_topic_of_session(struct cell *c, int64_t session)
{
    hf_check(session != 0);
    return topics_get(c->topics, session, NULL, 0);
}
