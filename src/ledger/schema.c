/* The schema as migrations: ledger_migrations[n - 1] makes version n.  Never edit a migration that
 * has been released; add another.  Statuses are the integers of rows.h.  There are no foreign keys:
 * the conditions and row counts of every write check the same, and `holdfast verify` proves it. */
#include "ledger/ledger_internal.h"

const char *const ledger_migrations[] = {
    /* 1: events, seats, holds, sales, idempotency keys, the clock and the log */
    "CREATE TABLE events ("
    "  event {key}, secret {bytes} NOT NULL, name text NOT NULL, currency text NOT NULL,"
    "  status bigint NOT NULL, hold_ttl_ms bigint NOT NULL, hold_max_ms bigint NOT NULL,"
    "  max_per_hold bigint NOT NULL, created_at bigint NOT NULL);"

    /* The lock and the counters of each event; event 0 is the catalogue of events. */
    "CREATE TABLE event_clock ("
    "  event {key}, seq bigint NOT NULL, fence bigint NOT NULL, now bigint NOT NULL) {hot};"
    "INSERT INTO event_clock (event, seq, fence, now) VALUES (0, 0, 0, 0);"

    "CREATE TABLE sections ("
    "  event bigint NOT NULL, section bigint NOT NULL, name text NOT NULL, tier text,"
    "  price bigint NOT NULL, listed bigint NOT NULL, PRIMARY KEY (event, section)) {clustered};"
    "CREATE TABLE seat_rows ("
    "  event bigint NOT NULL, section bigint NOT NULL, row_no bigint NOT NULL, name text NOT NULL,"
    "  seats bigint NOT NULL, PRIMARY KEY (event, section, row_no)) {clustered};"
    "CREATE TABLE areas ("
    "  event bigint NOT NULL, area bigint NOT NULL, name text NOT NULL, price bigint NOT NULL,"
    "  capacity bigint NOT NULL, held bigint NOT NULL, booked bigint NOT NULL,"
    "  PRIMARY KEY (event, area), CHECK (held >= 0 AND booked >= 0 AND held + booked <= capacity))"
    "  {clustered};"

    /* seat = event << 32 | index; the index counts through sections and rows as created. */
    "CREATE TABLE seats ("
    "  seat {key}, status bigint NOT NULL, hold bigint NOT NULL, fence bigint NOT NULL,"
    "  expires_at bigint NOT NULL, version bigint NOT NULL) {hot};"

    /* hold = event << 40 | first fence; seats is a JSON array of indexes. */
    "CREATE TABLE holds ("
    "  hold {key}, secret {bytes} NOT NULL, event bigint NOT NULL, status bigint NOT NULL,"
    "  fence bigint NOT NULL, amount bigint NOT NULL, owner text, metadata text,"
    "  seats text NOT NULL, created_at bigint NOT NULL, expires_at bigint NOT NULL,"
    "  max_expires_at bigint NOT NULL);"
    "CREATE INDEX holds_due ON holds (expires_at, event) WHERE status = 1;"

    /* booking = the key of the hold it sells */
    "CREATE TABLE bookings ("
    "  booking {key}, secret {bytes} NOT NULL, event bigint NOT NULL, status bigint NOT NULL,"
    "  fence bigint NOT NULL, amount bigint NOT NULL, reference text, created_at bigint NOT NULL);"
    /* The last line of defence: a seat is sold once (I1). */
    "CREATE TABLE sold_seats (seat {key}, booking bigint NOT NULL);"

    "CREATE TABLE idempotency ("
    "  hash {bytes} NOT NULL PRIMARY KEY, request {bytes} NOT NULL, http_status bigint NOT NULL,"
    "  body text NOT NULL, created_at bigint NOT NULL) {clustered};"
    "CREATE INDEX idempotency_age ON idempotency (created_at);"

    /* audit = event << 40 | seq: one integer, so that an event's log is only appended to */
    "CREATE TABLE audit ("
    "  audit {key}, event bigint NOT NULL, seq bigint NOT NULL, at bigint NOT NULL, object bigint "
    "NOT NULL,"
    "  item bigint, quantity bigint NOT NULL, before bigint NOT NULL, after bigint NOT NULL,"
    "  hold bigint NOT NULL, booking bigint NOT NULL, fence bigint NOT NULL, until bigint NOT NULL,"
    "  cause bigint NOT NULL);",

    /* 2: the area places of a hold, as [area, quantity, area, quantity ...]; the hashed address of
       a buyer without a key */
    ("ALTER TABLE holds ADD COLUMN areas text;"
     "ALTER TABLE holds ADD COLUMN client bigint NOT NULL DEFAULT 0;"),

    /* 3: an event has one row per section, whose rows of seats are a text (see layout.h), and a
       seat gets its row by its first change.  Events made before keep theirs, in seat_rows and
       seats. */
    "ALTER TABLE sections ADD COLUMN layout text;",

    /* 4: a hold is an append.  Only booked and blocked seats have a row; a row of the log is a
       whole transition (see log.h), and rows about a seat or a hold name the row before; the heads
       of the chains of seats are stored chunk by chunk (see rows.h), each row with the seq that it
       is of. */
    ("CREATE TABLE log ("
     "  entry {key}, at bigint NOT NULL, object bigint NOT NULL, cause bigint NOT NULL,"
     "  before bigint NOT NULL, after bigint NOT NULL, quantity bigint NOT NULL,"
     "  hold bigint NOT NULL, booking bigint NOT NULL, fence bigint NOT NULL,"
     "  until bigint NOT NULL, prev bigint NOT NULL, seats text, areas text);"
     "CREATE TABLE seat_heads (chunk {key}, seq bigint NOT NULL, heads {bytes} NOT NULL);"
     "ALTER TABLE holds ADD COLUMN last_seq bigint NOT NULL DEFAULT 0;"
     "INSERT INTO log (entry, at, object, cause, before, after, quantity, hold, booking, fence,"
     "  until, prev, seats, areas)"
     "  SELECT audit, at, CASE WHEN object IN (2, 3) THEN 0 ELSE object END, cause,"
     "  CASE WHEN object IN (2, 3) THEN 0 ELSE before END,"
     "  CASE WHEN object IN (2, 3) THEN 0 ELSE after END,"
     "  CASE WHEN object IN (2, 3) THEN 0 ELSE quantity END, hold, booking, fence, until,"
     "  CASE object WHEN 4 THEN prev ELSE 0 END,"
     "  CASE object WHEN 2 THEN '[' || before || ',' || after || ',' || item || ',' || prev || ']'"
     "  END,"
     "  CASE object WHEN 3 THEN '[' || before || ',' || after || ',' || item || ',' || quantity ||"
     "  ']' END"
     "  FROM (SELECT *, COALESCE(LAG(seq) OVER (PARTITION BY event, object,"
     "    CASE object WHEN 4 THEN hold ELSE item END ORDER BY seq), 0) AS prev FROM audit) rows"
     "  ORDER BY audit;"
     "UPDATE holds SET last_seq = l.seq FROM (SELECT hold, MAX(seq) AS seq FROM audit"
     "  WHERE object = 4 GROUP BY hold) l WHERE l.hold = holds.hold;"
     "DROP TABLE audit;"
     "DELETE FROM seats WHERE status NOT IN (2, 3);"
     "ALTER TABLE seats DROP COLUMN expires_at;"
     "ALTER TABLE seats DROP COLUMN version;"),

    /* 5: an event's terms can be changed, a hold's places too, each with the price that it was held
       at (NULL: all cost the same; []: not known); places are blocked for channels, also those of
       areas (blocks: [channel, places ...]); a booking can be cancelled; a stored answer names the
       hold that it is about; `pruned_seq` is the last seq of an archived event whose entry of the
       log has been deleted; finished holds that sold nothing and had ended up to `holds_pruned_seq`
       have been deleted, with their entries.  Stored answers are no longer clustered: a row of
       SQLite's clustered tables that exceeds a quarter of a page takes another page. */
    ("ALTER TABLE events ADD COLUMN venue text;"
     "ALTER TABLE events ADD COLUMN metadata text;"
     "ALTER TABLE events ADD COLUMN channels text;"
     "ALTER TABLE events ADD COLUMN starts_at bigint NOT NULL DEFAULT 0;"
     "ALTER TABLE events ADD COLUMN sales_open_at bigint NOT NULL DEFAULT 0;"
     "ALTER TABLE events ADD COLUMN sales_close_at bigint NOT NULL DEFAULT 0;"
     "ALTER TABLE events ADD COLUMN max_per_owner bigint NOT NULL DEFAULT 0;"
     "ALTER TABLE events ADD COLUMN pruned_seq bigint NOT NULL DEFAULT 0;"
     "ALTER TABLE events ADD COLUMN holds_pruned_seq bigint NOT NULL DEFAULT 0;"
     "ALTER TABLE areas ADD COLUMN blocks text NOT NULL DEFAULT '[]';"
     "ALTER TABLE seats ADD COLUMN channel bigint NOT NULL DEFAULT 0;"
     "ALTER TABLE holds ADD COLUMN prices text;"
     "UPDATE holds SET prices = '[]' WHERE status = 1;"
     "ALTER TABLE holds ADD COLUMN channel bigint NOT NULL DEFAULT 0;"
     "ALTER TABLE bookings ADD COLUMN cancelled_at bigint NOT NULL DEFAULT 0;"
     "ALTER TABLE bookings ADD COLUMN reason text;"
     "CREATE INDEX bookings_reference ON bookings (reference) WHERE reference IS NOT NULL;"
     "ALTER TABLE log ADD COLUMN channel bigint NOT NULL DEFAULT 0;"
     "ALTER TABLE idempotency RENAME TO idempotency_4;"
     "CREATE TABLE idempotency ("
     "  hash {bytes} NOT NULL, request {bytes} NOT NULL, http_status bigint NOT NULL,"
     "  body text NOT NULL, created_at bigint NOT NULL, hold bigint NOT NULL DEFAULT 0);"
     "INSERT INTO idempotency (hash, request, http_status, body, created_at)"
     "  SELECT hash, request, http_status, body, created_at FROM idempotency_4 ORDER BY created_at;"
     "DROP TABLE idempotency_4;"
     "CREATE UNIQUE INDEX idempotency_pkey ON idempotency (hash);"
     "CREATE INDEX idempotency_age ON idempotency (created_at);"),

    /* 6: bookings are paid.  A booking that failed moves to bookings_past when its hold is booked
       again.  Rows about the money of a booking stand together, by its key.  payment_events are
       webhooks that arrived: state 1 is parked, since its payment is not known.  provider_budget
       has one row: how many requests all servers together have made in one second. */
    ("ALTER TABLE bookings ADD COLUMN payment bigint NOT NULL DEFAULT 0;"
     "ALTER TABLE bookings ADD COLUMN number bigint NOT NULL DEFAULT 0;"
     "ALTER TABLE bookings ADD COLUMN email text;"
     "CREATE INDEX bookings_pending ON bookings (booking) WHERE status = 1;"
     "CREATE TABLE bookings_past ("
     "  booking bigint NOT NULL, payment bigint NOT NULL, secret {bytes} NOT NULL,"
     "  event bigint NOT NULL, status bigint NOT NULL, fence bigint NOT NULL,"
     "  amount bigint NOT NULL, reference text, created_at bigint NOT NULL,"
     "  cancelled_at bigint NOT NULL, reason text, number bigint NOT NULL, email text,"
     "  PRIMARY KEY (booking, payment)) {clustered};"
     "CREATE TABLE payments ("
     "  booking bigint NOT NULL, payment bigint NOT NULL, secret {bytes} NOT NULL,"
     "  status bigint NOT NULL, amount bigint NOT NULL, currency text NOT NULL,"
     "  captures_by_hand bigint NOT NULL, intent text, client_secret text,"
     "  received bigint NOT NULL, is_wrong bigint NOT NULL, disputed bigint NOT NULL,"
     "  error_code text, decline_code text, error_message text, poll_at bigint NOT NULL,"
     "  created_at bigint NOT NULL, updated_at bigint NOT NULL,"
     "  PRIMARY KEY (booking, payment)) {clustered};"
     "CREATE UNIQUE INDEX payments_intent ON payments (intent) WHERE intent IS NOT NULL;"
     "CREATE INDEX payments_poll ON payments (poll_at) WHERE poll_at > 0;"
     "CREATE TABLE refunds ("
     "  booking bigint NOT NULL, refund bigint NOT NULL, payment bigint NOT NULL,"
     "  amount bigint NOT NULL, status bigint NOT NULL, is_ours bigint NOT NULL, provider text,"
     "  error text, created_at bigint NOT NULL, updated_at bigint NOT NULL,"
     "  PRIMARY KEY (booking, refund)) {clustered};"
     "CREATE INDEX refunds_status ON refunds (status, refund);"
     "CREATE TABLE jobs ("
     "  booking bigint NOT NULL, job bigint NOT NULL, kind bigint NOT NULL,"
     "  status bigint NOT NULL, payment bigint NOT NULL, amount bigint NOT NULL,"
     "  refund bigint NOT NULL, notice bigint NOT NULL, key {bytes} NOT NULL,"
     "  key_used_at bigint NOT NULL, attempts bigint NOT NULL, checks_first bigint NOT NULL,"
     "  created_at bigint NOT NULL, due_at bigint NOT NULL, leased_until bigint NOT NULL,"
     "  ended_at bigint NOT NULL, error text, PRIMARY KEY (booking, job)) {clustered};"
     "CREATE INDEX jobs_due ON jobs (due_at) WHERE status = 1;"
     "CREATE INDEX jobs_kind ON jobs (kind, status, job);"
     "CREATE TABLE payment_events ("
     "  id text NOT NULL PRIMARY KEY, type text NOT NULL, booking bigint NOT NULL,"
     "  payment bigint NOT NULL, intent text, state bigint NOT NULL, created_at bigint NOT NULL,"
     "  received_at bigint NOT NULL);"
     "CREATE INDEX payment_events_age ON payment_events (received_at);"
     "CREATE TABLE provider_budget ("
     "  budget {key}, second bigint NOT NULL, used bigint NOT NULL) {hot};"
     "INSERT INTO provider_budget (budget, second, used) VALUES (1, 0, 0);"),

    /* 7: seats have ids, labels, categories and positions of their own.  An event with such seats
       has its prices in `categories`, in place of sections.price, and everything else about them
       packed in `venues` (see model/venue.h), in parts; the layouts of its sections tell only how
       many seats each row has. */
    ("CREATE TABLE categories ("
     "  event bigint NOT NULL, category bigint NOT NULL, name text NOT NULL,"
     "  price bigint NOT NULL, PRIMARY KEY (event, category)) {clustered};"
     "CREATE TABLE venues ("
     "  event bigint NOT NULL, part bigint NOT NULL, data {bytes} NOT NULL,"
     "  PRIMARY KEY (event, part));"),

    /* 8: the log says who made each change (see model/actor.h).  NULL: a version before this one
       wrote the entry, possibly beside a server that had it already */
    "ALTER TABLE log ADD COLUMN actor text;",

    /* 9: several holds are booked together: `booked_with` is the hold that took over the places of
       this one, which is released, and has the booking */
    ("ALTER TABLE holds ADD COLUMN booked_with bigint;"
     "CREATE INDEX holds_booked_with ON holds (booked_with) WHERE booked_with IS NOT NULL;"),

    /* 10: an event's live holds are found without those of all other events */
    ("DROP INDEX holds_due;"
     "CREATE INDEX holds_due ON holds (event, expires_at) WHERE status = 1;"),

    /* 11: events say where and when they are as people there do: offsets from UTC are in minutes.
       Sales close at the start from now on, unless sales_close_at says otherwise; those of events
       that were there already close when they did: never.  Lists in the order of dates find what
       is to come. */
    ("ALTER TABLE events ADD COLUMN venue_address text;"
     "ALTER TABLE events ADD COLUMN timezone text;"
     "ALTER TABLE events ADD COLUMN image text;"
     "ALTER TABLE events ADD COLUMN description text;"
     "ALTER TABLE events ADD COLUMN starts_offset bigint NOT NULL DEFAULT 0;"
     "ALTER TABLE events ADD COLUMN doors_at bigint NOT NULL DEFAULT 0;"
     "ALTER TABLE events ADD COLUMN doors_offset bigint NOT NULL DEFAULT 0;"
     "UPDATE events SET sales_close_at = 253402300799999"
     "  WHERE starts_at > 0 AND sales_close_at = 0;"
     "CREATE INDEX events_starts ON events (starts_at, event);"
     "CREATE INDEX events_sales_close ON events (sales_close_at);"),

    /* 12: events have ticket types (see terms.c), which the prices of holds name (number_list.h)
       and so does the log (log.h), and may refuse choices that leave a single seat */
    ("ALTER TABLE events ADD COLUMN lone_seats bigint NOT NULL DEFAULT 0;"
     "ALTER TABLE events ADD COLUMN types text;"
     "ALTER TABLE log ADD COLUMN types text;"),

    /* 13: events have waiting lists (see model/waitlist.h): the terms are 0 where there is none.  An
       entry's key is the event and a fence, as those of holds are, and a wish is a list of numbers
       (number_list.h).  An entry with ended_at 0 is live. */
    ("ALTER TABLE events ADD COLUMN offer_ttl_ms bigint NOT NULL DEFAULT 0;"
     "ALTER TABLE events ADD COLUMN wait_alive_ms bigint NOT NULL DEFAULT 0;"
     "ALTER TABLE events ADD COLUMN wait_per_owner bigint NOT NULL DEFAULT 0;"
     "ALTER TABLE events ADD COLUMN wait_paused bigint NOT NULL DEFAULT 0;"
     "CREATE TABLE waitlist ("
     "  entry {key}, event bigint NOT NULL, secret {bytes} NOT NULL, number bigint NOT NULL,"
     "  rank bigint NOT NULL, status bigint NOT NULL, reason bigint NOT NULL,"
     "  created_at bigint NOT NULL, ended_at bigint NOT NULL, read_at bigint NOT NULL,"
     "  until bigint NOT NULL, last_seq bigint NOT NULL, hold bigint NOT NULL,"
     "  client bigint NOT NULL, owner text, metadata text, wish text NOT NULL);"
     "CREATE INDEX waitlist_live ON waitlist (status, event, rank) WHERE ended_at = 0;"
     "CREATE INDEX waitlist_owner ON waitlist (owner, entry) WHERE owner IS NOT NULL;"),
};

const int ledger_migrations_len = sizeof ledger_migrations / sizeof *ledger_migrations;

/* What all migrations together make of an empty database, as one script: a new SQLite ledger is
 * made of it.  It is changed with each migration that is added: schema_check.c compares every
 * ledger with it, so none that migrations have made opens if the two differ
 * (tests/server/migrate). */
static const char *const whole =
    "CREATE TABLE events (event {key}, secret {bytes} NOT NULL, name text NOT NULL, "
    "  currency text NOT NULL, status bigint NOT NULL, hold_ttl_ms bigint NOT NULL, "
    "  hold_max_ms bigint NOT NULL, max_per_hold bigint NOT NULL, created_at bigint NOT NULL, "
    "  venue text, metadata text, channels text, starts_at bigint NOT NULL DEFAULT 0, "
    "  sales_open_at bigint NOT NULL DEFAULT 0, sales_close_at bigint NOT NULL DEFAULT 0, "
    "  max_per_owner bigint NOT NULL DEFAULT 0, pruned_seq bigint NOT NULL DEFAULT 0, "
    "  holds_pruned_seq bigint NOT NULL DEFAULT 0, venue_address text, timezone text, "
    "  image text, description text, starts_offset bigint NOT NULL DEFAULT 0, "
    "  doors_at bigint NOT NULL DEFAULT 0, doors_offset bigint NOT NULL DEFAULT 0, "
    "  lone_seats bigint NOT NULL DEFAULT 0, types text, offer_ttl_ms bigint NOT NULL DEFAULT 0, "
    "  wait_alive_ms bigint NOT NULL DEFAULT 0, wait_per_owner bigint NOT NULL DEFAULT 0, "
    "  wait_paused bigint NOT NULL DEFAULT 0);"
    "CREATE TABLE event_clock (event {key}, seq bigint NOT NULL, fence bigint NOT NULL, "
    "  now bigint NOT NULL);"
    "INSERT INTO event_clock (event, seq, fence, now) VALUES (0, 0, 0, 0);"
    "CREATE TABLE sections (event bigint NOT NULL, section bigint NOT NULL, name text NOT NULL, "
    "  tier text, price bigint NOT NULL, listed bigint NOT NULL, layout text, "
    "  PRIMARY KEY (event, section)) {clustered};"
    "CREATE TABLE seat_rows (event bigint NOT NULL, section bigint NOT NULL, "
    "  row_no bigint NOT NULL, name text NOT NULL, seats bigint NOT NULL, PRIMARY KEY (event, "
    "  section, row_no)) {clustered};"
    "CREATE TABLE areas (event bigint NOT NULL, area bigint NOT NULL, name text NOT NULL, "
    "  price bigint NOT NULL, capacity bigint NOT NULL, held bigint NOT NULL, "
    "  booked bigint NOT NULL, blocks text NOT NULL DEFAULT '[]', PRIMARY KEY (event, area), "
    "  CHECK (held >= 0 AND booked >= 0 AND held + booked <= capacity)) {clustered};"
    "CREATE TABLE seats (seat {key}, status bigint NOT NULL, hold bigint NOT NULL, "
    "  fence bigint NOT NULL, channel bigint NOT NULL DEFAULT 0);"
    "CREATE TABLE holds (hold {key}, secret {bytes} NOT NULL, event bigint NOT NULL, "
    "  status bigint NOT NULL, fence bigint NOT NULL, amount bigint NOT NULL, owner text, "
    "  metadata text, seats text NOT NULL, created_at bigint NOT NULL, "
    "  expires_at bigint NOT NULL, max_expires_at bigint NOT NULL, areas text, "
    "  client bigint NOT NULL DEFAULT 0, last_seq bigint NOT NULL DEFAULT 0, prices text, "
    "  channel bigint NOT NULL DEFAULT 0, booked_with bigint);"
    "CREATE TABLE bookings (booking {key}, secret {bytes} NOT NULL, event bigint NOT NULL, "
    "  status bigint NOT NULL, fence bigint NOT NULL, amount bigint NOT NULL, reference text, "
    "  created_at bigint NOT NULL, cancelled_at bigint NOT NULL DEFAULT 0, reason text, "
    "  payment bigint NOT NULL DEFAULT 0, number bigint NOT NULL DEFAULT 0, email text);"
    "CREATE TABLE sold_seats (seat {key}, booking bigint NOT NULL);"
    "CREATE TABLE log (entry {key}, at bigint NOT NULL, object bigint NOT NULL, "
    "  cause bigint NOT NULL, before bigint NOT NULL, after bigint NOT NULL, "
    "  quantity bigint NOT NULL, hold bigint NOT NULL, booking bigint NOT NULL, "
    "  fence bigint NOT NULL, until bigint NOT NULL, prev bigint NOT NULL, seats text, "
    "  areas text, channel bigint NOT NULL DEFAULT 0, actor text, types text);"
    "CREATE TABLE seat_heads (chunk {key}, seq bigint NOT NULL, heads {bytes} NOT NULL);"
    "CREATE INDEX bookings_reference ON bookings (reference) WHERE reference IS NOT NULL;"
    "CREATE TABLE idempotency (hash {bytes} NOT NULL, request {bytes} NOT NULL, "
    "  http_status bigint NOT NULL, body text NOT NULL, created_at bigint NOT NULL, "
    "  hold bigint NOT NULL DEFAULT 0);"
    "CREATE UNIQUE INDEX idempotency_pkey ON idempotency (hash);"
    "CREATE INDEX idempotency_age ON idempotency (created_at);"
    "CREATE INDEX bookings_pending ON bookings (booking) WHERE status = 1;"
    "CREATE TABLE bookings_past (booking bigint NOT NULL, payment bigint NOT NULL, "
    "  secret {bytes} NOT NULL, event bigint NOT NULL, status bigint NOT NULL, "
    "  fence bigint NOT NULL, amount bigint NOT NULL, reference text, "
    "  created_at bigint NOT NULL, cancelled_at bigint NOT NULL, reason text, "
    "  number bigint NOT NULL, email text, PRIMARY KEY (booking, payment)) {clustered};"
    "CREATE TABLE payments (booking bigint NOT NULL, payment bigint NOT NULL, "
    "  secret {bytes} NOT NULL, status bigint NOT NULL, amount bigint NOT NULL, "
    "  currency text NOT NULL, captures_by_hand bigint NOT NULL, intent text, "
    "  client_secret text, received bigint NOT NULL, is_wrong bigint NOT NULL, "
    "  disputed bigint NOT NULL, error_code text, decline_code text, error_message text, "
    "  poll_at bigint NOT NULL, created_at bigint NOT NULL, updated_at bigint NOT NULL, "
    "  PRIMARY KEY (booking, payment)) {clustered};"
    "CREATE UNIQUE INDEX payments_intent ON payments (intent) WHERE intent IS NOT NULL;"
    "CREATE INDEX payments_poll ON payments (poll_at) WHERE poll_at > 0;"
    "CREATE TABLE refunds (booking bigint NOT NULL, refund bigint NOT NULL, "
    "  payment bigint NOT NULL, amount bigint NOT NULL, status bigint NOT NULL, "
    "  is_ours bigint NOT NULL, provider text, error text, created_at bigint NOT NULL, "
    "  updated_at bigint NOT NULL, PRIMARY KEY (booking, refund)) {clustered};"
    "CREATE INDEX refunds_status ON refunds (status, refund);"
    "CREATE TABLE jobs (booking bigint NOT NULL, job bigint NOT NULL, kind bigint NOT NULL, "
    "  status bigint NOT NULL, payment bigint NOT NULL, amount bigint NOT NULL, "
    "  refund bigint NOT NULL, notice bigint NOT NULL, key {bytes} NOT NULL, "
    "  key_used_at bigint NOT NULL, attempts bigint NOT NULL, checks_first bigint NOT NULL, "
    "  created_at bigint NOT NULL, due_at bigint NOT NULL, leased_until bigint NOT NULL, "
    "  ended_at bigint NOT NULL, error text, PRIMARY KEY (booking, job)) {clustered};"
    "CREATE INDEX jobs_due ON jobs (due_at) WHERE status = 1;"
    "CREATE INDEX jobs_kind ON jobs (kind, status, job);"
    "CREATE TABLE payment_events (id text NOT NULL PRIMARY KEY, type text NOT NULL, "
    "  booking bigint NOT NULL, payment bigint NOT NULL, intent text, state bigint NOT NULL, "
    "  created_at bigint NOT NULL, received_at bigint NOT NULL);"
    "CREATE INDEX payment_events_age ON payment_events (received_at);"
    "CREATE TABLE provider_budget (budget {key}, second bigint NOT NULL, used bigint NOT NULL);"
    "INSERT INTO provider_budget (budget, second, used) VALUES (1, 0, 0);"
    "CREATE TABLE categories (event bigint NOT NULL, category bigint NOT NULL, "
    "  name text NOT NULL, price bigint NOT NULL, PRIMARY KEY (event, category)) {clustered};"
    "CREATE TABLE venues (event bigint NOT NULL, part bigint NOT NULL, data {bytes} NOT NULL, "
    "  PRIMARY KEY (event, part));"
    "CREATE INDEX holds_booked_with ON holds (booked_with) WHERE booked_with IS NOT NULL;"
    "CREATE INDEX holds_due ON holds (event, expires_at) WHERE status = 1;"
    "CREATE INDEX events_starts ON events (starts_at, event);"
    "CREATE INDEX events_sales_close ON events (sales_close_at);"
    "CREATE TABLE waitlist (entry {key}, event bigint NOT NULL, secret {bytes} NOT NULL, "
    "  number bigint NOT NULL, rank bigint NOT NULL, status bigint NOT NULL, "
    "  reason bigint NOT NULL, created_at bigint NOT NULL, ended_at bigint NOT NULL, "
    "  read_at bigint NOT NULL, until bigint NOT NULL, last_seq bigint NOT NULL, "
    "  hold bigint NOT NULL, client bigint NOT NULL, owner text, metadata text, "
    "  wish text NOT NULL);"
    "CREATE INDEX waitlist_live ON waitlist (status, event, rank) WHERE ended_at = 0;"
    "CREATE INDEX waitlist_owner ON waitlist (owner, entry) WHERE owner IS NOT NULL;";

enum hf_status ledger_migrate(struct db *db, int version, struct hf_err *err)
{
    return db_create(db, version == ledger_migrations_len ? whole : NULL, ledger_migrations,
                     version, err);
}
