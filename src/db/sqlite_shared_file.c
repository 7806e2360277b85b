/* Creates the file of a shared database, see sqlite_shared.h, on the thread that opens it first.
 *
 * The file is built beside its path and then linked to it, so that no process sees half of it.  One
 * process at a time builds, the one that holds the lock on the guard file.  What a killed builder
 * leaves behind (the guard, the unfinished file) is removed by the next process that opens the
 * path. The guard is a file of its own, since closing a second descriptor of the database would
 * drop the locks that SQLite has on it. */
#include "db/sqlite_shared.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/wait.h"

#define PATH_SIZE (4096 + 16)
#define TRY_EVERY_US 1000

struct making {
    const char *path;
    const struct clock *clock;
    int64_t timeout_ms;
    char guard[PATH_SIZE];
    char made[PATH_SIZE];       /* the file while it is built */
    char made_log[PATH_SIZE];   /* its journal */
    char log[2][PATH_SIZE];     /* SQLite's other files of the path */
    char old_log[2][PATH_SIZE]; /* where those of an earlier file are put aside */
};

static bool exists(const char *path) { return access(path, F_OK) == 0; }

static bool making_init(struct making *m, const char *path)
{
    static const char *const ends[] = {"-wal", "-shm"};
    m->path = path;
    size_t most = (size_t)snprintf(m->made_log, PATH_SIZE, "%s-new-journal", path);
    (void)snprintf(m->guard, PATH_SIZE, "%s-making", path);
    (void)snprintf(m->made, PATH_SIZE, "%s-new", path);
    for (int i = 0; i < 2; i++) {
        (void)snprintf(m->log[i], PATH_SIZE, "%s%s", path, ends[i]);
        (void)snprintf(m->old_log[i], PATH_SIZE, "%s-new%s", path, ends[i]);
    }
    return most < PATH_SIZE;
}

static void clean(const struct making *m)
{
    unlink(m->made);
    unlink(m->made_log);
    for (int i = 0; i < 2; i++)
        unlink(m->old_log[i]);
}

static int sync_file(const char *path)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);
    int failed = fd < 0 || fsync(fd) != 0 ? errno : 0;
    if (fd >= 0)
        close(fd);
    return failed;
}

/* Builds the file with all that opening a connection writes, so that the next connections write
 * nothing.  Closing it leaves it whole, on the disk, and without other files beside it. */
static int build(const struct making *m)
{
    struct sqlite_shared shared = {0};
    sqlite3 *db = NULL;
    int fd = open(m->made, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return errno;
    close(fd);
    int rc = sqlite3_open_v2(m->made, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite_shared_open(&shared, db, m->clock, m->timeout_ms);
    sqlite_shared_close(&shared);
    sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
    int closed = sqlite3_close(db);
    if ((rc & 0xff) == SQLITE_FULL)
        return ENOSPC;
    return rc != SQLITE_OK || closed != SQLITE_OK ? EIO : sync_file(m->made);
}

/* Links the file to its path.  If an earlier file was removed without its log, SQLite would take
 * that log for the new file's and copy it into the new file, so it is put aside first.  While there
 * is no file at the path no log is in use; should another program create the file at this moment,
 * its log is put back. */
static int put_in_place(const struct making *m)
{
    for (int i = 0; i < 2; i++)
        if (rename(m->log[i], m->old_log[i]) != 0 && errno != ENOENT)
            return errno;
    if (exists(m->path)) {
        for (int i = 0; i < 2; i++)
            (void)rename(m->old_log[i], m->log[i]);
        return 0;
    }
    return link(m->made, m->path) != 0 && errno != EEXIST ? errno : 0;
}

/* Returns 0 or an errno; EAGAIN if another process is building the file. */
static int make(const struct making *m)
{
    struct stat st;
    int fd = open(m->guard, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return errno;
    int failed = EAGAIN;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &st) == 0 && st.st_nlink > 0) {
        clean(m);
        failed = 0;
        if (!exists(m->path))
            failed = build(m);
        if (!failed && !exists(m->path))
            failed = put_in_place(m);
        clean(m);
        unlink(m->guard);
    }
    close(fd);
    return failed;
}

int sqlite_shared_create(const char *path, const struct clock *clock, int64_t timeout_ms)
{
    struct making m = {.clock = clock, .timeout_ms = timeout_ms};
    if (!making_init(&m, path))
        return ENAMETOOLONG;
    int64_t until = wait_now_us() + timeout_ms * 1000;
    while (!exists(path) || exists(m.guard)) {
        int failed = make(&m);
        if (!failed || exists(path))
            return 0;
        if (failed != EAGAIN)
            return failed;
        if (wait_now_us() >= until)
            return ETIMEDOUT;
        wait_sleep_us(TRY_EVERY_US);
    }
    return 0;
}
