/* Waiting on a server, for all handles of a family at once: one thread with one connection listens
 * for wake-ups on the family's topic, passes each on to the thread that waits, and keeps the places
 * of all of them with one statement.  It runs from the first wait until the family is closed, and
 * closes its connection when nothing has waited for a while.  While it cannot listen, waiters look
 * by themselves.  Any thread. */
#ifndef HF_LEASE_SQL_LISTENER_H
#define HF_LEASE_SQL_LISTENER_H

#include "lease/lease.h"
#include "lease/sleeper.h"
#include "lease/sql/family.h"

/* A waiting call; belongs to its thread's stack, and to the family's mutex between join and
 * leave. */
struct listener_sleeper {
    struct listener_sleeper *prev, *next;
    const struct lease_request *request;
    char owner[2 * LEASE_OWNER_SIZE + 1];
    struct sleeper sleeper;
};

void listener_init(struct sql_family *family);
void listener_close(struct sql_family *family);

/* Wake-ups that are sent from now on are noticed by listener_sleep.  `wake_fd` is that of the
 * handle. Fails if there is no thread to be had. */
HF_MUST_USE enum hf_status listener_join(struct sql_family *family,
                                         struct listener_sleeper *sleeper,
                                         const struct lease_request *request, int wake_fd,
                                         struct hf_err *err);
void listener_leave(struct sql_family *family, struct listener_sleeper *sleeper);
/* Sleeps until the sleeper is woken (true), or wake_fd is readable, for at most timeout_ms; shorter
 * while wake-ups do not arrive. */
bool listener_sleep(struct sql_family *family, struct listener_sleeper *sleeper, int wake_fd,
                    int64_t timeout_ms);
/* Wakes the sleeper of this owner, if there is one. */
void listener_wake(struct sql_family *family, const char *owner);

#endif
