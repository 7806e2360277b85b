/* The SQL driver's schema and statements, in the language of db/db.h.  Used by the files of
 * src/lease/sql only. */
#ifndef HF_LEASE_SQL_STATEMENTS_H
#define HF_LEASE_SQL_STATEMENTS_H

/* Migration n leads to version n.  Never edit one that has been released; add another.  A lease or
 * a place in the queue is one row while it lasts.  Tickets are numbers of the database's sequence
 * (db_sharing.number), and so are the fences of SQLite.  A fence of PostgreSQL is the clock in
 * microseconds, and larger than all before: after a restore, or on a standby that lagged, the
 * sequence may have fallen back.  `turn` is minus the priority: waiters are served in the order of
 * (turn, ticket).  lease_fences remembers the last fence of each name, also of free ones, for
 * LEASE_FENCE_KEPT_MS after the grant.  On PostgreSQL its entry without a name has the largest
 * fence that was forgotten (FORGET_FENCES). */
#define LEASE_SQL_PART "leases"
static const char *const lease_sql_migrations[] = {
    "CREATE TABLE leases ("
    "  name {bytes} NOT NULL, owner {bytes} NOT NULL, fence bigint NOT NULL, mode bigint NOT NULL,"
    "  slots bigint NOT NULL, priority bigint NOT NULL, expires_at bigint NOT NULL, label text,"
    "  PRIMARY KEY (name, owner)) {clustered};"
    "CREATE TABLE lease_waiters ("
    "  name {bytes} NOT NULL, turn bigint NOT NULL, ticket bigint NOT NULL, owner {bytes} NOT NULL,"
    "  mode bigint NOT NULL, slots bigint NOT NULL, seen_at bigint NOT NULL, label text,"
    "  PRIMARY KEY (name, turn, ticket)) {clustered};"
    "CREATE UNIQUE INDEX lease_waiters_owner ON lease_waiters (name, owner);",
    "CREATE TABLE lease_fences ("
    "  name {bytes} NOT NULL PRIMARY KEY, fence bigint NOT NULL, granted_at bigint NOT NULL)"
    " {clustered};",
    /* 0: not known, not called, no topic.  See turn.h and listener.h. */
    "ALTER TABLE leases ADD COLUMN slot bigint NOT NULL DEFAULT 0;"
    "ALTER TABLE leases ADD COLUMN granted_at bigint NOT NULL DEFAULT 0;"
    "ALTER TABLE leases ADD COLUMN renewed_at bigint NOT NULL DEFAULT 0;"
    "ALTER TABLE lease_waiters ADD COLUMN called_at bigint NOT NULL DEFAULT 0;"
    "ALTER TABLE lease_waiters ADD COLUMN topic bigint NOT NULL DEFAULT 0;",
    /* What the clock said when renewed_at was written; 0: not known. */
    "ALTER TABLE leases ADD COLUMN clock_at bigint NOT NULL DEFAULT 0;",
};

/* The end of a lease is compared with the clock as it is, so that a clock that was set back makes
 * leases last longer.  It is written as the TTL after the clock or, if that is later, after the
 * time of an earlier write for the name.  A lease that is renewed while the clock is behind its
 * last renewal goes on from there: by as much as the clock has moved since, or by the TTL, within
 * which a renewal comes, if the clock was set meanwhile.  So a clock that goes back and returns,
 * whenever it does, does not end the lease before its TTL has passed.  Times that are
 * LEASE_CLOCK_BACK_MAX_MS or more ahead of the clock do not count: the clock was wrong when they
 * were written. */
#define LEASE_CLOCK_BACK_MAX_MS INT64_C(86400000)
#define LEASE_SQL_RENEWED                                                                          \
    "CASE WHEN renewed_at <= {now} OR renewed_at >= {now} + 86400000 THEN {now}"                   \
    " WHEN clock_at <= {now} AND clock_at >= {now} - r.ttl THEN renewed_at + {now} - clock_at"     \
    " ELSE renewed_at + r.ttl END"

/* A waiter that was called r.claim ago is passed over.  A call that lies ahead of the clock was
 * made before the clock was set back, and counts as over. */
#define LEASE_SQL_COUNTS                                                                           \
    "(called_at = 0 OR (called_at > {now} - r.claim AND called_at <= {now} + r.claim))"
/* The waiter to wake when something is released: the first that is not passed over, or if all are,
 * the first.  Waiters that have been silent for r.silent do not count. */
#define LEASE_SQL_WAITERS                                                                          \
    "SELECT ticket, owner, topic FROM lease_waiters WHERE name = r.name"                           \
    " AND seen_at > {now} - r.silent"
#define LEASE_SQL_HEAD                                                                             \
    "SELECT * FROM (" LEASE_SQL_WAITERS " AND " LEASE_SQL_COUNTS                                   \
    " ORDER BY turn, ticket LIMIT 1) AS a UNION ALL SELECT * FROM (" LEASE_SQL_WAITERS             \
    " ORDER BY turn, ticket LIMIT 1) AS b LIMIT 1"
/* How much of its slots the waiter w finds taken by those holders that the caller goes on to
 * name. */
#define LEASE_SQL_TAKEN                                                                            \
    "SELECT COALESCE(SUM(CASE WHEN l.mode <> w.mode THEN w.slots WHEN l.mode = 0 THEN 1"           \
    " ELSE 0 END), 0) FROM leases AS l WHERE l.name = r.name AND l.expires_at > {now}"

#define LEASE_SQL_STATEMENTS(X)                                                                    \
    X(HOLDERS, "SELECT owner, fence, mode, slots, expires_at, 0 - priority, label, granted_at,"    \
               " slot, renewed_at FROM leases WHERE name = r.name{args(name bytes)}")              \
    X(WAITERS, "SELECT owner, ticket, mode, slots, seen_at, turn, label, called_at, 0, topic"      \
               " FROM lease_waiters WHERE name = r.name AND (turn, ticket) <= (r.turn, r.ticket)"  \
               " ORDER BY turn, ticket{args(name bytes, turn bigint, ticket bigint)}")             \
    X(HEAD, LEASE_SQL_HEAD "{args(name bytes, silent bigint, claim bigint)}")                      \
    X(CALL, "UPDATE lease_waiters AS w SET called_at = {now} WHERE name = r.name"                  \
            " AND owner = r.owner AND called_at = 0 AND (" LEASE_SQL_TAKEN ") < w.slots"           \
            "{args(name bytes, owner bytes)}")                                                     \
    X(UNCALL, "UPDATE lease_waiters SET called_at = 0 WHERE name = r.name"                         \
              " AND called_at > r.passed{args(name bytes, passed bigint)}")                        \
    X(AHEAD, "SELECT w.seen_at, {now}, (SELECT count(*) FROM lease_waiters"                        \
             " WHERE name = r.name AND (turn, ticket) < (w.turn, w.ticket)"                        \
             " AND seen_at > {now} - r.silent AND " LEASE_SQL_COUNTS ")"                           \
             " FROM lease_waiters AS w WHERE w.name = r.name AND w.owner = r.owner"                \
             "{args(name bytes, owner bytes, silent bigint, claim bigint)}")                       \
    X(GRANT, "INSERT INTO leases {values(name bytes, owner bytes, fence bigint, mode bigint,"      \
             " slots bigint, priority bigint, expires_at bigint, label text, slot bigint,"         \
             " granted_at bigint, renewed_at bigint, clock_at bigint)} ON CONFLICT (name, owner)"  \
             " DO NOTHING")                                                                        \
    X(NOTE_FENCE, "INSERT INTO lease_fences {values(name bytes, fence bigint, granted_at bigint)}" \
                  " ON CONFLICT (name) DO UPDATE SET fence = excluded.fence,"                      \
                  " granted_at = excluded.granted_at")                                             \
    X(LAST_FENCE, "SELECT fence FROM lease_fences WHERE name = r.name{args(name bytes)}")          \
    X(ENQUEUE,                                                                                     \
      "INSERT INTO lease_waiters {values(name bytes, turn bigint, ticket bigint, owner bytes,"     \
      " mode bigint, slots bigint, seen_at bigint, label text, topic bigint)} ON CONFLICT"         \
      " DO NOTHING")                                                                               \
    X(SEEN, "UPDATE lease_waiters SET seen_at = {now}, topic = r.topic WHERE name = r.name"        \
            " AND owner = r.owner{args(name bytes, owner bytes, topic bigint)}")                   \
    X(ASKED, "UPDATE lease_waiters SET seen_at = {now}, called_at = 0, topic = r.topic"            \
             " WHERE name = r.name AND owner = r.owner"                                            \
             "{args(name bytes, owner bytes, topic bigint)}")                                      \
    X(LEAVE, "DELETE FROM lease_waiters WHERE name = r.name AND owner = r.owner"                   \
             "{args(name bytes, owner bytes)}")                                                    \
    X(LAST_GRANT, "SELECT fence, CASE WHEN name = r.name THEN granted_at ELSE 0 END"               \
                  " FROM lease_fences WHERE name IN (r.name, r.none)"                              \
                  "{args(name bytes, none bytes)}")                                                \
    X(RENEW, "UPDATE leases SET clock_at = {now}, renewed_at = " LEASE_SQL_RENEWED                 \
             ", expires_at = " LEASE_SQL_RENEWED " + r.ttl WHERE name = r.name"                    \
             " AND owner = r.owner AND expires_at > {now} RETURNING fence, slot"                   \
             "{args(name bytes, owner bytes, ttl bigint)}")                                        \
    X(RELEASE, "DELETE FROM leases WHERE name = r.name AND owner = r.owner"                        \
               " AND expires_at > {now}{args(name bytes, owner bytes)}")                           \
    X(BREAK, "DELETE FROM leases WHERE name = r.name{args(name bytes)}")                           \
    X(DROP_EXPIRED, "DELETE FROM leases WHERE name = r.name AND expires_at <= r.now"               \
                    "{args(name bytes, now bigint)}")                                              \
    X(DROP_SILENT, "DELETE FROM lease_waiters WHERE name = r.name AND seen_at <= r.silent"         \
                   "{args(name bytes, silent bigint)}")                                            \
    X(SWEEP_EXPIRED, "DELETE FROM leases WHERE (name, owner) IN (SELECT name, owner FROM leases"   \
                     " WHERE expires_at <= {now} - r.ms{lock_idle}){args(ms bigint)}")             \
    X(SWEEP_SILENT, "DELETE FROM lease_waiters WHERE (name, owner) IN"                             \
                    " (SELECT name, owner FROM lease_waiters"                                      \
                    " WHERE seen_at <= {now} - r.ms{lock_idle}){args(ms bigint)}")                 \
    X(FENCES_SLICE, "SELECT name FROM lease_fences WHERE name > r.after ORDER BY name"             \
                    " LIMIT 1 OFFSET r.n{args(after bytes, n bigint)}")                            \
    X(SWEEP_FENCES, "DELETE FROM lease_fences WHERE name IN (SELECT name FROM lease_fences"        \
                    " WHERE name > r.after AND name <= r.last AND granted_at <= {now} - r.ms"      \
                    "{lock_idle}){args(after bytes, last bytes, ms bigint)}")                      \
    X(NAMES, "SELECT name FROM leases WHERE name >= r.first AND name > r.after"                    \
             " AND name < r.beyond AND expires_at > r.now UNION"                                   \
             " SELECT name FROM lease_waiters WHERE name >= r.first AND name > r.after"            \
             " AND name < r.beyond AND seen_at > r.silent ORDER BY 1 LIMIT r.n"                    \
             "{args(first bytes, after bytes, beyond bytes, now bigint, silent bigint,"            \
             " n bigint)}")

/* Prepared only where the database has db_network.run_locked: see one_statement.h.  TAKE grants a
 * name that has neither holders nor waiters, and returns the fence.  GIVE releases a lease, calls
 * the waiter whose turn it is, and returns ticket, owner and topic of the waiter to wake. */
#define LEASE_SQL_ONE_STATEMENTS(X)                                                                \
    X(TAKE, "WITH noted AS (INSERT INTO lease_fences (name, fence, granted_at)"                    \
            " SELECT r.name, greatest(t.now * 1000 + 999,"                                         \
            " (SELECT fence + 1 FROM lease_fences WHERE name = r.name),"                           \
            " (SELECT fence + 1 FROM lease_fences WHERE name = '')), t.now"                        \
            " FROM (SELECT {now} AS now) AS t"                                                     \
            " WHERE NOT EXISTS (SELECT 1 FROM leases WHERE name = r.name)"                         \
            " AND NOT EXISTS (SELECT 1 FROM lease_waiters WHERE name = r.name)"                    \
            " ON CONFLICT (name) DO UPDATE SET fence = excluded.fence, granted_at ="               \
            " CASE WHEN lease_fences.granted_at < excluded.granted_at + 86400000"                  \
            " THEN greatest(excluded.granted_at, lease_fences.granted_at)"                         \
            " ELSE excluded.granted_at END RETURNING fence, granted_at AS since)"                  \
            " INSERT INTO leases (name, owner, fence, mode, slots, priority, expires_at, label,"   \
            " granted_at, renewed_at, clock_at) SELECT r.name, r.owner, fence, r.mode, r.slots,"   \
            " r.priority, since + r.ttl, r.label, since, since, {now} FROM noted RETURNING fence"  \
            "{args(name bytes, owner bytes, mode bigint, slots bigint, priority bigint,"           \
            " ttl bigint, label text)}")                                                           \
    X(FORGET_FENCES,                                                                               \
      "WITH gone AS (DELETE FROM lease_fences WHERE name IN (SELECT name FROM lease_fences"        \
      " WHERE name > r.after AND name <= r.last AND granted_at <= {now} - r.ms{lock_idle})"        \
      " RETURNING fence) INSERT INTO lease_fences (name, fence, granted_at)"                       \
      " SELECT '', MAX(fence), 0 FROM gone HAVING MAX(fence) IS NOT NULL ON CONFLICT (name)"       \
      " DO UPDATE SET fence = greatest(lease_fences.fence, excluded.fence)"                        \
      "{args(after bytes, last bytes, ms bigint)}")                                                \
    X(GIVE, "WITH gone AS (DELETE FROM leases WHERE name = r.name AND owner = r.owner"             \
            " AND expires_at > {now} RETURNING name), head AS (" LEASE_SQL_HEAD "), called AS ("   \
            "UPDATE lease_waiters AS w SET called_at = {now} FROM gone, head"                      \
            " WHERE w.name = r.name AND w.owner = head.owner AND w.called_at = 0"                  \
            " AND (" LEASE_SQL_TAKEN " AND l.owner <> r.owner) < w.slots)"                         \
            " SELECT COALESCE(head.ticket, 0), head.owner, head.topic"                             \
            " FROM gone LEFT JOIN head ON true"                                                    \
            "{args(name bytes, owner bytes, silent bigint, claim bigint)}")

/* For the listener (listener.h), on a connection of its own: keeps the places of many waiters at
 * once.  A row that another transaction has locked is being written to anyway. */
#define LEASE_SQL_KEEP_PLACES                                                                      \
    "UPDATE lease_waiters AS w SET seen_at = {now} FROM (SELECT x.name, x.owner"                   \
    " FROM lease_waiters AS x{ JOIN rows(name bytes, owner bytes)}"                                \
    " ON x.name = r.name AND x.owner = r.owner{lock_idle}) AS k"                                   \
    " WHERE w.name = k.name AND w.owner = k.owner RETURNING 1{may_be_lost}"

enum lease_sql_statement {
#define LEASE_SQL_ENUM(name, sql) LS_##name,
    LEASE_SQL_STATEMENTS(LEASE_SQL_ENUM) LS_ONE_FIRST,
    LS_ONE_BEFORE = LS_ONE_FIRST - 1,
    LEASE_SQL_ONE_STATEMENTS(LEASE_SQL_ENUM)
#undef LEASE_SQL_ENUM
        LS_COUNT
};

#endif
