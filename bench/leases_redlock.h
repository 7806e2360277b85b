/* Redlock's primitive by hand: SET NX PX on all servers at once, then an EVALSHA of
 * compare-and-delete on all of them at once, with hiredis.  It has no fence, does not know when a
 * server was restarted, and counts no time. */
#ifndef HF_BENCH_LEASES_REDLOCK_H
#define HF_BENCH_LEASES_REDLOCK_H

#include "leases_redis.h"

#define REDLOCK_SERVERS 3

struct hand_redlock {
    redisContext *servers[REDLOCK_SERVERS];
    char shas[REDLOCK_SERVERS][41];
};

static void *hand_redlock_open(const char *url, void *first)
{
    struct hand_redlock *r = hf_alloc(sizeof *r);
    const char *at = url + strlen("redlock://");
    (void)first;
    for (int i = 0; i < REDLOCK_SERVERS; i++) {
        struct hand_redis one;
        int len = 0;
        if (sscanf(at, "%63[^:/]:%d%n", one.host, &one.port, &len) != 2)
            die("by hand, Redlock is redlock://HOST:PORT,HOST:PORT,HOST:PORT");
        at += len + (at[len] == ',');
        r->servers[i] = redis_connect(&one);
        redisReply *reply = redisCommand(r->servers[i], "SCRIPT LOAD %s", compare_delete);
        if (!reply || reply->type != REDIS_REPLY_STRING)
            die("SCRIPT LOAD failed");
        snprintf(r->shas[i], sizeof r->shas[i], "%s", reply->str);
        freeReplyObject(reply);
    }
    return r;
}

static void hand_redlock_close(void *handle)
{
    struct hand_redlock *r = handle;
    for (int i = 0; i < REDLOCK_SERVERS; i++)
        redisFree(r->servers[i]);
    free(r);
}

/* Sends what has been appended to every server, then reads every answer; returns how many of them
 * are good. */
static int redlock_gather(struct hand_redlock *r)
{
    int good = 0, done = 0;
    for (int i = 0; i < REDLOCK_SERVERS; i++)
        if (redisBufferWrite(r->servers[i], &done) != REDIS_OK)
            die("a server of three is gone");
    for (int i = 0; i < REDLOCK_SERVERS; i++) {
        void *got = NULL;
        if (redisGetReply(r->servers[i], &got) != REDIS_OK)
            die("a server of three is gone");
        const redisReply *reply = got;
        good += reply->type == REDIS_REPLY_STATUS || reply->integer == 1;
        freeReplyObject(got);
    }
    return good;
}

static void hand_redlock_pair(void *handle, const uint8_t *bits)
{
    struct hand_redlock *r = handle;
    char owner[2 * OWNER_SIZE + 1];
    lease_owner_text(bits, owner);
    for (int i = 0; i < REDLOCK_SERVERS; i++)
        redisAppendCommand(r->servers[i], "SET %s %s NX PX %d", "hand", owner, REDLOCK_TTL_MS);
    int taken = redlock_gather(r);
    for (int i = 0; i < REDLOCK_SERVERS; i++)
        redisAppendCommand(r->servers[i], "EVALSHA %s 1 %s %s", r->shas[i], "hand", owner);
    if (taken != REDLOCK_SERVERS || redlock_gather(r) != REDLOCK_SERVERS)
        die("SET NX PX failed on a server of three");
}

static const struct side hand_redlock = {
    .name = "hiredis x 3",
    .open = hand_redlock_open,
    .close = hand_redlock_close,
    .pair = hand_redlock_pair,
};

#endif
