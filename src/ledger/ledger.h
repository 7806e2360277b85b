/* The authority: what it says is true.  One struct ledger is one connection with its prepared
 * statements and belongs to one thread; the worker's writes, the others read.  Knows SQL and rows,
 * nothing of views, commands or HTTP.
 *
 * Lock order, for every transaction of every thread: event_clock rows by event, then idempotency
 * keys sorted, then the rest. */
#ifndef HF_LEDGER_LEDGER_H
#define HF_LEDGER_LEDGER_H

#include "db/db.h"
#include "model/rows.h"

struct ledger;

/* Opens, and for the writer brings the schema up to date. */
HF_MUST_USE enum hf_status ledger_open(const char *url, const struct db_options *options,
                                       struct ledger **ret, struct hf_err *err);
void ledger_close(struct ledger *l); /* accepts NULL */

/* May other processes write too?  Then what a view shows may be old. */
bool ledger_has_others(const struct ledger *l);

/* ---- the batch transaction, in this order (see the worker) ---- */
HF_MUST_USE enum hf_status ledger_begin(struct ledger *l, struct hf_err *err);

struct key_wanted {
    const uint8_t *hash;
    struct key_row *ret; /* not found: there is none younger than KEY_KEPT_MS */
};
struct hold_wanted {
    int64_t hold;
    struct hold_row *ret;            /* id.key 0: none */
    struct booking_row *ret_booking; /* NULL: not wanted; id.key 0: none */
};
/* What a batch reads under its locks, all in one exchange with the database. */
struct batch_read {
    /* in: the events, ascending, each with the seq and the fence that the view has; out: the rows,
     * which are locked now */
    VEC(struct clock_row) clocks;
    VEC(struct key_wanted) keys;
    VEC(struct hold_wanted) holds;
    /* out: the database's time, never before any clock row's own */
    int64_t now;
    /* out, where others write: what they wrote after those seqs and fences.  At most
     * LEDGER_SINCE_MAX rows of an event: a view that is further behind reads the event anew. */
    struct log_since since;
};
#define LEDGER_SINCE_MAX 20000
HF_MUST_USE enum hf_status ledger_batch_read(struct ledger *l, struct batch_read *r,
                                             struct hf_err *err);
/* In the same transaction: only the keys and holds wanted, which are others now. */
HF_MUST_USE enum hf_status ledger_wanted_read(struct ledger *l, const struct batch_read *r,
                                              struct hf_err *err);
/* The same without locks and outside a transaction, to follow what others do: only
 * `since`.  The rows of an event's log have no gap, since its commits follow one another; the
 * holds may be of a later moment. */
HF_MUST_USE enum hf_status ledger_follow(struct ledger *l, struct batch_read *r,
                                         struct hf_err *err);
void batch_read_clear(struct batch_read *r); /* keeps the memory */
void batch_read_close(struct batch_read *r);

/* Lock and read the clock rows named by rows[i].event (ascending), and read the time. */
HF_MUST_USE enum hf_status ledger_lock(struct ledger *l, struct clock_row *rows, size_t n,
                                       int64_t *ret_now, struct hf_err *err);
/* Reads the answers stored under hashes[i], if they are younger than KEY_KEPT_MS; see
 * rows[i].found.  Close the rows afterwards. */
HF_MUST_USE enum hf_status ledger_keys_read(struct ledger *l, const uint8_t *const *hashes,
                                            size_t n, int64_t now, struct key_row *rows,
                                            struct hf_err *err);
/* Holds by key; rows[i].id.key 0 where there is none.  Close the rows afterwards. */
HF_MUST_USE enum hf_status ledger_holds_read(struct ledger *l, const int64_t *keys, size_t n,
                                             struct hold_row *rows, struct hf_err *err);
/* The booking of a hold; id.key 0 where there is none. */
HF_MUST_USE enum hf_status ledger_booking_read(struct ledger *l, int64_t key,
                                               struct booking_row *row, struct hf_err *err);
/* Write it all.  HF_LEDGER_SURPRISE, from here or from the commit: a row count was not the expected
 * one, err->msg is the table's name.  Seats come in ascending order of key. */
HF_MUST_USE enum hf_status ledger_write(struct ledger *l, const struct ledger_batch *batch,
                                        struct hf_err *err);
HF_MUST_USE enum hf_status ledger_commit(struct ledger *l, struct hf_err *err);
void ledger_rollback(struct ledger *l);
/* Exchanges with the database so far; see db_driver.exchanges. */
int64_t ledger_exchanges(const struct ledger *l);

/* After a COMMIT of unknown outcome: did it happen?  Waits for whoever may still be at it by taking
 * the batch's locks (`clocks` names their events) and looks for what only this batch can have
 * written.  On a file that is not enough, since a crash might still bring it back: there something
 * else is committed over it.  `created` is the definition of an event that the batch inserted, or
 * NULL. */
HF_MUST_USE enum hf_status ledger_settle(struct ledger *l, const struct ledger_batch *batch,
                                         const struct clock_row *clocks, size_t n_clocks,
                                         const struct event_def *created, bool *ret_happened,
                                         struct hf_err *err);
/* Write something of no consequence and commit it: is the ledger writable? */
HF_MUST_USE enum hf_status ledger_probe(struct ledger *l, struct hf_err *err);
/* What an operator should know about the database's settings, a line each. */
HF_MUST_USE enum hf_status ledger_warnings(struct ledger *l, struct buf *ret_lines,
                                           struct hf_err *err);

/* Insert an event, inside the batch transaction; fills def->id.key and def->created_at, uses
 * def->id.secret.  A row a section and area; seats get theirs when they first change, see rows.h.
 */
HF_MUST_USE enum hf_status ledger_event_insert(struct ledger *l, struct event_def *def, int64_t now,
                                               struct hf_err *err);

/* ---- reads outside the batch, on any connection ---- */

/* *ret_def NULL where there is none. */
HF_MUST_USE enum hf_status ledger_event_read(struct ledger *l, int64_t event,
                                             struct event_def **ret_def,
                                             struct clock_row *ret_clock, struct hf_err *err);
/* Every seat that is not available, of those from `first` to `last`. */
HF_MUST_USE enum hf_status
ledger_seats_read(struct ledger *l, int64_t event, uint32_t first, uint32_t last,
                  void (*seat)(void *ctx, uint32_t index, enum seat_status status, int64_t hold),
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
/* Every hold of any event that lasts beyond `now`; the row is borrowed for the call. */
HF_MUST_USE enum hf_status ledger_holds_live(struct ledger *l, int64_t now,
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
/* Clock rows without locking them. */
HF_MUST_USE enum hf_status ledger_clocks_read(struct ledger *l, struct clock_row *rows, size_t n,
                                              struct hf_err *err);
/* Each stored idempotency hash, to fill the key filter at start. */
HF_MUST_USE enum hf_status ledger_keys_each(struct ledger *l, int64_t now,
                                            void (*key)(void *ctx, const uint8_t *hash), void *ctx,
                                            struct hf_err *err);
/* Forget up to `limit` keys older than KEY_KEPT_MS. */
HF_MUST_USE enum hf_status ledger_keys_prune(struct ledger *l, int64_t now, size_t limit,
                                             int64_t *ret_pruned, struct hf_err *err);
/* Between servers, see db.h; only where there are others. */
HF_MUST_USE enum hf_status ledger_notify(struct ledger *l, const char *topic, const char *text,
                                         struct hf_err *err);
HF_MUST_USE enum hf_status ledger_listen(struct ledger *l, const char *topic, int wake_fd,
                                         int64_t timeout_ms, struct buf *ret_lines,
                                         struct hf_err *err);
HF_MUST_USE enum hf_status ledger_alone(struct ledger *l, int64_t number, bool *ret_got,
                                        struct hf_err *err);
HF_MUST_USE enum hf_status ledger_leave(struct ledger *l, struct hf_err *err);
HF_MUST_USE enum hf_status ledger_maintain(struct ledger *l, struct hf_err *err);
HF_MUST_USE enum hf_status ledger_now(struct ledger *l, int64_t *ret_now, struct hf_err *err);

#endif
