/* Waiting: a watch on one key, the one that stands before the waiter's own, so that the end of a
 * request wakes one waiter.  (Readers behind a writer watch the same key, since it is the turn of
 * all of them when it ends.)  The watch is a POST /v3/watch whose answer does not end: one message
 * per line.  It runs in the client's pool and goes on between two waits.
 *
 * Polls stand behind the watch.  The second in the line looks every WAITER_CHECK_MS, and the next
 * ones several times a second, whether the first claims its turn; a place is kept alive by a
 * heartbeat; and a waiter before us that has been silent for WAITER_SILENT_MS is taken out. */
#include "lease/etcd/etcd.h"

#include <inttypes.h>
#include <string.h>

#include "base/wait.h"

#define HEARTBEAT_MAX_US INT64_C(1500000)
#define CHECK_NEAR_US INT64_C(250000)
#define CHECK_FAR_US INT64_C(5000000)
/* Behind so many that their looks would be a load; asking again tells them their place. */
#define CHECK_CROWD_US INT64_C(20000000)
/* How often a waiter near the head asks whether the one before it is silent. */
#define SILENT_NEAR_US INT64_C(2000000)
/* Those further behind look again after this time if it is another's turn. */
#define TURN_FAR_US INT64_C(1500000)
/* While there is no watch, since one has just failed. */
#define CHECK_UNWATCHED_US INT64_C(100000)
#define LOOKS_MAX 16
#define MESSAGE_LEN_MAX ((size_t)1 << 20)

/* ---- the watch ---- */

/* One message: {"result":{"created":true}}, {"result":{"events":[...]}}, {"result":{"canceled":
 * true,...}} or {"error":{...}}.  Only deletions are watched for. */
static void take_message(struct etcd_watch *w, const char *text, size_t len)
{
    json_t *json = json_loadb(text, len, 0, NULL);
    const json_t *result = json_object_get(json, "result");
    if (json_array_size(json_object_get(result, "events")) > 0)
        w->has_fired = true;
    else if (!result || json_is_true(json_object_get(result, "canceled")))
        w->has_fired = w->has_failed = true;
    w->is_created = true;
    json_decref(json);
}

static bool take_bytes(void *ctx, const char *data, size_t len)
{
    struct etcd_watch *w = ctx;
    buf_put(&w->text, data, len);
    for (;;) {
        char *end = w->text.len ? memchr(w->text.data, '\n', w->text.len) : NULL;
        if (!end)
            return w->text.len < MESSAGE_LEN_MAX;
        size_t n = (size_t)(end - w->text.data);
        if (n > 0)
            take_message(w, w->text.data, n);
        w->text.len -= n + 1;
        memmove(w->text.data, end + 1, w->text.len);
    }
}

static void watch_ended(struct http_exchange *x)
{
    struct etcd_watch *w = (struct etcd_watch *)(void *)x;
    w->lease = 0;
    w->has_fired = w->has_failed = true;
}

void etcd_watch_stop(struct etcd *e)
{
    if (e->watch.lease)
        http_pool_cancel(e->client.pool, &e->watch.exchange);
    e->watch.lease = 0;
    e->watch.text.len = 0;
    e->watch.has_fired = e->watch.has_failed = e->watch.is_created = false;
}

void etcd_watch_close(struct etcd *e)
{
    etcd_watch_stop(e);
    http_response_close(&e->watch.exchange.response);
    if (e->watch.token.len)
        explicit_bzero(e->watch.token.data, e->watch.token.len);
    buf_close(&e->watch.body);
    buf_close(&e->watch.url);
    buf_close(&e->watch.text);
    buf_close(&e->watch.token);
}

/* Copies what the request points to, since the client's buffers are used again. */
static void keep(struct buf *ret, const struct buf *from)
{
    ret->len = 0;
    buf_put(ret, from->data, from->len);
}

/* Watches for the end of place.blocker, from the revision on at which it was seen. */
static void watch(struct etcd *e, const struct subject *s)
{
    struct etcd_watch *w = &e->watch;
    const struct etcd_place *p = &e->place;
    struct subject blocker = *s;
    struct buf *b = etcd_body(&e->client);
    etcd_watch_stop(e);
    memcpy(blocker.owner, p->blocker.owner, sizeof blocker.owner);
    buf_lit(b, "{\"create_request\":{");
    wire_key(b, &blocker, p->blocker.mode);
    buf_printf(b, ",\"start_revision\":\"%" PRId64 "\",\"filters\":[\"NOPUT\"]}}", p->revision + 1);
    etcd_request(&e->client, "/v3/watch", &w->exchange.request, w->header);
    keep(&w->body, &e->client.body);
    keep(&w->url, &e->client.url);
    w->exchange.request.body = w->body.data;
    w->exchange.request.url = w->url.data;
    if (w->exchange.request.n_headers) {
        keep(&w->token, &e->client.token);
        w->header[0].value = w->token.data;
    }
    w->exchange.request.timeout_ms = LEASE_WAIT_MAX_MS;
    w->exchange.request.on_body = take_bytes;
    w->exchange.request.ctx = w;
    w->lease = s->lease;
    w->at = e->client.at;
    w->begun_us = etcd_now_us(e);
    http_pool_start(e->client.pool, &w->exchange, watch_ended);
}

/* A watch says nothing while nothing happens, and so does one on a member that hangs.  It is given
 * up if etcd does not tell in time that it watches, or if calls go to another endpoint.  Returns
 * true if it was. */
static bool give_up_hung(struct etcd *e)
{
    struct etcd_watch *w = &e->watch;
    if (!w->lease || w->has_fired)
        return false;
    bool is_late =
        !w->is_created && etcd_now_us(e) - w->begun_us > INT64_C(1000) * e->client.timeout_ms;
    if (is_late && w->at == e->client.at)
        etcd_leave(&e->client);
    else if (!is_late && w->at == e->client.at)
        return false;
    etcd_watch_stop(e);
    return true;
}

/* ---- looking ---- */

struct wait {
    struct etcd *e;
    struct subject s;
    bool is_worth_asking;
    int64_t check_us;  /* when to look again, */
    int64_t beat_us;   /* when to send a heartbeat, */
    int64_t silent_us; /* and when to ask about the one before us, by wait_now_us */
    int64_t watch_us;  /* no watch before this moment: the last one failed */
    int64_t beat_every_us;
    struct hf_fault *fault;
};

static int64_t check_pause_us(const struct etcd_place *p, bool is_watched)
{
    if (!is_watched && p->position != 2)
        return CHECK_UNWATCHED_US;
    return waiter_look_us(p->position, CHECK_NEAR_US,
                          p->position > CROWD_MIN ? CHECK_CROWD_US : CHECK_FAR_US);
}

static int64_t silent_pause_us(const struct etcd_place *p)
{
    return p->position > CROWD_MIN     ? CHECK_CROWD_US
           : p->position > WAITER_NEAR ? CHECK_FAR_US
                                       : SILENT_NEAR_US;
}

/* The place's blocker, where the line was too long to show it. */
static enum hf_result find_blocker(struct wait *w, struct etcd_line *line)
{
    struct etcd_place *p = &w->e->place;
    enum hf_result result = etcd_txn_look_before(w->e, &w->s, p->create, line, w->fault);
    if (result != HF_DONE)
        return result;
    p->has_blocker = line->all.n > 0;
    if (p->has_blocker)
        p->blocker = line->all.v[0];
    p->revision = line->revision;
    return HF_DONE;
}

static enum hf_result look_once(struct wait *w, struct etcd_line *line, bool *ret_again)
{
    struct etcd *e = w->e;
    int64_t turn_us, begun_us = etcd_now_us(e);
    *ret_again = false;
    enum hf_result result = etcd_txn_look(e, &w->s, LINE_MAX, line, w->fault);
    if (result != HF_DONE)
        return result;
    w->is_worth_asking =
        !line->has_own || line->own.claimed || etcd_line_is_free(line, w->s.mode, line->own.create);
    e->called = w->is_worth_asking ? w->s.lease : 0;
    if (!line->has_own)
        etcd_place_forget(e, &w->s); /* it was passed over, or dropped as silent */
    if (w->is_worth_asking)
        return HF_DONE;
    etcd_place_note(e, &w->s, line);
    if ((result = etcd_turn_check(e, &w->s, line, &turn_us, w->fault)) != HF_DONE)
        return result;
    *ret_again = turn_us == 0;
    bool is_watched = e->watch.lease == w->s.lease;
    if (e->place.position > WAITER_NEAR && turn_us > 0)
        turn_us = TURN_FAR_US;
    if (line->count > CROWD_MIN)
        crowd_line_note(etcd_crowd(e), &w->s, CROWD_HEAD, line, begun_us);
    if (!e->place.has_blocker && !is_watched && (result = find_blocker(w, line)) != HF_DONE)
        return result;
    int64_t pause_us = check_pause_us(&e->place, is_watched || wait_now_us() >= w->watch_us);
    w->check_us = wait_now_us() + (turn_us > 0 && turn_us < pause_us ? turn_us : pause_us);
    return HF_DONE;
}

static enum hf_result look(struct wait *w)
{
    struct etcd_line line = {0};
    bool again = true;
    enum hf_result result = HF_DONE;
    etcd_begin(&w->e->client, 0);
    for (int i = 0; again && result == HF_DONE && i < LOOKS_MAX; i++)
        result = look_once(w, &line, &again);
    etcd_line_close(&line);
    /* What was lost is only an answer about others. */
    return result == HF_UNKNOWN ? HF_UNREACHABLE : result;
}

/* ---- silent waiters ---- */

/* Sets the moment of the next question, by when this request asked the last one. */
static void plan_vigil(struct wait *w)
{
    struct vigil *v = &w->e->vigil;
    int64_t now_us = etcd_now_us(w->e);
    if (v->lease != w->s.lease)
        *v = (struct vigil){.lease = w->s.lease, .kept_us = now_us};
    w->silent_us = wait_now_us() + silent_pause_us(&w->e->place) - (now_us - v->kept_us);
}

/* *ret_dropped: the waiter before us does not send heartbeats, since its lease has been left alone
 * for too long, and was taken out.  etcd rounds down what is left, so a second is taken off. */
static enum hf_result drop_silent(struct wait *w, struct etcd_line *line, bool *ret_dropped)
{
    struct etcd_place *p = &w->e->place;
    int64_t left_s = 0, ttl_s = 0;
    enum hf_result result = HF_DONE;
    if (!p->has_blocker && (result = find_blocker(w, line)) != HF_DONE)
        return result;
    if (!p->has_blocker || p->blocker.claimed)
        return HF_DONE;
    result = etcd_left(w->e, p->blocker.lease, &left_s, &ttl_s, w->fault);
    if (result != HF_DONE || left_s < 0 || 1000 * (ttl_s - left_s - 1) < WAITER_SILENT_MS)
        return result;
    vec_clear(&line->all);
    *vec_push(&line->all) = p->blocker;
    *ret_dropped = true;
    return etcd_txn_pass_over(w->e, &w->s, line, 1, false, w->fault);
}

static enum hf_result keep_vigil(struct wait *w)
{
    struct etcd_line line = {0};
    bool dropped = false;
    w->e->vigil.kept_us = etcd_now_us(w->e);
    plan_vigil(w);
    if (w->e->place.lease != w->s.lease)
        return HF_DONE;
    etcd_begin(&w->e->client, 0);
    enum hf_result result = drop_silent(w, &line, &dropped);
    etcd_line_close(&line);
    if (dropped)
        w->check_us = w->silent_us = 0; /* look who is before us now, and ask about it */
    /* What was lost is only an answer about others. */
    return result == HF_UNKNOWN ? HF_UNREACHABLE : result;
}

/* ---- heartbeats ---- */

/* Sets the moment of the next heartbeat, by when any thread of the process has sent the last one.
 * Returns true if it is due. */
static bool plan_heartbeat(struct wait *w)
{
    int64_t ago_us = crowd_refreshed_ago_us(etcd_crowd(w->e), w->s.lease, etcd_now_us(w->e));
    bool is_due = ago_us >= w->beat_every_us;
    w->beat_us = wait_now_us() + (is_due ? 0 : w->beat_every_us - ago_us);
    return is_due;
}

static enum hf_result send_heartbeat(struct wait *w)
{
    int64_t ttl_ms = 0;
    if (!plan_heartbeat(w))
        return HF_DONE;
    etcd_begin(&w->e->client, 0);
    enum hf_result result = etcd_place_refresh(w->e, w->s.lease, &ttl_ms, w->fault);
    if (result != HF_DONE)
        return result;
    w->beat_us = wait_now_us() + w->beat_every_us;
    w->is_worth_asking |= ttl_ms == 0; /* the place is lost */
    return HF_DONE;
}

/* ---- the wait ---- */

static void wait_init(struct wait *w, struct etcd *e, const struct lease_request *r,
                      struct hf_fault *fault)
{
    *w = (struct wait){.e = e, .fault = fault, .beat_every_us = INT64_C(1000) * r->ttl_ms / 3};
    etcd_subject_init(&w->s, etcd_prefix(e), r);
    if (w->beat_every_us > HEARTBEAT_MAX_US)
        w->beat_every_us = HEARTBEAT_MAX_US;
    int64_t now_us = wait_now_us();
    (void)plan_heartbeat(w);
    plan_vigil(w);
    if (e->place.lease == w->s.lease && (e->place.has_blocker || e->watch.lease == w->s.lease))
        w->check_us =
            now_us + check_pause_us(&e->place, true) - (etcd_now_us(e) - e->place.noted_us);
}

static enum hf_result act(struct wait *w, int64_t now_us)
{
    struct etcd *e = w->e;
    enum hf_result result = HF_DONE;
    if (give_up_hung(e))
        w->check_us = 0; /* to know what to watch */
    if (e->watch.has_failed)
        w->watch_us = now_us + CHECK_NEAR_US;
    /* The holder is gone, and we are next. */
    w->is_worth_asking = e->watch.has_fired && !e->watch.has_failed && e->place.position == 1 &&
                         e->place.has_blocker && e->place.blocker.claimed;
    if (w->is_worth_asking)
        return HF_DONE;
    if (e->watch.has_fired)
        w->check_us = 0;
    if (now_us >= w->check_us) {
        if (e->watch.has_fired)
            etcd_watch_stop(e);
        if ((result = look(w)) != HF_DONE || w->is_worth_asking)
            return result;
    }
    if (e->watch.lease != w->s.lease && e->place.has_blocker && now_us >= w->watch_us)
        watch(e, &w->s);
    if (now_us >= w->beat_us)
        result = send_heartbeat(w);
    if (result == HF_DONE && !w->is_worth_asking && now_us >= w->silent_us)
        result = keep_vigil(w);
    return result;
}

enum hf_result etcd_wait(struct lease *l, const struct lease_request *request, int64_t timeout_ms,
                         struct hf_fault *fault)
{
    struct etcd *e = etcd_of(l);
    struct wait w;
    int64_t end_us = wait_now_us() + 1000 * timeout_ms;
    wait_init(&w, e, request, fault);
    if (e->watch.lease && e->watch.lease != w.s.lease)
        etcd_watch_stop(e);
    for (;;) {
        int64_t now_us = wait_now_us();
        if (now_us >= end_us || lease_is_woken(l))
            return HF_DONE;
        enum hf_result result = act(&w, now_us);
        if (result != HF_DONE || w.is_worth_asking)
            return result;
        int64_t until_us = w.check_us < w.beat_us ? w.check_us : w.beat_us;
        until_us = until_us < w.silent_us ? until_us : w.silent_us;
        until_us = until_us < end_us ? until_us : end_us;
        now_us = wait_now_us();
        if (until_us > now_us && !e->watch.has_fired)
            http_pool_turn_or(e->client.pool, until_us - now_us, l->wake_fd);
    }
}
