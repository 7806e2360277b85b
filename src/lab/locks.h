/* `holdfast lab locks`: the lock drivers compared by measurement.  For each driver it starts a
 * throwaway coordinator (coordinators.h) and real clients (lock_crowd.h), measures speed and
 * hand-overs, and then breaks things on purpose and reads from the clients' grants what became of
 * the locks (lock_history.h).  Nothing is asserted: a number that could not be measured has a
 * reason in its place.
 *
 * Main thread only: it starts servers (see servers.h). */
#ifndef HF_LAB_LOCKS_H
#define HF_LAB_LOCKS_H

#include <signal.h>

#include "base/buf.h"
#include "holdfast.h"
#include "lab/coordinators.h"
#include "lab/machine.h"

#define LOCKS_CROWDS 3
#define LOCKS_WAITERS_MAX 120
#define LOCKS_AT_ONCE_MAX 40
#define LOCKS_TTL_MIN_MS 500
#define LOCKS_TTL_MAX_MS 5000 /* redlock's servers are started for it */
#define LOCKS_WHY_SIZE 160

enum locks_fault_kind {
    LOCKS_CLIENT_PAUSED,
    LOCKS_CLIENT_KILLED,
    LOCKS_SERVER_KILLED,
    LOCKS_SERVER_EMPTY,
    LOCKS_MINORITY_LOST,
    LOCKS_CLOCK_FORWARD,
    LOCKS_CLOCK_BACK,
    LOCKS_CUT_SHORT,
    LOCKS_CUT_LONG,
    LOCKS_FAULTS
};
/* "client_paused", and "client paused for 1.5 TTL". */
const char *locks_fault_name(enum locks_fault_kind kind);
const char *locks_fault_title(enum locks_fault_kind kind);

struct locks_settings {
    const char *servers; /* "redis,etcd", or "all" */
    double seconds;      /* of each measurement of speed */
    int64_t ttl_ms;      /* of the locks that are broken */
    int waiters[LOCKS_CROWDS];
    int locks;                         /* how many locks suffer each fault at once */
    const volatile sig_atomic_t *stop; /* ends the run once it is not 0; may be NULL */
    void (*progress)(void *ctx, const char *driver, const char *what); /* may be NULL */
    void *ctx;
};
#define LOCKS_SETTINGS_USUAL                                                                       \
    .servers = "all", .seconds = 2, .ttl_ms = 2000, .waiters = {2, 32, 100}, .locks = 5
#define LOCKS_SETTINGS_QUICK                                                                       \
    .servers = "all", .seconds = 0.3, .ttl_ms = 800, .waiters = {2, 4, 8}, .locks = 3

/* In each of these, `why` is "" if the rest was measured, and otherwise says why it was not. */

/* One client takes and releases a lock that no other wants. */
struct locks_speed {
    char why[LOCKS_WHY_SIZE];
    uint64_t n;
    double per_second, p50_us, p99_us;
};

/* Clients that all want one lock, and release it as soon as they have it. */
struct locks_crowd {
    char why[LOCKS_WHY_SIZE];
    int waiters;
    uint64_t n; /* hand-overs */
    double p50_us, p99_us;
    uint64_t pairs, in_order; /* of first grants; see history_order */
    uint64_t overlaps, fences_fell;
};

/* The same through relays. */
struct locks_traffic {
    char why[LOCKS_WHY_SIZE];
    int waiters;
    uint64_t n;             /* hand-overs */
    double messages, bytes; /* of one hand-over */
};

/* A fault, while each of several locks is held by one client and wanted by two others. */
struct locks_fault {
    char why[LOCKS_WHY_SIZE];
    int locks;
    int64_t ttl_ms;
    int overlapped; /* locks that two clients held at once */
    int kept;       /* locks that their holder had through the fault */
    int stuck;      /* locks that nobody could get any more while the lab watched */
    uint64_t grants, overlaps, fences_fell;
    double gap_p50_ms, gap_max_ms; /* how long nobody held a lock that was wanted */
    double outage_ms;              /* how long the server was down; 0 if it was not */
    bool is_declared; /* the driver says that two clients can hold a lock after such a fault */
};

struct locks_row {
    const char *driver;
    const struct hf_driver_info *info;
    char why[LOCKS_WHY_SIZE]; /* why nothing at all was measured; "" */
    char version[64];
    struct locks_speed speed;
    struct locks_crowd crowds[LOCKS_CROWDS];
    struct locks_traffic traffic;
    struct locks_fault faults[LOCKS_FAULTS];
};

struct locks_result {
    int64_t at_ms; /* when it began, since 1970 */
    double seconds;
    struct locks_settings settings;
    struct machine machine;
    char holdfast[32];
    struct locks_row rows[COORDINATOR_KINDS];
    size_t n;
    bool ok; /* no overlap but those that drivers declare */
};

/* Measures one driver after the other.  HF_INVALID_REQUEST if there is no such server, HF_DRAINING
 * if `stop` ended it, HF_UNAVAILABLE if the lab's own directory or memory cannot be had.  A server
 * that is not installed or does not start has its reason in its row. */
HF_MUST_USE enum hf_status locks_run(const struct locks_settings *settings,
                                     struct locks_result *ret, struct hf_err *err);
/* Writes {"object":"lab.locks",...} without a newline. */
void locks_json(const struct locks_result *result, struct buf *out);

#endif
