/* Copies the rows of a ledger between databases.  Internal to src/ledger. */
#ifndef HF_LEDGER_COPY_ROWS_H
#define HF_LEDGER_COPY_ROWS_H

#include "db/db.h"

/* Copies every row of every table but the schema's version.  One of the two is an SQLite file, and
 * its catalogue says which tables and columns there are; both have the same schema.  `to` has
 * empty tables.  `each_chunk` is called after some thousand rows, for a commit; NULL: not. */
HF_MUST_USE enum hf_status
copy_rows(struct db *from, struct db *to, struct db *file,
          enum hf_status (*each_chunk)(struct db *to, struct hf_err *err), struct hf_err *err);
/* Deletes all of these rows, inside a transaction.  In PostgreSQL, nothing else can read or write
 * the tables until its end. */
HF_MUST_USE enum hf_status clear_rows(struct db *db, struct db *file, struct hf_err *err);

#endif
