/* See keeper.h. */
#include "engine/keeper.h"

#include "base/log.h"
#include "base/wait.h"
#include "engine/engine_internal.h"

#define SIZES_EVERY_US 10000000
#define AGAIN_US 20000 /* between two attempts to come to the end of the log */

void keeper_init(struct keeper *k)
{
    pthread_mutex_init(&k->lock, NULL);
    wait_cond_init(&k->wake);
    wait_cond_init(&k->done);
}

void keeper_close(struct keeper *k)
{
    ledger_close(k->ledger);
    pthread_mutex_destroy(&k->lock);
    pthread_cond_destroy(&k->wake);
    pthread_cond_destroy(&k->done);
}

void keeper_stop(struct keeper *k)
{
    pthread_mutex_lock(&k->lock);
    k->stopping = true;
    pthread_cond_signal(&k->wake);
    pthread_cond_signal(&k->done);
    pthread_mutex_unlock(&k->lock);
}

/* ---- the log, on the keeper's thread ---- */

static bool has_to_copy(const struct keeper *k)
{
    return k->log_bytes >= LOG_COPY_BYTES && !k->copied;
}

/* Copies what is in the log.  What is committed meanwhile is copied the next time. */
static void copy_log(struct keeper *k)
{
    struct hf_err err;
    struct db_log log;
    int64_t before = k->log_bytes;
    if (ledger_maintain(k->ledger, &log, &err) != HF_OK) {
        log_write(LOG_WARN, "checkpoint failed", "why", err.msg, NULL);
        return;
    }
    pthread_mutex_lock(&k->lock);
    k->pinned = log.bytes - log.rest_bytes < before;
    if (!k->pinned && log.rest_bytes <= (k->hurry ? LOG_REST_HURRY_BYTES : LOG_REST_BYTES))
        k->copied = true;
    if (k->pinned || k->copied)
        pthread_cond_signal(&k->done);
    pthread_mutex_unlock(&k->lock);
}

/* ---- sizes, on the keeper's thread ---- */

static void measure(struct engine *e)
{
    const struct engine_metrics *m = &e->metrics;
    struct ledger_sizes sizes;
    struct hf_err err;
    if (ledger_sizes(e->keeper.ledger, &e->keeper.census, &sizes, &err) != HF_OK) {
        log_write(LOG_DEBUG, "the ledger was not measured", "why", err.msg, NULL);
        return;
    }
    gauge_set(m->ledger_bytes, sizes.db.database_bytes);
    gauge_set(m->keys, sizes.keys);
    gauge_set(m->keys_bytes, sizes.keys_bytes);
    if (e->has_others)
        return;
    gauge_set(m->log_bytes, sizes.db.log_bytes);
    gauge_set(m->disk_bytes, sizes.db.disk_bytes);
    gauge_set(m->disk_free_bytes, sizes.db.disk_free_bytes);
}

void *keeper_main(void *arg)
{
    struct engine *e = arg;
    struct keeper *k = &e->keeper;
    int64_t measure_us = 0, copy_us = 0;
    pthread_mutex_lock(&k->lock);
    while (!k->stopping) {
        int64_t now_us = wait_now_us();
        bool copies = has_to_copy(k);
        if (now_us < measure_us && !(copies && now_us >= copy_us)) {
            (void)wait_cond_until(&k->wake, &k->lock,
                                  copies && copy_us < measure_us ? copy_us : measure_us);
            continue;
        }
        pthread_mutex_unlock(&k->lock);
        if (now_us >= measure_us) {
            metrics_measure(e->config.metrics);
            measure(e);
            measure_us = now_us + SIZES_EVERY_US;
        } else {
            copy_log(k);
            copy_us = wait_now_us() + (k->pinned || k->copied ? AGAIN_US : 0);
        }
        pthread_mutex_lock(&k->lock);
    }
    pthread_mutex_unlock(&k->lock);
    return NULL;
}

/* ---- on the worker's thread ---- */

/* The end of the log: the next batch begins it anew, unless a reader still needs it.  In that case
 * the keeper begins again. */
static void finish_log(struct worker *w)
{
    struct keeper *k = &w->engine->keeper;
    struct hf_err err;
    struct db_log log;
    if (ledger_maintain(w->ledger, &log, &err) != HF_OK)
        log_write(LOG_WARN, "checkpoint failed", "why", err.msg, NULL);
    k->copied = false;
}

/* Waits for the keeper: the longer, the longer the log is, so that it cannot grow much further
 * however slow the disk is. */
static void brake(struct keeper *k, int64_t bytes)
{
    int64_t until_us = wait_now_us() + BRAKE_US * (1 + ((bytes - LOG_BRAKE_BYTES) >> 20));
    pthread_mutex_lock(&k->lock);
    while (!k->copied && !k->pinned && !k->stopping &&
           wait_cond_until(&k->done, &k->lock, until_us))
        ;
    pthread_mutex_unlock(&k->lock);
}

void keeper_after_batch(struct worker *w)
{
    struct keeper *k = &w->engine->keeper;
    int64_t bytes = ledger_log_bytes(w->ledger);
    if (bytes == k->log_bytes)
        return;
    k->log_bytes = bytes;
    k->hurry = bytes >= LOG_HURRY_BYTES;
    if (bytes < LOG_COPY_BYTES)
        return;
    if (!k->copied) {
        pthread_mutex_lock(&k->lock);
        pthread_cond_signal(&k->wake);
        pthread_mutex_unlock(&k->lock);
    }
    if (bytes >= LOG_BRAKE_BYTES)
        brake(k, bytes);
    if (k->copied)
        finish_log(w);
}
