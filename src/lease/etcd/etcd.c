/* The etcd driver: leases on an etcd cluster (3.4 or later), over its JSON gateway.
 *
 * Every request for a lock is a key of its own (wire.h) on an etcd lease of its own.  Keys of a
 * name are in line by their create revisions.  The first one may be claimed, by a transaction that
 * compares the whole line (txn.c); its fence is the mod revision of the put that claimed it, and
 * the key is never put again.  etcd's own lock call is not used: in 3.4 it can return after its
 * lease has ended.  Here a key whose lease has ended is gone, so a claim of it fails.
 *
 *   renewal    keeps the lease alive, then reads the key: both must be there, and both answers of
 *              one term, since a leader that was replaced can still answer the first
 *   release    revokes the lease, which deletes the key in the same revision
 *   turn       a waiter that does not claim its turn in WAITER_CLAIM_MS is deleted by the next one
 *              and queues anew when it asks again
 *
 * A handle belongs to one thread at a time and shares with its clones the address, a token and what
 * they know of many waiters (crowd.h). */
#include "lease/etcd/etcd.h"

#include <stdlib.h>
#include <string.h>

#include "etcd/base64.h"

/* What the keys of all locks begin with, unless the URL says otherwise. */
#define PREFIX "holdfast/"
/* Renewals in one exchange. */
#define RENEW_MAX KEEP_ALIVE_MAX

extern const struct lease_driver lease_etcd;

/* ---- handles ---- */

static struct etcd *handle_new(struct etcd_shared *shared, const struct clock *clock,
                               int64_t timeout_ms)
{
    struct etcd *e = hf_alloc(sizeof *e);
    e->lease.driver = &lease_etcd;
    e->clock = clock;
    etcd_client_init(&e->client, shared, timeout_ms);
    return e;
}

static void etcd_close(struct lease *l)
{
    struct etcd *e = etcd_of(l);
    etcd_watch_close(e);
    etcd_client_close(&e->client);
    free(e);
}

/* Reads something that needs a quorum and, where there are users, the right to read. */
static enum hf_result try_reading(struct etcd *e, struct hf_fault *fault)
{
    struct buf *b = etcd_body(&e->client);
    json_t *json;
    buf_lit(b, "{\"key\":\"");
    base64_put(b, etcd_prefix(e), strlen(etcd_prefix(e)));
    buf_lit(b, "\",\"count_only\":true}");
    enum hf_result result = etcd_call(&e->client, "/v3/kv/range", ETCD_READ, &json, NULL, fault);
    if (result == HF_DONE)
        json_decref(json);
    return result;
}

static void free_crowd(void *crowd) { crowd_free(crowd); }

static enum hf_result etcd_open(const char *url, const struct lease_options *options,
                                struct lease **ret, struct hf_fault *fault)
{
    struct etcd_address address;
    char version[32];
    enum hf_result result = etcd_address_parse(url, PREFIX, &address, fault);
    if (result != HF_DONE)
        return result;
    struct etcd_shared *shared = etcd_shared_new(address, crowd_new(), free_crowd);
    struct etcd *e = handle_new(shared, options->clock, options->timeout_ms);
    etcd_shared_free(shared); /* the handle has a reference */
    etcd_begin(&e->client, 0);
    result = etcd_check_version(&e->client, version, fault);
    if (result == HF_DONE)
        result = try_reading(e, fault);
    if (result == HF_DONE)
        *ret = &e->lease;
    else
        etcd_close(&e->lease);
    return result;
}

/* Reads only what never changes, since `l` may be in use. */
static enum hf_result etcd_clone(struct lease *l, struct lease **ret, struct hf_fault *fault)
{
    (void)fault;
    const struct etcd *e = etcd_of(l);
    *ret = &handle_new(e->client.shared, e->clock, e->client.timeout_ms)->lease;
    return HF_DONE;
}

/* ---- renew and release ---- */

/* Nothing was lost by an answer that did not come, but a part of the work may have been done. */
static enum hf_result unknown(enum hf_result result, struct hf_fault *fault)
{
    if (result == HF_DONE)
        return result;
    if (fault)
        fault->result = HF_UNKNOWN;
    return HF_UNKNOWN;
}

/* Reads the keys of the owners in either mode, two ranges for each. */
static enum hf_result read_keys(struct etcd *e, const struct subject *s, size_t n, json_t **ret,
                                struct hf_fault *fault)
{
    static const char modes[] = {WIRE_EXCLUSIVE, WIRE_SHARED};
    struct buf *b = etcd_body(&e->client);
    buf_lit(b, "{\"success\":[");
    for (size_t i = 0; i < 2 * n; i++) {
        buf_str(b, i ? ",{\"request_range\":{" : "{\"request_range\":{");
        wire_key(b, &s[i / 2], modes[i % 2]);
        buf_lit(b, "}}");
    }
    buf_lit(b, "]}");
    return etcd_call(&e->client, "/v3/kv/txn", ETCD_READ, ret, NULL, fault);
}

static struct lease_verdict renewed(const json_t *responses, size_t i, const struct subject *s,
                                    int64_t asked_ms, int64_t ttl_ms)
{
    for (size_t k = 2 * i; ttl_ms > 0 && k < 2 * i + 2; k++) {
        const json_t *range = json_object_get(json_array_get(responses, k), "response_range");
        const json_t *kv = json_array_get(json_object_get(range, "kvs"), 0);
        struct etcd_entry entry;
        if (kv && etcd_entry_read(&entry, kv, s) && entry.claimed)
            return (struct lease_verdict){.result = HF_DONE,
                                          .fence = entry.mod,
                                          .remaining_ms = ttl_ms < asked_ms ? ttl_ms : asked_ms};
    }
    return (struct lease_verdict){.result = HF_LOST};
}

static enum hf_result renew_some(struct etcd *e, const struct lease_request *requests, size_t n,
                                 struct lease_verdict *verdicts, struct hf_fault *fault)
{
    struct subject s[RENEW_MAX];
    int64_t ids[RENEW_MAX] = {0}, ttls_ms[RENEW_MAX] = {0}, term;
    json_t *json;
    for (size_t i = 0; i < n; i++) {
        etcd_subject_init(&s[i], etcd_prefix(e), &requests[i]);
        ids[i] = s[i].lease;
    }
    enum hf_result result = etcd_keep_alive(e, ids, n, ttls_ms, &term, fault);
    if (result != HF_DONE)
        return result;
    result = read_keys(e, s, n, &json, fault);
    if (result != HF_DONE)
        return unknown(result, fault);
    /* The read was answered with a majority's consent, so its term is the current one. */
    if (etcd_number(json_object_get(json, "header"), "raft_term") != term) {
        json_decref(json);
        return fault_set(fault, HF_UNKNOWN, "etcd at %s: the leader changed during the renewal",
                         etcd_endpoint(&e->client));
    }
    const json_t *responses = json_object_get(json, "responses");
    for (size_t i = 0; i < n; i++)
        verdicts[i] = renewed(responses, i, &s[i], requests[i].ttl_ms, ttls_ms[i]);
    json_decref(json);
    return HF_DONE;
}

static enum hf_result etcd_renew(struct lease *l, const struct lease_request *requests, size_t n,
                                 struct lease_verdict *verdicts, struct hf_fault *fault)
{
    struct etcd *e = etcd_of(l);
    etcd_begin(&e->client, l->limit_ms);
    for (size_t i = 0; i < n; i += RENEW_MAX) {
        size_t some = n - i < RENEW_MAX ? n - i : RENEW_MAX;
        enum hf_result result = renew_some(e, requests + i, some, verdicts + i, fault);
        if (result != HF_DONE)
            return i > 0 ? unknown(result, fault) : result;
    }
    return HF_DONE;
}

static enum hf_result etcd_release(struct lease *l, const struct lease_request *requests, size_t n,
                                   struct lease_verdict *verdicts, struct hf_fault *fault)
{
    struct etcd *e = etcd_of(l);
    etcd_begin(&e->client, l->limit_ms);
    for (size_t i = 0; i < n; i++) {
        struct subject s;
        bool found = false;
        etcd_subject_init(&s, etcd_prefix(e), &requests[i]);
        etcd_place_forget(e, &s);
        enum hf_result result = etcd_revoke(e, s.lease, &found, fault);
        if (result != HF_DONE)
            return i > 0 ? unknown(result, fault) : result;
        verdicts[i] = (struct lease_verdict){.result = found ? HF_DONE : HF_LOST};
    }
    return HF_DONE;
}

const struct lease_driver lease_etcd = {
    .info = {.size = sizeof(struct hf_driver_info),
             .name = "etcd",
             .url = "etcd[s]://[user:password@]host[:port][,host...][?prefix=...&cacert=FILE"
                    "&cert=FILE&key=FILE]",
             .fence = HF_FENCE_CONSENSUS,
             .processes = true,
             .outlives = true,
             .fair = true,
             .shared = true,
             .ttl_min_ms = 2000,
             .ttl_max_ms = LEASE_TTL_MAX_MS,
             .name_len_max = LEASE_NAME_MAX,
             .ttl =
                 "the monotonic clock of etcd's leader, in whole seconds, rounded up; a lease can "
                 "end up to a second late, and has its full TTL again after a change of leader",
             .survives = "clients' ends and lost connections; a restart of etcd, since it stores "
                         "everything before it answers; the loss of a minority of its members. "
                         "Without a majority nothing is granted or renewed. Clocks that are set do "
                         "not matter. If the cluster loses its data, or is restored from a backup, "
                         "leases are forgotten and revisions begin anew: fences fall",
             .overlaps = HF_OVERLAP_RESTART | HF_OVERLAP_LEADER,
             .traits = HF_TRAIT_FIXED_TTL | HF_TRAIT_FORGETS_FENCE | HF_TRAIT_QUEUES_ANEW,
             .beware =
                 "A leader that was stopped, replaced and resumes can end leases that are being "
                 "renewed (etcd issue 15247; 3.4.23 has it): a second holder then has the lock "
                 "while the first believes in it. Fences grow all the same. If etcd restarts "
                 "without its data two may hold a lock, too, and the second has the smaller "
                 "fence: a target refuses the wrong one. TTLs are whole seconds, at least 2"},
    .schemes = (const char *const[]){"etcd://", "etcds://", NULL},
    .open = etcd_open,
    .close = etcd_close,
    .clone = etcd_clone,
    .acquire = etcd_acquire,
    .renew = etcd_renew,
    .release = etcd_release,
    .wait = etcd_wait,
    .inspect = etcd_inspect,
    .list = etcd_list,
    .break_ = etcd_break,
    .examine = etcd_examine,
};
