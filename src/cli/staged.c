/* See staged.h. */
#include "cli/staged.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/private_file.h"
#include "cli/common.h"

static bool fail(const struct staged *s, const char *what, const char *path)
{
    cli_say(s->command, "cannot %s %.300s: %s", what, path, strerror(errno));
    return false;
}

static char *join(const char *path, const char *suffix)
{
    struct buf b = {0};
    buf_str(&b, path);
    buf_str(&b, suffix);
    buf_char(&b, '\0');
    return b.data;
}

void staged_tidy(const struct staged *s)
{
    static const char *const suffixes[] = {"-journal", "-wal", "-shm", ".lock"};
    for (size_t i = 0; s->work && i < sizeof suffixes / sizeof *suffixes; i++) {
        char *name = join(s->work, suffixes[i]);
        (void)unlink(name);
        free(name);
    }
}

/* The process that had the lock may have given the file its name, or removed it, since it was
 * opened here. */
static bool is_named(int fd, const char *path)
{
    struct stat here, there;
    return fstat(fd, &here) == 0 && stat(path, &there) == 0 && here.st_ino == there.st_ino &&
           here.st_dev == there.st_dev;
}

bool staged_begin(struct staged *s, const char *command, const char *path)
{
    *s =
        (struct staged){.command = command, .path = join(path, ""), .work = join(path, ".partial")};
    struct hf_err err = {0};
    s->fd = private_file_open(s->work, geteuid(), &err);
    if (s->fd < 0) {
        cli_say(command, "cannot create %s", err.msg);
        return false;
    }
    if (flock(s->fd, LOCK_EX | LOCK_NB) != 0 || !is_named(s->fd, s->work)) {
        cli_say(command, "another process is writing %.300s", s->work);
        (void)close(s->fd);
        s->fd = -1;
        return false;
    }
    staged_tidy(s);
    if (ftruncate(s->fd, 0) != 0)
        return fail(s, "empty", s->work);
    return true;
}

bool staged_has_room(const struct staged *s, int64_t bytes)
{
    struct statvfs disk;
    if (fstatvfs(s->fd, &disk) != 0)
        return fail(s, "look at the disk of", s->work);
    int64_t free_bytes = (int64_t)disk.f_bavail * (int64_t)disk.f_frsize;
    if (free_bytes >= bytes + bytes / 10)
        return true;
    cli_say(s->command, "the disk of %.300s has %lld MB free, and %lld MB are needed", s->path,
            (long long)(free_bytes >> 20), (long long)((bytes + bytes / 10) >> 20) + 1);
    return false;
}

bool staged_sync(const struct staged *s) { return fsync(s->fd) == 0 || fail(s, "sync", s->work); }

bool staged_commit(struct staged *s)
{
    if (!staged_sync(s))
        return false;
    if (rename(s->work, s->path) != 0)
        return fail(s, "create", s->path);
    char *folder = join(s->path, "");
    int fd = open(dirname(folder), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool synced = fd >= 0 && fsync(fd) == 0;
    if (!synced)
        (void)fail(s, "sync the folder of", s->path);
    if (fd >= 0)
        (void)close(fd);
    free(folder);
    return synced;
}

void staged_close(struct staged *s)
{
    if (s->path && s->fd >= 0) {
        if (is_named(s->fd, s->work))
            (void)unlink(s->work);
        staged_tidy(s);
        (void)close(s->fd);
    }
    free(s->path);
    free(s->work);
    *s = (struct staged){.fd = -1};
}
