/* Whole database files of SQLite: copies of a database in use, and putting a file in the place of
 * another.  Any thread. */
#ifndef HF_DB_SQLITE_COPY_H
#define HF_DB_SQLITE_COPY_H

#include <sqlite3.h>

#include "base/status.h"

/* Copies what `from` has committed at one moment into the empty file `path`, which afterwards is
 * a database without a log beside it.  The caller syncs it.
 *
 * The copy is made in steps, from one read transaction: others commit meanwhile as always, and what
 * they commit is not in the copy; only the log of `from` cannot be emptied before the end. */
HF_MUST_USE enum hf_status sqlite_copy_pages(sqlite3 *from, const char *path, struct hf_err *err);

/* See db_file.put. */
HF_MUST_USE enum hf_status sqlite_copy_put(const char *path, const char *new_path,
                                           const char *aside, struct hf_err *err);

#endif
