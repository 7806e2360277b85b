/* What the servers of a cell say about themselves in the etcd journal, and what etcd says about
 * itself. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cell/journal_etcd.h"
#include "etcd/base64.h"

#define MB (INT64_C(1) << 20)

/* ---- reports ---- */

static struct etcd_key key_of_server(const struct etcd_journal *e, const char *url)
{
    char name[sizeof "server/" + JOURNAL_URL_MAX];
    hf_check(strlen(url) <= JOURNAL_URL_MAX);
    memcpy(name, "server/", 7);
    memcpy(name + 7, url, strlen(url) + 1);
    return journal_key(e, name);
}

/* Returns false if it is no report. */
static bool read_server(const struct etcd_journal *e, const json_t *kv, struct journal_server *ret)
{
    size_t len = 0, prefix_len = e->prefix.len + sizeof "server/" - 1;
    struct buf value = {0};
    char *key = base64_decode(json_object_get(kv, "key"), &len);
    bool is_report =
        key && len >= prefix_len && len - prefix_len <= JOURNAL_URL_MAX && txn_value(kv, &value);
    const char *text = value.data;
    *ret = (struct journal_server){0};
    is_report = is_report && journal_take_number(&text, &ret->index) && *text++ == ' ' &&
                journal_take_number(&text, &ret->beat);
    if (is_report)
        memcpy(ret->url, key + prefix_len, len - prefix_len + 1);
    free(key);
    buf_close(&value);
    return is_report;
}

enum journal_result etcd_journal_report(struct journal *j, const struct journal_server *self,
                                        const char *gone, struct journal_server *ret, size_t max,
                                        size_t *ret_n, struct hf_err *err)
{
    struct etcd_journal *e = etcd_journal_of(j);
    const struct etcd_key own = key_of_server(e, self->url), from = journal_key(e, "server/"),
                          to = journal_key(e, "server0");
    json_t *answer, *kv;
    size_t i;
    hf_check(self->index >= 0);
    e->value.len = 0;
    journal_put_number(&e->value, self->index);
    buf_char(&e->value, ' ');
    journal_put_number(&e->value, self->beat & INT64_MAX);
    txn_begin(e);
    txn_then(e);
    txn_read_range(e, &from, &to, max + 1, false);
    bool is_gone = gone && strcmp(gone, self->url) == 0;
    if (!is_gone)
        txn_put(e, &own, e->value.data, e->value.len);
    if (gone) {
        const struct etcd_key key = key_of_server(e, gone);
        txn_delete(e, &key, NULL);
    }
    enum journal_result result = txn_run(e, ETCD_WRITE, &answer, err);
    if (result != JOURNAL_DONE)
        return result;
    size_t n = 0;
    if (max > 0 && !is_gone)
        ret[n++] = *self;
    json_array_foreach(txn_keys(answer, 0), i, kv)
    {
        struct journal_server s;
        if (n < max && read_server(e, kv, &s) && strcmp(s.url, self->url) != 0 &&
            (!gone || strcmp(s.url, gone) != 0))
            ret[n++] = s;
    }
    *ret_n = n;
    json_decref(answer);
    return JOURNAL_DONE;
}

/* ---- what etcd says about itself ---- */

static enum hf_result post(struct etcd_journal *e, const char *path, const char *body, json_t **ret,
                           struct hf_fault *fault)
{
    buf_str(etcd_body(e->client), body);
    etcd_begin(e->client, 0);
    return etcd_call(e->client, path, ETCD_READ, ret, NULL, fault);
}

/* A user without the role root may not read everything; what it may not read is left out. */
static enum hf_status unless_refused(enum hf_result result, const struct hf_fault *fault,
                                     struct hf_err *err)
{
    return result == HF_DONE || strstr(fault->msg, "permission denied")
               ? HF_OK
               : hf_err_set(err, HF_UNAVAILABLE, "%s", fault->msg);
}

static enum hf_status warn_of_members(struct etcd_journal *e, struct buf *ret, struct hf_err *err)
{
    struct hf_fault fault;
    json_t *json, *member;
    size_t i, n_voters = 0, n_endpoints = e->client->shared->address.n_endpoints;
    enum hf_result result = post(e, "/v3/cluster/member/list", "{}", &json, &fault);
    if (result != HF_DONE)
        return unless_refused(result, &fault, err);
    json_array_foreach(json_object_get(json, "members"), i, member) n_voters +=
        !json_is_true(json_object_get(member, "isLearner"));
    json_decref(json);
    if (n_voters < 3)
        buf_printf(ret,
                   "etcd has %zu voting member%s: if one is lost, the cell stands still until it "
                   "is back, and what only its disk had is lost with it; three survive the loss "
                   "of one\n",
                   n_voters, n_voters == 1 ? "" : "s");
    if (n_endpoints == 1 && n_voters > 1)
        buf_printf(ret,
                   "the journal's URL names one of %zu members of etcd: if that one is lost, this "
                   "server finds no other; name them all\n",
                   n_voters);
    return HF_OK;
}

static enum hf_status warn_of_space(struct etcd_journal *e, struct buf *ret, struct hf_err *err)
{
    struct hf_fault fault;
    json_t *json, *alarm;
    size_t i;
    enum hf_result result = post(e, "/v3/maintenance/status", "{}", &json, &fault);
    if (result != HF_DONE)
        return unless_refused(result, &fault, err);
    int64_t size = etcd_number(json, "dbSize"), in_use = etcd_number(json, "dbSizeInUse");
    json_decref(json);
    int64_t quota = etcd_metric(e->client, "etcd_server_quota_backend_bytes");
    if (quota > 0 && size > quota / 10 * 8)
        buf_printf(ret,
                   "etcd's database has %" PRId64 " MB (%" PRId64
                   " MB in use) of its quota of %" PRId64
                   " MB; when it is full the cell stands still: defragment it, or raise "
                   "--quota-backend-bytes\n",
                   size / MB, in_use / MB, quota / MB);
    result = post(e, "/v3/maintenance/alarm", "{\"action\":\"GET\"}", &json, &fault);
    if (result != HF_DONE)
        return unless_refused(result, &fault, err);
    json_array_foreach(json_object_get(json, "alarms"), i, alarm)
    {
        const char *what = json_string_value(json_object_get(alarm, "alarm"));
        bool is_full = what && strcmp(what, "NOSPACE") == 0;
        buf_printf(ret, "etcd's alarm %.20s is set: %s\n", what ? what : "?",
                   is_full ? "its database is full; compact, defragment, disarm the alarm"
                           : "the data of a member may be damaged");
    }
    json_decref(json);
    return HF_OK;
}

enum hf_status etcd_journal_warnings(struct journal *j, struct buf *ret_lines, struct hf_err *err)
{
    struct etcd_journal *e = etcd_journal_of(j);
    struct hf_fault fault;
    char version[32];
    etcd_begin(e->client, 0);
    if (etcd_check_version(e->client, version, &fault) != HF_DONE)
        return hf_err_set(err, HF_UNAVAILABLE, "%s", fault.msg);
    enum hf_status status = warn_of_members(e, ret_lines, err);
    return status == HF_OK ? warn_of_space(e, ret_lines, err) : status;
}
