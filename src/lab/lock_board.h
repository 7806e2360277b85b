/* What the clients of `holdfast lab locks` and the lab that started them share: a file that all of
 * them map, with one page per client.  The lab writes `task` before it starts the client and only
 * reads afterwards; the client writes the rest.  A client that is stopped or killed leaves its page
 * as it was, and the lab can still read it.
 *
 * Times are microseconds of CLOCK_BOOTTIME, which is one clock for all processes of a machine. */
#ifndef HF_LAB_LOCK_BOARD_H
#define HF_LAB_LOCK_BOARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "lab/servers.h"

#define LOCK_CLIENTS_MAX 128
#define LOCK_GRANTS_MAX 8192 /* of one client */

enum lock_work {
    LOCK_SPEED, /* takes and releases the lock for `seconds`, without rivals */
    LOCK_LOOP,  /* takes the lock, holds it for `hold_ms`, releases it, again and again */
    LOCK_KEEP,  /* keeps its first grant until it is told to release it, then as LOCK_LOOP */
    LOCK_VISIT, /* as LOCK_LOOP, but does not wait in the queue: it asks again and again */
};

struct lock_task {
    enum lock_work work;
    char url[SERVER_URL_SIZE];
    char name[64];
    int64_t ttl_ms, hold_ms;
    double seconds;
};

/* One grant.  A time that has not come is 0. */
struct lock_grant {
    _Atomic int64_t granted_us;
    _Atomic int64_t released_us; /* when the client began to release it */
    _Atomic int64_t lost_us;     /* when the client was told that it had lost it */
    _Atomic int64_t deadline_us; /* the client may rely on the lock until then */
    _Atomic int64_t fence;
};

enum lock_client_state { LOCK_STARTS, LOCK_ASKS, LOCK_HOLDS, LOCK_FAILED };

struct board_page {
    struct lock_task task;
    _Atomic int state; /* enum lock_client_state */
    _Atomic uint64_t n_grants;
    _Atomic bool is_full; /* n_grants is LOCK_GRANTS_MAX, and the client takes no more */
    char failure[256];    /* written before `state` becomes LOCK_FAILED */
    /* Of LOCK_SPEED, written before the client ends. */
    struct lock_speed {
        uint64_t n;
        double seconds, p50_us, p99_us;
    } speed;
    struct lock_grant grants[LOCK_GRANTS_MAX];
};

struct lock_board {
    struct board_page pages[LOCK_CLIENTS_MAX];
};

#endif
