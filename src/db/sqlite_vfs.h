/* A file system for SQLite on top of another one, which is kinder to the disk in two ways:
 *
 * - Writes to the log are gathered, and written as one when SQLite syncs or reads the file; a
 *   commit of a hundred pages would be two hundred small writes.  No commit is acknowledged before
 *   that sync, so this loses nothing; an error that a write would have returned is returned by the
 *   sync.
 * - A connection that checkpoints can be paced: the pages that it copies into the main file are
 *   synced a few at a time, with a rest after each sync, so that commits, which use the same disk,
 *   never wait behind thousands of pages.  In a hurry it syncs more at a time and does not rest. */
#ifndef HF_DB_SQLITE_VFS_H
#define HF_DB_SQLITE_VFS_H

#include <sqlite3.h>
#include <stdatomic.h>
#include <stdbool.h>

/* Registers the file system on top of `below` (NULL: the default one), once per process, and
 * returns its name.  Returns NULL if `below` is unknown or no slot is left. */
const char *sqlite_vfs_register(const char *below);
/* Paces the writes to this connection's main file.  `hurry` is borrowed for the life of the
 * connection, and any thread may set it. */
void sqlite_vfs_pace(sqlite3 *db, const atomic_bool *hurry);
/* After a rollback: forgets what the transaction wrote to the log and is still gathered.  Written
 * later, it would overwrite what other processes have written there since. */
void sqlite_vfs_forget(sqlite3 *db);
/* In a transaction that writes: can the log grow by `bytes`?  Writes so many behind its end, where
 * no reader looks, and takes them away again.  Returns SQLite's code of the failure. */
int sqlite_vfs_check_room(sqlite3 *db, sqlite3_int64 bytes);

#endif
