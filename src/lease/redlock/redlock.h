/* The Redlock driver's insides, which its files share.
 *
 *   url.c      the URL: addresses, max_ttl
 *   fan.c      exchanges with all servers at once; which servers are worth waiting for
 *   join.c     which servers count: restarted and flushed servers stay out for max_ttl
 *   grant.c    acquire, renew, release: the rules
 *   votes.c    ... asking, counting votes, the fence
 *   wait.c     waiting for a release
 *   inspect.c  inspect, list, break
 *   examine.c  what the servers' settings mean for locks
 *   redlock.c  handles and the driver's table
 *
 * A handle belongs to one thread at a time.  Handles that come from one open by way of clone share
 * only `struct redlock_health`, whose members are atomic. */
#ifndef HF_LEASE_REDLOCK_REDLOCK_H
#define HF_LEASE_REDLOCK_REDLOCK_H

#include <stdatomic.h>

#include "base/random.h"
#include "lease/lease.h"
#include "redis/call.h"

#define SERVERS_MIN 3
#define SERVERS_MAX 15
#define RUN_ID_LEN 40
#define STATE_SIZE 128
#define WHY_SIZE sizeof((struct hf_fault *)0)->msg
#define OWNER_LEN (2 * LEASE_OWNER_SIZE)
#define MAX_TTL_MS 60000 /* unless the URL says otherwise */

#define KEY_HEAD "holdfast:{"
#define KEY_TAIL "}:redlock"
#define KEY_SIZE (sizeof KEY_HEAD + LEASE_NAME_MAX + sizeof KEY_TAIL)
#define KEY_STATE "holdfast:redlock:state"
#define KEY_FENCE "holdfast:redlock:fence"
#define KEY_VOUCHED "holdfast:redlock:vouched"

/* Which of the servers: one bit each. */
typedef uint32_t server_set;

enum outcome {
    OUTCOME_NONE,     /* nothing was sent */
    OUTCOME_PENDING,  /* sent; not all answers are here */
    OUTCOME_ANSWERED, /* caller.replies has the answers */
    OUTCOME_REFUSED,  /* it executed nothing */
    OUTCOME_LOST,     /* it may have executed the commands, or some, or none */
};

struct redlock_server {
    struct redis_address address;
    struct redis_caller caller;
    /* Its state (see join.c) if it counts, which every script that locks compares; "": it does not
     * count, or that is not known yet. */
    char state[STATE_SIZE];
    int64_t look_us;    /* when it is worth asking for its state again, if `state` is empty */
    bool is_silent;     /* answers are overdue on the link; nothing is read from it any more */
    bool is_slow;       /* its link was connected with more time than short_ms */
    char why[WHY_SIZE]; /* why it cannot be used, if it cannot */
    /* Of the exchange under way. */
    enum outcome outcome;
    size_t n_wanted;
    VEC(redisReply *) got;
};

/* What the handles of one open know about servers that failed. */
struct redlock_health {
    atomic_uint refs;
    struct {
        _Atomic int64_t until_us; /* not worth waiting for before then (boot-time clock) */
        atomic_uint failures;     /* in a row */
    } down[SERVERS_MAX];
};

/* The waiter that the extra connection listens for. */
struct redlock_waiter {
    struct redis_link messages;
    size_t server;          /* whose link it is */
    char channel[KEY_SIZE]; /* "": none */
    char asked[KEY_SIZE];   /* the lock that the rest is about; "": none */
    int64_t free_us;   /* when it is worth asking again, message or not; INT64_MAX: not known */
    server_set taken;  /* where another owner has the lock */
    int64_t woken_us;  /* when the last wait ended */
    unsigned n_misses; /* attempts in a row that came too late after a release */
};

struct redlock {
    struct lease lease;
    const struct clock *clock;
    int64_t timeout_ms, short_ms; /* of a call; of one server when the others have answered */
    int64_t max_ttl_ms;
    size_t n_servers, majority;
    struct redlock_server *servers;
    struct redlock_health *health;
    struct redlock_waiter waiter;
    struct random random;
    int64_t used_us;  /* when the last exchange began */
    int64_t begun_us; /* when the call under way began */
    int64_t until_us; /* when it has to end */
};

static inline struct redlock *redlock_of(struct lease *l) { return (struct redlock *)(void *)l; }
static inline server_set bit_of(size_t i) { return (server_set)1 << i; }
static inline size_t count_of(server_set set) { return (size_t)__builtin_popcount(set); }

/* ---- url.c ---- */

struct redlock_url {
    struct redis_address addresses[SERVERS_MAX];
    size_t n;
    int64_t max_ttl_ms;
};
HF_MUST_USE enum hf_result redlock_url_parse(const char *url, struct redlock_url *ret,
                                             struct hf_fault *fault);
void redlock_url_close(struct redlock_url *u);

/* ---- fan.c ---- */

struct fan {
    server_set to;
    size_t n; /* commands for each server */
    void *ctx;
    /* Calls redis_put for command i of a server; called again if the server lacks the script. */
    void (*put)(struct redlock *r, size_t server, void *ctx, size_t i);
    /* Has the answer to command i the right form?  Not called for errors. */
    bool (*fits)(void *ctx, size_t i, const redisReply *reply);
    int64_t until_us;
    bool may_be_silent; /* commands also go to silent links, whose answers are not awaited */
};
/* Starts a call: it has to end within timeout_ms and, if that is not 0, limit_ms. */
void fan_begin(struct redlock *r, int64_t limit_ms);
/* Connects as many servers as possible.  A server that failed lately is left alone, unless there
 * is no majority without it; with keep_silent also then, if its link is silent, so that a release
 * can follow the request that was not answered. */
void fan_connect(struct redlock *r, bool keep_silent);
/* Is an answer overdue that may come before the call has to end? */
bool fan_may_answer(const struct redlock *r);
server_set fan_open(const struct redlock *r);  /* servers with a link that can be used */
server_set fan_ready(const struct redlock *r); /* ... and that count */
/* Sends the commands to all servers at once, and gathers the answers until until_us.  Once a
 * majority has answered, without those that are known not to count, the others get until short_ms
 * after the beginning.  Fills every server's outcome; the caller frees the replies with fan_done.
 */
void fan_run(struct redlock *r, const struct fan *fan);
void fan_done(struct redlock *r);
/* HF_UNREACHABLE or HF_UNKNOWN, with a message that says of each server in `failed` why. */
enum hf_result fan_fault(const struct redlock *r, enum hf_result result, server_set failed,
                         struct hf_fault *fault);

/* ---- join.c ---- */

/* Finds out which of the connected servers count, where that is not known. */
void redlock_join(struct redlock *r);
/* Does a server whose KEY_STATE is `state` count in this run?  If it is noted to be out,
 * *ret_left_us is how long it still is by its clock, which says now_us; otherwise -1. */
bool redlock_state_has_vote(const char *state, const char *run_id, int64_t now_us,
                            int64_t *ret_left_us);

/* ---- votes.c ---- */

/* The key of a lock, with a NUL; returns its length. */
size_t redlock_key(char ret[KEY_SIZE], const char *name, size_t len);

/* ---- grant.c ---- */

enum hf_result redlock_acquire(struct lease *l, const struct lease_request *q,
                               struct lease_verdict *verdict, struct hf_fault *fault);
enum hf_result redlock_renew(struct lease *l, const struct lease_request *requests, size_t n,
                             struct lease_verdict *verdicts, struct hf_fault *fault);
enum hf_result redlock_release(struct lease *l, const struct lease_request *requests, size_t n,
                               struct lease_verdict *verdicts, struct hf_fault *fault);

/* ---- wait.c, inspect.c, examine.c ---- */

/* Remembers when it is worth asking again for the lock that `q` did not get, although `n_won`
 * servers locked it, and that others hold on the servers `taken` for remaining_ms (-1: not known).
 */
void redlock_note_taken(struct redlock *r, const struct lease_request *q, size_t n_won,
                        server_set taken, int64_t remaining_ms);
enum hf_result redlock_wait(struct lease *l, const struct lease_request *request,
                            int64_t timeout_ms, struct hf_fault *fault);
enum hf_result redlock_inspect(struct lease *l, const char *key, size_t key_len,
                               struct lease_state *ret, struct hf_fault *fault);
enum hf_result redlock_list(struct lease *l, const char *prefix, size_t prefix_len,
                            lease_each_name *each, void *ctx, struct hf_fault *fault);
enum hf_result redlock_break(struct lease *l, const char *key, size_t key_len,
                             struct hf_fault *fault);
enum hf_result redlock_examine(struct lease *l, lease_each_finding *each, void *ctx,
                               struct hf_fault *fault);

#endif
