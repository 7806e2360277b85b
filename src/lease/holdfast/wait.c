/* Waiting for a turn.  A few waiters of a process poll: they have a request that waits at the
 * service, so that a grant reaches them with its answer.  A poll that becomes free is kept for the
 * waiter that is next in its line.  The others are told by the session's stream that it is their
 * turn, a tenth of a second later, and ask then.  Each waiter asks again every ASK_US in any case,
 * which keeps its place and finds what the stream did not tell.  Runs on the callers' threads. */
#include <sys/eventfd.h>

#include "base/wait.h"
#include "lease/holdfast/handle.h"

/* Well below WAITER_SILENT_MS. */
#define ASK_US INT64_C(2000000)
/* The longest wait of one request. */
#define POLL_MS INT64_C(20000)

/* Sleeps until the handle's lease changes, the caller is to wake, or `us` have passed. */
static void sleep_us(struct handle *h, int64_t us)
{
    struct pollfd files[] = {{.fd = h->waiter.fd, .events = POLLIN},
                             {.fd = h->lease.wake_fd, .events = POLLIN}};
    (void)wait_files(files, h->lease.wake_fd >= 0 ? 2 : 1, us > 0 ? us : 0);
}

static void clear(struct handle *h)
{
    eventfd_t count;
    (void)!eventfd_read(h->waiter.fd, &count);
}

/* Waits for the answer of a request that waits itself.  HF_DONE also if it came to nothing. */
static enum hf_result await_poll(struct handle *h, struct job *job, int64_t until_us,
                                 struct hf_fault *fault)
{
    struct service *s = h->service;
    enum hf_result result = HF_DONE;
    while (!job->is_done) {
        pthread_mutex_unlock(&s->mutex);
        sleep_us(h, until_us - wait_now_us() + s->timeout_ms * 1000);
        clear(h);
        bool is_over = lease_is_woken(&h->lease);
        pthread_mutex_lock(&s->mutex);
        if (is_over && !job->is_done) {
            job_cancel(job);
            job_wait(job);
        }
    }
    if (!job->is_cancelled && job->result != CLIENT_DONE && job->result != CLIENT_TAKEN &&
        job->result != CLIENT_AGAIN && job->result != CLIENT_LOST)
        result = job_failure(job, job->result, fault);
    job_free(job);
    return result;
}

/* Makes a request that waits, if it is one of the few; NULL: it is not. */
static struct job *start_poll(struct handle *h, const struct lease_request *q,
                              struct service_session *session, int64_t wait_ms)
{
    struct service *s = h->service;
    struct client_lease *lease;
    struct client_message m;
    struct job *job = job_new(s, session, s->timeout_ms);
    if (!job_make_poll(job, &h->waiter)) {
        session->n_jobs--;
        job_free(job);
        return NULL;
    }
    if (client_acquire(session->client, q, service_now_us(s), &lease, &m) != CLIENT_SEND)
        hf_check(false); /* the lease waits, so it asks the service */
    job->message = m;
    job->message.wait_ms = wait_ms > 1 ? wait_ms : 1;
    job->until_us = wait_now_us() + (wait_ms + s->timeout_ms) * 1000;
    job->cond = &h->cond;
    job->fd = h->waiter.fd;
    job_start(job);
    return job;
}

static void waiter_add(struct handle *h, struct client_lease *lease)
{
    struct service_waiter *w = &h->waiter;
    service_return_poll(h->service, w);
    w->number = h->service->n_turns + client_lease_position(lease);
    w->next = h->service->waiters;
    h->service->waiters = w;
    client_lease_set_waiter(lease, w);
    if (!w->next) /* the first that needs the stream */
        service_want_streams(h->service);
}

static void waiter_remove(struct handle *h, const struct lease_request *q)
{
    struct service_waiter **at = &h->service->waiters;
    struct service_session *session;
    struct client_lease *lease = service_find(h->service, q, &session);
    while (*at != &h->waiter)
        at = &(*at)->next;
    *at = h->waiter.next;
    if (lease)
        client_lease_set_waiter(lease, NULL);
}

/* Sleeps until the stream tells, a poll has become free, or it is time to ask again. */
static enum hf_result wait_without_poll(struct handle *h, const struct lease_request *q,
                                        struct client_lease *lease, int64_t until_us,
                                        struct hf_fault *fault, bool *ret_is_over)
{
    struct service *s = h->service;
    int64_t left_us = until_us - wait_now_us();
    int64_t ask_us = client_lease_asked_us(lease) + ASK_US - service_now_us(s);
    waiter_add(h, lease);
    pthread_mutex_unlock(&s->mutex);
    sleep_us(h, ask_us < left_us ? ask_us : left_us);
    pthread_mutex_lock(&s->mutex);
    waiter_remove(h, q);
    eventfd_t count = 0;
    bool is_told = eventfd_read(h->waiter.fd, &count) == 0 && !h->waiter.may_poll;
    *ret_is_over = is_told || wait_now_us() >= until_us || lease_is_woken(&h->lease);
    if (*ret_is_over || h->waiter.may_poll)
        return HF_DONE;
    struct lease_verdict v;
    enum hf_result result = handle_ask(h, q, s->timeout_ms, &v, fault);
    *ret_is_over = result != HF_DONE || v.result != HF_TAKEN;
    return result;
}

enum hf_result holdfast_wait(struct lease *l, const struct lease_request *q, int64_t timeout_ms,
                             struct hf_fault *fault)
{
    struct handle *h = handle_of(l);
    struct service *s = h->service;
    int64_t until_us = wait_now_us() + timeout_ms * 1000;
    enum hf_result result = HF_DONE;
    bool is_over = false;
    pthread_mutex_lock(&s->mutex);
    clear(h);
    while (!is_over && result == HF_DONE) {
        struct service_session *session;
        struct client_lease *lease = service_find(s, q, &session);
        int64_t left_ms = (until_us - wait_now_us() + 999) / 1000;
        bool waits = lease && client_lease_is_waiting(lease) && !client_lease_is_its_turn(lease);
        s->n_turns += lease && !waits;
        if (!waits || left_ms <= 0 || lease_is_woken(l))
            break;
        struct job *job = client_is_open(session->client)
                              ? start_poll(h, q, session, left_ms < POLL_MS ? left_ms : POLL_MS)
                              : NULL;
        if (job)
            result = await_poll(h, job, until_us, fault);
        else
            result = wait_without_poll(h, q, lease, until_us, fault, &is_over);
    }
    service_return_poll(s, &h->waiter);
    pthread_mutex_unlock(&s->mutex);
    return result;
}
