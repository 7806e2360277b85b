/* The nodes of one lock as ZooKeeper has them (family.h, queue.h): reading them, and deleting those
 * of one owner; and the root, below which they are. */
#include <stdio.h>
#include <string.h>

#include "base/wait.h"
#include "lease/zookeeper/family.h"

/* How often a list is read again because a container went away between its two parts. */
#define READS_MAX 8

void zk_node_path(const char *path, const struct zk_node *node, char ret[ZK_PATH_SIZE])
{
    snprintf(ret, ZK_PATH_SIZE, "%s/%s%s", path,
             node->holds && node->mode == HF_SHARED ? ZK_LATCH "/" : "", node->name);
}

/* ---- the root ---- */

/* Creates one node of the path to the root; it may exist. */
static int create_node(struct zk_session *s, const char *path, int64_t until_us)
{
    struct zk_call *call = zk_call_new();
    zk_call_create(call, path, "", 0, s->family->acl, 0);
    int rc = zk_session_commit(s, call, until_us);
    zk_call_free(call);
    return rc == ZNODEEXISTS ? ZOK : rc;
}

static int check_root(struct zk_session *s, int64_t until_us)
{
    struct zk_call *call = zk_call_new();
    zk_call_check(call, s->family->address.root);
    int rc = zk_session_commit(s, call, until_us);
    zk_call_free(call);
    return rc;
}

int zk_root_make(struct zk_session *s, int64_t until_us)
{
    const char *root = s->family->address.root;
    int rc = check_root(s, until_us);
    if (rc != ZNONODE)
        return rc;
    rc = ZOK;
    for (const char *slash = strchr(root + 1, '/'); rc == ZOK;
         slash = slash ? strchr(slash + 1, '/') : NULL) {
        char path[ZK_PATH_SIZE];
        snprintf(path, sizeof path, "%.*s", (int)(slash ? slash - root : (long)strlen(root)), root);
        rc = create_node(s, path, until_us);
        if (!slash)
            break;
    }
    return rc == ZOK ? check_root(s, until_us) : rc;
}

/* ---- reading ---- */

static int read_children(struct zk_session *s, const char *path, int64_t until_us,
                         struct zk_list *ret)
{
    struct zk_call *call = zk_call_new();
    zk_call_list(call, s->zh, path);
    int rc = zk_call_wait(call, until_us);
    for (size_t i = 0; rc == ZOK && i < call->names.n; i++)
        zk_list_add(ret, call->names.v[i]);
    zk_call_free(call);
    return rc;
}

int zk_list_read(struct zk_session *s, const char *path, int64_t until_us, struct zk_list *ret)
{
    char latch[ZK_PATH_SIZE];
    snprintf(latch, sizeof latch, "%s/%s", path, ZK_LATCH);
    int rc = ZOK;
    for (int i = 0; i < READS_MAX; i++) {
        zk_list_clear(ret);
        rc = read_children(s, path, until_us, ret);
        ret->exists = rc == ZOK;
        if (rc == ZNONODE)
            return ZOK;
        if (rc == ZOK && zk_list_is_shared(ret))
            rc = read_children(s, latch, until_us, ret);
        if (rc != ZNONODE)
            break;
    }
    if (rc == ZOK)
        zk_list_sort(ret);
    return rc;
}

void zk_lease_delete(struct zk_call *call, const char *path, const char *node_path,
                     enum hf_mode mode, const char *fence, char latch[ZK_PATH_SIZE])
{
    zk_call_delete(call, node_path, -1);
    if (mode == HF_SHARED)
        return;
    snprintf(latch, ZK_PATH_SIZE, "%s/%s", path, ZK_LATCH);
    zk_call_delete(call, latch, 1);
    zk_call_set(call, path, fence, strlen(fence), -1);
}

/* ---- the end of an entry ---- */

/* The transaction that deletes a node; an exclusive lease leaves its fence behind. */
static struct zk_call *delete_send(struct zk_session *s, const char *path,
                                   const struct zk_node *node, int64_t fence)
{
    char node_path[ZK_PATH_SIZE], latch[ZK_PATH_SIZE], text[24] = "";
    struct zk_call *call = zk_call_new();
    zk_node_path(path, node, node_path);
    if (fence)
        snprintf(text, sizeof text, "%lld", (long long)fence);
    if (node->holds)
        zk_lease_delete(call, path, node_path, node->mode, text, latch);
    else
        zk_call_delete(call, node_path, -1);
    zk_call_send(call, s->zh);
    return call;
}

static int delete_node(struct zk_session *s, const char *path, const struct zk_node *node,
                       int64_t fence, int64_t until_us)
{
    int64_t sent_us = zk_now_us(s->family);
    struct zk_call *call = delete_send(s, path, node, fence);
    int rc = zk_call_wait(call, until_us);
    if (zk_is_answer(rc))
        zk_session_answered(s, sent_us);
    zk_call_free(call);
    return rc;
}

/* Deletes everything that the owner has, after a lost answer.  The server that is asked may not
 * have heard yet of what was done, or it may still be done. */
static int delete_listed(struct zk_session *s, const char *path, const char *owner, int64_t fence,
                         int64_t until_us)
{
    struct zk_list list = {0};
    int rc = zk_session_settle(s, until_us), found = ZNONODE;
    if (rc == ZOK)
        rc = zk_list_read(s, path, until_us, &list);
    for (size_t i = 0; rc == ZOK && i < list.holders.n + list.waiters.n; i++) {
        const struct zk_node *node =
            i < list.holders.n ? &list.holders.v[i] : &list.waiters.v[i - list.holders.n];
        if (strcmp(node->owner, owner) != 0)
            continue;
        rc = delete_node(s, path, node, fence, until_us);
        if (rc == ZOK)
            found = ZOK;
        else if (rc == ZNONODE)
            rc = ZOK;
    }
    zk_list_close(&list);
    return rc == ZOK ? found : rc;
}

/* The node that the entry is known to have; false: it has none, or that is not certain. */
static bool known_node(const struct zk_entry *e, struct zk_node *ret)
{
    *ret = (struct zk_node){.mode = e->mode, .holds = e->is_held};
    if (e->is_held)
        zk_node_name(e->owner, e->mode, true, ret->name);
    else
        memcpy(ret->name, e->place, sizeof ret->name);
    return e->is_sure && ret->name[0];
}

void zk_ending_send(struct zk_ending *ending, struct zk_entry *e)
{
    struct zk_node node;
    *ending = (struct zk_ending){.e = e, .fence = e->is_held ? e->fence : 0};
    bool is_known = known_node(e, &node);
    ending->is_nothing = e->is_sure && !is_known;
    ending->is_exclusive = is_known && e->is_held && e->mode == HF_EXCLUSIVE;
    e->is_ended = true;
    ending->sent_us = zk_now_us(e->session->family);
    if (is_known)
        ending->call = delete_send(e->session, e->path, &node, ending->fence);
}

int zk_ending_wait(struct zk_ending *ending, int64_t until_us)
{
    struct zk_entry *e = ending->e;
    struct zk_session *s = e->session;
    int rc = ZNONODE;
    if (ending->call) {
        rc = zk_call_wait(ending->call, until_us);
        if (zk_is_answer(rc))
            zk_session_answered(s, ending->sent_us);
    } else if (!ending->is_nothing) {
        rc = delete_listed(s, e->path, e->owner_text, ending->fence, until_us);
    }
    pthread_mutex_lock(&s->family->mutex);
    if (rc == ZOK && ending->is_exclusive)
        zk_idle_note(s->family, e->path, ending->call->stat.numChildren == 0);
    if (rc == ZOK || rc == ZNONODE)
        zk_entry_remove(e);
    else
        e->is_sure = false;
    pthread_mutex_unlock(&s->family->mutex);
    zk_call_free(ending->call);
    return rc;
}

int zk_entry_end(struct zk_entry *e, int64_t until_us)
{
    struct zk_family *f = e->session->family;
    struct zk_ending ending;
    zk_ending_send(&ending, e);
    pthread_mutex_unlock(&f->mutex);
    int rc = zk_ending_wait(&ending, until_us);
    pthread_mutex_lock(&f->mutex);
    return rc;
}
