/* What the settings of an etcd cluster mean for locks.  Reads only. */
#include "lease/etcd/etcd.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MB (INT64_C(1) << 20)

struct etcd_examination {
    struct etcd *e;
    lease_each_finding *each;
    void *ctx;
};

/* The first releases with a fix for etcd's issue 15247 are 3.4.31 and 3.5.13. */
static bool has_lease_defect(const char *version)
{
    int major = 0, minor = 0, patch = 0;
    if (sscanf(version, "%d.%d.%d", &major, &minor, &patch) != 3 || major != 3)
        return false;
    return (minor == 4 && patch < 31) || (minor == 5 && patch < 13);
}

static void tell_version(const struct etcd_examination *x, const char *version)
{
    if (has_lease_defect(version))
        lease_finding(x->each, x->ctx, HF_WARNING, "version",
                      "etcd %s: a leader that was stopped, replaced and resumes can end leases "
                      "that are being renewed (etcd issue 15247), so that two holders believe in "
                      "one lock. Fences grow all the same. 3.4.31 and 3.5.13 have a fix.",
                      version);
    else
        lease_finding(x->each, x->ctx, HF_GOOD, "version", "etcd %s.", version);
}

static enum hf_result post(struct etcd *e, const char *path, const char *body, json_t **ret,
                           struct hf_fault *fault)
{
    buf_str(etcd_body(&e->client), body);
    etcd_begin(&e->client, 0);
    return etcd_call(&e->client, path, ETCD_READ, ret, NULL, fault);
}

static void tell_size(const struct etcd_examination *x, int64_t size)
{
    int64_t quota = etcd_metric(&x->e->client, "etcd_server_quota_backend_bytes");
    if (quota > 0 && size > quota / 10 * 8)
        lease_finding(x->each, x->ctx, HF_WARNING, "space",
                      "The database has %" PRId64 " MB of its quota of %" PRId64
                      " MB; when it is full nothing can be locked. Compact and defragment it.",
                      size / MB, quota / MB);
    else if (quota > 0)
        lease_finding(x->each, x->ctx, HF_GOOD, "space",
                      "The database has %" PRId64 " MB of its quota of %" PRId64 " MB.", size / MB,
                      quota / MB);
    else
        lease_finding(x->each, x->ctx, HF_NOTE, "space",
                      "The database has %" PRId64 " MB; its quota cannot be read.", size / MB);
}

static enum hf_result tell_status(const struct etcd_examination *x, struct hf_fault *fault)
{
    json_t *status;
    enum hf_result result = post(x->e, "/v3/maintenance/status", "{}", &status, fault);
    if (result != HF_DONE)
        return result;
    int64_t size = etcd_number(status, "dbSize");
    bool has_leader = etcd_number(status, "leader") != 0;
    json_decref(status);
    if (!has_leader)
        lease_finding(x->each, x->ctx, HF_DANGER, "leader",
                      "%s has no leader: a majority of the members (the quorum) is not there, and "
                      "nothing can be locked.",
                      etcd_endpoint(&x->e->client));
    tell_size(x, size);
    return HF_DONE;
}

static enum hf_result tell_members(const struct etcd_examination *x, struct hf_fault *fault)
{
    json_t *json, *member;
    size_t i, n_voters = 0;
    enum hf_result result = post(x->e, "/v3/cluster/member/list", "{}", &json, fault);
    if (result != HF_DONE)
        return result;
    json_array_foreach(json_object_get(json, "members"), i, member) n_voters +=
        !json_is_true(json_object_get(member, "isLearner"));
    json_decref(json);
    size_t n_endpoints = x->e->client.shared->address.n_endpoints;
    if (n_voters < 3)
        lease_finding(x->each, x->ctx, HF_NOTE, "members",
                      "The cluster has %zu voting member%s: if one is lost, nothing can be locked "
                      "until it is back. Three survive the loss of one.",
                      n_voters, n_voters == 1 ? "" : "s");
    else
        lease_finding(x->each, x->ctx, HF_GOOD, "members",
                      "The cluster has %zu voting members and survives the loss of %zu.%s",
                      n_voters, (n_voters - 1) / 2,
                      n_voters % 2 ? "" : " An even number survives no more than one member less.");
    if (n_endpoints == 1 && n_voters > 1)
        lease_finding(x->each, x->ctx, HF_NOTE, "endpoints",
                      "The URL names one of %zu members; if that one is lost, this client finds no "
                      "other. Name them all.",
                      n_voters);
    return HF_DONE;
}

static enum hf_result tell_alarms(const struct etcd_examination *x, struct hf_fault *fault)
{
    json_t *json, *alarm;
    size_t i;
    enum hf_result result =
        post(x->e, "/v3/maintenance/alarm", "{\"action\":\"GET\"}", &json, fault);
    if (result != HF_DONE)
        return result;
    json_array_foreach(json_object_get(json, "alarms"), i, alarm)
    {
        const char *what = json_string_value(json_object_get(alarm, "alarm"));
        lease_finding(x->each, x->ctx, HF_DANGER, "alarm", "The alarm %s is set: %s",
                      what ? what : "?",
                      what && strcmp(what, "NOSPACE") == 0
                          ? "the database is full, and nothing can be locked."
                          : "the data of a member may be damaged.");
    }
    json_decref(json);
    return HF_DONE;
}

static void tell_access(const struct etcd_examination *x)
{
    const struct etcd_address *a = &x->e->client.shared->address;
    bool is_tls = strncmp(a->endpoints[0], "https:", 6) == 0;
    if (x->e->client.token.len > 1)
        lease_finding(x->each, x->ctx, HF_GOOD, "access", "User %s, with a password.", a->user);
    else if (a->cert_file)
        lease_finding(x->each, x->ctx, HF_GOOD, "access", "A client certificate is shown.");
    else
        lease_finding(x->each, x->ctx, HF_NOTE, "access",
                      "No password is asked for: everybody who reaches etcd can break a lock.");
    lease_finding(x->each, x->ctx, is_tls ? HF_GOOD : HF_NOTE, "transport",
                  is_tls ? "The connection is encrypted (TLS)."
                         : "The connection is not encrypted; etcds:// is.");
    lease_finding(x->each, x->ctx, HF_GOOD, "clock",
                  "TTLs are counted by the leader's monotonic clock, in whole seconds; clocks that "
                  "are set do not matter.");
    lease_finding(x->each, x->ctx, HF_GOOD, "persistence",
                  "etcd stores every change on a majority of its members before it answers, unless "
                  "it was started with --unsafe-no-fsync.");
}

/* A user without the role root may not read everything; what it may not read is left out. */
static enum hf_result unless_refused(const struct etcd_examination *x, const char *what,
                                     enum hf_result result, struct hf_fault *fault)
{
    if (result == HF_DONE || !fault || !strstr(fault->msg, "permission denied"))
        return result;
    lease_finding(x->each, x->ctx, HF_NOTE, what, "This user may not read it.");
    return HF_DONE;
}

enum hf_result etcd_examine(struct lease *l, lease_each_finding *each, void *ctx,
                            struct hf_fault *fault)
{
    struct hf_fault unread;
    const struct etcd_examination x = {.e = etcd_of(l), .each = each, .ctx = ctx};
    char version[32];
    enum hf_result result;
    fault = fault ? fault : &unread;
    etcd_begin(&x.e->client, 0);
    if ((result = etcd_check_version(&x.e->client, version, fault)) != HF_DONE)
        return result;
    tell_version(&x, version);
    if ((result = unless_refused(&x, "status", tell_status(&x, fault), fault)) != HF_DONE ||
        (result = unless_refused(&x, "members", tell_members(&x, fault), fault)) != HF_DONE ||
        (result = unless_refused(&x, "alarms", tell_alarms(&x, fault), fault)) != HF_DONE)
        return result;
    tell_access(&x);
    return HF_DONE;
}
