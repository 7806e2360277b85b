/* The files of an SQLite database, beside what SQLite does with them: whose they are, the lock
 * that keeps a second server away, and how large they are. */
#ifndef HF_DB_SQLITE_FILE_H
#define HF_DB_SQLITE_FILE_H

#include "db/db.h"

/* Locks the database at `path` for one server, by a file beside it, which must be ours
 * (private_file_open) and is never emptied if it may be something else.  Refuses a directory that
 * everybody may write to.  The kernel drops the lock when the process ends, however that happens.
 * *ret_fd is -1 or the locked file, which the caller closes, also after a failure. */
HF_MUST_USE enum hf_status sqlite_file_lock(const char *path, int *ret_fd, struct hf_err *err);

/* Locks it, and makes sure that the database and SQLite's other files of it, as far as they exist,
 * are ours alone (private_file_fault).  Creates the database, empty, if it is missing. */
HF_MUST_USE enum hf_status sqlite_file_own(const char *path, int *ret_fd, struct hf_err *err);

/* Refuses a shared database that another user put into a directory that everybody may write to:
 * that user could grant and take every lock in it.  Elsewhere users share a file as its modes
 * allow.
 */
HF_MUST_USE enum hf_status sqlite_file_trust(const char *path, struct hf_err *err);

/* The sizes of the database at `path`, of its log, and of the file system that has them. */
HF_MUST_USE enum hf_status sqlite_file_sizes(const char *path, struct db_sizes *ret,
                                             struct hf_err *err);

#endif
