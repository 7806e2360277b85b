/* The lock service as the program's options have it: which journal, under which address, with which
 * limits.  On the main thread, when the server starts and stops. */
#ifndef HF_SETUP_LOCKS_H
#define HF_SETUP_LOCKS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/status.h"
#include "cell/command.h"

struct api;
struct cell;

/* Texts of the options; NULL: not given. */
struct lock_options {
    const char *journal;   /* a URL, or "off" */
    bool ledger_is_shared; /* by several servers; the service is off then unless told otherwise */
    const char *scheme;    /* of the server's own URL: http or https */
    const char *advertise, *timeout, *sessions_max;
    bool may_lose;
};

struct locks {
    struct cell *cell;          /* NULL: the lock service is off */
    const char *driver;         /* the kind of journal */
    bool is_shared;             /* other servers may use the journal, too */
    uint32_t sessions_max;      /* that one access key may have open */
    char url[CELL_URL_MAX + 1]; /* how others reach this server */
    char journal[PATH_MAX + 32];
};

/* Checks the options, opens the journal and starts the cell's thread.  `address` is where the
 * server listens.  HF_INVALID_REQUEST: the message says which option is wrong. */
HF_MUST_USE enum hf_status locks_start(struct locks *l, const struct lock_options *o,
                                       const char *data, const char *address,
                                       const struct clock *clock, struct metrics *metrics,
                                       struct hf_err *err);
/* Tells the API of the lock service. */
void locks_serve(const struct locks *l, struct api *api);

/* The server is about to stop.  A master of a shared journal hands over at once, so that others
 * grant locks while this server still redirects; without another server locks are served on. */
void locks_leave(struct locks *l);
/* Ends what waits for locks, before the HTTP server drains. */
void locks_drain(struct locks *l);
/* When no HTTP thread runs any more. */
void locks_stop(struct locks *l);

#endif
