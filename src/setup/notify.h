/* Telling the service manager about a daemon: the protocol of sd_notify(3), which systemd and
 * others speak.  A message is one datagram of lines NAME=VALUE to the socket that NOTIFY_SOCKET
 * names.  Without that variable every call does nothing. */
#ifndef HF_SETUP_NOTIFY_H
#define HF_SETUP_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include "base/status.h"

/* Zeroed, it tells nobody. */
struct notifier {
    bool open;
    int fd;
    struct sockaddr_un to;
    socklen_t to_len;
};

/* `address` is the value of NOTIFY_SOCKET: a path, or @ and a name in the abstract namespace; NULL
 * or empty: there is nobody to tell.  Returns false if there is no such address. */
HF_MUST_USE bool notify_open(struct notifier *n, const char *address, struct hf_err *err);
void notify_close(struct notifier *n); /* accepts a zeroed struct */

/* Sends a message of lines without an end of line after the last, such as "READY=1\nSTATUS=...".
 * Waits at most a second for a full queue; a message that cannot be sent is dropped. */
__attribute__((format(printf, 2, 3))) void notify_send(const struct notifier *n, const char *fmt,
                                                       ...);

/* How often the manager expects WATCHDOG=1, from the values of WATCHDOG_USEC and WATCHDOG_PID
 * (NULL: not set); 0 if it does not expect it of this process. */
int64_t notify_watchdog_us(const char *usec, const char *pid, pid_t self);

#endif
