/* See private_file.h.  On the main thread, at start and at a reload. */
#include "base/private_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

static const char *file_fault(const struct stat *st, size_t size)
{
    if (!S_ISREG(st->st_mode))
        return "it is not a file";
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
    const char *fault = opened ? file_fault(&st, size) : strerror(errno);
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
