/* See fault_vfs.h. */
#include "support/fault_vfs.h"

#include <pthread.h>
#include <sqlite3.h>
#include <string.h>

struct faulty_file {
    sqlite3_file base;
    sqlite3_file *real; /* behind this struct */
};

static sqlite3_vfs *real_vfs, vfs;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    enum fault_call call;
    int at, code; /* at 0: none */
    bool forever;
    int calls[FAULT_CALLS], hits;
} fault;

void fault_arm(enum fault_call call, int at, int code, bool forever)
{
    pthread_mutex_lock(&lock);
    memset(&fault, 0, sizeof fault);
    fault.call = call;
    fault.at = at;
    fault.code = code;
    fault.forever = forever;
    pthread_mutex_unlock(&lock);
}

void fault_disarm(void)
{
    pthread_mutex_lock(&lock);
    fault.at = 0;
    pthread_mutex_unlock(&lock);
}

int fault_hits(void)
{
    pthread_mutex_lock(&lock);
    int hits = fault.hits;
    pthread_mutex_unlock(&lock);
    return hits;
}

int fault_calls(enum fault_call call)
{
    pthread_mutex_lock(&lock);
    int calls = fault.calls[call];
    pthread_mutex_unlock(&lock);
    return calls;
}

/* Counts a call.  Returns the error with which it is to fail, or SQLITE_OK. */
static int strike(enum fault_call call)
{
    int code = SQLITE_OK;
    pthread_mutex_lock(&lock);
    int n = ++fault.calls[call];
    if (call == fault.call && fault.at && (n == fault.at || (fault.forever && n > fault.at))) {
        fault.hits++;
        code = fault.code;
    }
    pthread_mutex_unlock(&lock);
    return code;
}

#define REAL(file) (((struct faulty_file *)(file))->real)

static int file_close(sqlite3_file *f) { return REAL(f)->pMethods->xClose(REAL(f)); }

static int file_read(sqlite3_file *f, void *data, int n, sqlite3_int64 offset)
{
    int code = strike(FAULT_READ);
    return code ? code : REAL(f)->pMethods->xRead(REAL(f), data, n, offset);
}

static int file_write(sqlite3_file *f, const void *data, int n, sqlite3_int64 offset)
{
    int code = strike(FAULT_WRITE);
    int rc = REAL(f)->pMethods->xWrite(REAL(f), data, code ? n / 2 : n, offset);
    return code ? code : rc;
}

static int file_truncate(sqlite3_file *f, sqlite3_int64 size)
{
    int code = strike(FAULT_TRUNCATE);
    return code ? code : REAL(f)->pMethods->xTruncate(REAL(f), size);
}

static int file_sync(sqlite3_file *f, int flags)
{
    (void)f, (void)flags;
    return strike(FAULT_SYNC);
}

static int file_size(sqlite3_file *f, sqlite3_int64 *size)
{
    return REAL(f)->pMethods->xFileSize(REAL(f), size);
}

static int file_lock(sqlite3_file *f, int level)
{
    return REAL(f)->pMethods->xLock(REAL(f), level);
}

static int file_unlock(sqlite3_file *f, int level)
{
    return REAL(f)->pMethods->xUnlock(REAL(f), level);
}

static int file_reserved(sqlite3_file *f, int *out)
{
    return REAL(f)->pMethods->xCheckReservedLock(REAL(f), out);
}

static int file_control(sqlite3_file *f, int op, void *arg)
{
    return REAL(f)->pMethods->xFileControl(REAL(f), op, arg);
}

static int file_sector(sqlite3_file *f) { return REAL(f)->pMethods->xSectorSize(REAL(f)); }

static int file_traits(sqlite3_file *f)
{
    return REAL(f)->pMethods->xDeviceCharacteristics(REAL(f));
}

static int shm_map(sqlite3_file *f, int page, int size, int extend, void volatile **out)
{
    int code = strike(FAULT_SHM_MAP);
    return code ? code : REAL(f)->pMethods->xShmMap(REAL(f), page, size, extend, out);
}

static int shm_lock(sqlite3_file *f, int offset, int n, int flags)
{
    int code = flags & SQLITE_SHM_LOCK ? strike(FAULT_SHM_LOCK) : SQLITE_OK;
    return code ? code : REAL(f)->pMethods->xShmLock(REAL(f), offset, n, flags);
}

static void shm_barrier(sqlite3_file *f) { REAL(f)->pMethods->xShmBarrier(REAL(f)); }

static int shm_unmap(sqlite3_file *f, int delete)
{
    return REAL(f)->pMethods->xShmUnmap(REAL(f), delete);
}

static const sqlite3_io_methods methods = {
    .iVersion = 2,
    .xClose = file_close,
    .xRead = file_read,
    .xWrite = file_write,
    .xTruncate = file_truncate,
    .xSync = file_sync,
    .xFileSize = file_size,
    .xLock = file_lock,
    .xUnlock = file_unlock,
    .xCheckReservedLock = file_reserved,
    .xFileControl = file_control,
    .xSectorSize = file_sector,
    .xDeviceCharacteristics = file_traits,
    .xShmMap = shm_map,
    .xShmLock = shm_lock,
    .xShmBarrier = shm_barrier,
    .xShmUnmap = shm_unmap,
};

static int vfs_open(sqlite3_vfs *self, sqlite3_filename name, sqlite3_file *base, int flags,
                    int *out_flags)
{
    (void)self;
    struct faulty_file *f = (struct faulty_file *)(void *)base;
    f->base.pMethods = NULL;
    f->real = (sqlite3_file *)(void *)(f + 1);
    int code = strike(FAULT_OPEN);
    if (!code)
        code = real_vfs->xOpen(real_vfs, name, f->real, flags, out_flags);
    if (!code)
        f->base.pMethods = &methods;
    return code;
}

void fault_vfs_register(void)
{
    real_vfs = sqlite3_vfs_find(NULL);
    vfs = *real_vfs;
    vfs.zName = FAULT_VFS;
    vfs.szOsFile = (int)sizeof(struct faulty_file) + real_vfs->szOsFile;
    vfs.xOpen = vfs_open;
    sqlite3_vfs_register(&vfs, 0);
}
