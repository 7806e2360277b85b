/* PostgreSQL by hand: what one would write in plain libpq, one prepared statement after another, in
 * separate tables of the same database.  It does less where one would need less: a lease is one
 * UPDATE of a row that stays, and the row lock is its lock.  There is no queue and so no order; a
 * waiter tries again every millisecond. */
#ifndef HF_BENCH_LEASES_POSTGRES_H
#define HF_BENCH_LEASES_POSTGRES_H

#include <libpq-fe.h>
#include <string.h>
#include <time.h>

#include "base/status.h"
#include "leases_side.h"

static const char hand_postgres_schema[] =
    "SET client_min_messages = warning; SELECT pg_advisory_lock(48);"
    "CREATE TABLE IF NOT EXISTS hand_leases (name text PRIMARY KEY, owner bytea, fence bigint NOT "
    "NULL DEFAULT 0, expires_at timestamptz NOT NULL DEFAULT '-infinity') WITH (fillfactor = 50);"
    "INSERT INTO hand_leases (name) VALUES ('bench'), ('hot') ON CONFLICT DO NOTHING;"
    "SELECT pg_advisory_unlock(48)";
static const char hand_postgres_take_sql[] =
    "UPDATE hand_leases SET owner = $2, fence = fence + 1,"
    " expires_at = clock_timestamp() + interval '30 seconds'"
    " WHERE name = $1 AND expires_at <= clock_timestamp() RETURNING fence";
static const char hand_postgres_give_sql[] =
    "UPDATE hand_leases SET expires_at = '-infinity' WHERE name = $1 AND owner = $2"
    " AND expires_at > clock_timestamp() RETURNING fence";

static void hand_postgres_must(PGconn *conn, PGresult *result, ExecStatusType want)
{
    if (PQresultStatus(result) != want)
        die(PQerrorMessage(conn));
    PQclear(result);
}

static void *hand_postgres_open(const char *url, void *first)
{
    (void)first;
    PGconn *conn = PQconnectdb(url);
    if (PQstatus(conn) != CONNECTION_OK)
        die(PQerrorMessage(conn));
    hand_postgres_must(conn, PQexec(conn, hand_postgres_schema), PGRES_TUPLES_OK);
    hand_postgres_must(conn, PQprepare(conn, "take", hand_postgres_take_sql, 0, NULL),
                       PGRES_COMMAND_OK);
    hand_postgres_must(conn, PQprepare(conn, "give", hand_postgres_give_sql, 0, NULL),
                       PGRES_COMMAND_OK);
    return conn;
}

static void hand_postgres_close(void *handle) { PQfinish(handle); }

static bool hand_postgres_run(PGconn *conn, const char *statement, const char *name,
                              const uint8_t *owner)
{
    const char *const values[] = {name, (const char *)owner};
    const int lens[] = {(int)strlen(name), OWNER_SIZE}, formats[] = {0, 1};
    PGresult *result = PQexecPrepared(conn, statement, 2, values, lens, formats, 1);
    if (PQresultStatus(result) != PGRES_TUPLES_OK)
        die(PQerrorMessage(conn));
    bool done = PQntuples(result) == 1;
    PQclear(result);
    return done;
}

static void hand_postgres_pair(void *handle, const uint8_t *owner)
{
    if (!hand_postgres_run(handle, "take", "bench", owner) ||
        !hand_postgres_run(handle, "give", "bench", owner))
        die("PostgreSQL's lease was not granted");
}

static bool hand_postgres_take(void *handle, const uint8_t *owner, atomic_bool *stop)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    bool mine = hand_postgres_run(handle, "take", "hot", owner);
    while (!mine && !*stop) {
        nanosleep(&pause, NULL);
        mine = hand_postgres_run(handle, "take", "hot", owner);
    }
    return mine;
}

static void hand_postgres_give(void *handle, const uint8_t *owner)
{
    (void)hand_postgres_run(handle, "give", "hot", owner);
}

static const struct side hand_postgres = {
    .name = "libpq",
    .open = hand_postgres_open,
    .close = hand_postgres_close,
    .pair = hand_postgres_pair,
    .take = hand_postgres_take,
    .give = hand_postgres_give,
};

#endif
