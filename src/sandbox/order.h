/* An order is one request to the simulated provider, on its way from the HTTP thread that received
 * it to the bank's thread and back.  Until its pending is done it belongs to the bank's thread. */
#ifndef HF_SANDBOX_ORDER_H
#define HF_SANDBOX_ORDER_H

#include "base/heap.h"
#include "base/pending.h"
#include "sandbox/answers.h"
#include "sandbox/bank.h"
#include "sandbox/form.h"

struct bank_worker;
struct order;

/* What can be asked for.  Constant; operations.c, views.c, page.c and bank_worker.c have them. */
struct operation {
    const char *name;              /* what faults call it, and part of what a key stands for */
    const char *const *parameters; /* patterns of form.h, up to NULL */
    /* Carries it out.  Fills order->out and returns true, or refuses. */
    bool (*run)(struct bank *b, struct order *o, struct api_error *ret);
    bool writes;         /* is a POST, which an idempotency key may come with */
    bool by_publishable; /* may also be called with a publishable key and the client secret */
    bool is_own;         /* belongs to the sandbox and not to Stripe's API: no key, no faults */
    void (*run_own)(struct bank_worker *t,
                    struct order *o); /* in place of run, where it needs the worker */
};

enum order_fault {
    FAULT_NONE,
    FAULT_FAIL,           /* 500 before the work */
    FAULT_TIMEOUT_BEFORE, /* held, then reset; no work */
    FAULT_TIMEOUT_AFTER,  /* the work is done, then held and reset */
    FAULT_RATE_LIMIT,     /* 429 */
    FAULT_RESET,          /* reset at once; no work */
};

#define ORDER_SEGMENT_SIZE 128
#define ORDER_VERSION_SIZE 40

struct order {
    struct pending pending;
    struct order *next; /* in a list of the worker */
    const struct operation *operation;

    /* The question. */
    struct form form;
    const char *body; /* of the sandbox's own operations; borrowed */
    size_t body_len;
    char segment[ORDER_SEGMENT_SIZE], segment2[ORDER_SEGMENT_SIZE]; /* of the path */
    char key[ANSWER_KEY_MAX + 1];                                   /* empty: none */
    char request_id[ANSWER_REQUEST_SIZE];
    char version[ORDER_VERSION_SIZE]; /* empty: the default */
    int64_t account;
    bool is_publishable;

    /* The answer. */
    int status;      /* of HTTP */
    struct buf *out; /* the body; borrowed from the request */
    const char *type;
    struct buf location, policy; /* of pages; NUL-terminated, empty: none */
    char original_request[ANSWER_REQUEST_SIZE];
    bool is_replayed;
    bool resets; /* the connection is reset, and nothing is sent */

    /* For the worker. */
    struct heap_node due; /* while it is delayed or held: when it goes on, on wait_now_us() */
    enum order_fault fault;
    struct stored_answer *in_flight; /* its key, while it is worked on */
    bool is_done;                    /* held after the work */
};

#endif
