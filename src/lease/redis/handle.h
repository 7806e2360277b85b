/* A handle of the Redis driver, for the files of this folder: redis.c opens it and takes, renews
 * and releases leases; replicas.c waits for replicas; wait.c waits for a turn; inspect.c shows
 * locks; examine.c looks at the server's settings.  A handle belongs to one thread at a time and
 * shares nothing with other handles. */
#ifndef HF_LEASE_REDIS_HANDLE_H
#define HF_LEASE_REDIS_HANDLE_H

#include "lease/redis/request.h"

#define OWNER_LEN (2 * LEASE_OWNER_SIZE)
#define CHANNEL_SIZE (REDIS_KEY_SIZE + sizeof ":wake:" + OWNER_LEN)

/* The waiter that the second connection listens for. */
struct subscription {
    char channel[CHANNEL_SIZE]; /* "": none */
    uint8_t owner[LEASE_OWNER_SIZE];
    unsigned dials;  /* of the first connection, when the second one was subscribed */
    int64_t look_us; /* when the server is asked about the place again at the latest */
    int64_t turn_us; /* when the lease before it ends at the latest; INT64_MAX: not known */
};

struct redis {
    struct lease lease;
    struct redis_address address;
    struct redis_caller caller;
    struct redis_link messages;
    struct subscription waiter;
};

static inline struct redis *redis_of(struct lease *l) { return (struct redis *)(void *)l; }

/* ---- redis.c ---- */

/* Reads a script's answer to the request `q`. */
struct lease_verdict redis_verdict(const redisReply *reply, const struct lease_request *q);

/* ---- replicas.c ---- */

/* If the URL wants that many replicas to have what was just granted or renewed: waits until they
 * have it, in the rest of the call's time, which began at begun_us.  HF_UNKNOWN: too few had it in
 * time. */
enum hf_result redis_await_replicas(struct redis *r, const struct lease_verdict *verdicts, size_t n,
                                    int64_t begun_us, struct hf_fault *fault);

/* ---- wait.c ---- */

/* Remembers what an answer says about the subscribed waiter's turn. */
void redis_note_turn(struct redis *r, const struct lease_request *q, const redisReply *reply);
enum hf_result redis_wait(struct lease *l, const struct lease_request *request, int64_t timeout_ms,
                          struct hf_fault *fault);

/* ---- inspect.c ---- */

enum hf_result redis_inspect(struct lease *l, const char *key, size_t key_len,
                             struct lease_state *ret, struct hf_fault *fault);
enum hf_result redis_list(struct lease *l, const char *prefix, size_t prefix_len,
                          lease_each_name *each, void *ctx, struct hf_fault *fault);
enum hf_result redis_break(struct lease *l, const char *key, size_t key_len,
                           struct hf_fault *fault);

/* ---- examine.c ---- */

enum hf_result redis_examine(struct lease *l, lease_each_finding *each, void *ctx,
                             struct hf_fault *fault);

#endif
