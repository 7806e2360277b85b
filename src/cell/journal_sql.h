/* A journal in a SQL database: what journal_sqlite.c and journal_postgres.c share, which is
 * everything but opening.  Internal to them.  Belongs to the thread of its handle. */
#ifndef HF_CELL_JOURNAL_SQL_H
#define HF_CELL_JOURNAL_SQL_H

#include <stdatomic.h>

#include "cell/journal.h"
#include "db/db.h"

#define JOURNAL_TIMEOUT_MS 2000 /* of a call, unless the options say something else */

enum journal_sql_statement {
    SQL_HEAD,
    SQL_ENTRIES,
    SQL_APPEND,
    SQL_ENTRY_ID,
    SQL_CLAIM,
    SQL_PUT_CHUNK,
    SQL_POINT,
    SQL_SWEEP,
    SQL_CHUNK,
    SQL_TRIM,
    SQL_REPORT,
    SQL_REPORT_DELETE,
    SQL_REPORTS,
    SQL_STATEMENTS
};

struct journal_sql {
    struct journal journal;
    struct db *db;
    struct db_stmt *statements[SQL_STATEMENTS];
    int64_t timeout_ms;
    _Atomic int64_t give_up_us; /* the end of the current call; see db_options */
    int64_t commits;            /* that stored something, so far */
};

/* Fills in what db_open needs to know; j->db is opened by the caller. */
struct db_options journal_sql_options(struct journal_sql *j, const struct journal_options *options);
/* Prepares the statements.  The tables exist. */
HF_MUST_USE enum hf_status journal_sql_prepare(struct journal_sql *j, struct hf_err *err);
/* Begins a call: from now on it has its time. */
void journal_sql_begin_call(struct journal_sql *j);
void journal_sql_close(struct journal_sql *j);
/* Turns the failure to open a database into the failure to open a journal. */
enum hf_status journal_sql_failure(enum hf_status status, struct hf_err *err);

/* The functions of struct journal_driver. */
enum journal_result journal_sql_read(struct journal *j, int64_t after, struct journal_page *ret,
                                     struct hf_err *err);
enum journal_result journal_sql_claim(struct journal *j, const struct journal_mandate *m,
                                      const char *url, struct hf_err *err);
enum journal_result journal_sql_append(struct journal *j, const struct journal_mandate *m,
                                       int64_t index, const uint8_t id[JOURNAL_ID_SIZE],
                                       const void *data, size_t len, struct hf_err *err);
enum journal_result journal_sql_put_chunk(struct journal *j, const struct journal_mandate *m,
                                          int64_t index, int64_t no, const void *data, size_t len,
                                          struct hf_err *err);
enum journal_result journal_sql_point(struct journal *j, const struct journal_mandate *m,
                                      int64_t index, int64_t n_chunks, struct hf_err *err);
enum journal_result journal_sql_load(struct journal *j, int64_t *ret_index, struct buf *ret,
                                     struct hf_err *err);
enum journal_result journal_sql_trim(struct journal *j, const struct journal_mandate *m,
                                     bool *ret_more, struct hf_err *err);
enum journal_result journal_sql_report(struct journal *j, const struct journal_server *self,
                                       const char *gone, struct journal_server *ret, size_t max,
                                       size_t *ret_n, struct hf_err *err);

#endif
