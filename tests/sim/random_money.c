/* The money of the random turns: buyers book and pay, sellers refund, jobs are taken by either
 * server, run against the simulated provider and reported, and webhooks arrive late, twice, out of
 * order or never.  A server that is started again forgets the calls that it had under way, so that
 * their leases run out.  At the end everything comes to rest, and the books of the ledger and of
 * the provider agree. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rules/payment.h"
#include "sim/random_run.h"

#define TAKE_MAX 4      /* jobs that a server takes at once, and notifications as well */
#define RATE 20         /* requests per second */
#define ROUNDS_MAX 2000 /* until everything must have come to rest */

/* ---- clerks: the connections that take jobs ---- */

static struct ledger *clerk(struct run *r, size_t server)
{
    struct hf_err err;
    struct ledger **l = &r->clerks[server];
    if (*l && (*l)->is_stuck) {
        ledger_close(*l);
        *l = NULL;
    }
    if (!*l)
        assert_int_equal(ledger_open("sim:world", NULL, l, &err), HF_OK);
    return *l;
}

void random_money_forget(struct run *r, size_t server)
{
    size_t kept = 0;
    for (size_t i = 0; i < r->flights.n; i++) {
        if (r->flights.v[i].server == server)
            fact_close(&r->flights.v[i].fact);
        else
            r->flights.v[kept++] = r->flights.v[i];
    }
    r->flights.n = kept;
    ledger_close(r->clerks[server]);
    r->clerks[server] = NULL;
}

void random_money_close(struct run *r)
{
    for (size_t s = 0; s < r->world.n_servers; s++)
        random_money_forget(r, s);
    vec_close(&r->flights);
    provider_close(&r->provider);
}

static void take(struct run *r, size_t server)
{
    struct hf_err err;
    struct job_row rows[2 * TAKE_MAX];
    size_t n = 0;
    struct jobs_query query = {.calls_max = TAKE_MAX, .notices_max = TAKE_MAX, .rate = RATE};
    struct ledger *l = clerk(r, server);
    if (ledger_now(l, &query.now, &err) != HF_OK)
        return;
    query.quiet_before = one_in(r, 4) ? query.now : 0;
    if (ledger_jobs_take(l, &query, rows, &n, &err) != HF_OK)
        return;
    for (size_t i = 0; i < n; i++)
        *vec_push(&r->flights) =
            (struct flight){.server = server, .job = rows[i], .taken_at = query.now};
}

/* ---- calls ---- */

static void put(struct run *r, struct call *call)
{
    struct server *s = any_server(r);
    call->ask.c.event = engine_event(s->engine, HOLD_EVENT(call->ask.c.update->hold.id.key));
    server_put(s, call);
    *vec_push(&r->waiting) = call;
}

static void add_refunds(struct fact *to, const struct fact *from)
{
    memset(&to->refunds, 0, sizeof to->refunds);
    for (size_t i = 0; i < from->refunds.n; i++)
        *vec_push(&to->refunds) = from->refunds.v[i];
}

static void report(struct run *r, const struct flight *f)
{
    struct call *call = hf_alloc(sizeof *call);
    ask_update(&call->ask, NULL, &f->job.payment);
    struct payment_update *update = call->ask.c.update;
    update->hold.id.key = f->job.booking;
    update->has_payment = f->job.kind != JOB_NOTIFY;
    update->fact = f->fact;
    add_refunds(&update->fact, &f->fact);
    if (f->job.job)
        update->report = (struct job_report){.job = f->job.job,
                                             .kind = f->job.kind,
                                             .result = f->result,
                                             .leased_until = f->job.leased_until,
                                             .delay_ms = below(r, 3000)};
    put(r, call);
}

/* The provider does what it is asked, unless the request is lost; and the answer may be lost. */
static void call_provider(struct run *r, struct flight *f, bool may_fail)
{
    static const enum job_result told[] = {JOB_RESULT_DONE, JOB_RESULT_RETRY, JOB_RESULT_FAILED};
    f->is_done = true;
    if (f->job.kind == JOB_NOTIFY) {
        f->result = may_fail ? told[below(r, 3)] : JOB_RESULT_DONE;
        return;
    }
    bool is_asked = !may_fail || !one_in(r, 6);
    f->result = JOB_RESULT_RETRY;
    if (is_asked)
        f->result = provider_call(&r->provider, &f->job, f->taken_at, &f->fact);
    if (!may_fail || (is_asked && !one_in(r, 6)))
        return;
    fact_close(&f->fact);
    f->fact = (struct fact){0};
    f->result = one_in(r, 3) ? JOB_RESULT_CHECK : JOB_RESULT_RETRY;
}

/* A call that has taken as long as its lease has been given up by the client. */
static bool is_over(const struct run *r, const struct flight *f)
{
    return sim_wall_ms(r->world.ledger) >= f->taken_at + JOB_LEASE_MS;
}

static void advance(struct run *r, bool may_fail)
{
    if (!r->flights.n)
        return;
    size_t i = below(r, (uint32_t)r->flights.n);
    struct flight *f = &r->flights.v[i];
    bool lost = may_fail && f->is_done && one_in(r, 8); /* the report, too */
    if (!f->is_done && !is_over(r, f)) {
        call_provider(r, f, may_fail);
        return;
    }
    if (f->is_done && !lost)
        report(r, f);
    fact_close(&f->fact);
    *f = r->flights.v[--r->flights.n];
}

static void deliver(struct run *r, size_t i, bool for_good)
{
    const struct letter *letter = &r->provider.letters.v[i];
    struct call *call = hf_alloc(sizeof *call);
    ask_update(&call->ask, NULL, &letter->payment);
    call->ask.c.update->fact = letter->fact;
    call->ask.c.update->event = letter->event;
    if (letter->has_refund)
        *vec_push(&call->ask.c.update->fact.refunds) = letter->refund;
    put(r, call);
    if (for_good)
        r->provider.letters.v[i] = r->provider.letters.v[--r->provider.letters.n];
}

/* ---- buyers, sellers, the dashboard ---- */

/* Buyers see the secrets of their intents in the answers of the server. */
static void show_secrets(struct run *r)
{
    for (size_t i = 0; i < r->provider.intents.n; i++) {
        struct provider_intent *intent = &r->provider.intents.v[i];
        for (size_t k = 0; k < r->world.ledger->payments.n; k++) {
            const struct payment_row *p = &r->world.ledger->payments.v[k];
            if (strcmp(p->intent, intent->id) == 0 && *p->client_secret)
                intent->is_shown = true;
        }
    }
}

static void act(struct run *r)
{
    if (!r->provider.intents.n)
        return;
    show_secrets(r);
    size_t recent = r->provider.intents.n < 6 ? r->provider.intents.n : 6;
    struct provider_intent *intent =
        &r->provider.intents.v[r->provider.intents.n - 1 - below(r, (uint32_t)recent)];
    if (one_in(r, r->favourite == FAVOURITE_PAYS ? 4 : 12))
        provider_dashboard(&r->provider, intent);
    else if (one_in(r, 3))
        provider_settle(&r->provider, intent, true);
    else if (intent->is_shown)
        provider_pay(&r->provider, intent);
}

void random_money_step(struct run *r)
{
    uint32_t kind = below(r, 10);
    size_t n = r->provider.letters.n;
    if (kind < 2) {
        r->other = any_server(r);
        r->calls_until_turn = one_in(r, 4) ? 1 + (int)below(r, 3) : 0;
        take(r, below(r, (uint32_t)r->world.n_servers));
        r->calls_until_turn = 0;
    } else if (kind < 6) {
        advance(r, true);
        advance(r, true);
    } else if (kind < 8) {
        act(r);
    } else if (n) {
        size_t i = below(r, (uint32_t)n);
        deliver(r, i, !r->provider.letters.v[i].must_arrive && one_in(r, 2));
    }
}

/* ---- coming to rest ---- */

/* When the next job is due; 0: none is owed. */
static int64_t next_due(const struct run *r)
{
    int64_t next = 0;
    for (size_t i = 0; i < r->world.ledger->jobs.n; i++) {
        const struct job_row *job = &r->world.ledger->jobs.v[i];
        if (job->status == JOB_OWED && (!next || job->due_at < next))
            next = job->due_at;
    }
    return next;
}

/* Refunds that succeeded are looked at again for days; nobody waits for that. */
static bool is_polled_soon(const struct run *r, const struct payment_row *p)
{
    return p->poll_at && p->poll_at <= sim_wall_ms(r->world.ledger) + HOUR_MS;
}

static bool is_at_rest(const struct run *r)
{
    if (next_due(r) || r->flights.n || r->provider.letters.n || r->waiting.n)
        return false;
    for (size_t i = 0; i < r->world.ledger->payments.n; i++)
        if (payment_is_open(r->world.ledger->payments.v[i].status) ||
            is_polled_soon(r, &r->world.ledger->payments.v[i]))
            return false;
    for (size_t i = 0; i < r->provider.intents.n; i++)
        for (size_t k = 0; k < r->provider.intents.v[i].n_refunds; k++)
            if (r->provider.intents.v[i].refunds[k].fact.status == REFUND_PENDING)
                return false;
    return true;
}

static void pass_time(struct run *r)
{
    int64_t now = sim_wall_ms(r->world.ledger), due = next_due(r);
    bool is_far = due > now + HOUR_MS / 2;
    world_pass_ms(&r->world, is_far ? due - now : 3000);
}

void random_money_rest(struct run *r)
{
    int rounds = 0;
    sim_ledger_heal(r->world.ledger);
    show_secrets(r);
    for (; rounds < ROUNDS_MAX && !is_at_rest(r); rounds++) {
        for (size_t s = 0; s < r->world.n_servers; s++)
            take(r, s);
        for (int i = 0; i < 2 * TAKE_MAX; i++)
            advance(r, false);
        for (int i = 0; i < TAKE_MAX && r->provider.letters.n; i++)
            deliver(r, below(r, (uint32_t)r->provider.letters.n), true);
        for (size_t i = 0; i < r->provider.intents.n; i++)
            provider_settle(&r->provider, &r->provider.intents.v[i], false);
        for (size_t s = 0; s < r->world.n_servers; s++)
            server_turn(&r->world.servers[s]);
        pass_time(r);
        random_collect(r);
    }
    assert_true(rounds < ROUNDS_MAX);
    check_books(r->world.ledger, &r->provider);
}
