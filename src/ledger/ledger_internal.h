/* What the files of src/ledger share: the connection with its prepared statements, the helpers that
 * run them, and the readers of rows that several statements select.  Internal to src/ledger. */
#ifndef HF_LEDGER_LEDGER_INTERNAL_H
#define HF_LEDGER_LEDGER_INTERNAL_H

#include <string.h>

#include "base/buf.h"
#include "ledger/ledger.h"
#include "ledger/statements.h"

/* The number of queries that ledger_batch_read has under way at once. */
#define LEDGER_READS 13

struct ledger {
    struct db *db;
    struct db_stmt *stmts[ST_COUNT];          /* each is prepared on first use */
    VEC(struct db_value) args;                /* scratch: parameters of one statement */
    VEC(struct db_value) reads[LEDGER_READS]; /* scratch: parameters of the reads under way */
    struct buf text;                          /* scratch: the texts that `args` point into */
    bool is_checked_in_part;                  /* opening it, damage was not looked for everywhere */
};

extern const char *const ledger_migrations[];
extern const int ledger_migrations_len;
/* Brings a database to that version of the schema. */
HF_MUST_USE enum hf_status ledger_migrate(struct db *db, int version, struct hf_err *err);

/* ---- statements.c: running statements ---- */

HF_MUST_USE enum hf_status ledger_stmt(struct ledger *l, enum statement which,
                                       struct db_stmt **ret_stmt, struct hf_err *err);
/* Runs a statement once. */
HF_MUST_USE enum hf_status ledger_exec(struct ledger *l, enum statement which,
                                       const struct db_value *args, int64_t *ret_changes,
                                       struct hf_err *err);
/* Runs a statement over the `n` rows of l->args and empties l->args. */
HF_MUST_USE enum hf_status ledger_exec_args(struct ledger *l, enum statement which, size_t n,
                                            int64_t *ret_changes, struct hf_err *err);
/* Starts a query; read its rows with ledger_next. */
HF_MUST_USE enum hf_status ledger_query(struct ledger *l, enum statement which,
                                        const struct db_value *args, struct db_stmt **ret_stmt,
                                        struct hf_err *err);
/* Moves to the next row.  *ret_row is false after the last one.  A failed read is
 * HF_STORE_UNAVAILABLE, whatever the database called it. */
HF_MUST_USE enum hf_status ledger_next(struct db_stmt *stmt, bool *ret_row, struct hf_err *err);
/* Reads the one integer that a query without parameters answers. */
HF_MUST_USE enum hf_status ledger_read_int(struct ledger *l, enum statement which, int64_t *ret,
                                           struct hf_err *err);
/* Reads up to `limit` integers of a query's first column. */
HF_MUST_USE enum hf_status ledger_read_ints(struct ledger *l, enum statement which,
                                            const struct db_value *args, size_t limit, int64_t *ret,
                                            size_t *ret_n, struct hf_err *err);

/* Copies a column; SQL NULL is an empty text, or zeros. */
void column_text(struct db_stmt *stmt, int column, char *out, size_t size);
void column_bytes(struct db_stmt *stmt, int column, uint8_t *out, size_t size);
/* The secret of an id, which is never SQL NULL. */
void column_secret(struct db_stmt *stmt, int column, uint8_t out[ID_SECRET_SIZE]);
/* Bytes of a text; 0 if the column is SQL NULL. */
size_t column_len(struct db_stmt *stmt, int column);
/* Copies a text to *next, with a NUL behind it, and moves *next behind that.  Returns NULL if the
 * column is SQL NULL. */
const char *column_keep(struct db_stmt *stmt, int column, char **next, size_t *ret_len);
/* A text of its own; NULL if the column is SQL NULL. */
char *column_strdup(struct db_stmt *stmt, int column);

static inline void ledger_arg(struct ledger *l, struct db_value value)
{
    *vec_push(&l->args) = value;
}
static inline void ledger_arg_int(struct ledger *l, int64_t i) { ledger_arg(l, db_int(i)); }
/* A text that ends with a NUL; NULL is SQL NULL. */
static inline struct db_value text_arg(const char *text)
{
    return db_text(text, text ? strlen(text) : 0);
}
/* The same; empty is SQL NULL. */
static inline struct db_value chars_arg(const char *text) { return text_arg(*text ? text : NULL); }

/* ---- session.c ---- */

/* Advances the clock row of event 0 and commits: a write of no other consequence. */
HF_MUST_USE enum hf_status ledger_commit_touch(struct ledger *l, int64_t now, struct hf_err *err);

/* ---- terms.c ---- */

/* Bytes of l->text that ledger_terms_args takes at most. */
size_t terms_text_max(const struct event_terms *terms);
/* Appends EVENT_TERMS.  l->text has room for terms_text_max bytes. */
void ledger_terms_args(struct ledger *l, const struct event_terms *row);
/* Reads ticket types as EVENT_TERMS has them, and adds them to ret->types.  Returns false if the
 * text is damaged. */
bool terms_types_parse(const char *text, size_t len, struct event_terms *ret);
/* Reads EVENT_TERMS: everything but the prices, which are columns of sections and areas. */
void terms_from_row(struct db_stmt *stmt, struct event_terms *row);

/* ---- venues.c ---- */

/* Stores categories and venue of an event that has them. */
HF_MUST_USE enum hf_status ledger_venue_insert(struct ledger *l, const struct event_def *def,
                                               struct hf_err *err);
/* Reads the event's categories, if it has any of its own, and their prices. */
HF_MUST_USE enum hf_status ledger_categories_read(struct ledger *l, struct event_def *def,
                                                  int64_t event, struct hf_err *err);
/* Reads the venue, if the event has one; its categories and rows have been read. */
HF_MUST_USE enum hf_status ledger_venue_read(struct ledger *l, struct event_def *def, int64_t event,
                                             struct hf_err *err);

/* ---- rows that several statements select ---- */

/* holds.c: HOLD_SELECTED, as HOLD_READ, HOLDS_SINCE and HOLDS_LIVE select them. */
HF_MUST_USE enum hf_status hold_from_row(struct db_stmt *stmt, struct hold_row *row,
                                         struct hf_err *err);
/* holds.c: HOLD_READ, whose columns go on with the index of the wanted hold (HOLD_COLUMNS_N), its
 * booking and its carrier. */
HF_MUST_USE enum hf_status hold_read_row(struct db_stmt *stmt, struct hold_row *row,
                                         struct hf_err *err);
/* holds.c: BOOKING_SELECTED, as BOOKING_READ (followed by the index of the wanted booking,
 * BOOKING_SELECTED_N), BOOKINGS_LIST and BOOKINGS_FIND select them. */
HF_MUST_USE enum hf_status booking_from_row(struct db_stmt *stmt, struct booking_row *row,
                                            struct hf_err *err);
/* waits.c: WAIT_OFFERED. */
HF_MUST_USE enum hf_status wait_from_row(struct db_stmt *stmt, struct wait_row *row,
                                         struct hf_err *err);
#define WAIT_OFFERED_N (WAIT_COLUMNS_N + 3)
/* payments.c: PAYMENT_SELECTED, REFUND_SELECTED and JOB_SELECTED. */
void payment_from_row(struct db_stmt *stmt, struct payment_row *row);
void refund_from_row(struct db_stmt *stmt, struct refund_row *row);
void job_from_row(struct db_stmt *stmt, struct job_row *row);
/* payments.c: appends one table's rows of the batch to l->args. */
void put_payments_new(struct ledger *l, const struct ledger_batch *b);
void put_payments(struct ledger *l, const struct ledger_batch *b);
void put_refunds_new(struct ledger *l, const struct ledger_batch *b);
void put_refunds(struct ledger *l, const struct ledger_batch *b);
void put_refunds_dropped(struct ledger *l, const struct ledger_batch *b);
void put_jobs_new(struct ledger *l, const struct ledger_batch *b);
void put_jobs(struct ledger *l, const struct ledger_batch *b);
void put_jobs_deleted(struct ledger *l, const struct ledger_batch *b);
void put_webhooks(struct ledger *l, const struct ledger_batch *b);
size_t count_refunds(const struct ledger_batch *b, bool is_dropped);
size_t count_jobs(const struct ledger_batch *b, bool is_deleted);
/* waits.c: the same for the waiting list. */
void put_waits_new(struct ledger *l, const struct ledger_batch *b);
void put_waits(struct ledger *l, const struct ledger_batch *b);
/* keys.c: the columns of KEY_READ but for the first, which is the index of the wanted key. */
void key_from_row(struct db_stmt *stmt, const uint8_t *hash, struct key_row *row);

#endif
