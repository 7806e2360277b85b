/* Asking all servers for a batch of requests and counting their votes, for grant.c.  See there for
 * the rules.  Runs on the handle's thread. */
#ifndef HF_LEASE_REDLOCK_VOTES_H
#define HF_LEASE_REDLOCK_VOTES_H

#include "lease/redlock/redlock.h"
#include "lease/redlock/scripts.h"

/* What the servers answered to one request. */
struct tally {
    server_set won;               /* locked, renewed or released it */
    server_set taken;             /* another owner has it */
    server_set missing;           /* renew: nobody has it */
    int64_t fences[SERVERS_MAX];  /* of those that won */
    int64_t left_ms[SERVERS_MAX]; /* of the lease that the server has */
    int64_t fence;                /* of the grant; 0: not known yet */
    size_t n_stored;              /* servers that the fence was written to */
    bool is_shared;               /* renew: the lease is a shared one */
    enum { OPEN, GRANTED, REFUSED } verdict;
};

/* One call: a script for each request on every server. */
struct redlock_call {
    enum redlock_script script;
    const struct lease_request *requests;
    struct tally *tallies;
    size_t n;
    int64_t since_ms;
    server_set answered; /* these have a vote and used it */
    server_set lost;     /* these may have executed it */
    server_set out;      /* these do not count */
    bool is_quiet;       /* release: waiters are not told */
    size_t *which;       /* of a part; NULL: it is no part */
    struct lease_request *copies;
};

/* The caller closes it with votes_close. */
struct redlock_call votes_call(struct redlock *r, enum redlock_script script,
                               const struct lease_request *requests, size_t n);
/* A call for those of the requests that `pick` chooses; which[k] is the number that the k-th of
 * them has in `call`. */
struct redlock_call votes_part(const struct redlock *r, const struct redlock_call *call,
                               enum redlock_script script,
                               bool (*pick)(const struct redlock *r, const struct tally *t));
void votes_close(struct redlock_call *call);

/* Puts the command that runs the script for request i. */
void votes_put(struct redlock *r, size_t server, const struct redlock_call *call,
               enum redlock_script script, size_t i);
bool votes_fit(void *ctx, size_t i, const redisReply *reply);
void votes_ask(struct redlock *r, struct redlock_call *call, server_set to, int64_t until_us);
/* Counts what the servers answered; returns those whose state has changed. */
server_set votes_count(struct redlock *r, struct redlock_call *call);
/* Asks every server that counts.  A server whose state has changed (another client has a longer
 * max_ttl, or it was flushed) is looked at again, and asked again if it still counts. */
void votes_ask_counting(struct redlock *r, struct redlock_call *call);

/* Chooses the fences of all requests that have a majority, and writes those back that are not on a
 * majority yet. */
void votes_store_fences(struct redlock *r, struct redlock_call *call);
/* The k-th smallest time left among the servers in `set`, k from 0; -1: there are fewer. */
int64_t votes_left_ms(const struct tally *t, server_set set, size_t k);
/* How long a majority keeps the lease at least, minus the time that asking took and the drift. */
int64_t votes_validity_ms(const struct redlock *r, const struct tally *t,
                          const struct lease_request *q);
/* Takes back, as far as possible, what the servers have of the requests that `pick` chooses.  The
 * command follows the one that was not answered on the same link.  Waiters are not told, since each
 * of them that gets a part of the servers would wake all others; it asks again soon. */
void votes_give_back(struct redlock *r, const struct redlock_call *call,
                     bool (*pick)(const struct redlock *r, const struct tally *t));

#endif
