/* Waiting for a release.  There is no queue: the order of arrival on one server is not that on
 * another, and no majority agrees on one.  A waiter subscribes to the lock's channel on one of the
 * servers, and asks again when a release is published there, when the lease before it ends, and in
 * any case after a while, since that server may be the one that hangs.
 *
 * All waiters hear of a release.  If several ask at the same moment, each may get some of the
 * servers and none a majority.  Each therefore sleeps for a random time before it asks, which is
 * the longer the more often it was too late, and does not ask if it hears meanwhile that another
 * waiter has taken the lock.  A waiter that got some of the servers asks again soon. */
#include <stdio.h>
#include <string.h>

#include "base/wait.h"
#include "lease/redlock/redlock.h"

#define POLL_US 500000         /* and up to half as long again */
#define JITTER_US 1000         /* doubles with each miss, */
#define JITTER_DOUBLINGS_MAX 5 /* but not more often than this */
#define MISSES_MAX 16          /* after these, it waits as one that got none of the servers */
#define MISS_US 100000         /* an attempt this soon after waking is a miss if it fails */

static int64_t jitter_us(struct redlock *r)
{
    unsigned n =
        r->waiter.n_misses < JITTER_DOUBLINGS_MAX ? r->waiter.n_misses : JITTER_DOUBLINGS_MAX;
    return (int64_t)random_below(&r->random, (uint64_t)JITTER_US << n);
}

/* A caller that asks again may have a new owner, so the lock's name tells. */
static bool is_about(const struct redlock_waiter *w, const struct lease_request *q)
{
    char key[KEY_SIZE];
    (void)redlock_key(key, q->key, q->key_len);
    return strcmp(w->asked, key) == 0;
}

void redlock_note_taken(struct redlock *r, const struct lease_request *q, size_t n_won,
                        server_set taken, int64_t remaining_ms)
{
    struct redlock_waiter *w = &r->waiter;
    int64_t now_us = clock_boot_us(r->clock);
    if (!is_about(w, q)) {
        (void)redlock_key(w->asked, q->key, q->key_len);
        w->n_misses = 0;
    } else {
        w->n_misses = n_won > 0 || now_us - w->woken_us < MISS_US ? w->n_misses + 1 : 0;
    }
    w->taken = taken;
    w->free_us = n_won > 0 && w->n_misses < MISSES_MAX ? now_us + jitter_us(r)
                 : remaining_ms >= 0                   ? now_us + 1000 * (remaining_ms + 1)
                                                       : INT64_MAX;
}

/* ---- the subscription ---- */

static bool is_text(const redisReply *reply, size_t i, const char *text)
{
    return reply->type == REDIS_REPLY_ARRAY && i < reply->elements &&
           reply->element[i]->type == REDIS_REPLY_STRING &&
           strcmp(reply->element[i]->str, text) == 0;
}

static void unsubscribe(struct redlock *r)
{
    redis_link_close(&r->waiter.messages);
    r->waiter.channel[0] = '\0';
}

/* Reads answers until the server confirms the subscription. */
static bool is_confirmed(struct redlock *r, const char *channel)
{
    int64_t until_us = clock_boot_us(r->clock) + 1000 * r->short_ms;
    for (int64_t left_us; (left_us = until_us - clock_boot_us(r->clock)) > 0;) {
        redisReply *reply = NULL;
        if (redis_receive(&r->waiter.messages, (left_us + 999) / 1000, -1, &reply, NULL) !=
                HF_DONE ||
            !reply)
            return false;
        bool confirmed = is_text(reply, 0, "subscribe") && is_text(reply, 1, channel);
        bool refused = reply->type == REDIS_REPLY_ERROR;
        freeReplyObject(reply);
        if (confirmed || refused)
            return confirmed;
    }
    return false;
}

/* Connects the extra link to any server on which a release will be published. */
static bool choose_server(struct redlock *r, server_set taken)
{
    server_set ready = fan_ready(r);
    ready = ready & taken ? ready & taken : ready;
    if (!ready)
        return false;
    size_t i = (size_t)random_below(&r->random, r->n_servers);
    while (!(ready & bit_of(i)))
        i = (i + 1) % r->n_servers;
    r->waiter.server = i;
    redis_link_init(&r->waiter.messages, &r->servers[i].address, r->clock, r->short_ms);
    return true;
}

/* Subscribes to the lock's channel instead of the one before, if that is possible now.  *ret_new:
 * messages before this moment were not heard. */
static void subscribe(struct redlock *r, const struct lease_request *q, bool *ret_new)
{
    struct redlock_waiter *w = &r->waiter;
    char channel[KEY_SIZE];
    size_t len = redlock_key(channel, q->key, q->key_len);
    server_set taken = is_about(w, q) ? w->taken : 0;
    *ret_new = false;
    if (w->messages.fd >= 0 && taken && !(taken & bit_of(w->server)))
        unsubscribe(r);
    if (w->messages.fd >= 0 && strcmp(w->channel, channel) == 0)
        return;
    if (w->messages.fd < 0 && !choose_server(r, taken))
        return;
    if (w->messages.fd >= 0 && w->channel[0])
        redis_put(&w->messages,
                  (struct redis_arg[]){REDIS_ARG("UNSUBSCRIBE"), {w->channel, strlen(w->channel)}},
                  2);
    redis_put(&w->messages, (struct redis_arg[]){REDIS_ARG("SUBSCRIBE"), {channel, len}}, 2);
    w->channel[0] = '\0';
    if (redis_send(&w->messages, NULL) != HF_DONE || !is_confirmed(r, channel)) {
        unsubscribe(r);
        return;
    }
    memcpy(w->channel, channel, len + 1);
    *ret_new = true;
}

/* ---- sleeping ---- */

enum news { NEWS_NONE, NEWS_FREE, NEWS_TAKEN, NEWS_FAILURE };

/* Sleeps for `us`, until a message, or until the caller's wake_fd is readable.  Without a
 * subscription there are no messages. */
static enum news listen_for(struct redlock *r, int64_t us)
{
    struct redlock_waiter *w = &r->waiter;
    if (us <= 0)
        return NEWS_NONE;
    if (w->messages.fd < 0) {
        struct pollfd file = {.fd = r->lease.wake_fd, .events = POLLIN};
        (void)wait_files(&file, 1, us);
        return NEWS_NONE;
    }
    redisReply *reply = NULL;
    if (redis_receive(&w->messages, (us + 999) / 1000, r->lease.wake_fd, &reply, NULL) != HF_DONE) {
        unsubscribe(r);
        return NEWS_FAILURE; /* asking tells more */
    }
    enum news news = NEWS_NONE;
    if (reply && is_text(reply, 0, "message") && is_text(reply, 1, w->channel))
        news = is_text(reply, 2, "t") ? NEWS_TAKEN : NEWS_FREE;
    if (reply)
        freeReplyObject(reply);
    return news;
}

/* Returns false if the lock was taken by another client before it was time to ask. */
static bool hold_back(struct redlock *r, int64_t until_us)
{
    int64_t now_us = clock_boot_us(r->clock), end_us = now_us + jitter_us(r);
    end_us = end_us < until_us ? end_us : until_us;
    for (; now_us < end_us && !lease_is_woken(&r->lease); now_us = clock_boot_us(r->clock)) {
        enum news news = listen_for(r, end_us - now_us);
        if (news == NEWS_FAILURE)
            return true;
        if (news == NEWS_TAKEN) {
            r->waiter.n_misses++;
            return false;
        }
    }
    return true;
}

static int64_t min_us(int64_t a, int64_t b) { return a < b ? a : b; }

enum hf_result redlock_wait(struct lease *l, const struct lease_request *request,
                            int64_t timeout_ms, struct hf_fault *fault)
{
    struct redlock *r = redlock_of(l);
    struct redlock_waiter *w = &r->waiter;
    (void)fault;
    int64_t begin_us = clock_boot_us(r->clock), now_us;
    int64_t poll_us = POLL_US + (int64_t)random_below(&r->random, POLL_US / 2);
    int64_t until_us = begin_us + min_us(1000 * timeout_ms, poll_us);
    if (is_about(w, request))
        until_us = min_us(until_us, w->free_us);
    bool is_new;
    subscribe(r, request, &is_new);
    if (is_new && hold_back(r, until_us)) /* the lock may have been released before */
        return HF_DONE;
    while ((now_us = clock_boot_us(r->clock)) < until_us && !lease_is_woken(l)) {
        enum news news = listen_for(r, until_us - now_us);
        if (news == NEWS_FAILURE || (news == NEWS_FREE && hold_back(r, until_us)))
            break;
    }
    w->woken_us = clock_boot_us(r->clock);
    return HF_DONE;
}
