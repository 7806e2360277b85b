/* etcd's leases, which end the keys of requests.  Their TTL is in whole seconds: a request gets at
 * least what it asked for.  A lease may end later than its TTL says (etcd looks twice a second, and
 * a new leader gives every lease its full TTL again), but not earlier; see etcd.c for the
 * exception.
 */
#include <inttypes.h>
#include <string.h>

#include "lease/etcd/etcd.h"

enum hf_result etcd_grant(struct etcd *e, int64_t id, int64_t ttl_ms, bool *ret_exists,
                          struct hf_fault *fault)
{
    json_t *json;
    enum etcd_answer answer;
    buf_printf(etcd_body(&e->client), "{\"ID\":\"%" PRId64 "\",\"TTL\":\"%" PRId64 "\"}", id,
               (ttl_ms + 999) / 1000);
    enum hf_result result =
        etcd_call(&e->client, "/v3/lease/grant", ETCD_WRITE, &json, &answer, fault);
    if (result != HF_DONE)
        return result;
    json_decref(json);
    *ret_exists = answer == ETCD_LEASE_EXISTS;
    return HF_DONE;
}

/* The answer is one line per lease, {"result":{"ID":"1","TTL":"30"}}, in the order of the request.
 * A lease that has ended, and that etcd has not deleted yet, is answered when it is gone. */
enum hf_result etcd_keep_alive(struct etcd *e, const int64_t *ids, size_t n, int64_t *ret_ttl_ms,
                               int64_t *ret_term, struct hf_fault *fault)
{
    struct buf *body = etcd_body(&e->client);
    hf_check(n <= KEEP_ALIVE_MAX);
    for (size_t i = 0; i < n; i++)
        buf_printf(body, "{\"ID\":\"%" PRId64 "\"}\n", ids[i]);
    enum hf_result result = etcd_call_text(&e->client, "/v3/lease/keepalive", ETCD_READ, fault);
    if (result != HF_DONE)
        return result;
    const char *line = e->client.response.body.data, *end = line + e->client.response.body.len;
    for (size_t i = 0; i < n; i++) {
        const char *next = line < end ? memchr(line, '\n', (size_t)(end - line)) : NULL;
        next = next ? next : end;
        json_t *json = json_loadb(line, (size_t)(next - line), 0, NULL);
        const json_t *answer = json_object_get(json, "result");
        bool is_right = answer && etcd_number(answer, "ID") == ids[i];
        int64_t ttl_s = etcd_number(answer, "TTL");
        int64_t term = etcd_number(json_object_get(answer, "header"), "raft_term");
        *ret_term = i == 0 || term < *ret_term ? term : *ret_term;
        json_decref(json);
        if (!is_right)
            return fault_set(fault, HF_UNREACHABLE,
                             "etcd at %s: a renewal was not answered; is there a leader, and a "
                             "majority of the members (the quorum)?",
                             etcd_endpoint(&e->client));
        ret_ttl_ms[i] = ttl_s > 0 ? 1000 * ttl_s : 0;
        line = next < end ? next + 1 : end;
    }
    return HF_DONE;
}

enum hf_result etcd_revoke(struct etcd *e, int64_t id, bool *ret_found, struct hf_fault *fault)
{
    json_t *json;
    enum etcd_answer answer;
    buf_printf(etcd_body(&e->client), "{\"ID\":\"%" PRId64 "\"}", id);
    enum hf_result result =
        etcd_call(&e->client, "/v3/lease/revoke", ETCD_WRITE, &json, &answer, fault);
    if (result != HF_DONE)
        return result;
    json_decref(json);
    *ret_found = answer != ETCD_NO_LEASE;
    return HF_DONE;
}

enum hf_result etcd_left(struct etcd *e, int64_t id, int64_t *ret_left_s, int64_t *ret_ttl_s,
                         struct hf_fault *fault)
{
    json_t *json;
    enum etcd_answer answer;
    buf_printf(etcd_body(&e->client), "{\"ID\":\"%" PRId64 "\"}", id);
    enum hf_result result =
        etcd_call(&e->client, "/v3/lease/timetolive", ETCD_READ, &json, &answer, fault);
    if (result != HF_DONE)
        return result;
    *ret_ttl_s = answer == ETCD_OK ? etcd_number(json, "grantedTTL") : 0;
    *ret_left_s = *ret_ttl_s > 0 ? etcd_number(json, "TTL") : -1;
    json_decref(json);
    return HF_DONE;
}
