/* See service.h.  Opening and closing, sessions, and jobs as callers see them. */
#include "lease/holdfast/service.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include "base/wait.h"

/* How long one of several servers may take to accept a connection before the next is asked. */
#define CONNECT_SHARE_MS 1000
/* How long the end of the sessions may take when the last handle is closed. */
#define CLOSE_MS 500
#define BODY_LEN_MAX ((size_t)8 << 20)

/* ---- opening and closing ---- */

enum hf_result service_new(struct holdfast_address address, const struct lease_options *options,
                           struct service **ret, struct hf_fault *fault)
{
    struct service *s = hf_alloc(sizeof *s);
    s->address = address;
    s->clock = options->clock;
    s->timeout_ms = options->timeout_ms;
    s->on_lost = options->on_lost;
    s->on_lost_ctx = options->ctx;
    s->refs = 1;
    s->queue_end = &s->queue;
    s->armed_us = INT64_MIN;
    random_init_system(&s->random);
    if (address.access_key) {
        size_t size = strlen(address.access_key) + 8;
        s->authorization = hf_alloc(size);
        snprintf(s->authorization, size, "Bearer %s", address.access_key);
    }
    for (size_t i = 0; i < address.n_servers; i++)
        servers_add(&s->servers, address.servers[i], true);
    s->servers.learned_us = service_now_us(s);
    int64_t connect_ms = address.n_servers > 1 && s->timeout_ms > CONNECT_SHARE_MS
                             ? CONNECT_SHARE_MS
                             : s->timeout_ms;
    s->pool = http_pool_new(
        &(struct http_client_options){.connect_timeout_ms = connect_ms,
                                      .body_len_max = BODY_LEN_MAX,
                                      .connections_max = SERVICE_RUNNING_MAX + SERVICE_POLLS_MAX,
                                      .ca_file = s->address.ca_file,
                                      .cert_file = s->address.cert_file,
                                      .key_file = s->address.key_file});
    hf_check(pthread_mutex_init(&s->mutex, NULL) == 0);
    wait_cond_init(&s->changed);
    if (!service_start_thread(s)) {
        s->stop = true;
        service_unref(s);
        return fault_set(fault, HF_FAILED, "no thread for the lock service: too many already");
    }
    *ret = s;
    return HF_DONE;
}

void service_ref(struct service *s)
{
    pthread_mutex_lock(&s->mutex);
    s->refs++;
    pthread_mutex_unlock(&s->mutex);
}

/* Ends every session, so that its locks are free at once and not after its TTL. */
static void end_sessions(struct service *s)
{
    pthread_cond_t cond;
    wait_cond_init(&cond);
    struct job *jobs[SERVICE_SESSIONS_MAX] = {NULL};
    int64_t limit_ms = s->timeout_ms < CLOSE_MS ? s->timeout_ms : CLOSE_MS;
    for (size_t i = 0; i < SERVICE_SESSIONS_MAX; i++) {
        struct service_session *session = &s->sessions[i];
        struct client_message m;
        if (!session->client || !client_end_session(session->client, service_now_us(s), &m))
            continue;
        jobs[i] = job_new(s, session, limit_ms);
        jobs[i]->message = m;
        jobs[i]->cond = &cond;
        job_start(jobs[i]);
    }
    for (size_t i = 0; i < SERVICE_SESSIONS_MAX; i++)
        if (jobs[i]) {
            job_wait(jobs[i]);
            job_free(jobs[i]);
        }
    pthread_cond_destroy(&cond);
}

static void service_free(struct service *s)
{
    for (size_t i = 0; i < SERVICE_SESSIONS_MAX; i++)
        client_free(s->sessions[i].client);
    http_pool_free(s->pool);
    vec_close(&s->running);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->mutex);
    if (s->authorization)
        explicit_bzero(s->authorization, strlen(s->authorization));
    free(s->authorization);
    holdfast_address_close(&s->address);
    explicit_bzero(&s->random, sizeof s->random);
    free(s);
}

void service_unref(struct service *s)
{
    pthread_mutex_lock(&s->mutex);
    bool is_last = --s->refs == 0, runs = !s->stop;
    if (is_last && runs) {
        end_sessions(s);
        s->stop = true;
        http_pool_wake(s->pool);
    }
    pthread_mutex_unlock(&s->mutex);
    if (!is_last)
        return;
    if (runs)
        pthread_join(s->thread, NULL);
    service_free(s);
}

/* ---- sessions ---- */

/* On any thread, with the mutex held. */
static void lease_changed(void *context, struct client_lease *lease)
{
    const struct service *s = context;
    const struct service_waiter *waiter = client_lease_waiter(lease);
    if (waiter)
        (void)eventfd_write(waiter->fd, 1);
    size_t len;
    const char *name = client_lease_name(lease, &len);
    if (s->on_lost && client_lease_is_lost(lease))
        s->on_lost(s->on_lost_ctx, name, len, client_lease_owner(lease));
}

static struct service_session *take_session(struct service *s)
{
    struct service_session *idle = NULL;
    for (size_t i = 0; i < SERVICE_SESSIONS_MAX; i++) {
        struct service_session *session = &s->sessions[i];
        if (!session->client)
            return session;
        if (client_n_claims(session->client) == 0 && session->n_jobs == 0 && !session->stream &&
            (!idle || client_used_us(session->client) < client_used_us(idle->client)))
            idle = session;
    }
    if (!idle)
        return NULL;
    client_free(idle->client); /* what the service has of it ends by itself */
    idle->client = NULL;
    return idle;
}

/* The session whose TTL is the longest that is not longer; or else the shortest. */
static struct service_session *nearest_session(struct service *s, int64_t ttl_ms)
{
    struct service_session *best = NULL;
    for (size_t i = 0; i < SERVICE_SESSIONS_MAX; i++) {
        struct service_session *session = &s->sessions[i];
        bool fits = session->ttl_ms <= ttl_ms, best_fits = best && best->ttl_ms <= ttl_ms;
        if (!best || (fits && (!best_fits || session->ttl_ms > best->ttl_ms)) ||
            (!fits && !best_fits && session->ttl_ms < best->ttl_ms))
            best = session;
    }
    return best;
}

struct service_session *service_session_for(struct service *s, int64_t ttl_ms)
{
    if (s->address.ttl_ms)
        ttl_ms = s->address.ttl_ms;
    for (size_t i = 0; i < SERVICE_SESSIONS_MAX; i++)
        if (s->sessions[i].client && s->sessions[i].ttl_ms == ttl_ms)
            return &s->sessions[i];
    struct service_session *session = take_session(s);
    if (!session)
        return nearest_session(s, ttl_ms);
    if (session == &s->sessions[s->n_sessions])
        s->n_sessions++;
    *session = (struct service_session){.service = s, .ttl_ms = ttl_ms};
    session->client = client_new(&(struct client_config){.ttl_ms = ttl_ms,
                                                         .cache = s->address.cache,
                                                         .random = &s->random,
                                                         .on_change = lease_changed,
                                                         .context = s});
    return session;
}

struct client_lease *service_find(struct service *s, const struct lease_request *q,
                                  struct service_session **ret_session)
{
    for (size_t i = 0; i < s->n_sessions; i++) {
        struct client *c = s->sessions[i].client;
        struct client_lease *l = c ? client_find(c, q->key, q->key_len, q->owner) : NULL;
        if (l) {
            *ret_session = &s->sessions[i];
            return l;
        }
    }
    return NULL;
}

void service_arm(struct service *s, const struct service_session *session)
{
    if (client_due_us(session->client) >= s->armed_us)
        return;
    s->armed_us = INT64_MIN; /* so that it is woken once */
    http_pool_wake(s->pool);
}

/* ---- calls that are no messages ---- */

enum hf_result service_call(struct service *s, const char *method, const char *path, bool reads,
                            json_t **ret, struct hf_fault *fault)
{
    pthread_cond_t cond;
    wait_cond_init(&cond);
    pthread_mutex_lock(&s->mutex);
    struct job *job = job_new(s, NULL, s->timeout_ms);
    job->method = method;
    job->reads = reads;
    job->cond = &cond;
    buf_str(&job->path, path);
    buf_char(&job->path, '\0');
    job_start(job);
    job_wait(job);
    pthread_mutex_unlock(&s->mutex);
    enum hf_result result = HF_DONE;
    if (job->result != CLIENT_DONE) {
        result = job_failure(job, job->result, fault);
    } else {
        const struct buf *body = &job->x.response.body;
        *ret = json_loadb(body->data ? body->data : "", body->len, 0, NULL);
        if (!*ret)
            result =
                fault_set(fault, HF_UNREACHABLE, "%s", "the answer is not that of a lock service");
    }
    job_free(job);
    pthread_cond_destroy(&cond);
    return result;
}

enum hf_result service_learn(struct service *s, json_t **ret, struct hf_fault *fault)
{
    enum hf_result result = service_call(s, "GET", "/v1/cell", true, ret, fault);
    if (result != HF_DONE)
        return result;
    if (!json_is_array(json_object_get(*ret, "servers"))) {
        json_decref(*ret);
        return fault_set(fault, HF_UNREACHABLE, "the answer is not that of a lock service");
    }
    pthread_mutex_lock(&s->mutex);
    servers_learn(&s->servers, *ret, service_now_us(s));
    pthread_mutex_unlock(&s->mutex);
    return HF_DONE;
}
