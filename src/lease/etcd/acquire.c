/* Acquiring: from a request to a verdict.
 *
 *   a new request     grant a lease, then create the key (etcd_txn_ask): two exchanges
 *   one that waits    claim it (etcd_txn_claim): one exchange, which tells its place otherwise;
 *                     in a crowd whose line the process has read lately: none
 *   one without queue that found the name taken before    look first, which is no write
 *
 * A request is found again by its owner, which is part of its key, so asking again after a lost
 * answer finds the grant or the place.  A new request is not looked for first: if its lease exists
 * already (the number of the lease follows from the owner), then so may its key. */
#include "lease/etcd/etcd.h"

#include <string.h>

#include "base/hash.h"

/* Claims that fail although the line says that they should not. */
#define CLAIMS_MAX 4
/* A place that asks is kept alive at least this often. */
#define REFRESH_US INT64_C(1500000)
/* Where an exchange is slow, a turn lasts for this many of them: a live waiter needs some to claim
 * it. */
#define SLOW_EXCHANGES 4
/* Refreshes of a lease that has to be certain, each of which another leader may thwart. */
#define REFRESHES_MAX 3
/* A turn has to be seen this often to have lasted. */
#define TURN_GAP_US INT64_C(2500000)

struct attempt {
    struct etcd *e;
    const struct lease_request *r;
    struct subject s;
    struct etcd_line line;
    int64_t begun_us;
    bool has_lease; /* the lease was granted or kept alive in this attempt, or is the place's */
    int64_t refreshed_us;
    int64_t ttl_ms; /* of the lease */
    int64_t term;   /* of the leader that refreshed it; 0: a write did */
    struct lease_verdict *v;
    struct hf_fault *fault;
};

/* ---- places and turns ---- */

void etcd_place_forget(struct etcd *e, const struct subject *s)
{
    if (e->watch.lease == s->lease)
        etcd_watch_close(e);
    if (e->place.lease == s->lease)
        e->place.lease = 0;
    crowd_forget(etcd_crowd(e), s->lease);
}

void etcd_place_note(struct etcd *e, const struct subject *s, const struct etcd_line *line)
{
    struct etcd_place *p = &e->place;
    *p = (struct etcd_place){.lease = s->lease,
                             .create = line->own.create,
                             .revision = line->revision,
                             .noted_us = etcd_now_us(e)};
    p->position = etcd_line_position(line, p->create);
    const struct etcd_entry *blocker = etcd_line_blocker(line, s->mode, p->create);
    /* A line that is cut off before our own entry does not show the one before it. */
    p->has_blocker =
        blocker && (line->count <= line->all.n || line->all.v[line->all.n - 1].create >= p->create);
    if (p->has_blocker)
        p->blocker = *blocker;
    /* What the watch has told is about a blocker of the past.  The next watch begins at this
     * revision, so it misses nothing. */
    if (e->watch.lease == s->lease && e->watch.has_fired && !e->watch.has_failed)
        etcd_watch_stop(e);
    crowd_note(etcd_crowd(e), s->lease, p->create, p->position, line->count);
}

enum hf_result etcd_place_refresh(struct etcd *e, int64_t lease, int64_t *ret_ttl_ms,
                                  struct hf_fault *fault)
{
    int64_t leases[KEEP_ALIVE_MAX], ttls_ms[KEEP_ALIVE_MAX], term, now_us = etcd_now_us(e);
    size_t n =
        crowd_due(etcd_crowd(e), lease, now_us, now_us - REFRESH_US / 2, KEEP_ALIVE_MAX, leases);
    enum hf_result result = etcd_keep_alive(e, leases, n, ttls_ms, &term, fault);
    if (result == HF_DONE && term < atomic_load(&e->client.shared->term)) {
        etcd_leave(&e->client); /* a leader that was replaced refreshes nothing */
        result = etcd_keep_alive(e, leases, n, ttls_ms, &term, fault);
    }
    if (result != HF_DONE)
        return result;
    bool counts = term >= atomic_load(&e->client.shared->term);
    for (size_t i = 0; counts && i < n; i++)
        crowd_refreshed(etcd_crowd(e), leases[i], now_us, ttls_ms[i], term);
    *ret_ttl_ms = ttls_ms[0];
    return HF_DONE;
}

enum hf_result etcd_turn_check(struct etcd *e, const struct subject *s,
                               const struct etcd_line *line, int64_t *ret_us,
                               struct hf_fault *fault)
{
    struct turn *t = &e->turn;
    size_t n = line->has_own ? etcd_line_turn(line, line->own.create) : 0;
    uint64_t name = hash_keyed(s->base, s->base_len) | 1;
    int64_t now_us = etcd_now_us(e);
    *ret_us = -1;
    if (n == 0) {
        t->name = t->name == name ? 0 : t->name;
        return HF_DONE;
    }
    if (t->name != name || t->create != line->all.v[0].create ||
        now_us - t->latest_us > TURN_GAP_US)
        *t = (struct turn){.name = name, .create = line->all.v[0].create, .first_us = now_us};
    t->latest_us = now_us;
    int64_t window_us = INT64_C(1000) * WAITER_CLAIM_MS, slow_us = SLOW_EXCHANGES * e->look_us;
    *ret_us = t->first_us + (window_us > slow_us ? window_us : slow_us) - now_us;
    if (*ret_us > 0)
        return HF_DONE;
    *ret_us = 0;
    t->name = 0;
    return etcd_txn_pass_over(e, s, line, n, true, fault);
}

/* ---- verdicts ---- */

/* Counted from the beginning of the call, as the caller counts. */
static int64_t rest_ms(const struct attempt *a)
{
    int64_t ago_us = a->begun_us - a->refreshed_us;
    int64_t ttl_ms = a->ttl_ms < a->r->ttl_ms ? a->ttl_ms : a->r->ttl_ms;
    return ttl_ms - (ago_us > 0 ? (ago_us + 999) / 1000 : 0);
}

static enum hf_result keep_alive(struct attempt *a)
{
    int64_t now_us = etcd_now_us(a->e), ttl_ms = 0;
    enum hf_result result = etcd_keep_alive(a->e, &a->s.lease, 1, &ttl_ms, &a->term, a->fault);
    if (result != HF_DONE)
        return result;
    a->has_lease = ttl_ms > 0;
    a->ttl_ms = ttl_ms;
    a->refreshed_us = now_us;
    return HF_DONE;
}

static enum hf_result unknown(struct hf_fault *fault)
{
    if (fault)
        fault->result = HF_UNKNOWN;
    return HF_UNKNOWN;
}

/* Was the lease refreshed for certain?  A leader that was replaced still answers keep-alives,
 * without knowing it.  So the term of the one that did must be that of an answer to which a
 * majority consented afterwards.  A lease that a write granted has its full TTL again with each new
 * leader.
 */
static bool is_certain(const struct attempt *a)
{
    return a->has_lease && (a->term == 0 || a->term == a->line.term);
}

/* Keeps the lease alive, and then reads the key, as a renewal does. */
static enum hf_result refresh(struct attempt *a)
{
    enum hf_result result = keep_alive(a);
    if (result != HF_DONE || !a->has_lease)
        return result;
    result = etcd_txn_look(a->e, &a->s, 1, &a->line, a->fault);
    a->has_lease = result == HF_DONE && a->line.has_own;
    return result;
}

/* The key was claimed at revision `fence` by this call, as a->line says.  A lease that was not
 * refreshed lately, or not for certain, is refreshed first: it may have little time left, or have
 * ended without being deleted yet, and then the key goes with it. */
static enum hf_result granted(struct attempt *a, int64_t fence)
{
    bool is_fresh = is_certain(a) && rest_ms(a) >= a->r->ttl_ms * 2 / 3;
    for (int i = 0; !is_fresh; i++) {
        if (i == REFRESHES_MAX)
            return fault_set(a->fault, HF_UNKNOWN, "etcd at %s: the leader changed during a grant",
                             etcd_endpoint(&a->e->client));
        if (refresh(a) != HF_DONE)
            return unknown(a->fault);
        is_fresh = !a->has_lease || is_certain(a);
    }
    etcd_place_forget(a->e, &a->s);
    *a->v =
        a->has_lease
            ? (struct lease_verdict){.result = HF_DONE, .fence = fence, .remaining_ms = rest_ms(a)}
            : (struct lease_verdict){.result = HF_TAKEN, .remaining_ms = -1};
    return HF_DONE;
}

/* The owner has asked before and holds the lock: the same grant, with the rest of its TTL. */
static enum hf_result granted_before(struct attempt *a)
{
    int64_t left_s, ttl_s;
    enum hf_result result = etcd_left(a->e, a->line.own.lease, &left_s, &ttl_s, a->fault);
    if (result != HF_DONE)
        return result;
    int64_t left_ms = left_s > 0 ? 1000 * left_s : 0;
    *a->v = (struct lease_verdict){.result = HF_DONE,
                                   .fence = a->line.own.mod,
                                   .remaining_ms = left_ms < a->r->ttl_ms ? left_ms : a->r->ttl_ms};
    return HF_DONE;
}

/* A request that has no place leaves nothing behind. */
static enum hf_result refused(struct attempt *a)
{
    bool found;
    *a->v = (struct lease_verdict){.result = HF_TAKEN, .remaining_ms = -1};
    a->e->busy = hash_keyed(a->s.base, a->s.base_len) | 1;
    if (a->has_lease)
        (void)!etcd_revoke(a->e, a->s.lease, &found, NULL); /* or it ends by itself */
    return HF_DONE;
}

/* Asking keeps the place. */
static enum hf_result waits_at(struct attempt *a, size_t position)
{
    struct crowd *crowd = etcd_crowd(a->e);
    int64_t ttl_ms;
    *a->v = (struct lease_verdict){.result = HF_TAKEN, .remaining_ms = -1, .position = position};
    if (crowd_refreshed_ago_us(crowd, a->s.lease, a->begun_us) < REFRESH_US)
        return HF_DONE;
    return etcd_place_refresh(a->e, a->s.lease, &ttl_ms, a->fault);
}

static enum hf_result has_to_wait(struct attempt *a)
{
    etcd_place_note(a->e, &a->s, &a->line);
    if (a->has_lease)
        crowd_refreshed(etcd_crowd(a->e), a->s.lease, a->refreshed_us, a->ttl_ms, a->term);
    return waits_at(a, a->e->place.position);
}

/* ---- the way to a verdict ---- */

/* The owner's request waits, as a->line shows. */
static enum hf_result claim_or_wait(struct attempt *a)
{
    struct etcd *e = a->e;
    for (int i = 0; i < CLAIMS_MAX; i++) {
        int64_t create = a->line.own.create, turn_us;
        enum hf_result result;
        if (!etcd_line_is_free(&a->line, a->s.mode, create)) {
            if ((result = etcd_turn_check(e, &a->s, &a->line, &turn_us, a->fault)) != HF_DONE)
                return result;
            if (turn_us != 0)
                return has_to_wait(a);
        }
        if ((result = etcd_txn_claim(e, &a->s, create, a->r, &a->line, a->fault)) != HF_DONE)
            return result;
        if (a->line.succeeded)
            return granted(a, a->line.revision);
        if (!a->line.has_own)
            break;
        if (a->line.count > a->line.all.n &&
            (result = etcd_txn_look(e, &a->s, 0, &a->line, a->fault)) != HF_DONE)
            return result;
        if (!a->line.has_own)
            break;
        if (a->line.own.claimed)
            return granted_before(a);
    }
    if (a->line.has_own)
        return has_to_wait(a);
    return refused(a); /* the place went meanwhile; the caller asks again */
}

static enum hf_result judge(struct attempt *a)
{
    if (a->line.succeeded)
        return granted(a, a->line.revision);
    if (!a->line.has_own)
        return refused(a);
    return a->line.own.claimed ? granted_before(a) : claim_or_wait(a);
}

/* No key has the lease, since the transaction was not carried out. */
static void give_lease_back(struct attempt *a)
{
    bool found;
    a->e->client.explains = false;
    (void)!etcd_revoke(a->e, a->s.lease, &found, NULL); /* or it ends by itself */
}

/* A request that this handle does not know. */
static enum hf_result ask(struct attempt *a)
{
    bool exists = false;
    enum hf_result result;
    for (int i = 0; i < 2; i++) {
        a->refreshed_us = etcd_now_us(a->e);
        a->ttl_ms = (a->r->ttl_ms + 999) / 1000 * 1000;
        a->term = 0;
        result = etcd_grant(a->e, a->s.lease, a->r->ttl_ms, &exists, a->fault);
        if (result != HF_DONE)
            return result;
        a->has_lease = !exists;
        if (exists &&
            (result = etcd_txn_look(a->e, &a->s, LINE_MAX, &a->line, a->fault)) != HF_DONE)
            return result;
        if (exists && a->line.has_own) {
            a->line.succeeded = false;
            return judge(a);
        }
        if (exists && (result = keep_alive(a)) != HF_DONE)
            return result;
        if (a->has_lease)
            break; /* otherwise it has ended: grant it anew */
    }
    if (!a->has_lease)
        return fault_set(a->fault, HF_UNREACHABLE, "etcd at %s: a lease exists and does not",
                         etcd_endpoint(&a->e->client));
    bool joins = a->r->queue && crowd_is_there(etcd_crowd(a->e), &a->s, a->begun_us);
    result = (joins ? etcd_txn_join : etcd_txn_ask)(a->e, &a->s, a->r, &a->line, a->fault);
    if (result == HF_UNREACHABLE)
        give_lease_back(a);
    if (result != HF_DONE)
        return result;
    return joins && !a->line.own.claimed ? has_to_wait(a) : judge(a);
}

/* A request without a place that found the name taken before looks before it asks: a look costs
 * etcd no write. */
static enum hf_result look_and_ask(struct attempt *a)
{
    enum hf_result result = etcd_txn_look(a->e, &a->s, LINE_MAX, &a->line, a->fault);
    if (result != HF_DONE)
        return result;
    a->line.succeeded = false;
    if (a->line.has_own)
        return judge(a);
    bool is_claimed = false;
    for (size_t i = 0; i < a->line.all.n; i++)
        is_claimed |= a->line.all.v[i].claimed &&
                      (a->s.mode == WIRE_EXCLUSIVE || a->line.all.v[i].mode == WIRE_EXCLUSIVE);
    return is_claimed ? refused(a) : ask(a);
}

/* A request that waits, as this process knows. */
static enum hf_result ask_again(struct attempt *a, const struct crowd_place *p)
{
    a->has_lease = p->refreshed_us > 0;
    a->refreshed_us = p->refreshed_us;
    a->ttl_ms = p->ttl_ms;
    a->term = p->term;
    enum hf_result result = etcd_txn_claim(a->e, &a->s, p->create, a->r, &a->line, a->fault);
    if (result != HF_DONE)
        return result;
    if (a->line.succeeded || a->line.has_own)
        return judge(a);
    etcd_place_forget(a->e, &a->s); /* it was passed over, or its lease has ended */
    a->has_lease = false;
    return ask(a);
}

/* A request that waits in a crowd is judged by what the process has read of the line lately. */
static enum hf_result ask_in_crowd(struct attempt *a, struct crowd_place *p)
{
    struct crowd *crowd = etcd_crowd(a->e);
    for (int i = 0; i < 2; i++) {
        enum crowd_part part;
        size_t position;
        int64_t now_us = etcd_now_us(a->e);
        switch (crowd_judge(crowd, &a->s, p, now_us, &part, &position)) {
        case CROWD_WAITS:
            crowd_note(crowd, p->lease, p->create, position, p->count);
            if (a->e->place.lease == p->lease)
                a->e->place.position = position;
            return waits_at(a, position);
        case CROWD_ASK:
            return ask_again(a, p);
        case CROWD_STALE:
            break;
        }
        enum hf_result result =
            etcd_txn_look(a->e, &a->s, part == CROWD_HEAD ? LINE_MAX : 0, &a->line, a->fault);
        if (result != HF_DONE)
            return result;
        p->count = a->line.count;
        crowd_line_note(crowd, &a->s, part, &a->line, now_us);
    }
    return ask_again(a, p);
}

/* Has the handle just seen that it is the request's turn? */
static bool is_called(struct etcd *e, const struct subject *s)
{
    bool is_called = e->called == s->lease || (e->watch.lease == s->lease && e->watch.has_fired);
    e->called = 0;
    return is_called;
}

enum hf_result etcd_acquire(struct lease *l, const struct lease_request *r, struct lease_verdict *v,
                            struct hf_fault *fault)
{
    struct etcd *e = etcd_of(l);
    struct attempt a = {.e = e, .r = r, .v = v, .fault = fault, .begun_us = etcd_now_us(e)};
    struct crowd_place place;
    etcd_subject_init(&a.s, etcd_prefix(e), r);
    etcd_begin(&e->client, 0);
    bool is_busy = !r->queue && e->busy == (hash_keyed(a.s.base, a.s.base_len) | 1);
    e->busy = is_busy ? 0 : e->busy;
    enum hf_result result;
    if (is_busy)
        result = look_and_ask(&a);
    else if (!crowd_find(etcd_crowd(e), a.s.lease, &place))
        result = ask(&a);
    else
        result = place.count > CROWD_MIN && !is_called(e, &a.s) ? ask_in_crowd(&a, &place)
                                                                : ask_again(&a, &place);
    etcd_line_close(&a.line);
    return result;
}
