/* Acquiring a lock, from the first request to the grant, on the caller's thread.  Keeps L1 and L4.
 *
 *            +------------------ send_request <------------------+
 *            | granted             | taken          | no answer  |
 *       accept_grant        wait_or_give_up   retry_or_give_up   |
 *                                  |                |            |
 *                      no wait, or its end    it took too long   +-- waited or paused
 *                                  |                |
 *                        release_place: give back what may be there
 *
 * acquire is idempotent for one owner, so after a lost answer the request is sent again.  A call
 * that does not wait does so for timeout_ms; a call that waits, for as long as it waits, since an
 * outage that is shorter than the wait is no reason to give up. */
#include "lock/acquire.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/backoff.h"
#include "base/thread_number.h"
#include "lock/cancel.h"
#include "lock/lock.h"
#include "lock/options.h"

/* The longest sleep in the queue before the next request. */
#define QUEUE_SLEEP_US INT64_C(2000000)
/* Calls that find too many others asleep in the queue poll instead, the more often the nearer their
 * turn: twice before it is their turn at the pace at which the queue moves, which is at most a
 * place per 2 ms.  Where there are no places, all that poll share the same rate. */
#define POLL_PAUSE_US INT64_C(2000) /* per place */
#define POLL_PAUSE_MAX_US INT64_C(1000000)
#define POLL_PLACES_MIN 10 /* where there are none */
/* The longest pause of a waiter after a request without an answer, where other calls pause for
 * SILENT_PAUSE_MAX_US at most.  It is well below WAITER_SILENT_MS. */
#define OUTAGE_PAUSE_MAX_US INT64_C(1000000)
/* A driver whose wait returns this soon, this often in a row, is asked less often. */
#define SHORT_WAIT_US 1000
#define SHORT_WAITS_MAX 8
/* Grants in a row that arrived too late to be used. */
#define LATE_GRANTS_MAX 3
/* The loss notice comes this long before the deadline, */
#define LOSS_LEAD_US 20000 /* but at most a fifth of the TTL without its margin */

struct lock_attempt {
    struct hf_locks *locks;
    struct hf_lock *lock;
    const struct hf_lock_options *options;
    struct wait_limit *limit;
    struct lease *handle;    /* NULL: none */
    bool is_waiting;         /* the handle counts as that of a waiting call */
    bool may_have_place;     /* there may be a lease or a place of ours */
    bool owner_is_used;      /* nothing is left of the owner: the next request has another */
    bool owner_in_doubt;     /* a request of this owner was not answered and may still arrive */
    bool answer_lost;        /* the last answers did not come */
    bool outage_reported;    /* on_outage has not been told of the end yet */
    int64_t begun_us;        /* when the first request was sent */
    int64_t sent_us;         /* when the last request was sent */
    int64_t granted_us;      /* when the grant arrived */
    int64_t waiting_from_us; /* 0: it has not waited yet */
    int64_t silent_from_us;  /* since when the back end does not answer; 0: it does */
    unsigned n_silent;       /* requests without an answer since then */
    unsigned n_short_waits;  /* in a row */
    unsigned n_late;         /* grants that arrived too late */
    bool is_polling;         /* it is counted in pool.n_polling */
    size_t place;            /* its place when it last polled; 0: it has not polled */
    int64_t place_us;        /* when that was */
    int64_t pace_us;         /* how long the queue takes for a place; 0: not known */
};

void wait_limit_init(struct wait_limit *limit, const struct hf_lock_options *options)
{
    bool has_limit = options->wait_ms > 0 || (options->wait_ms == 0 && options->retries == 0);
    *limit = (struct wait_limit){.wait_us = has_limit ? options->wait_ms * 1000 : INT64_MAX,
                                 .retries = options->retries,
                                 .cancel = options->cancel};
}

/* The first request is sent now, or has failed before it was. */
static void begin(struct lock_attempt *a, int64_t now_us)
{
    struct wait_limit *limit = a->limit;
    if (a->begun_us == 0)
        a->begun_us = now_us;
    if (limit->until_us == 0)
        limit->until_us = limit->wait_us == INT64_MAX ? INT64_MAX : now_us + limit->wait_us;
}

static bool is_cancelled(const struct lock_attempt *a)
{
    return hf_cancel_is_triggered(a->limit->cancel);
}

/* Is it one of those calls that ask again instead of queueing? */
static bool has_retries(const struct lock_attempt *a) { return a->options->retries > 0; }

/* ---- the steps of an attempt ---- */

/* A request that was refused may be followed by a release, and that may be late: on a connection
 * that was given up, in a server that is stopped.  It must not end a grant that a later request has
 * got, so those requests are of another owner. */
static void draw_owner(struct lock_attempt *a)
{
    struct hf_locks *locks = a->locks;
    pthread_mutex_lock(&locks->mutex);
    random_bytes(&locks->random, a->lock->request.owner, sizeof a->lock->request.owner);
    pthread_mutex_unlock(&locks->mutex);
    a->owner_is_used = a->owner_in_doubt = false;
}

static enum hf_result send_request(struct lock_attempt *a, struct lease_verdict *verdict,
                                   struct hf_fault *fault)
{
    enum hf_result r;
    if (!a->handle && (r = pool_take(&a->locks->pool, &a->handle, fault)) != HF_DONE)
        return r;
    if (a->owner_is_used)
        draw_owner(a);
    int64_t before_us = a->sent_us;
    a->sent_us = locks_now_us(a->locks);
    begin(a, a->sent_us);
    a->n_short_waits = a->sent_us - before_us < SHORT_WAIT_US ? a->n_short_waits + 1 : 0;
    *verdict = (struct lease_verdict){.result = HF_UNKNOWN};
    return lease_acquire(a->handle, &a->lock->request, verdict, fault);
}

static void give_handle_back(struct lock_attempt *a)
{
    if (a->handle)
        pool_give(&a->locks->pool, a->handle, a->is_waiting);
    a->handle = NULL;
}

/* Gives up the lease or the place that the back end may have for us. */
static void release_place(struct lock_attempt *a)
{
    struct lease_verdict verdict;
    if (a->handle || pool_take(&a->locks->pool, &a->handle, NULL) == HF_DONE)
        (void)!lease_release(a->handle, &a->lock->request, 1, &verdict, NULL);
    a->may_have_place = false;
}

/* HF_DONE: the lock is ours and there is time to use it.  An answer that took longer than the lease
 * lasts is no lock; HF_TAKEN then means that another request may be answered sooner. */
static enum hf_result accept_grant(struct lock_attempt *a, const struct lease_verdict *verdict,
                                   struct hf_fault *fault)
{
    struct hf_lock *lock = a->lock;
    int64_t deadline_us = watch_deadline_us(lock, a->sent_us, verdict);
    int64_t now_us = locks_now_us(a->locks);
    if (now_us < deadline_us - lock->lead_us) {
        a->granted_us = now_us;
        lock->fence = verdict->fence;
        lock->slot = verdict->slot;
        lock->granted_ms = verdict->remaining_ms;
        lock->request.label = lock->request.value = NULL;
        if (a->options->max_hold_ms > 0)
            lock->renew_until_us = a->sent_us + a->options->max_hold_ms * 1000;
        lock->manual = a->options->manual;
        atomic_store_explicit(&lock->deadline_us, deadline_us, memory_order_relaxed);
        return HF_DONE;
    }
    release_place(a);
    a->owner_is_used = true;
    if (++a->n_late < LATE_GRANTS_MAX)
        return HF_TAKEN;
    return fault_set(fault, HF_UNKNOWN,
                     "the grant took %lld ms to arrive, too long for a TTL of %lld ms: given back",
                     (long long)(now_us - a->sent_us) / 1000, (long long)lock->request.ttl_ms);
}

static enum hf_result give_up(const struct lock_attempt *a, struct hf_fault *fault)
{
    if (a->waiting_from_us == 0)
        return fault_set(fault, HF_TAKEN, "another holder has the lock");
    return fault_set(fault, HF_TAKEN, "another holder still has the lock after waiting for %lld ms",
                     (long long)(locks_now_us(a->locks) - a->waiting_from_us) / 1000);
}

/* The pause is longer than retry_ms by up to a half, so that callers that were refused together do
 * not come back together. */
static void pause_before_retry(struct lock_attempt *a, int64_t left_us)
{
    struct hf_locks *locks = a->locks;
    uint64_t retry_us = (uint64_t)a->options->retry_ms * 1000;
    a->limit->retries--;
    give_handle_back(a);
    pthread_mutex_lock(&locks->mutex);
    int64_t pause_us = (int64_t)(retry_us + random_below(&locks->random, retry_us / 2 + 1));
    pthread_mutex_unlock(&locks->mutex);
    cancel_sleep_us(a->limit->cancel, min_us(left_us, pause_us));
}

/* ---- without an answer ---- */

/* Is the failure one after which the same request may succeed, or may have succeeded? */
static bool may_ask_again(const struct lock_attempt *a, enum hf_result r)
{
    if (r == HF_UNKNOWN)
        return true;
    return r == HF_UNREACHABLE && (a->may_have_place || a->lock->request.queue || has_retries(a));
}

static void note_silence(struct lock_attempt *a, enum hf_result r, int64_t now_us)
{
    if (r == HF_UNKNOWN)
        a->may_have_place = a->answer_lost = a->owner_in_doubt = true;
    if (a->silent_from_us == 0) {
        a->silent_from_us = now_us;
        a->n_silent = 0;
    }
}

/* When a call that does not retry stops asking a back end that does not answer. */
static int64_t silence_limit_us(const struct lock_attempt *a)
{
    if (!a->lock->request.queue)
        return a->silent_from_us + a->locks->timeout_ms * 1000;
    if (a->options->outage_ms == 0)
        return a->limit->until_us;
    return min_us(a->limit->until_us, a->silent_from_us + a->options->outage_ms * 1000);
}

static bool is_silent_too_long(const struct lock_attempt *a, int64_t now_us)
{
    if (has_retries(a))
        return a->limit->retries == 0 || a->limit->until_us <= now_us;
    return a->n_silent > 0 && now_us >= silence_limit_us(a);
}

/* The first failure is not reported: the server may merely have closed an idle connection. */
static void report_outage(struct lock_attempt *a, const struct hf_fault *why)
{
    if (a->n_silent == 0 || a->outage_reported || !a->options->on_outage)
        return;
    a->outage_reported = true;
    a->options->on_outage(why, a->options->ctx);
}

static void report_end_of_outage(struct lock_attempt *a)
{
    if (a->outage_reported)
        a->options->on_outage(NULL, a->options->ctx);
    a->outage_reported = false;
}

static enum hf_result cancelled(struct hf_fault *fault)
{
    return fault_set(fault, HF_TAKEN, "cancelled while the back end did not answer");
}

/* The request failed with `r`: no answer came, or it could not be sent.  HF_DONE: ask again, after
 * a pause that this function has made.  A call that does not wait fails if nothing was sent;
 * otherwise the back end may have a lease or a place for us, and asking again tells. */
static enum hf_result retry_or_give_up(struct lock_attempt *a, enum hf_result r,
                                       struct hf_fault *fault)
{
    if (!may_ask_again(a, r))
        return r;
    int64_t now_us = locks_now_us(a->locks);
    begin(a, now_us);
    note_silence(a, r, now_us);
    if (is_cancelled(a))
        return cancelled(fault);
    if (is_silent_too_long(a, now_us)) {
        r = a->answer_lost ? HF_UNKNOWN : r;
        fault->result = r;
        return r;
    }
    if (has_retries(a)) {
        pause_before_retry(a, a->limit->until_us - now_us);
        return is_cancelled(a) ? cancelled(fault) : HF_DONE;
    }
    bool queue = a->lock->request.queue;
    if (queue)
        report_outage(a, fault);
    if (!a->is_waiting)
        give_handle_back(a); /* other calls need it */
    int64_t max_us = queue ? OUTAGE_PAUSE_MAX_US : SILENT_PAUSE_MAX_US;
    cancel_sleep_us(a->limit->cancel, backoff_pause(SILENT_PAUSE_US, max_us, a->n_silent++));
    return is_cancelled(a) ? cancelled(fault) : HF_DONE;
}

/* ---- waiting ---- */

/* Random, so that the calls that poll do not all come at once. */
static int64_t unordered_pause_us(struct lock_attempt *a, size_t n)
{
    uint64_t least_us = POLL_PAUSE_US / 2 * n;
    pthread_mutex_lock(&a->locks->mutex);
    uint64_t more_us = random_below(&a->locks->random, 2 * least_us);
    pthread_mutex_unlock(&a->locks->mutex);
    return (int64_t)(least_us + more_us);
}

/* How long to pause before a call that does not sleep in the queue asks again. */
static int64_t poll_pause_us(struct lock_attempt *a, const struct lease_verdict *verdict)
{
    size_t n_polling = pool_add_polling(&a->locks->pool, a->is_polling ? 0 : 1);
    int64_t now_us = locks_now_us(a->locks);
    a->is_polling = true;
    if (verdict->position == 0)
        return unordered_pause_us(a, n_polling > POLL_PLACES_MIN ? n_polling : POLL_PLACES_MIN);
    if (a->place > verdict->position)
        a->pace_us = (now_us - a->place_us) / (int64_t)(a->place - verdict->position);
    a->place = verdict->position;
    a->place_us = now_us;
    int64_t per_place_us = a->pace_us / 2 > POLL_PAUSE_US ? a->pace_us / 2 : POLL_PAUSE_US;
    return per_place_us * (int64_t)verdict->position;
}

/* Sleeps in the queue until it is worth asking again. */
static enum hf_result wait_turn(struct lock_attempt *a, const struct lease_verdict *verdict,
                                int64_t left_us, struct hf_fault *fault)
{
    int64_t pause_us = min_us(left_us, QUEUE_SLEEP_US);
    /* The end of the lease concerns only the next in the queue; others would ask in vain. */
    if (verdict->position <= 1 && verdict->remaining_ms >= 0)
        pause_us = min_us(pause_us, (verdict->remaining_ms + 1) * 1000);
    if (!a->is_waiting)
        a->is_waiting = pool_begin_waiting(&a->locks->pool);
    if (!a->is_waiting) {
        give_handle_back(a);
        int64_t poll_us = poll_pause_us(a, verdict);
        cancel_sleep_us(a->limit->cancel, min_us(pause_us, min_us(poll_us, POLL_PAUSE_MAX_US)));
        return HF_DONE;
    }
    if (a->n_short_waits > SHORT_WAITS_MAX)
        cancel_sleep_us(a->limit->cancel, min_us(pause_us, SHORT_WAIT_US));
    a->handle->wake_fd = cancel_fd(a->limit->cancel);
    enum hf_result r = lease_wait(a->handle, &a->lock->request, (pause_us + 999) / 1000, fault);
    a->handle->wake_fd = -1;
    return r;
}

/* Another holder has the lock.  HF_DONE: ask again, after a wait that this function has made. */
static enum hf_result wait_or_give_up(struct lock_attempt *a, const struct lease_verdict *verdict,
                                      struct hf_fault *fault)
{
    a->silent_from_us = 0;
    a->answer_lost = false;
    a->may_have_place = a->lock->request.queue;
    a->owner_is_used = verdict->position == 0 && !a->owner_in_doubt;
    int64_t now_us = locks_now_us(a->locks), left_us = a->limit->until_us - now_us;
    if (left_us <= 0 || is_cancelled(a) || (has_retries(a) && a->limit->retries == 0))
        return give_up(a, fault);
    if (a->waiting_from_us == 0) {
        a->waiting_from_us = now_us;
        stats_add(&a->locks->stats, STAT_WAITS, 1);
    }
    if (a->lock->request.queue) {
        enum hf_result r = wait_turn(a, verdict, left_us, fault);
        if (r != HF_DONE)
            return retry_or_give_up(a, r, fault);
    } else {
        pause_before_retry(a, left_us);
    }
    return is_cancelled(a) ? give_up(a, fault) : HF_DONE;
}

/* ---- the whole attempt ---- */

static enum hf_result run(struct lock_attempt *a, struct hf_fault *fault)
{
    for (;;) {
        struct lease_verdict verdict;
        enum hf_result r = send_request(a, &verdict, fault);
        if (r != HF_DONE) {
            if ((r = retry_or_give_up(a, r, fault)) != HF_DONE)
                return r;
            continue;
        }
        report_end_of_outage(a);
        switch (verdict.result) {
        case HF_DONE:
            if ((r = accept_grant(a, &verdict, fault)) != HF_TAKEN)
                return r;
            break;
        case HF_TAKEN:
            if ((r = wait_or_give_up(a, &verdict, fault)) != HF_DONE)
                return r;
            break;
        default:
            return fault_set(fault, verdict.result, "%s", hf_result_text(verdict.result));
        }
    }
}

static enum lock_stat stat_of(const struct lock_attempt *a, enum hf_result r)
{
    switch (r) {
    case HF_DONE:
        return STAT_GRANTED;
    case HF_TAKEN:
        return a->waiting_from_us ? STAT_TIMED_OUT : STAT_TAKEN;
    case HF_UNKNOWN:
        return STAT_UNKNOWN;
    default:
        return STAT_FAILED;
    }
}

static void count(const struct lock_attempt *a, enum hf_result r)
{
    struct stats *stats = &a->locks->stats;
    int64_t now_us = r == HF_DONE ? a->granted_us : locks_now_us(a->locks);
    stats_add(stats, stat_of(a, r), 1);
    if (r == HF_DONE)
        stats_add_latency(stats, now_us - a->begun_us);
    if (a->waiting_from_us)
        stats_add(stats, STAT_WAIT_US, (uint64_t)(now_us - a->waiting_from_us));
}

static struct hf_lock *lock_new(struct hf_locks *locks, const char *name,
                                const struct hf_lock_options *options)
{
    size_t len = strlen(name);
    struct hf_lock *lock = hf_alloc(sizeof *lock + len + 1);
    memcpy(lock->name, name, len);
    lock->locks = locks;
    lock->margin_us = lock_margin_us(options->ttl_ms);
    lock->lead_us = min_us(LOSS_LEAD_US, (options->ttl_ms * 1000 - lock->margin_us) / 5);
    lock->renew_until_us = INT64_MAX;
    atomic_init(&lock->refs, 1);
    lock->fd = -1;
    struct lease_request *request = &lock->request;
    request->key = lock->name;
    request->key_len = len;
    request->ttl_ms = options->ttl_ms;
    request->mode = options->mode;
    request->priority = options->priority;
    request->slots = options->slots;
    request->queue = options->wait_ms != 0 && options->retries == 0;
    request->label = options->label;
    request->label_len = options->label ? strlen(options->label) : 0;
    request->agent = thread_number();
    request->value = options->value;
    request->value_len = options->value ? strlen(options->value) : 0;
    return lock;
}

enum hf_result lock_acquire(struct hf_locks *locks, const char *name,
                            const struct hf_lock_options *options, struct wait_limit *limit,
                            struct hf_lock **ret, struct hf_fault *fault)
{
    struct hf_fault unread;
    fault = fault ? fault : &unread; /* on_outage gets it in any case */
    enum hf_result r = watch_start(locks, fault);
    if (r != HF_DONE)
        return r;
    struct lock_attempt a = {
        .locks = locks, .lock = lock_new(locks, name, options), .options = options, .limit = limit};
    draw_owner(&a);
    r = run(&a, fault);
    if (r != HF_DONE && a.may_have_place)
        release_place(&a);
    give_handle_back(&a);
    if (a.is_polling)
        (void)pool_add_polling(&locks->pool, -1);
    count(&a, r);
    if (r != HF_DONE) {
        free(a.lock);
        return r;
    }
    a.lock->on_loss = options->on_loss;
    a.lock->ctx = options->ctx;
    watch_add(a.lock, a.granted_us);
    *ret = a.lock;
    return HF_DONE;
}

enum hf_result hf_lock(struct hf_locks *locks, const char *name,
                       const struct hf_lock_options *options, struct hf_lock **ret,
                       struct hf_fault *fault)
{
    struct hf_lock_options checked;
    struct wait_limit limit;
    enum hf_result r;
    if ((r = options_check_name(locks, name, fault)) != HF_DONE ||
        (r = options_check(locks, options, &checked, fault)) != HF_DONE)
        return r;
    wait_limit_init(&limit, &checked);
    return lock_acquire(locks, name, &checked, &limit, ret, fault);
}
