/* See paper.h. */
#include "support/paper.h"

#include <stdlib.h>

#include "base/client_number.h"
#include "sim/check.h"
#include "view/view_holds.h"
#include "view/view_waits.h"

void paper_init(struct paper *p, uint64_t seed)
{
    *p = (struct paper){.view = view_new(), .now = T0_MS, .expire_max = 500};
    p->decision = hf_alloc(sizeof *p->decision);
    p->decision->view = p->view;
    p->decision->random = &p->random;
    p->connection.sim = &p->ledger;
    vec_push(&p->ledger.events); /* the catalogue */
    random_init_seeded(&p->random, seed);
}

void paper_close(struct paper *p)
{
    decision_close(p->decision);
    free(p->decision);
    view_free(p->view);
    for (size_t i = 0; i < p->events.n; i++) {
        fold_close(p->events.v[i].fold);
        free(p->events.v[i].fold);
        judge_close(p->events.v[i].judge);
        free(p->events.v[i].judge);
    }
    sim_staged_close(&p->connection);
    sim_tables_close(&p->ledger);
    vec_close(&p->events);
    vec_close(&p->audit);
}

struct event *paper_event(struct paper *p, struct event_def *def)
{
    struct paper_event *pe = vec_push(&p->events);
    def->id.key = (int64_t)p->events.n;
    struct sim_event *stored = sim_event_add(&p->ledger, sim_def_copy(def), p->now);
    stored->locked_by = &p->connection;
    pe->event = view_install(p->view, event_new(def, &stored->clock));
    pe->fold = hf_alloc(sizeof *pe->fold);
    fold_init(pe->fold, &p->ledger, def->id.key);
    pe->judge = hf_alloc(sizeof *pe->judge);
    judge_init(pe->judge, &p->ledger, def->id.key, WAIT_TURNS_MAX);
    return pe->event;
}

/* ---- rows ---- */

struct hold_row *paper_hold(const struct paper *p, int64_t key)
{
    struct sim_hold *hold = sim_hold(&p->ledger, key);
    return hold ? &hold->row : NULL;
}

struct booking_row *paper_booking(const struct paper *p, int64_t key)
{
    struct sim_hold *hold = sim_hold(&p->ledger, key);
    return hold && hold->booking.id.key ? &hold->booking : NULL;
}

struct wait_row *paper_wait(const struct paper *p, int64_t key)
{
    return sim_wait(&p->ledger, key);
}

struct job_row *paper_job(const struct paper *p, int64_t job)
{
    for (size_t i = 0; i < p->ledger.jobs.n; i++)
        if (p->ledger.jobs.v[i].job == job)
            return &p->ledger.jobs.v[i];
    return NULL;
}

size_t paper_bookings(const struct paper *p)
{
    size_t n = 0;
    for (size_t k = 1; k < p->ledger.events.n; k++)
        for (size_t i = 0; i < p->ledger.events.v[k].holds.n; i++)
            n += p->ledger.events.v[k].holds.v[i].booking.id.key != 0;
    return n;
}

size_t paper_sales(const struct paper *p)
{
    size_t n = 0;
    for (size_t k = 1; k < p->ledger.events.n; k++)
        for (uint32_t i = 0; i < p->ledger.events.v[k].def->n_seats; i++)
            n += p->ledger.events.v[k].seats[i].sold_to != 0;
    return n;
}

static void load_holds(const struct paper *p, struct event *e, const struct sim_event *stored)
{
    VEC(struct hold_payment) payments = {0}; /* in the order of the holds */
    for (size_t i = 0; i < stored->holds.n; i++) {
        const struct sim_hold *hold = &stored->holds.v[i];
        const struct hold_row *row = &hold->row;
        if (row->owner && e->terms->max_per_owner && sim_is_booked(&p->ledger, hold))
            event_load_owner(e, owner_hash(e, row->owner, row->owner_len),
                             places_count(row->n_seats, row->areas, row->n_areas));
        if (row->status == HOLD_ACTIVE)
            event_load_hold(e, row);
        if (hold->booking.status == BOOKING_PENDING)
            *vec_push(&payments) = (struct hold_payment){row->id.key, hold->booking.payment};
    }
    event_load_payments(e, payments.v, payments.n);
    vec_close(&payments);
}

void paper_reload(struct paper *p, struct event *e)
{
    int64_t key = e->def->id.key;
    const struct sim_event *stored = sim_event(&p->ledger, key);
    struct event_terms terms;
    view_forget(p->view, e);
    event_terms_copy(&stored->def->terms, &terms);
    event_set_terms(e, event_terms_new(&terms));
    e->status_draft = stored->def->status;
    for (uint32_t i = 0; i < e->def->areas.n; i++)
        event_load_area(e, i, stored->areas[i].held, stored->areas[i].booked,
                        &stored->areas[i].blocks);
    for (uint32_t i = 0; i < e->def->n_seats; i++) {
        event_load_head(e, i, p->events.v[key - 1].fold->seats[i].last_seq);
        if (stored->seats[i].status == SEAT_AVAILABLE)
            continue;
        event_load_seat(e, i, stored->seats[i].status, stored->seats[i].hold);
        event_load_channel(e, i, stored->seats[i].channel);
    }
    load_holds(p, e, stored);
    for (size_t i = 0; i < stored->waits.n; i++)
        if (wait_is_live(stored->waits.v[i].status))
            event_load_wait(e, &stored->waits.v[i]);
    if (stored->waits.n)
        event_load_wait_number(e, stored->waits.v[stored->waits.n - 1].number);
    view_reloaded(p->view, e, &stored->clock);
    e->stale = false;
}

/* ---- a batch ---- */

void paper_begin(struct paper *p)
{
    struct hold *due[500];
    struct decision *d = p->decision;
    decision_begin(d);
    for (size_t i = p->events.n; i-- > 0;) /* from the end, so that the result is sorted */
        decision_add_event(d, p->events.v[i].event);
    d->now = p->now;
    for (size_t i = 0; i < p->events.n; i++) {
        struct event *e = p->events.v[i].event;
        const struct clock_row *clock = &sim_event(&p->ledger, e->def->id.key)->clock;
        assert_ptr_equal(d->events.v[i], e);
        d->now = clock->now > d->now ? clock->now : d->now;
        e->clock = e->draft = *clock;
        if (e->stale)
            paper_reload(p, e);
    }
    size_t max = p->expire_max < 500 ? p->expire_max : 500;
    decide_expire(d, due, view_due(p->view, d->now, due, max));
}

/* Reads what the command names, as the worker does under the lock. */
static void read_named(const struct paper *p, struct command *c, struct key_row *ret_stored)
{
    struct batch_read r = {.now = p->decision->now};
    struct hold_wanted wanted[HOLDS_PER_BOOKING_MAX];
    size_t n = command_wants(c, wanted);
    for (size_t i = 0; i < n; i++)
        *vec_push(&r.holds) = wanted[i];
    if (c->key.present)
        *vec_push(&r.keys) = (struct key_wanted){c->key.hash, ret_stored};
    struct wait_change *wait = command_wants_wait(c);
    if (wait)
        *vec_push(&r.waits) = (struct wait_wanted){wait->id.key, &wait->wait};
    if (c->kind == CMD_PAYMENT_UPDATE) {
        c->update->event_known = false;
        *vec_push(&r.webhooks) =
            (struct webhook_wanted){c->update->event.id, &c->update->event_known};
    }
    sim_wanted_read(&p->ledger, &r);
    batch_read_close(&r);
}

enum decided paper_decide(struct paper *p, struct ask *a)
{
    struct command *c = &a->c;
    struct key_row stored = {0};
    read_named(p, c, &stored);
    bool is_decided = command_decide(c, p->decision, &stored);
    if (is_decided && c->key.present && !c->key.replayed && verdict_is_success(c->verdict)) {
        c->key.answer.len = 0;
        ask_render(c, &c->key.answer);
        c->key.answer_code = (int)c->verdict;
        c->key.rendered = true;
        decide_keep_answer(p->decision, &c->key, 0);
    }
    key_row_close(&stored);
    return is_decided ? DECIDED : DEFERRED;
}

void paper_commit(struct paper *p)
{
    struct decision *d = p->decision;
    decide_waits(d);
    if (decision_has_effects(d)) {
        decision_seal(d);
        const char *table = sim_write(&p->connection, &d->batch);
        if (table)
            fail_msg("a row of %s does not meet the condition of its statement", table);
        sim_apply(&p->connection);
        sim_discard(&p->connection);
        for (size_t i = 0; i < d->batch.audit.n; i++)
            *vec_push(&p->audit) = d->batch.audit.v[i];
        for (size_t i = 0; i < p->events.n; i++) {
            fold_log(p->events.v[i].fold, &p->ledger);
            judge_log(p->events.v[i].judge, &p->ledger);
        }
    }
    decision_publish(d);
    for (size_t i = 0; i < p->events.n; i++) {
        const struct event *e = p->events.v[i].event;
        if (e->stale || (e->waitlist && e->waitlist->unsettled))
            continue;
        check_served(e, d->now);
        judge_rest(p->events.v[i].judge, &p->ledger);
    }
}

void paper_fail(struct paper *p)
{
    decide_waits(p->decision);
    decision_seal(p->decision);
    decision_undo(p->decision);
}

enum verdict paper_run(struct paper *p, struct ask *a)
{
    paper_begin(p);
    assert_int_equal(paper_decide(p, a), DECIDED);
    paper_commit(p);
    return a->c.verdict;
}

/* ---- claims ---- */

/* Asserts that the count of an address, or of a /48, is the sum of its live holds. */
static void check_client(const struct paper *p, uint64_t client)
{
    uint32_t places = 0;
    for (size_t k = 1; client && k < p->ledger.events.n; k++) {
        const struct sim_event *e = &p->ledger.events.v[k];
        for (size_t i = 0; i < e->holds.n; i++) {
            const struct hold_row *row = &e->holds.v[i].row;
            if ((row->client == client || client_number_network(row->client) == client) &&
                row->status == HOLD_ACTIVE)
                places += places_count(row->n_seats, row->areas, row->n_areas);
        }
    }
    if (client)
        assert_int_equal(view_client_places(p->view, client), places);
}

void paper_check(struct paper *p)
{
    size_t live = 0;
    for (size_t k = 0; k < p->events.n; k++) {
        struct event *e = p->events.v[k].event;
        struct fold *fold = p->events.v[k].fold;
        const struct sim_event *stored = sim_event(&p->ledger, e->def->id.key);
        check_ledger(fold, &p->ledger);
        check_event(fold, &p->ledger, p->view, e);
        assert_true(event_terms_equal(e->terms, &stored->def->terms));
        assert_memory_equal(&e->clock, &stored->clock, sizeof e->clock);
        for (size_t i = 0; i < stored->holds.n; i++) {
            const struct hold_row *row = &stored->holds.v[i].row;
            check_client(p, row->client);
            check_client(p, client_number_network(row->client));
            live += row->status == HOLD_ACTIVE;
        }
    }
    assert_int_equal(view_holds_len(p->view), live);
    assert_int_equal(view_hold_table(p->view)->deadlines.nodes.n, live);
    check_deadlines(p->view);
    check_money(&p->ledger);
}
