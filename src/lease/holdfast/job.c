/* Jobs as their callers see them: made, started, awaited, judged.  See service.h.  Every function
 * is called with the service's mutex held. */
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include "base/wait.h"
#include "lease/holdfast/service.h"

struct job *job_new(struct service *s, struct service_session *session, int64_t timeout_ms)
{
    struct job *job = hf_alloc(sizeof *job);
    job->service = s;
    job->session = session;
    job->fd = -1;
    job->until_us = wait_now_us() + timeout_ms * 1000;
    if (session)
        session->n_jobs++;
    return job;
}

void job_free(struct job *job)
{
    http_response_close(&job->x.response);
    if (job->body.data) /* it has the session's id */
        explicit_bzero(job->body.data, job->body.len);
    buf_close(&job->path);
    buf_close(&job->body);
    buf_close(&job->url);
    free(job);
}

void job_start(struct job *job)
{
    struct service *s = job->service;
    if (job->session)
        job->method = wire_request(&job->message, &job->path, &job->body);
    job->next = NULL;
    *s->queue_end = job;
    s->queue_end = &job->next;
    http_pool_wake(s->pool);
}

void job_wait(struct job *job)
{
    while (!job->is_done)
        pthread_cond_wait(job->cond, &job->service->mutex);
}

/* A keep-alive is written, too: it carries what a renewal asks for.  A session that was not opened
 * or closed is not what the caller asked for. */
static bool is_written(const struct job *job)
{
    if (!job->session)
        return !job->reads;
    return job->message.kind == CLIENT_ACQUIRE || job->message.kind == CLIENT_RELEASE ||
           job->message.kind == CLIENT_KEEPALIVE;
}

enum hf_result job_failure(const struct job *job, enum client_result result, struct hf_fault *fault)
{
    enum hf_result r = HF_UNREACHABLE;
    if (result == CLIENT_NO_ANSWER && is_written(job))
        r = HF_UNKNOWN;
    else if (result == CLIENT_REFUSED || result == CLIENT_DEADLOCK)
        r = job->fault.result;
    else if (result == CLIENT_LOST)
        r = HF_FAILED;
    return fault_set(fault, r, "%s",
                     *job->fault.msg ? job->fault.msg : "the lock service does not answer");
}

void job_cancel(struct job *job)
{
    job->is_cancelled = true;
    http_pool_wake(job->service->pool);
}

void service_pass_poll(struct service *s)
{
    struct service_waiter *first = NULL;
    for (struct service_waiter *w = s->waiters; w; w = w->next)
        if (!w->may_poll && (!first || w->number < first->number))
            first = w;
    if (!first)
        return;
    first->may_poll = true;
    s->n_passed++;
    (void)eventfd_write(first->fd, 1);
}

void service_return_poll(struct service *s, struct service_waiter *w)
{
    if (!w->may_poll)
        return;
    w->may_poll = false;
    s->n_passed--;
    service_pass_poll(s);
}

bool job_make_poll(struct job *job, struct service_waiter *w)
{
    struct service *s = job->service;
    size_t n_free = 0;
    struct job **free = NULL;
    for (size_t i = 0; i < SERVICE_POLLS_MAX; i++)
        if (!s->polls[i]) {
            free = &s->polls[i];
            n_free++;
        }
    if (n_free <= s->n_passed - w->may_poll)
        return false;
    s->n_passed -= w->may_poll;
    w->may_poll = false;
    *free = job;
    job->is_poll = true;
    return true;
}
