/* What the random turns share: the world, what was acknowledged, and the requests that wait.
 * Internal to random_turns.c, random_requests.c and random_money.c. */
#ifndef HF_TESTS_SIM_RANDOM_RUN_H
#define HF_TESTS_SIM_RANDOM_RUN_H

#include "sim/check.h"
#include "sim/provider.h"
#include "sim/tables.h"

#define EVENTS 2
#define KEYS 40          /* idempotency keys in use at a time */
#define SEATS_MAX 3      /* of one request */
#define AGREE_EVERY 20   /* steps, on average, after which the servers must agree */
#define AGREE_ROUNDS 100 /* until all that is queued must have been answered */
#define WORLD_STEPS 400  /* steps after which a new world begins */
#define RECENT_HOLDS 12  /* requests name one of the newest holds */
#define OWNER_LIMIT 7    /* of the first event; that of the second one changes */
#define AREAS 2

#define OWNERS 3
extern const char *const random_owners[OWNERS];

/* A hold that a buyer was told of, and the furthest status that was acknowledged. */
struct known_hold {
    struct id id;
    int64_t fence;
    enum hold_status acknowledged;
    struct id booking; /* key 0: none was acknowledged */
    bool is_cancelled; /* the booking, as acknowledged */
};

/* An idempotency key: a repeat asks for the same seat of the same event. */
struct known_key {
    unsigned number;
    int64_t event;
    uint32_t seat;
    struct buf answer; /* of the first success */
};

/* A job that a server has taken, until it has reported what came of it. */
struct flight {
    size_t server;
    struct job_row job;
    int64_t taken_at;
    bool is_done; /* the provider has answered, or has not */
    struct fact fact;
    enum job_result result;
};

/* How many answers were given, so that a run is known to be worth something. */
struct answers {
    size_t created, confirmed, changed, cancelled, resumed, limited, replayed, failed;
    size_t booked, paid, refunded; /* bookings that are to be paid, those that were, refunds */
    size_t merged;                 /* holds that were booked with others */
    size_t joined, offered, accepted, lapsed; /* entries of waiting lists */
    size_t judged;          /* claims, offers and ends of commits while somebody waited */
    size_t assumed, missed; /* batches that asked for nothing first: stored, or run again */
};

/* What happens more often in a world where places are scarce and many wait for them. */
enum favourite {
    FAVOURITE_NONE, /* there are many places, and few wait */
    FAVOURITE_HOLDS,
    FAVOURITE_BLOCKS,
    FAVOURITE_CLOSES,
    FAVOURITE_TERMS,
    FAVOURITE_CHANGES,
    FAVOURITE_PAYS,
    FAVOURITES
};

struct run {
    struct world world;
    enum favourite favourite;
    struct random random;
    int64_t events[EVENTS];
    struct fold rows[EVENTS], views[SERVERS_MAX][EVENTS];
    struct judge judges[EVENTS];
    VEC(struct known_hold) holds;
    VEC(struct id) waits; /* entries of waiting lists that people were told of */
    struct known_key keys[KEYS];
    unsigned n_keys;
    VEC(struct call *) waiting; /* for an answer */
    struct server *other;       /* takes a turn in the middle of this turn, */
    int calls_until_turn;       /* at this call to the ledger; 0: it does not */
    struct provider provider;
    struct ledger *clerks[SERVERS_MAX]; /* connections that take jobs; NULL: closed */
    VEC(struct flight) flights;
    struct answers answers;
};

static inline uint32_t below(struct run *r, uint32_t bound)
{
    return (uint32_t)random_below(&r->random, bound);
}

static inline bool one_in(struct run *r, uint32_t n) { return below(r, n) == 0; }

static inline struct server *any_server(struct run *r)
{
    return &r->world.servers[below(r, (uint32_t)r->world.n_servers)];
}

/* Queues a random request at either server. */
void random_request(struct run *r);
/* Looks at the answers that have come. */
void random_collect(struct run *r);

/* ---- random_money.c ---- */

/* Something happens to money: jobs are taken, run or reported, buyers pay, webhooks arrive. */
void random_money_step(struct run *r);
/* The server has stopped, and the calls that it had under way are forgotten. */
void random_money_forget(struct run *r, size_t server);
/* Lets everything that is owed be done, and claims that the books agree. */
void random_money_rest(struct run *r);
void random_money_close(struct run *r);

#endif
