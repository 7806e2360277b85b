/* Acquire, renew and release: one script on every server at once, and the votes are counted.
 *
 * A request is granted if a majority of all servers lock it for its owner.  Servers that do not
 * count (join.c) have no vote.  The validity is the TTL, minus the time since before the first
 * command was sent, minus the drift of 1 % + 2 ms: by then no server can have given the key to
 * another owner, if clocks run at the same rate within the drift.
 *
 * The fence.  Each server that locks raises its counter by one and answers the new number.  The
 * fence is the largest of the numbers.
 *   - If all of them are equal, it is stored on a majority already, and the usual case takes one
 *     exchange.
 *   - Otherwise it is written to the servers that still have the lease, which also makes their
 *     counters equal again, and the grant counts if a majority has it.
 * Every fence granted before is smaller: at most n_servers - majority of the servers that count
 * have a counter below it (join.c), so that among a majority at least one has answered a larger
 * number. A renewal, and a request that is repeated, find the same number on all servers.  (A
 * server that was not in time is told the number, too.)
 *
 * A renewal needs a majority that still has the lease.  Where a server has lost it, because it was
 * away or out, the lease is put there again, so that a lock that is held for weeks survives the
 * restarts of all servers, one after another.  That is no revival: the holder has its majority.
 *
 * Answers.  If fewer than a majority of the servers answered, the result is HF_UNKNOWN if the lease
 * may be on a majority all the same; asking again, or releasing, tells.  Otherwise the lease is
 * taken back everywhere and the result is HF_UNREACHABLE. */
#include "lease/redlock/votes.h"

static bool is_any(const struct redlock *r, const struct tally *t)
{
    (void)r;
    (void)t;
    return true;
}

static bool is_refused(const struct redlock *r, const struct tally *t)
{
    (void)r;
    return t->verdict == REFUSED;
}

static enum hf_result begin(struct redlock *r, int64_t limit_ms, struct hf_fault *fault)
{
    fan_begin(r, limit_ms);
    do { /* a server that was left behind may be needed: one of the others may not count */
        fan_connect(r, false);
        redlock_join(r);
    } while (count_of(fan_ready(r)) < r->majority && fan_may_answer(r));
    server_set ready = fan_ready(r), all = bit_of(r->n_servers) - 1;
    return count_of(ready) >= r->majority ? HF_DONE
                                          : fan_fault(r, HF_UNREACHABLE, all & ~ready, fault);
}

/* Fewer than a majority answered. */
static enum hf_result no_majority(struct redlock *r, struct redlock_call *call,
                                  struct hf_fault *fault)
{
    server_set all = bit_of(r->n_servers) - 1;
    bool may_hold = false;
    for (size_t i = 0; i < call->n; i++)
        may_hold = may_hold || count_of(call->tallies[i].won | call->lost) >= r->majority;
    enum hf_result result = may_hold ? HF_UNKNOWN : HF_UNREACHABLE;
    fan_fault(r, result, all & ~call->answered, fault);
    if (!may_hold)
        votes_give_back(r, call, is_any);
    return result;
}

/* ---- acquire ---- */

static void judge_acquire(struct redlock *r, struct redlock_call *call,
                          struct lease_verdict *verdict)
{
    struct tally *t = call->tallies;
    size_t n_won = count_of(t->won);
    *verdict = (struct lease_verdict){.result = HF_TAKEN, .remaining_ms = -1};
    t->verdict = REFUSED;
    if (n_won < r->majority) {
        verdict->remaining_ms = votes_left_ms(t, t->taken, r->majority - n_won - 1);
        redlock_note_taken(r, call->requests, n_won, t->taken, verdict->remaining_ms);
        return;
    }
    int64_t valid_ms = votes_validity_ms(r, t, call->requests);
    if (t->n_stored < r->majority || valid_ms <= 0)
        return;
    t->verdict = GRANTED;
    *verdict =
        (struct lease_verdict){.result = HF_DONE, .fence = t->fence, .remaining_ms = valid_ms};
}

/* The fence of the grant could not be stored, and it is not known whether servers have it. */
static bool is_fence_unknown(const struct redlock *r, const struct redlock_call *call)
{
    const struct tally *t = call->tallies;
    return count_of(t->won) >= r->majority && t->n_stored < r->majority &&
           t->n_stored + count_of(call->lost) >= r->majority;
}

static enum hf_result finish_acquire(struct redlock *r, struct redlock_call *call,
                                     struct lease_verdict *verdict, struct hf_fault *fault)
{
    votes_ask_counting(r, call);
    if (count_of(call->answered) < r->majority)
        return no_majority(r, call, fault);
    votes_store_fences(r, call);
    if (is_fence_unknown(r, call))
        return fan_fault(r, HF_UNKNOWN, call->lost, fault);
    judge_acquire(r, call, verdict);
    if (call->tallies->verdict == REFUSED && (call->tallies->won | call->lost) != 0)
        votes_give_back(r, call, is_refused);
    return HF_DONE;
}

enum hf_result redlock_acquire(struct lease *l, const struct lease_request *q,
                               struct lease_verdict *verdict, struct hf_fault *fault)
{
    struct redlock *r = redlock_of(l);
    enum hf_result result = begin(r, 0, fault);
    struct redlock_call call = votes_call(r, SCRIPT_LOCK, q, 1);
    if (result == HF_DONE) {
        result = finish_acquire(r, &call, verdict, fault);
    } else { /* an earlier try, whose outcome was unknown, may have left something */
        call.lost = fan_open(r);
        votes_give_back(r, &call, is_any);
    }
    votes_close(&call);
    return result;
}

/* ---- renew ---- */

static void put_repair(struct redlock *r, size_t server, void *ctx, size_t i)
{
    votes_put(r, server, ctx, i % 2 ? SCRIPT_FENCE : SCRIPT_LOCK, i / 2);
}

static bool needs_repair(const struct redlock *r, const struct tally *t)
{
    (void)r;
    return t->verdict == GRANTED && t->missing != 0;
}

/* Puts renewed leases on servers that lack them, each by locking and then storing the fence. */
static void repair(struct redlock *r, struct redlock_call *call)
{
    server_set to = 0;
    struct redlock_call some = votes_part(r, call, SCRIPT_LOCK, needs_repair);
    for (size_t k = 0; k < some.n; k++) {
        some.copies[k].label = NULL;
        some.copies[k].queue = false;
        some.copies[k].mode = some.tallies[k].is_shared ? HF_SHARED : HF_EXCLUSIVE;
        to |= some.tallies[k].missing;
    }
    if (to) {
        int64_t until_us = clock_boot_us(r->clock) + 1000 * r->short_ms;
        fan_run(r, &(struct fan){.to = to & fan_ready(r),
                                 .n = 2 * some.n,
                                 .ctx = &some,
                                 .put = put_repair,
                                 .fits = votes_fit,
                                 .until_us = until_us < r->until_us ? until_us : r->until_us});
        fan_done(r);
    }
    votes_close(&some);
}

/* Decides about one request of a renewal.  Returns false if too few servers answered to tell. */
static bool judge_renewal(struct redlock *r, struct redlock_call *call, size_t i,
                          struct lease_verdict *verdict)
{
    struct tally *t = &call->tallies[i];
    size_t n_won = count_of(t->won);
    if (n_won >= r->majority && t->n_stored >= r->majority) {
        int64_t valid_ms = votes_validity_ms(r, t, &call->requests[i]);
        t->verdict = GRANTED;
        *verdict = (struct lease_verdict){
            .result = HF_DONE, .fence = t->fence, .remaining_ms = valid_ms > 0 ? valid_ms : 0};
        return true;
    }
    size_t n_unknown = r->n_servers - count_of(call->answered | call->out);
    if (n_won >= r->majority || n_won + n_unknown >= r->majority)
        return false;
    t->verdict = REFUSED;
    *verdict = (struct lease_verdict){.result = HF_LOST};
    return true;
}

static enum hf_result finish_renewal(struct redlock *r, struct redlock_call *call,
                                     struct lease_verdict *verdicts, struct hf_fault *fault)
{
    votes_ask_counting(r, call);
    votes_store_fences(r, call);
    bool told = true, done = call->lost != 0, lost = false;
    for (size_t i = 0; i < call->n; i++) {
        told = judge_renewal(r, call, i, &verdicts[i]) && told;
        done = done || call->tallies[i].won != 0;
        lost = lost || (call->tallies[i].verdict == REFUSED && call->tallies[i].won != 0);
    }
    if (!told)
        return fan_fault(r, done ? HF_UNKNOWN : HF_UNREACHABLE,
                         (bit_of(r->n_servers) - 1) & ~call->answered, fault);
    repair(r, call);
    if (lost)
        votes_give_back(r, call, is_refused);
    return HF_DONE;
}

enum hf_result redlock_renew(struct lease *l, const struct lease_request *requests, size_t n,
                             struct lease_verdict *verdicts, struct hf_fault *fault)
{
    struct redlock *r = redlock_of(l);
    enum hf_result result = n > 0 ? begin(r, l->limit_ms, fault) : HF_DONE;
    if (result != HF_DONE || n == 0)
        return result;
    struct redlock_call call = votes_call(r, SCRIPT_RENEW, requests, n);
    result = finish_renewal(r, &call, verdicts, fault);
    votes_close(&call);
    return result;
}

/* ---- release ---- */

static enum hf_result finish_release(struct redlock *r, struct redlock_call *call,
                                     struct lease_verdict *verdicts, struct hf_fault *fault)
{
    server_set all = bit_of(r->n_servers) - 1;
    votes_ask(r, call, all, r->until_us);
    (void)votes_count(r, call);
    bool told = true, done = call->lost != 0;
    size_t n_unknown = r->n_servers - count_of(call->answered);
    for (size_t i = 0; i < call->n; i++) {
        size_t n_won = count_of(call->tallies[i].won);
        verdicts[i] = (struct lease_verdict){.result = n_won >= r->majority ? HF_DONE : HF_LOST};
        done = done || n_won > 0;
        told = told && (n_won >= r->majority || n_won + n_unknown < r->majority);
    }
    return told ? HF_DONE
                : fan_fault(r, done ? HF_UNKNOWN : HF_UNREACHABLE, all & ~call->answered, fault);
}

/* Servers that do not count are asked, too: a lease that was left there goes. */
enum hf_result redlock_release(struct lease *l, const struct lease_request *requests, size_t n,
                               struct lease_verdict *verdicts, struct hf_fault *fault)
{
    struct redlock *r = redlock_of(l);
    if (n == 0)
        return HF_DONE;
    fan_begin(r, l->limit_ms);
    fan_connect(r, true);
    struct redlock_call call = votes_call(r, SCRIPT_RELEASE, requests, n);
    enum hf_result result = finish_release(r, &call, verdicts, fault);
    votes_close(&call);
    return result;
}
