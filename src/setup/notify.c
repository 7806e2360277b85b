/* See notify.h.  For one thread, the main thread of a daemon. */
#include "setup/notify.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#define MESSAGE_SIZE 1024

bool notify_open(struct notifier *n, const char *address, struct hf_err *err)
{
    if (!address || !*address)
        return true;
    size_t len = strlen(address);
    struct notifier made = {.to = {.sun_family = AF_UNIX}};
    if ((*address != '/' && *address != '@') || len >= sizeof made.to.sun_path) {
        (void)hf_err_set(err, HF_INVALID_REQUEST, "NOTIFY_SOCKET is not the address of a socket");
        return false;
    }
    memcpy(made.to.sun_path, address, len);
    if (*address == '@')
        made.to.sun_path[0] = '\0';
    made.to_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
    made.fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (made.fd < 0) {
        (void)hf_err_set(err, HF_INTERNAL, "no socket for NOTIFY_SOCKET: %s", strerror(errno));
        return false;
    }
    (void)setsockopt(made.fd, SOL_SOCKET, SO_SNDTIMEO, &(struct timeval){.tv_sec = 1},
                     sizeof(struct timeval));
    made.open = true;
    *n = made;
    return true;
}

void notify_close(struct notifier *n)
{
    if (n->open)
        (void)close(n->fd);
    *n = (struct notifier){0};
}

void notify_send(const struct notifier *n, const char *fmt, ...)
{
    char message[MESSAGE_SIZE];
    if (!n->open)
        return;
    va_list values;
    va_start(values, fmt);
    int len = vsnprintf(message, sizeof message, fmt, values);
    va_end(values);
    size_t sent = len < MESSAGE_SIZE ? (size_t)len : sizeof message - 1;
    while (sendto(n->fd, message, sent, MSG_NOSIGNAL, (const struct sockaddr *)&n->to, n->to_len) <
               0 &&
           errno == EINTR)
        ;
}

int64_t notify_watchdog_us(const char *usec, const char *pid, pid_t self)
{
    if (!usec || (pid && *pid && atoll(pid) != self))
        return 0;
    char *end;
    errno = 0;
    long long us = strtoll(usec, &end, 10);
    return errno || end == usec || *end || us < 0 ? 0 : us;
}
