/* Claims before the ledger, settlements after it; see batch_gate.h.  On the worker's thread. */
#include "engine/batch_gate.h"

#include <stdlib.h>

#include "base/log.h"
#include "engine/batch.h"
#include "engine/engine_internal.h"

/* The gate believes a count of places for this long, and never past the next hold that runs out. */
#define COUNT_TTL_MS 10000

bool engine_gate_up(const struct engine *e)
{
    return !e->config.gate_url || atomic_load_explicit(&e->gate_up, memory_order_relaxed);
}

void engine_gate_failed(struct engine *e, const struct hf_fault *fault)
{
    counter_add(e->metrics.gate_errors, 1);
    if (atomic_exchange(&e->gate_up, false))
        log_write(LOG_WARN, "the gate does not answer; going on without it", "why", fault->msg,
                  NULL);
}

static bool gate_is_used(const struct worker *w)
{
    return w->gate && atomic_load_explicit(&w->engine->gate_up, memory_order_relaxed);
}

/* Adds a claim on what a hold names.  Of an event that only this worker writes, the gate knows
 * hardly more than the view, and the ledger decides anyway.  Seats that the worker is to choose
 * are not known yet, an event that is closed refuses every hold by itself, and the gate knows
 * nothing of channels and of holds to be resumed. */
static void put_claim(struct worker *w, struct command *c)
{
    const struct hold_create *op = &c->create;
    if (c->kind != CMD_HOLD_CREATE || c->event->unmoved || c->event->status_draft != EVENT_OPEN ||
        op->channel || op->resume)
        return;
    uint32_t n_seats = op->best.quantity ? 0 : op->n_seats;
    if (!n_seats && !op->n_areas)
        return;
    for (uint32_t i = 0; i < op->n_areas; i++)
        *vec_push(&w->claim_areas) = (struct gate_area){op->areas[i].area, op->areas[i].quantity};
    *vec_push(&w->claims) = (struct gate_claim){.event = c->event->def->id.key,
                                                .seats = op->seats,
                                                .n_seats = n_seats,
                                                .n_areas = op->n_areas,
                                                .taken = op->shortage.taken};
    *vec_push(&w->claimed) = c;
}

static void refuse(struct engine *e, struct command *c, const struct gate_claim *claim)
{
    struct shortage *s = &c->create.shortage;
    c->gate_refused = true;
    c->now = engine_now_ms(e);
    c->verdict = claim->n_taken ? VERDICT_SEAT_TAKEN : VERDICT_SOLD_OUT;
    s->n_taken = claim->n_taken;
    s->short_area = claim->short_area;
    s->available = claim->available;
}

static void forget_claims(struct worker *w)
{
    vec_clear(&w->claims);
    vec_clear(&w->claim_areas);
    vec_clear(&w->claimed);
}

static void put_claims(struct worker *w, struct command *const *commands, size_t n)
{
    size_t area = 0;
    forget_claims(w);
    for (size_t i = 0; i < n; i++)
        put_claim(w, commands[i]);
    for (size_t i = 0; i < w->claims.n; i++) { /* now that the areas do not move any more */
        w->claims.v[i].areas = w->claim_areas.v + area;
        area += w->claims.v[i].n_areas;
    }
}

/* A request with a key may be a repeat, stored already or on its way through another server whose
 * claim it meets: it asks the ledger whatever the gate says, and gets the first one's answer (I8).
 */
void batch_gate_claim(struct worker *w, struct command **commands, size_t *n)
{
    struct hf_fault fault = {0};
    for (size_t i = 0; i < *n; i++)
        commands[i]->gate_refused = false;
    forget_claims(w);
    if (!gate_is_used(w))
        return;
    put_claims(w, commands, *n);
    if (!w->claims.n)
        return;
    random_bytes(&w->random, w->token, sizeof w->token);
    counter_add(w->engine->metrics.gate_exchanges, 1);
    if (gate_claim(w->gate, w->token, w->claims.v, w->claims.n, &fault) != HF_DONE) {
        engine_gate_failed(w->engine, &fault);
        forget_claims(w);
        return;
    }
    for (size_t i = 0; i < w->claims.n; i++)
        if (!gate_claim_granted(&w->claims.v[i])) {
            if (!w->claimed.v[i]->key.present)
                refuse(w->engine, w->claimed.v[i], &w->claims.v[i]);
            w->claimed.v[i] = NULL;
        }
    size_t kept = 0;
    for (size_t i = 0; i < *n; i++) {
        if (commands[i]->gate_refused)
            worker_answer(w, &commands[i], 1);
        else
            commands[kept++] = commands[i];
    }
    *n = kept;
}

static void put_seat(struct worker *w, int64_t seat, int64_t hold, int64_t ttl_ms)
{
    *vec_push(&w->gate_seats) = (struct gate_seat){
        .event = SEAT_EVENT(seat), .seat = SEAT_INDEX(seat), .hold = hold, .ttl_ms = ttl_ms};
}

/* Gathers what the batch changed.  A sold seat keeps its hold's entry until that ends by itself.
 * Of two holds the gate believes the newer one, so where a seat passes from it to the older one, as
 * when both are booked together, its entry goes first. */
static void put_changes(struct worker *w)
{
    const struct ledger_batch *b = &w->decision.batch;
    int64_t now = engine_now_ms(w->engine);
    for (size_t i = 0; i < b->seats.n; i++) {
        const struct seat_write *s = &b->seats.v[i];
        if (s->to == SEAT_HELD && s->hold_before > s->hold)
            put_seat(w, s->seat, s->hold_before, 0);
        if (s->to == SEAT_HELD && s->expires_at - GATE_EARLY_MS > now)
            put_seat(w, s->seat, s->hold, s->expires_at - GATE_EARLY_MS - now);
        else if (s->to == SEAT_HELD)
            put_seat(w, s->seat, 0, 0);
        else if (s->hold_before != s->hold && s->hold_before)
            put_seat(w, s->seat, s->hold_before, 0);
    }
    int64_t first_due = atomic_load_explicit(&w->first_due_ms, memory_order_relaxed);
    int64_t ttl_ms = first_due - now < COUNT_TTL_MS ? first_due - now : COUNT_TTL_MS;
    for (size_t i = 0; i < b->areas.n && ttl_ms > 0; i++) {
        const struct event *e = view_event(w->view, b->areas.v[i].event);
        uint32_t area = (uint32_t)b->areas.v[i].area;
        *vec_push(&w->gate_counts) = (struct gate_count){.event = b->areas.v[i].event,
                                                         .area = area,
                                                         .seq = e->clock.seq,
                                                         .available = e->areas[area].available,
                                                         .ttl_ms = ttl_ms};
    }
}

/* What is deleted comes before what is set. */
static int seat_order(const void *a, const void *b)
{
    const struct gate_seat *x = a, *y = b;
    return x->event != y->event ? (x->event > y->event) - (x->event < y->event)
                                : (x->ttl_ms > 0) - (y->ttl_ms > 0);
}

/* If the batch was not committed, all that was claimed goes back. */
bool batch_gate_prepare(struct worker *w, bool committed)
{
    bool frees = false;
    vec_clear(&w->gate_seats);
    vec_clear(&w->gate_counts);
    if (gate_is_used(w) && committed)
        put_changes(w);
    for (size_t i = 0; i < w->gate_seats.n; i++)
        frees |= w->gate_seats.v[i].ttl_ms == 0;
    for (size_t i = 0; gate_is_used(w) && i < w->claims.n; i++) {
        const struct command *c = w->claimed.v[i];
        bool won = c && committed && c->verdict == VERDICT_CREATED && !c->key.replayed;
        frees |= c && !won;
        for (uint32_t s = 0; c && !won && s < w->claims.v[i].n_seats; s++)
            put_seat(w, SEAT_KEY(w->claims.v[i].event, w->claims.v[i].seats[s]), 0, 0);
    }
    forget_claims(w);
    if (w->gate_seats.n > 1)
        qsort(w->gate_seats.v, w->gate_seats.n, sizeof *w->gate_seats.v, seat_order);
    return frees;
}

void batch_gate_settle(struct worker *w, bool waits)
{
    struct hf_fault fault = {0};
    bool any = w->gate_seats.n || w->gate_counts.n;
    counter_add(w->engine->metrics.gate_exchanges, any);
    if (any && (waits ? gate_settle : gate_settle_later)(w->gate, w->token, w->gate_seats.v,
                                                         w->gate_seats.n, w->gate_counts.v,
                                                         w->gate_counts.n, &fault) != HF_DONE)
        engine_gate_failed(w->engine, &fault);
    vec_clear(&w->gate_seats);
    vec_clear(&w->gate_counts);
}
