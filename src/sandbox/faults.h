/* What the sandbox does wrong on purpose: the settings of /sandbox/faults, as JSON and as a struct.
 * Chances are from 0 to 1.  Belongs to the bank's thread; the sender has a copy. */
#ifndef HF_SANDBOX_FAULTS_H
#define HF_SANDBOX_FAULTS_H

#include "base/buf.h"
#include "base/random.h"
#include "base/status.h"
#include "sandbox/order.h"

#define FAIL_NEXT_MAX 16
#define FAULT_MS_MAX INT64_C(600000)
#define FAULT_ROUTE_SIZE 24

/* The next `times` calls of an operation fail in one way. */
struct fail_next {
    char route[FAULT_ROUTE_SIZE]; /* the name of an operation */
    enum order_fault mode;
    int64_t times;
};

struct faults {
    double fail, timeout_before, timeout_after, rate_limit;
    double processing;           /* the chance that a card is charged only after later_ms */
    int64_t delay_ms[2];         /* of each call, from and to */
    int64_t hold_ms;             /* how long a call that times out is held */
    bool webhooks;               /* false: events are recorded, and not sent */
    double webhook_drop;         /* the chance that an event is never sent */
    double webhook_duplicate;    /* the chance that it is sent twice */
    double webhook_reorder;      /* the chance that it is sent up to two seconds late */
    int64_t webhook_delay_ms[2]; /* of each event, from and to */
    int64_t later_ms;            /* how long after their cause late things come */
    uint64_t seed;               /* of the chances; 0: the system's randomness */
    struct fail_next next[FAIL_NEXT_MAX];
    size_t n_next;
};

void faults_init(struct faults *f);
/* Changes what the JSON object names and nothing else; on failure nothing.  `fail_next` is added to
 * those that are left; null removes them. */
HF_MUST_USE bool faults_parse(struct faults *f, const char *json, size_t len, struct hf_err *err);
void faults_render(const struct faults *f, struct buf *out);

bool chance(struct random *random, double probability);
/* A number from range[0] to range[1], both included. */
int64_t chance_within(struct random *random, const int64_t range[2]);
/* Decides what goes wrong with a call of the operation; uses up what `next` has for it. */
enum order_fault faults_draw(struct faults *f, struct random *random, const char *operation,
                             bool by_secret_key);

#endif
