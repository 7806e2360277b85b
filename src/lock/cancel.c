/* See cancel.h.  The trigger is one atomic store and one write(2), both of which a signal handler
 * may do. */
#include "lock/cancel.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/status.h"
#include "base/wait.h"

struct hf_cancel {
    int fd; /* an eventfd: once written to it stays readable */
    atomic_bool triggered;
};

struct hf_cancel *hf_cancel_new(void)
{
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0)
        return NULL;
    struct hf_cancel *cancel = hf_alloc(sizeof *cancel);
    cancel->fd = fd;
    return cancel;
}

void hf_cancel_trigger(struct hf_cancel *cancel)
{
    if (!cancel)
        return;
    int error = errno; /* a signal handler must leave it alone */
    uint64_t one = 1;
    atomic_store(&cancel->triggered, true);
    ssize_t n = write(cancel->fd, &one, sizeof one);
    (void)n; /* a full counter is readable, too */
    errno = error;
}

bool hf_cancel_is_triggered(const struct hf_cancel *cancel)
{
    return cancel && atomic_load_explicit(&cancel->triggered, memory_order_acquire);
}

void hf_cancel_free(struct hf_cancel *cancel)
{
    if (!cancel)
        return;
    close(cancel->fd);
    free(cancel);
}

int cancel_fd(const struct hf_cancel *cancel) { return cancel ? cancel->fd : -1; }

void cancel_sleep_us(const struct hf_cancel *cancel, int64_t us)
{
    if (!cancel) {
        wait_sleep_us(us);
        return;
    }
    int64_t until_us = wait_now_us() + us;
    struct pollfd file = {.fd = cancel->fd, .events = POLLIN};
    for (int64_t left_us; (left_us = until_us - wait_now_us()) > 0;)
        if (wait_files(&file, 1, left_us) > 0)
            return;
}
