/* Redis by hand, with hiredis.  Uncontended: SET NX PX acquires, EVALSHA of compare-and-delete
 * releases.  Contended: the driver's own scripts and SUBSCRIBE, so that only the code around them
 * differs.  Like the driver, it uses one connection, and a second one from the first wait on. */
#ifndef HF_BENCH_LEASES_REDIS_H
#define HF_BENCH_LEASES_REDIS_H

#include <hiredis/hiredis.h>
#include <string.h>

#include "lease/lease.h"
#include "lease/redis/scripts.h"
#include "leases_side.h"

#define REDIS_HOT "holdfast:{hand}:lock"
enum { HAND_ACQUIRE, HAND_TOUCH, HAND_RELEASE, HAND_DELETE, HAND_SCRIPTS };

static const char compare_delete[] = "if redis.call('get', KEYS[1]) == ARGV[1] then "
                                     "return redis.call('del', KEYS[1]) else return 0 end";

struct hand_redis {
    char host[64];
    int port;
    redisContext *commands, *messages;
    char shas[HAND_SCRIPTS][41];
    char heard[2 * OWNER_SIZE + 1]; /* the owner whose channel it is subscribed to, or "" */
};

static redisContext *redis_connect(const struct hand_redis *r)
{
    redisContext *c = redisConnect(r->host, r->port);
    if (!c || c->err)
        die("hiredis cannot connect");
    redisSetTimeout(c, (struct timeval){.tv_sec = 1});
    return c;
}

static void redis_load_scripts(struct hand_redis *r)
{
    static const char *const text[] = {REDIS_ACQUIRE, REDIS_HEARTBEAT, REDIS_RELEASE,
                                       compare_delete};
    for (int i = 0; i < HAND_SCRIPTS; i++) {
        redisReply *reply = redisCommand(r->commands, "SCRIPT LOAD %s", text[i]);
        if (!reply || reply->type != REDIS_REPLY_STRING)
            die("SCRIPT LOAD failed");
        snprintf(r->shas[i], sizeof r->shas[i], "%s", reply->str);
        freeReplyObject(reply);
    }
}

static void *hand_redis_open(const char *url, void *first)
{
    struct hand_redis *r = hf_alloc(sizeof *r);
    if (sscanf(url, "redis://%63[^:/]:%d", r->host, &r->port) != 2)
        die("by hand, Redis is redis://HOST:PORT");
    r->commands = redis_connect(r);
    if (first)
        memcpy(r->shas, ((struct hand_redis *)first)->shas, sizeof r->shas);
    else
        redis_load_scripts(r);
    return r;
}

static void hand_redis_close(void *handle)
{
    struct hand_redis *r = handle;
    redisFree(r->commands);
    if (r->messages)
        redisFree(r->messages);
    free(r);
}

static void hand_redis_pair(void *handle, const uint8_t *bits)
{
    struct hand_redis *r = handle;
    redisContext *c = r->commands;
    char owner[2 * OWNER_SIZE + 1];
    lease_owner_text(bits, owner);
    redisReply *set = redisCommand(c, "SET %s %s NX PX %d", "hand", owner, TTL_MS);
    redisReply *del = redisCommand(c, "EVALSHA %s 1 %s %s", r->shas[HAND_DELETE], "hand", owner);
    if (!set || set->type != REDIS_REPLY_STATUS || !del || del->integer != 1)
        die("SET NX PX failed");
    freeReplyObject(set);
    freeReplyObject(del);
}

/* Returns the first number of an answer; a single value is a grant. */
static long long redis_answer_of(redisReply *reply)
{
    if (!reply || reply->type == REDIS_REPLY_ERROR)
        die("a script failed");
    long long n = reply->type == REDIS_REPLY_ARRAY ? reply->element[0]->integer : REDIS_DONE;
    freeReplyObject(reply);
    return n;
}

static bool redis_acquire(struct hand_redis *r, const char *owner)
{
    return redis_answer_of(redisCommand(r->commands, "EVALSHA %s 2 %s holdfast:fence %s %d %s 1",
                                        r->shas[HAND_ACQUIRE], REDIS_HOT, owner, TTL_MS,
                                        "e 0 1 ")) == REDIS_DONE;
}

static bool redis_turn(struct hand_redis *r, const char *owner)
{
    return redis_answer_of(redisCommand(r->commands, "EVALSHA %s 1 %s %s", r->shas[HAND_TOUCH],
                                        REDIS_HOT, owner)) == REDIS_TURN;
}

/* Switches from the last owner's channel to this one's in one exchange, as the driver does;
 * messages before the answer were for the last one. */
static void redis_listen(struct hand_redis *r, const char *owner)
{
    if (!r->messages)
        r->messages = redis_connect(r);
    if (r->heard[0])
        redisAppendCommand(r->messages, "UNSUBSCRIBE " REDIS_HOT ":wake:%s", r->heard);
    redisAppendCommand(r->messages, "SUBSCRIBE " REDIS_HOT ":wake:%s", owner);
    for (bool listens = false; !listens;) {
        void *got = NULL;
        if (redisGetReply(r->messages, &got) != REDIS_OK)
            die("no answer to SUBSCRIBE");
        const redisReply *reply = got;
        listens = reply->elements > 0 && strcmp(reply->element[0]->str, "subscribe") == 0;
        freeReplyObject(got);
    }
    snprintf(r->heard, sizeof r->heard, "%s", owner);
}

/* Subscribes first, so that no wake-up is missed, then sleeps until one comes or a second has
 * passed. */
static bool hand_redis_take(void *handle, const uint8_t *bits, atomic_bool *stop)
{
    struct hand_redis *r = handle;
    char owner[2 * OWNER_SIZE + 1];
    lease_owner_text(bits, owner);
    if (redis_acquire(r, owner))
        return true;
    redis_listen(r, owner);
    bool mine = redis_turn(r, owner) && redis_acquire(r, owner);
    while (!mine && !*stop) {
        void *message = NULL;
        if (redisGetReply(r->messages, &message) == REDIS_OK || redis_turn(r, owner))
            mine = redis_acquire(r, owner);
        r->messages->err = 0; /* a second without a wake-up */
        freeReplyObject(message);
    }
    return mine;
}

static void hand_redis_give(void *handle, const uint8_t *bits)
{
    struct hand_redis *r = handle;
    char owner[2 * OWNER_SIZE + 1];
    lease_owner_text(bits, owner);
    redis_answer_of(
        redisCommand(r->commands, "EVALSHA %s 1 %s %s", r->shas[HAND_RELEASE], REDIS_HOT, owner));
}

/* Reads how many commands the server has run so far, by its own count: those of clients and those
 * that scripts call.  The clients' include the occasional keep-alive of a waiter. */
static void redis_commands(const struct hand_redis *r, double *ret_client, double *ret_script)
{
    redisReply *reply = redisCommand(r->commands, "INFO commandstats");
    *ret_client = *ret_script = 0;
    if (!reply || !reply->str)
        die("INFO failed");
    char *rest = reply->str, *line;
    while ((line = strtok_r(rest, "\r\n", &rest))) {
        char name[64], calls[24];
        if (sscanf(line, "cmdstat_%63[^:]:calls=%23[0-9]", name, calls) != 2 ||
            strcmp(name, "info") == 0)
            continue;
        bool client = strcmp(name, "evalsha") == 0 || strcmp(name, "subscribe") == 0 ||
                      strcmp(name, "unsubscribe") == 0 || strcmp(name, "eval") == 0;
        *(client ? ret_client : ret_script) += strtod(calls, NULL);
    }
    freeReplyObject(reply);
}

static const struct side hand_redis = {
    .name = "hiredis",
    .open = hand_redis_open,
    .close = hand_redis_close,
    .pair = hand_redis_pair,
    .take = hand_redis_take,
    .give = hand_redis_give,
};

#endif
