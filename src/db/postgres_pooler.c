/* See postgres_pooler.h.  A pooler of either kind gives the client a process id of its own making,
 * so it is noticed by comparing that with what the server says.  Two connections that have the same
 * session of the server, or one that has two, show that the pooler does not keep sessions. */
#include "db/postgres_pooler.h"

#include <stdlib.h>

#define TRIES 4
#define PROBE_MS 1000

static enum hf_status ask_pid(struct pg_link *l, const char *sql, int64_t timeout_ms,
                              int64_t *ret_pid, struct hf_err *err)
{
    enum hf_status status = HF_OK;
    *ret_pid = 0;
    if (!PQsendQuery(l->conn, sql))
        return pg_link_error(l, err);
    for (bool more = true; more;) {
        enum hf_status waited = pg_link_wait(l, timeout_ms, err);
        if (waited != HF_OK)
            return waited;
        PGresult *result = PQgetResult(l->conn);
        more = result != NULL;
        if (PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) == 1)
            *ret_pid = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
        else if (PQresultStatus(result) == PGRES_FATAL_ERROR && more)
            status = pg_error(result, err);
        PQclear(result);
    }
    return status;
}

/* Tries to catch the pooler at it, through a second connection.  One that gets no session in time
 * has been made to wait for one, as a pooler of sessions does. */
static bool sessions_are_shared(struct pg_link *l, int64_t pid)
{
    struct pg_link other = {.url = l->url, .connect_ms = PROBE_MS, .answer_ms = PROBE_MS};
    bool shared = false;
    int64_t other_pid, again = pid;
    if (pg_link_dial(&other, NULL) != HF_OK)
        return false;
    if (PQsetnonblocking(other.conn, 1) == 0) {
        for (int i = 0; i < TRIES && !shared; i++) {
            /* The session that was used last is usually given to the next that asks. */
            if (ask_pid(l, "SELECT pg_backend_pid()", l->answer_ms, &pid, NULL) != HF_OK ||
                ask_pid(&other, "BEGIN; SELECT pg_backend_pid()", PROBE_MS, &other_pid, NULL) !=
                    HF_OK ||
                ask_pid(l, "SELECT pg_backend_pid()", l->answer_ms, &again, NULL) != HF_OK ||
                ask_pid(&other, "ROLLBACK", PROBE_MS, &(int64_t){0}, NULL) != HF_OK)
                break;
            shared = other_pid == pid || again != pid;
        }
    }
    pg_link_drop(&other);
    return shared;
}

enum hf_status pg_pooler_check(struct pg_link *l, struct hf_err *err)
{
    int64_t pid;
    enum hf_status status = ask_pid(l, "SELECT pg_backend_pid()", l->answer_ms, &pid, err);
    l->is_pooled = status == HF_OK && pid != PQbackendPID(l->conn);
    if (!l->is_pooled || !sessions_are_shared(l, pid))
        return status;
    return hf_err_set(
        err, HF_STORE_UNAVAILABLE,
        "PgBouncer in transaction mode, or a pooler like it, cannot carry locks, which "
        "need a session: set pool_mode = session, or connect to PostgreSQL directly");
}
