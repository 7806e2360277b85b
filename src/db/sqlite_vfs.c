/* See sqlite_vfs.h.  Wraps every file of the file system below and passes on every call that is not
 * about the log's writes or the pace of the main file's.  A file belongs to one connection, and
 * that to one thread. */
#include "db/sqlite_vfs.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/status.h"
#include "base/wait.h"

#define GATHER_BYTES_MAX (1 << 20)
#define WRITE_BYTES_MAX (1 << 16) /* SQLite's own file system cannot write 128 KiB at once */
#define PACE_WRITES 16            /* between two syncs of a connection that is paced */
#define HURRY_WRITES 64           /* the same in a hurry */
#define PACE_REST_US 4000

struct our_file {
    sqlite3_file file;
    bool is_log;
    struct buf gathered;       /* of the log: bytes that are not written yet */
    sqlite3_int64 gathered_at; /* of the log: their place in the file */
    const atomic_bool *hurry;  /* of the main file: see sqlite_vfs_pace; NULL: it is not paced */
    int unsynced;              /* of the main file: writes since the last sync */
    sqlite3_file below[];      /* szOsFile bytes of the file system below */
};

static struct our_file *our(sqlite3_file *file) { return (struct our_file *)file; }

static sqlite3_file *below(sqlite3_file *file) { return our(file)->below; }

static int below_write(sqlite3_file *file, const void *data, int len, sqlite3_int64 at)
{
    return below(file)->pMethods->xWrite(below(file), data, len, at);
}

/* Writes all that is gathered.  After an error it is forgotten: SQLite rolls its transaction back,
 * and writes all of it again if it tries again. */
static int flush(sqlite3_file *file)
{
    struct our_file *f = our(file);
    if (f->gathered.len == 0)
        return SQLITE_OK;
    int rc = SQLITE_OK;
    for (size_t done = 0, len; done < f->gathered.len && rc == SQLITE_OK; done += len) {
        len = f->gathered.len - done < WRITE_BYTES_MAX ? f->gathered.len - done : WRITE_BYTES_MAX;
        rc = below_write(file, f->gathered.data + done, (int)len,
                         f->gathered_at + (sqlite3_int64)done);
    }
    f->gathered.len = 0;
    return rc;
}

static int gather(sqlite3_file *file, const void *data, int len, sqlite3_int64 at)
{
    struct our_file *f = our(file);
    bool follows = at == f->gathered_at + (sqlite3_int64)f->gathered.len;
    if (f->gathered.len && (!follows || f->gathered.len + (size_t)len > GATHER_BYTES_MAX)) {
        int rc = flush(file);
        if (rc != SQLITE_OK)
            return rc;
    }
    if (f->gathered.len == 0)
        f->gathered_at = at;
    buf_put(&f->gathered, data, (size_t)len);
    return SQLITE_OK;
}

static int our_write(sqlite3_file *file, const void *data, int len, sqlite3_int64 at)
{
    struct our_file *f = our(file);
    if (f->is_log)
        return gather(file, data, len, at);
    int rc = below_write(file, data, len, at);
    bool hurries = f->hurry && *f->hurry;
    if (rc != SQLITE_OK || !f->hurry || ++f->unsynced < (hurries ? HURRY_WRITES : PACE_WRITES))
        return rc;
    f->unsynced = 0;
    rc = f->below->pMethods->xSync(f->below, SQLITE_SYNC_NORMAL | SQLITE_SYNC_DATAONLY);
    if (!hurries)
        wait_sleep_us(PACE_REST_US);
    return rc;
}

static int our_close(sqlite3_file *file)
{
    int flushed = flush(file);
    buf_close(&our(file)->gathered);
    int closed = below(file)->pMethods->xClose(below(file));
    return flushed != SQLITE_OK ? flushed : closed;
}

static int our_read(sqlite3_file *file, void *data, int len, sqlite3_int64 at)
{
    int rc = flush(file);
    return rc == SQLITE_OK ? below(file)->pMethods->xRead(below(file), data, len, at) : rc;
}

static int our_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    int rc = flush(file);
    return rc == SQLITE_OK ? below(file)->pMethods->xTruncate(below(file), size) : rc;
}

static int our_sync(sqlite3_file *file, int flags)
{
    int rc = flush(file);
    our(file)->unsynced = 0;
    return rc == SQLITE_OK ? below(file)->pMethods->xSync(below(file), flags) : rc;
}

static int our_size(sqlite3_file *file, sqlite3_int64 *size)
{
    int rc = flush(file);
    return rc == SQLITE_OK ? below(file)->pMethods->xFileSize(below(file), size) : rc;
}

/* ---- passed on ---- */

static int our_lock(sqlite3_file *file, int level)
{
    return below(file)->pMethods->xLock(below(file), level);
}

static int our_unlock(sqlite3_file *file, int level)
{
    return below(file)->pMethods->xUnlock(below(file), level);
}

static int our_check_lock(sqlite3_file *file, int *ret)
{
    return below(file)->pMethods->xCheckReservedLock(below(file), ret);
}

static int our_control(sqlite3_file *file, int op, void *arg)
{
    return below(file)->pMethods->xFileControl(below(file), op, arg);
}

static int our_sector_size(sqlite3_file *file)
{
    return below(file)->pMethods->xSectorSize(below(file));
}

static int our_characteristics(sqlite3_file *file)
{
    return below(file)->pMethods->xDeviceCharacteristics(below(file));
}

static int our_shm_map(sqlite3_file *file, int page, int size, int extend, void volatile **ret)
{
    return below(file)->pMethods->xShmMap(below(file), page, size, extend, ret);
}

static int our_shm_lock(sqlite3_file *file, int offset, int n, int flags)
{
    return below(file)->pMethods->xShmLock(below(file), offset, n, flags);
}

static void our_shm_barrier(sqlite3_file *file) { below(file)->pMethods->xShmBarrier(below(file)); }

static int our_shm_unmap(sqlite3_file *file, int delete)
{
    return below(file)->pMethods->xShmUnmap(below(file), delete);
}

/* Version 2 has no memory-mapped reads, which our connections do not use. */
static const sqlite3_io_methods methods = {
    .iVersion = 2,
    .xClose = our_close,
    .xRead = our_read,
    .xWrite = our_write,
    .xTruncate = our_truncate,
    .xSync = our_sync,
    .xFileSize = our_size,
    .xLock = our_lock,
    .xUnlock = our_unlock,
    .xCheckReservedLock = our_check_lock,
    .xFileControl = our_control,
    .xSectorSize = our_sector_size,
    .xDeviceCharacteristics = our_characteristics,
    .xShmMap = our_shm_map,
    .xShmLock = our_shm_lock,
    .xShmBarrier = our_shm_barrier,
    .xShmUnmap = our_shm_unmap,
};

static int our_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags,
                    int *ret_flags)
{
    sqlite3_vfs *real = vfs->pAppData;
    struct our_file *f = our(file);
    *f = (struct our_file){.is_log = (flags & SQLITE_OPEN_WAL) != 0};
    int rc = real->xOpen(real, name, f->below, flags, ret_flags);
    if (f->below->pMethods)
        f->file.pMethods = &methods;
    return rc;
}

/* There is one for each file system below, and it stays until the process ends, as SQLite's own
 * do. */
struct our_vfs {
    sqlite3_vfs vfs;
    char name[64];
};

static struct our_vfs registered[4];
static pthread_mutex_t registering = PTHREAD_MUTEX_INITIALIZER;

static const char *register_over(sqlite3_vfs *real)
{
    for (size_t i = 0; i < sizeof registered / sizeof *registered; i++) {
        struct our_vfs *p = &registered[i];
        if (p->vfs.pAppData == real)
            return p->name;
        if (p->vfs.pAppData)
            continue;
        (void)snprintf(p->name, sizeof p->name, "holdfast-%s", real->zName);
        p->vfs = *real;
        p->vfs.pNext = NULL;
        p->vfs.zName = p->name;
        p->vfs.szOsFile = (int)sizeof(struct our_file) + real->szOsFile;
        p->vfs.pAppData = real;
        p->vfs.xOpen = our_open;
        return sqlite3_vfs_register(&p->vfs, 0) == SQLITE_OK ? p->name : NULL;
    }
    return NULL;
}

const char *sqlite_vfs_register(const char *below_name)
{
    sqlite3_vfs *real = sqlite3_vfs_find(below_name);
    if (!real)
        return NULL;
    pthread_mutex_lock(&registering);
    const char *name = register_over(real);
    pthread_mutex_unlock(&registering);
    return name;
}

void sqlite_vfs_pace(sqlite3 *db, const atomic_bool *hurry)
{
    sqlite3_file *file = NULL;
    if (sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, &file) == SQLITE_OK && file &&
        file->pMethods == &methods)
        our(file)->hurry = hurry;
}

/* The connection's log; NULL: it is not open, or not ours. */
static sqlite3_file *log_of(sqlite3 *db)
{
    sqlite3_file *file = NULL;
    if (sqlite3_file_control(db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &file) != SQLITE_OK)
        return NULL;
    return file && file->pMethods == &methods ? file : NULL;
}

void sqlite_vfs_forget(sqlite3 *db)
{
    sqlite3_file *file = log_of(db);
    if (file)
        our(file)->gathered.len = 0;
}

int sqlite_vfs_check_room(sqlite3 *db, sqlite3_int64 bytes)
{
    static const char nothing[WRITE_BYTES_MAX];
    sqlite3_file *file = log_of(db);
    sqlite3_int64 size;
    int rc = file ? our_size(file, &size) : SQLITE_OK;
    if (!file || rc != SQLITE_OK)
        return rc;
    for (sqlite3_int64 done = 0, len; done < bytes && rc == SQLITE_OK; done += len) {
        len = bytes - done < WRITE_BYTES_MAX ? bytes - done : WRITE_BYTES_MAX;
        rc = below_write(file, nothing, (int)len, size + done);
    }
    int truncated = our_truncate(file, size);
    return rc != SQLITE_OK ? rc : truncated;
}
