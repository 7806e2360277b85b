/* The columns of the tables whose rows are read and written as a whole: one list for each, from
 * which the texts in statements.h follow, and the code that binds and reads a row.  So a new column
 * is one line here, and a migration.  `verify` reads all of them but the log in its own way.
 * Internal to src/ledger.
 *
 * A line is X(alias, column, KIND, field): the alias that statements give the table, and the field
 * of the row's struct.  AND stands between two lines, for the comma of a statement.  A list has two
 * parts where one statement changes much of a row: what it leaves alone, and what it writes.
 *
 *   INT      an integer, an enum or a bool
 *   SECRET   that of an id
 *   BYTES    an array of bytes; SQL NULL is zeros
 *   CHARS    an array of characters that ends with a NUL; SQL NULL is empty
 *   TEXT     a text that is borrowed, and FIELD_len; SQL NULL is NULL
 *   OWNED    a text that ends with a NUL and is freed; SQL NULL is NULL
 *
 * SEATS, AREAS and PRICES (holds.c), WISH (waits.c), CHANNELS and TYPES (terms.c) are lists as
 * texts. */
#ifndef HF_LEDGER_COLUMNS_H
#define HF_LEDGER_COLUMNS_H

/* clang-format off */
/* What a hold that is offered to the waiting list does not have from its entry. */
#define HOLD_PLAIN(X, AND) \
    X(h, hold,           INT,      id.key)         AND \
    X(h, secret,         SECRET,   id.secret)      AND \
    X(h, event,          INT,      event)          AND \
    X(h, status,         INT,      status)         AND \
    X(h, fence,          INT,      fence)          AND \
    X(h, amount,         INT,      amount)         AND \
    X(h, seats,          SEATS,    seats)          AND \
    X(h, areas,          AREAS,    areas)          AND \
    X(h, created_at,     INT,      created_at)     AND \
    X(h, expires_at,     INT,      expires_at)     AND \
    X(h, max_expires_at, INT,      max_expires_at) AND \
    X(h, client,         INT,      client)         AND \
    X(h, last_seq,       INT,      last_seq)       AND \
    X(h, prices,         PRICES,   prices)         AND \
    X(h, channel,        INT,      channel)
#define HOLD_COLUMNS(X, AND) \
    HOLD_PLAIN(X, AND)                             AND \
    X(h, owner,          TEXT,     owner)          AND \
    X(h, metadata,       TEXT,     metadata)

/* Those of bookings_past, too. */
#define BOOKING_COLUMNS(X, AND) \
    X(b, booking,        INT,      id.key)         AND \
    X(b, secret,         SECRET,   id.secret)      AND \
    X(b, event,          INT,      event)          AND \
    X(b, status,         INT,      status)         AND \
    X(b, fence,          INT,      fence)          AND \
    X(b, amount,         INT,      amount)         AND \
    X(b, reference,      TEXT,     reference)      AND \
    X(b, created_at,     INT,      created_at)     AND \
    X(b, cancelled_at,   INT,      cancelled_at)   AND \
    X(b, reason,         TEXT,     reason)         AND \
    X(b, payment,        INT,      payment)        AND \
    X(b, number,         INT,      number)         AND \
    X(b, email,          TEXT,     email)

#define WAIT_COLUMNS(X, AND) \
    X(w, entry,          INT,      id.key)         AND \
    X(w, event,          INT,      event)          AND \
    X(w, secret,         SECRET,   id.secret)      AND \
    X(w, number,         INT,      number)         AND \
    X(w, rank,           INT,      rank)           AND \
    X(w, status,         INT,      status)         AND \
    X(w, reason,         INT,      reason)         AND \
    X(w, created_at,     INT,      created_at)     AND \
    X(w, ended_at,       INT,      ended_at)       AND \
    X(w, read_at,        INT,      read_at)        AND \
    X(w, until,          INT,      until)          AND \
    X(w, last_seq,       INT,      last_seq)       AND \
    X(w, hold,           INT,      hold)           AND \
    X(w, client,         INT,      client)         AND \
    X(w, owner,          TEXT,     owner)          AND \
    X(w, metadata,       TEXT,     metadata)       AND \
    X(w, wish,           WISH,     wish)

#define PAYMENT_KEPT(X, AND) \
    X(p, booking,        INT,      id.key)         AND \
    X(p, payment,        INT,      payment)        AND \
    X(p, secret,         BYTES,    id.secret)      AND \
    X(p, amount,         INT,      amount)         AND \
    X(p, currency,       CHARS,    currency)       AND \
    X(p, captures_by_hand, INT,    captures_by_hand) AND \
    X(p, created_at,     INT,      created_at)
#define PAYMENT_CHANGES(X, AND) \
    X(p, status,         INT,      status)         AND \
    X(p, intent,         CHARS,    intent)         AND \
    X(p, client_secret,  CHARS,    client_secret)  AND \
    X(p, received,       INT,      received)       AND \
    X(p, is_wrong,       INT,      is_wrong)       AND \
    X(p, disputed,       INT,      disputed)       AND \
    X(p, error_code,     CHARS,    error.code)     AND \
    X(p, decline_code,   CHARS,    error.decline_code) AND \
    X(p, error_message,  CHARS,    error.message)  AND \
    X(p, poll_at,        INT,      poll_at)        AND \
    X(p, updated_at,     INT,      updated_at)
#define PAYMENT_COLUMNS(X, AND) PAYMENT_KEPT(X, AND) AND PAYMENT_CHANGES(X, AND)

#define REFUND_KEPT(X, AND) \
    X(f, booking,        INT,      booking)        AND \
    X(f, refund,         INT,      refund)         AND \
    X(f, payment,        INT,      payment)        AND \
    X(f, is_ours,        INT,      is_ours)        AND \
    X(f, created_at,     INT,      created_at)
#define REFUND_CHANGES(X, AND) \
    X(f, status,         INT,      status)         AND \
    X(f, amount,         INT,      amount)         AND \
    X(f, provider,       CHARS,    provider)       AND \
    X(f, error,          CHARS,    error)          AND \
    X(f, updated_at,     INT,      updated_at)
#define REFUND_COLUMNS(X, AND) REFUND_KEPT(X, AND) AND REFUND_CHANGES(X, AND)

#define JOB_KEPT(X, AND) \
    X(j, booking,        INT,      booking)        AND \
    X(j, job,            INT,      job)            AND \
    X(j, kind,           INT,      kind)           AND \
    X(j, payment,        INT,      payment_no)     AND \
    X(j, amount,         INT,      amount)         AND \
    X(j, refund,         INT,      refund)         AND \
    X(j, notice,         INT,      notice)         AND \
    X(j, created_at,     INT,      created_at)     AND \
    X(j, leased_until,   INT,      leased_until)
#define JOB_CHANGES(X, AND) \
    X(j, status,         INT,      status)         AND \
    X(j, key,            BYTES,    key)            AND \
    X(j, key_used_at,    INT,      key_used_at)    AND \
    X(j, attempts,       INT,      attempts)       AND \
    X(j, checks_first,   INT,      checks_first)   AND \
    X(j, due_at,         INT,      due_at)         AND \
    X(j, ended_at,       INT,      ended_at)       AND \
    X(j, error,          CHARS,    error)
#define JOB_COLUMNS(X, AND) JOB_KEPT(X, AND) AND JOB_CHANGES(X, AND)

#define EVENT_KEPT(X, AND) \
    X(e, event,          INT,      id.key)         AND \
    X(e, secret,         SECRET,   id.secret)      AND \
    X(e, currency,       CHARS,    currency)       AND \
    X(e, status,         INT,      status)         AND \
    X(e, created_at,     INT,      created_at)
/* Fields of its struct event_terms. */
#define EVENT_TERMS(X, AND) \
    X(e, name,           OWNED,    name)           AND \
    X(e, venue,          OWNED,    venue)          AND \
    X(e, venue_address,  OWNED,    venue_address)  AND \
    X(e, timezone,       OWNED,    timezone)       AND \
    X(e, image,          OWNED,    image)          AND \
    X(e, description,    OWNED,    description)    AND \
    X(e, metadata,       OWNED,    metadata)       AND \
    X(e, channels,       CHANNELS, channels)       AND \
    X(e, types,          TYPES,    types)          AND \
    X(e, starts_at,      INT,      starts_at.ms)   AND \
    X(e, starts_offset,  INT,      starts_at.offset_min) AND \
    X(e, doors_at,       INT,      doors_at.ms)    AND \
    X(e, doors_offset,   INT,      doors_at.offset_min) AND \
    X(e, sales_open_at,  INT,      sales_open_at)  AND \
    X(e, sales_close_at, INT,      sales_close_at) AND \
    X(e, hold_ttl_ms,    INT,      hold_ttl_ms)    AND \
    X(e, hold_max_ms,    INT,      hold_max_ms)    AND \
    X(e, max_per_hold,   INT,      max_per_hold)   AND \
    X(e, max_per_owner,  INT,      max_per_owner)  AND \
    X(e, lone_seats,     INT,      lone_seats)     AND \
    X(e, offer_ttl_ms,   INT,      offer_ttl_ms)   AND \
    X(e, wait_alive_ms,  INT,      wait_alive_ms)  AND \
    X(e, wait_per_owner, INT,      wait_per_owner) AND \
    X(e, wait_paused,    INT,      wait_paused)
#define EVENT_COLUMNS(X, AND) EVENT_KEPT(X, AND) AND EVENT_TERMS(X, AND)

/* What log_put binds, in this order, but for the actor, and log_expand reads: an entry is several
 * rows of the log, so the columns have no fields. */
#define LOG_COLUMNS(X, AND) \
    X(a, entry,    INT, )   AND X(a, at,     INT, )   AND X(a, object,  INT, ) AND \
    X(a, cause,    INT, )   AND X(a, before, INT, )   AND X(a, after,   INT, ) AND \
    X(a, quantity, INT, )   AND X(a, hold,   INT, )   AND X(a, booking, INT, ) AND \
    X(a, fence,    INT, )   AND X(a, until,  INT, )   AND X(a, prev,    INT, ) AND \
    X(a, seats,    SEATS, ) AND X(a, areas,  AREAS, ) AND X(a, channel, INT, ) AND \
    X(a, types,    TYPES, )
/* clang-format on */

/* ---- texts ---- */

#define TYPE_INT "bigint"
#define TYPE_SECRET "bytes"
#define TYPE_BYTES "bytes"
#define TYPE_CHARS "text"
#define TYPE_TEXT "text"
#define TYPE_OWNED "text"
#define TYPE_SEATS "text"
#define TYPE_AREAS "text"
#define TYPE_PRICES "text"
#define TYPE_WISH "text"
#define TYPE_CHANNELS "text"
#define TYPE_TYPES "text"

#define COLUMN_NAME(t, column, kind, field) #column
#define COLUMN_OF(t, column, kind, field) #t "." #column
#define COLUMN_OF_ROW(t, column, kind, field) "r." #column
#define COLUMN_TYPED(t, column, kind, field) #column " " TYPE_##kind
#define COLUMN_SET(t, column, kind, field) #column " = r." #column

/* h.hold, h.secret ... */
#define HOLD_SELECTED HOLD_COLUMNS(COLUMN_OF, ", ")
#define WAIT_SELECTED WAIT_COLUMNS(COLUMN_OF, ", ")
#define BOOKING_OWN BOOKING_COLUMNS(COLUMN_OF, ", ")
#define PAYMENT_SELECTED PAYMENT_COLUMNS(COLUMN_OF, ", ")
#define REFUND_SELECTED REFUND_COLUMNS(COLUMN_OF, ", ")
#define JOB_SELECTED JOB_COLUMNS(COLUMN_OF, ", ")
#define EVENT_SELECTED EVENT_COLUMNS(COLUMN_OF, ", ")
#define LOG_SELECTED LOG_COLUMNS(COLUMN_OF, ", ")
/* hold bigint, secret bytes ... */
#define HOLD_TYPED HOLD_COLUMNS(COLUMN_TYPED, ", ")
#define HOLD_PLAIN_TYPED HOLD_PLAIN(COLUMN_TYPED, ", ")
#define WAIT_TYPED WAIT_COLUMNS(COLUMN_TYPED, ", ")
#define BOOKING_TYPED BOOKING_COLUMNS(COLUMN_TYPED, ", ")
#define PAYMENT_TYPED PAYMENT_COLUMNS(COLUMN_TYPED, ", ")
#define PAYMENT_CHANGES_TYPED PAYMENT_CHANGES(COLUMN_TYPED, ", ")
#define REFUND_TYPED REFUND_COLUMNS(COLUMN_TYPED, ", ")
#define REFUND_CHANGES_TYPED REFUND_CHANGES(COLUMN_TYPED, ", ")
#define JOB_TYPED JOB_COLUMNS(COLUMN_TYPED, ", ")
#define JOB_CHANGES_TYPED JOB_CHANGES(COLUMN_TYPED, ", ")
#define EVENT_TYPED EVENT_COLUMNS(COLUMN_TYPED, ", ")
#define TERMS_TYPED EVENT_TERMS(COLUMN_TYPED, ", ")
#define LOG_TYPED LOG_COLUMNS(COLUMN_TYPED, ", ")
/* status = r.status, intent = r.intent ... */
#define PAYMENT_CHANGES_SET PAYMENT_CHANGES(COLUMN_SET, ", ")
#define REFUND_CHANGES_SET REFUND_CHANGES(COLUMN_SET, ", ")
#define JOB_CHANGES_SET JOB_CHANGES(COLUMN_SET, ", ")
#define TERMS_SET EVENT_TERMS(COLUMN_SET, ", ")
#define BOOKING_NAMES BOOKING_COLUMNS(COLUMN_NAME, ", ")
#define HOLD_PLAIN_NAMES HOLD_PLAIN(COLUMN_NAME, ", ")
/* r.hold, r.secret ... */
#define HOLD_PLAIN_OF_ROW HOLD_PLAIN(COLUMN_OF_ROW, ", ")

/* ---- rows ---- */

/* AT_h_status is the place of the column in HOLD_SELECTED. */
#define COLUMN_AT(t, column, kind, field) AT_##t##_##column,
enum { HOLD_COLUMNS(COLUMN_AT, ) HOLD_COLUMNS_N };
/* clang-format off */
enum { BOOKING_COLUMNS(COLUMN_AT, ) BOOKING_COLUMNS_N,
       /* what BOOKING_SELECTED goes on with */
       AT_b_hold_secret = BOOKING_COLUMNS_N, AT_b_seats, AT_b_areas, AT_b_prices, AT_b_owner,
       AT_b_expires_at, AT_b_merged, BOOKING_SELECTED_N };
/* clang-format on */
enum { WAIT_COLUMNS(COLUMN_AT, ) WAIT_COLUMNS_N };
enum { PAYMENT_COLUMNS(COLUMN_AT, ) PAYMENT_COLUMNS_N };
enum { REFUND_COLUMNS(COLUMN_AT, ) REFUND_COLUMNS_N };
enum { JOB_COLUMNS(COLUMN_AT, ) JOB_COLUMNS_N };
enum { EVENT_COLUMNS(COLUMN_AT, ) EVENT_COLUMNS_N };
enum { LOG_COLUMNS(COLUMN_AT, ) LOG_COLUMNS_N };

/* Appends the columns of `row` to the arguments of the ledger `l`. */
#define BIND(columns)                                                                              \
    do {                                                                                           \
        columns(COLUMN_BIND, )                                                                     \
    } while (0)
#define COLUMN_BIND(t, column, kind, field) BIND_##kind(field)
#define BIND_INT(field) ledger_arg_int(l, (int64_t)row->field);
#define BIND_SECRET(field) ledger_arg(l, db_bytes(row->field, sizeof row->field));
#define BIND_BYTES(field) BIND_SECRET(field)
#define BIND_CHARS(field) ledger_arg(l, chars_arg(row->field));
#define BIND_TEXT(field) ledger_arg(l, db_text(row->field, row->field##_len));
#define BIND_OWNED(field) ledger_arg(l, text_arg(row->field));

/* Fills in `row` from the current row of `stmt`. */
#define READ(columns)                                                                              \
    do {                                                                                           \
        columns(COLUMN_READ, )                                                                     \
    } while (0)
#define COLUMN_READ(t, column, kind, field) READ_##kind(AT_##t##_##column, field)
#define READ_INT(at, field) row->field = (__typeof__(row->field))db_column_int(stmt, at);
#define READ_SECRET(at, field) column_secret(stmt, at, row->field);
#define READ_BYTES(at, field) column_bytes(stmt, at, row->field, sizeof row->field);
/* Texts are copied to the room behind `next`, which has TEXTS_LEN(columns) bytes. */
#define READ_TEXT(at, field) row->field = column_keep(stmt, at, &next, &row->field##_len);
#define TEXTS_LEN(columns) (columns(COLUMN_ROOM, ))
#define COLUMN_ROOM(t, column, kind, field)                                                        \
    +(strcmp(#kind, "TEXT") == 0 ? column_len(stmt, AT_##t##_##column) + 1 : 0)
#define READ_CHARS(at, field) column_text(stmt, at, row->field, sizeof row->field);

#endif
