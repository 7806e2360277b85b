/* The ledger's SQL: every statement is named once, in the list below.  Both databases get the same
 * text; src/db/db.h explains the words in braces.  verify_statements.h has those of `verify`.
 * Internal to src/ledger.
 *
 * Every write carries its condition: the status, hold and fence that the rules saw (I5).  The rows
 * it changes are counted, and a count that differs rolls the batch back.
 *
 * A row of seats is inserted or deleted and never changed; seat_row_status says which seats have
 * one.
 *
 * `status + 0` in HOLDS_SINCE keeps the planner from the index of active holds, which is the wrong
 * one for a range of keys; `kind + 0` in NOTICES_DUE from looking through all notifications that are
 * owed for those of each booking. */
#ifndef HF_LEDGER_STATEMENTS_H
#define HF_LEDGER_STATEMENTS_H

#include "ledger/columns.h"

/* What booking_from_row reads: a booking, what it shows of its hold, and the other holds that were
 * booked with that one. */
#define BOOKING_SELECTED                                                                           \
    BOOKING_OWN                                                                                    \
    ", h.secret, h.seats, h.areas, h.prices, h.owner, h.expires_at,"                               \
    " (SELECT {joined}(CAST(m.hold AS text) || ':' || {hex(m.secret)}, ',') FROM holds m"          \
    " WHERE m.booked_with = b.booking)"
/* What wait_from_row reads: an entry of the waiting list, and the hold that it was offered. */
#define WAIT_OFFERED WAIT_SELECTED ", h.hold, h.secret, h.expires_at"
#define WAITS_FROM " FROM waitlist w LEFT JOIN holds h ON h.hold = w.hold"
/* An entry of the log about a hold, or (r.waits) about a wait that names the hold. */
#define LOG_OF_HOLD                                                                                \
    "log.entry = r.entry AND log.hold = r.hold"                                                    \
    " AND CASE WHEN log.object = 7 THEN 1 ELSE 0 END = r.waits"
/* What a job has to know of its payment. */
#define JOB_PAYMENT_COLUMNS                                                                        \
    "p.secret, p.intent, p.currency, p.status, p.captures_by_hand, b.email, b.created_at,"         \
    " h.expires_at, p.payment"

#define LEDGER_STATEMENTS(X)                                                                       \
    X(CLOCK_LOCK, "SELECT c.event, c.seq, c.fence, c.now FROM event_clock c"                       \
                  "{, rows(event bigint)} WHERE c.event = r.event ORDER BY c.event{lock}")         \
    X(CLOCK_READ, "SELECT c.event, c.seq, c.fence, c.now FROM event_clock c"                       \
                  "{, rows(event bigint)} WHERE c.event = r.event")                                \
    X(CLOCK_ASSUME,                                                                                \
      "SELECT c.event FROM event_clock c"                                                          \
      "{, rows(event bigint, seq bigint, fence bigint, now bigint)} WHERE c.event = r.event"       \
      " AND c.seq = r.seq AND c.fence = r.fence AND c.now <= r.now"                                \
      " ORDER BY c.event{lock_idle}{or_conflict}")                                                 \
    X(NOW, "SELECT {now}")                                                                         \
    X(NOW_ASSUME, "SELECT 1 WHERE {now} >= r.now AND {now} <= r.now + r.late{or_conflict}"         \
                  "{args(now bigint, late bigint)}")                                               \
    X(CLOCK_WRITE, "UPDATE event_clock SET seq = r.seq, fence = r.fence, now = r.now"              \
                   "{ FROM rows(event bigint, seq_before bigint, fence_before bigint, seq bigint," \
                   " fence bigint, now bigint)}"                                                   \
                   " WHERE event_clock.event = r.event AND event_clock.seq = r.seq_before"         \
                   " AND event_clock.fence = r.fence_before AND event_clock.now <= r.now")         \
    X(FENCE_SKIP, "UPDATE event_clock SET fence = fence + 1{ FROM rows(event bigint)}"             \
                  " WHERE event_clock.event = r.event")                                            \
    X(CLOCK_INSERT, "INSERT INTO event_clock (event, seq, fence, now)"                             \
                    " VALUES (r.event, 1, 0, r.now){args(event bigint, now bigint)}")              \
    X(CLOCK_MAX, "SELECT COALESCE(MAX(now), 0) FROM event_clock")                                  \
    X(CLOCK_TOUCH,                                                                                 \
      "UPDATE event_clock SET now = CASE WHEN now < r.now THEN r.now ELSE now + 1 END"             \
      " WHERE event = 0{args(now bigint)}")                                                        \
    X(SEAT_DELETE, "DELETE FROM seats"                                                             \
                   "{ USING rows(seat bigint, status bigint, hold bigint)}"                        \
                   " WHERE seats.seat = r.seat AND seats.status = r.status"                        \
                   " AND seats.hold = r.hold")                                                     \
    X(SEAT_INSERT,                                                                                 \
      "INSERT INTO seats {values(seat bigint, status bigint, hold bigint, fence bigint,"           \
      " channel bigint)} {or_surprise}")                                                           \
    X(SEATS_READ,                                                                                  \
      "SELECT seat, status, hold, channel FROM seats WHERE seat >= r.first AND seat <= r.last"     \
      " ORDER BY seat{slow}{args(first bigint, last bigint)}")                                     \
    X(HEADS_WRITE, "INSERT INTO seat_heads {values(chunk bigint, seq bigint, heads bytes)}"        \
                   " ON CONFLICT (chunk) DO UPDATE SET seq = excluded.seq, heads = excluded.heads" \
                   " WHERE seat_heads.seq <= excluded.seq")                                        \
    X(HEADS_READ, "SELECT chunk, seq, heads FROM seat_heads"                                       \
                  " WHERE chunk >= r.first AND chunk <= r.last{slow}"                              \
                  "{args(first bigint, last bigint)}")                                             \
    X(HOLD_INSERT, "INSERT INTO holds {values(" HOLD_TYPED ")} {or_surprise}")                     \
    X(HOLD_OFFER, /* to an entry of the waiting list */                                            \
      "INSERT INTO holds (" HOLD_PLAIN_NAMES ", owner, metadata) SELECT " HOLD_PLAIN_OF_ROW        \
      ", w.owner, w.metadata FROM waitlist w{, rows(" HOLD_PLAIN_TYPED ", wait bigint)}"           \
      " WHERE w.entry = r.wait {or_surprise}")                                                     \
    X(HOLD_WRITE,                                                                                  \
      "UPDATE holds SET status = r.after, fence = r.fence, expires_at = r.expires_at,"             \
      " last_seq = r.last_seq"                                                                     \
      "{ FROM rows(hold bigint, before bigint, fence_before bigint, after bigint, fence bigint,"   \
      " expires_at bigint, last_seq bigint)}"                                                      \
      " WHERE holds.hold = r.hold AND holds.status = r.before AND holds.fence = r.fence_before")   \
    X(HOLD_PLACES, /* 4: it is sold in the same batch */                                           \
      "UPDATE holds SET amount = r.amount, seats = r.seats, areas = r.areas, prices = r.prices"    \
      "{ FROM rows(hold bigint, fence bigint, amount bigint, seats text, areas text,"              \
      " prices text)}"                                                                             \
      " WHERE holds.hold = r.hold AND holds.fence = r.fence AND holds.status IN (1, 4)")           \
    X(HOLD_MERGE, "UPDATE holds SET booked_with = r.carrier"                                       \
                  "{ FROM rows(hold bigint, carrier_before bigint, carrier bigint)}"               \
                  " WHERE holds.hold = r.hold AND holds.status = 3"                                \
                  " AND COALESCE(holds.booked_with, 0) = r.carrier_before")                        \
    X(HOLD_READ, /* k: its carrier, whose booking is its own */                                    \
      "SELECT " HOLD_SELECTED                                                                      \
      ", r.i, b.status, b.secret, k.hold, k.secret, k.status, k.expires_at"                        \
      " FROM holds h LEFT JOIN holds k ON k.hold = h.booked_with"                                  \
      " LEFT JOIN bookings b ON b.booking = COALESCE(h.booked_with, h.hold)"                       \
      "{, rows(i bigint, hold bigint)} WHERE h.hold = r.hold")                                     \
    X(HOLDS_SINCE, "SELECT " HOLD_SELECTED " FROM holds h"                                         \
                   "{, rows(after bigint, last bigint)}"                                           \
                   " WHERE h.hold > r.after AND h.hold <= r.last AND h.status + 0 IN (1, 4)")      \
    X(HOLDS_LIST, /* k: as above; a hold is what its carrier is */                                 \
      "SELECT h.hold FROM holds h LEFT JOIN holds k ON k.hold = h.booked_with"                     \
      " WHERE h.hold > r.first AND h.hold < r.before AND (r.status = 0 OR r.status ="              \
      " CASE WHEN COALESCE(k.status, h.status) = 1"                                                \
      " AND COALESCE(k.expires_at, h.expires_at) <= r.now THEN 2"                                  \
      " ELSE COALESCE(k.status, h.status) END)"                                                    \
      " AND (r.owner IS NULL OR h.owner = r.owner) ORDER BY h.hold DESC LIMIT r.n"                 \
      "{args(first bigint, before bigint, status bigint, now bigint, owner text, n bigint)}")      \
    X(HOLDS_ACTIVE, /* what the view keeps of a hold */                                            \
      "SELECT hold, fence, expires_at, max_expires_at, client, last_seq, seats, areas, channel,"   \
      " owner FROM holds"                                                                          \
      " WHERE status = 1 AND event = r.event ORDER BY expires_at{slow}{args(event bigint)}")       \
    X(HOLDS_LIVE, "SELECT " HOLD_SELECTED " FROM holds h"                                          \
                  " WHERE h.status = 1 AND h.expires_at > r.now{args(now bigint)}")                \
    X(HOLDS_COUNT, "SELECT COUNT(*) FROM holds WHERE status = 1 AND event = r.event"               \
                   "{args(event bigint)}")                                                         \
    /* One hold of each event, by two steps in the index for each event that has live holds. */    \
    X(HOLDS_DUE,                                                                                   \
      "WITH RECURSIVE live(event) AS (SELECT MIN(event) FROM holds WHERE status = 1 UNION ALL"     \
      " SELECT (SELECT MIN(h.event) FROM holds h WHERE h.status = 1 AND h.event > live.event)"     \
      " FROM live WHERE live.event IS NOT NULL),"                                                  \
      " due(hold) AS (SELECT (SELECT h.hold FROM holds h WHERE h.status = 1"                       \
      " AND h.event = live.event AND h.expires_at <= r.now ORDER BY h.expires_at LIMIT 1)"         \
      " FROM live WHERE live.event IS NOT NULL)"                                                   \
      " SELECT hold FROM due WHERE hold IS NOT NULL LIMIT r.n{args(now bigint, n bigint)}")        \
    X(WAIT_INSERT, "INSERT INTO waitlist {values(" WAIT_TYPED ")} {or_surprise}")                  \
    X(WAIT_WRITE,                                                                                  \
      "UPDATE waitlist SET status = r.after, rank = r.rank, last_seq = r.last_seq, hold = r.hold," \
      " read_at = r.read_at, reason = r.reason, ended_at = r.ended_at"                             \
      "{ FROM rows(entry bigint, before bigint, rank_before bigint, seq_before bigint,"            \
      " after bigint, rank bigint, last_seq bigint, hold bigint, read_at bigint, reason bigint,"   \
      " ended_at bigint)}"                                                                         \
      " WHERE waitlist.entry = r.entry AND waitlist.status = r.before"                             \
      " AND waitlist.rank = r.rank_before AND waitlist.last_seq = r.seq_before")                   \
    X(WAIT_READ, "SELECT " WAIT_OFFERED ", r.i" WAITS_FROM                                         \
                 "{, rows(i bigint, entry bigint)} WHERE w.entry = r.entry")                       \
    X(WAIT_AHEAD, "SELECT COUNT(*) FROM waitlist WHERE ended_at = 0 AND status = 1"                \
                  " AND event = r.event AND rank < r.rank{args(event bigint, rank bigint)}")       \
    X(WAIT_NEWEST, "SELECT number FROM waitlist WHERE entry > r.first AND entry < r.last"          \
                   " ORDER BY entry DESC LIMIT 1{args(first bigint, last bigint)}")                \
    X(WAITS_SINCE, "SELECT " WAIT_OFFERED WAITS_FROM "{, rows(after bigint, last bigint)}"         \
                   " WHERE w.entry > r.after AND w.entry <= r.last AND w.status + 0 IN (1, 2)")    \
    X(WAITS_LIVE, /* what the view keeps of an entry */                                            \
      "SELECT entry, number, rank, status, created_at, read_at, until, last_seq, hold, client,"    \
      " owner, wish FROM waitlist WHERE ended_at = 0 AND status IN (1, 2) AND event = r.event"     \
      " ORDER BY number{slow}{args(event bigint)}")                                                \
    X(WAITS_LIST, /* of all events, or of the one whose keys are between first and before */       \
      "SELECT " WAIT_OFFERED WAITS_FROM " WHERE w.entry > r.first AND w.entry < r.before"          \
      " AND (r.status = 0 OR w.status = r.status) ORDER BY w.entry DESC LIMIT r.n"                 \
      "{args(first bigint, before bigint, status bigint, n bigint)}")                              \
    X(WAITS_FIND, /* the same by the index of owners */                                            \
      "SELECT " WAIT_OFFERED WAITS_FROM " WHERE w.owner = r.owner AND w.entry > r.first"           \
      " AND w.entry < r.before AND (r.status = 0 OR w.status = r.status)"                          \
      " ORDER BY w.entry DESC LIMIT r.n"                                                           \
      "{args(owner text, first bigint, before bigint, status bigint, n bigint)}")                  \
    X(WAITED_FOR, /* one step in the index for each event */                                       \
      "WITH RECURSIVE live(event) AS (SELECT MIN(event) FROM waitlist WHERE ended_at = 0"          \
      " AND status = 1 AND event > r.after UNION ALL SELECT (SELECT MIN(w.event) FROM waitlist w"  \
      " WHERE w.ended_at = 0 AND w.status = 1 AND w.event > live.event) FROM live"                 \
      " WHERE live.event IS NOT NULL) SELECT event FROM live WHERE event IS NOT NULL LIMIT r.n"    \
      "{args(after bigint, n bigint)}")                                                            \
    X(BOOKING_INSERT, "INSERT INTO bookings {values(" BOOKING_TYPED ")} {or_surprise}")            \
    X(BOOKING_WRITE,                                                                               \
      "UPDATE bookings SET status = r.after, cancelled_at = r.cancelled_at, reason = r.reason,"    \
      " fence = CASE WHEN r.fence = 0 THEN bookings.fence ELSE r.fence END"                        \
      "{ FROM rows(booking bigint, before bigint, after bigint, cancelled_at bigint,"              \
      " reason text, fence bigint)}"                                                               \
      " WHERE bookings.booking = r.booking AND bookings.status = r.before")                        \
    X(BOOKING_PAST, /* of a failed booking, before another takes its place */                      \
      "INSERT INTO bookings_past (" BOOKING_NAMES ") SELECT " BOOKING_OWN                          \
      " FROM bookings b{, rows(booking bigint)} WHERE b.booking = r.booking AND b.status = 3")     \
    X(BOOKING_DELETE, "DELETE FROM bookings{ USING rows(booking bigint)}"                          \
                      " WHERE bookings.booking = r.booking AND bookings.status = 3")               \
    X(BOOKINGS_PAST_READ,                                                                          \
      "SELECT " BOOKING_SELECTED " FROM bookings_past b JOIN holds h ON h.hold = b.booking"        \
      " WHERE b.booking = r.booking{args(booking bigint)}")                                        \
    X(BOOKINGS_PENDING, "SELECT booking, payment FROM bookings WHERE status = 1"                   \
                        " AND booking > r.first AND booking < r.last"                              \
                        "{args(first bigint, last bigint)}")                                       \
    X(BOOKINGS_LIVE, /* of a cancelled event: bookings that are not cancelled yet */               \
      "SELECT b.booking, b.secret FROM bookings b WHERE b.booking > r.first"                       \
      " AND b.booking < r.last AND b.status IN (1, 2) ORDER BY b.booking LIMIT r.n"                \
      "{args(first bigint, last bigint, n bigint)}")                                               \
    X(PAYMENT_INSERT, "INSERT INTO payments {values(" PAYMENT_TYPED ")} {or_surprise}")            \
    X(PAYMENT_WRITE,                                                                               \
      "UPDATE payments SET " PAYMENT_CHANGES_SET                                                   \
      "{ FROM rows(booking bigint, payment bigint, before bigint, " PAYMENT_CHANGES_TYPED ")}"     \
      " WHERE payments.booking = r.booking AND payments.payment = r.payment"                       \
      " AND payments.status = r.before")                                                           \
    X(PAYMENTS_READ, "SELECT " PAYMENT_SELECTED ", r.i FROM payments p"                            \
                     "{, rows(i bigint, booking bigint)} WHERE p.booking = r.booking")             \
    X(PAYMENT_FIND, "SELECT p.booking, p.payment, p.secret FROM payments p"                        \
                    " WHERE p.intent = r.intent{args(intent text)}")                               \
    X(REFUND_INSERT, "INSERT INTO refunds {values(" REFUND_TYPED ")} {or_surprise}")               \
    X(REFUND_WRITE,                                                                                \
      "UPDATE refunds SET " REFUND_CHANGES_SET                                                     \
      "{ FROM rows(booking bigint, refund bigint, before bigint, " REFUND_CHANGES_TYPED ")}"       \
      " WHERE refunds.booking = r.booking AND refunds.refund = r.refund"                           \
      " AND refunds.status = r.before")                                                            \
    X(REFUND_DELETE, "DELETE FROM refunds{ USING rows(booking bigint, refund bigint)}"             \
                     " WHERE refunds.booking = r.booking AND refunds.refund = r.refund"            \
                     " AND refunds.status = 1")                                                    \
    X(REFUNDS_READ, "SELECT " REFUND_SELECTED ", r.i FROM refunds f"                               \
                    "{, rows(i bigint, booking bigint)} WHERE f.booking = r.booking")              \
    X(REFUNDS_LIST, /* x: the booking, if another has followed on it */                            \
      "SELECT " REFUND_SELECTED ", COALESCE(x.secret, b.secret), COALESCE(x.number, b.number),"    \
      " p.secret, p.currency, j.attempts, j.due_at,"                                               \
      " j.error FROM refunds f JOIN bookings b ON b.booking = f.booking"                           \
      " JOIN payments p ON p.booking = f.booking AND p.payment = f.payment"                        \
      " LEFT JOIN bookings_past x ON x.booking = f.booking AND x.payment = f.payment"              \
      " LEFT JOIN jobs j ON j.booking = f.booking AND j.job = f.refund"                            \
      " WHERE f.refund < r.before AND (r.status = 0 OR f.status = r.status)"                       \
      " ORDER BY f.refund DESC LIMIT r.n{args(before bigint, status bigint, n bigint)}")           \
    X(JOB_PUT, /* keeps the lease of a job that it replaces, which may be under way */             \
      "INSERT INTO jobs {values(" JOB_TYPED ")} ON CONFLICT (booking, job) DO UPDATE SET"          \
      " kind = excluded.kind, status = excluded.status, amount = excluded.amount,"                 \
      " key = excluded.key, key_used_at = 0, attempts = 0, checks_first = excluded.checks_first,"  \
      " created_at = excluded.created_at, due_at = excluded.due_at, error = NULL,"                 \
      " leased_until = CASE WHEN excluded.leased_until < 0 THEN 0 ELSE jobs.leased_until END")     \
    X(JOB_WRITE, "UPDATE jobs SET leased_until = 0, " JOB_CHANGES_SET                              \
                 "{ FROM rows(booking bigint, job bigint, " JOB_CHANGES_TYPED ")}"                 \
                 " WHERE jobs.booking = r.booking AND jobs.job = r.job")                           \
    X(JOB_DELETE, "DELETE FROM jobs{ USING rows(booking bigint, job bigint)}"                      \
                  " WHERE jobs.booking = r.booking AND jobs.job = r.job")                          \
    X(JOBS_READ, "SELECT " JOB_SELECTED ", r.i FROM jobs j"                                        \
                 "{, rows(i bigint, booking bigint)} WHERE j.booking = r.booking"                  \
                 " AND j.status = 1")                                                              \
    X(JOBS_DUE, /* of each payment at most the first; calls to the provider */                     \
      "SELECT " JOB_SELECTED ", " JOB_PAYMENT_COLUMNS " FROM jobs j"                               \
      " JOIN payments p ON p.booking = j.booking AND p.payment = j.payment"                        \
      " JOIN bookings b ON b.booking = j.booking JOIN holds h ON h.hold = j.booking"               \
      " WHERE j.status = 1 AND j.kind < 6 AND j.due_at <= r.now AND j.leased_until <= r.now"       \
      " AND NOT EXISTS (SELECT 1 FROM jobs o WHERE o.booking = j.booking AND o.status = 1"         \
      " AND o.payment = j.payment AND o.kind < 6 AND o.job <> j.job AND (o.leased_until > r.now"   \
      " OR (o.due_at <= r.now AND (o.kind < j.kind OR (o.kind = j.kind AND o.job < j.job)))))"     \
      " ORDER BY j.kind, j.due_at LIMIT r.n{args(now bigint, n bigint)}")                          \
    X(NOTICES_DUE, /* of each booking, or entry of a waiting list, the first */                    \
      "SELECT " JOB_SELECTED ", " JOB_PAYMENT_COLUMNS " FROM jobs j"                               \
      " LEFT JOIN holds h ON h.hold = j.booking LEFT JOIN bookings b ON b.booking = j.booking"     \
      " LEFT JOIN payments p ON p.booking = j.booking AND p.payment = j.payment"                   \
      " WHERE j.status = 1 AND j.kind + 0 = 6 AND j.due_at <= r.now AND j.leased_until <= r.now"   \
      " AND NOT EXISTS (SELECT 1 FROM jobs o WHERE o.booking = j.booking AND o.status + 0 = 1"     \
      " AND o.kind + 0 = 6 AND o.job < j.job)"                                                     \
      " ORDER BY j.due_at LIMIT r.n{args(now bigint, n bigint)}")                                  \
    X(POLLS_DUE, /* r.quiet: those that nothing was heard of since then, too */                    \
      "SELECT p.booking, p.payment, p.amount, p.poll_at, p.created_at, " JOB_PAYMENT_COLUMNS       \
      " FROM payments p"                                                                           \
      " JOIN bookings b ON b.booking = p.booking JOIN holds h ON h.hold = p.booking"               \
      " WHERE p.poll_at > 0 AND p.intent IS NOT NULL"                                              \
      " AND (p.poll_at <= r.now OR (p.updated_at <= r.quiet AND p.poll_at <= r.now + 3600000))"    \
      " AND NOT EXISTS (SELECT 1 FROM jobs o WHERE o.booking = p.booking AND o.status = 1"         \
      " AND o.payment = p.payment AND o.kind < 6)"                                                 \
      " ORDER BY p.poll_at LIMIT r.n{args(now bigint, quiet bigint, n bigint)}")                   \
    X(JOB_LEASE, "UPDATE jobs SET leased_until = r.until"                                          \
                 "{ FROM rows(booking bigint, job bigint, before bigint, until bigint)}"           \
                 " WHERE jobs.booking = r.booking AND jobs.job = r.job"                            \
                 " AND jobs.leased_until = r.before AND jobs.status = 1"                           \
                 " RETURNING jobs.booking, jobs.job{may_be_lost}")                                 \
    X(POLL_LEASE, "UPDATE payments SET poll_at = r.until, updated_at = r.now"                      \
                  "{ FROM rows(booking bigint, payment bigint, before bigint, until bigint,"       \
                  " now bigint)}"                                                                  \
                  " WHERE payments.booking = r.booking AND payments.payment = r.payment"           \
                  " AND payments.poll_at = r.before"                                               \
                  " RETURNING payments.booking, payments.payment{may_be_lost}")                    \
    X(BUDGET_TAKE, "UPDATE provider_budget SET used = CASE WHEN second = r.second THEN used + r.n" \
                   " ELSE r.n END, second = r.second WHERE budget = 1"                             \
                   " AND (second < r.second OR (second = r.second AND used + r.n <= r.rate))"      \
                   " RETURNING used{args(second bigint, n bigint, rate bigint)}")                  \
    X(BUDGET_LEFT, "SELECT CASE WHEN second < r.second THEN r.rate ELSE r.rate - used END"         \
                   " FROM provider_budget WHERE budget = 1{args(second bigint, rate bigint)}")     \
    X(JOBS_COUNT, "SELECT kind, COUNT(*), MIN(created_at) FROM jobs WHERE status = 1"              \
                  " GROUP BY kind")                                                                \
    X(NOTICES_LIST, /* x: as above */                                                              \
      "SELECT " JOB_SELECTED ", COALESCE(x.secret, b.secret), COALESCE(x.number, b.number)"        \
      " FROM jobs j LEFT JOIN bookings b ON b.booking = j.booking"                                 \
      " LEFT JOIN bookings_past x ON x.booking = j.booking AND x.payment = j.payment"              \
      " WHERE j.kind = 6 AND j.job < r.before AND (r.status = 0 OR j.status = r.status)"           \
      " ORDER BY j.job DESC LIMIT r.n{args(before bigint, status bigint, n bigint)}")              \
    X(WEBHOOK_INSERT,                                                                              \
      "INSERT INTO payment_events {values(id text, type text, booking bigint, payment bigint,"     \
      " intent text, state bigint, created_at bigint, received_at bigint)} {or_surprise}")         \
    X(WEBHOOK_READ, "SELECT r.i FROM payment_events e"                                             \
                    "{, rows(i bigint, id text)} WHERE e.id = r.id")                               \
    X(WEBHOOKS_PRUNE, "DELETE FROM payment_events WHERE received_at < r.before"                    \
                      " AND received_at <= (SELECT COALESCE(MAX(x.received_at), 0) FROM"           \
                      " (SELECT received_at FROM payment_events ORDER BY received_at"              \
                      " LIMIT r.n) x){args(before bigint, n bigint)}")                             \
    X(EVENT_PROGRESS, /* of a cancelled event: bookings by status, and what is owed */             \
      "SELECT (SELECT COUNT(*) FROM bookings WHERE booking > r.first AND booking < r.last"         \
      " AND status IN (1, 2)),"                                                                    \
      " (SELECT COUNT(*) FROM bookings WHERE booking > r.first AND booking < r.last"               \
      " AND status = 4),"                                                                          \
      " (SELECT COUNT(*) FROM refunds WHERE booking > r.first AND booking < r.last"                \
      " AND status IN (1, 2)),"                                                                    \
      " (SELECT COUNT(*) FROM refunds WHERE booking > r.first AND booking < r.last"                \
      " AND status = 3),"                                                                          \
      " (SELECT COUNT(*) FROM refunds WHERE booking > r.first AND booking < r.last"                \
      " AND status = 4){slow}{args(first bigint, last bigint)}")                                   \
    X(EVENT_REVENUE, /* its confirmed bookings, and what of their money goes back */               \
      "SELECT COUNT(*), CAST(COALESCE(SUM(b.amount), 0) AS bigint),"                               \
      " (SELECT CAST(COALESCE(SUM(f.amount), 0) AS bigint) FROM refunds f JOIN bookings x"         \
      " ON x.booking = f.booking AND x.payment = f.payment WHERE f.booking > r.first"              \
      " AND f.booking < r.last AND f.status IN (1, 2, 3) AND x.status = 2)"                        \
      " FROM bookings b WHERE b.booking > r.first AND b.booking < r.last AND b.status = 2"         \
      "{slow}{args(first bigint, last bigint)}")                                                   \
    X(EVENT_REVENUE_TYPES, /* the same, grouped by what each place costs as which type */          \
      "SELECT COUNT(*), CAST(SUM(b.amount) AS bigint),"                                            \
      " (SELECT CAST(COALESCE(SUM(f.amount), 0) AS bigint) FROM refunds f JOIN bookings x"         \
      " ON x.booking = f.booking AND x.payment = f.payment WHERE f.booking > r.first"              \
      " AND f.booking < r.last AND f.status IN (1, 2, 3) AND x.status = 2), h.prices"              \
      " FROM bookings b JOIN holds h ON h.hold = b.booking WHERE b.booking > r.first"              \
      " AND b.booking < r.last AND b.status = 2 GROUP BY h.prices, r.first, r.last"                \
      "{slow}{args(first bigint, last bigint)}")                                                   \
    X(EVENTS_CANCELLED, "SELECT event FROM events WHERE status = 4 AND event < r.before"           \
                        " ORDER BY event DESC LIMIT r.n{args(before bigint, n bigint)}")           \
    X(BOOKING_READ,                                                                                \
      "SELECT " BOOKING_SELECTED ", r.i FROM bookings b JOIN holds h ON h.hold = b.booking"        \
      "{, rows(i bigint, booking bigint)} WHERE b.booking = r.booking")                            \
    X(BOOKINGS_LIST, /* of all events, or of the one whose keys are between first and last */      \
      "SELECT " BOOKING_SELECTED " FROM bookings b JOIN holds h ON h.hold = b.booking"             \
      " WHERE b.booking > r.first AND b.booking < r.before"                                        \
      " AND (r.status = 0 OR b.status = r.status) AND (r.owner IS NULL OR h.owner = r.owner)"      \
      " ORDER BY b.booking DESC LIMIT r.n"                                                         \
      "{args(first bigint, before bigint, status bigint, owner text, n bigint)}")                  \
    X(BOOKINGS_FIND, /* the same by the index of references */                                     \
      "SELECT " BOOKING_SELECTED " FROM bookings b JOIN holds h ON h.hold = b.booking"             \
      " WHERE b.reference = r.reference AND b.booking > r.first AND b.booking < r.before"          \
      " AND (r.status = 0 OR b.status = r.status) AND (r.owner IS NULL OR h.owner = r.owner)"      \
      " ORDER BY b.booking DESC LIMIT r.n"                                                         \
      "{args(reference text, first bigint, before bigint, status bigint, owner text, n bigint)}")  \
    X(OWNERS_BOOKED, /* 6: its money is captured, and it has its places */                         \
      "SELECT h.owner, h.seats, h.areas FROM holds h JOIN bookings b ON b.booking = h.hold"        \
      " LEFT JOIN payments p ON p.booking = b.booking AND p.payment = b.payment"                   \
      " WHERE h.hold > r.first AND h.hold < r.last AND h.status = 4 AND h.owner IS NOT NULL"       \
      " AND (b.status = 2 OR (b.status = 1 AND p.status = 6))"                                     \
      "{slow}{args(first bigint, last bigint)}")                                                   \
    X(SALE_INSERT, "INSERT INTO sold_seats {values(seat bigint, booking bigint)} {or_surprise}")   \
    X(SALE_DELETE, "DELETE FROM sold_seats{ USING rows(seat bigint, booking bigint)}"              \
                   " WHERE sold_seats.seat = r.seat AND sold_seats.booking = r.booking")           \
    X(LOG_INSERT, "INSERT INTO log {values(" LOG_TYPED ", actor text)} {or_surprise}")             \
    X(LOG_READ, /* begins with the entry that has the row `next` */                                \
      "SELECT " LOG_SELECTED ", h.secret, b.secret, a.actor FROM log a"                            \
      " LEFT JOIN holds h ON h.hold = a.hold LEFT JOIN bookings b ON b.booking = a.hold"           \
      " WHERE a.entry >= COALESCE((SELECT MAX(l.entry) FROM log l WHERE l.entry >= r.first"        \
      " AND l.entry <= r.next), r.next) AND a.entry <= r.last ORDER BY a.entry LIMIT r.n"          \
      "{args(first bigint, next bigint, last bigint, n bigint)}")                                  \
    X(LOG_SINCE, "SELECT " LOG_SELECTED " FROM log a{, rows(after bigint, last bigint)}"           \
                 " WHERE a.entry > r.after AND a.entry <= r.last")                                 \
    X(LOG_SEATS, "SELECT entry, object, booking, seats FROM log"                                   \
                 " WHERE entry > r.after AND entry <= r.last AND seats IS NOT NULL"                \
                 " ORDER BY entry{slow}{args(after bigint, last bigint)}")                         \
    X(LOG_PROBE, /* the first entry at or behind r.first */                                        \
      "SELECT a.entry, a.at FROM log a WHERE a.entry >= r.first AND a.entry <= r.last"             \
      " ORDER BY a.entry LIMIT 1{args(first bigint, last bigint)}")                                \
    X(LOG_PAGE, "SELECT " LOG_SELECTED " FROM log a WHERE a.entry > r.after AND a.entry <= r.last" \
                " ORDER BY a.entry LIMIT r.n{args(after bigint, last bigint, n bigint)}")          \
    X(PRUNED_READ, "SELECT pruned_seq, holds_pruned_seq FROM events WHERE event = r.event"         \
                   "{args(event bigint)}")                                                         \
    X(PRUNE_NEXT, /* `whole`: an archived event at rest; else one whose log has an old entry */    \
      "SELECT x.event, x.whole FROM (SELECT e.event, CASE WHEN"                                    \
      " (SELECT CASE WHEN COUNT(*) = 2 THEN MIN(o.at) END FROM (SELECT a.at FROM log a"            \
      " WHERE a.entry > (e.event << 40) + e.holds_pruned_seq"                                      \
      " AND a.entry < ((e.event + 1) << 40) ORDER BY a.entry LIMIT 2) o) <= r.holds_before"        \
      " THEN 1 ELSE 0 END AS some, CASE WHEN e.status = 3 AND e.holds_pruned_seq < c.seq"          \
      " AND c.now <= r.log_before"                                                                 \
      " AND NOT EXISTS (SELECT 1 FROM holds h WHERE h.status = 1 AND h.event = e.event)"           \
      " AND NOT EXISTS (SELECT 1 FROM waitlist w WHERE w.ended_at = 0 AND w.status IN (1, 2)"      \
      " AND w.event = e.event)"                                                                    \
      " AND NOT EXISTS (SELECT 1 FROM bookings b WHERE b.status = 1"                               \
      " AND b.booking > (e.event << 40) AND b.booking < ((e.event + 1) << 40))"                    \
      " AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.status = 1"                                   \
      " AND j.booking > (e.event << 40) AND j.booking < ((e.event + 1) << 40))"                    \
      " AND NOT EXISTS (SELECT 1 FROM refunds f WHERE f.status IN (1, 2)"                          \
      " AND f.refund > (e.event << 40) AND f.refund < ((e.event + 1) << 40))"                      \
      " THEN 1 ELSE 0 END AS whole FROM events e JOIN event_clock c ON c.event = e.event"          \
      " WHERE e.event > r.after AND e.event <= r.last) x"                                          \
      " WHERE x.whole = 1 OR x.some = 1 ORDER BY x.event LIMIT 1"                                  \
      "{args(after bigint, last bigint, log_before bigint, holds_before bigint)}")                 \
    X(PRUNE_STATE, "SELECT e.status, e.pruned_seq, e.holds_pruned_seq, c.seq, c.now FROM events e" \
                   " JOIN event_clock c ON c.event = e.event WHERE e.event = r.event"              \
                   "{args(event bigint)}")                                                         \
    X(LOG_FIRST, "SELECT entry, at, object, after, hold, fence FROM log"                           \
                 " WHERE entry > r.first AND entry < r.last"                                       \
                 " ORDER BY entry LIMIT r.n{args(first bigint, last bigint, n bigint)}")           \
    X(LOG_PRUNE, "DELETE FROM log WHERE entry > r.first AND entry < r.last"                        \
                 "{args(first bigint, last bigint)}")                                              \
    X(LOG_DELETE, "DELETE FROM log{ USING rows(entry bigint, hold bigint, waits bigint)}"          \
                  " WHERE " LOG_OF_HOLD)                                                           \
    X(HOLDS_FINISHED, /* by r.seq, that sold nothing and that no seat's history needs */           \
      "SELECT h.hold FROM holds h{, rows(hold bigint, seq bigint)}"                                \
      " WHERE h.hold = r.hold AND h.last_seq <= r.seq AND h.status IN (2, 3)"                      \
      " AND h.booked_with IS NULL"                                                                 \
      " AND NOT EXISTS (SELECT 1 FROM bookings b WHERE b.booking = h.hold)"                        \
      " AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.booking = h.hold AND j.status = 1)"           \
      " AND (h.channel = 0 OR (h.seats = '[]' AND h.fence = h.hold - (h.event << 40)))")           \
    X(WAITS_FINISHED, /* the same; the last number of the event must stay known */                 \
      "SELECT w.entry FROM waitlist w{, rows(entry bigint, seq bigint)}"                           \
      " WHERE w.entry = r.entry AND w.last_seq <= r.seq AND w.ended_at > 0"                        \
      " AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.booking = w.entry AND j.status = 1)"          \
      " AND w.entry < (SELECT MAX(x.entry) FROM waitlist x"                                        \
      " WHERE x.entry > (w.event << 40) AND x.entry < ((w.event + 1) << 40))")                     \
    X(WAIT_DELETE, "DELETE FROM waitlist{ USING rows(entry bigint)}"                               \
                   " WHERE waitlist.entry = r.entry")                                              \
    X(HOLD_DELETE, "DELETE FROM holds{ USING rows(hold bigint)} WHERE holds.hold = r.hold")        \
    X(NOTICES_DELETE, "DELETE FROM jobs{ USING rows(hold bigint)} WHERE jobs.booking = r.hold"     \
                      " AND jobs.kind = 6 AND jobs.status <> 1")                                   \
    X(PRUNED_WRITE, "UPDATE events SET pruned_seq = r.seq WHERE event = r.event"                   \
                    "{args(event bigint, seq bigint)}")                                            \
    X(HOLDS_AFTER, /* holds and entries of waiting lists, whose keys are of one kind */            \
      "SELECT item FROM (SELECT item FROM (SELECT hold AS item FROM holds"                         \
      " WHERE hold > r.after AND hold < r.last ORDER BY hold LIMIT r.n) held UNION ALL"            \
      " SELECT item FROM (SELECT entry AS item FROM waitlist"                                      \
      " WHERE entry > r.after AND entry < r.last ORDER BY entry LIMIT r.n) waiting) either"        \
      " ORDER BY item LIMIT r.n{args(after bigint, last bigint, n bigint)}")                       \
    X(HOLDS_PRUNE, "DELETE FROM holds WHERE hold > r.after AND hold <= r.last"                     \
                   " AND status IN (2, 3) AND NOT EXISTS"                                          \
                   " (SELECT 1 FROM bookings b WHERE b.booking = holds.hold)"                      \
                   " AND booked_with IS NULL{args(after bigint, last bigint)}")                    \
    X(WAITS_PRUNE, "DELETE FROM waitlist WHERE entry > r.after AND entry <= r.last"                \
                   " AND ended_at > 0{args(after bigint, last bigint)}")                           \
    X(NOTICES_PRUNE, "DELETE FROM jobs WHERE booking > r.after AND booking <= r.last"              \
                     " AND kind = 6 AND status <> 1{args(after bigint, last bigint)}")             \
    X(HEADS_PRUNE, "DELETE FROM seat_heads WHERE chunk >= r.first AND chunk < r.last"              \
                   "{args(first bigint, last bigint)}")                                            \
    X(HOLDS_PRUNED, "UPDATE events SET holds_pruned_seq = r.seq WHERE event = r.event"             \
                    "{args(event bigint, seq bigint)}")                                            \
    X(OWNER_FIND, "SELECT hold FROM holds WHERE hold > r.after AND hold <= r.last"                 \
                  " AND owner = r.owner ORDER BY hold"                                             \
                  "{args(after bigint, last bigint, owner text)}")                                 \
    X(WAITS_OF_OWNER, "SELECT entry FROM waitlist WHERE entry > r.after AND entry <= r.last"       \
                      " AND owner = r.owner ORDER BY entry"                                        \
                      "{args(after bigint, last bigint, owner text)}")                             \
    X(WAIT_ERASE, "UPDATE waitlist SET owner = NULL, metadata = NULL, client = 0"                  \
                  "{ FROM rows(entry bigint)} WHERE waitlist.entry = r.entry")                     \
    X(OWNER_ERASE, "UPDATE holds SET owner = NULL, metadata = NULL, client = 0"                    \
                   "{ FROM rows(hold bigint)} WHERE holds.hold = r.hold")                          \
    X(BUYER_ERASE, "UPDATE bookings SET reference = NULL, reason = NULL, email = NULL"             \
                   "{ FROM rows(booking bigint)} WHERE bookings.booking = r.booking")              \
    X(PAST_ERASE, "UPDATE bookings_past SET reference = NULL, reason = NULL, email = NULL"         \
                  "{ FROM rows(booking bigint)} WHERE bookings_past.booking = r.booking")          \
    X(JOBS_ERASE, /* a call that is repeated without the e-mail would be another call */           \
      "UPDATE jobs SET checks_first = 1"                                                           \
      "{ FROM rows(booking bigint)} WHERE jobs.booking = r.booking AND jobs.kind = 4"              \
      " AND jobs.status = 1")                                                                      \
    X(HOLD_CHAINS, /* every entry of the chains of holds and waits, each found by its key */       \
      "WITH RECURSIVE chain(entry, hold, object, cause, quantity, prev) AS ("                      \
      "SELECT a.entry, a.hold, a.object, a.cause, a.quantity, a.prev"                              \
      " FROM log a{, rows(hold bigint)} WHERE a.entry = ((r.hold >> 40) << 40)"                    \
      " + COALESCE((SELECT h.last_seq FROM holds h WHERE h.hold = r.hold),"                        \
      " (SELECT w.last_seq FROM waitlist w WHERE w.entry = r.hold)) UNION ALL"                     \
      " SELECT a.entry, a.hold, a.object, a.cause, a.quantity, a.prev FROM chain c, log a"         \
      " WHERE c.prev > 0 AND a.entry = ((c.entry >> 40) << 40) + c.prev AND a.entry < c.entry)"    \
      " SELECT entry, hold, object, cause, quantity FROM chain")                                   \
    X(ADDRESS_ERASE, /* ranges of keys would make PostgreSQL read the whole log */                 \
      "UPDATE log SET actor = '" ACTOR_ADDRESS_ERASED "'"                                          \
      "{ FROM rows(entry bigint, hold bigint, waits bigint)} WHERE " LOG_OF_HOLD                   \
      " AND log.actor LIKE '" ACTOR_ADDRESS "%'")                                                  \
    X(JOBS_RESTORE, /* what became of a call after the backup is not known */                      \
      "UPDATE jobs SET leased_until = 0, checks_first = CASE WHEN kind < 6 THEN 1 ELSE 0 END"      \
      " WHERE status = 1")                                                                         \
    X(POLLS_OWED, "SELECT COUNT(*) FROM jobs WHERE kind = 5")                                      \
    X(PAYMENTS_UNPOLLED, /* all but those that are canceled (8), and have no poll job (5) yet */   \
      "SELECT p.booking, p.payment FROM payments p WHERE p.booking >= r.first"                     \
      " AND p.booking < r.last AND p.status <> 8 AND NOT EXISTS (SELECT 1 FROM jobs j"             \
      " WHERE j.booking = p.booking AND j.payment = p.payment AND j.kind = 5)"                     \
      " ORDER BY p.booking, p.payment LIMIT r.n{args(first bigint, last bigint, n bigint)}")       \
    X(KEYS_AFTER, "SELECT hash, hold, body FROM idempotency WHERE hash > r.after"                  \
                  " ORDER BY hash LIMIT r.n{args(after bytes, n bigint)}")                         \
    X(KEY_REWRITE, "UPDATE idempotency SET body = r.body"                                          \
                   "{ FROM rows(hash bytes, body text)} WHERE idempotency.hash = r.hash")          \
    X(KEY_READ, "SELECT r.i, k.request, k.http_status, k.body, k.created_at FROM idempotency k"    \
                "{, rows(i bigint, hash bytes)} WHERE k.hash = r.hash")                            \
    X(KEY_ASSUME, "SELECT 1{ FROM rows(hash bytes, since bigint)} WHERE NOT EXISTS (SELECT 1"      \
                  " FROM idempotency k WHERE k.hash = r.hash AND k.created_at > r.since)"          \
                  "{or_conflict}")                                                                 \
    X(KEY_INSERT,                                                                                  \
      "INSERT INTO idempotency {values(hash bytes, request bytes, http_status bigint, body text,"  \
      " created_at bigint, hold bigint)} ON CONFLICT (hash)"                                       \
      " DO UPDATE SET request = excluded.request, http_status = excluded.http_status,"             \
      " body = excluded.body, created_at = excluded.created_at, hold = excluded.hold"              \
      " WHERE idempotency.created_at <= excluded.created_at - 86400000")                           \
    X(KEYS_EACH, "SELECT hash FROM idempotency WHERE created_at > r.cutoff{args(cutoff bigint)}")  \
    X(KEYS_PRUNE, "DELETE FROM idempotency WHERE hash IN (SELECT hash FROM idempotency"            \
                  " WHERE created_at <= r.cutoff ORDER BY created_at LIMIT r.n)"                   \
                  "{args(cutoff bigint, n bigint)}")                                               \
    X(KEYS_COUNT,                                                                                  \
      "SELECT created_at / 3600000, COUNT(*) FROM idempotency"                                     \
      " WHERE created_at > r.after AND created_at <= r.upto GROUP BY created_at / 3600000{slow}"   \
      "{args(after bigint, upto bigint)}")                                                         \
    X(KEYS_NEWEST, "SELECT COUNT(*), COALESCE(SUM(k.n), 0) FROM (SELECT LENGTH(body) AS n"         \
                   " FROM idempotency ORDER BY created_at DESC LIMIT 200) k")                      \
    X(EVENT_NEXT, "SELECT COALESCE(MAX(event), 0) + 1 FROM events")                                \
    X(EVENT_INSERT, "INSERT INTO events {values(" EVENT_TYPED ")}")                                \
    X(EVENT_READ, "SELECT " EVENT_SELECTED " FROM events e WHERE e.event = r.event"                \
                  "{args(event bigint)}")                                                          \
    X(EVENT_WRITE, "UPDATE events SET status = r.after"                                            \
                   "{ FROM rows(event bigint, before bigint, after bigint)}"                       \
                   " WHERE events.event = r.event AND events.status = r.before")                   \
    X(TERMS_WRITE, "UPDATE events SET " TERMS_SET "{ FROM rows(event bigint, " TERMS_TYPED         \
                   ")} WHERE events.event = r.event")                                              \
    X(SECTION_PRICE, "UPDATE sections SET price = r.price"                                         \
                     "{ FROM rows(event bigint, section bigint, price bigint)}"                    \
                     " WHERE sections.event = r.event AND sections.section = r.section")           \
    X(AREA_PRICE, "UPDATE areas SET price = r.price"                                               \
                  "{ FROM rows(event bigint, area bigint, price bigint)}"                          \
                  " WHERE areas.event = r.event AND areas.area = r.area")                          \
    X(EVENTS_LIST,                                                                                 \
      "SELECT " EVENT_SELECTED ", c.seq FROM events e"                                             \
      " JOIN event_clock c ON c.event = e.event WHERE e.event < r.before AND e.status <> 3"        \
      " ORDER BY e.event DESC LIMIT r.n{args(before bigint, n bigint)}")                           \
    X(EVENTS_DATED, /* what has not begun or is still sold */                                      \
      "SELECT " EVENT_SELECTED ", c.seq FROM (SELECT event AS item, CASE WHEN starts_at > 0"       \
      " THEN starts_at ELSE 253402300800000 END AS start FROM events"                              \
      " WHERE (starts_at > r.now OR sales_close_at > r.now) AND status = 1) AS d"                  \
      " JOIN events e ON e.event = d.item JOIN event_clock c ON c.event = d.item"                  \
      " WHERE d.start > r.start OR (d.start = r.start AND d.item > r.last)"                        \
      " ORDER BY d.start, d.item LIMIT r.n"                                                        \
      "{args(now bigint, start bigint, last bigint, n bigint)}")                                   \
    X(EVENTS_UNDATED,                                                                              \
      "SELECT " EVENT_SELECTED ", c.seq FROM events e"                                             \
      " JOIN event_clock c ON c.event = e.event WHERE e.starts_at = 0 AND e.sales_close_at = 0"    \
      " AND e.status = 1 AND e.event < r.before"                                                   \
      " ORDER BY e.event DESC LIMIT r.n{args(before bigint, n bigint)}")                           \
    X(EVENT_KEYS, "SELECT event FROM events WHERE event < r.before ORDER BY event DESC"            \
                  " LIMIT r.n{args(before bigint, n bigint)}")                                     \
    X(SEATS_COUNT, "SELECT status, COUNT(*) FROM seats WHERE seat >= r.first AND seat <= r.last"   \
                   " GROUP BY status{slow}{args(first bigint, last bigint)}")                      \
    X(SEATS_STORED, "SELECT s.seat FROM seats s{, rows(seat bigint)} WHERE s.seat = r.seat")       \
    X(ROWS_COUNT, "SELECT CAST(COALESCE(SUM(seats), 0) AS bigint) FROM seat_rows"                  \
                  " WHERE event = r.event{args(event bigint)}")                                    \
    X(SECTION_INSERT,                                                                              \
      "INSERT INTO sections {values(event bigint, section bigint, name text, tier text,"           \
      " price bigint, listed bigint, layout text)}")                                               \
    X(SECTIONS_READ, "SELECT name, tier, price, listed, layout FROM sections"                      \
                     " WHERE event = r.event ORDER BY section{args(event bigint)}")                \
    X(SECTION_PRICES_READ, "SELECT price FROM sections WHERE event = r.event"                      \
                           " ORDER BY section{args(event bigint)}")                                \
    X(CATEGORY_INSERT,                                                                             \
      "INSERT INTO categories {values(event bigint, category bigint, name text, price bigint)}")   \
    X(CATEGORIES_READ, "SELECT name, price FROM categories WHERE event = r.event"                  \
                       " ORDER BY category{args(event bigint)}")                                   \
    X(CATEGORY_PRICE, "UPDATE categories SET price = r.price"                                      \
                      "{ FROM rows(event bigint, category bigint, price bigint)}"                  \
                      " WHERE categories.event = r.event AND categories.category = r.category")    \
    X(VENUE_INSERT, "INSERT INTO venues {values(event bigint, part bigint, data bytes)}")          \
    X(VENUE_READ, "SELECT data FROM venues WHERE event = r.event ORDER BY part"                    \
                  "{args(event bigint)}")                                                          \
    X(ROWS_READ, "SELECT section, name, seats FROM seat_rows WHERE event = r.event"                \
                 " ORDER BY section, row_no{args(event bigint)}")                                  \
    X(AREA_INSERT, "INSERT INTO areas (event, area, name, price, capacity, held, booked)"          \
                   " SELECT r.event, r.area, r.name, r.price, r.capacity, 0, 0"                    \
                   "{ FROM rows(event bigint, area bigint, name text, price bigint,"               \
                   " capacity bigint)}")                                                           \
    X(AREA_WRITE,                                                                                  \
      "UPDATE areas SET held = r.held, booked = r.booked, blocks = r.blocks"                       \
      "{ FROM rows(event bigint, area bigint, held_before bigint, booked_before bigint,"           \
      " blocks_before text, held bigint, booked bigint, blocks text)}"                             \
      " WHERE areas.event = r.event AND areas.area = r.area AND areas.held = r.held_before"        \
      " AND areas.booked = r.booked_before AND areas.blocks = r.blocks_before")                    \
    X(AREAS_READ, "SELECT name, price, capacity, held, booked, blocks FROM areas"                  \
                  " WHERE event = r.event"                                                         \
                  " ORDER BY area{args(event bigint)}")

enum statement {
#define STATEMENT_ENUM(name, sql) ST_##name,
    LEDGER_STATEMENTS(STATEMENT_ENUM)
#undef STATEMENT_ENUM
        ST_COUNT
};

#endif
