/* The calls of a lease as values of one type, for tests that do the same with each of them. */
#ifndef HF_TESTS_LEASE_CALL_H
#define HF_TESTS_LEASE_CALL_H

#include "base/status.h"
#include "lease/lease.h"

typedef enum hf_result lease_call(struct lease *l, const struct lease_request *requests, size_t n,
                                  struct lease_verdict *verdicts, struct hf_fault *fault);

static inline enum hf_result call_acquire(struct lease *l, const struct lease_request *request,
                                          size_t n, struct lease_verdict *verdict,
                                          struct hf_fault *fault)
{
    hf_check(n == 1);
    return lease_acquire(l, request, verdict, fault);
}

#endif
