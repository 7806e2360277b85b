/* See call.h. */
#include "lease/zookeeper/call.h"

#include <stdlib.h>
#include <string.h>

#include "base/wait.h"

struct zk_call *zk_call_new(void)
{
    struct zk_call *call = hf_alloc(sizeof *call);
    pthread_mutex_init(&call->mutex, NULL);
    wait_cond_init(&call->done);
    return call;
}

static void destroy(struct zk_call *call)
{
    for (size_t i = 0; i < call->names.n; i++)
        free(call->names.v[i]);
    vec_close(&call->names);
    free(call->data);
    pthread_cond_destroy(&call->done);
    pthread_mutex_destroy(&call->mutex);
    free(call);
}

void zk_call_free(struct zk_call *call)
{
    if (!call)
        return;
    pthread_mutex_lock(&call->mutex);
    call->is_abandoned = call->is_sent && !call->is_done;
    bool leave = call->is_abandoned;
    pthread_mutex_unlock(&call->mutex);
    if (!leave)
        destroy(call);
}

int zk_call_wait(struct zk_call *call, int64_t until_us)
{
    pthread_mutex_lock(&call->mutex);
    while (!call->is_done && wait_cond_until(&call->done, &call->mutex, until_us))
        ;
    int rc = call->is_done ? call->rc : ZOPERATIONTIMEOUT;
    pthread_mutex_unlock(&call->mutex);
    return rc;
}

/* ---- answers, on the library's thread ---- */

static struct zk_call *answer_begin(const void *data)
{
    struct zk_call *call = (struct zk_call *)(uintptr_t)data;
    pthread_mutex_lock(&call->mutex);
    return call;
}

static void answer_end(struct zk_call *call, int rc)
{
    call->rc = rc;
    call->is_done = true;
    bool abandoned = call->is_abandoned;
    pthread_cond_signal(&call->done);
    pthread_mutex_unlock(&call->mutex);
    if (abandoned)
        destroy(call);
}

static void answered(int rc, const void *data) { answer_end(answer_begin(data), rc); }

static void answered_string(int rc, const char *value, const void *data)
{
    (void)value;
    answer_end(answer_begin(data), rc);
}

static void answered_stat(int rc, const struct Stat *stat, const void *data)
{
    struct zk_call *call = answer_begin(data);
    if (rc == ZOK)
        call->stat = *stat;
    answer_end(call, rc);
}

static void answered_data(int rc, const char *value, int len, const struct Stat *stat,
                          const void *data)
{
    struct zk_call *call = answer_begin(data);
    if (rc == ZOK) {
        call->stat = *stat;
        call->data_len = len > 0 ? (size_t)len : 0;
        call->data = hf_strndup(value ? value : "", call->data_len);
    }
    answer_end(call, rc);
}

static void answered_names(int rc, const struct String_vector *names, const void *data)
{
    struct zk_call *call = answer_begin(data);
    for (int i = 0; rc == ZOK && i < names->count; i++)
        *vec_push(&call->names) = hf_strndup(names->data[i], strlen(names->data[i]));
    answer_end(call, rc);
}

/* Before a request is sent: from now on its answer may come. */
static struct zk_call *sending(struct zk_call *call)
{
    call->is_sent = true;
    return call;
}

/* A request that could not be sent has its answer already. */
static void sent(struct zk_call *call, int rc)
{
    if (rc != ZOK)
        answered(rc, call);
}

/* ---- transactions ---- */

static zoo_op_t *op_add(struct zk_call *call)
{
    hf_check(call->n_ops < ZK_OPS_MAX);
    return &call->ops[call->n_ops++];
}

void zk_call_create(struct zk_call *call, const char *path, const char *data, size_t len,
                    const struct ACL_vector *acl, int flags)
{
    zoo_create_op_init(op_add(call), path, data, (int)len, acl, flags, call->created,
                       sizeof call->created);
}

void zk_call_set(struct zk_call *call, const char *path, const char *data, size_t len, int version)
{
    zoo_set_op_init(op_add(call), path, data, (int)len, version, &call->stat);
}

void zk_call_delete(struct zk_call *call, const char *path, int version)
{
    zoo_delete_op_init(op_add(call), path, version);
}

void zk_call_check(struct zk_call *call, const char *path)
{
    zoo_check_op_init(op_add(call), path, -1);
}

void zk_call_send(struct zk_call *call, zhandle_t *zh)
{
    sent(call, zoo_amulti(zh, call->n_ops, call->ops, call->results, answered, sending(call)));
}

/* ---- single requests ---- */

void zk_call_create_container(struct zk_call *call, zhandle_t *zh, const char *path,
                              const struct ACL_vector *acl)
{
    sent(call, zoo_acreate(zh, path, "", 0, acl, ZOO_CONTAINER, answered_string, sending(call)));
}

void zk_call_list(struct zk_call *call, zhandle_t *zh, const char *path)
{
    sent(call, zoo_aget_children(zh, path, 0, answered_names, sending(call)));
}

void zk_call_read(struct zk_call *call, zhandle_t *zh, const char *path)
{
    sent(call, zoo_aget(zh, path, 0, answered_data, sending(call)));
}

void zk_call_stat(struct zk_call *call, zhandle_t *zh, const char *path)
{
    sent(call, zoo_aexists(zh, path, 0, answered_stat, sending(call)));
}

void zk_call_watch(struct zk_call *call, zhandle_t *zh, const char *path, watcher_fn watcher,
                   void *ctx)
{
    sent(call, zoo_awget_children(zh, path, watcher, ctx, answered_names, sending(call)));
}
