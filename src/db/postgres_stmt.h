/* Statements on the pipeline of a connection (postgres_pipeline.h): preparing them on the server,
 * queueing them with their parameters, and stepping through their answers.  Most of these functions
 * stand in the driver's table and do what db.h says.  Internal to src/db/postgres*.c. */
#ifndef HF_DB_POSTGRES_STMT_H
#define HF_DB_POSTGRES_STMT_H

#include "db/postgres_pipeline.h"

void pg_stmt_free(struct pg_stmt *stmt);
/* Queues the statement over n_rows; `what` makes it a PG_EXPECT.  Connects first outside a
 * transaction, and queues BEGIN first inside one. */
HF_MUST_USE enum hf_status pg_queue(struct pg_stmt *stmt, const char *what,
                                    const struct db_value *args, size_t n_rows, struct hf_err *err);
/* Discards the answers to what the statement was asked before, received or not. */
void pg_reset(struct pg_stmt *stmt);

HF_MUST_USE enum hf_status pg_prepare(struct db *base, const char *sql, struct db_stmt **ret_stmt,
                                      struct hf_err *err);
HF_MUST_USE enum hf_status pg_exec_many(struct db_stmt *base, const struct db_value *args,
                                        size_t n_rows, int64_t *ret_changes, struct hf_err *err);
HF_MUST_USE enum hf_status pg_expect_many(struct db_stmt *base, const char *what,
                                          const struct db_value *args, size_t n_rows,
                                          struct hf_err *err);
HF_MUST_USE enum hf_status pg_query_many(struct db_stmt *base, const struct db_value *args,
                                         size_t n_rows, struct hf_err *err);
enum db_step pg_step(struct db_stmt *base, struct hf_err *err);
int64_t pg_column_int(struct db_stmt *base, int column);
const void *pg_column_data(struct db_stmt *base, int column, size_t *ret_len);
void pg_finish(struct db_stmt *base);

extern const struct dialect pg_dialect;

#endif
