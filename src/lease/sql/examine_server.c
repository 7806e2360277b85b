/* Says what the settings of a PostgreSQL server mean for locks: one statement, and the clock of
 * this machine around it.  Runs on the handle's thread. */
#include <inttypes.h>
#include <string.h>

#include "lease/sql/link.h"
#include "lease/sql/sql.h"

#define CLOCK_DIFFERENCE_MAX_MS 1000
#define VERSION_MIN 120000
#define CONNECTIONS_MAX (FAMILY_LINKS_MAX + 1)

enum table_column {
    VERSION,
    VERSION_NUMBER,
    FSYNC_OFF,
    PAGES_OFF,
    COMMIT,
    IN_RECOVERY,
    STANDBYS,
    SYNCHRONOUS,
    CONNECTIONS,
    USED,
    NOW,
    IDLE_SESSION,
    MISSING_RIGHTS,
    ROLE,
};

/* Missing rights are counted on the tables of the search_path, which is our schema. */
static const char settings_sql[] =
    "SELECT current_setting('server_version'),"
    " CAST(current_setting('server_version_num') AS bigint), current_setting('fsync') = 'off',"
    " current_setting('full_page_writes') = 'off', current_setting('synchronous_commit'),"
    " pg_is_in_recovery(), (SELECT count(*) FROM pg_stat_replication),"
    " current_setting('synchronous_standby_names') <> ''"
    " AND current_setting('synchronous_commit') NOT IN ('off', 'local'),"
    " CAST(current_setting('max_connections') AS bigint)"
    " - CAST(current_setting('superuser_reserved_connections') AS bigint),"
    " (SELECT COALESCE(sum(numbackends), 0)::bigint FROM pg_stat_database), {now},"
    " COALESCE(current_setting('idle_session_timeout', true), '0'),"
    " (SELECT count(*) FROM unnest(ARRAY['leases', 'lease_waiters', 'lease_fences']) AS t,"
    " unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS p"
    " WHERE NOT has_table_privilege(t, p))"
    " + CAST(NOT has_sequence_privilege('holdfast_numbers', 'USAGE') AS int),"
    " CAST(current_user AS text)";

struct examination {
    struct db_stmt *row;
    bool is_pooled;
    int64_t asked_ms, answered_ms; /* of this machine's wall clock */
    lease_each_finding *each;
    void *ctx;
};

#define FIND(e, grade, topic, ...) lease_finding((e)->each, (e)->ctx, grade, topic, __VA_ARGS__)

static int64_t number(const struct examination *e, enum table_column column)
{
    return db_column_int(e->row, column);
}

static const char *text(const struct examination *e, enum table_column column)
{
    size_t len;
    const char *value = db_column_data(e->row, column, &len);
    return value ? value : "";
}

static void find_version(const struct examination *e)
{
    if (number(e, VERSION_NUMBER) < VERSION_MIN)
        FIND(e, HF_WARNING, "version", "PostgreSQL %s is older than any that is tested.",
             text(e, VERSION));
    else
        FIND(e, HF_GOOD, "version", "PostgreSQL %s.", text(e, VERSION));
}

static void find_persistence(const struct examination *e)
{
    bool is_off = strcmp(text(e, COMMIT), "off") == 0;
    if (number(e, FSYNC_OFF))
        FIND(e, HF_DANGER, "persistence",
             "fsync is off: a crash of the server's machine can lose or damage all data, locks "
             "included.  Set fsync = on.");
    else if (is_off)
        FIND(e, HF_WARNING, "persistence",
             "synchronous_commit is off: a crash of the server forgets the locks of its last "
             "moments, which can then be granted twice.  Fences still grow.");
    else
        FIND(e, HF_GOOD, "persistence", "A lock is on the server's disk before it is granted.");
    if (number(e, PAGES_OFF))
        FIND(e, HF_WARNING, "persistence",
             "full_page_writes is off: a power cut can damage the tables of the locks.");
}

static void find_replication(const struct examination *e)
{
    int64_t standbys = number(e, STANDBYS);
    if (number(e, IN_RECOVERY))
        FIND(e, HF_DANGER, "replication",
             "The server is a standby, so no lock can be taken.  Name the primary in the URL, or "
             "all hosts.");
    else if (number(e, SYNCHRONOUS))
        FIND(e, HF_GOOD, "replication",
             "Commits wait for a standby, so one that takes over knows every lock.");
    else if (standbys > 0)
        FIND(e, HF_WARNING, "replication",
             "No commit waits for a standby (%" PRId64
             " connected).  Should one take over, it does "
             "not know the last locks, which can then be granted twice.  Set "
             "synchronous_standby_names.",
             standbys);
    else
        FIND(e, HF_NOTE, "replication",
             "No standby is connected: while the server is down no lock can be taken or renewed.");
}

static void find_connections(const struct examination *e)
{
    int64_t all = number(e, CONNECTIONS), left = all - number(e, USED);
    if (left < 2 * CONNECTIONS_MAX)
        FIND(e, HF_WARNING, "connections",
             "%" PRId64 " of %" PRId64 " connections are free.  A program that uses locks takes up "
             "to %d.  Raise max_connections.",
             left > 0 ? left : 0, all, CONNECTIONS_MAX);
    else
        FIND(e, HF_GOOD, "connections",
             "%" PRId64 " of %" PRId64 " connections are free; a program takes up to %d, however "
             "many of its threads wait.",
             left, all, CONNECTIONS_MAX);
    if (e->is_pooled)
        FIND(e, HF_NOTE, "connections",
             "A connection pooler is in between.  It seems to pool sessions, as locks need it.");
    if (strcmp(text(e, IDLE_SESSION), "0") != 0)
        FIND(e, HF_NOTE, "connections",
             "idle_session_timeout is %s: the server ends idle connections, and the next call has "
             "to make a new one.",
             text(e, IDLE_SESSION));
}

/* Only a difference of more than the exchange took is certain. */
static void find_clock(const struct examination *e)
{
    int64_t now = number(e, NOW), ahead_ms = 0;
    if (now < e->asked_ms)
        ahead_ms = now - e->asked_ms;
    else if (now > e->answered_ms)
        ahead_ms = now - e->answered_ms;
    int64_t off_ms = ahead_ms < 0 ? -ahead_ms : ahead_ms;
    if (off_ms > CLOCK_DIFFERENCE_MAX_MS)
        FIND(e, HF_WARNING, "clock",
             "The server's clock is %" PRId64 ".%03" PRId64 " s %s this machine's.  Leases end by "
             "the server's; if it is set forward, they end early.",
             off_ms / 1000, off_ms % 1000, ahead_ms > 0 ? "ahead of" : "behind");
    else
        FIND(e, HF_GOOD, "clock", "The server's clock agrees with this machine's.");
}

static void find_rights(const struct examination *e)
{
    if (number(e, MISSING_RIGHTS))
        FIND(e, HF_DANGER, "rights",
             "The role %s lacks rights on the tables in the schema holdfast_locks.  Grant it "
             "SELECT, "
             "INSERT, UPDATE and DELETE on all of them, and USAGE on the sequence.",
             text(e, ROLE));
    else
        FIND(e, HF_GOOD, "rights", "The role %s has all rights that locks need.", text(e, ROLE));
}

static enum hf_status examine(struct sql_lease *s, struct examination *e, struct hf_err *err)
{
    const struct clock *clock = s->family->options.clock;
    const struct db_driver *driver = s->link->db->driver;
    enum hf_status status = HF_OK;
    if (!s->link->examine)
        status = driver->prepare(s->link->db, settings_sql, &s->link->examine, err);
    if (status != HF_OK)
        return status;
    e->asked_ms = clock_wall_us(clock) / 1000;
    status = db_query(s->link->examine, NULL, err);
    enum db_step step = status == HF_OK ? db_step(s->link->examine, err) : DB_FAILED;
    e->answered_ms = clock_wall_us(clock) / 1000;
    e->row = s->link->examine;
    e->is_pooled = driver->network && driver->network->is_pooled(s->link->db);
    if (step == DB_ROW) {
        find_version(e);
        find_persistence(e);
        find_replication(e);
        find_clock(e);
        find_connections(e);
        find_rights(e);
    }
    driver->finish(s->link->examine);
    return step == DB_FAILED ? err->code : HF_OK;
}

enum hf_result sql_examine_server(struct lease *l, lease_each_finding *each, void *ctx,
                                  struct hf_fault *fault)
{
    struct sql_lease *s = sql_of(l);
    struct hf_err err = {0};
    struct examination e = {.each = each, .ctx = ctx};
    enum hf_status status = sql_enter(s, SQL_TO_TAKE, &err);
    if (status == HF_OK)
        status = examine(s, &e, &err);
    sql_leave(s);
    return sql_result(status, &err, fault);
}
