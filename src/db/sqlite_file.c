/* See sqlite_file.h.  Any thread. */
#include "db/sqlite_file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/private_file.h"

#define PATH_BYTES 4096
#define PID_BYTES 32

/* ---- whose files they are ---- */

/* Others who may write to the directory could put files there under the names that SQLite is about
 * to use, or take ours away.  In a sticky one, such as /tmp, they can only be there first, and
 * check_files finds that. */
static enum hf_status check_folder(const char *path, uid_t *ret_owner, struct hf_err *err)
{
    char copy[PATH_BYTES];
    struct stat st;
    (void)snprintf(copy, sizeof copy, "%s", path);
    const char *folder = dirname(copy);
    if (stat(folder, &st) != 0)
        return hf_err_set(err, HF_STORE_UNAVAILABLE, "cannot open %.100s: its directory: %s", path,
                          strerror(errno));
    if ((st.st_mode & S_IWOTH) && !(st.st_mode & S_ISVTX))
        return hf_err_set(err, HF_STORE_UNAVAILABLE,
                          "everybody may write to the directory %.150s; chmod o-w it", folder);
    *ret_owner = st.st_uid;
    return HF_OK;
}

enum hf_status sqlite_file_trust(const char *path, struct hf_err *err)
{
    char copy[PATH_BYTES];
    struct stat file, folder;
    (void)snprintf(copy, sizeof copy, "%s", path);
    bool is_foreign = lstat(path, &file) == 0 && file.st_uid != geteuid() && file.st_uid != 0;
    if (is_foreign && stat(dirname(copy), &folder) == 0 && (folder.st_mode & S_IWOTH))
        return hf_err_set(err, HF_STORE_UNAVAILABLE,
                          "%.100s belongs to another user, and everybody may put files into its "
                          "directory; use another directory",
                          path);
    return HF_OK;
}

/* Creates the database, so that it is never readable by others, whatever the umask is; SQLite gives
 * its other files the same mode. */
static enum hf_status create(const char *path, struct hf_err *err)
{
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return hf_err_set(err, HF_STORE_UNAVAILABLE, "cannot create %.150s: %s", path,
                          strerror(errno));
    (void)close(fd);
    return HF_OK;
}

/* With lstat: to open and close a file would drop the locks that SQLite has on it elsewhere in this
 * process. */
static enum hf_status check_files(const char *path, struct hf_err *err)
{
    static const char *const ends[] = {"", "-wal", "-shm", "-journal"};
    bool is_missing = false;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        char name[PATH_BYTES + 16];
        struct stat st;
        (void)snprintf(name, sizeof name, "%s%s", path, ends[i]);
        bool exists = lstat(name, &st) == 0;
        const char *fault = exists ? private_file_fault(&st, geteuid()) : NULL;
        if (fault)
            return hf_err_set(err, HF_STORE_UNAVAILABLE, "%.150s: %s", name, fault);
        is_missing |= i == 0 && !exists;
    }
    return is_missing ? create(path, err) : HF_OK;
}

/* ---- one server ---- */

static enum hf_status write_pid(int fd, const char *name, struct hf_err *err)
{
    char pid[PID_BYTES];
    struct stat st;
    int len = snprintf(pid, sizeof pid, "%ld", (long)getpid());
    if (fstat(fd, &st) != 0 || st.st_size >= PID_BYTES)
        return hf_err_set(err, HF_STORE_UNAVAILABLE, "%.150s is not a lock file; move it away",
                          name);
    if (pwrite(fd, pid, (size_t)len, 0) != len || ftruncate(fd, len) != 0)
        return hf_err_set(err, HF_STORE_UNAVAILABLE, "cannot write %s: %s", name, strerror(errno));
    return HF_OK;
}

enum hf_status sqlite_file_lock(const char *path, int *ret_fd, struct hf_err *err)
{
    char name[PATH_BYTES], pid[PID_BYTES] = "";
    struct hf_err why = {0};
    if ((size_t)snprintf(name, sizeof name, "%s.lock", path) >= sizeof name)
        return hf_err_set(err, HF_INVALID_REQUEST, "the path of the database is too long");
    uid_t us = geteuid(), owner = us;
    enum hf_status status = check_folder(path, &owner, err);
    if (status != HF_OK)
        return status;
    /* Root restores the ledgers of others, whose servers open the file later. */
    owner = us == 0 ? owner : us;
    int fd = *ret_fd = private_file_open(name, owner, &why);
    if (fd < 0)
        return hf_err_set(err, HF_STORE_UNAVAILABLE, "cannot open the lock file %s", why.msg);
    if (owner != us && fchown(fd, owner, (gid_t)-1) != 0)
        return hf_err_set(err, HF_STORE_UNAVAILABLE, "chown %s: %s", name, strerror(errno));
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        ssize_t n = pread(fd, pid, sizeof pid - 1, 0);
        return hf_err_set(err, HF_STORE_UNAVAILABLE,
                          "another holdfastd%s%.*s is already running on %s",
                          n > 0 ? " with process id " : "", n > 0 ? (int)n : 0, pid, path);
    }
    return write_pid(fd, name, err);
}

enum hf_status sqlite_file_own(const char *path, int *ret_fd, struct hf_err *err)
{
    enum hf_status status = sqlite_file_lock(path, ret_fd, err);
    return status == HF_OK ? check_files(path, err) : status;
}

/* ---- sizes ---- */

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
        return hf_err_set(err, HF_STORE_UNAVAILABLE, "%s: %s", path, strerror(errno));
    *ret = (struct db_sizes){.database_bytes = file_bytes(path),
                             .log_bytes = file_bytes(log),
                             .disk_bytes = (int64_t)(disk.f_blocks * disk.f_frsize),
                             .disk_free_bytes = (int64_t)(disk.f_bavail * disk.f_frsize)};
    return HF_OK;
}
