/* The session of client.h: opening it, keeping it alive, its stream, and what it sends by itself.
 * Keeps C1. */
#include <string.h>

#include "lease/holdfast/client_internal.h"

/* The session is kept alive this often per TTL, if it is used, */
#define KEEP_PARTS 4
/* and for so long after it was used last. */
#define IDLE_US INT64_C(60000000)

/* ---- making ---- */

int64_t client_margin_us(int64_t ttl_ms) { return ttl_ms * 10 > 50000 ? ttl_ms * 10 : 50000; }

struct client *client_new(const struct client_config *config)
{
    struct client *c = hf_alloc(sizeof *c);
    c->config = *config;
    if (config->label)
        c->config.label = hf_strndup(config->label, strlen(config->label));
    c->ttl_ms = config->ttl_ms;
    return c;
}

/* Frees every claim, and with it every lease but those that callers have not noticed to be lost. */
static void drop_claims(struct client *c)
{
    for (struct table_node *x = table_first(&c->claims), *next; x; x = next) {
        next = table_after(&c->claims, x);
        claim_free(c, (struct client_claim *)(void *)x);
    }
}

void client_free(struct client *c)
{
    if (!c)
        return;
    drop_claims(c);
    for (struct table_node *x = table_first(&c->leases), *next; x; x = next) {
        next = table_after(&c->leases, x);
        lease_free((struct client_lease *)(void *)x);
    }
    table_close(&c->leases);
    table_close(&c->claims);
    heap_close(&c->lease_due);
    heap_close(&c->claim_due);
    explicit_bzero(c->session, sizeof c->session);
    free((char *)(uintptr_t)c->config.label);
    free(c);
}

/* The session is gone: all its leases are lost at once. */
static void lose_session(struct client *c)
{
    explicit_bzero(c->session, sizeof c->session);
    c->proved_us = 0;
    c->keeping = 0;
    c->has_long_leases = false;
    drop_claims(c);
}

bool client_is_open(const struct client *c) { return c->session[0]; }

int64_t client_end_us(const struct client *c)
{
    return client_is_open(c) ? c->proved_us + c->ttl_ms * 1000 : 0;
}

const char *client_session(const struct client *c) { return c->session; }

size_t client_n_claims(const struct client *c) { return c->claims.n; }

int64_t client_used_us(const struct client *c) { return c->used_us; }

struct client_counts client_counts(const struct client *c) { return c->counts; }

bool session_is_usable(struct client *c, int64_t now_us)
{
    if (client_is_open(c) && now_us >= client_end_us(c))
        lose_session(c); /* C1 */
    return client_is_open(c);
}

enum client_step session_open(struct client *c, int64_t now_us, struct client_message *ret)
{
    if (c->opening)
        return CLIENT_BUSY;
    message_init(c, ret, CLIENT_OPEN, now_us);
    ret->ttl_ms = c->config.ttl_ms;
    ret->label = c->config.label;
    ret->label_len = ret->label ? strlen(ret->label) : 0;
    c->opening = ret->number;
    return CLIENT_SEND;
}

bool client_end_session(struct client *c, int64_t now_us, struct client_message *ret)
{
    if (!client_is_open(c))
        return false;
    message_init(c, ret, CLIENT_CLOSE, now_us);
    lose_session(c);
    return true;
}

/* ---- keeping it alive ---- */

bool client_is_keeping(const struct client *c, int64_t since_us)
{
    return c->keeping && c->keeping_us >= since_us;
}

bool client_keep_alive(struct client *c, int64_t now_us, int64_t max_age_us,
                       struct client_message *ret)
{
    if (!client_is_open(c) || now_us - c->proved_us < max_age_us ||
        client_is_keeping(c, now_us - max_age_us))
        return false;
    message_init(c, ret, CLIENT_KEEPALIVE, now_us);
    c->keeping = ret->number;
    c->keeping_us = now_us;
    return true;
}

static int64_t keep_due_us(const struct client *c)
{
    if (!client_is_open(c) || c->keeping)
        return INT64_MAX;
    int64_t due_us = c->proved_us + c->ttl_ms * 1000 / KEEP_PARTS;
    if (c->claims.n == 0 && due_us > c->used_us + IDLE_US)
        return INT64_MAX;
    return due_us > c->retry_us ? due_us : c->retry_us;
}

/* ---- what it sends by itself ---- */

/* A claim of which something has to be told to the service. */
static bool claim_message(struct client *c, struct client_claim *claim, int64_t now_us,
                          struct client_message *ret)
{
    heap_remove(&c->claim_due, &claim->due);
    if (claim->stage == CLAIM_ENDING && claim->n_releasing == 0) {
        message_about(c, ret, CLIENT_RELEASE, claim, now_us);
        return true;
    }
    bool has_to_tell = claim->is_wanted && !claim->is_told;
    if (claim->stage != CLAIM_HELD || !(has_to_tell || claim->is_unchecked))
        return false;
    claim->is_unchecked = false;
    message_about(c, ret, CLIENT_ACQUIRE, claim, now_us);
    return true;
}

bool client_next(struct client *c, int64_t now_us, struct client_message *ret)
{
    if (client_is_open(c) && now_us >= client_end_us(c))
        return client_end_session(c, now_us, ret); /* C1 */
    leases_expire(c, now_us);
    if (keep_due_us(c) <= now_us && client_keep_alive(c, now_us, 0, ret))
        return true;
    for (struct heap_node *first; (first = heap_first(&c->claim_due)) && first->key <= now_us;)
        if (claim_message(c, heap_item(first, struct client_claim, due), now_us, ret))
            return true;
    return false;
}

int64_t client_due_us(const struct client *c)
{
    int64_t due_us = keep_due_us(c);
    if (client_is_open(c) && client_end_us(c) < due_us)
        due_us = client_end_us(c);
    const struct heap_node *lease = heap_first(&c->lease_due), *claim = heap_first(&c->claim_due);
    if (lease && lease->key < due_us)
        due_us = lease->key;
    if (claim && claim->key < due_us)
        due_us = claim->key;
    return due_us;
}

/* ---- what comes back ---- */

static void want_name(struct client *c, const char *name, size_t name_len, int64_t now_us)
{
    for (struct client_claim *claim = claim_first(c, name, name_len), *next; claim; claim = next) {
        next = claim_next(claim);
        claim_want(c, claim, now_us);
    }
}

static enum client_result opened(struct client *c, const struct client_message *m,
                                 const struct client_answer *a)
{
    if (c->opening != m->number)
        return CLIENT_NO_ANSWER; /* judged before; what it opened ends by itself */
    c->opening = 0;
    if (a->result != CLIENT_DONE)
        return a->result;
    memcpy(c->session, a->session, sizeof c->session);
    c->ttl_ms = a->ttl_ms;
    c->proved_us = m->sent_us;
    c->keeping = 0;
    c->retry_us = 0;
    return CLIENT_DONE;
}

static enum client_result kept_alive(struct client *c, const struct client_message *m,
                                     const struct client_answer *a, int64_t now_us)
{
    if (c->keeping == m->number)
        c->keeping = 0;
    if (a->result != CLIENT_DONE) {
        c->retry_us = now_us + RETRY_US;
        return a->result;
    }
    if (m->sent_us > c->proved_us)
        c->proved_us = m->sent_us; /* C1 */
    c->retry_us = 0;
    for (size_t i = 0; i < a->n_wanted; i++)
        want_name(c, a->wanted[i], strlen(a->wanted[i]), now_us);
    return CLIENT_DONE;
}

enum client_result client_answer(struct client *c, const struct client_message *m,
                                 const struct client_answer *a, int64_t now_us)
{
    if (m->kind == CLIENT_OPEN)
        return opened(c, m, a);
    if (strcmp(m->session, c->session) != 0) /* of a session that is gone */
        return m->kind == CLIENT_RELEASE || m->kind == CLIENT_CLOSE ? CLIENT_LOST : CLIENT_AGAIN;
    if (a->result == CLIENT_GONE) {
        lose_session(c);
        return m->kind == CLIENT_RELEASE ? CLIENT_LOST : CLIENT_AGAIN;
    }
    if (m->kind == CLIENT_KEEPALIVE)
        return kept_alive(c, m, a, now_us);
    return claim_answer(c, m, a, now_us);
}

void client_broken(struct client *c, const char *name, size_t name_len)
{
    for (struct client_claim *claim = claim_first(c, name, name_len), *next; claim; claim = next) {
        next = claim_next(claim);
        if (claim->stage == CLAIM_HELD)
            claim_lose(c, claim);
    }
}

/* Events may have been missed: everything that is held is asked for again. */
static void check_all(struct client *c, int64_t now_us)
{
    struct table_node *x = table_first(&c->claims);
    for (; x; x = table_after(&c->claims, x)) {
        struct client_claim *claim = (struct client_claim *)(void *)x;
        if (claim->stage != CLAIM_HELD)
            continue;
        claim->is_unchecked = true;
        heap_set(&c->claim_due, &claim->due, now_us);
    }
}

void client_event(struct client *c, enum client_event_kind kind, const char *name, size_t name_len,
                  const uint8_t *owner, int64_t fence, int64_t now_us)
{
    struct client_claim *claim = NULL;
    if (name && owner)
        claim = claim_owned(c, name, name_len, owner);
    switch (kind) {
    case CLIENT_EVENT_CONNECTED:
        check_all(c, now_us);
        break;
    case CLIENT_EVENT_WANTED:
        if (name)
            want_name(c, name, name_len, now_us);
        break;
    case CLIENT_EVENT_GRANTED:
        if (!claim || (claim->stage != CLAIM_ASKED && claim->stage != CLAIM_WAITING))
            break;
        claim->is_its_turn = true; /* its caller may not wait yet */
        if (claim->leases)
            c->config.on_change(c->config.context, claim->leases);
        break;
    case CLIENT_EVENT_LOST:
        if (claim && claim->stage == CLAIM_HELD && (fence == 0 || fence == claim->fence))
            claim_lose(c, claim);
        break;
    }
}

bool client_wants_stream(const struct client *c)
{
    return client_is_open(c) && c->claims.n > 0 && (c->config.cache || c->has_long_leases);
}
