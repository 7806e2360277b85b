/* The authority: what it says is true.  One struct ledger is one connection with its prepared
 * statements and belongs to one thread; the worker's writes, the others read.  Knows SQL and rows,
 * nothing of views, commands or HTTP.
 *
 * Lock order, for every transaction of every thread: event_clock rows by event, then idempotency
 * keys sorted, then the rest. */
#ifndef HF_LEDGER_LEDGER_H
#define HF_LEDGER_LEDGER_H

#include "db/db.h"
#include "ledger/rows.h"

struct ledger;

/* Opens, and for the writer brings the schema up to date. */
HF_MUST_USE enum hf_status ledger_open(const char *url, const struct db_options *options,
                                       struct ledger **ret, struct hf_err *err);
void ledger_close(struct ledger *l); /* accepts NULL */

/* ---- the batch transaction, in this order (see the worker) ---- */
HF_MUST_USE enum hf_status ledger_begin(struct ledger *l, struct hf_err *err);
/* Lock and read the clock rows named by rows[i].event (ascending), and read the time:
 * *ret_now is the database's, never less than any of the rows' own. */
HF_MUST_USE enum hf_status ledger_lock(struct ledger *l, struct clock_row *rows, size_t n,
                                       int64_t *ret_now, struct hf_err *err);
/* Stored effects younger than KEY_KEPT_MS for hashes[i]; rows[i].http_status 0 where none. */
HF_MUST_USE enum hf_status ledger_keys_read(struct ledger *l, const uint8_t *const *hashes,
                                            size_t n, int64_t now, struct key_row *rows,
                                            struct hf_err *err);
/* Holds by key; rows[i].id.key 0 where there is none.  Close the rows afterwards. */
HF_MUST_USE enum hf_status ledger_holds_read(struct ledger *l, const int64_t *keys, size_t n,
                                             struct hold_row *rows, struct hf_err *err);
/* The booking of a hold; id.key 0 where there is none. */
HF_MUST_USE enum hf_status ledger_booking_read(struct ledger *l, int64_t key,
                                               struct booking_row *row, struct hf_err *err);
/* Write it all.  *ret_surprise becomes the name of the table whose row count was not the expected
 * one, or NULL; then the caller rolls back.  Seats come in ascending order of key. */
HF_MUST_USE enum hf_status ledger_write(struct ledger *l, const struct ledger_batch *batch,
                                        const char **ret_surprise, struct hf_err *err);
HF_MUST_USE enum hf_status ledger_commit(struct ledger *l, struct hf_err *err);
void ledger_rollback(struct ledger *l);

/* Write something of no consequence and commit it: is the ledger writable?  After a COMMIT of
 * unknown outcome, success also means that the lost batch can never come back. */
HF_MUST_USE enum hf_status ledger_probe(struct ledger *l, struct hf_err *err);

/* Insert an event with its seats, inside the batch transaction; fills def->id.key and
 * def->created_at, uses def->id.secret.  O(seats). */
HF_MUST_USE enum hf_status ledger_event_insert(struct ledger *l, struct event_def *def, int64_t now,
                                               struct hf_err *err);

/* ---- reads outside the batch, on any connection ---- */

/* *ret_def NULL where there is none. */
HF_MUST_USE enum hf_status ledger_event_read(struct ledger *l, int64_t event,
                                             struct event_def **ret_def,
                                             struct clock_row *ret_clock, struct hf_err *err);
/* Every seat that is not available. */
HF_MUST_USE enum hf_status ledger_seats_read(struct ledger *l, int64_t event,
                                             void (*seat)(void *ctx, uint32_t index,
                                                          enum seat_status status, int64_t hold),
                                             void *ctx, struct hf_err *err);
/* The event's status, and each area's counters. */
HF_MUST_USE enum hf_status
ledger_event_state(struct ledger *l, int64_t event, enum event_status *ret_status,
                   void (*area)(void *ctx, uint32_t index, int64_t held, int64_t booked), void *ctx,
                   struct hf_err *err);
/* Every active hold of the event; the row is borrowed for the call. */
HF_MUST_USE enum hf_status ledger_holds_active(struct ledger *l, int64_t event,
                                               void (*hold)(void *ctx, const struct hold_row *row),
                                               void *ctx, struct hf_err *err);
/* Keys of events before `before` (0: the newest), newest first; *ret_n at most `limit`. */
HF_MUST_USE enum hf_status ledger_events_list(struct ledger *l, int64_t before, size_t limit,
                                              int64_t *ret_keys, size_t *ret_n, struct hf_err *err);
/* Up to `limit` active holds due at `now`, by the index of expiries. */
HF_MUST_USE enum hf_status ledger_holds_due(struct ledger *l, int64_t now, size_t limit,
                                            int64_t *ret_keys, size_t *ret_n, struct hf_err *err);
/* Keys of an event's holds, newest first; *ret_n at most query->limit. */
struct holds_query {
    int64_t event, before;   /* before: only holds with smaller keys; 0: all */
    enum hold_status status; /* HOLD_NONE: any; judged at `now`, swept or not */
    int64_t now;
    size_t limit;
};
HF_MUST_USE enum hf_status ledger_holds_list(struct ledger *l, const struct holds_query *query,
                                             int64_t *ret_keys, size_t *ret_n, struct hf_err *err);
/* Rows of an event's log, ascending; see audit.c.  *ret_n at most query->limit.
 * O(rows between), since filters have no index of their own: the log is written by every hold and
 * read by few. */
struct audit_query {
    int64_t event, after; /* after: only rows with larger seq */
    int64_t seat;         /* index; -1: any */
    int64_t hold;         /* key; 0: any */
    size_t limit;
};
HF_MUST_USE enum hf_status ledger_audit_read(struct ledger *l, const struct audit_query *query,
                                             struct audit_entry *ret, size_t *ret_n,
                                             struct hf_err *err);
/* Rows about one seat up to the time `at`, newest first. */
HF_MUST_USE enum hf_status ledger_audit_seat(struct ledger *l, int64_t event, uint32_t seat,
                                             int64_t at, size_t limit, struct audit_entry *ret,
                                             size_t *ret_n, struct hf_err *err);
/* Until when a hold lasted, as known at the time `at`; *ret_until 0: there is no such row. */
HF_MUST_USE enum hf_status ledger_audit_until(struct ledger *l, int64_t hold, int64_t at,
                                              int64_t *ret_until, struct hf_err *err);
/* Each stored idempotency hash, to fill the key filter at start. */
HF_MUST_USE enum hf_status ledger_keys_each(struct ledger *l, int64_t now,
                                            void (*key)(void *ctx, const uint8_t *hash), void *ctx,
                                            struct hf_err *err);
/* Forget up to `limit` keys older than KEY_KEPT_MS. */
HF_MUST_USE enum hf_status ledger_keys_prune(struct ledger *l, int64_t now, size_t limit,
                                             int64_t *ret_pruned, struct hf_err *err);
HF_MUST_USE enum hf_status ledger_maintain(struct ledger *l, struct hf_err *err);
HF_MUST_USE enum hf_status ledger_now(struct ledger *l, int64_t *ret_now, struct hf_err *err);

#endif
