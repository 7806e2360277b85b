/* A file system for SQLite that writes its main file at a measured pace.  Used by the connection
 * that checkpoints: the pages it copies go to the disk a few at a time, each few synced and
 * followed by a rest, so that the commits of the worker, which share the disk, never wait behind
 * thousands. */
#ifndef HF_DB_SQLITE_PACE_H
#define HF_DB_SQLITE_PACE_H

/* Registers it, once a process, over the file system `below` (NULL: the default) and returns its
 * name; NULL when `below` is unknown or memory is short. */
const char *sqlite_pace_register(const char *below);

#endif
