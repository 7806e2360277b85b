/* Backups of a whole ledger, and what a ledger needs before it is used again.  Any thread; each
 * function opens connections of its own.
 *
 * A backup is an SQLite file with the ledger's schema, whatever database the ledger is in: so
 * `verify` can check the backup itself, and it can be restored into either database.  A ledger in
 * SQLite is copied page by page, one in PostgreSQL row by row, from one snapshot; servers go on
 * working.
 *
 * A restored ledger does not know what was held, sold and released after the backup.  Four changes
 * keep it from contradicting that, and they are in its log like any other (I11):
 * - The fence of every event is raised beyond any that may have been given out since.  So fences
 *   only grow (I5), and no new hold gets the key of one that is forgotten.
 * - Open events are closed, so nothing is held until the operator has looked at each.
 * - Holds that were live expire now, since their places may have been given to others, and they and
 *   all that had expired get new fences.  So whoever confirms one with the fence that the buyer was
 *   given is refused, with `rescue`, too; an operator who knows better reads the new fence.
 * - Entries of waiting lists that wait count as read now.  One that was offered a hold since the
 *   backup waits again, with its old rank; one that had a live hold loses it with that hold.
 *
 * Nor does it know what the payment provider did since.  Every owed job therefore begins with a
 * look at what the provider has, and no lease is kept.  And every payment that is not canceled is
 * owed a poll, which is a job (JOB_POLL): some of its money may have come, or been given back or
 * disputed, after the backup, and only an answer of the provider ends that job (I19).  These are no
 * transitions, so the log does not tell of them. */
#ifndef HF_LEDGER_BACKUP_H
#define HF_LEDGER_BACKUP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/status.h"

struct ledger_size {
    int64_t version; /* of the schema; 0: there is no ledger */
    int64_t bytes;   /* of the database on its disk */
    int64_t events;
    int64_t as_of; /* the latest time in its clock rows: when a batch last wrote */
};
HF_MUST_USE enum hf_status ledger_size_read(const char *url, const struct clock *clock,
                                            struct ledger_size *ret, struct hf_err *err);

/* The path of a ledger that is a file; NULL if it is another kind. */
const char *ledger_file(const char *url);

/* Copies the ledger into the empty file `path`.  Leaves "PATH.lock" beside it if the ledger is in
 * PostgreSQL.  The caller syncs the file, and removes it after a failure. */
HF_MUST_USE enum hf_status ledger_backup(const char *url, const char *path,
                                         const struct clock *clock, struct hf_err *err);

/* Is the SQLite file `path` a backup that can be restored?  It may come from anywhere: its tables
 * must be ours, of this version or an earlier one, and its pages sound.  Whatever else is in it
 * stays behind, and `left` is called with the name of each such object. */
HF_MUST_USE enum hf_status ledger_inspect(const char *path, const struct clock *clock,
                                          void (*left)(const char *object), struct hf_err *err);

/* Takes the rows of such a backup over into the empty file `path`, in tables that our migrations
 * make there, of the backup's version.  Nothing but rows comes from the backup: no trigger, index
 * or definition of it.  Leaves "PATH.lock" beside it. */
HF_MUST_USE enum hf_status ledger_unpack(const char *backup, const char *path,
                                         const struct clock *clock, struct hf_err *err);

/* How many fences an event may have given out since a backup, if nobody knows better: 100 for each
 * millisecond, which is several times what a server can do for one event, but at least a million,
 * and at most 2^36, of which an event has room for fifteen. */
#define RESTORE_FENCES_PER_MS 100
#define RESTORE_FENCES_MIN INT64_C(1000000)
#define RESTORE_FENCES_MAX (INT64_C(1) << 36)

struct restored {
    int64_t as_of, now;   /* the ledger's last time before, and now */
    int64_t fence_margin; /* by which fences were raised */
    int64_t events, events_closed;
    int64_t holds_ended, holds_fenced; /* those that were live, and all that got new fences */
    int64_t waits;                     /* entries of waiting lists that wait */
    int64_t jobs;                      /* that are owed, to the provider or to the shop */
    int64_t payments;                  /* that the provider must be asked about */
};
/* Makes an unpacked backup, the SQLite file `path`, ready for use, in one transaction: brings its
 * schema up to date and makes the changes above.  `fence_margin` -1: by the time since the backup.
 * Leaves "PATH.lock" beside it. */
HF_MUST_USE enum hf_status ledger_make_ready(const char *path, const struct clock *clock,
                                             int64_t fence_margin, struct restored *ret,
                                             struct hf_err *err);

/* Puts the ledger in the SQLite file `path` in the place of the one at `url`.
 * - In SQLite the file itself takes that place, and the database of that name is kept as `aside`.
 * - In PostgreSQL its rows do, in one transaction, and `aside` is not used.
 * Fails if servers are running on that ledger. */
HF_MUST_USE enum hf_status ledger_replace(const char *url, const char *path, const char *aside,
                                          const struct clock *clock, struct hf_err *err);

#endif
