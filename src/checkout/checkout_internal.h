/* What the files of the payment thread share; see checkout.h.  Internal to src/checkout.
 *
 * The thread owns everything here but for what stands under `lock`, and the atomics. */
#ifndef HF_CHECKOUT_CHECKOUT_INTERNAL_H
#define HF_CHECKOUT_CHECKOUT_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/vec.h"
#include "checkout/checkout.h"
#include "checkout/notify.h"
#include "net/http_pool.h"

#define WORKS_MAX 256          /* jobs under way */
#define WORK_BUCKETS 256       /* by booking; a power of two */
#define CALLS_PER_JOB_MAX 1000 /* mostly pages of a list, with 100 objects each */
#define INBOX_MAX 1024         /* jobs handed over and not begun; more are taken like all others */
#define TOLD_BUCKETS 1024      /* by booking; a power of two */

/* Something that is lent to the engine, and the step that goes on when it comes back. */
struct errand {
    struct checkout *checkout;
    struct command command;
    void (*then)(struct errand *errand); /* on the payment thread */
    struct errand *next;
};

/* A job under way. */
struct work {
    struct errand errand; /* first */
    struct job_row job;
    enum stripe_call call; /* the last one that was made */
    uint32_t n_calls;
    bool was_refused; /* the call that the job stands for; others look at the reason */
    struct payment_error refusal;
    struct stripe_request request;
    struct notify_request notice;
    struct buf body; /* of a notification */
    struct http_exchange x;
    struct fact fact; /* what the calls have shown so far */
    struct job_report report;
    struct work *next;       /* in its bucket */
    struct work *next_ended; /* in checkout.ended */
};

struct checkout_metrics {
    struct counter *calls[CALL_LIST_DISPUTES + 1][2]; /* by call; failed, answered */
    struct counter *webhooks[WEBHOOKS_COUNTED];
    struct counter *notices[2]; /* failed, delivered */
    struct counter *alarms;
    struct gauge *jobs[JOB_NOTIFY + 1], *oldest[JOB_NOTIFY + 1];
    struct gauge *restore_unchecked; /* poll jobs */
};

struct cancelling {
    struct errand list; /* looks for bookings of cancelled events */
    struct cancel_page page;
    struct errand *errands; /* one per booking of the page */
    size_t n_lent;
    int64_t next_us;
    bool is_listing;
};

struct checkout {
    struct checkout_config config;
    char actor[ACTOR_SIZE]; /* see checkout_actor */
    struct engine *engine;
    struct checkout_metrics metrics;
    struct http_pool *pool;
    struct random random;
    pthread_t thread;
    bool is_running;

    _Atomic int64_t alarmed_us; /* when the log last said that something is wrong */
    atomic_bool is_woken;       /* jobs may have been made since the last take */
    _Atomic int64_t
        webhook_us; /* when the last webhook arrived, by the monotonic clock; 0: never */

    pthread_mutex_t lock; /* of the next six */
    bool is_stopping;
    VEC(struct job_row) inbox;                     /* new jobs, from workers; at most INBOX_MAX */
    struct errand *returned;                       /* by the engine, newest first */
    struct checkout_wait *first_wait, **last_wait; /* in the order of their ends */
    /* Bookings whose intent came before their request began to wait.  One that another has
     * displaced waits for CHECKOUT_WAIT_MS. */
    int64_t told[TOLD_BUCKETS];

    /* Of a fixed size, unlike base/table.h: no more than WORKS_MAX of them run at a time. */
    struct work *buckets[WORK_BUCKETS];
    size_t n_works;     /* without those that have ended */
    struct work *ended; /* while a take was under way */
    size_t n_lent;      /* errands that the engine has */
    struct errand take;
    struct job_row *taken; /* 3 * WORKS_MAX rows */
    /* Jobs that are leased to this server and wait for another one about the same payment, or for
     * room; at most INBOX_MAX. */
    VEC(struct job_row) postponed;
    bool is_taking;
    int64_t next_take_us, next_count_us;
    int64_t tokens, token_us; /* calls that may be made now, where no other server shares them */
    int64_t spent;            /* calls beyond those that takes have allowed */
    struct cancelling cancelling;
};

static inline int64_t checkout_now_us(const struct checkout *c)
{
    return clock_monotonic_us(c->config.clock);
}

/* ---- errand.c ---- */

/* Lends the errand's command to the engine.  `then` runs in any case, also if the engine does not
 * take it; the verdict says so. */
void errand_submit(struct errand *errand, void (*then)(struct errand *errand));
/* Runs the next step of everything that has come back. */
void errands_collect(struct checkout *c);

/* ---- work.c ---- */

/* Is the job, or another one that may not run beside it, under way? */
bool work_is_running(const struct checkout *c, const struct job_row *job);
void work_begin(struct checkout *c, const struct job_row *job);
/* Frees works that ended during a take, which has come back. */
void work_forget_ended(struct checkout *c);
/* Frees works whose calls have been dropped. */
void work_drop_all(struct checkout *c);

/* ---- cancel.c ---- */

/* Goes on with cancelled events, if it is time to. */
void cancelling_turn(struct checkout *c);

/* ---- waits.c ---- */

/* Ends the waits for a booking, which `payment`, if it is not NULL, belongs to; booking 0: those
 * whose time is over at `now_us`. */
void waits_end(struct checkout *c, int64_t booking, const struct payment_row *payment,
               int64_t now_us);
/* When the first wait ends; INT64_MAX: there is none. */
int64_t waits_first_end_us(struct checkout *c);
/* The intent of this booking has been created, or refused.  `payment` is what was stored; NULL if
 * that is not known here. */
void checkout_tell(struct checkout *c, int64_t booking, const struct payment_row *payment);

/* ---- counts.c ---- */

void checkout_register_metrics(struct checkout *c);

#endif
