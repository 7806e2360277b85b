/* Asking the service for one lease, and what its answers mean to the caller.  Runs on the callers'
 * threads, with the service's mutex held. */
#include "base/wait.h"
#include "lease/holdfast/handle.h"

/* A session whose proof is older than this part of its TTL is kept alive beside the next request,
 * so that grants have nearly their whole TTL. */
#define FRESH_PART 16
/* Requests that one call may make: opening a session, giving up a cached lock, new owners. */
#define STEPS_MAX 12

/* ---- results ---- */

static int64_t left_ms(const struct client_lease *lease, int64_t now_us)
{
    int64_t us = client_lease_end_us(lease) - now_us;
    return us > 0 ? us / 1000 : 0;
}

int64_t handle_left_ms(const struct handle *h, const struct client_lease *lease)
{
    return left_ms(lease, service_now_us(h->service));
}

void handle_fill(const struct client_lease *lease, enum hf_result result, int64_t now_us,
                 struct lease_verdict *v)
{
    *v = (struct lease_verdict){.result = result, .remaining_ms = -1};
    if (result == HF_TAKEN && lease)
        v->position = client_lease_position(lease);
    if (result != HF_DONE)
        return;
    v->fence = client_lease_fence(lease);
    v->slot = client_lease_slot(lease);
    v->remaining_ms = left_ms(lease, now_us);
}

/* ---- asking ---- */

struct job *handle_start(struct handle *h, struct service_session *session,
                         const struct client_message *m, int64_t timeout_ms)
{
    struct job *job = job_new(h->service, session, timeout_ms);
    job->message = *m;
    job->cond = &h->cond;
    job_start(job);
    return job;
}

/* A keep-alive beside another request, unless the session's proof is fresh; NULL: none. */
static struct job *start_keep_alive(struct handle *h, struct service_session *session,
                                    int64_t timeout_ms)
{
    struct client_message m;
    int64_t max_age_us = session->ttl_ms * 1000 / FRESH_PART;
    if (!client_keep_alive(session->client, service_now_us(h->service), max_age_us, &m))
        return NULL;
    return handle_start(h, session, &m, timeout_ms);
}

/* Sends a message that client_acquire has made.  *ret_again: ask again; otherwise the result is
 * that of the call, and *v is filled if it is HF_DONE. */
static enum hf_result send_ask(struct handle *h, struct service_session *session,
                               const struct lease_request *q, const struct client_message *m,
                               int64_t timeout_ms, struct lease_verdict *v, bool *ret_again,
                               struct hf_fault *fault)
{
    struct job *keep = m->kind == CLIENT_ACQUIRE ? start_keep_alive(h, session, timeout_ms) : NULL;
    struct job *job = handle_start(h, session, m, timeout_ms);
    job_wait(job);
    if (keep) {
        job_wait(keep);
        job_free(keep);
    }
    enum hf_result result = HF_DONE;
    struct client_lease *lease = client_find(session->client, q->key, q->key_len, q->owner);
    *ret_again = false;
    if (job->result == CLIENT_AGAIN || (job->result == CLIENT_LOST && m->kind == CLIENT_RELEASE))
        *ret_again = true;
    else if (job->result == CLIENT_DONE)
        *ret_again = m->kind != CLIENT_ACQUIRE || !lease || !client_lease_is_granted(lease);
    else if (job->result == CLIENT_NO_ANSWER && m->kind != CLIENT_ACQUIRE)
        result = job_failure(job, CLIENT_NOT_DONE, fault); /* of what the caller asked */
    else if (job->result != CLIENT_TAKEN)
        result = job_failure(job, job->result, fault);
    if (result == HF_DONE && !*ret_again)
        handle_fill(lease, job->result == CLIENT_DONE ? HF_DONE : HF_TAKEN,
                    service_now_us(h->service), v);
    job_free(job);
    return result;
}

/* The session that a request belongs to. */
static struct service_session *session_of(struct service *s, const struct lease_request *q)
{
    struct service_session *session = &s->sessions[0];
    if (s->n_sessions == 1 && session->ttl_ms == q->ttl_ms)
        return session; /* the usual case */
    if (!service_find(s, q, &session))
        session = service_session_for(s, q->ttl_ms);
    return session;
}

enum hf_result handle_ask(struct handle *h, const struct lease_request *q, int64_t timeout_ms,
                          struct lease_verdict *v, struct hf_fault *fault)
{
    struct service *s = h->service;
    int64_t until_us = 0;
    for (int i = 0; i < STEPS_MAX; i++) {
        struct service_session *session = session_of(s, q);
        struct client_lease *lease;
        struct client_message m;
        bool again = true;
        enum hf_result result = HF_DONE;
        int64_t now_us = service_now_us(s);
        switch (client_acquire(session->client, q, now_us, &lease, &m)) {
        case CLIENT_KNOWN:
            handle_fill(lease, HF_DONE, now_us, v);
            return HF_DONE;
        case CLIENT_SEND:
            result = send_ask(h, session, q, &m, timeout_ms, v, &again, fault);
            break;
        case CLIENT_BUSY:
            until_us = until_us ? until_us : wait_now_us() + timeout_ms * 1000;
            if (!wait_cond_until(&s->changed, &s->mutex, until_us))
                return fault_set(fault, HF_UNREACHABLE, "the lock service does not answer");
            i--;
            break;
        }
        if (result != HF_DONE || !again)
            return result;
    }
    return fault_set(fault, HF_UNREACHABLE, "sessions with the lock service end as they begin");
}
