/* The transactions on the line of a name.  Each is one exchange, and etcd judges its comparisons
 * and carries out its changes at one revision.
 *
 * A comparison over a range holds if it holds for every key in it; over an empty range, if it holds
 * for a key with all revisions 0, and never if it is about values.
 *
 *   the name is free              every key of the range has create revision 0: there is none
 *   nobody has claimed it         every value of the range is larger than "d": it begins with 'w'
 *   none came earlier             every create revision of the range is larger than ours less one
 *
 * A request whose key does not exist yet is claimed at once if it may be: its key is then created
 * with a value "c...", and create revision and mod revision are both its fence.  Otherwise the key
 * is created with "w...", and claimed by a second put with ignore_lease.  Either way the put that
 * claims is the last one of the key, so that its mod revision stays the fence. */
#include <inttypes.h>

#include "lease/etcd/etcd.h"

static int64_t wall_ms(const struct etcd *e) { return clock_wall_us(e->clock) / 1000; }

/* ---- comparisons ---- */

static void own_revision_is(struct buf *b, const struct subject *s, int64_t create)
{
    buf_char(b, '{');
    wire_key(b, s, s->mode);
    buf_printf(b,
               ",\"target\":\"CREATE\",\"result\":\"EQUAL\",\"create_revision\":\"%" PRId64 "\"}",
               create);
}

static void own_is_unclaimed(struct buf *b, const struct subject *s)
{
    buf_char(b, '{');
    wire_key(b, s, s->mode);
    buf_lit(b, ",\"target\":\"VERSION\",\"result\":\"EQUAL\",\"version\":\"1\"}");
}

static void range_is_empty(struct buf *b, const struct subject *s, char mode)
{
    buf_char(b, '{');
    wire_range(b, s, mode);
    buf_lit(b, ",\"target\":\"CREATE\",\"result\":\"EQUAL\",\"create_revision\":\"0\"}");
}

static void range_is_not_older(struct buf *b, const struct subject *s, char mode, int64_t create)
{
    buf_char(b, '{');
    wire_range(b, s, mode);
    buf_printf(b,
               ",\"target\":\"CREATE\",\"result\":\"GREATER\",\"create_revision\":\"%" PRId64 "\"}",
               create - 1);
}

static void range_is_unclaimed(struct buf *b, const struct subject *s, char mode)
{
    buf_char(b, '{');
    wire_range(b, s, mode);
    buf_lit(b, ",\"target\":\"VALUE\",\"result\":\"GREATER\",\"value\":\"ZA==\"}"); /* "d" */
}

/* ---- operations ---- */

static void put(struct buf *b, const struct etcd *e, const struct subject *s,
                const struct lease_request *r, bool claimed)
{
    buf_lit(b, "{\"request_put\":{");
    wire_key(b, s, s->mode);
    buf_char(b, ',');
    wire_value(b, claimed, wall_ms(e), r->label, r->label ? r->label_len : 0);
    buf_printf(b, ",\"lease\":\"%" PRId64 "\"}}", s->lease);
}

/* The key keeps its lease, and must be there. */
static void put_claimed(struct buf *b, const struct etcd *e, const struct subject *s,
                        const struct lease_request *r)
{
    buf_lit(b, "{\"request_put\":{");
    wire_key(b, s, s->mode);
    buf_char(b, ',');
    wire_value(b, true, wall_ms(e), r->label, r->label ? r->label_len : 0);
    buf_lit(b, ",\"ignore_lease\":true}}");
}

/* What etcd_line_read expects. */
static void read_line(struct buf *b, const struct subject *s, size_t limit)
{
    buf_lit(b, "{\"request_range\":{");
    wire_key(b, s, s->mode);
    buf_lit(b, "}},{\"request_range\":{");
    wire_range(b, s, WIRE_BOTH);
    buf_printf(b, ",\"sort_order\":\"ASCEND\",\"sort_target\":\"CREATE\",\"limit\":\"%zu\"}}",
               limit);
}

static enum hf_result send(struct etcd *e, const struct subject *s, enum etcd_kind kind,
                           struct etcd_line *ret, struct hf_fault *fault)
{
    json_t *json;
    int64_t from_us = etcd_now_us(e);
    enum hf_result result = etcd_call(&e->client, "/v3/kv/txn", kind, &json, NULL, fault);
    if (result != HF_DONE)
        return result;
    e->look_us = etcd_now_us(e) - from_us;
    etcd_line_read(ret, json, s);
    json_decref(json);
    if (ret->revision <= 0) /* it would be a fence */
        return fault_set(fault, kind == ETCD_WRITE ? HF_UNKNOWN : HF_UNREACHABLE,
                         "etcd at %s: an answer without a revision", etcd_endpoint(&e->client));
    atomic_store(&e->client.shared->term, ret->term);
    return HF_DONE;
}

/* ---- transactions ---- */

enum hf_result etcd_txn_look(struct etcd *e, const struct subject *s, size_t limit,
                             struct etcd_line *ret, struct hf_fault *fault)
{
    struct buf *b = etcd_body(&e->client);
    buf_lit(b, "{\"success\":[");
    read_line(b, s, limit);
    buf_lit(b, "]}");
    enum hf_result result = send(e, s, ETCD_READ, ret, fault);
    ret->succeeded = false; /* nothing was compared */
    return result;
}

/* The answer looks like that of a transaction whose second range is about the line. */
enum hf_result etcd_txn_look_before(struct etcd *e, const struct subject *s, int64_t create,
                                    struct etcd_line *ret, struct hf_fault *fault)
{
    struct buf *b = etcd_body(&e->client);
    buf_lit(b, "{\"success\":[{\"request_range\":{");
    wire_key(b, s, s->mode);
    buf_lit(b, "}},{\"request_range\":{");
    wire_range(b, s, s->mode == WIRE_SHARED ? WIRE_EXCLUSIVE : WIRE_BOTH);
    buf_printf(b,
               ",\"sort_order\":\"DESCEND\",\"sort_target\":\"CREATE\",\"limit\":\"1\","
               "\"max_create_revision\":\"%" PRId64 "\"}}]}",
               create - 1);
    return send(e, s, ETCD_READ, ret, fault);
}

/* A writer is claimed at once if there is no other request; a reader, if there is no writer.  A
 * request that does not queue is also claimed if others wait and nobody has claimed the lock. */
enum hf_result etcd_txn_ask(struct etcd *e, const struct subject *s, const struct lease_request *r,
                            struct etcd_line *ret, struct hf_fault *fault)
{
    struct buf *b = etcd_body(&e->client);
    buf_lit(b, "{\"compare\":[");
    own_revision_is(b, s, 0);
    buf_char(b, ',');
    range_is_empty(b, s, s->mode == WIRE_SHARED ? WIRE_EXCLUSIVE : WIRE_BOTH);
    buf_lit(b, "],\"success\":[");
    put(b, e, s, r, true);
    buf_lit(b, "],\"failure\":[{\"request_txn\":{\"compare\":[");
    own_revision_is(b, s, 0);
    if (!r->queue) {
        buf_char(b, ',');
        range_is_unclaimed(b, s, WIRE_BOTH);
    }
    buf_lit(b, "],\"success\":[");
    put(b, e, s, r, !r->queue);
    buf_lit(b, "]}},");
    read_line(b, s, LINE_MAX);
    buf_lit(b, "]}");
    enum hf_result result = send(e, s, ETCD_WRITE, ret, fault);
    if (result == HF_DONE && r->queue && ret->has_own && !ret->own.claimed)
        ret->succeeded = false; /* the nested put made a place */
    return result;
}

enum hf_result etcd_txn_join(struct etcd *e, const struct subject *s, const struct lease_request *r,
                             struct etcd_line *ret, struct hf_fault *fault)
{
    struct buf *b = etcd_body(&e->client);
    buf_lit(b, "{\"success\":[{\"request_txn\":{\"compare\":[");
    own_revision_is(b, s, 0);
    buf_lit(b, "],\"success\":[");
    put(b, e, s, r, false);
    buf_lit(b, "]}},{\"request_range\":{");
    wire_key(b, s, s->mode);
    buf_lit(b, "}},{\"request_range\":{");
    wire_range(b, s, WIRE_BOTH);
    buf_lit(b, ",\"count_only\":true}}]}");
    enum hf_result result = send(e, s, ETCD_WRITE, ret, fault);
    ret->succeeded = false;
    return result;
}

/* A reader may be claimed if there is no writer, or if all writers came later and none has claimed
 * the lock: two transactions, since comparisons over an empty range hold for 0 only. */
enum hf_result etcd_txn_claim(struct etcd *e, const struct subject *s, int64_t create,
                              const struct lease_request *r, struct etcd_line *ret,
                              struct hf_fault *fault)
{
    struct buf *b = etcd_body(&e->client);
    bool is_reader = s->mode == WIRE_SHARED;
    buf_lit(b, "{\"compare\":[");
    own_revision_is(b, s, create);
    buf_char(b, ',');
    own_is_unclaimed(b, s);
    buf_char(b, ',');
    if (is_reader) {
        range_is_empty(b, s, WIRE_EXCLUSIVE);
    } else {
        range_is_not_older(b, s, WIRE_BOTH, create);
        buf_char(b, ',');
        range_is_unclaimed(b, s, WIRE_BOTH);
    }
    buf_lit(b, "],\"success\":[");
    put_claimed(b, e, s, r);
    buf_lit(b, "],\"failure\":[");
    if (is_reader) {
        buf_lit(b, "{\"request_txn\":{\"compare\":[");
        own_revision_is(b, s, create);
        buf_char(b, ',');
        own_is_unclaimed(b, s);
        buf_char(b, ',');
        range_is_not_older(b, s, WIRE_EXCLUSIVE, create);
        buf_char(b, ',');
        range_is_unclaimed(b, s, WIRE_EXCLUSIVE);
        buf_lit(b, "],\"success\":[");
        put_claimed(b, e, s, r);
        buf_lit(b, "]}},");
    }
    read_line(b, s, LINE_MAX);
    buf_lit(b, "]}");
    return send(e, s, ETCD_WRITE, ret, fault);
}

enum hf_result etcd_txn_pass_over(struct etcd *e, const struct subject *s,
                                  const struct etcd_line *line, size_t n, bool if_unclaimed,
                                  struct hf_fault *fault)
{
    struct buf *b = etcd_body(&e->client), deletions = {0};
    struct subject other = *s;
    struct etcd_line unread = {0};
    buf_lit(b, "{\"compare\":[");
    for (size_t i = 0; i < n; i++) {
        const struct etcd_entry *entry = &line->all.v[i];
        memcpy(other.owner, entry->owner, sizeof other.owner);
        buf_str(b, i ? ",{" : "{");
        wire_key(b, &other, entry->mode);
        buf_printf(b, ",\"target\":\"MOD\",\"result\":\"EQUAL\",\"mod_revision\":\"%" PRId64 "\"}",
                   entry->mod);
        buf_str(&deletions, i ? ",{" : "{");
        buf_lit(&deletions, "\"request_delete_range\":{");
        wire_key(&deletions, &other, entry->mode);
        buf_lit(&deletions, "}}");
    }
    if (if_unclaimed) {
        buf_char(b, ',');
        range_is_unclaimed(b, s, WIRE_BOTH);
    }
    buf_lit(b, "],\"success\":[");
    buf_put(b, deletions.data, deletions.len);
    buf_lit(b, "]}");
    buf_close(&deletions);
    enum hf_result result = send(e, s, ETCD_WRITE, &unread, fault);
    etcd_line_close(&unread);
    return result;
}
