/* The SQL driver's schema and statements, in the language of db/db.h.  Used by the files of
 * src/lease/sql only. */
#ifndef HF_LEASE_SQL_STATEMENTS_H
#define HF_LEASE_SQL_STATEMENTS_H

/* Migration n leads to version n.  Never edit one that has been released; add another.  A lease or
 * a place in the queue is one row while it lasts.  Fences and tickets are numbers of the database's
 * sequence (db_driver.number).  `turn` is minus the priority: waiters are served in the order of
 * (turn, ticket).  lease_fences remembers the last fence of each name, also of free ones, for
 * LEASE_FENCE_KEPT_MS after the grant. */
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
};

#define LEASE_SQL_STATEMENTS(X)                                                                    \
    X(HOLDERS, "SELECT owner, fence, mode, slots, expires_at, 0 - priority, label FROM leases"     \
               " WHERE name = r.name{args(name bytes)}")                                           \
    X(WAITERS, "SELECT owner, ticket, mode, slots, seen_at, turn, label FROM lease_waiters"        \
               " WHERE name = r.name AND (turn, ticket) <= (r.turn, r.ticket)"                     \
               " ORDER BY turn, ticket{args(name bytes, turn bigint, ticket bigint)}")             \
    X(HEAD, "SELECT ticket FROM lease_waiters WHERE name = r.name AND seen_at > {now} - r.silent"  \
            " ORDER BY turn, ticket LIMIT 1{args(name bytes, silent bigint)}")                     \
    X(AHEAD, "SELECT w.seen_at, {now}, (SELECT count(*) FROM lease_waiters AS a"                   \
             " WHERE a.name = r.name AND (a.turn, a.ticket) < (w.turn, w.ticket)"                  \
             " AND a.seen_at > {now} - r.silent) FROM lease_waiters AS w WHERE w.name = r.name"    \
             " AND w.owner = r.owner{args(name bytes, owner bytes, silent bigint)}")               \
    X(GRANT, "INSERT INTO leases (name, owner, fence, mode, slots, priority, expires_at, label)"   \
             " {values(name bytes, owner bytes, fence bigint, mode bigint, slots bigint,"          \
             " priority bigint, expires_at bigint, label text)}"                                   \
             " ON CONFLICT (name, owner) DO NOTHING")                                              \
    X(NOTE_FENCE, "INSERT INTO lease_fences (name, fence, granted_at)"                             \
                  " {values(name bytes, fence bigint, granted_at bigint)} ON CONFLICT (name)"      \
                  " DO UPDATE SET fence = excluded.fence, granted_at = excluded.granted_at")       \
    X(LAST_FENCE, "SELECT fence FROM lease_fences WHERE name = r.name{args(name bytes)}")          \
    X(ENQUEUE, "INSERT INTO lease_waiters"                                                         \
               " (name, turn, ticket, owner, mode, slots, seen_at, label)"                         \
               " {values(name bytes, turn bigint, ticket bigint, owner bytes, mode bigint,"        \
               " slots bigint, seen_at bigint, label text)} ON CONFLICT DO NOTHING")               \
    X(SEEN, "UPDATE lease_waiters SET seen_at = {now} WHERE name = r.name AND owner = r.owner"     \
            "{args(name bytes, owner bytes)}")                                                     \
    X(LEAVE, "DELETE FROM lease_waiters WHERE name = r.name AND owner = r.owner"                   \
             "{args(name bytes, owner bytes)}")                                                    \
    X(RENEW, "UPDATE leases SET expires_at = {now} + r.ttl WHERE name = r.name"                    \
             " AND owner = r.owner AND expires_at > {now} RETURNING fence"                         \
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

/* Prepared only where the database has db_driver.run_locked: see one_statement.h.  TAKE grants a
 * name that has neither holders nor waiters, and returns the fence.  GIVE releases a lease and
 * returns the ticket of the waiter to wake. */
#define LEASE_SQL_ONE_STATEMENTS(X)                                                                \
    X(TAKE, "WITH taken AS ("                                                                      \
            "INSERT INTO leases (name, owner, fence, mode, slots, priority, expires_at, label)"    \
            " SELECT r.name, r.owner, {number}, r.mode, r.slots, r.priority, {now} + r.ttl,"       \
            " r.label WHERE NOT EXISTS (SELECT 1 FROM leases WHERE name = r.name)"                 \
            " AND NOT EXISTS (SELECT 1 FROM lease_waiters WHERE name = r.name)"                    \
            " RETURNING name, fence), noted AS ("                                                  \
            "INSERT INTO lease_fences (name, fence, granted_at) SELECT name, fence, {now}"         \
            " FROM taken ON CONFLICT (name)"                                                       \
            " DO UPDATE SET fence = excluded.fence, granted_at = excluded.granted_at)"             \
            " SELECT fence FROM taken"                                                             \
            "{args(name bytes, owner bytes, mode bigint, slots bigint, priority bigint,"           \
            " ttl bigint, label text)}")                                                           \
    X(GIVE, "DELETE FROM leases WHERE name = r.name AND owner = r.owner AND expires_at > {now}"    \
            " RETURNING (SELECT w.ticket FROM lease_waiters AS w WHERE w.name = r.name"            \
            " AND w.seen_at > {now} - r.silent ORDER BY w.turn, w.ticket LIMIT 1)"                 \
            "{args(name bytes, owner bytes, silent bigint)}")

enum lease_sql_statement {
#define LEASE_SQL_ENUM(name, sql) LS_##name,
    LEASE_SQL_STATEMENTS(LEASE_SQL_ENUM) LS_ONE_FIRST,
    LS_ONE_BEFORE = LS_ONE_FIRST - 1,
    LEASE_SQL_ONE_STATEMENTS(LEASE_SQL_ENUM)
#undef LEASE_SQL_ENUM
        LS_COUNT
};

#endif
