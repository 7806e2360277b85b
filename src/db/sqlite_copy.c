/* See sqlite_copy.h. */
#include "db/sqlite_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/wait.h"
#include "db/sqlite_file.h"

#define PATH_SIZE 4096
#define STEP_PAGES 512 /* a mebibyte */
#define BUSY_TRIES 500
#define BUSY_PAUSE_US 10000
#define CLOSE_TIMEOUT_MS 5000

static enum hf_status fail(const char *what, const char *path, const char *why, struct hf_err *err)
{
    return hf_err_set(err, HF_STORE_UNAVAILABLE, "cannot %s %.120s: %.80s", what, path, why);
}

/* ---- copies ---- */

static int run(sqlite3 *db, const char *sql) { return sqlite3_exec(db, sql, NULL, NULL, NULL); }

static int copy_pages(sqlite3 *from, sqlite3 *to)
{
    sqlite3_backup *backup = sqlite3_backup_init(to, "main", from, "main");
    int rc = SQLITE_OK, tries = 0;
    if (!backup)
        return sqlite3_extended_errcode(to);
    do {
        rc = sqlite3_backup_step(backup, STEP_PAGES);
        if ((rc & 0xff) == SQLITE_BUSY || (rc & 0xff) == SQLITE_LOCKED) {
            wait_sleep_us(BUSY_PAUSE_US);
            rc = ++tries < BUSY_TRIES ? SQLITE_OK : rc;
        }
    } while (rc == SQLITE_OK);
    int ended = sqlite3_backup_finish(backup);
    return rc == SQLITE_DONE ? ended : rc;
}

enum hf_status sqlite_copy_pages(sqlite3 *from, const char *path, struct hf_err *err)
{
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    sqlite3 *to = NULL;
    int rc = sqlite3_open_v2(path, &to, flags, NULL);
    /* A copy that is not finished is of no use: it needs no journal. */
    if (rc == SQLITE_OK)
        rc = run(to, "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;");
    /* The steps share the snapshot of this transaction.  Without it each step would begin one of
     * its own, and the copy anew whenever there was a commit in between. */
    if (rc == SQLITE_OK)
        rc = run(from, "BEGIN; SELECT COUNT(*) FROM sqlite_master;");
    if (rc == SQLITE_OK) {
        rc = copy_pages(from, to);
        (void)run(from, "ROLLBACK");
    }
    if (rc == SQLITE_OK) /* the copied pages say that there is a log */
        rc = run(to, "PRAGMA journal_mode=DELETE");
    enum hf_status status =
        rc == SQLITE_OK ? HF_OK : fail("copy to", path, sqlite3_errstr(rc), err);
    sqlite3_close(to);
    return status;
}

/* ---- putting a file in the place of another ---- */

static bool exists(const char *path) { return access(path, F_OK) == 0; }

static enum hf_status move(const char *from, const char *to, struct hf_err *err)
{
    if (!exists(from) || rename(from, to) == 0)
        return HF_OK;
    return fail("rename", from, strerror(errno), err);
}

/* Copies the log into the database and removes it.  Otherwise SQLite would take the old log for
 * that of the new file.  *ret_sound is false if the database is too damaged for that. */
static enum hf_status fold_log(const char *path, bool *ret_sound, struct hf_err *err)
{
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    sqlite3 *db = NULL;
    int rc = sqlite3_open_v2(path, &db, flags, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_busy_timeout(db, CLOSE_TIMEOUT_MS);
    if (rc == SQLITE_OK)
        rc = run(db, "PRAGMA journal_mode=DELETE; BEGIN IMMEDIATE; COMMIT;");
    sqlite3_close(db);
    char log[PATH_SIZE + 8];
    snprintf(log, sizeof log, "%s-wal", path);
    if ((rc & 0xff) == SQLITE_BUSY || (rc & 0xff) == SQLITE_LOCKED)
        return fail("replace", path, "another program has it open", err);
    *ret_sound = rc == SQLITE_OK && !exists(log);
    return HF_OK;
}

/* Moves the database and its log, or what is left of them, out of the way. */
static enum hf_status set_aside(const char *path, const char *aside, struct hf_err *err)
{
    char from[PATH_SIZE + 8], to[PATH_SIZE + 8];
    enum hf_status status = move(path, aside, err);
    snprintf(from, sizeof from, "%s-wal", path);
    snprintf(to, sizeof to, "%s-wal", aside);
    if (status == HF_OK)
        status = move(from, to, err);
    snprintf(from, sizeof from, "%s-shm", path);
    if (status == HF_OK && unlink(from) != 0 && errno != ENOENT)
        status = fail("remove", from, strerror(errno), err);
    return status;
}

static enum hf_status sync_folder(const char *path, struct hf_err *err)
{
    char copy[PATH_SIZE];
    snprintf(copy, sizeof copy, "%s", path);
    int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool synced = fd >= 0 && fsync(fd) == 0;
    enum hf_status status = synced ? HF_OK : fail("sync the folder of", path, strerror(errno), err);
    if (fd >= 0)
        (void)close(fd);
    return status;
}

/* With the lock held.  A sound database keeps its name until the new one has it. */
static enum hf_status put(const char *path, const char *new_path, const char *aside,
                          struct hf_err *err)
{
    bool is_sound = true;
    enum hf_status status = exists(path) ? fold_log(path, &is_sound, err) : HF_OK;
    if (status == HF_OK && !exists(path))
        is_sound = false; /* a log without its database may be left */
    if (status == HF_OK && is_sound && link(path, aside) != 0)
        status = fail("keep", path, strerror(errno), err);
    if (status == HF_OK && !is_sound)
        status = set_aside(path, aside, err);
    if (status != HF_OK)
        return status;
    if (rename(new_path, path) != 0)
        return fail("create", path, strerror(errno), err);
    return sync_folder(path, err);
}

enum hf_status sqlite_copy_put(const char *path, const char *new_path, const char *aside,
                               struct hf_err *err)
{
    int lock_fd = -1;
    enum hf_status status = sqlite_file_lock(path, &lock_fd, err);
    if (status == HF_OK)
        status = put(path, new_path, aside, err);
    if (lock_fd >= 0)
        (void)close(lock_fd);
    return status;
}
