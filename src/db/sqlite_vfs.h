/* A file system for SQLite over another, kinder to the disk in two ways:
 *
 * - Writes to the log are gathered and go out as one when SQLite syncs or looks at the file; a
 * commit of a hundred pages is two hundred small writes otherwise.  Nothing is acknowledged before
 * that sync, so nothing is lost that was promised; an error that the write would have met, the sync
 *   meets.
 * - A connection that checkpoints can be paced: the pages it copies into the main file are synced a
 *   few at a time, with a rest, so that commits, which share the disk, never wait behind thousands.
 */
#ifndef HF_DB_SQLITE_VFS_H
#define HF_DB_SQLITE_VFS_H

#include <sqlite3.h>
#include <stdbool.h>

/* Registers it, once a process, over the file system `below` (NULL: the default) and returns its
 * name; NULL when `below` is unknown or there is no room for another. */
const char *sqlite_vfs_register(const char *below);
/* Pace the main file of this connection, opened by that name, or no longer. */
void sqlite_vfs_pace(sqlite3 *db, bool paced);
/* After a transaction was taken back: what it wrote to the log and is still gathered is forgotten.
 * Later it would overwrite what other processes have written there since. */
void sqlite_vfs_forget(sqlite3 *db);

#endif
