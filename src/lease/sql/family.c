/* See family.h. */
#include "lease/sql/family.h"

#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "base/wait.h"
#include "lease/sql/link.h"
#include "lease/sql/listener.h"

struct sql_family *family_new(const char *url, const struct db_options *options, bool has_server)
{
    struct sql_family *f = hf_alloc(sizeof *f);
    struct random random;
    f->url = hf_strndup(url, strlen(url));
    f->options = *options;
    f->has_server = has_server;
    f->refs = 1;
    if (has_server) {
        random_init_system(&random);
        f->topic = (int64_t)(random_u64(&random) >> 1 | 1);
    }
    pthread_mutex_init(&f->mutex, NULL);
    wait_cond_init(&f->freed);
    listener_init(f);
    return f;
}

struct sql_family *family_ref(struct sql_family *f)
{
    pthread_mutex_lock(&f->mutex);
    f->refs++;
    pthread_mutex_unlock(&f->mutex);
    return f;
}

void family_unref(struct sql_family *f)
{
    pthread_mutex_lock(&f->mutex);
    bool is_last = --f->refs == 0;
    pthread_mutex_unlock(&f->mutex);
    if (!is_last)
        return;
    listener_close(f);
    for (size_t i = 0; i < f->n_idle; i++)
        sql_link_free(f->idle[i]);
    pthread_cond_destroy(&f->freed);
    pthread_mutex_destroy(&f->mutex);
    free(f->url);
    free(f);
}

static bool has_room(const struct sql_family *f, bool to_keep)
{
    if (f->n_taking + f->n_keeping >= FAMILY_LINKS_MAX)
        return false;
    return to_keep || f->n_taking < FAMILY_LINKS_MAX - FAMILY_LINKS_KEPT;
}

enum hf_status family_borrow(struct sql_family *f, bool to_keep, int64_t limit_ms,
                             struct sql_link **ret, struct hf_err *err)
{
    int64_t until_us = 0, ms = f->options.timeout_ms ? f->options.timeout_ms : LEASE_TIMEOUT_MS;
    bool in_time = true;
    if (!f->has_server) {
        *ret = hf_alloc(sizeof **ret);
        return HF_OK;
    }
    pthread_mutex_lock(&f->mutex);
    while (!has_room(f, to_keep) && in_time) {
        if (until_us == 0)
            until_us = wait_now_us() + (limit_ms && limit_ms < ms ? limit_ms : ms) * 1000;
        in_time = wait_cond_until(&f->freed, &f->mutex, until_us);
    }
    bool borrowed = has_room(f, to_keep);
    if (borrowed) {
        ++*(to_keep ? &f->n_keeping : &f->n_taking);
        *ret = f->n_idle > 0 ? f->idle[--f->n_idle] : hf_alloc(sizeof **ret);
    }
    pthread_mutex_unlock(&f->mutex);
    return borrowed ? HF_OK
                    : hf_err_set(err, HF_STORE_UNAVAILABLE,
                                 "PostgreSQL: other calls have kept all %d connections busy",
                                 FAMILY_LINKS_MAX);
}

void family_give_back(struct sql_family *f, bool to_keep, struct sql_link **link)
{
    pthread_mutex_lock(&f->mutex);
    f->idle[f->n_idle++] = *link;
    --*(to_keep ? &f->n_keeping : &f->n_taking);
    pthread_cond_broadcast(&f->freed); /* those that wait do so for different things */
    pthread_mutex_unlock(&f->mutex);
    *link = NULL;
}
