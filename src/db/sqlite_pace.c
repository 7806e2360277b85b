/* Wraps every file of the file system below.  Only xWrite of a main database file does something of
 * its own; the rest is passed on.  SQLite's own files follow ours in memory, as it expects. */
#include "db/sqlite_pace.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define PAGES_AT_ONCE 64
#define REST_NS 4000000

struct paced_file {
    sqlite3_file file;
    int paced, unsynced;
    sqlite3_file below[]; /* szOsFile bytes of the file system below */
};

static sqlite3_file *below(sqlite3_file *file) { return ((struct paced_file *)file)->below; }

static int paced_write(sqlite3_file *file, const void *data, int len, sqlite3_int64 at)
{
    struct paced_file *f = (struct paced_file *)file;
    int rc = f->below->pMethods->xWrite(f->below, data, len, at);
    if (rc != SQLITE_OK || !f->paced || ++f->unsynced < PAGES_AT_ONCE)
        return rc;
    f->unsynced = 0;
    rc = f->below->pMethods->xSync(f->below, SQLITE_SYNC_NORMAL | SQLITE_SYNC_DATAONLY);
    nanosleep(&(struct timespec){.tv_nsec = REST_NS}, NULL);
    return rc;
}

/* ---- passed on ---- */

static int paced_close(sqlite3_file *file) { return below(file)->pMethods->xClose(below(file)); }

static int paced_read(sqlite3_file *file, void *data, int len, sqlite3_int64 at)
{
    return below(file)->pMethods->xRead(below(file), data, len, at);
}

static int paced_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    return below(file)->pMethods->xTruncate(below(file), size);
}

static int paced_sync(sqlite3_file *file, int flags)
{
    ((struct paced_file *)file)->unsynced = 0;
    return below(file)->pMethods->xSync(below(file), flags);
}

static int paced_size(sqlite3_file *file, sqlite3_int64 *size)
{
    return below(file)->pMethods->xFileSize(below(file), size);
}

static int paced_lock(sqlite3_file *file, int level)
{
    return below(file)->pMethods->xLock(below(file), level);
}

static int paced_unlock(sqlite3_file *file, int level)
{
    return below(file)->pMethods->xUnlock(below(file), level);
}

static int paced_check_lock(sqlite3_file *file, int *ret)
{
    return below(file)->pMethods->xCheckReservedLock(below(file), ret);
}

static int paced_control(sqlite3_file *file, int op, void *arg)
{
    return below(file)->pMethods->xFileControl(below(file), op, arg);
}

static int paced_sector_size(sqlite3_file *file)
{
    return below(file)->pMethods->xSectorSize(below(file));
}

static int paced_characteristics(sqlite3_file *file)
{
    return below(file)->pMethods->xDeviceCharacteristics(below(file));
}

static int paced_shm_map(sqlite3_file *file, int page, int size, int extend, void volatile **ret)
{
    return below(file)->pMethods->xShmMap(below(file), page, size, extend, ret);
}

static int paced_shm_lock(sqlite3_file *file, int offset, int n, int flags)
{
    return below(file)->pMethods->xShmLock(below(file), offset, n, flags);
}

static void paced_shm_barrier(sqlite3_file *file)
{
    below(file)->pMethods->xShmBarrier(below(file));
}

static int paced_shm_unmap(sqlite3_file *file, int delete)
{
    return below(file)->pMethods->xShmUnmap(below(file), delete);
}

/* Version 2: no memory-mapped reads, which this connection does not use. */
static const sqlite3_io_methods methods = {
    .iVersion = 2,
    .xClose = paced_close,
    .xRead = paced_read,
    .xWrite = paced_write,
    .xTruncate = paced_truncate,
    .xSync = paced_sync,
    .xFileSize = paced_size,
    .xLock = paced_lock,
    .xUnlock = paced_unlock,
    .xCheckReservedLock = paced_check_lock,
    .xFileControl = paced_control,
    .xSectorSize = paced_sector_size,
    .xDeviceCharacteristics = paced_characteristics,
    .xShmMap = paced_shm_map,
    .xShmLock = paced_shm_lock,
    .xShmBarrier = paced_shm_barrier,
    .xShmUnmap = paced_shm_unmap,
};

static int paced_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags,
                      int *ret_flags)
{
    sqlite3_vfs *real = vfs->pAppData;
    struct paced_file *f = (struct paced_file *)file;
    f->file.pMethods = NULL;
    f->paced = (flags & SQLITE_OPEN_MAIN_DB) != 0;
    f->unsynced = 0;
    int rc = real->xOpen(real, name, f->below, flags, ret_flags);
    if (f->below->pMethods)
        f->file.pMethods = &methods;
    return rc;
}

/* One for each file system below, kept until the process ends, as SQLite's own are. */
struct paced_vfs {
    sqlite3_vfs vfs;
    char name[64];
};

static struct paced_vfs registered[4];
static pthread_mutex_t registering = PTHREAD_MUTEX_INITIALIZER;

static const char *register_over(sqlite3_vfs *real)
{
    for (size_t i = 0; i < sizeof registered / sizeof *registered; i++) {
        struct paced_vfs *p = &registered[i];
        if (p->vfs.pAppData == real)
            return p->name;
        if (p->vfs.pAppData)
            continue;
        (void)snprintf(p->name, sizeof p->name, "paced-%s", real->zName);
        p->vfs = *real;
        p->vfs.pNext = NULL;
        p->vfs.zName = p->name;
        p->vfs.szOsFile = (int)sizeof(struct paced_file) + real->szOsFile;
        p->vfs.pAppData = real;
        p->vfs.xOpen = paced_open;
        return sqlite3_vfs_register(&p->vfs, 0) == SQLITE_OK ? p->name : NULL;
    }
    return NULL;
}

const char *sqlite_pace_register(const char *below_name)
{
    sqlite3_vfs *real = sqlite3_vfs_find(below_name);
    if (!real)
        return NULL;
    pthread_mutex_lock(&registering);
    const char *name = register_over(real);
    pthread_mutex_unlock(&registering);
    return name;
}
