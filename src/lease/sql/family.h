/* The handles that came from one open by way of clone.  Where the database is a server they share
 * its connections: a handle borrows one for each call, and has none while it waits, so a thousand
 * waiting threads need no more connections than a few.  One further connection listens for all that
 * wait (listener.h).  Where the database is a file each handle keeps the connection that it gets.
 *
 * FAMILY_LINKS_KEPT of the connections are only for what keeps and gives back locks: calls that
 * wait for a lock on a name, because its holder's process was stopped in the middle of a
 * transaction, must not use up the connections that renewals of other names need.  Any thread. */
#ifndef HF_LEASE_SQL_FAMILY_H
#define HF_LEASE_SQL_FAMILY_H

#include <pthread.h>

#include "db/db.h"

#define FAMILY_LINKS_MAX 8
#define FAMILY_LINKS_KEPT 2

struct sql_link;
struct listener_sleeper;

struct sql_listener {
    pthread_t thread;
    bool is_running; /* the thread was started */
    bool stop;
    bool is_listening; /* wake-ups arrive */
    int wake_fd;       /* ends the thread's sleep */
    pthread_cond_t changed;
    struct listener_sleeper *sleepers;
};

struct sql_family {
    char *url;                 /* never changes */
    struct db_options options; /* never change */
    bool has_server;           /* handles share connections */
    int64_t topic;             /* other processes wake our waiters there; 0: none */

    pthread_mutex_t mutex; /* guards everything below; not held while a database is asked */
    pthread_cond_t freed;
    unsigned refs;
    size_t n_taking;  /* connections that are borrowed for anything but keeping locks */
    size_t n_keeping; /* those that are borrowed for keeping locks */
    size_t n_idle;
    struct sql_link *idle[FAMILY_LINKS_MAX]; /* the last one used is taken first */
    struct sql_listener listener;
};

struct sql_family *family_new(const char *url, const struct db_options *options, bool has_server);
struct sql_family *family_ref(struct sql_family *family);
void family_unref(struct sql_family *family);

/* Borrows a connection, which need not be connected; HF_STORE_UNAVAILABLE if none came free within
 * the timeout of an exchange, or within limit_ms if that is shorter and not 0. */
HF_MUST_USE enum hf_status family_borrow(struct sql_family *family, bool to_keep, int64_t limit_ms,
                                         struct sql_link **ret, struct hf_err *err);
/* Gives *link back and sets it to NULL. */
void family_give_back(struct sql_family *family, bool to_keep, struct sql_link **link);

#endif
