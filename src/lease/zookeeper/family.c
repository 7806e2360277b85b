/* See family.h: sessions as their users see them, and the table of leases and places. */
#include "lease/zookeeper/family.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include "base/hash.h"
#include "base/wait.h"

/* How long what was seen counts for those next to the head, and for those behind them. */
#define NEAR_FRESH_US INT64_C(5000)
#define FAR_FRESH_US INT64_C(25000)
/* How long the last handle waits for its sessions to be closed. */
#define CLOSE_MAX_US INT64_C(5000000)

/* ---- families ---- */

struct zk_family *zk_family_new(struct zk_address address, const struct lease_options *options)
{
    struct zk_family *f = hf_alloc(sizeof *f);
    f->address = address;
    f->acl = address.user_password ? &ZOO_CREATOR_ALL_ACL : &ZOO_OPEN_ACL_UNSAFE;
    f->clock = options->clock;
    f->timeout_ms = options->timeout_ms;
    f->refs = 1;
    pthread_mutex_init(&f->mutex, NULL);
    return f;
}

void zk_family_ref(struct zk_family *f)
{
    pthread_mutex_lock(&f->mutex);
    f->refs++;
    pthread_mutex_unlock(&f->mutex);
}

void zk_family_unref(struct zk_family *f)
{
    pthread_mutex_lock(&f->mutex);
    bool last = --f->refs == 0;
    pthread_mutex_unlock(&f->mutex);
    if (!last)
        return;
    pthread_mutex_destroy(&f->mutex);
    zk_address_close(&f->address);
    free(f);
}

/* Ends the sessions.  A keeper that looks up names may block for a while; it frees its session when
 * it is done. */
void zk_family_close(struct zk_family *f)
{
    pthread_mutex_lock(&f->mutex);
    unsigned keepers = 0;
    for (size_t i = 0; i < ZK_SESSIONS_MAX; i++)
        keepers += f->sessions[i] != NULL;
    if (f->refs == keepers + 1) {
        for (size_t i = 0; i < ZK_SESSIONS_MAX; i++)
            if (f->sessions[i]) {
                f->sessions[i]->stop = true;
                pthread_cond_broadcast(&f->sessions[i]->changed);
            }
        int64_t until_us = wait_now_us() + CLOSE_MAX_US;
        for (size_t i = 0; i < ZK_SESSIONS_MAX; i++)
            while (f->sessions[i] && f->sessions[i]->zh &&
                   wait_cond_until(&f->sessions[i]->changed, &f->mutex, until_us))
                ;
    }
    pthread_mutex_unlock(&f->mutex);
    zk_family_unref(f);
}

/* ---- sessions ---- */

static enum hf_result not_connected(const struct zk_session *s, struct hf_fault *fault)
{
    const struct zk_family *f = s->family;
    if (s->is_refused)
        return fault_set(fault, HF_UNREACHABLE, "ZooKeeper at %s refuses the user or the password",
                         f->address.hosts);
    return fault_set(fault, HF_UNREACHABLE, "ZooKeeper: no connection to %s%s%s", f->address.hosts,
                     s->reason[0] ? ": " : "", s->reason);
}

static int64_t tick_us(const struct zk_session *s)
{
    int64_t tenth_us = s->timeout_ms * 100;
    return tenth_us < 2000000 ? tenth_us : 2000000;
}

int64_t zk_session_proof_us(const struct zk_session *s)
{
    int64_t quarter_us = s->timeout_ms * 250;
    return quarter_us < ZK_PROOF_US ? quarter_us : ZK_PROOF_US;
}

/* Is it known that the session lives for a good while yet?  That of a short session is known
 * for a quarter of its timeout after each heartbeat (Z1), and must not hinge on how late that is.
 */
static bool is_proved(const struct zk_session *s)
{
    int64_t age_us = zk_now_us(s->family) - s->proved_us;
    return age_us < s->timeout_ms * 500 + zk_session_proof_us(s);
}

static bool is_ready(const struct zk_session *s, bool for_leases)
{
    return s->state == ZK_CONNECTED && s->zh && (is_proved(s) || !for_leases);
}

/* Who asks for a session. */
enum user {
    USER_READS,   /* whatever is connected will do */
    USER_BEGINS,  /* a new lease: it has to be known for how long the session lives */
    USER_GOES_ON, /* an entry of this session, or one that gets no other */
};

/* Waits until the session can be used; called with the mutex held.  HF_LOST: it has ended, or
 * another one is better. */
static enum hf_result await_connection(struct zk_session *s, enum user user, int64_t until_us,
                                       struct hf_fault *fault)
{
    while (s->state != ZK_ENDED && !is_ready(s, user != USER_READS))
        if (s->is_stuck && user != USER_GOES_ON)
            return fault_set(fault, HF_LOST, "ZooKeeper: the session has no connection");
        else if ((s->is_hopeless && s->timeout_ms == 0) ||
                 !wait_cond_until(&s->changed, &s->family->mutex, until_us))
            return not_connected(s, fault);
    if (s->state == ZK_ENDED)
        return s->is_refused || s->timeout_ms == 0
                   ? not_connected(s, fault)
                   : fault_set(fault, HF_LOST, "ZooKeeper: the session has expired");
    return HF_DONE;
}

/* The keeper waits until nobody needs the session any more. */
static void tell_keeper(struct zk_session *s)
{
    if (s->uses == 0 && s->awaiting == 0 && (s->stop || s->state == ZK_ENDED))
        pthread_cond_broadcast(&s->changed);
}

static void unuse(struct zk_session *s)
{
    s->uses--;
    tell_keeper(s);
}

static enum hf_result use(struct zk_session *s, enum user user, int64_t until_us,
                          struct hf_fault *fault)
{
    s->awaiting++;
    enum hf_result result = await_connection(s, user, until_us, fault);
    s->awaiting--;
    s->used_us = zk_now_us(s->family);
    if (result == HF_DONE)
        s->uses++;
    else
        tell_keeper(s);
    return result;
}

enum hf_result zk_session_use(struct zk_session *s, int64_t until_us, struct hf_fault *fault)
{
    return use(s, USER_GOES_ON, until_us, fault);
}

void zk_session_put(struct zk_session *s)
{
    pthread_mutex_t *mutex = &s->family->mutex;
    pthread_mutex_lock(mutex);
    s->used_us = zk_now_us(s->family);
    unuse(s);
    pthread_mutex_unlock(mutex);
}

static bool is_unused(const struct zk_session *s)
{
    return s->uses == 0 && s->awaiting == 0 && s->n_entries == 0;
}

/* Any session, a connected one if there is one; NULL: there is none.  The longest is the one that
 * a silent server costs its connection last. */
static struct zk_session *choose_any(const struct zk_family *f)
{
    struct zk_session *any = NULL;
    for (size_t i = 0; i < ZK_SESSIONS_MAX; i++) {
        struct zk_session *s = f->sessions[i];
        if (!s || s->state == ZK_ENDED || s->stop || s->is_stuck)
            continue;
        bool is_better = any && is_ready(s, false) != is_ready(any, false)
                             ? is_ready(s, false)
                             : !any || s->ttl_ms > any->ttl_ms;
        if (is_better)
            any = s;
    }
    return any;
}

/* The session for a TTL: an existing one, a new one, or, if there are too many, one that is stuck,
 * or the next shorter one; NULL: none.  *ret_wait: one that nobody uses is being closed to make
 * room. */
static struct zk_session *choose(struct zk_family *f, int64_t ttl_ms, bool *ret_wait)
{
    struct zk_session *shorter = NULL, *unused = NULL;
    size_t n = 0;
    *ret_wait = false;
    for (size_t i = 0; i < ZK_SESSIONS_MAX; i++) {
        struct zk_session *s = f->sessions[i];
        n += s != NULL;
        if (!s || s->state == ZK_ENDED || s->stop) {
            *ret_wait = *ret_wait || s;
            continue;
        }
        if (s->ttl_ms == ttl_ms && !s->is_stuck)
            return s;
        if (s->ttl_ms <= ttl_ms && (!shorter || shorter->ttl_ms < s->ttl_ms))
            shorter = s;
        if (is_unused(s) && (!unused || s->used_us < unused->used_us))
            unused = s;
    }
    if (n < ZK_SESSIONS_MAX)
        return zk_session_start(f, ttl_ms);
    if (unused) {
        unused->stop = *ret_wait = true;
        pthread_cond_broadcast(&unused->changed);
    }
    return *ret_wait ? NULL : shorter;
}

/* The server grants no session that is as short as the TTL. */
static enum hf_result refuse_ttl(struct zk_session *s, int64_t ttl_ms, struct hf_fault *fault)
{
    s->family->ttl_min_ms = s->timeout_ms;
    s->stop = s->uses == 1 && s->n_entries == 0;
    unuse(s);
    return fault_set(fault, HF_BAD_REQUEST,
                     "a TTL of %" PRId64 " ms; this ZooKeeper grants %" PRId64
                     " ms or more (minSessionTimeout)",
                     ttl_ms, s->family->ttl_min_ms);
}

static enum hf_result get(struct zk_family *f, int64_t ttl_ms, int64_t until_us,
                          struct zk_session **ret, struct hf_fault *fault)
{
    struct zk_session *s = ttl_ms ? NULL : choose_any(f);
    int64_t asked_ms = ttl_ms ? ttl_ms : ZK_TTL_DEFAULT_MS;
    bool wait;
    while (!s && !(s = choose(f, asked_ms, &wait)) && wait && wait_now_us() < until_us) {
        pthread_mutex_unlock(&f->mutex);
        wait_sleep_us(1000);
        pthread_mutex_lock(&f->mutex);
    }
    if (!s)
        return fault_set(fault, HF_UNREACHABLE,
                         "ZooKeeper: no session for this TTL; leases of %d other TTLs have theirs",
                         ZK_SESSIONS_MAX);
    enum user user = s->is_stuck ? USER_GOES_ON : ttl_ms ? USER_BEGINS : USER_READS;
    enum hf_result result = use(s, user, until_us, fault);
    if (result == HF_DONE && ttl_ms && s->timeout_ms > ttl_ms)
        return refuse_ttl(s, ttl_ms, fault);
    *ret = s;
    return result;
}

enum hf_result zk_session_get(struct zk_family *f, int64_t ttl_ms, int64_t until_us,
                              struct zk_session **ret, struct hf_fault *fault)
{
    enum hf_result result;
    pthread_mutex_lock(&f->mutex);
    do
        result = get(f, ttl_ms, until_us, ret, fault);
    while (result == HF_LOST && wait_now_us() < until_us);
    pthread_mutex_unlock(&f->mutex);
    return result == HF_LOST ? HF_UNREACHABLE : result;
}

void zk_session_answered(struct zk_session *s, int64_t sent_us)
{
    pthread_mutex_lock(&s->family->mutex);
    bool is_first = s->first_answered_us == 0, was_proved = is_proved(s);
    bool proves = !is_first && sent_us >= s->first_answered_us + zk_session_proof_us(s);
    if (proves && s->first_sent_us > s->proved_us)
        s->proved_us = s->first_sent_us;
    if (is_first || proves) {
        s->first_sent_us = sent_us;
        s->first_answered_us = zk_now_us(s->family);
    }
    /* The keeper has to prove this one, or others wait for the proof. */
    if (is_first || !was_proved)
        pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->family->mutex);
}

int zk_session_commit(struct zk_session *s, struct zk_call *call, int64_t until_us)
{
    int64_t sent_us = zk_now_us(s->family);
    zk_call_send(call, s->zh);
    int rc = zk_call_wait(call, until_us);
    if (zk_is_answer(rc))
        zk_session_answered(s, sent_us);
    return rc;
}

int zk_session_settle(struct zk_session *s, int64_t until_us)
{
    struct zk_call *call = zk_call_new();
    zk_call_check(call, s->family->address.root);
    int rc = zk_session_commit(s, call, until_us);
    zk_call_free(call);
    return zk_is_answer(rc) ? ZOK : rc;
}

int64_t zk_session_left_ms(const struct zk_session *s, int64_t from_us, int64_t ttl_ms)
{
    struct zk_family *f = s->family;
    pthread_mutex_lock(&f->mutex);
    int64_t lease_us = from_us + ttl_ms * 1000;
    int64_t session_us = s->proved_us + s->timeout_ms * 1000 - tick_us(s);
    int64_t left_us = (lease_us < session_us ? lease_us : session_us) - zk_now_us(f);
    pthread_mutex_unlock(&f->mutex);
    return left_us > 0 ? left_us / 1000 : 0;
}

/* ---- entries ---- */

struct zk_entry *zk_entry_find(struct zk_family *f, const char *path,
                               const uint8_t owner[LEASE_OWNER_SIZE])
{
    struct zk_entry *e = f->entries[owner[0]];
    while (e && (memcmp(e->owner, owner, LEASE_OWNER_SIZE) != 0 || strcmp(e->path, path) != 0))
        e = e->next;
    if (e)
        e->users++;
    return e;
}

struct zk_entry *zk_entry_new(struct zk_session *s, const char *path, const struct lease_request *q)
{
    struct zk_family *f = s->family;
    struct zk_entry *e = hf_alloc(sizeof *e);
    memcpy(e->owner, q->owner, LEASE_OWNER_SIZE);
    lease_owner_text(q->owner, e->owner_text);
    snprintf(e->path, sizeof e->path, "%s", path);
    e->session = s;
    e->users = 1;
    e->is_linked = e->is_sure = true;
    e->mode = q->mode;
    e->ttl_ms = q->ttl_ms;
    e->touched_us = zk_now_us(f);
    buf_printf(&e->data, "%" PRId64 " %.*s", q->ttl_ms, (int)q->label_len,
               q->label ? q->label : "");
    e->next = f->entries[q->owner[0]];
    f->entries[q->owner[0]] = e;
    s->n_entries++;
    return e;
}

void zk_entry_remove(struct zk_entry *e)
{
    if (!e->is_linked)
        return;
    struct zk_entry **at = &e->session->family->entries[e->owner[0]];
    while (*at != e)
        at = &(*at)->next;
    *at = e->next;
    e->is_linked = false;
    e->session->n_entries--;
}

void zk_entry_put(struct zk_entry *e)
{
    if (--e->users > 0 || e->is_linked)
        return;
    buf_close(&e->data);
    free(e);
}

int64_t zk_entry_due_us(const struct zk_entry *e)
{
    if (e->is_held)
        return e->expires_us;
    return e->waiting ? INT64_MAX : e->touched_us + 1000 * WAITER_SILENT_MS;
}

void zk_entry_arm(struct zk_entry *e)
{
    if (zk_entry_due_us(e) < e->session->armed_us)
        pthread_cond_broadcast(&e->session->changed);
}

/* ---- waiters and idle locks ---- */

void zk_wake_all(struct zk_family *f)
{
    for (struct zk_waiter *w = f->waiters; w; w = w->next)
        (void)eventfd_write(w->fd, 1); /* fails only if it is readable already */
}

static uint64_t path_hash(const char *path)
{
    uint64_t hash = hash_keyed(path, strlen(path));
    return hash ? hash : 1;
}

void zk_idle_note(struct zk_family *f, const char *path, bool is_idle)
{
    uint64_t hash = path_hash(path);
    if (is_idle)
        f->idle[hash % ZK_BUCKETS] = hash;
    else if (f->idle[hash % ZK_BUCKETS] == hash)
        f->idle[hash % ZK_BUCKETS] = 0;
}

bool zk_idle_take(struct zk_family *f, const char *path)
{
    uint64_t hash = path_hash(path), *at = &f->idle[hash % ZK_BUCKETS];
    bool was_idle = *at == hash;
    if (was_idle)
        *at = 0;
    return was_idle;
}

/* ---- long queues ---- */

void zk_head_note(struct zk_family *f, const char *path, const struct zk_list *list)
{
    if (!zk_is_long(list))
        return;
    uint64_t hash = path_hash(path);
    pthread_mutex_lock(&f->mutex);
    f->heads[hash % ZK_BUCKETS] = (struct zk_head){
        .hash = hash, .sequence = list->waiters.v[0].sequence, .seen_us = zk_now_us(f)};
    pthread_mutex_unlock(&f->mutex);
}

size_t zk_head_distance(struct zk_family *f, const char *path, const char *place)
{
    struct zk_node node;
    uint64_t hash = path_hash(path);
    pthread_mutex_lock(&f->mutex);
    const struct zk_head head = f->heads[hash % ZK_BUCKETS];
    int64_t age_us = zk_now_us(f) - head.seen_us;
    pthread_mutex_unlock(&f->mutex);
    if (head.hash != hash || age_us > FAR_FRESH_US || !zk_node_parse(place, &node))
        return 0;
    int32_t distance = zk_sequence_compare(node.sequence, head.sequence);
    bool is_fresh = distance > ZK_LONG || age_us < NEAR_FRESH_US;
    return distance > 0 && is_fresh ? (size_t)distance : 0;
}
