/* See cell_inbox.h. */
#include "cell/cell_inbox.h"

#include <stdatomic.h>

#include "base/wait.h"

enum stage {
    STAGE_FREE, /* before cell_inbox_put */
    STAGE_LENT,
    STAGE_GONE, /* lent, and its client has gone */
    STAGE_ANSWERED
};

void cell_inbox_init(struct cell_inbox *in, size_t queue_max)
{
    *in = (struct cell_inbox){.queue_max = queue_max, .end = &in->first};
    pthread_mutex_init(&in->lock, NULL);
    wait_cond_init(&in->wake);
}

void cell_inbox_close(struct cell_inbox *in)
{
    pthread_mutex_destroy(&in->lock);
    pthread_cond_destroy(&in->wake);
}

/* With the lock. */
static void rouse(struct cell_inbox *in)
{
    if (in->sleeps)
        pthread_cond_signal(&in->wake);
    in->sleeps = false;
}

/* ---- requests ---- */

static bool is_stale_look(const struct cell_request *r)
{
    return r->kind == CELL_REQUEST_LOOK && r->stale;
}

/* With the lock. */
static enum cell_result admit(const struct cell_inbox *in, const struct cell_request *r)
{
    if (in->refuses || (in->retires && !is_stale_look(r)))
        return CELL_STOPPING;
    return cell_inbox_is_queued(r) && in->n_queued >= in->queue_max ? CELL_OVERLOADED : CELL_DONE;
}

enum cell_result cell_inbox_put(struct cell_inbox *in, struct cell_request *r)
{
    r->next = NULL;
    atomic_store(&r->stage, STAGE_LENT);
    pthread_mutex_lock(&in->lock);
    enum cell_result result = admit(in, r);
    if (result == CELL_DONE) {
        *in->end = r;
        in->end = &r->next;
        in->n_queued += cell_inbox_is_queued(r);
        if (in->n_wanted && in->n_queued >= in->n_wanted) {
            in->n_wanted = 0;
            pthread_cond_signal(&in->wake);
        }
        rouse(in);
    }
    pthread_mutex_unlock(&in->lock);
    return result;
}

struct cell_request *cell_inbox_take(struct cell_inbox *in)
{
    pthread_mutex_lock(&in->lock);
    struct cell_request *first = in->first;
    in->first = NULL;
    in->end = &in->first;
    in->n_queued = 0;
    pthread_mutex_unlock(&in->lock);
    return first;
}

/* ---- clients that have gone ---- */

static void unlink_gone(struct cell_inbox *in, struct cell_request *r)
{
    if (r->gone_prev)
        r->gone_prev->gone_next = r->gone_next;
    else if (in->gone == r)
        in->gone = r->gone_next;
    if (r->gone_next)
        r->gone_next->gone_prev = r->gone_prev;
    r->gone_next = r->gone_prev = NULL;
}

void cell_inbox_gone(struct cell_inbox *in, struct cell_request *r)
{
    int lent = STAGE_LENT;
    pthread_mutex_lock(&in->lock);
    if (atomic_compare_exchange_strong(&r->stage, &lent, STAGE_GONE)) {
        r->gone_prev = NULL;
        r->gone_next = in->gone;
        if (in->gone)
            in->gone->gone_prev = r;
        in->gone = r;
        rouse(in);
    }
    pthread_mutex_unlock(&in->lock);
}

struct cell_request *cell_inbox_take_gone(struct cell_inbox *in)
{
    pthread_mutex_lock(&in->lock);
    struct cell_request *r = in->gone;
    if (r)
        unlink_gone(in, r);
    pthread_mutex_unlock(&in->lock);
    return r;
}

void cell_inbox_end(struct cell_inbox *in, struct cell_request *r)
{
    if (atomic_exchange(&r->stage, STAGE_ANSWERED) != STAGE_GONE)
        return;
    pthread_mutex_lock(&in->lock);
    unlink_gone(in, r);
    pthread_mutex_unlock(&in->lock);
}

/* ---- the end of the service ---- */

void cell_inbox_retire(struct cell_inbox *in)
{
    pthread_mutex_lock(&in->lock);
    in->retires = true;
    rouse(in);
    pthread_mutex_unlock(&in->lock);
}

void cell_inbox_refuse(struct cell_inbox *in)
{
    pthread_mutex_lock(&in->lock);
    in->refuses = true;
    pthread_mutex_unlock(&in->lock);
}

void cell_inbox_stop(struct cell_inbox *in)
{
    pthread_mutex_lock(&in->lock);
    in->stops = true;
    rouse(in);
    pthread_mutex_unlock(&in->lock);
}

bool cell_inbox_goes_on(struct cell_inbox *in, bool *ret_retires)
{
    pthread_mutex_lock(&in->lock);
    *ret_retires = in->retires;
    bool goes_on = !in->stops;
    pthread_mutex_unlock(&in->lock);
    return goes_on;
}

/* ---- sleeping ---- */

void cell_inbox_sleep(struct cell_inbox *in, bool retires, int64_t until_us)
{
    pthread_mutex_lock(&in->lock);
    in->sleeps = true;
    while (in->sleeps && !in->first && !in->gone && !in->stops && in->retires == retires)
        if (!wait_cond_until(&in->wake, &in->lock, until_us))
            break;
    in->sleeps = false;
    pthread_mutex_unlock(&in->lock);
}

bool cell_inbox_gather(struct cell_inbox *in, size_t n_answered, int64_t until_us)
{
    bool came = true;
    pthread_mutex_lock(&in->lock);
    size_t n_queued = in->n_queued;
    if (n_answered > 0 && n_queued + n_answered > 1 && !in->stops && !in->retires) {
        in->n_wanted = n_queued + n_answered - n_answered / 8;
        while (in->n_wanted && wait_cond_until(&in->wake, &in->lock, until_us))
            ;
        in->n_wanted = 0;
        came = in->n_queued >= n_queued + (n_answered + 1) / 2;
    }
    pthread_mutex_unlock(&in->lock);
    return came;
}
