/* The service's thread: it starts jobs, judges responses, follows the servers of the cell, and
 * sends what the sessions want sent.  See service.h. */
#include <signal.h>
#include <sys/eventfd.h>

#include "base/backoff.h"
#include "base/wait.h"
#include "lease/holdfast/service.h"

#define PAUSE_MIN_US INT64_C(20000)
#define PAUSE_MAX_US INT64_C(200000)
/* The longest try of a keep-alive is an eighth of the TTL, but not less than this. */
#define KEEP_TRY_MIN_MS INT64_C(200)
#define KEEP_TRIES_MIN 2
/* Messages of the sessions themselves that are under way at once. */
#define OWN_MAX 8
#define SLEEP_MAX_US INT64_C(1000000)
/* The cell is not asked for its servers again so soon after it has named them. */
#define LEARN_US INT64_C(500000)

/* ---- the end of a job ---- */

/* Tells the session, and then the caller.  Called with the mutex held. */
static void finish(struct job *job, const struct client_answer *answer)
{
    struct service *s = job->service;
    job->result = answer->result;
    if (job->session) {
        job->result = client_answer(job->session->client, &job->message, answer, service_now_us(s));
        job->session->n_jobs--;
        pthread_cond_broadcast(&s->changed);
    }
    for (size_t i = 0; i < SERVICE_POLLS_MAX; i++)
        if (s->polls[i] == job) {
            s->polls[i] = NULL;
            service_pass_poll(s);
        }
    job->is_done = true;
    if (job->fd >= 0)
        (void)eventfd_write(job->fd, 1);
    if (job->cond) {
        pthread_cond_signal(job->cond);
    } else {
        s->n_own--;
        job_free(job);
    }
}

static void finish_without(struct job *job, enum client_result result)
{
    finish(job, &(struct client_answer){.result = result});
}

/* ---- servers ---- */

/* The server could not do it: the next one is asked. */
static void leave(struct job *job)
{
    struct server_list *servers = &job->service->servers;
    size_t next = servers_after(servers, job->at);
    if (servers->at == job->at)
        servers->at = next;
    job->at = next;
    job->n_hops = 0;
    job->n_tries++;
}

/* Asks the cell for its servers, without waiting: a redirection names one that is not known. */
static void ask_servers(struct service *s)
{
    int64_t now_us = service_now_us(s);
    if (s->is_asking || now_us - s->servers.learned_us < LEARN_US)
        return;
    s->is_asking = true;
    struct job *job = job_new(s, NULL, s->timeout_ms);
    job->method = "GET";
    job->reads = true;
    buf_lit(&job->path, "/v1/cell");
    buf_char(&job->path, '\0');
    s->n_own++;
    job_start(job);
}

static bool is_of_ask_servers(const struct job *job) { return !job->session && !job->cond; }

/* Returns false if the response is no redirection, names no server of the cell, or is one
 * redirection too many. */
static bool follow(struct job *job)
{
    struct service *s = job->service;
    if (job->x.response.status != 307 || ++job->n_hops > SERVERS_HOPS_MAX)
        return false;
    size_t at = servers_redirected(&s->servers, &job->x.response);
    if (at == s->servers.n) {
        ask_servers(s);
        return false;
    }
    s->servers.at = job->at = at;
    return true;
}

/* ---- running a job ---- */

static int64_t left_ms(const struct job *job)
{
    int64_t us = job->until_us - wait_now_us();
    return us > 1000 ? us / 1000 : 1;
}

static void job_done(struct http_exchange *x);

/* How long one try may take.  A keep-alive that is not answered is tried again before its session
 * ends: at another server, or on another connection. */
static int64_t try_ms(const struct job *job)
{
    int64_t ms = left_ms(job);
    if (job->session && job->message.kind == CLIENT_KEEPALIVE) {
        int64_t part_ms = job->session->ttl_ms / 8;
        part_ms = part_ms > KEEP_TRY_MIN_MS ? part_ms : KEEP_TRY_MIN_MS;
        ms = part_ms < ms ? part_ms : ms;
    }
    return ms;
}

static void run(struct job *job)
{
    struct service *s = job->service;
    struct http_request *r = &job->x.request;
    if (job->at >= s->servers.n)
        job->at = s->servers.at;
    job->url.len = 0;
    buf_str(&job->url, s->servers.origins[job->at]);
    buf_str(&job->url, job->path.data);
    buf_char(&job->url, '\0');
    *r = (struct http_request){.method = job->method,
                               .url = job->url.data,
                               .headers = job->headers,
                               .body = job->body.data,
                               .body_len = job->body.len,
                               .timeout_ms = try_ms(job),
                               .is_repeatable = true};
    if (s->authorization)
        job->headers[r->n_headers++] = (struct http_header){"Authorization", s->authorization};
    if (job->body.len)
        job->headers[r->n_headers++] = (struct http_header){"Content-Type", "application/json"};
    job->is_running = true;
    s->n_running += !job->is_poll;
    *vec_push(&s->running) = job;
    http_pool_start(s->pool, &job->x, job_done);
}

/* Tries again, at once or after a pause; a job whose time is up ends with `result`. */
static void again(struct job *job, enum client_result result)
{
    struct service *s = job->service;
    int64_t now_us = wait_now_us(), pause_us = 0;
    unsigned n_servers = (unsigned)s->servers.n_configured;
    if (job->n_tries % n_servers == 0)
        pause_us = backoff_pause(PAUSE_MIN_US, PAUSE_MAX_US, job->n_tries / n_servers);
    if (job->is_cancelled || s->stop || now_us + pause_us >= job->until_us) {
        finish_without(job, result);
        return;
    }
    job->retry_us = now_us + pause_us;
    job->next = s->paused;
    s->paused = job;
}

/* Nothing was sent, or the server says that it did nothing.  A server that refuses connections
 * does so at once; if no other is left the caller hears of it at once, too. */
static void try_elsewhere(struct job *job, bool may_come_back)
{
    leave(job);
    if (!may_come_back && job->n_tries >= job->service->servers.n_configured)
        finish_without(job, CLIENT_NOT_DONE);
    else
        again(job, CLIENT_NOT_DONE);
}

static void answer_lost(struct job *job)
{
    bool is_keeping = job->session && job->message.kind == CLIENT_KEEPALIVE;
    size_t n_tries = job->service->servers.n_configured;
    if (is_keeping && n_tries < KEEP_TRIES_MIN)
        n_tries = KEEP_TRIES_MIN;
    leave(job);
    if ((job->reads || is_keeping) && job->n_tries < n_tries)
        again(job, CLIENT_NO_ANSWER);
    else
        finish_without(job, CLIENT_NO_ANSWER);
}

/* Is what a release was for gone, perhaps because an earlier sending of it was carried out?  That
 * is for the caller to judge, as after a lost answer. */
static bool is_open_release(const struct job *job, enum client_result result)
{
    return result == CLIENT_LOST && job->message.kind == CLIENT_RELEASE && job->was_repeated;
}

static void judge(struct job *job)
{
    struct service *s = job->service;
    struct wire_answer a = {0};
    enum client_result result =
        wire_answer(job->session ? &job->message : NULL, &job->x.response, &a);
    job->fault = a.fault;
    if (is_open_release(job, result)) {
        finish_without(job, CLIENT_NO_ANSWER);
    } else if (follow(job)) {
        run(job);
    } else if (result == CLIENT_NOT_DONE) {
        try_elsewhere(job, true);
    } else if (result == CLIENT_NO_ANSWER) {
        answer_lost(job);
    } else {
        s->servers.at = job->at;
        if (is_of_ask_servers(job) && result == CLIENT_DONE)
            servers_learn(&s->servers, a.json, service_now_us(s));
        finish(job, &a.answer);
    }
    wire_answer_close(&a);
}

/* The pool has it no more. */
static void stopped(struct job *job)
{
    struct service *s = job->service;
    size_t i = 0;
    while (s->running.v[i] != job)
        i++;
    s->running.v[i] = s->running.v[--s->running.n];
    job->is_running = false;
    s->n_running -= !job->is_poll;
}

/* Called by the pool. */
static void job_done(struct http_exchange *x)
{
    struct job *job = (struct job *)(void *)x;
    struct service *s = job->service;
    pthread_mutex_lock(&s->mutex);
    stopped(job);
    job->was_repeated |= x->was_repeated;
    if (x->result != HF_OK)
        (void)fault_set(&job->fault,
                        x->result == HF_OUTCOME_UNKNOWN && !job->reads ? HF_UNKNOWN
                                                                       : HF_UNREACHABLE,
                        "%.240s", x->err.msg);
    if (is_of_ask_servers(job))
        s->is_asking = false;
    if (x->result == HF_OUTCOME_UNKNOWN)
        answer_lost(job);
    else if (x->result != HF_OK)
        try_elsewhere(job, x->result == HF_UNAVAILABLE && s->servers.n_configured > 1);
    else
        judge(job);
    pthread_mutex_unlock(&s->mutex);
}

/* ---- the loop ---- */

/* Keep-alives are started whatever else is under way. */
static bool may_start(const struct service *s, const struct job *job)
{
    if (job->is_poll || (job->session && job->message.kind == CLIENT_KEEPALIVE))
        return true;
    return s->n_running < SERVICE_RUNNING_MAX;
}

static void start_queued(struct service *s)
{
    for (struct job **at = &s->queue; *at;) {
        struct job *job = *at;
        if (!may_start(s, job)) {
            at = &job->next;
            continue;
        }
        *at = job->next;
        if (job->is_cancelled) {
            finish_without(job, CLIENT_NOT_DONE);
            continue;
        }
        job->at = s->servers.at;
        run(job);
    }
    s->queue_end = &s->queue;
    while (*s->queue_end)
        s->queue_end = &(*s->queue_end)->next;
}

/* Starts the requests whose pause has ended, as far as there is room for them; the others go on
 * when a request ends.  Returns when the next pause ends, by wait_now_us; INT64_MAX if none will.
 */
static int64_t start_paused(struct service *s)
{
    int64_t now_us = wait_now_us(), next_us = INT64_MAX;
    for (struct job **at = &s->paused; *at;) {
        struct job *job = *at;
        if (job->is_cancelled || s->stop) {
            *at = job->next;
            finish_without(job, CLIENT_NO_ANSWER);
        } else if (job->retry_us > now_us) {
            next_us = job->retry_us < next_us ? job->retry_us : next_us;
            at = &job->next;
        } else if (may_start(s, job)) {
            *at = job->next;
            run(job);
        } else {
            at = &job->next;
        }
    }
    return next_us;
}

/* Drops polls that nobody waits for any more. */
static void drop_cancelled(struct service *s)
{
    for (size_t i = 0; i < SERVICE_POLLS_MAX; i++) {
        struct job *job = s->polls[i];
        if (!job || !job->is_cancelled || !job->is_running)
            continue;
        http_pool_cancel(s->pool, &job->x);
        stopped(job);
        finish_without(job, CLIENT_NO_ANSWER);
    }
}

/* The last handle is closed: what is under way is of no use any more. */
static void drop_all(struct service *s)
{
    while (s->running.n > 0) {
        struct job *job = s->running.v[0];
        http_pool_cancel(s->pool, &job->x);
        stopped(job);
        finish_without(job, CLIENT_NO_ANSWER);
    }
}

static bool has_polls(const struct service *s)
{
    for (size_t i = 0; i < SERVICE_POLLS_MAX; i++)
        if (s->polls[i])
            return true;
    return false;
}

static void send_own(struct service *s)
{
    for (size_t i = 0; i < SERVICE_SESSIONS_MAX && s->n_own < OWN_MAX; i++) {
        struct service_session *session = &s->sessions[i];
        struct client_message m;
        while (session->client && s->n_own < OWN_MAX &&
               client_next(session->client, service_now_us(s), &m)) {
            struct job *job = job_new(s, session, s->timeout_ms);
            job->message = m;
            s->n_own++;
            job_start(job);
        }
    }
}

static int64_t sleep_us(struct service *s, int64_t paused_us)
{
    int64_t now_us = service_now_us(s), due_us = now_us + SLEEP_MAX_US;
    for (size_t i = 0; i < SERVICE_SESSIONS_MAX && s->n_own < OWN_MAX; i++)
        if (s->sessions[i].client && client_due_us(s->sessions[i].client) < due_us)
            due_us = client_due_us(s->sessions[i].client);
    if (service_streams_due_us(s) < due_us)
        due_us = service_streams_due_us(s);
    s->armed_us = due_us;
    int64_t us = due_us - now_us, left_us = paused_us - wait_now_us();
    us = left_us < us ? left_us : us;
    return us > 0 ? us : 0;
}

static void *service_run(void *arg)
{
    struct service *s = arg;
    pthread_mutex_lock(&s->mutex);
    while (!s->stop || s->n_running > 0 || has_polls(s) || s->queue || s->paused) {
        drop_cancelled(s);
        if (s->stop)
            drop_all(s);
        else
            send_own(s);
        start_queued(s);
        int64_t paused_us = start_paused(s);
        if (!s->stop)
            service_tend_streams(s);
        int64_t us = sleep_us(s, paused_us);
        pthread_mutex_unlock(&s->mutex);
        http_pool_turn(s->pool, us);
        pthread_mutex_lock(&s->mutex);
        s->armed_us = INT64_MIN;
    }
    service_close_streams(s);
    pthread_mutex_unlock(&s->mutex);
    return NULL;
}

bool service_start_thread(struct service *s)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool ok = pthread_create(&s->thread, NULL, service_run, s) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return ok;
}
