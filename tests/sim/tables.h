/* The tables of the simulated ledger and its connections: rows in arrays, the conditions of the
 * ledger's statements, and the storing of a batch.  ledger.h builds the interface of src/ledger on
 * them; the paper ledger of the tests of the rules (support/paper.h) uses them without it. */
#ifndef HF_TESTS_SIM_TABLES_H
#define HF_TESTS_SIM_TABLES_H

#include "ledger/ledger.h"
#include "sim/ledger.h"

struct sim_seat {
    enum seat_status status; /* as seat_row_status has it; available: it has no row */
    int64_t hold, fence;
    uint32_t channel;
    int64_t sold_to; /* the row of sold_seats: a booking; 0: none */
    int64_t head;    /* as stored */
    /* as the batches say, which also tell of holds */
    struct {
        enum seat_status status;
        uint32_t channel;
        int64_t hold, expires_at;
    } told;
};

struct sim_area {
    int64_t held, booked;
    struct area_blocks blocks;
};

struct sim_hold {
    struct hold_row row;
    struct booking_row booking; /* without places, which are the hold's; id.key 0: none */
};

/* Terms that a batch stored, and the seq of its last row. */
struct sim_terms {
    int64_t seq;
    struct event_terms terms;
};

struct sim_event {
    struct clock_row clock;
    struct ledger *locked_by; /* the connection whose transaction has the clock row; NULL: none */
    int64_t fences_skipped;   /* by ledger_resolve */
    struct event_def *def;    /* its status and terms change; NULL: the catalogue */
    struct sim_seat *seats;
    struct sim_area *areas;
    int64_t *heads_seqs;        /* when the heads of each chunk of seats were stored; 0: never */
    VEC(struct sim_hold) holds; /* ascending by key */
    VEC(struct wait_row) waits; /* ascending by key */
    VEC(struct audit_row) log;  /* ascending by seq */
    VEC(struct sim_terms) past; /* the terms that the event has had, the present ones last */
};

struct sim_ledger {
    const char *name;
    struct sim_ledger *next; /* in the list of all simulated ledgers */
    const struct clock *clock;
    bool has_others;
    VEC(struct sim_event) events; /* by key; event 0 is the catalogue */
    VEC(struct key_row) keys;
    VEC(struct booking_row) bookings_past; /* each failed, and was followed by another */
    VEC(struct payment_row) payments;
    VEC(struct refund_row) refunds;
    VEC(struct job_row) jobs;
    VEC(struct webhook_write) webhooks;
    int64_t budget_second, budget_used; /* requests to the provider, of all servers together */
    struct ledger *connections;
    size_t assumed, missed; /* transactions that assumed what was true, and what was not */
    struct {
        int calls_left; /* 0: none fails */
        enum sim_fault fault;
    } faults[SIM_CALLS];
    void (*hook)(void *ctx, enum sim_call call);
    void *hook_ctx;
    bool in_hook;
};

/* The lease of a job, or of a payment's poll, that a transaction takes. */
struct sim_lease {
    bool is_poll;
    int64_t booking, number; /* of the job, or of the payment */
    int64_t until, now;
};

/* A connection, and what its transaction has staged. */
struct ledger {
    struct sim_ledger *sim;
    struct ledger *next;
    bool in_transaction, is_stuck;
    struct ledger_batch staged;
    VEC(struct event_def *) staged_events;
    VEC(struct sim_lease) staged_leases;
    int64_t staged_budget; /* requests that the transaction takes of this second's budget */
    int64_t staged_second;
    /* Of a transaction that asked for nothing first: what it assumes and what it writes, both of
     * which are looked at by the commit.  Borrowed; NULL: it locked its clock rows, or writes
     * nothing. */
    const struct batch_read *assumed;
    const struct ledger_batch *unsent;
    bool was_stored; /* whether the last COMMIT whose answer was lost happened */
    int64_t floor;   /* ledger_now never answers a time before this */
    int64_t calls;
};

/* Begins every call that can fail: runs the hook, and fails if a fault is due. */
HF_MUST_USE enum hf_status sim_enter(struct ledger *l, enum sim_call call, struct hf_err *err);
/* Locks and reads the clock rows; *ret_now is the database's time, never before any of them. */
HF_MUST_USE enum hf_status sim_lock(struct ledger *l, struct clock_row *rows, size_t n,
                                    int64_t *ret_now, struct hf_err *err);
int64_t sim_wall_ms(const struct sim_ledger *sim);

void sim_tables_close(struct sim_ledger *sim);
/* Adds an event that has no log yet, with the next key; it takes over `def`. */
struct sim_event *sim_event_add(struct sim_ledger *sim, struct event_def *def, int64_t now);
/* NULL if there is no such row. */
struct sim_event *sim_event(const struct sim_ledger *sim, int64_t event);
struct sim_hold *sim_hold(const struct sim_ledger *sim, int64_t hold);
struct key_row *sim_key(const struct sim_ledger *sim, const uint8_t hash[KEY_HASH_SIZE]);
struct payment_row *sim_payment(const struct sim_ledger *sim, int64_t booking, int64_t payment);
struct refund_row *sim_refund(const struct sim_ledger *sim, int64_t booking, int64_t refund);
struct job_row *sim_job(const struct sim_ledger *sim, int64_t booking, int64_t job);
/* The booking that the payment was made for: the hold's own, or one that failed before. */
const struct booking_row *sim_booking_of(const struct sim_ledger *sim, int64_t booking,
                                         int64_t payment);
struct webhook_write *sim_webhook(const struct sim_ledger *sim, const char *id);
/* Are the places of the hold booked?  They are while its money is captured, too. */
bool sim_is_booked(const struct sim_ledger *sim, const struct sim_hold *hold);

/* Reads r->keys, r->holds and r->webhooks. */
void sim_wanted_read(const struct sim_ledger *sim, const struct batch_read *r);

/* Copies that own their memory. */
struct hold_row sim_hold_copy(const struct hold_row *row);
/* Also takes the places, the owner and the secret of the hold, unless `hold` is NULL. */
struct booking_row sim_booking_copy(const struct booking_row *row, const struct hold_row *hold);
/* The booking and the hold as they are read: also with the holds that were booked with it, and with
 * its carrier and its booking. */
struct booking_row sim_booking_read(const struct sim_ledger *sim, const struct booking_row *row);
struct hold_row sim_hold_read(const struct sim_ledger *sim, const struct sim_hold *hold);
/* Gives the row other places, prices and amount, which are copied. */
void sim_hold_set_places(struct hold_row *row, const struct hold_places_write *to);
struct key_row sim_key_copy(const struct key_row *row);
struct event_def *sim_def_copy(const struct event_def *def);
void sim_blocks_copy(const struct area_blocks *from, struct area_blocks *to);
bool sim_blocks_equal(const struct area_blocks *a, const struct area_blocks *b);

/* ---- tables_money.c: payments, refunds, jobs and webhooks ---- */

void sim_money_close(struct sim_ledger *sim);
/* Adds the rows about the money of a booking. */
void sim_money_read(const struct sim_ledger *sim, int64_t booking, struct money *ret);
/* Must the lease wait for another transaction that has changed the row? */
bool sim_lease_must_wait(const struct ledger *l, const struct sim_lease *lease);
/* Must the transaction wait for another that has changed the same rows without the event's lock? */
bool sim_money_must_wait(const struct ledger *l, const struct ledger_batch *b);
/* Does every row of the batch meet the condition of its statement?  One function per table. */
bool sim_payments_fit(const struct ledger *l, const struct ledger_batch *b);
bool sim_refunds_fit(const struct ledger *l, const struct ledger_batch *b);
bool sim_jobs_fit(const struct ledger *l, const struct ledger_batch *b);
bool sim_webhooks_fit(const struct ledger *l, const struct ledger_batch *b);
void sim_money_stage(struct ledger_batch *staged, const struct ledger_batch *b);
void sim_money_apply(struct ledger *l);
void sim_money_discard(struct ledger *l);
void sim_money_free(struct ledger *l); /* the memory of the staged rows */

/* ---- tables_wait.c: the waiting list ---- */

struct wait_row *sim_wait(const struct sim_ledger *sim, int64_t entry);
struct wait_row sim_wait_copy(const struct wait_row *row);
/* The entry as it is read: with its offer. */
struct wait_row sim_wait_read(const struct sim_ledger *sim, const struct wait_row *row);
bool sim_new_waits_fit(const struct ledger *l, const struct ledger_batch *b);
bool sim_waits_fit(const struct ledger *l, const struct ledger_batch *b);
void sim_waits_stage(struct ledger_batch *staged, const struct ledger_batch *b);
void sim_waits_apply(struct ledger *l);
void sim_waits_discard(struct ledger *l);
void sim_waits_free(struct ledger *l); /* the memory of the staged rows */

/* ---- tables_write.c ---- */

/* Stages the batch.  Returns NULL, or the name of the table whose row does not meet the condition
 * of its statement; then nothing is staged. */
const char *sim_write(struct ledger *l, const struct ledger_batch *b);
/* Makes the staged rows the tables' own. */
void sim_apply(struct ledger *l);
/* Forgets the staged rows. */
void sim_discard(struct ledger *l);
void sim_staged_close(struct ledger *l); /* their memory */

#endif
