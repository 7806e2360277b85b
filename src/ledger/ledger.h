/* The ledger is the authority: what it says is true.  A struct ledger is one connection to the SQL
 * database with its prepared statements, and belongs to one thread.  Workers write; so does the
 * reader of jobs, which leases them where servers share the ledger; every other thread only reads.
 * The ledger knows SQL and rows, and nothing of views, commands or HTTP.
 *
 *   session.c       opening, transactions, the clock, notifications, the advisory lock
 *   batch_read.c    what a batch reads under its locks, or assumes instead
 *   batch_memory.c  the memory of such reads
 *   batch_write.c   what a batch writes
 *   resolve.c       whether a COMMIT happened whose answer was lost
 *   events.c, venues.c, holds.c, keys.c   reads outside of batches, and the creation of events
 *   audit.c, log_pages.c                  reads of the log
 *   waits.c         waiting lists
 *   payments.c      payments, refunds, jobs and webhooks; jobs.c    taking due jobs
 *   retention.c     deleting what is kept no longer; sizes.c    how large the ledger is
 *   log.c           how the log is stored; heads.c    where the chain of each seat ends
 *   schema.c        migrations; schema_check.c    is the schema ours?
 *   verify.c        the whole ledger, checked (verify.h)
 *   backup.c, restore.c, copy_rows.c    the whole ledger, copied (backup.h)
 *
 * A struct key_row is a row of the table idempotency.  Its answer_code is the column http_status,
 * which has that name for historical reasons: the ledger gives the number no meaning.
 *
 * Lock order, for every transaction of every thread: event_clock rows by event, then idempotency
 * keys sorted, then the rest. */
#ifndef HF_LEDGER_LEDGER_H
#define HF_LEDGER_LEDGER_H

#include "db/db.h"
#include "model/rows.h"

struct ledger;

/* Opens a connection.  A writer also checks that the schema is ours, and brings it up to date. */
HF_MUST_USE enum hf_status ledger_open(const char *url, const struct db_options *options,
                                       struct ledger **ret, struct hf_err *err);
/* Opens one more connection in a process that already has a writer's.  The schema is not checked
 * again: on PostgreSQL that check costs more than the session. */
HF_MUST_USE enum hf_status ledger_join(const char *url, const struct db_options *options,
                                       struct ledger **ret, struct hf_err *err);
void ledger_close(struct ledger *l); /* accepts NULL */

/* Returns true if other processes may write to this ledger too, so that a view may be out of date.
 */
bool ledger_has_others(const struct ledger *l);

/* ---- the batch transaction, in the order in which the worker makes these calls ---- */

HF_MUST_USE enum hf_status ledger_begin(struct ledger *l, struct hf_err *err);

struct key_wanted {
    const uint8_t *hash;
    struct key_row *ret; /* not found: no answer younger than KEY_KEPT_MS is stored */
};
struct hold_wanted {
    int64_t hold;
    struct hold_row *ret;            /* id.key is 0 if there is no such hold */
    struct booking_row *ret_booking; /* NULL: not wanted; id.key is 0 if there is no booking */
    struct money *ret_money;         /* NULL: not wanted; the rows are added to its lists */
};
/* Has this webhook been stored already? */
struct webhook_wanted {
    const char *id;
    bool *ret_known;
};
struct wait_wanted {
    int64_t entry;
    struct wait_row *ret; /* id.key is 0 if there is no such entry */
};
/* What a batch reads under its locks, in one exchange with the database. */
struct batch_read {
    /* In: the batch's events in ascending order, each with the seq and the fence that the view has.
     * Out: their rows, which are locked now. */
    VEC(struct clock_row) clocks;
    VEC(struct key_wanted) keys;
    VEC(struct hold_wanted) holds;
    VEC(struct webhook_wanted) webhooks;
    VEC(struct wait_wanted) waits;
    /* Out: the database's time, or that of the latest clock row if that is later. */
    int64_t now;
    /* Out, on a shared database: what other servers wrote after those seqs and fences.  It has at
     * most LEDGER_SINCE_MAX rows per event; a view that is further behind reads the event again. */
    struct log_since since;
};
#define LEDGER_SINCE_MAX 20000
HF_MUST_USE enum hf_status ledger_batch_read(struct ledger *l, struct batch_read *r,
                                             struct hf_err *err);
/* On a shared database, in place of ledger_batch_read: asks for nothing.  The batch is decided at
 * the time r->now on what the view has, and the commit fails with HF_CONFLICT unless all of
 * this holds when the database gets to it, from when on the clock rows are locked:
 *   - r->clocks are the clock rows' seqs and fences, no row is ahead of r->now, and no other
 *     transaction has one of them locked: this one does not wait for it;
 *   - the database's time is r->now, or later by at most LEDGER_ASSUME_LATE_MS;
 *   - no answer younger than KEY_KEPT_MS is stored under r->keys.
 * r->holds, r->webhooks and r->waits are empty: what needs rows has to read them. */
#define LEDGER_ASSUME_LATE_MS 50
HF_MUST_USE enum hf_status ledger_batch_assume(struct ledger *l, const struct batch_read *r,
                                               struct hf_err *err);
/* Fills only r->since, without locks and outside of a transaction.  The rows of an event's log have
 * no gap, since its commits follow one another; the holds may be those of a later moment. */
HF_MUST_USE enum hf_status ledger_follow(struct ledger *l, struct batch_read *r,
                                         struct hf_err *err);
/* Adds holds to `since` by their keys; those that the ledger no longer has are left out. */
HF_MUST_USE enum hf_status ledger_since_read(struct ledger *l, const int64_t *keys, size_t n,
                                             struct log_since *since, struct hf_err *err);
void batch_read_clear(struct batch_read *r); /* keeps the memory */
void batch_read_close(struct batch_read *r);

/* Inserts an event with one row per section and area; fills def->id.key and def->created_at and
 * uses def->id.secret.  The log says that `actor` made it. */
HF_MUST_USE enum hf_status ledger_event_insert(struct ledger *l, struct event_def *def, int64_t now,
                                               const char *actor, struct hf_err *err);
/* Writes the batch; its rows are in ascending order of their keys.  Fails with HF_SURPRISE,
 * here or at the commit, if the number of changed rows is not the expected one; err->msg is then
 * the table's name. */
HF_MUST_USE enum hf_status ledger_write(struct ledger *l, const struct ledger_batch *batch,
                                        struct hf_err *err);
HF_MUST_USE enum hf_status ledger_commit(struct ledger *l, struct hf_err *err);
void ledger_rollback(struct ledger *l);

/* After a COMMIT of unknown outcome: tells whether it happened, and makes sure that it stays so.  A
 * failure means that this is still not known; call it again.  `clocks` names the batch's events,
 * `created` is the definition of the event that the batch inserted, or NULL, and `assumed` is true
 * if it began with ledger_batch_assume.  See resolve.c. */
HF_MUST_USE enum hf_status ledger_resolve(struct ledger *l, const struct ledger_batch *batch,
                                          const struct clock_row *clocks, size_t n_clocks,
                                          const struct event_def *created, bool assumed,
                                          bool *ret_happened, struct hf_err *err);
/* Returns the number of exchanges with the database so far; see db_upkeep.exchanges. */
int64_t ledger_exchanges(const struct ledger *l);

/* ---- parts of the above, inside a transaction ---- */

/* Locks and reads the clock rows named by rows[i].event, in ascending order, and reads the time. */
HF_MUST_USE enum hf_status ledger_lock(struct ledger *l, struct clock_row *rows, size_t n,
                                       int64_t *ret_now, struct hf_err *err);
/* Reads the answers stored under hashes[i], if they are younger than KEY_KEPT_MS; see
 * rows[i].found.  Close the rows afterwards. */
HF_MUST_USE enum hf_status ledger_keys_read(struct ledger *l, const uint8_t *const *hashes,
                                            size_t n, int64_t now, struct key_row *rows,
                                            struct hf_err *err);

/* ---- reads outside of batches, on any connection ---- */

/* Reads an event; *ret_def is NULL if there is none. */
HF_MUST_USE enum hf_status ledger_event_read(struct ledger *l, int64_t event,
                                             struct event_def **ret_def,
                                             struct clock_row *ret_clock, struct hf_err *err);
/* The row of a seat, which is booked, or blocked unless a hold of its channel has it. */
struct seat_row {
    enum seat_status status;
    int64_t hold;
    uint32_t channel;
};
/* Calls `seat` for every seat from `first` to `last` that has a row, in ascending order. */
HF_MUST_USE enum hf_status
ledger_seats_read(struct ledger *l, int64_t event, uint32_t first, uint32_t last,
                  void (*seat)(void *ctx, uint32_t index, const struct seat_row *row), void *ctx,
                  struct hf_err *err);
/* Calls `head` with the seq of the last row about each seat that the log names.  A seat may be
 * named several times, and the last call counts.  *ret_seq is the seq up to which stored heads knew
 * the log; the rest of it was read.  Inside a transaction. */
HF_MUST_USE enum hf_status ledger_heads_read(struct ledger *l, int64_t event, uint32_t n_seats,
                                             void (*head)(void *ctx, uint32_t seat, int64_t seq),
                                             void *ctx, int64_t *ret_seq, struct hf_err *err);
/* The counters of an area. */
struct area_row {
    int64_t held, booked;
    const struct area_blocks *blocks;
};
/* Reads the event's status and calls `area` with each of its areas. */
HF_MUST_USE enum hf_status
ledger_event_state(struct ledger *l, int64_t event, enum event_status *ret_status,
                   void (*area)(void *ctx, uint32_t index, const struct area_row *row), void *ctx,
                   struct hf_err *err);
/* Reads the event's terms, which event_terms_close closes. */
HF_MUST_USE enum hf_status ledger_terms_read(struct ledger *l, int64_t event,
                                             struct event_terms *ret, struct hf_err *err);
/* Calls `owner` for each booking of the event that has an owner and is not cancelled. */
HF_MUST_USE enum hf_status ledger_owners_booked(struct ledger *l, int64_t event,
                                                void (*owner)(void *ctx, const char *owner,
                                                              size_t len, uint32_t places),
                                                void *ctx, struct hf_err *err);
/* Reads clock rows without locking them. */
HF_MUST_USE enum hf_status ledger_clocks_read(struct ledger *l, struct clock_row *rows, size_t n,
                                              struct hf_err *err);
/* Lists the keys of events below `before` (0: all), newest first, archived ones too; *ret_n is at
 * most `limit`. */
HF_MUST_USE enum hf_status ledger_event_keys(struct ledger *l, int64_t before, size_t limit,
                                             int64_t *ret_keys, size_t *ret_n, struct hf_err *err);
/* Lists events, newest first, without those that are archived; or what is to come at `now`, in the
 * order of dates: open events that have not begun or are still sold, then those without any date.
 * *ret_n is at most `limit`.  Each has its definition without sections and areas, for
 * event_def_free, and of its counts only the seq.  What is to come is sorted for every page. */
struct events_query {
    int64_t last; /* the key of the last event of the page before; 0: none */
    size_t limit;
    bool upcoming;
    int64_t now; /* if `upcoming` */
};
HF_MUST_USE enum hf_status ledger_events_list(struct ledger *l, const struct events_query *query,
                                              struct event_summary *ret, size_t *ret_n,
                                              struct hf_err *err);
/* Counts an event's places by their status; ret->seq stays as it is.  Reads the rows of booked and
 * blocked seats, the index of live holds of all events, and the text of the layout, but keeps
 * nothing of them.  Inside a transaction. */
HF_MUST_USE enum hf_status ledger_event_count(struct ledger *l, int64_t event,
                                              struct event_counts *ret, struct hf_err *err);

/* Reads holds by key; rows[i].id.key is 0 if there is none.  Close the rows afterwards. */
HF_MUST_USE enum hf_status ledger_holds_read(struct ledger *l, const int64_t *keys, size_t n,
                                             struct hold_row *rows, struct hf_err *err);
/* Reads any number of holds by key, LEDGER_VISIT_CHUNK per exchange, and calls `hold` for each in
 * order.  row->id.key is 0 if there is no hold keys[i]; the row is borrowed for the call. */
#define LEDGER_VISIT_CHUNK 500
HF_MUST_USE enum hf_status ledger_holds_visit(struct ledger *l, const int64_t *keys, size_t n,
                                              void (*hold)(void *ctx, size_t i,
                                                           const struct hold_row *row),
                                              void *ctx, struct hf_err *err);
/* Calls `hold` for every active hold of the event, the first to expire first.  The row has what a
 * view keeps, and neither secret, owner, metadata, amount nor time of creation; it is borrowed for
 * the call. */
HF_MUST_USE enum hf_status ledger_holds_active(struct ledger *l, int64_t event,
                                               void (*hold)(void *ctx, const struct hold_row *row),
                                               void *ctx, struct hf_err *err);
/* Counts the active holds of the event. */
HF_MUST_USE enum hf_status ledger_holds_count(struct ledger *l, int64_t event, int64_t *ret_n,
                                              struct hf_err *err);
/* Calls `hold` for every hold, of any event, that expires after `now`; the row is borrowed. */
HF_MUST_USE enum hf_status ledger_holds_live(struct ledger *l, int64_t now,
                                             void (*hold)(void *ctx, const struct hold_row *row),
                                             void *ctx, struct hf_err *err);
/* Lists the first active hold that is due at `now` of each event, up to `limit` of them. */
HF_MUST_USE enum hf_status ledger_holds_due(struct ledger *l, int64_t now, size_t limit,
                                            int64_t *ret_keys, size_t *ret_n, struct hf_err *err);
struct holds_query {
    int64_t event;
    int64_t before;          /* only holds with smaller keys; 0: all */
    enum hold_status status; /* at `now`, so that a due hold counts as expired; HOLD_NONE: any */
    int64_t now;
    const char *owner; /* NULL: any */
    size_t owner_len;
    size_t limit;
};
/* Lists the keys of an event's holds, newest first; *ret_n is at most query->limit. */
HF_MUST_USE enum hf_status ledger_holds_list(struct ledger *l, const struct holds_query *query,
                                             int64_t *ret_keys, size_t *ret_n, struct hf_err *err);
struct bookings_query {
    int64_t event;              /* 0: all events */
    int64_t before;             /* only bookings with smaller keys; 0: all */
    enum booking_status status; /* BOOKING_NONE: any */
    const char *reference;      /* NULL: any */
    size_t reference_len;
    const char *owner; /* NULL: any */
    size_t owner_len;
    size_t limit;
};
/* Reads bookings, newest first within an event, and the events from the newest on; *ret_n is at
 * most query->limit.  Close the rows afterwards, also after a failure. */
HF_MUST_USE enum hf_status ledger_bookings_list(struct ledger *l,
                                                const struct bookings_query *query,
                                                struct booking_row *ret, size_t *ret_n,
                                                struct hf_err *err);
/* Reads the booking of a hold; id.key is 0 if there is none.  Close the row afterwards. */
HF_MUST_USE enum hf_status ledger_booking_read(struct ledger *l, int64_t key,
                                               struct booking_row *row, struct hf_err *err);

/* Reads the booking of this id, which may be one that failed before the hold was booked again;
 * id.key is 0 if there is none.  Close the row afterwards. */
HF_MUST_USE enum hf_status ledger_booking_find(struct ledger *l, const struct id *id,
                                               struct booking_row *row, struct hf_err *err);
/* Reads the booking of this payment, which may have failed before; `payment` 0: the current one. */
HF_MUST_USE enum hf_status ledger_booking_of_payment(struct ledger *l, int64_t booking,
                                                     int64_t payment, struct booking_row *row,
                                                     struct hf_err *err);
/* Calls `booking` for every pending booking of the event, with the number of its payment. */
HF_MUST_USE enum hf_status ledger_bookings_pending(struct ledger *l, int64_t event,
                                                   void (*booking)(void *ctx, int64_t booking,
                                                                   int64_t payment),
                                                   void *ctx, struct hf_err *err);

/* ---- waiting lists, outside of batches ---- */

/* Calls `wait` for every live entry of the event, in the order of their numbers; the row is borrowed
 * for the call, and has neither secret, metadata nor offer.  *ret_last is the number of the newest
 * entry, live or not; 0: there never was one. */
HF_MUST_USE enum hf_status ledger_waits_live(struct ledger *l, int64_t event,
                                             void (*wait)(void *ctx, const struct wait_row *row),
                                             void *ctx, int64_t *ret_last, struct hf_err *err);
/* Reads an entry, with its offer; id.key is 0 if there is none.  *ret_ahead is how many entries of
 * its event wait and have a smaller rank, if it waits itself.  Close the row afterwards. */
HF_MUST_USE enum hf_status ledger_wait_read(struct ledger *l, int64_t entry, struct wait_row *row,
                                            int64_t *ret_ahead, struct hf_err *err);
struct waits_query {
    int64_t event;           /* 0: all events */
    int64_t before;          /* only entries with smaller keys; 0: all */
    enum wait_status status; /* WAIT_NONE: any */
    const char *owner;       /* NULL: any */
    size_t owner_len;
    size_t limit;
};
/* Reads entries, with their offers, newest first within an event, and the events from the newest on;
 * *ret_n is at most query->limit.  Close the rows afterwards, also after a failure. */
HF_MUST_USE enum hf_status ledger_waits_list(struct ledger *l, const struct waits_query *query,
                                             struct wait_row *ret, size_t *ret_n,
                                             struct hf_err *err);
/* Lists events above `after` that have entries that wait, ascending; *ret_n is at most `limit`. */
HF_MUST_USE enum hf_status ledger_waited_for(struct ledger *l, int64_t after, size_t limit,
                                             int64_t *ret_events, size_t *ret_n,
                                             struct hf_err *err);

/* ---- payments and jobs, outside of batches ---- */

/* Adds the rows about the money of a booking to `ret`. */
HF_MUST_USE enum hf_status ledger_money_read(struct ledger *l, int64_t booking, struct money *ret,
                                             struct hf_err *err);
/* Finds the payment of a provider's intent; ret->key is 0 if there is none. */
HF_MUST_USE enum hf_status ledger_payment_find(struct ledger *l, const char *intent, struct id *ret,
                                               struct hf_err *err);
struct jobs_query {
    int64_t now;
    int64_t quiet_before; /* also poll payments that have not changed since then; 0: only those
                             whose poll is due */
    size_t calls_max;     /* jobs and polls together */
    size_t notices_max;
    int64_t rate;  /* requests per second of all servers together; 0: not limited */
    int64_t spent; /* requests that this server made besides, and that count too */
};
/* Takes due jobs: those of the provider in the order of their kinds, then polls, then
 * notifications.  Of each payment, and of each booking's notifications, at most one is taken at a
 * time.  Where several servers share the ledger, the jobs taken are leased for JOB_LEASE_MS, and
 * count against the budget of requests; else the caller has to leave out those that it runs
 * already.  `ret` has room for calls_max + notices_max rows. */
HF_MUST_USE enum hf_status ledger_jobs_take(struct ledger *l, const struct jobs_query *query,
                                            struct job_row *ret, size_t *ret_n, struct hf_err *err);
/* Counts the owed jobs of each kind; `ret` is indexed by enum job_kind. */
struct jobs_count {
    int64_t n;
    int64_t oldest_at; /* 0: there is none */
};
HF_MUST_USE enum hf_status
ledger_jobs_count(struct ledger *l, struct jobs_count ret[JOB_NOTIFY + 1], struct hf_err *err);
/* A refund in a list, newest first within an event. */
struct refund_entry {
    struct refund_row row;
    struct id booking; /* which may have failed, and its hold been booked again */
    struct id payment;
    int64_t number; /* of the order */
    char currency[4];
    uint32_t attempts;
    int64_t due_at;
    char job_error[ERROR_TEXT_SIZE];
};
HF_MUST_USE enum hf_status ledger_refunds_list(struct ledger *l, int64_t before,
                                               enum refund_status status, size_t limit,
                                               struct refund_entry *ret, size_t *ret_n,
                                               struct hf_err *err);
/* A notification in a list. */
struct notice_entry {
    struct job_row row;
    struct id booking; /* key 0: it is about a hold without a booking */
    int64_t number;
};
HF_MUST_USE enum hf_status ledger_notices_list(struct ledger *l, int64_t before,
                                               enum job_status status, size_t limit,
                                               struct notice_entry *ret, size_t *ret_n,
                                               struct hf_err *err);
/* Deletes up to `limit` webhooks that arrived before `before`. */
HF_MUST_USE enum hf_status ledger_webhooks_prune(struct ledger *l, int64_t before, size_t limit,
                                                 int64_t *ret_n, struct hf_err *err);
/* How far the cancelling of an event has come. */
struct cancel_progress {
    int64_t bookings_left, bookings_cancelled;
    int64_t refunds_owed, refunds_done, refunds_failed;
};
HF_MUST_USE enum hf_status ledger_cancel_progress(struct ledger *l, int64_t event,
                                                  struct cancel_progress *ret, struct hf_err *err);
/* What the confirmed bookings of an event cost, and what of it goes back to their buyers. */
struct event_revenue {
    bool has_types; /* in: by_type is wanted */
    int64_t bookings, amount, refunded;
    int64_t by_type[TYPES_MAX]; /* the parts of `amount`, by the index of the ticket type */
};
/* O(bookings of the event). */
HF_MUST_USE enum hf_status ledger_revenue(struct ledger *l, int64_t event,
                                          struct event_revenue *ret, struct hf_err *err);
/* Lists up to `limit` bookings of an event, with keys above `after`, that are not cancelled. */
HF_MUST_USE enum hf_status ledger_bookings_live(struct ledger *l, int64_t event, int64_t after,
                                                size_t limit, struct id *ret, size_t *ret_n,
                                                struct hf_err *err);
/* Lists up to CANCELLED_EVENTS_MAX cancelled events below `before`, newest first. */
#define CANCELLED_EVENTS_MAX 100
HF_MUST_USE enum hf_status ledger_events_cancelled(struct ledger *l, int64_t before, int64_t *ret,
                                                   size_t *ret_n, struct hf_err *err);

/* A seat, and where its chain ends: its head as the view knew it at `seq`. */
struct seat_chain {
    int64_t event, head, seq;
    uint32_t seat;
};
struct audit_query {
    int64_t event;
    int64_t after;                 /* only rows with a larger seq */
    const struct seat_chain *seat; /* only rows about this seat; NULL: any */
    int64_t hold;                  /* key of a hold; 0: any */
    size_t limit;
};
/* Reads rows of an event's log in ascending order; *ret_n is at most query->limit.  Costs O(limit),
 * or O(rows of the seat or the hold). */
HF_MUST_USE enum hf_status ledger_audit_read(struct ledger *l, const struct audit_query *query,
                                             struct audit_entry *ret, size_t *ret_n,
                                             struct hf_err *err);
/* Reads the rows about one seat up to the time `at`, newest first, and among them, as rows about
 * the seat, the renewals of the hold that had it. */
HF_MUST_USE enum hf_status ledger_audit_seat(struct ledger *l, const struct seat_chain *chain,
                                             int64_t at, size_t limit, struct audit_entry *ret,
                                             size_t *ret_n, struct hf_err *err);
/* Reads the expiry of a hold as it was known at the time `at`; 0 if the log has no such row. */
HF_MUST_USE enum hf_status ledger_audit_until(struct ledger *l, int64_t hold, int64_t at,
                                              int64_t *ret_until, struct hf_err *err);

/* Does the log tell how the event was at the moment `at`?  It does not if rows that were logged
 * after that moment may have been pruned. */
HF_MUST_USE enum hf_status ledger_log_knows(struct ledger *l, int64_t event, int64_t at, bool *ret,
                                            struct hf_err *err);
/* Finds the first row that was logged after the moment `at`, in a log whose times never decrease
 * (log_pages.c); *ret_seq is 0 if there is none.  O(log n). */
HF_MUST_USE enum hf_status ledger_log_later(struct ledger *l, int64_t event, int64_t at,
                                            int64_t *ret_seq, struct hf_err *err);
/* Calls `row` for the rows behind the seq *after and up to the seq `last`, in ascending order:
 * those of at most `entries` transitions.  Both seqs must be ends of transitions; *after is then
 * the last one that was read.  `row` returns false if it finds the log damaged. */
HF_MUST_USE enum hf_status ledger_log_page(struct ledger *l, int64_t event, int64_t *after,
                                           int64_t last, int64_t entries,
                                           bool (*row)(void *ctx, const struct audit_row *row),
                                           void *ctx, struct hf_err *err);

/* Calls `key` with the hash of each stored answer, to fill the key filter at start. */
HF_MUST_USE enum hf_status ledger_keys_each(struct ledger *l, int64_t now,
                                            void (*key)(void *ctx, const uint8_t *hash), void *ctx,
                                            struct hf_err *err);
/* Deletes up to `limit` stored answers that are KEY_KEPT_MS old or older. */
HF_MUST_USE enum hf_status ledger_keys_prune(struct ledger *l, int64_t now, size_t limit,
                                             int64_t *ret_pruned, struct hf_err *err);

/* ---- retention (retention.c), on a writing connection and outside of batches ---- */

/* What is old enough to go; PRUNE_NEVER: nothing is. */
#define PRUNE_NEVER INT64_MIN
struct prune_limits {
    int64_t log_before;   /* archived events that have not changed since then go as a whole */
    int64_t holds_before; /* of all events, holds that ended until then and sold nothing */
};
/* Where the pruning stands, event after event.  Zeroed, it begins with the first. */
struct prune {
    int64_t after;   /* events up to this one have been looked at; 0: a round begins */
    int64_t event;   /* being pruned; 0: none */
    bool whole;      /* all that it does not need, and not only finished holds */
    int64_t hold;    /* of a whole event: holds and waits up to this key have been looked at */
    int64_t n_holds; /* holds that were deleted with their rows of the log, since the beginning */
};
/* Looks at some more events for one that has something to prune: p->event.  If it is 0 and p->after
 * is not, there are more events to look at. */
HF_MUST_USE enum hf_status ledger_prune_next(struct ledger *l, const struct prune_limits *limits,
                                             struct prune *p, struct hf_err *err);
/* Deletes one slice of what the event does not need any more.
 *
 * Of any event: holds that were released or have expired, with all of their rows of the log, in the
 * order in which they ended.  What is left of the log is still true, since each of them gave back
 * what it had taken, but has gaps up to events.holds_pruned_seq.  Bookings keep their holds, and
 * the newest entry of a log stays, so that a view that is far behind finds a gap before it and
 * reads the event again.  Entries of its waiting list that have ended go likewise, all but the
 * newest, whose number the next one follows.
 *
 * Of a whole event: entries of its log from the oldest on, then all finished holds without a
 * booking and all ended entries of its waiting list, then stored heads.  Sales are kept.
 *
 * Each slice is a transaction under the event's lock.  p->event is 0 afterwards if nothing is left
 * to do, or if the event has changed meanwhile. */
HF_MUST_USE enum hf_status ledger_prune_slice(struct ledger *l, const struct prune_limits *limits,
                                              struct prune *p, struct hf_err *err);

/* How far an event has been pruned; 0: not at all. */
struct pruned {
    int64_t log_seq; /* no row up to this seq is left */
    int64_t seq;     /* rows up to this one may be missing, those of finished holds at least */
};
HF_MUST_USE enum hf_status ledger_pruned(struct ledger *l, int64_t event, struct pruned *ret,
                                         struct hf_err *err);

/* The erasure of an owner: of the label, the metadata, the client's hash, the reference and the
 * reason of each of its holds, bookings and entries of waiting lists, of all events, of the addresses
 * in their rows of the log, and of the answers stored about them. */
struct erasure {
    const char *owner; /* borrowed */
    size_t owner_len;
    /* Rewrites the body of a stored answer if it names the owner, or is about one of its holds
     * (`is_own`); returns false if there is nothing to erase in it. */
    bool (*rewrite)(const char *body, size_t len, const struct erasure *x, bool is_own,
                    struct buf *out);
    int64_t after;                    /* holds and waits up to this key have been looked at */
    uint8_t key_after[KEY_HASH_SIZE]; /* stored answers up to this hash have been looked at */
    bool holds_done, done;
    VEC(int64_t) holds;        /* those erased so far, ascending; vec_close by the owner */
    int64_t bookings, answers; /* how many were erased */
};
/* Does one slice, a transaction; x->done is true after the last. */
HF_MUST_USE enum hf_status ledger_erase_slice(struct ledger *l, struct erasure *x,
                                              struct hf_err *err);

/* ---- the session ---- */

HF_MUST_USE enum hf_status ledger_now(struct ledger *l, int64_t *ret_now, struct hf_err *err);
/* Tests whether the ledger can be written to, by a commit of no consequence, and whether its disk
 * has room for `room_bytes` more; where the database is in a network, that is its server's concern.
 */
HF_MUST_USE enum hf_status ledger_probe(struct ledger *l, int64_t room_bytes, struct hf_err *err);
/* Appends what an operator should know about the database's settings, one line each. */
HF_MUST_USE enum hf_status ledger_warnings(struct ledger *l, struct buf *ret_lines,
                                           struct hf_err *err);
/* SQLite's log; see db_upkeep.maintain and db_upkeep.log_bytes. */
HF_MUST_USE enum hf_status ledger_maintain(struct ledger *l, struct db_log *ret,
                                           struct hf_err *err);
int64_t ledger_log_bytes(const struct ledger *l);

/* How many keys were stored in which hour, so that each count of them reads only those that came
 * after the count before.  Zeroed, it has counted none. */
#define KEY_HOURS 32
struct key_census {
    int64_t upto; /* the moment up to which keys have been counted */
    struct {
        int64_t hour, n;
    } hours[KEY_HOURS];
};
struct ledger_sizes {
    struct db_sizes db;
    int64_t keys;       /* stored answers that are younger than KEY_KEPT_MS */
    int64_t keys_bytes; /* an estimate of what they take, with their index */
};
/* Measures the ledger, outside a transaction.  The first call with a census reads the index of all
 * keys, later calls that of the new keys alone. */
HF_MUST_USE enum hf_status ledger_sizes(struct ledger *l, struct key_census *census,
                                        struct ledger_sizes *ret, struct hf_err *err);

/* The rest exists only on a shared database (ledger_has_others); db.h has the details. */
HF_MUST_USE enum hf_status ledger_notify(struct ledger *l, const char *topic, const char *text,
                                         struct hf_err *err);
HF_MUST_USE enum hf_status ledger_listen(struct ledger *l, const char *topic, int wake_fd,
                                         int64_t timeout_ms, struct buf *ret_lines,
                                         struct hf_err *err);
/* Takes an advisory lock, which ends with the connection at the latest.  *ret_locked is false if
 * another connection has it. */
HF_MUST_USE enum hf_status ledger_try_lock(struct ledger *l, int64_t number, bool *ret_locked,
                                           struct hf_err *err);
/* Gives back every lock that ledger_try_lock took on this connection. */
HF_MUST_USE enum hf_status ledger_unlock_all(struct ledger *l, struct hf_err *err);

#endif
