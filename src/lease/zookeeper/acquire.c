/* Acquiring a lease of ZooKeeper: see queue.h for the nodes and why two leases never conflict.
 *
 * If nobody waited when this process gave the lock back, its next exclusive request sends the claim
 * at once: one exchange.  Only a request that arrived meanwhile, and has not claimed the lock yet,
 * can be overtaken by that.  A waiter whose place is the first, and which was told that the lease
 * before it has ended, does the same.  All other requests read the nodes of the lock first, and
 * then claim it, or take a place.  A claim that meets another's change reads again. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>

#include "base/wait.h"
#include "lease/zookeeper/handle.h"

/* How often a request reads the nodes again because others have changed them. */
#define ROUNDS_MAX 16

struct zk_ask {
    struct zk_handle *h;
    struct zk_session *s;
    struct zk_entry *e;
    const struct lease_request *q;
    struct lease_verdict *v;
    int64_t until_us;
    bool is_new;  /* it had neither a lease nor a place before this call */
    bool written; /* a transaction was sent whose answer did not come */
    bool again;   /* nothing was written, and there is time to ask again */
};

static bool is_conflict(int rc)
{
    return rc == ZNODEEXISTS || rc == ZNONODE || rc == ZNOTEMPTY || rc == ZBADVERSION ||
           rc == ZNOCHILDRENFOREPHEMERALS;
}

static void lock_family(struct zk_ask *a) { pthread_mutex_lock(&a->h->family->mutex); }
static void unlock_family(struct zk_ask *a) { pthread_mutex_unlock(&a->h->family->mutex); }

/* ---- verdicts ---- */

static void granted(struct zk_ask *a)
{
    lock_family(a);
    int64_t from_us = a->e->expires_us - a->e->ttl_ms * 1000;
    a->v->fence = a->e->fence;
    unlock_family(a);
    a->v->result = HF_DONE;
    a->v->remaining_ms = zk_session_left_ms(a->s, from_us, a->e->ttl_ms);
}

static void taken(struct zk_ask *a, size_t position)
{
    *a->v = (struct lease_verdict){.result = HF_TAKEN, .remaining_ms = -1, .position = position};
}

static void hold(struct zk_ask *a, int64_t fence, int64_t sent_us)
{
    struct zk_entry *e = a->e;
    lock_family(a);
    e->is_held = e->is_sure = true;
    e->place[0] = '\0';
    e->fence = fence;
    e->expires_us = sent_us + e->ttl_ms * 1000;
    zk_entry_arm(e);
    unlock_family(a);
    granted(a);
}

/* ---- the steps ---- */

/* The server's clock, as the transaction shows it. */
static void note_clock(struct zk_family *f, const struct Stat *stat)
{
    pthread_mutex_lock(&f->mutex);
    f->server_ahead_ms = stat->mtime - clock_wall_us(f->clock) / 1000;
    pthread_mutex_unlock(&f->mutex);
}

/* Before a transaction: until its answer comes nothing is certain. */
static int64_t note_sent(struct zk_ask *a)
{
    lock_family(a);
    a->e->is_sure = false;
    int64_t now_us = a->e->claimed_us = zk_now_us(a->h->family);
    unlock_family(a);
    return now_us;
}

static int await(struct zk_ask *a, struct zk_call *call, int64_t sent_us)
{
    int rc = zk_call_wait(call, a->until_us);
    if (!zk_is_answer(rc)) {
        a->written = true;
        return rc;
    }
    zk_session_answered(a->s, sent_us);
    lock_family(a);
    a->e->is_sure = true;
    unlock_family(a);
    return rc;
}

static int create_container(struct zk_ask *a, const char *path)
{
    struct zk_call *call = zk_call_new();
    zk_call_create_container(call, a->s->zh, path, a->h->family->acl);
    int rc = zk_call_wait(call, a->until_us);
    zk_call_free(call);
    return rc == ZNODEEXISTS ? ZOK : rc;
}

/* Creates the lock's node.  If servers have lost their data, the root is missing, too; then it is
 * made again, and the answer is ZNONODE: read again. */
static int create_lock(struct zk_ask *a)
{
    int rc = create_container(a, a->e->path);
    if (rc != ZNONODE)
        return rc;
    rc = zk_root_make(a->s, a->until_us);
    return rc == ZOK ? ZNONODE : rc;
}

/* Creates the lease and deletes the place, in one transaction.  `is_latched`: there is an @l, which
 * is a container. */
static int claim(struct zk_ask *a, bool is_latched)
{
    struct zk_entry *e = a->e;
    const struct ACL_vector *acl = a->h->family->acl;
    char latch[ZK_PATH_SIZE], place[ZK_PATH_SIZE], lease[ZK_PATH_SIZE];
    struct zk_node node = {.mode = e->mode, .holds = true};
    zk_node_name(e->owner, e->mode, true, node.name);
    zk_node_path(e->path, &node, lease);
    snprintf(latch, sizeof latch, "%s/%s", e->path, ZK_LATCH);
    struct zk_call *call = zk_call_new();
    if (e->place[0]) {
        snprintf(place, sizeof place, "%s/%s", e->path, e->place);
        zk_call_delete(call, place, -1);
    }
    if (e->mode == HF_EXCLUSIVE) {
        if (is_latched)
            zk_call_delete(call, latch, 0);
        zk_call_create(call, latch, "", 0, acl, ZOO_EPHEMERAL);
        zk_call_set(call, latch, "", 0, 0); /* its version is 1, and we learn the zxid */
        zk_call_create(call, lease, e->data.data, e->data.len, acl, ZOO_EPHEMERAL);
    } else {
        zk_call_create(call, lease, e->data.data, e->data.len, acl, ZOO_EPHEMERAL);
        zk_call_set(call, lease, e->data.data, e->data.len, 0);
    }
    int64_t sent_us = note_sent(a);
    zk_call_send(call, a->s->zh);
    int rc = await(a, call, sent_us);
    if (rc == ZOK) {
        note_clock(a->h->family, &call->stat);
        hold(a, call->stat.mzxid, sent_us);
    }
    zk_call_free(call);
    return rc;
}

static int claim_listed(struct zk_ask *a, const struct zk_list *list)
{
    if (a->e->mode == HF_SHARED && !list->is_latched) {
        char latch[ZK_PATH_SIZE];
        snprintf(latch, sizeof latch, "%s/%s", a->e->path, ZK_LATCH);
        int rc = create_container(a, latch);
        if (rc != ZOK)
            return rc;
    }
    return claim(a, list->is_latched);
}

static int take_place(struct zk_ask *a, size_t before)
{
    struct zk_entry *e = a->e;
    char name[ZK_NODE_SIZE], path[ZK_PATH_SIZE];
    zk_node_name(e->owner, e->mode, false, name);
    snprintf(path, sizeof path, "%s/%s", e->path, name);
    struct zk_call *call = zk_call_new();
    zk_call_create(call, path, e->data.data, e->data.len, a->h->family->acl,
                   ZOO_EPHEMERAL_SEQUENTIAL);
    int64_t sent_us = note_sent(a);
    zk_call_send(call, a->s->zh);
    int rc = await(a, call, sent_us);
    if (rc == ZOK) {
        const char *slash = strrchr(call->created, '/');
        lock_family(a);
        snprintf(e->place, sizeof e->place, "%s", slash ? slash + 1 : "");
        e->touched_us = zk_now_us(a->h->family);
        e->called[0] = '\0';
        e->has_passed = false;
        zk_entry_arm(e);
        unlock_family(a);
        taken(a, before + 1);
    }
    zk_call_free(call);
    return rc;
}

/* The list shows a lease of ours.  After a lost answer its fence is not known yet. */
static int adopt_lease(struct zk_ask *a, const struct zk_node *node)
{
    struct zk_entry *e = a->e;
    if (e->is_held) {
        granted(a);
        return ZOK;
    }
    char path[ZK_PATH_SIZE];
    zk_node_path(e->path, node, path);
    struct zk_call *call = zk_call_new();
    zk_call_stat(call, a->s->zh, path);
    int rc = zk_call_wait(call, a->until_us);
    if (rc == ZOK)
        hold(a, call->stat.czxid, e->claimed_us);
    zk_call_free(call);
    return rc;
}

/* ---- turns ---- */

int64_t zk_note_turn(struct zk_entry *e, const struct zk_view *view)
{
    if (!view->called || !view->place) {
        e->called[0] = '\0';
        return INT64_MAX;
    }
    if (strcmp(e->called, view->called->name) != 0) {
        memcpy(e->called, view->called->name, sizeof e->called);
        e->called_us = zk_now_us(e->session->family);
    }
    /* Those further behind leave it to those before them, unless these are silent, too. */
    int64_t pause_ms = WAITER_CLAIM_MS;
    if (!e->has_passed)
        pause_ms += WAITER_CHECK_MS * (int64_t)(view->before - 1);
    return e->called_us + 1000 * pause_ms;
}

/* Removes a place whose turn was not claimed in time. */
static int pass(struct zk_ask *a, const struct zk_node *called)
{
    char path[ZK_PATH_SIZE];
    zk_node_path(a->e->path, called, path);
    struct zk_call *call = zk_call_new();
    zk_call_delete(call, path, -1);
    int rc = zk_session_commit(a->s, call, a->until_us);
    zk_call_free(call);
    if (rc == ZOK || rc == ZNONODE) {
        lock_family(a);
        a->e->has_passed = true;
        unlock_family(a);
    }
    return rc;
}

/* ---- one request ---- */

/* Brings the entry in line with what the list shows. */
static void note_place(struct zk_ask *a, const struct zk_view *view)
{
    struct zk_entry *e = a->e;
    lock_family(a);
    if (view->place)
        memcpy(e->place, view->place->name, sizeof e->place);
    else
        e->place[0] = '\0';
    e->is_held = e->is_held && view->lease;
    e->is_sure = true;
    e->is_first = view->place && view->before == 0 && zk_is_long(&a->h->list);
    e->touched_us = zk_now_us(a->h->family);
    unlock_family(a);
}

/* The request may not be granted now. */
static int queue_up(struct zk_ask *a, const struct zk_view *view)
{
    if (!view->place && a->q->queue)
        return take_place(a, view->before);
    taken(a, view->place ? view->before + 1 : 0);
    lock_family(a);
    int64_t pass_us = zk_note_turn(a->e, view);
    bool is_late = pass_us <= zk_now_us(a->h->family);
    unlock_family(a);
    if (!is_late)
        return ZOK;
    int rc = pass(a, view->called);
    return rc == ZOK ? ZNONODE : rc; /* read again */
}

/* After a lost answer the list may lack what the request has, or will have in a moment. */
static int settle(struct zk_ask *a)
{
    lock_family(a);
    bool is_sure = a->e->is_sure;
    unlock_family(a);
    return is_sure ? ZOK : zk_session_settle(a->s, a->until_us);
}

/* Reads the nodes and acts on them.  ZOK: the verdict is filled; a conflict: read again. */
static int act(struct zk_ask *a)
{
    struct zk_list *list = &a->h->list;
    struct zk_view view;
    int rc = settle(a);
    if (rc == ZOK)
        rc = zk_list_read(a->s, a->e->path, a->until_us, list);
    if (rc == ZOK && !list->exists)
        rc = create_lock(a);
    if (rc != ZOK)
        return rc;
    zk_view_init(&view, list, a->e->owner_text, a->e->mode);
    zk_head_note(a->h->family, a->e->path, list);
    note_place(a, &view);
    if (view.lease)
        return adopt_lease(a, view.lease);
    if (zk_view_may_take(&view, list, a->q->queue))
        return claim_listed(a, list);
    return queue_up(a, &view);
}

/* Is it worth claiming the lock before anything has been read? */
static bool may_claim_at_once(struct zk_ask *a)
{
    lock_family(a);
    bool is_idle = zk_idle_take(a->h->family, a->e->path);
    bool is_called = a->e->may_claim && a->e->is_sure && a->e->place[0];
    a->e->may_claim = false;
    unlock_family(a);
    return a->e->mode == HF_EXCLUSIVE && (is_called || (a->is_new && is_idle));
}

/* The first of a long queue: are its place and an exclusive lease there?  Then it has to wait. */
static bool is_kept_waiting(struct zk_ask *a)
{
    char latch[ZK_PATH_SIZE], place[ZK_PATH_SIZE];
    struct zk_call *calls[] = {zk_call_new(), zk_call_new()};
    snprintf(latch, sizeof latch, "%s/%s", a->e->path, ZK_LATCH);
    snprintf(place, sizeof place, "%s/%s", a->e->path, a->e->place);
    zk_call_stat(calls[0], a->s->zh, place);
    zk_call_stat(calls[1], a->s->zh, latch);
    bool has_place = zk_call_wait(calls[0], a->until_us) == ZOK;
    int rc = zk_call_wait(calls[1], a->until_us);
    bool is_held = rc == ZOK && calls[1]->stat.ephemeralOwner != 0;
    zk_call_free(calls[0]);
    zk_call_free(calls[1]);
    if (has_place && rc == ZNONODE) {
        lock_family(a);
        a->e->may_claim = true;
        unlock_family(a);
    }
    return has_place && is_held;
}

/* A request in a long queue: is it certain that it has to wait, without reading all of it?  Then
 * fills the verdict. */
static bool is_far(struct zk_ask *a)
{
    struct zk_entry *e = a->e;
    if (a->is_new || !e->is_sure || !e->place[0] || e->mode == HF_SHARED || e->may_claim)
        return false;
    size_t before = e->is_first ? 0 : zk_head_distance(a->h->family, e->path, e->place);
    if (before == 0 && !(e->is_first && is_kept_waiting(a)))
        return false;
    lock_family(a);
    e->touched_us = zk_now_us(a->h->family);
    unlock_family(a);
    taken(a, before + 1);
    return true;
}

/* `rc` is a conflict if nothing has been decided yet. */
static enum hf_result run(struct zk_ask *a, int rc, struct hf_fault *fault)
{
    for (int i = 0; i < ROUNDS_MAX && is_conflict(rc); i++)
        rc = act(a);
    if (is_conflict(rc)) {
        taken(a, 0); /* it was others' turn all the time */
        rc = ZOK;
    }
    a->again = !a->written && zk_may_ask_again(rc, a->until_us);
    return rc == ZOK ? HF_DONE : zk_failure(a->h->family, rc, a->written, fault);
}

/* Finds the request's entry and session, or makes them. */
static enum hf_result begin(struct zk_ask *a, struct hf_fault *fault)
{
    struct zk_family *f = a->h->family;
    char path[ZK_LOCK_SIZE];
    zk_lock_path(f, a->q->key, a->q->key_len, path);
    *a->v = (struct lease_verdict){.result = HF_TAKEN, .remaining_ms = -1};
    for (;;) {
        lock_family(a);
        a->e = zk_entry_find(f, path, a->q->owner);
        if (!a->e)
            break;
        a->s = a->e->session;
        enum hf_result result = zk_session_use(a->s, a->until_us, fault);
        bool is_over = a->e->is_ended || (a->e->is_held && a->e->expires_us <= zk_now_us(f));
        int rc = ZOK;
        if (result == HF_DONE && is_over && a->e->is_linked)
            rc = zk_entry_end(a->e, a->until_us);
        if (result == HF_LOST) { /* its nodes end with the session */
            a->e->is_ended = true;
            zk_entry_remove(a->e);
        }
        if (result == HF_DONE && !is_over) {
            unlock_family(a);
            return HF_DONE;
        }
        zk_entry_put(a->e);
        unlock_family(a);
        if (result == HF_DONE)
            zk_session_put(a->s);
        if (result != HF_DONE && result != HF_LOST)
            return result;
        if (rc != ZOK && rc != ZNONODE)
            return zk_failure(f, rc, true, fault);
        if (wait_now_us() >= a->until_us)
            return zk_failure(f, ZOPERATIONTIMEOUT, true, fault);
    }
    unlock_family(a);
    a->is_new = true;
    enum hf_result result = zk_session_get(f, a->q->ttl_ms, a->until_us, &a->s, fault);
    if (result != HF_DONE)
        return result;
    lock_family(a);
    a->e = zk_entry_new(a->s, path, a->q);
    unlock_family(a);
    return HF_DONE;
}

static void end(struct zk_ask *a)
{
    lock_family(a);
    if (a->e->is_sure && !a->e->is_held && !a->e->place[0])
        zk_entry_remove(a->e);
    zk_entry_put(a->e);
    unlock_family(a);
    zk_session_put(a->s);
}

static enum hf_result ask_once(struct zk_ask *a, struct hf_fault *fault)
{
    struct zk_handle *h = a->h;
    a->is_new = a->again = false;
    enum hf_result result = begin(a, fault);
    if (result == HF_BAD_REQUEST)
        h->lease.ttl_min_ms = h->family->ttl_min_ms;
    if (result != HF_DONE)
        return result;
    if (!is_far(a))
        result = run(a, may_claim_at_once(a) ? claim(a, false) : ZNONODE, fault);
    end(a);
    return result;
}

enum hf_result zk_acquire(struct lease *l, const struct lease_request *q, struct lease_verdict *v,
                          struct hf_fault *fault)
{
    struct zk_handle *h = zk_handle_of(l);
    struct zk_ask a = {.h = h, .q = q, .v = v, .until_us = zk_until_us(h, 1)};
    enum hf_result result;
    do
        result = ask_once(&a, fault);
    while (a.again);
    return result;
}
