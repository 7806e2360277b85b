/* The SQL of `holdfast verify`: every statement is named once, in the list below.  Internal to
 * verify.c.  Both databases get the same text; src/db/db.h explains the words in braces.  Each
 * table is read once, in the order of its key, event by event. */
#ifndef HF_LEDGER_VERIFY_STATEMENTS_H
#define HF_LEDGER_VERIFY_STATEMENTS_H

#include "ledger/statements.h"

#define VERIFY_STATEMENTS(X)                                                                       \
    X(VERSION, "SELECT COALESCE(MAX(version), 0) FROM schema_version")                             \
    X(EVENTS, "SELECT c.event, c.seq, c.fence, c.now, CASE WHEN c.event = 0 OR EXISTS"             \
              " (SELECT 1 FROM events e WHERE e.event = c.event) THEN 1 ELSE 0 END"                \
              " FROM event_clock c ORDER BY c.event")                                              \
    X(NO_CLOCK, "SELECT event FROM events WHERE event NOT IN (SELECT event FROM event_clock)"      \
                " ORDER BY event")                                                                 \
    X(SECTIONS, "SELECT section, layout FROM sections WHERE event = r.event"                       \
                " ORDER BY section{args(event bigint)}")                                           \
    X(CATEGORIES, "SELECT category, name, price FROM categories WHERE event = r.event"             \
                  " ORDER BY category{args(event bigint)}")                                        \
    X(VENUES, "SELECT data FROM venues WHERE event = r.event ORDER BY part{args(event bigint)}")   \
    X(COUNT_CATEGORIES, "SELECT COUNT(*) FROM categories")                                         \
    X(COUNT_VENUES, "SELECT COUNT(*) FROM venues")                                                 \
    X(OLD_ROWS, "SELECT CAST(COALESCE(SUM(seats), 0) AS bigint) FROM seat_rows"                    \
                " WHERE event = r.event{args(event bigint)}")                                      \
    X(STATUS, "SELECT status, pruned_seq, channels, holds_pruned_seq, types FROM events"           \
              " WHERE event = r.event{args(event bigint)}")                                        \
    X(AREAS, "SELECT area, capacity, held, booked, blocks FROM areas WHERE event = r.event"        \
             " ORDER BY area{args(event bigint)}")                                                 \
    X(HOLDS,                                                                                       \
      "SELECT h.hold, h.event, h.status, h.fence, h.expires_at, h.seats, COALESCE(b.status, 0),"   \
      " COALESCE(b.fence, 0), COALESCE(b.event, h.event), h.areas, h.last_seq, h.channel,"         \
      " COALESCE(b.cancelled_at, 0), h.amount, h.prices, COALESCE(b.amount, h.amount),"            \
      " COALESCE(b.payment, 0), COALESCE(p.status, 0), COALESCE(p.amount, 0),"                     \
      " COALESCE(h.booked_with, 0)"                                                                \
      " FROM holds h LEFT JOIN bookings b ON b.booking = h.hold"                                   \
      " LEFT JOIN payments p ON p.booking = b.booking AND p.payment = b.payment"                   \
      " WHERE h.hold >= r.first AND h.hold <= r.last ORDER BY h.hold"                              \
      "{slow}{args(first bigint, last bigint)}")                                                   \
    X(WAITS, "SELECT entry, event, number, rank, status, reason, ended_at, read_at, last_seq,"     \
             " hold, wish FROM waitlist WHERE entry >= r.first AND entry <= r.last ORDER BY entry" \
             "{slow}{args(first bigint, last bigint)}")                                            \
    X(BOOKINGS, "SELECT booking FROM bookings WHERE booking >= r.first AND booking <= r.last"      \
                " ORDER BY booking{slow}{args(first bigint, last bigint)}")                        \
    X(PAST, "SELECT b.booking, b.payment, b.status, b.fence, b.cancelled_at, b.event, b.amount,"   \
            " COALESCE(p.amount, 0) FROM bookings_past b"                                          \
            " LEFT JOIN payments p ON p.booking = b.booking AND p.payment = b.payment"             \
            " WHERE b.booking >= r.first AND b.booking <= r.last ORDER BY b.booking, b.payment"    \
            "{slow}{args(first bigint, last bigint)}")                                             \
    X(PAYMENTS, "SELECT booking, payment, status, amount, received, is_wrong FROM payments"        \
                " WHERE booking >= r.first AND booking <= r.last ORDER BY booking, payment"        \
                "{slow}{args(first bigint, last bigint)}")                                         \
    X(REFUNDS, "SELECT booking, refund, payment, amount, status, is_ours FROM refunds"             \
               " WHERE booking >= r.first AND booking <= r.last ORDER BY booking, refund"          \
               "{slow}{args(first bigint, last bigint)}")                                          \
    X(JOBS, "SELECT booking, job, kind, status, payment, amount, refund, notice FROM jobs"         \
            " WHERE booking >= r.first AND booking <= r.last ORDER BY booking, job"                \
            "{slow}{args(first bigint, last bigint)}")                                             \
    X(INTENTS, /* that several payments have */                                                    \
      "SELECT MIN(booking), MAX(booking) FROM payments WHERE intent IS NOT NULL GROUP BY intent"   \
      " HAVING COUNT(*) > 1 ORDER BY MIN(booking){slow}")                                          \
    X(WEBHOOKS, /* about payments that there are not, or parked although there is one */           \
      "SELECT e.booking, e.state FROM payment_events e LEFT JOIN payments p"                       \
      " ON p.booking = e.booking AND p.payment = e.payment"                                        \
      " WHERE e.state <> CASE WHEN p.payment IS NULL THEN 1 ELSE 0 END"                            \
      " ORDER BY e.booking, e.id{slow}")                                                           \
    X(SALES, "SELECT seat, booking FROM sold_seats WHERE seat >= r.first AND seat <= r.last"       \
             " ORDER BY seat{slow}{args(first bigint, last bigint)}")                              \
    X(LOG, "SELECT " LOG_SELECTED ", a.actor FROM log a WHERE a.entry >= r.first"                  \
           " AND a.entry <= r.last ORDER BY a.entry{slow}{args(first bigint, last bigint)}")       \
    X(HEADS, "SELECT chunk, seq, heads FROM seat_heads WHERE chunk >= r.first AND chunk <= r.last" \
             " ORDER BY chunk{slow}{args(first bigint, last bigint)}")                             \
    X(SEATS, "SELECT seat, status, hold, fence, channel FROM seats WHERE seat >= r.first"          \
             " AND seat <= r.last ORDER BY seat{slow}{args(first bigint, last bigint)}")           \
    X(COUNT_AREAS, "SELECT COUNT(*) FROM areas{slow}")                                             \
    X(COUNT_HOLDS, "SELECT COUNT(*) FROM holds{slow}")                                             \
    X(COUNT_WAITS, "SELECT COUNT(*) FROM waitlist{slow}")                                          \
    X(COUNT_BOOKINGS, "SELECT COUNT(*) FROM bookings{slow}")                                       \
    X(COUNT_PAST, "SELECT COUNT(*) FROM bookings_past{slow}")                                      \
    X(COUNT_PAYMENTS, "SELECT COUNT(*) FROM payments{slow}")                                       \
    X(COUNT_REFUNDS, "SELECT COUNT(*) FROM refunds{slow}")                                         \
    X(COUNT_JOBS, "SELECT COUNT(*) FROM jobs{slow}")                                               \
    X(COUNT_WEBHOOKS, "SELECT COUNT(*) FROM payment_events{slow}")                                 \
    X(COUNT_SALES, "SELECT COUNT(*) FROM sold_seats{slow}")                                        \
    X(COUNT_LOG, "SELECT COUNT(*) FROM log{slow}")                                                 \
    X(COUNT_HEADS, "SELECT COUNT(*) FROM seat_heads{slow}")                                        \
    X(COUNT_SEATS, "SELECT COUNT(*) FROM seats{slow}")

enum verify_statement {
#define VERIFY_STATEMENT_ENUM(name, sql) VS_##name,
    VERIFY_STATEMENTS(VERIFY_STATEMENT_ENUM)
#undef VERIFY_STATEMENT_ENUM
        VS_COUNT
};

#endif
