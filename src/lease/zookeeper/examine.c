/* What the settings of an ensemble mean for its locks.  It asks the server that it is connected to
 * for its version and mode, if that answers four-letter words, negotiates the shortest and the
 * longest session, and reads the ensemble's configuration.  No node is written. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/wait.h"
#include "lease/zookeeper/handle.h"
#include "lease/zookeeper/words.h"

#define ROUNDS 5
#define CONFIG_NODE "/zookeeper/config"

struct report {
    struct zk_handle *h;
    struct zk_session *s;
    lease_each_finding *each;
    void *ctx;
    int64_t until_us;
};

#define find(r, grade, topic, ...) lease_finding((r)->each, (r)->ctx, grade, topic, __VA_ARGS__)

/* Copies the rest of the line after `key`; returns false if there is no such line. */
static bool line_of(const char *text, const char *key, char *ret, size_t size)
{
    const char *at = strstr(text, key);
    if (!at)
        return false;
    at += strlen(key);
    at += strspn(at, " ");
    snprintf(ret, size, "%.*s", (int)strcspn(at, ",\r\n"), at);
    return true;
}

/* ---- the parts ---- */

static void examine_server(const struct report *r)
{
    char answer[2048] = "", text[64];
    struct sockaddr_storage at;
    socklen_t len = sizeof at;
    if (zookeeper_get_connected_host(r->s->zh, (struct sockaddr *)&at, &len))
        (void)zk_word((struct sockaddr *)&at, len, "srvr", r->until_us, answer, sizeof answer);
    if (line_of(answer, "Zookeeper version:", text, sizeof text))
        find(r, HF_GOOD, "version", "ZooKeeper %.*s.", (int)strcspn(text, "-"), text);
    else
        find(r, HF_NOTE, "version",
             "The server does not tell its version: the word srvr is not in "
             "4lw.commands.whitelist.");
    if (line_of(answer, "Mode:", text, sizeof text))
        find(r, HF_GOOD, "mode", "This client is connected to a server whose mode is %s.", text);
}

static void examine_ensemble(const struct report *r)
{
    struct zk_call *call = zk_call_new();
    zk_call_read(call, r->s->zh, CONFIG_NODE);
    int rc = zk_call_wait(call, r->until_us), voters = 0;
    for (const char *at = rc == ZOK ? call->data : ""; (at = strstr(at, "server.")); at++) {
        size_t len = strcspn(at, "\n");
        voters += memmem(at, len, ":observer", 9) == NULL;
    }
    zk_call_free(call);
    if (voters == 0)
        find(r, HF_WARNING, "ensemble",
             "One server alone: while it is down nobody gets a lock, and if its disk is lost its "
             "locks and fences are, too.");
    else if (voters < 3 || voters % 2 == 0)
        find(r, HF_WARNING, "ensemble",
             "%d servers vote, which is no better than %d: use an odd number, at least 3.", voters,
             voters > 1 ? voters - 1 : 1);
    else
        find(r, HF_GOOD, "ensemble", "%d servers vote; locks survive the loss of %d of them.",
             voters, (voters - 1) / 2);
}

/* The timeout that the server grants instead of `ttl_ms`; 0: not known. */
static int64_t negotiate(const struct report *r, int64_t ttl_ms)
{
    struct zk_session *s;
    enum hf_result result = zk_session_get(r->h->family, ttl_ms, r->until_us, &s, NULL);
    if (result == HF_BAD_REQUEST)
        return r->h->family->ttl_min_ms;
    if (result != HF_DONE)
        return 0;
    int64_t timeout_ms = s->timeout_ms;
    zk_session_put(s);
    return timeout_ms;
}

static void examine_ttl(const struct report *r)
{
    const struct hf_driver_info *info = &r->h->lease.driver->info;
    int64_t min_ms = negotiate(r, info->ttl_min_ms), max_ms = negotiate(r, info->ttl_max_ms);
    if (min_ms == 0 || max_ms == 0) {
        find(r, HF_NOTE, "TTL", "The limits of TTLs could not be negotiated.");
        return;
    }
    find(r, max_ms < ZK_TTL_DEFAULT_MS ? HF_NOTE : HF_GOOD, "TTL",
         "TTLs from %" PRId64 " to %" PRId64
         " ms are granted; longer ones are cut to that, shorter "
         "ones are refused (minSessionTimeout, maxSessionTimeout).",
         min_ms, max_ms);
}

static void examine_latency(const struct report *r)
{
    int64_t best_us = INT64_MAX;
    for (int i = 0; i < ROUNDS; i++) {
        struct zk_call *call = zk_call_new();
        int64_t from_us = wait_now_us();
        zk_call_check(call, r->h->family->address.root);
        int rc = zk_session_commit(r->s, call, r->until_us);
        int64_t us = wait_now_us() - from_us;
        zk_call_free(call);
        if (rc == ZOK && us < best_us)
            best_us = us;
    }
    if (best_us == INT64_MAX)
        find(r, HF_WARNING, "latency", "No transaction was answered in time.");
    else
        find(r, best_us > 100000 ? HF_WARNING : HF_GOOD, "latency",
             "A transaction takes %" PRId64 ".%03" PRId64 " ms; a lock takes one or two.",
             best_us / 1000, best_us % 1000);
}

static void examine_rights(const struct report *r)
{
    const struct zk_address *a = &r->h->family->address;
    if (a->user_password)
        find(r, HF_GOOD, "rights",
             "Locks belong to the user of the URL; others can neither take nor delete them.");
    else
        find(r, HF_WARNING, "rights",
             "There is no user in the URL: everybody who reaches the servers can delete locks in "
             "%s.",
             a->root);
}

enum hf_result zk_examine(struct lease *l, lease_each_finding *each, void *ctx,
                          struct hf_fault *fault)
{
    struct zk_handle *h = zk_handle_of(l);
    struct report r = {.h = h, .each = each, .ctx = ctx, .until_us = zk_until_us(h, 1)};
    enum hf_result result = zk_session_get(h->family, 0, r.until_us, &r.s, fault);
    if (result != HF_DONE)
        return result;
    examine_server(&r);
    examine_ensemble(&r);
    examine_ttl(&r);
    examine_latency(&r);
    examine_rights(&r);
    find(&r, HF_GOOD, "clock",
         "The leader's monotonic clock measures TTLs; setting the time of day does not matter.");
    zk_session_put(r.s);
    return HF_DONE;
}
