/* See cell_client.h. */
#include "support/cell_client.h"

#include <pthread.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t answered = PTHREAD_COND_INITIALIZER;

static void done(struct pending *pending)
{
    struct cell_call *call = pending->waiter;
    pthread_mutex_lock(&lock);
    call->n_answers++;
    pthread_cond_broadcast(&answered);
    pthread_mutex_unlock(&lock);
}

void cell_call_begin(struct cell *c, struct cell_call *call)
{
    call->n_answers = 0;
    call->r.pending = (struct pending){.done = done, .waiter = call};
    cell_submit(c, &call->r);
}

void cell_call_wait(struct cell_call *call)
{
    pthread_mutex_lock(&lock);
    while (call->n_answers == 0)
        pthread_cond_wait(&answered, &lock);
    hf_check(call->n_answers == 1);
    pthread_mutex_unlock(&lock);
}

bool cell_call_is_answered(const struct cell_call *call)
{
    pthread_mutex_lock(&lock);
    bool is = call->n_answers > 0;
    pthread_mutex_unlock(&lock);
    return is;
}

void cell_call_close(struct cell_call *call) { cell_request_close(&call->r); }

/* ---- requests ---- */

static struct cell_text text_of(const char *text)
{
    return (struct cell_text){text, text ? strlen(text) : 0};
}

static void begin(struct cell_call *call, enum cell_kind kind, const struct id *session)
{
    memset(call, 0, sizeof *call);
    call->r.kind = CELL_REQUEST_COMMAND;
    call->r.command.kind = kind;
    if (session)
        call->r.command.session = *session;
}

static void name(struct cell_call *call, uint16_t owner, const char *text)
{
    call->r.command.owner.bytes[CELL_OWNER_SIZE - 2] = (uint8_t)(owner >> 8);
    call->r.command.owner.bytes[CELL_OWNER_SIZE - 1] = (uint8_t)owner;
    call->r.command.owner.digits = 4;
    call->r.command.name = text_of(text);
}

void cell_call_open(struct cell_call *call, uint32_t ttl_ms, const char *label)
{
    begin(call, CELL_OPEN, NULL);
    call->r.command.ttl_ms = ttl_ms;
    call->r.command.label = text_of(label);
    call->r.command.limit = CELL_SESSIONS_MAX;
}

void cell_call_acquire(struct cell_call *call, const struct id *session, uint16_t owner,
                       const char *text, int64_t wait_ms)
{
    begin(call, CELL_ACQUIRE, session);
    name(call, owner, text);
    call->r.command.slots = 1;
    call->r.wait_ms = wait_ms;
}

void cell_call_release(struct cell_call *call, const struct id *session, uint16_t owner,
                       const char *text)
{
    begin(call, CELL_RELEASE, session);
    name(call, owner, text);
}

void cell_call_keepalive(struct cell_call *call, const struct id *session)
{
    begin(call, CELL_NOTHING, session);
    call->r.kind = CELL_REQUEST_KEEPALIVE;
}

/* ---- carried out ---- */

static enum cell_result finish(struct cell *c, struct cell_call *call)
{
    cell_call_begin(c, call);
    cell_call_wait(call);
    enum cell_result result = call->r.verdict.result;
    cell_call_close(call);
    return result;
}

enum cell_result cell_do_open(struct cell *c, uint32_t ttl_ms, const char *label,
                              struct id *ret_session)
{
    struct cell_call call;
    cell_call_open(&call, ttl_ms, label);
    enum cell_result result = finish(c, &call);
    *ret_session = call.r.command.session;
    return result;
}

enum cell_result cell_do_acquire(struct cell *c, const struct id *session, uint16_t owner,
                                 const char *text, int64_t wait_ms, int64_t *ret_fence)
{
    struct cell_call call;
    cell_call_acquire(&call, session, owner, text, wait_ms);
    enum cell_result result = finish(c, &call);
    if (ret_fence)
        *ret_fence = call.r.verdict.fence;
    return result;
}

enum cell_result cell_do_release(struct cell *c, const struct id *session, uint16_t owner,
                                 const char *text)
{
    struct cell_call call;
    cell_call_release(&call, session, owner, text);
    return finish(c, &call);
}

enum cell_result cell_do_keepalive(struct cell *c, const struct id *session)
{
    struct cell_call call;
    cell_call_keepalive(&call, session);
    return finish(c, &call);
}

enum cell_result cell_do_close(struct cell *c, const struct id *session)
{
    struct cell_call call;
    begin(&call, CELL_CLOSE, session);
    return finish(c, &call);
}

enum cell_result cell_do_value(struct cell *c, const struct id *session, uint16_t owner,
                               const char *text, int64_t fence, const char *value)
{
    struct cell_call call;
    begin(&call, CELL_VALUE, session);
    name(&call, owner, text);
    call.r.command.fence = fence;
    call.r.command.value = text_of(value);
    return finish(c, &call);
}
