/* I10: for a given history of seat commands, and a given place in it of the first money fact, any
 * order, repetition or loss of other facts leads to the same final state.
 *
 * A history is drawn from a seed: what the buyer, the seller and a rival do to the seats, where the
 * provider's first money fact arrives, and how the provider behaves.  It is run once with that fact
 * alone, and several times with noise: webhooks that are late, repeated and out of order, looks at
 * the intent, answers that are lost.  In the end the jobs that are owed are run against the
 * provider until none is left, and all runs must have come to the same.  The claims of paper_check,
 * among them I9, hold after every step of every run.  HF_SEED repeats a stream of histories,
 * HF_STEPS sets their number. */
#include "support/buyer.h"

#include <stdio.h>
#include <string.h>

#define HISTORY_MAX 8
#define NOISY_RUNS 3
#define SEATS 2
#define AMOUNT (SEATS * 2500)
#define PUMPS_MAX 40 /* jobs until a payment must have come to rest */

/* ---- the provider ---- */

struct p_refund {
    uint8_t key[JOB_KEY_SIZE];
    struct refund_fact fact;
};
struct provider {
    enum intent_state state;
    int64_t received;
    int failures; /* refunds that will succeed first and fail then */
    VEC(struct p_refund) refunds;
    VEC(struct fact) sent; /* webhooks about the intent, in the order of what they tell */
    size_t n_display;      /* of `sent`: those before money */
};

static int64_t p_left(const struct provider *p)
{
    int64_t left = p->received;
    for (size_t i = 0; i < p->refunds.n; i++)
        left -= p->refunds.v[i].fact.status == REFUND_FAILED ? 0 : p->refunds.v[i].fact.amount;
    return left;
}

static struct fact p_look(const struct provider *p)
{
    return (struct fact){.is_current = true,
                         .state = p->state,
                         .amount = p->received ? p->received : AMOUNT,
                         .received = p->received,
                         .intent = "pi_1"};
}

static void p_enter(struct provider *p, enum intent_state state, int64_t received)
{
    p->state = state;
    p->received = received;
    struct fact f = p_look(p);
    f.is_current = false;
    *vec_push(&p->sent) = f;
}

static void p_list_refunds(const struct provider *p, struct fact *f)
{
    for (size_t i = 0; i < p->refunds.n; i++)
        *vec_push(&f->refunds) = p->refunds.v[i].fact;
}

/* Makes a refund, unless there is one under this key, or not that much money. */
static bool p_refund(struct provider *p, const uint8_t *key, int64_t number, int64_t amount)
{
    for (size_t i = 0; i < p->refunds.n; i++)
        if (key && memcmp(p->refunds.v[i].key, key, JOB_KEY_SIZE) == 0) {
            assert_int_equal(p->refunds.v[i].fact.amount, amount); /* a repeat asks for the same */
            return true;
        }
    if (amount > p_left(p))
        return false;
    struct p_refund *made = vec_push(&p->refunds);
    if (key)
        memcpy(made->key, key, JOB_KEY_SIZE);
    made->fact = (struct refund_fact){.amount = amount, .refund = number, .status = REFUND_PENDING};
    snprintf(made->fact.id, sizeof made->fact.id, "re_%zu", p->refunds.n);
    return true;
}

/* Pending refunds are paid; some of them are returned by the bank afterwards. */
static bool p_settle_refunds(struct provider *p)
{
    bool any = false;
    for (size_t i = 0; i < p->refunds.n; i++) {
        struct refund_fact *f = &p->refunds.v[i].fact;
        if (f->status == REFUND_SUCCEEDED && f->refund && p->failures > 0) {
            p->failures--;
            f->status = REFUND_FAILED;
            any = true;
        } else if (f->status == REFUND_PENDING) {
            f->status = REFUND_SUCCEEDED;
            any = true;
        }
    }
    return any;
}

static void p_close(struct provider *p)
{
    vec_close(&p->refunds);
    vec_close(&p->sent);
}

/* ---- histories ---- */

enum deed {
    WAIT,
    RENEW,
    RELEASE,
    EVICT,
    SELLER_CANCELS,
    SELLER_REFUNDS,
    SELLER_CONFIRMS,
    RIVAL_HOLDS,
    RIVAL_RELEASES,
    BOOKS_AGAIN,
    CLOSE,
    ARCHIVE,
    EVENT_IS_CANCELLED,
    DEEDS
};
struct history {
    bool by_hand;
    int n;
    struct {
        enum deed deed;
        int64_t wait_ms;
    } steps[HISTORY_MAX];
    int money_at; /* the step before which the first money fact arrives */
    enum intent_state money;
    int64_t received;
    bool ends_canceled; /* what was authorized is canceled before it can be captured */
    int64_t dashboard;  /* a refund that somebody makes there; 0: none */
    int failures;
};

static struct history draw(struct random *r)
{
    struct history h = {.by_hand = random_below(r, 3) == 0, .n = (int)random_below(r, HISTORY_MAX)};
    for (int i = 0; i < h.n; i++) {
        h.steps[i].deed = (enum deed)random_below(r, DEEDS);
        h.steps[i].wait_ms = (int64_t)random_below(r, random_below(r, 3) ? 4000 : 2 * DEF_TTL_MS);
    }
    h.money_at = (int)random_below(r, (uint64_t)h.n + 1);
    h.money = random_below(r, 5) == 0 ? INTENT_CANCELED
              : h.by_hand             ? INTENT_AUTHORIZED
                                      : INTENT_CAPTURED;
    h.received = h.money != INTENT_CAPTURED ? 0 : random_below(r, 6) ? AMOUNT : AMOUNT - 100;
    h.ends_canceled = random_below(r, 4) == 0;
    h.dashboard = h.received && random_below(r, 4) == 0 ? 1 + (int64_t)random_below(r, AMOUNT) : 0;
    h.dashboard = h.dashboard > h.received ? h.received : h.dashboard;
    h.failures = random_below(r, 4) == 0 ? 1 + (int)random_below(r, 3) : 0;
    return h;
}

/* ---- a run ---- */

struct run {
    struct shop shop;
    struct buyer ada, bob;
    bool bob_holds, is_noisy;
    struct provider provider;
    struct random noise;
    bool money_told, dashboard_told;
};

static bool one_in(struct run *r, uint64_t n)
{
    return r->is_noisy && random_below(&r->noise, n) == 0;
}

static void tell(struct run *r, const struct fact *fact)
{
    struct news news = {.fact = *fact};
    assert_int_equal(buyer_told(&r->ada, &news), VERDICT_OK);
}

static void tell_refunds(struct run *r)
{
    struct fact f = {0};
    p_list_refunds(&r->provider, &f);
    tell(r, &f);
    fact_close(&f);
    r->dashboard_told = true;
}

/* Facts that should make no difference: old webhooks in any order, and looks at the intent as long
 * as they would not be the first to tell of money. */
static void make_noise(struct run *r)
{
    while (one_in(r, 2)) {
        size_t n = r->money_told ? r->provider.sent.n : r->provider.n_display;
        if (one_in(r, 3) && (r->money_told || r->provider.state < INTENT_AUTHORIZED)) {
            struct fact look = p_look(&r->provider);
            tell(r, &look);
        } else if (r->provider.refunds.n && one_in(r, 3)) {
            tell_refunds(r);
        } else if (n) {
            tell(r, &r->provider.sent.v[random_below(&r->noise, n)]);
        }
    }
}

static void rival(struct run *r, bool holds)
{
    struct ask a;
    if (holds && !r->bob_holds) {
        ask_create(&a, r->shop.event, 0);
        r->bob_holds = shop_run(&r->shop, &a) == VERDICT_CREATED;
        r->bob.hold = a.c.create.hold.id;
        ask_close(&a);
    } else if (!holds && r->bob_holds) {
        ask_release(&a, r->shop.event, &r->bob.hold);
        (void)shop_do(&r->shop, &a);
        r->bob_holds = false;
    }
}

static void do_deed(struct run *r, enum deed deed)
{
    static const enum command_kind event[] = {[CLOSE] = CMD_EVENT_CLOSE,
                                              [ARCHIVE] = CMD_EVENT_ARCHIVE,
                                              [EVENT_IS_CANCELLED] = CMD_EVENT_CANCEL};
    struct event *e = r->shop.event;
    struct buyer again = r->ada; /* her second booking is never paid */
    struct ask a;
    switch (deed) {
    case RENEW:
        ask_renew(&a, e, &r->ada.hold, 0);
        break;
    case RELEASE:
        ask_release(&a, e, &r->ada.hold);
        break;
    case EVICT:
        ask_evict(&a, e, &r->ada.hold);
        break;
    case SELLER_CANCELS:
        (void)buyer_cancelled(&r->ada);
        return;
    case SELLER_REFUNDS:
        (void)buyer_refunded(&r->ada, 700);
        return;
    case SELLER_CONFIRMS:
        ask_confirm(&a, e, &r->ada.hold, r->ada.fence, false);
        break;
    case RIVAL_HOLDS:
    case RIVAL_RELEASES:
        rival(r, deed == RIVAL_HOLDS);
        return;
    case BOOKS_AGAIN:
        (void)buyer_book(&again);
        return;
    case CLOSE:
    case ARCHIVE:
    case EVENT_IS_CANCELLED:
        ask_event(&a, event[deed], e);
        break;
    case WAIT:
    case DEEDS:
        return;
    }
    (void)shop_do(&r->shop, &a);
}

/* ---- jobs ---- */

/* What the provider does for a job about the intent. */
static void p_call(struct provider *p, const struct job_row *job, struct fact *f)
{
    if (job->kind == JOB_CANCEL && p->state < INTENT_CAPTURED)
        p_enter(p, INTENT_CANCELED, 0);
    bool captures = job->kind == JOB_CAPTURE && p->state == INTENT_AUTHORIZED;
    if (captures)
        p_enter(p, INTENT_CAPTURED, AMOUNT);
    *f = p_look(p);
    f->capture_refused = job->kind == JOB_CAPTURE && p->state != INTENT_CAPTURED;
}

/* Runs one job.  The answer may be lost: then it is run again, under the same key. */
static void run_job(struct run *r, const struct job_row *job)
{
    struct news news = {.report = {.job = job->job, .kind = job->kind, .result = JOB_RESULT_DONE}};
    if (job->kind == JOB_REFUND) {
        bool made = p_refund(&r->provider, job->key, job->refund, job->amount);
        news.report.result = made ? JOB_RESULT_DONE : JOB_RESULT_NEW_KEY;
        p_list_refunds(&r->provider, &news.fact); /* "already refunded" is a fact, not an error */
    } else {
        p_call(&r->provider, job, &news.fact);
    }
    if (one_in(r, 3)) {
        fact_close(&news.fact);
        news.fact = (struct fact){0};
        news.report.result = JOB_RESULT_RETRY;
    }
    assert_int_equal(buyer_told(&r->ada, &news), VERDICT_OK);
    fact_close(&news.fact);
}

/* The payments of a hold have provider objects of their own; only the first is ever paid. */
static const struct job_row *next_job(struct run *r)
{
    const struct job_row *next = NULL;
    for (size_t i = 0; i < r->shop.paper.ledger.jobs.n; i++) {
        const struct job_row *job = &r->shop.paper.ledger.jobs.v[i];
        if (job->kind != JOB_NOTIFY && job->payment_no == buyer_payment(&r->ada)->payment &&
            (!next || job->due_at < next->due_at))
            next = job;
    }
    return next;
}

/* Runs what is owed until the payment has come to rest. */
static void come_to_rest(struct run *r)
{
    struct ask a;
    shop_pass_ms(&r->shop, DEF_MAX_MS); /* no hold outlives this */
    ask_event(&a, CMD_EVENT_CLOSE, r->shop.event);
    (void)shop_do(&r->shop, &a);
    for (int i = 0; i < PUMPS_MAX; i++) {
        const struct job_row *job = next_job(r);
        if (!job && !p_settle_refunds(&r->provider) && r->dashboard_told)
            return;
        if (!job) {
            tell_refunds(r);
            continue;
        }
        const struct job_row copy = *job;
        if (copy.due_at > r->shop.paper.now)
            r->shop.paper.now = copy.due_at;
        run_job(r, &copy);
        make_noise(r);
    }
    fail_msg("the payment does not come to rest");
}

/* ---- comparing ---- */

static void describe(struct run *r, struct buf *out)
{
    const struct payment_row *p = buyer_payment(&r->ada);
    const struct booking_row *current = paper_booking(&r->shop.paper, r->ada.hold.key);
    int64_t settled = 0, failed = 0;
    for (size_t i = 0; i < r->shop.paper.ledger.refunds.n; i++) {
        const struct refund_row *f = &r->shop.paper.ledger.refunds.v[i];
        settled += f->status == REFUND_SUCCEEDED ? f->amount : 0;
        failed += f->status == REFUND_FAILED;
        assert_true(f->status == REFUND_SUCCEEDED || f->status == REFUND_FAILED);
    }
    buf_printf(out,
               "hold %d booking %d current %d payment %d received %lld settled %lld failed %lld"
               " wrong %d seats",
               (int)buyer_hold_status(&r->ada), (int)buyer_booking(&r->ada), (int)current->status,
               (int)p->status, (long long)p->received, (long long)settled, (long long)failed,
               p->is_wrong);
    for (uint32_t i = 0; i < SEATS; i++)
        buf_printf(out, " %d", r->shop.event->seats[i].status);
    buf_char(out, '\0');
}

static void begin(struct run *r, const struct history *h, uint64_t noise)
{
    struct event_def *def = def_hall(1, 4);
    *r = (struct run){.is_noisy = noise != 0, .dashboard_told = !h->dashboard};
    shop_init(&r->shop, def);
    random_init_seeded(&r->noise, noise);
    buyer_hold(&r->ada, &r->shop, 0, SEATS);
    assert_int_equal(h->by_hand ? buyer_book_by_hand(&r->ada) : buyer_book(&r->ada),
                     VERDICT_CREATED);
    r->provider.failures = h->failures;
    for (enum intent_state s = INTENT_REQUIRES_PAYMENT; s <= INTENT_PROCESSING; s++)
        p_enter(&r->provider, s, 0);
    p_enter(&r->provider, INTENT_REQUIRES_PAYMENT, 0);
    r->provider.n_display = r->provider.sent.n;
}

static void tell_money(struct run *r, const struct history *h)
{
    make_noise(r);
    p_enter(&r->provider, h->money, h->received);
    make_noise(r);
    if (h->dashboard) {
        assert_true(p_refund(&r->provider, NULL, 0, h->dashboard));
        (void)p_settle_refunds(&r->provider);
    }
    if (h->dashboard && one_in(r, 2)) /* the webhook of the refund overtakes that of the money */
        tell_refunds(r);
    tell(r, &r->provider.sent.v[r->provider.sent.n - 1]);
    r->money_told = true;
    if (!r->dashboard_told)
        tell_refunds(r);
}

static void run_history(const struct history *h, uint64_t noise, struct buf *out)
{
    static struct run run;
    struct run *r = &run;
    begin(r, h, noise);
    for (int i = 0; i <= h->n; i++) {
        if (i == h->money_at)
            tell_money(r, h);
        make_noise(r);
        if (i == h->n)
            break;
        shop_pass_ms(&r->shop, h->steps[i].wait_ms);
        do_deed(r, h->steps[i].deed);
        make_noise(r);
    }
    if (h->ends_canceled && r->provider.state == INTENT_AUTHORIZED)
        p_enter(&r->provider, INTENT_CANCELED, 0);
    make_noise(r);
    come_to_rest(r);
    describe(r, out);
    p_close(&r->provider);
    shop_close(&r->shop);
}

static void any_order_of_facts_comes_to_the_same(void **state)
{
    (void)state;
    uint64_t seed = test_seed(14);
    size_t n = test_steps(150), confirmed = 0, kept = 0;
    for (size_t i = 0; i < n; i++) {
        struct random r;
        struct buf quiet = {0}, noisy = {0};
        random_init_seeded(&r, seed + i);
        const struct history h = draw(&r);
        run_history(&h, 0, &quiet);
        confirmed += strstr(quiet.data, "booking 2") != NULL;
        kept += strstr(quiet.data, "payment 7") != NULL;
        for (uint64_t k = 1; k <= NOISY_RUNS; k++) {
            noisy.len = 0;
            run_history(&h, (seed + i) * 100 + k, &noisy);
            if (strcmp(quiet.data, noisy.data) != 0)
                fail_msg("HF_SEED=%llu HF_STEPS=1, noise %d\n  %s\n  %s",
                         (unsigned long long)(seed + i), (int)k, quiet.data, noisy.data);
        }
        buf_close(&quiet);
        buf_close(&noisy);
    }
    print_message("seed %llu: %zu histories, %zu confirmed, %zu kept their money\n",
                  (unsigned long long)seed, n, confirmed, kept);
    if (n >= 100)
        assert_true(confirmed > n / 10 && confirmed < n - n / 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_order_of_facts_comes_to_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
