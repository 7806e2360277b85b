/* The keeper: the thread of one session (family.h).  It alone opens and closes the client library's
 * handle, and does not exchange it for another while a lease depends on the session.  The library
 * has two threads of its own for each handle, which call session_event. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/wait.h"
#include "lease/zookeeper/family.h"
#include "lease/zookeeper/words.h"

/* The longest sleep of a keeper that has nothing to do. */
#define SLEEP_MAX_US INT64_C(1000000)
/* The pause after something that failed. */
#define RETRY_US INT64_C(100000)
/* How long a session is without a connection before its keeper asks the servers why, how long each
 * of them may take to answer, and when they are asked again. */
#define PROBE_AFTER_US INT64_C(100000)
#define PROBE_EACH_US INT64_C(250000)
#define PROBE_AGAIN_US INT64_C(1000000)
/* After so long without a connection, although servers serve, the library is stuck. */
#define STUCK_US INT64_C(500000)
/* A proof may be older than needed by this part of the timeout (Z1), so that long sessions send few
 * heartbeats. */
#define PROOF_PART 60
/* Timeouts that no server grants: the answer did not come from a ZooKeeper. */
#define TIMEOUT_MAX_MS (INT64_C(1) << 31)

/* The library would print what it logs. */
static void log_nothing(const char *message) { (void)message; }

/* ---- events, on the library's thread ---- */

/* Tells the library who we are, once for each handle; it tells every server that it connects to
 * from then on.  It listens while it is connected or connecting, not between two servers, so this
 * waits for the first connection.  Whoever uses the session does so after this. */
static bool authenticate(struct zk_session *s, zhandle_t *zh)
{
    const char *user = s->family->address.user_password;
    if (user && !s->is_known)
        s->is_known = zoo_add_auth(zh, "digest", user, (int)strlen(user), NULL, NULL) == ZOK;
    return !user || s->is_known;
}

static void session_event(zhandle_t *zh, int type, int state, const char *path, void *ctx)
{
    struct zk_session *s = ctx;
    (void)path;
    if (type != ZOO_SESSION_EVENT)
        return;
    int64_t timeout_ms = zoo_recv_timeout(zh);
    bool is_connected = state == ZOO_CONNECTED_STATE && timeout_ms > 0 &&
                        timeout_ms < TIMEOUT_MAX_MS && authenticate(s, zh);
    pthread_mutex_lock(&s->family->mutex);
    if (s->state == ZK_ENDED) {
        /* final */
    } else if (is_connected) {
        s->state = ZK_CONNECTED;
        s->timeout_ms = timeout_ms;
        s->reason[0] = '\0';
        s->is_hopeless = s->is_stuck = false;
    } else if (state == ZOO_EXPIRED_SESSION_STATE || state == ZOO_AUTH_FAILED_STATE) {
        s->state = ZK_ENDED;
        s->is_refused = state == ZOO_AUTH_FAILED_STATE;
    } else if (s->state == ZK_CONNECTED) {
        s->state = ZK_CONNECTING;
        s->lost_us = zk_now_us(s->family);
        s->probed_us = 0;
    }
    pthread_cond_broadcast(&s->changed);
    zk_wake_all(s->family);
    pthread_mutex_unlock(&s->family->mutex);
}

/* ---- opening ---- */

/* Opens the library's handle.  Called with the mutex held, which it releases meanwhile. */
static void open_handle(struct zk_session *s, const char *servers, const clientid_t *id)
{
    struct zk_family *f = s->family;
    if (!id) { /* it begins later than now, so it lives for its timeout from now on (Z2) */
        s->proved_us = zk_now_us(f);
        s->first_sent_us = s->first_answered_us = 0;
    }
    s->lost_us = zk_now_us(f);
    s->is_known = false;
    pthread_mutex_unlock(&f->mutex);
    errno = 0;
    zhandle_t *zh = zookeeper_init2(servers, session_event, (int)s->ttl_ms, id, s,
                                    ZOO_NO_LOG_CLIENTENV, log_nothing);
    int error = errno;
    /* Otherwise it looks all names up again before it waits for each answer.  If addresses change
     * while the session lives, it looks them up when the connection is lost. */
    if (zh)
        (void)zoo_set_servers_resolution_delay(zh, -1);
    pthread_mutex_lock(&f->mutex);
    s->zh = zh;
    pthread_cond_broadcast(&s->changed); /* the connection may be there already */
    if (zh)
        return;
    s->state = ZK_ENDED;
    snprintf(s->reason, sizeof s->reason, "%s",
             error == EINVAL || error == ENOENT ? "a host name cannot be resolved"
                                                : strerror(error));
}

/* The library may be stuck with a server that does not answer, for two thirds of the timeout, or
 * with one that refuses its session, for ever.  A new handle goes on with the same session, or
 * makes one, at the servers that do answer.  Nobody uses the old one.
 *
 * The library ends the session if the old handle is connected when it is closed.  The caller has
 * seen that it is not, but its connection may come back at that moment, and the library may not
 * tell us.  So the caller has also seen that no lease depends on the session: places may be lost,
 * which are made anew, but nobody relies on a lease that has ended. */
static void reopen_handle(struct zk_session *s, const char *servers)
{
    zhandle_t *zh = s->zh;
    clientid_t id = *zoo_client_id(zh);
    bool is_new = s->timeout_ms == 0;
    s->zh = NULL;
    s->generation++;
    pthread_mutex_unlock(&s->family->mutex);
    zookeeper_close(zh);
    pthread_mutex_lock(&s->family->mutex);
    if (s->state == ZK_CONNECTED && !is_new)
        s->state = ZK_ENDED;
    if (s->state == ZK_ENDED)
        return;
    s->state = ZK_CONNECTING;
    open_handle(s, servers, is_new ? NULL : &id);
}

/* ---- why there is no connection ---- */

static void explain(const unsigned counts[ZK_PROBE_COUNT], size_t n, char ret[ZK_REASON_SIZE])
{
    static const char *const texts[ZK_PROBE_COUNT] = {
        [ZK_PROBE_SERVES] = "those that serve gave no session:",
        [ZK_PROBE_HAS_NO_QUORUM] = "there is no quorum; those that answer, but do not serve:",
        [ZK_PROBE_REFUSES] = "connections are refused by",
        [ZK_PROBE_SILENT] = "there is no answer from",
        [ZK_PROBE_STRANGE] = "no ZooKeeper answers, but something else does at",
        [ZK_PROBE_UNKNOWN] = "host names cannot be resolved:",
    };
    size_t first = 0;
    while (first < ZK_PROBE_COUNT - 1 && counts[first] == 0)
        first++;
    snprintf(ret, ZK_REASON_SIZE, "%s %u of %zu server%s", texts[first], counts[first], n,
             n == 1 ? "" : "s");
}

/* Asks every server and writes a list of those that serve; called without the mutex. */
static size_t probe_all(const char *hosts, unsigned counts[ZK_PROBE_COUNT], struct buf *ret_serving)
{
    size_t n = 0;
    for (const char *at = hosts; *at; n++) {
        size_t len = strcspn(at, ",");
        char *server = hf_strndup(at, len);
        enum zk_probe probe = zk_probe(server, wait_now_us() + PROBE_EACH_US);
        counts[probe]++;
        if (probe == ZK_PROBE_SERVES)
            buf_printf(ret_serving, "%s%s", ret_serving->len ? "," : "", server);
        free(server);
        at += len + (at[len] == ',');
    }
    return n;
}

/* Does a holder rely on this session?  None does after the time for which it was proved. */
static bool has_leases(const struct zk_session *s)
{
    int64_t now_us = zk_now_us(s->family);
    if (s->n_entries == 0 || now_us >= s->proved_us + 1000 * s->timeout_ms)
        return false;
    for (size_t i = 0; i < ZK_BUCKETS; i++)
        for (const struct zk_entry *e = s->family->entries[i]; e; e = e->next)
            if (e->session == s && e->is_held && now_us < e->expires_us)
                return true;
    return false;
}

/* Called with the mutex held, which it releases meanwhile. */
static void ask_why(struct zk_session *s)
{
    struct zk_family *f = s->family;
    unsigned counts[ZK_PROBE_COUNT] = {0};
    struct buf serving = {0};
    s->probed_us = zk_now_us(f);
    pthread_mutex_unlock(&f->mutex);
    size_t n = probe_all(f->address.hosts, counts, &serving);
    pthread_mutex_lock(&f->mutex);
    if (s->state == ZK_CONNECTING && !s->stop) {
        explain(counts, n, s->reason);
        s->is_hopeless = counts[ZK_PROBE_SERVES] + counts[ZK_PROBE_SILENT] == 0;
        bool is_stuck = zk_now_us(f) - s->lost_us > STUCK_US ||
                        (s->timeout_ms == 0 && counts[ZK_PROBE_SERVES] < n);
        is_stuck &= serving.len > 0 && zoo_state(s->zh) != ZOO_CONNECTED_STATE;
        bool may_reopen = is_stuck && s->uses == 0 && !has_leases(s);
        s->is_stuck = is_stuck && !may_reopen;
        if (may_reopen)
            reopen_handle(s, serving.data);
        pthread_cond_broadcast(&s->changed);
    }
    buf_close(&serving);
}

static int64_t probe_due_us(const struct zk_session *s)
{
    if (s->state != ZK_CONNECTING)
        return INT64_MAX;
    return s->probed_us ? s->probed_us + PROBE_AGAIN_US : s->lost_us + PROBE_AFTER_US;
}

/* A session that could not be renewed for so long has ended, even if no server can say so. */
static int64_t end_due_us(const struct zk_session *s)
{
    if (s->state != ZK_CONNECTING)
        return INT64_MAX;
    return s->proved_us + 2000 * (s->timeout_ms ? s->timeout_ms : s->ttl_ms);
}

/* ---- what is due ---- */

/* A transaction that changes nothing, but goes through the leader and a majority (Z1). */
static void send_heartbeat(struct zk_session *s)
{
    struct zk_family *f = s->family;
    int64_t until_us = wait_now_us() + s->timeout_ms * 1000 / 6;
    s->uses++;
    pthread_mutex_unlock(&f->mutex);
    int rc = zk_session_settle(s, until_us);
    pthread_mutex_lock(&f->mutex);
    s->uses--;
    if (rc != ZOK)
        s->retry_us = zk_now_us(f) + RETRY_US;
}

static int64_t heartbeat_due_us(const struct zk_session *s)
{
    if (s->state != ZK_CONNECTED)
        return INT64_MAX;
    int64_t proof_us = zk_session_proof_us(s), part_us = s->timeout_ms * 1000 / PROOF_PART;
    int64_t from_us = s->first_answered_us ? s->first_answered_us : s->proved_us;
    int64_t due_us = from_us + (proof_us > part_us ? proof_us : part_us);
    return due_us > s->retry_us ? due_us : s->retry_us;
}

/* The entry that is due first; NULL: the session has none. */
static struct zk_entry *first_due(const struct zk_session *s)
{
    struct zk_entry *first = NULL;
    if (s->n_entries == 0)
        return NULL;
    for (size_t i = 0; i < ZK_BUCKETS; i++)
        for (struct zk_entry *e = s->family->entries[i]; e; e = e->next)
            if (e->session == s && (!first || zk_entry_due_us(e) < zk_entry_due_us(first)))
                first = e;
    return first;
}

/* An entry that cannot be deleted is due again later; it is a lease no longer. */
static void end_entry(struct zk_session *s, struct zk_entry *e)
{
    int64_t until_us = wait_now_us() + s->timeout_ms * 1000 / 6;
    e->users++;
    s->uses++;
    int rc = zk_entry_end(e, until_us);
    s->uses--;
    if (rc != ZOK && rc != ZNONODE) {
        e->is_held = false;
        e->waiting = 0;
        e->touched_us = zk_now_us(s->family) + RETRY_US - 1000 * WAITER_SILENT_MS;
    }
    zk_entry_put(e);
}

/* Does what is due next and returns true, or returns when that will be. */
static bool do_due(struct zk_session *s, int64_t *ret_next_us)
{
    int64_t now_us = zk_now_us(s->family), heartbeat_us = heartbeat_due_us(s);
    if (heartbeat_us <= now_us) {
        send_heartbeat(s);
        return true;
    }
    if (probe_due_us(s) <= now_us) {
        ask_why(s);
        return true;
    }
    if (end_due_us(s) <= now_us) {
        s->state = ZK_ENDED;
        return true;
    }
    struct zk_entry *e = first_due(s);
    int64_t entry_us = e && s->state == ZK_CONNECTED ? zk_entry_due_us(e) : INT64_MAX;
    if (entry_us <= now_us) {
        end_entry(s, e);
        return true;
    }
    if (s->n_entries == 0 && s->uses + s->awaiting == 0 && now_us - s->used_us > ZK_SESSION_IDLE_US)
        s->stop = true;
    *ret_next_us = heartbeat_us < entry_us ? heartbeat_us : entry_us;
    *ret_next_us = probe_due_us(s) < *ret_next_us ? probe_due_us(s) : *ret_next_us;
    return s->stop;
}

static void keep(struct zk_session *s)
{
    struct zk_family *f = s->family;
    while (!s->stop && s->state != ZK_ENDED) {
        int64_t next_us = INT64_MAX;
        if (do_due(s, &next_us))
            continue;
        int64_t now_us = zk_now_us(f);
        int64_t sleep_us = next_us - now_us < SLEEP_MAX_US ? next_us - now_us : SLEEP_MAX_US;
        s->armed_us = now_us + sleep_us;
        (void)wait_cond_until(&s->changed, &f->mutex, wait_now_us() + sleep_us);
        s->armed_us = INT64_MIN;
    }
}

/* The session is over: its leases and places are, too. */
static void drop_entries(struct zk_session *s)
{
    for (size_t i = 0; i < ZK_BUCKETS; i++)
        for (struct zk_entry *e = s->family->entries[i], *next; e; e = next) {
            next = e->next;
            if (e->session != s)
                continue;
            e->users++;
            e->is_ended = true;
            zk_entry_remove(e);
            zk_entry_put(e);
        }
    zk_wake_all(s->family);
}

static void close_session(struct zk_session *s)
{
    struct zk_family *f = s->family;
    s->state = ZK_ENDED;
    drop_entries(s);
    pthread_cond_broadcast(&s->changed);
    while (s->uses > 0 || s->awaiting > 0)
        pthread_cond_wait(&s->changed, &f->mutex);
    zhandle_t *zh = s->zh;
    pthread_mutex_unlock(&f->mutex);
    if (zh)
        zookeeper_close(zh);
    pthread_mutex_lock(&f->mutex);
    s->zh = NULL;
    for (size_t i = 0; i < ZK_SESSIONS_MAX; i++)
        if (f->sessions[i] == s)
            f->sessions[i] = NULL;
    pthread_cond_broadcast(&s->changed);
}

static void *keeper_run(void *arg)
{
    struct zk_session *s = arg;
    struct zk_family *f = s->family;
    pthread_mutex_lock(&f->mutex);
    open_handle(s, f->address.servers, NULL);
    keep(s);
    close_session(s);
    pthread_mutex_unlock(&f->mutex);
    pthread_cond_destroy(&s->changed);
    free(s);
    zk_family_unref(f);
    return NULL;
}

/* Every signal is blocked in the keeper and in the library's threads: signals are for the program.
 */
static bool start_thread(struct zk_session *s)
{
    pthread_t thread;
    pthread_attr_t attr;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    bool ok = pthread_create(&thread, &attr, keeper_run, s) == 0;
    pthread_attr_destroy(&attr);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return ok;
}

struct zk_session *zk_session_start(struct zk_family *f, int64_t ttl_ms)
{
    size_t slot = 0;
    while (f->sessions[slot])
        slot++;
    struct zk_session *s = hf_alloc(sizeof *s);
    s->family = f;
    s->ttl_ms = ttl_ms;
    s->used_us = zk_now_us(f);
    s->armed_us = INT64_MIN;
    wait_cond_init(&s->changed);
    if (!start_thread(s)) {
        pthread_cond_destroy(&s->changed);
        free(s);
        return NULL;
    }
    f->refs++;
    f->sessions[slot] = s;
    return s;
}
