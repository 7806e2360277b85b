/* Making the file of a shared database: see sqlite_shared.h.  Whoever opens a path where nothing is
 * makes it, on the thread that opens.
 *
 * It is made beside its place and then given its name, so that nobody sees half of it; by one
 * process at a time, the one that holds the lock on the guard.  What a killed maker leaves (the
 * guard, the unfinished file) the next who opens the path takes away.  The guard is a file of its
 * own: to close another descriptor of the database would drop the locks that SQLite has on it. */
#include "db/sqlite_shared.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PATH_SIZE (4096 + 16)
#define TRY_EVERY_US 1000

struct making {
    const char *path;
    const struct clock *clock;
    int64_t timeout_ms;
    char guard[PATH_SIZE], made[PATH_SIZE];        /* beside the path */
    char log[2][PATH_SIZE], old_log[2][PATH_SIZE]; /* SQLite's other files; put aside */
    char made_log[PATH_SIZE];
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

/* Set up as far as an opener does, so that those who come next need write nothing.  Closed, it is
 * whole, on the disk, and has no other files beside it. */
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

/* The log of a file that was removed without it would be taken for the new one's, and copied into
 * it.  While there is no file at the path there is no log in use; should somebody else have made
 * one in this moment, its log is put back. */
static int publish(const struct making *m)
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

/* EAGAIN: another is at it. */
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
            failed = publish(m);
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
    int64_t until = clock_monotonic_us(&clock_system) + timeout_ms * 1000;
    while (!exists(path) || exists(m.guard)) {
        int failed = make(&m);
        if (!failed || exists(path))
            return 0;
        if (failed != EAGAIN)
            return failed;
        if (clock_monotonic_us(&clock_system) >= until)
            return ETIMEDOUT;
        nanosleep(&(struct timespec){.tv_nsec = TRY_EVERY_US * 1000}, NULL);
    }
    return 0;
}
