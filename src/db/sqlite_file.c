/* See sqlite_file.h.  Any thread. */
#include "db/sqlite_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define PATH_BYTES 4096

enum hf_status sqlite_file_lock(const char *path, int *ret_fd, struct hf_err *err)
{
    char name[PATH_BYTES], pid[32] = "";
    if ((size_t)snprintf(name, sizeof name, "%s.lock", path) >= sizeof name)
        return hf_err_set(err, HF_INVALID_REQUEST, "the path of the database is too long");
    int fd = *ret_fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return hf_err_set(err, HF_LEDGER_UNAVAILABLE, "cannot create %s: %s", name,
                          strerror(errno));
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        ssize_t n = pread(fd, pid, sizeof pid - 1, 0);
        return hf_err_set(err, HF_LEDGER_UNAVAILABLE,
                          "another holdfastd%s%.*s is already running on %s",
                          n > 0 ? " with process id " : "", n > 0 ? (int)n : 0, pid, path);
    }
    int len = snprintf(pid, sizeof pid, "%ld", (long)getpid());
    if (ftruncate(fd, 0) != 0 || pwrite(fd, pid, (size_t)len, 0) != len)
        return hf_err_set(err, HF_LEDGER_UNAVAILABLE, "cannot write %s: %s", name, strerror(errno));
    return HF_OK;
}

static int64_t file_bytes(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? (int64_t)st.st_size : 0;
}

enum hf_status sqlite_file_sizes(const char *path, struct db_sizes *ret, struct hf_err *err)
{
    struct statvfs disk;
    char log[PATH_BYTES + 8];
    (void)snprintf(log, sizeof log, "%s-wal", path);
    if (statvfs(path, &disk) != 0)
        return hf_err_set(err, HF_LEDGER_UNAVAILABLE, "%s: %s", path, strerror(errno));
    *ret = (struct db_sizes){.database_bytes = file_bytes(path),
                             .log_bytes = file_bytes(log),
                             .disk_bytes = (int64_t)(disk.f_blocks * disk.f_frsize),
                             .disk_free_bytes = (int64_t)(disk.f_bavail * disk.f_frsize)};
    return HF_OK;
}
