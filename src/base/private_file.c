/* See private_file.h.  Any thread; most of it on the main thread, at start and at a reload. */
#include "base/private_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char foreign[] = "it belongs to another user; run as that user, or chown it";

/* ---- secrets that are read as a whole ---- */

/* Reads up to `size` bytes.  Returns -1 with errno on failure. */
static ssize_t read_all(int fd, char *text, size_t size)
{
    size_t len = 0;
    while (len < size) {
        ssize_t n = read(fd, text + len, size - len);
        if (n < 0 && errno != EINTR)
            return -1;
        if (n == 0)
            break;
        len += n > 0 ? (size_t)n : 0;
    }
    return (ssize_t)len;
}

static const char *secret_fault(const struct stat *st, size_t size)
{
    if (!S_ISREG(st->st_mode))
        return "it is not a file";
    if (st->st_uid != geteuid() && st->st_uid != 0)
        return foreign;
    bool of_root = st->st_uid == 0 && geteuid() != 0;
    if (of_root && st->st_mode & (S_IWGRP | S_IXGRP | S_IRWXO))
        return "others than root and its group may use it; chmod 640 it";
    if (!of_root && st->st_mode & (S_IRWXG | S_IRWXO))
        return "others than its owner may use it; chmod 600 it";
    return st->st_size > (off_t)size ? "it is too large" : NULL;
}

bool private_file_read(const char *path, char *text, size_t size, size_t *ret_len,
                       struct hf_err *err)
{
    struct stat st;
    ssize_t len = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool opened = fd >= 0 && fstat(fd, &st) == 0;
    const char *fault = opened ? secret_fault(&st, size) : strerror(errno);
    if (!fault && (len = read_all(fd, text, size)) < 0)
        fault = strerror(errno);
    if (fd >= 0)
        (void)close(fd);
    if (fault) {
        (void)hf_err_set(err, HF_INVALID_REQUEST, "%.150s: %s", path, fault);
        return false;
    }
    *ret_len = (size_t)len;
    return true;
}

static bool write_new(const char *path, const char *text, size_t len)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    bool good = fd >= 0 && write(fd, text, len) == (ssize_t)len && fsync(fd) == 0;
    if (fd >= 0 && close(fd) != 0)
        good = false;
    return good;
}

bool private_file_write(const char *path, const char *text, size_t len, struct hf_err *err)
{
    char partial[PATH_MAX];
    if ((size_t)snprintf(partial, sizeof partial, "%s.partial.%ld", path, (long)getpid()) >=
        sizeof partial)
        errno = ENAMETOOLONG;
    else if ((unlink(partial) == 0 || errno == ENOENT) && write_new(partial, text, len) &&
             rename(partial, path) == 0)
        return true;
    (void)hf_err_set(err, HF_INTERNAL, "cannot write %.150s: %s", path, strerror(errno));
    return false;
}

/* ---- files that are kept ---- */

const char *private_file_fault(const struct stat *st, uid_t owner)
{
    if (S_ISLNK(st->st_mode))
        return "it is a symbolic link; put the file itself there";
    if (!S_ISREG(st->st_mode))
        return "it is not a file";
    if (st->st_uid != geteuid() && st->st_uid != owner)
        return foreign;
    if (st->st_nlink != 1)
        return "it has another name as well, a hard link; remove that one";
    if (st->st_mode & (S_IWGRP | S_IXGRP | S_IRWXO))
        return "others than its owner may use it; chmod 600 it";
    return NULL;
}

int private_file_open(const char *path, uid_t owner, struct hf_err *err)
{
    struct stat st;
    int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    const char *fault = fd < 0 && errno != ELOOP ? strerror(errno) : NULL;
    if (!fault && (fd < 0 ? lstat(path, &st) : fstat(fd, &st)) != 0)
        fault = strerror(errno);
    if (!fault)
        fault = private_file_fault(&st, owner);
    if (!fault && fd < 0)
        fault = strerror(ELOOP);
    if (!fault)
        return fd;
    if (fd >= 0)
        (void)close(fd);
    (void)hf_err_set(err, HF_INVALID_REQUEST, "%.150s: %s", path, fault);
    return -1;
}

/* ---- directories ---- */

static int make_all(const char *path)
{
    char partial[PATH_MAX];
    size_t len = strlen(path);
    if (len == 0 || len >= sizeof partial)
        return len ? ENAMETOOLONG : ENOENT;
    memcpy(partial, path, len + 1);
    for (char *slash = partial + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        (void)mkdir(partial, 0700); /* if this fails, so does the last one */
        *slash = '/';
    }
    return mkdir(path, 0700) != 0 && errno != EEXIST ? errno : 0;
}

/* A link in a directory such as /tmp may be another user's, even to a directory of ours. */
static bool is_foreign_link(const char *path)
{
    struct stat st;
    char name[PATH_MAX];
    size_t len = strlen(path);
    while (len > 1 && path[len - 1] == '/')
        len--; /* lstat follows a link with a slash behind it */
    (void)snprintf(name, sizeof name, "%.*s", (int)len, path);
    return lstat(name, &st) == 0 && S_ISLNK(st.st_mode) && st.st_uid != 0 && st.st_uid != geteuid();
}

/* The directory above `path`, which has no links in it, that others may write to without the
 * protection of the sticky bit.  Ends `path` there.  False: there is none. */
static bool find_open_parent(char *path)
{
    struct stat st;
    for (char *slash; (slash = strrchr(path, '/'));) {
        slash[slash == path] = '\0';
        if (stat(path, &st) != 0 || ((st.st_mode & S_IWOTH) && !(st.st_mode & S_ISVTX)))
            return true;
        if (slash == path)
            break;
    }
    return false;
}

static const char *dir_fault(const char *path)
{
    struct stat st;
    if (is_foreign_link(path))
        return "it is a symbolic link of another user";
    if (stat(path, &st) != 0)
        return strerror(errno);
    if (!S_ISDIR(st.st_mode))
        return "it is not a directory";
    if (st.st_uid != geteuid())
        return foreign;
    if (st.st_mode & (S_IWGRP | S_IRWXO))
        return "others than its owner may use it; chmod 700 it";
    return NULL;
}

bool private_dir_make(const char *path, struct hf_err *err)
{
    char real[PATH_MAX];
    int failed = make_all(path);
    const char *fault = failed ? strerror(failed) : dir_fault(path);
    if (!fault && !realpath(path, real))
        fault = strerror(errno);
    if (fault)
        (void)hf_err_set(err, HF_INVALID_REQUEST, "%s", fault);
    else if (find_open_parent(real))
        (void)hf_err_set(err, HF_INVALID_REQUEST,
                         "others may replace it, since they may write to %.120s; chmod o-w that",
                         real);
    else
        return true;
    return false;
}
