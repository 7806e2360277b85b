/* What protects against a file that is damaged, or that somebody else has edited.  Internal to
 * src/db/sqlite*.c. */
#ifndef HF_DB_SQLITE_CHECK_H
#define HF_DB_SQLITE_CHECK_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

/* Turns off what our schemas do not have: on this connection no trigger fires, no view is read, and
 * no expression of the schema calls a function that does more than compute.  Returns an SQLite
 * code. */
int sqlite_check_harden(sqlite3 *db);

/* Runs SQLite's integrity_check; see db_file.check.  Returns an SQLite code. */
int sqlite_check_pages(sqlite3 *db, int64_t limit_ms, struct buf *ret_lines, bool *ret_whole);

#endif
