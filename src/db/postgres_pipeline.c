/* See postgres_pipeline.h.  Belongs to the thread of its struct db. */
#include "db/postgres_pipeline.h"

#include <stdlib.h>
#include <string.h>

#include "db/postgres_values.h"

/* ---- the queue ---- */

struct pg_entry *pg_push(struct postgres *db, enum pg_kind kind, struct pg_stmt *stmt)
{
    struct pg_entry *e = vec_push(&db->entries);
    *e = (struct pg_entry){.kind = kind, .stmt = stmt, .transaction = db->transaction};
    db->link.unasked = true;
    return e;
}

void pg_sync(struct postgres *db)
{
    struct hf_err err = {0};
    if (!db->unsynced || !db->link.conn)
        return;
    db->unsynced = false;
    if (!PQpipelineSync(db->link.conn)) {
        (void)pg_link_error(&db->link, &err);
        pg_disconnect(db, &err);
        return;
    }
    pg_push(db, PG_SYNC, NULL);
}

/* Fails one entry.  Of a transaction the first failure counts; an entry of a transaction that was
 * rolled back no longer matters. */
static void entry_fail(struct postgres *db, const struct pg_entry *e, const struct hf_err *why)
{
    if (e->transaction && e->transaction == db->transaction && db->err.code == HF_OK)
        db->err = *why;
    if (e->prepared)
        *e->prepared = 0;
    if (e->stmt && !e->discard && e->stmt->err.code == HF_OK)
        e->stmt->err = *why;
}

static void entry_end(struct postgres *db)
{
    const struct pg_entry *e = &db->entries.v[db->entry++];
    if ((e->kind == PG_RUN || e->kind == PG_EXPECT) && !e->discard)
        e->stmt->waiting--;
    if (e->kind == PG_SYNC)
        db->abort = (struct hf_err){0};
    if (db->entry == db->entries.n) {
        vec_clear(&db->entries);
        db->entry = 0;
    }
}

void pg_disconnect(struct postgres *db, const struct hf_err *why)
{
    pg_link_drop(&db->link);
    if (db->transaction && db->err.code == HF_OK)
        db->err = *why;
    while (db->entries.n) {
        entry_fail(db, &db->entries.v[db->entry], why);
        entry_end(db);
    }
    db->unsynced = false;
}

enum hf_status pg_connect(struct postgres *db, struct hf_err *err)
{
    struct hf_err why = {0};
    if (db->link.conn && !pg_link_alive(&db->link, &why))
        pg_disconnect(db, &why);
    return pg_link_connect(&db->link, err);
}

/* ---- answers ---- */

static void take_failure(struct postgres *db, struct pg_entry *e, const PGresult *result)
{
    struct hf_err err = {0};
    bool fatal = pg_is_fatal(result) || PQstatus(db->link.conn) == CONNECTION_BAD;
    bool answered = PQresultErrorField(result, PG_DIAG_SQLSTATE) != NULL;
    if (e->kind == PG_EXPECT &&
        pg_has_state(result, e->stmt->or_surprise ? PG_UNIQUE_STATE : PG_COUNT_STATE))
        (void)hf_err_set(&err, e->stmt->or_conflict ? HF_CONFLICT : HF_SURPRISE, "%s", e->what);
    else
        (void)pg_error(result, &err);
    /* The outcome is not known if the connection ended instead: who says so may be a pooler, which
     * does not know how far the server got. */
    if (db->err.code == HF_OK && e->transaction == db->transaction)
        db->is_known = answered && !fatal;
    db->abort = err;
    entry_fail(db, e, &err);
    if (fatal || pg_has_state(result, "25006") || pg_has_state(result, PG_STALE_PLAN) ||
        (e->stmt && &e->stmt->stmt == db->rollback))
        pg_disconnect(db, &err);
}

static void take_rows(struct pg_entry *e, PGresult *result)
{
    struct pg_stmt *stmt = e->stmt;
    struct hf_err err = {0};
    hf_check(stmt);
    if (e->discard || e->kind == PG_EXPECT || stmt->err.code != HF_OK || PQntuples(result) == 0) {
        PQclear(result);
    } else if (!pg_check_types(result, &err)) {
        stmt->err = err;
        PQclear(result);
    } else {
        *vec_push(&stmt->results) = result;
    }
}

/* Takes the next result of the first entry. */
static void take(struct postgres *db, PGresult *result)
{
    struct pg_entry *e = &db->entries.v[db->entry];
    switch (PQresultStatus(result)) {
    case PGRES_PIPELINE_SYNC:
        hf_check(e->kind == PG_SYNC);
        entry_end(db);
        break;
    case PGRES_SINGLE_TUPLE:
    case PGRES_TUPLES_OK:
        if (PQresultStatus(result) == PGRES_TUPLES_OK && e->stmt && !e->discard)
            e->stmt->changes += strtoll(PQcmdTuples(result), NULL, 10);
        take_rows(e, result);
        return;
    case PGRES_COMMAND_OK:
        if (e->kind == PG_RUN && !e->discard) {
            e->stmt->changes += strtoll(PQcmdTuples(result), NULL, 10);
            e->stmt->committed = strcmp(PQcmdStatus(result), "COMMIT") == 0;
        }
        break;
    case PGRES_PIPELINE_ABORTED:
        entry_fail(db, e, &db->abort);
        break;
    default:
        take_failure(db, e, result);
        break;
    }
    PQclear(result);
}

void pg_receive(struct postgres *db)
{
    struct hf_err err = {0};
    pg_sync(db);
    if (!db->entries.n)
        return;
    struct pg_entry *e = &db->entries.v[db->entry];
    bool slow = e->stmt && e->stmt->params.slow;
    /* Asked for before its first byte is read, so that a result of millions of rows is never in
     * memory as a whole. */
    if (!e->started && e->kind == PG_RUN)
        (void)PQsetSingleRowMode(db->link.conn);
    e->started = true;
    int64_t limit_ms = slow ? PG_SLOW_MS : db->link.answer_ms;
    if (db->link.limit_ms && db->link.limit_ms < limit_ms)
        limit_ms = db->link.limit_ms;
    if (pg_link_wait(&db->link, limit_ms, &err) != HF_OK) {
        pg_disconnect(db, &err);
        return;
    }
    PGresult *result = PQgetResult(db->link.conn);
    ExecStatusType kind = PQresultStatus(result);
    if (result) {
        take(db, result);
    } else {
        (void)pg_link_error(&db->link, &err);
        pg_disconnect(db, &err);
    }
    /* libpq ends each answer with a NULL, but drops the NULL if it is given something to send
     * before that was fetched. */
    if (db->link.conn && kind != PGRES_PIPELINE_SYNC && kind != PGRES_SINGLE_TUPLE) {
        hf_check(!PQgetResult(db->link.conn));
        entry_end(db);
    }
}

void pg_drain(struct postgres *db)
{
    pg_sync(db);
    while (db->entries.n)
        pg_receive(db);
}
