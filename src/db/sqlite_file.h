/* The files of an SQLite database, beside what SQLite does with them: the lock that keeps a second
 * server away, and how large they are. */
#ifndef HF_DB_SQLITE_FILE_H
#define HF_DB_SQLITE_FILE_H

#include "db/db.h"

/* Locks the database at `path` for one server, by a file beside it.  The kernel drops the lock when
 * the process ends, however that happens.  *ret_fd is -1 or the locked file, which the caller
 * closes, also after a failure. */
HF_MUST_USE enum hf_status sqlite_file_lock(const char *path, int *ret_fd, struct hf_err *err);

/* The sizes of the database at `path`, of its log, and of the file system that has them. */
HF_MUST_USE enum hf_status sqlite_file_sizes(const char *path, struct db_sizes *ret,
                                             struct hf_err *err);

#endif
