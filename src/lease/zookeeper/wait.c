/* Waiting for a turn.  A waiter watches one node, the one that it awaits (queue.h), so the end of a
 * lease or place wakes one waiter, or the shared ones whose turn it is.  It also looks from time to
 * time whether the first in the queue lets its turn pass: every WAITER_CHECK_MS if it is the
 * second, and less often the further behind it is. */
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>

#include "base/wait.h"
#include "lease/zookeeper/handle.h"

#define LOOK_PLACES 16 /* those further behind look as rarely as the first one */
#define LOOK_RARELY_US INT64_C(2000000)
/* A request without a place has nothing to wait for. */
#define NO_PLACE_US INT64_C(50000)

struct zk_turn {
    struct zk_handle *h;
    struct zk_entry *e;
    int64_t look_us; /* when to look again at the latest, by the boot-time clock */
};

/* ---- watches ---- */

/* On the library's thread.  The context is a number, not an address: the handle may be gone. */
static void watch_event(zhandle_t *zh, int type, int state, const char *path, void *ctx)
{
    (void)state;
    (void)path;
    const struct zk_session *s = zoo_get_context(zh);
    if (type == ZOO_SESSION_EVENT)
        return; /* the keeper's session_event wakes all */
    pthread_mutex_lock(&s->family->mutex);
    for (struct zk_waiter *w = s->family->waiters; w; w = w->next)
        if (w->id == (uintptr_t)ctx) {
            w->is_fired = true;
            (void)eventfd_write(w->fd, 1);
        }
    pthread_mutex_unlock(&s->family->mutex);
}

void zk_waiter_add(struct zk_handle *h)
{
    pthread_mutex_lock(&h->family->mutex);
    h->waiter.next = h->family->waiters;
    h->family->waiters = &h->waiter;
    pthread_mutex_unlock(&h->family->mutex);
}

void zk_waiter_remove(struct zk_handle *h)
{
    pthread_mutex_lock(&h->family->mutex);
    struct zk_waiter **at = &h->family->waiters;
    while (*at != &h->waiter)
        at = &(*at)->next;
    *at = h->waiter.next;
    pthread_mutex_unlock(&h->family->mutex);
}

/* Watches the node.  If it is the one that was watched before, the library finds that out by the
 * number and keeps one watch. */
static int watch(struct zk_handle *h, struct zk_session *s, const char *path,
                 const struct zk_node *node, int64_t until_us)
{
    char node_path[ZK_PATH_SIZE];
    zk_node_path(path, node, node_path);
    pthread_mutex_lock(&h->family->mutex);
    if (strcmp(node_path, h->watched) != 0)
        h->waiter.id = ++h->family->last_watch;
    h->waiter.is_fired = false;
    pthread_mutex_unlock(&h->family->mutex);
    memcpy(h->watched, node_path, sizeof h->watched);
    struct zk_call *call = zk_call_new();
    zk_call_watch(call, s->zh, node_path, watch_event, (void *)h->waiter.id);
    int rc = zk_call_wait(call, until_us);
    zk_call_free(call);
    return rc;
}

/* ---- looking ---- */

static int64_t look_pause_us(size_t before)
{
    return before > 0 && before <= LOOK_PLACES ? INT64_C(1000) * WAITER_CHECK_MS * (int64_t)before
                                               : LOOK_RARELY_US;
}

/* ZOK: sleep; ZNOTHING: ask again; ZNONODE: look again at once. */
static int look_at_list(struct zk_turn *t, struct zk_session *s, int64_t until_us)
{
    struct zk_handle *h = t->h;
    struct zk_family *f = h->family;
    struct zk_view view;
    int rc = zk_list_read(s, t->e->path, until_us, &h->list);
    if (rc != ZOK)
        return rc;
    zk_view_init(&view, &h->list, t->e->owner_text, t->e->mode);
    zk_head_note(f, t->e->path, &h->list);
    if (view.lease || !view.place || zk_view_may_take(&view, &h->list, true))
        return ZNOTHING;
    pthread_mutex_lock(&f->mutex);
    int64_t now_us = zk_now_us(f), pass_us = zk_note_turn(t->e, &view);
    pthread_mutex_unlock(&f->mutex);
    if (pass_us <= now_us)
        return ZNOTHING;
    t->look_us = now_us + look_pause_us(view.before);
    t->look_us = pass_us < t->look_us ? pass_us : t->look_us;
    h->before = view.before;
    h->awaits = *view.awaits;
    memcpy(h->watched_for, view.place->name, sizeof h->watched_for);
    h->watched_by = s->generation;
    return watch(h, s, t->e->path, view.awaits, until_us);
}

/* The node that was awaited is gone, and often that tells enough.  If it was the lease before the
 * first place, it is the waiter's turn.  If it was the place before its own, and its owner has the
 * lock now, the waiter's place is the first, and it awaits that lease.  Results are as those of
 * look_at_list; ZNONODE: look at the list. */
static int look_after_event(struct zk_turn *t, struct zk_session *s, int64_t until_us)
{
    struct zk_handle *h = t->h;
    if (t->e->mode == HF_SHARED || h->awaits.mode == HF_SHARED)
        return ZNONODE;
    if (h->awaits.holds) {
        pthread_mutex_lock(&h->family->mutex);
        t->e->may_claim = h->before == 0;
        pthread_mutex_unlock(&h->family->mutex);
        return h->before == 0 ? ZNOTHING : ZNONODE;
    }
    struct zk_node lease = h->awaits;
    lease.holds = true;
    snprintf(lease.name, sizeof lease.name, "@h-%s-e", lease.owner);
    int rc = watch(h, s, t->e->path, &lease, until_us);
    if (rc == ZOK) {
        h->awaits = lease;
        h->before = 0;
        t->look_us = zk_now_us(h->family) + look_pause_us(0);
    }
    return rc;
}

/* Has the handle a watch for this waiter?  Called with the mutex held. */
static bool is_watched(const struct zk_turn *t)
{
    const struct zk_handle *h = t->h;
    return h->watched[0] && strcmp(h->watched_for, t->e->place) == 0 &&
           h->watched_by == t->e->session->generation;
}

/* HF_TAKEN: sleep; HF_DONE: ask again. */
static enum hf_result look(struct zk_turn *t, struct hf_fault *fault)
{
    struct zk_family *f = t->h->family;
    int64_t until_us = wait_now_us() + f->timeout_ms * 1000;
    t->look_us = zk_now_us(f) + LOOK_RARELY_US;
    pthread_mutex_lock(&f->mutex);
    struct zk_session *s = t->e->session;
    bool is_there = t->e->is_linked && !t->e->is_ended;
    bool has_watch = is_there && is_watched(t), is_fired = has_watch && t->h->waiter.is_fired;
    t->h->waiter.is_fired = false;
    enum hf_result result = is_there ? zk_session_use(s, until_us, fault) : HF_LOST;
    pthread_mutex_unlock(&f->mutex);
    if (result != HF_DONE)
        return result == HF_LOST ? HF_DONE : result;
    int rc = ZNONODE;
    if (is_fired)
        rc = look_after_event(t, s, until_us);
    else if (has_watch && zk_head_distance(f, t->e->path, t->h->watched_for) > ZK_LONG)
        rc = ZOK; /* far behind; the watch of an earlier wait stands */
    while (rc == ZNONODE && wait_now_us() < until_us)
        rc = look_at_list(t, s, until_us);
    zk_session_put(s);
    if (rc == ZNOTHING || rc == ZNONODE)
        return HF_DONE;
    if (zk_may_ask_again(rc, until_us)) {
        t->h->watched[0] = '\0'; /* it may have fired */
        t->look_us = 0;
        return HF_TAKEN;
    }
    return rc == ZOK ? HF_TAKEN : zk_failure(f, rc, false, fault);
}

/* Sleeps until something happens, for at most `us`. */
static void doze(const struct zk_handle *h, int64_t us)
{
    struct pollfd files[] = {{.fd = h->waiter.fd, .events = POLLIN},
                             {.fd = h->lease.wake_fd, .events = POLLIN}};
    eventfd_t count;
    (void)wait_files(files, 2, us);
    if (files[0].revents)
        (void)eventfd_read(h->waiter.fd, &count);
}

static enum hf_result wait_in_queue(struct zk_turn *t, int64_t end_us, struct hf_fault *fault)
{
    struct zk_handle *h = t->h;
    enum hf_result result = HF_TAKEN;
    for (;;) {
        if (lease_is_woken(&h->lease) || wait_now_us() >= end_us)
            return HF_DONE;
        result = look(t, fault);
        if (result != HF_TAKEN)
            return result;
        int64_t left_us = end_us - wait_now_us(), look_us = t->look_us - zk_now_us(h->family);
        if (left_us > 0 && look_us > 0)
            doze(h, left_us < look_us ? left_us : look_us);
    }
}

enum hf_result zk_wait(struct lease *l, const struct lease_request *request, int64_t timeout_ms,
                       struct hf_fault *fault)
{
    struct zk_handle *h = zk_handle_of(l);
    struct zk_family *f = h->family;
    char path[ZK_LOCK_SIZE];
    int64_t end_us = wait_now_us() + timeout_ms * 1000;
    zk_lock_path(f, request->key, request->key_len, path);
    pthread_mutex_lock(&f->mutex);
    struct zk_turn t = {.h = h, .e = zk_entry_find(f, path, request->owner)};
    if (t.e)
        t.e->waiting++;
    pthread_mutex_unlock(&f->mutex);
    if (!t.e) {
        doze(h, timeout_ms * 1000 < NO_PLACE_US ? timeout_ms * 1000 : NO_PLACE_US);
        return HF_DONE;
    }
    enum hf_result result = wait_in_queue(&t, end_us, fault);
    pthread_mutex_lock(&f->mutex);
    if (t.e->waiting > 0)
        t.e->waiting--;
    t.e->touched_us = zk_now_us(f);
    if (t.e->is_linked)
        zk_entry_arm(t.e);
    zk_entry_put(t.e);
    pthread_mutex_unlock(&f->mutex);
    return result;
}
