/* A handle of the driver, and what its files share.  A handle belongs to one thread at a time; what
 * it shares with others is in its struct service. */
#ifndef HF_LEASE_HOLDFAST_HANDLE_H
#define HF_LEASE_HOLDFAST_HANDLE_H

#include "lease/holdfast/service.h"

struct handle {
    struct lease lease;
    struct service *service;
    pthread_cond_t cond; /* for the jobs of this handle */
    struct service_waiter waiter;
};

static inline struct handle *handle_of(struct lease *l) { return (struct handle *)(void *)l; }

/* ---- ask.c; called with the mutex held ---- */

/* The end of a lease as verdicts have it, counted from now. */
int64_t handle_left_ms(const struct handle *h, const struct client_lease *lease);
/* Fills a verdict.  `lease` may be NULL unless the result is HF_DONE. */
void handle_fill(const struct client_lease *lease, enum hf_result result, int64_t now_us,
                 struct lease_verdict *ret);
/* Makes and starts a job for a message, for which the handle waits with job_wait. */
struct job *handle_start(struct handle *h, struct service_session *session,
                         const struct client_message *m, int64_t timeout_ms);
/* Asks once for one lease, and answers in *verdict; the mutex is released meanwhile. */
enum hf_result handle_ask(struct handle *h, const struct lease_request *q, int64_t timeout_ms,
                          struct lease_verdict *verdict, struct hf_fault *fault);

/* wait.c */
enum hf_result holdfast_wait(struct lease *l, const struct lease_request *q, int64_t timeout_ms,
                             struct hf_fault *fault);
/* inspect.c */
enum hf_result holdfast_inspect(struct lease *l, const char *key, size_t key_len,
                                struct lease_state *ret, struct hf_fault *fault);
enum hf_result holdfast_list(struct lease *l, const char *prefix, size_t prefix_len,
                             lease_each_name *each, void *ctx, struct hf_fault *fault);
enum hf_result holdfast_break(struct lease *l, const char *key, size_t key_len,
                              struct hf_fault *fault);
enum hf_result holdfast_examine(struct lease *l, lease_each_finding *each, void *ctx,
                                struct hf_fault *fault);

#endif
