/* One suite over every lease driver, which uses lease.h only.  The back end is started once, and
 * the claims run against it, each with names of its own.  What a driver declares in hf_driver_info
 * is tested; what it does not declare must be refused.  Time is the back end's own and therefore
 * real: claims that a lease lasts use long TTLs, and claims that it ends measure.  Include this
 * header first: it includes cmocka and what cmocka needs before it.
 *
 * Each table of claims says which of them depend on what a driver declares.  The claims themselves
 * are the same for all drivers. */
#ifndef HF_TESTS_CONFORMANCE_H
#define HF_TESTS_CONFORMANCE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lease/lease.h"
#include "support/lock.h"
#include "support/port.h"
#include "support/process.h"

/* A URL that cannot be opened, and the permitted results: 1 << HF_UNREACHABLE ... */
struct bad_url {
    const char *what;
    char url[256];
    unsigned results;
};

struct backend {
    const char *name; /* of the driver */
    char url[256];
    bool leases_survive_restart;
    void (*start)(struct backend *b); /* fills the URLs */
    void (*stop)(struct backend *b);
    void (*restart)(struct backend *b); /* NULL: no server; handles are reopened */
    void (*flush)(struct backend *b);   /* forgets everything; NULL: impossible */
    /* Would a lease of this lock that was granted survive a restart now?  NULL: any would. */
    bool (*is_stored)(struct backend *b, const char *key);
    /* Makes a URL of the same back end at another port of 127.0.0.1; NULL: it has no port. */
    void (*url_at)(struct backend *b, int port, char *ret, size_t size);
    int port;
    const char *last_word; /* found only in the last request of a call, "a|b": either of them is;
                              NULL: a call is one request */
    bool in_turn;          /* see relay_take_turns */
    struct bad_url bad_urls[8]; /* ends with a NULL `what` */
};

/* The argument of every claim. */
struct world {
    struct backend *backend;
    const struct lease_driver *driver;
    const struct hf_driver_info *info;
    struct lease *l;
};

/* Runs the whole suite and returns its exit status. */
int conformance_run(struct backend *b);

/* A claim, and what it takes for granted.  A claim without needs is made about every driver.  Where
 * a need is not met, the claim is shown as skipped. */
struct claim {
    const char *name;
    CMUnitTestFunction run;
    unsigned needs;
};
enum {
    NEEDS_FAIR = 1 << 0,      /* waiters have places, and turns */
    NEEDS_SHARED = 1 << 1,    /* shared leases */
    NEEDS_PRIORITY = 1 << 2,  /* priorities of waiters */
    NEEDS_SLOTS = 1 << 3,     /* several exclusive holders at once */
    NEEDS_PROCESSES = 1 << 4, /* processes see each other's leases */
    NEEDS_PORT = 1 << 5,      /* a server at a port, so that connections can be cut */
    NEEDS_FLUSH = 1 << 6,     /* a back end that can be told to forget everything */
    NO_DRIVER = 1 << 7,       /* uses no lease: the claim is made once, in the suite of memory: */
};
#define CLAIM(function, what_it_needs)                                                             \
    {                                                                                              \
#function, function, what_it_needs                                                         \
    }

/* The parts of the suite; each list ends with a NULL name. */
extern const struct claim leases_claims[], queue_claims[], model_claims[], faults_claims[],
    process_claims[], crowd_claims[];

/* ---- a party that wants a lock ---- */

#define LONG_MS 60000
struct party {
    struct lease_request r;
    struct lease_verdict v;
    struct hf_fault fault;
    char key[300];
};
/* Makes a name that no other claim uses. */
void key_make(char ret[64], const char *what);
/* A request of a new owner: exclusive, one slot, for LONG_MS, without a place in the queue. */
void party_init(struct party *p, const char *key);
void party_queued(struct party *p, const char *key);
struct lease_request *party_new_owner(struct party *p);

/* The call must return HF_DONE; returns its verdict.  Where the server's patience with a client is
 * as short as the TTL, a short one may not outlast a pause of the machine: then the answer is lost,
 * and acquire asks again. */
enum hf_result acquire(struct lease *l, struct party *p);
enum hf_result renew(struct lease *l, struct party *p);
enum hf_result release(struct lease *l, struct party *p);
/* Returns the result of the call, which may fail. */
enum hf_result try_acquire(struct lease *l, struct party *p);
/* Another waiter asked at `asked_ms` or later.  Its turn came at `since_ms` or later, and has not
 * been claimed: the request must wait.  Returns false if the machine was too slow to tell, because
 * the turn or the place may have ended meanwhile. */
HF_MUST_USE bool waits_for_turn(struct lease *l, struct party *p, int64_t asked_ms,
                                int64_t since_ms);
/* May the place of a waiter that asked at `asked_ms`, and not since, have ended?  A back end may
 * count from an earlier question, since it does not write down each of them. */
bool place_may_be_lost(int64_t asked_ms);
/* In a claim that returns bool: the condition holds, unless a waiter that asked at `asked_ms` or
 * later may have lost its place. */
#define JUDGE_PLACES(condition, asked_ms)                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            if (place_may_be_lost(asked_ms))                                                       \
                return false;                                                                      \
            fail_msg("%s, and no waiter was silent", #condition);                                  \
        }                                                                                          \
    } while (0)
/* The rest of a lease of `ttl_ms` that was asked for at `asked_ms`, or later, is what it should be.
 */
void assert_remaining(int64_t remaining_ms, int64_t ttl_ms, int64_t asked_ms);
/* Defines the claim `name` by a function that returns false if the machine, or the back end on it,
 * was too slow to tell, and is tried again then: see `timely`. */
#define PATIENT_CLAIM(name)                                                                        \
    static bool name##_of(struct world *w);                                                        \
    static bool name##_once(void *w) { return name##_of(w); }                                      \
    static void name(void **state) { timely(name##_once, *state); }                                \
    static bool name##_of(struct world *w)

/* As acquire, but repeated for up to twenty seconds while the back end cannot be reached. */
enum hf_result acquire_again(struct lease *l, struct party *p);
/* As renew, but repeated while the back end cannot be reached, for as long as a lease lasts.  The
 * client library of ZooKeeper may wait for two thirds of that time for a server that took its
 * connection while it was starting. */
enum hf_result renew_again(struct lease *l, struct party *p);

struct lease *handle_clone(struct lease *l);
/* The test fails with the reason unless the result is HF_DONE. */
struct lease *handle_open(struct world *w);
#define must(result, fault) must_at((result), (fault), __FILE__, __LINE__)
void must_at(enum hf_result result, const struct hf_fault *fault, const char *file, int line);
/* The result is the expected failure, and the fault has a sentence for a person. */
void assert_fault(enum hf_result result, enum hf_result expected, const struct hf_fault *fault);

struct lease_state inspect(struct lease *l, const char *key);

/* ---- time, processes, sockets ---- */

int64_t now_ms(void); /* CLOCK_BOOTTIME */
void rest_ms(int64_t ms);
/* Asks until it is granted, for at most `most_ms`; returns how long that took. */
int64_t acquire_within(struct lease *l, struct party *p, int64_t most_ms);
void contender_path(char ret[512]);

struct scratch {
    char path[128];
};
void scratch_make(struct scratch *dir);
void scratch_remove(struct scratch *dir);

#endif
