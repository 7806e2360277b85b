/* See client.h.  Claims and leases; client_session.c has the session, its keep-alives and its
 * stream. */
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "lease/holdfast/client_internal.h"

/* A place that is neither asked for nor released for so long has been forgotten by its caller; the
 * service has dropped it long before. */
#define FORGOTTEN_US INT64_C(60000000)
/* An owner that the service says has ended is replaced by another this often for one request. */
#define OWNERS_MAX 3

/* ---- finding ---- */

/* Owners are random bits, and each acquisition has its own. */
static uint64_t hash_of(const uint8_t *owner)
{
    uint64_t start;
    memcpy(&start, owner, sizeof start);
    return hash_finish(start);
}

struct client_lease *client_find(const struct client *c, const char *name, size_t name_len,
                                 const uint8_t owner[LEASE_OWNER_SIZE])
{
    uint64_t hash = hash_of(owner);
    for (struct table_node *x = table_chain(&c->leases, hash); x; x = x->next) {
        struct client_lease *l = (struct client_lease *)(void *)x;
        if (x->hash == hash && memcmp(l->owner, owner, LEASE_OWNER_SIZE) == 0 &&
            l->name_len == name_len && memcmp(l->name, name, name_len) == 0)
            return l;
    }
    return NULL;
}

static bool is_named(const struct client_claim *claim, uint64_t hash, const char *name,
                     size_t name_len)
{
    return claim->link.hash == hash && claim->name_len == name_len &&
           memcmp(claim->name, name, name_len) == 0;
}

struct client_claim *claim_first(const struct client *c, const char *name, size_t name_len)
{
    uint64_t hash = hash_keyed(name, name_len);
    struct table_node *x = table_chain(&c->claims, hash);
    while (x && !is_named((struct client_claim *)(void *)x, hash, name, name_len))
        x = x->next;
    return (struct client_claim *)(void *)x;
}

struct client_claim *claim_next(const struct client_claim *claim)
{
    struct table_node *x = claim->link.next;
    while (x && !is_named((struct client_claim *)(void *)x, claim->link.hash, claim->name,
                          claim->name_len))
        x = x->next;
    return (struct client_claim *)(void *)x;
}

static struct client_claim *claim_of(const struct client *c, const struct client_message *m)
{
    struct client_claim *claim = claim_first(c, m->name, m->name_len);
    while (claim && claim->id != m->claim)
        claim = claim_next(claim);
    return claim;
}

struct client_claim *claim_owned(const struct client *c, const char *name, size_t name_len,
                                 const uint8_t *owner)
{
    struct client_claim *claim = claim_first(c, name, name_len);
    while (claim && memcmp(claim->owner, owner, LEASE_OWNER_SIZE) != 0)
        claim = claim_next(claim);
    return claim;
}

/* The cached claim that a reader may share (C6); NULL: none. */
static struct client_claim *claim_cached(const struct client *c, const char *name, size_t name_len)
{
    struct client_claim *claim = claim_first(c, name, name_len);
    while (claim && !(claim->cache && claim->stage == CLAIM_HELD && !claim->is_wanted))
        claim = claim_next(claim);
    return claim;
}

/* A cached claim that nobody in this process uses; NULL: none. */
static struct client_claim *claim_idle(const struct client *c, const char *name, size_t name_len)
{
    struct client_claim *claim = claim_first(c, name, name_len);
    while (claim && (!claim->cache || claim->leases ||
                     (claim->stage != CLAIM_HELD && claim->stage != CLAIM_ENDING)))
        claim = claim_next(claim);
    return claim;
}

/* ---- making and ending ---- */

static void lease_attach(struct client_lease *l, struct client_claim *claim)
{
    l->claim = claim;
    l->prev = NULL;
    l->next = claim->leases;
    if (l->next)
        l->next->prev = l;
    claim->leases = l;
}

static void lease_detach(struct client_lease *l)
{
    if (!l->claim)
        return;
    if (l->prev)
        l->prev->next = l->next;
    else
        l->claim->leases = l->next;
    if (l->next)
        l->next->prev = l->prev;
    l->claim = NULL;
}

static struct client_lease *lease_new(struct client *c, const struct lease_request *want)
{
    struct client_lease *l = hf_alloc(sizeof *l + want->key_len + 1);
    l->client = c;
    memcpy(l->owner, want->owner, sizeof l->owner);
    memcpy(l->name, want->key, want->key_len);
    l->name_len = want->key_len;
    table_add(&c->leases, &l->link, hash_of(l->owner));
    return l;
}

void lease_free(struct client_lease *l)
{
    lease_detach(l);
    heap_remove(&l->client->lease_due, &l->due);
    table_remove(&l->client->leases, &l->link);
    free(l);
}

/* The caller has lost it, and does not know yet. */
static void lease_lose(struct client_lease *l)
{
    struct client *c = l->client;
    lease_detach(l);
    c->config.on_change(c->config.context, l);
}

/* Whom the service takes to be the one that waits; one that is alone otherwise. */
static void agent_format(const struct client *c, const struct lease_request *want,
                         const uint8_t *owner, char ret[CLIENT_AGENT_SIZE])
{
    bool is_cached = c->config.cache && want->mode == HF_SHARED;
    if (want->agent && !is_cached)
        snprintf(ret, CLIENT_AGENT_SIZE, "t%llu", (unsigned long long)want->agent);
    else
        hex_format(owner, LEASE_OWNER_SIZE, ret);
}

static struct client_claim *claim_new(struct client *c, const struct lease_request *want)
{
    struct client_claim *claim = hf_alloc(sizeof *claim);
    claim->id = ++c->last_claim;
    memcpy(claim->name, want->key, want->key_len);
    claim->name_len = want->key_len;
    memcpy(claim->owner, want->owner, sizeof claim->owner);
    if (claim_owned(c, want->key, want->key_len, want->owner))
        random_bytes(c->config.random, claim->owner, sizeof claim->owner); /* C4 */
    claim->mode = want->mode;
    claim->priority = want->priority;
    claim->slots = want->slots;
    claim->cache = c->config.cache && want->mode == HF_SHARED;
    agent_format(c, want, claim->owner, claim->agent);
    table_add(&c->claims, &claim->link, hash_keyed(claim->name, claim->name_len));
    return claim;
}

/* Frees a claim; its leases are lost. */
void claim_free(struct client *c, struct client_claim *claim)
{
    while (claim->leases)
        lease_lose(claim->leases); // NOLINT(clang-analyzer-unix.Malloc)
    if (claim->stage == CLAIM_ENDING) {
        *(claim->ending_prev ? &claim->ending_prev->ending_next : &c->ending) = claim->ending_next;
        if (claim->ending_next)
            claim->ending_next->ending_prev = claim->ending_prev;
    }
    heap_remove(&c->claim_due, &claim->due);
    table_remove(&c->claims, &claim->link);
    free(claim);
}

static void claim_set_ending(struct client *c, struct client_claim *claim)
{
    if (claim->stage == CLAIM_ENDING)
        return;
    claim->stage = CLAIM_ENDING;
    claim->ending_prev = NULL;
    claim->ending_next = c->ending;
    if (c->ending)
        c->ending->ending_prev = claim;
    c->ending = claim;
}

void claim_lose(struct client *c, struct client_claim *claim)
{
    if (claim->n_flying == 0) {
        claim_free(c, claim);
        return;
    }
    while (claim->leases)
        lease_lose(claim->leases);
    claim_set_ending(c, claim);
    claim->is_released = true; /* it is freed with the last answer */
    heap_remove(&c->claim_due, &claim->due);
}

/* A claim of this agent that the service may still have, although it is given up; NULL: none. */
static struct client_claim *claim_ending(const struct client *c, const char *agent)
{
    struct client_claim *claim = c->ending;
    while (claim && (claim->is_released || strcmp(claim->agent, agent) != 0))
        claim = claim->ending_next;
    return claim;
}

/* From now on it is being released (C5). */
static void claim_end(struct client *c, struct client_claim *claim, int64_t now_us)
{
    claim_set_ending(c, claim);
    if (claim->n_releasing == 0)
        heap_set(&c->claim_due, &claim->due, now_us);
}

/* Its last lease may have gone. */
static void claim_settle(struct client *c, struct client_claim *claim, int64_t now_us)
{
    if (claim->leases || claim->stage == CLAIM_ENDING)
        return;
    bool is_kept = claim->cache && claim->stage == CLAIM_HELD && !claim->is_wanted;
    if (!is_kept)
        claim_end(c, claim, now_us);
}

void claim_want(struct client *c, struct client_claim *claim, int64_t now_us)
{
    if (!claim->cache || claim->is_wanted)
        return;
    claim->is_wanted = true;
    if (claim->stage != CLAIM_HELD)
        return;
    if (claim->leases)
        heap_set(&c->claim_due, &claim->due, now_us); /* to say that it is in use */
    claim_settle(c, claim, now_us);
}

/* ---- messages ---- */

void message_init(struct client *c, struct client_message *m, enum client_kind kind, int64_t now_us)
{
    *m = (struct client_message){.kind = kind, .number = ++c->last_number, .sent_us = now_us};
    memcpy(m->session, c->session, sizeof m->session);
}

void message_about(struct client *c, struct client_message *m, enum client_kind kind,
                   struct client_claim *claim, int64_t now_us)
{
    message_init(c, m, kind, now_us);
    m->claim = claim->id;
    memcpy(m->name, claim->name, claim->name_len);
    m->name_len = claim->name_len;
    memcpy(m->owner, claim->owner, sizeof m->owner);
    claim->n_flying++;
    if (kind == CLIENT_RELEASE) {
        claim->n_releasing++;
        return;
    }
    m->mode = claim->mode;
    m->priority = claim->priority;
    m->slots = claim->slots;
    m->claim_ms = WAITER_CLAIM_MS;
    m->cache = claim->cache && !claim->is_wanted;
    memcpy(m->agent, claim->agent, sizeof m->agent);
}

/* The caller sends the release itself. */
static enum client_step end_now(struct client *c, struct client_claim *claim, int64_t now_us,
                                struct client_message *ret)
{
    claim_set_ending(c, claim);
    heap_remove(&c->claim_due, &claim->due);
    message_about(c, ret, CLIENT_RELEASE, claim, now_us);
    return CLIENT_SEND;
}

/* ---- asking ---- */

/* A reader shares a cached claim (C6). */
static struct client_lease *share(struct client *c, struct client_claim *claim,
                                  const struct lease_request *want, int64_t now_us)
{
    struct client_lease *l = lease_new(c, want);
    lease_attach(l, claim);
    l->expires_us = now_us + c->ttl_ms * 1000;
    heap_set(&c->lease_due, &l->due, l->expires_us);
    c->counts.cache_hits++;
    return l;
}

static enum client_step ask_service(struct client *c, struct client_lease *l,
                                    const struct lease_request *want, int64_t now_us,
                                    struct client_message *ret)
{
    message_about(c, ret, CLIENT_ACQUIRE, l->claim, now_us);
    ret->queue = want->queue;
    ret->wait_ms = want->queue ? 1 : 0;
    ret->label = want->label;
    ret->label_len = want->label_len;
    ret->value = want->value;
    ret->value_len = want->value_len;
    l->asked_us = now_us;
    l->claim->is_its_turn = false;
    heap_set(&c->lease_due, &l->due, now_us + FORGOTTEN_US);
    return CLIENT_SEND;
}

/* What is left of an earlier request of this owner; NULL: nothing that can be used. */
static struct client_lease *ask_earlier(struct client *c, const struct lease_request *want,
                                        int64_t now_us)
{
    struct client_lease *l = client_find(c, want->key, want->key_len, want->owner);
    if (!l)
        return NULL;
    struct client_claim *claim = l->claim;
    bool is_over = claim && claim->stage == CLAIM_HELD && l->expires_us <= now_us;
    if (claim && claim->stage != CLAIM_ENDING && !is_over)
        return l;
    lease_free(l);
    if (claim)
        claim_settle(c, claim, now_us);
    return NULL;
}

/* What has to be released before a request may wait (C7); NULL: nothing. */
static struct client_claim *first_to_release(const struct client *c,
                                             const struct lease_request *want,
                                             const struct client_lease *l)
{
    char agent[CLIENT_AGENT_SIZE];
    bool has_place = l && l->claim->stage == CLAIM_WAITING;
    if (!c->ending || !want->queue || !want->agent || has_place)
        return NULL;
    agent_format(c, want, want->owner, agent);
    return claim_ending(c, agent);
}

/* Sends the release, unless one is under way. */
static enum client_step release_first(struct client *c, struct client_claim *claim, int64_t now_us,
                                      struct client_message *ret)
{
    return claim->n_releasing > 0 ? CLIENT_BUSY : end_now(c, claim, now_us, ret);
}

enum client_step client_acquire(struct client *c, const struct lease_request *want, int64_t now_us,
                                struct client_lease **ret_lease, struct client_message *ret)
{
    bool is_open = session_is_usable(c, now_us);
    struct client_lease *l = ask_earlier(c, want, now_us);
    c->used_us = now_us;
    *ret_lease = l;
    if (l && l->claim->stage == CLAIM_HELD)
        return CLIENT_KNOWN;
    if (!is_open)
        return session_open(c, now_us, ret);
    struct client_claim *stale = first_to_release(c, want, l);
    if (stale)
        return release_first(c, stale, now_us, ret);
    if (l)
        return ask_service(c, l, want, now_us, ret);
    struct client_claim *cached =
        c->config.cache ? claim_cached(c, want->key, want->key_len) : NULL;
    if (cached && want->mode == HF_SHARED) {
        if (now_us < client_end_us(c) - client_margin_us(c->ttl_ms)) {
            *ret_lease = share(c, cached, want, now_us);
            return CLIENT_KNOWN;
        }
        return client_keep_alive(c, now_us, 0, ret) ? CLIENT_SEND : CLIENT_BUSY;
    }
    bool is_writer = c->config.cache && want->mode != HF_SHARED;
    struct client_claim *idle = is_writer ? claim_idle(c, want->key, want->key_len) : NULL;
    if (idle) { /* our own cache is in the way of a writer */
        idle->is_wanted = true;
        return release_first(c, idle, now_us, ret);
    }
    c->counts.cache_misses += c->config.cache && want->mode == HF_SHARED;
    l = lease_new(c, want);
    lease_attach(l, claim_new(c, want));
    *ret_lease = l;
    return ask_service(c, l, want, now_us, ret);
}

/* ---- giving back, renewing ---- */

enum client_step client_release(struct client *c, struct client_lease *l, int64_t now_us,
                                struct client_message *ret, enum client_result *ret_result)
{
    struct client_claim *claim = l->claim;
    c->used_us = now_us;
    *ret_result = CLIENT_LOST;
    if (!claim) {
        lease_free(l);
        return CLIENT_KNOWN;
    }
    if (claim->stage != CLAIM_HELD || l->expires_us > now_us)
        *ret_result = CLIENT_DONE;
    if (claim->cache && claim->stage == CLAIM_HELD) {
        lease_free(l);
        claim_settle(c, claim, now_us);
        return CLIENT_KNOWN;
    }
    return end_now(c, claim, now_us, ret);
}

bool client_renew(struct client *c, struct client_lease *l, int64_t now_us)
{
    c->used_us = now_us;
    if (!client_lease_is_granted(l) || l->expires_us <= now_us)
        return false;
    int64_t end_us = client_end_us(c);
    if (end_us > l->expires_us) {
        l->expires_us = end_us;
        heap_set(&c->lease_due, &l->due, end_us);
    }
    c->has_long_leases = true;
    return true;
}

/* Leases that were not renewed, and places that their callers forgot. */
void leases_expire(struct client *c, int64_t now_us)
{
    for (struct heap_node *first; (first = heap_first(&c->lease_due)) && first->key <= now_us;) {
        struct client_lease *l = heap_item(first, struct client_lease, due);
        struct client_claim *claim = l->claim;
        if (claim && claim->stage != CLAIM_HELD && l->waiter)
            heap_set(&c->lease_due, &l->due, now_us + FORGOTTEN_US);
        else
            lease_free(l);
        if (claim)
            claim_settle(c, claim, now_us);
    }
}

/* ---- answers ---- */

/* The grant counts when it is asked for again (C8). */
static enum client_result is_its_turn(struct client_claim *claim)
{
    claim->stage = CLAIM_WAITING;
    claim->position = 1;
    claim->is_its_turn = true;
    return CLIENT_AGAIN;
}

static enum client_result granted(struct client *c, struct client_claim *claim,
                                  const struct client_message *m, const struct client_answer *a,
                                  int64_t now_us)
{
    if (claim->stage == CLAIM_ENDING)
        return CLIENT_LOST; /* for a caller that gave up: it is being released */
    if (claim->stage == CLAIM_HELD) {
        claim->is_told |= claim->cache && !m->cache;
        return CLIENT_DONE;
    }
    if (a->is_unclaimed)
        return is_its_turn(claim);
    claim->stage = CLAIM_HELD;
    claim->fence = a->fence;
    claim->slot = a->slot;
    for (struct client_lease *l = claim->leases; l; l = l->next) {
        l->expires_us = now_us + c->ttl_ms * 1000; /* the request may have waited */
        heap_set(&c->lease_due, &l->due, l->expires_us);
    }
    if (claim->is_wanted && !claim->is_told)
        heap_set(&c->claim_due, &claim->due, now_us);
    return CLIENT_DONE;
}

/* The service has nothing of this claim: forget it, and the lease that asked. */
static void forget(struct client *c, struct client_claim *claim)
{
    while (claim->leases)
        lease_free(claim->leases); // NOLINT(clang-analyzer-unix.Malloc)
    claim_free(c, claim);
}

static enum client_result not_granted(struct client *c, struct client_claim *claim,
                                      const struct client_answer *a)
{
    if (claim->stage == CLAIM_ENDING)
        return CLIENT_LOST;
    if (claim->stage == CLAIM_HELD) { /* the service took it back */
        while (claim->leases)
            lease_lose(claim->leases);
        claim_end(c, claim, 0);
        return CLIENT_LOST;
    }
    if (a->position == 0 && claim->n_flying == 0 && !claim->is_doubtful) {
        forget(c, claim);
        return CLIENT_TAKEN;
    }
    claim->stage = a->position ? CLAIM_WAITING : claim->stage;
    claim->position = a->position;
    return CLIENT_TAKEN;
}

/* The owner has ended.  A caller that wants it anew gets another one (C4). */
static enum client_result ended(struct client *c, struct client_claim *claim)
{
    if (claim->stage == CLAIM_HELD || claim->stage == CLAIM_ENDING ||
        ++claim->n_owners >= OWNERS_MAX) {
        claim_lose(c, claim);
        return CLIENT_LOST;
    }
    random_bytes(c->config.random, claim->owner, sizeof claim->owner);
    claim->stage = CLAIM_ASKED;
    return CLIENT_AGAIN;
}

/* The question whether a lock is still held, or that it is in use, was not answered. */
static void check_again(struct client *c, struct client_claim *claim,
                        const struct client_message *m)
{
    if (claim->stage != CLAIM_HELD)
        return;
    claim->is_unchecked = true;
    heap_set(&c->claim_due, &claim->due, m->sent_us + RETRY_US);
}

static enum client_result judge_acquire(struct client *c, struct client_claim *claim,
                                        const struct client_message *m,
                                        const struct client_answer *a, int64_t now_us)
{
    if (m->number < claim->judged || memcmp(m->owner, claim->owner, sizeof m->owner) != 0)
        return claim->stage == CLAIM_HELD ? CLIENT_DONE : CLIENT_TAKEN; /* C3 */
    if (a->result < CLIENT_NOT_DONE)
        claim->judged = m->number;
    switch (a->result) {
    case CLIENT_DONE:
        return granted(c, claim, m, a, now_us);
    case CLIENT_TAKEN:
        return not_granted(c, claim, a);
    case CLIENT_LOST:
        return ended(c, claim);
    case CLIENT_NO_ANSWER:
        claim->is_doubtful = true;
        check_again(c, claim, m);
        return a->result;
    case CLIENT_NOT_DONE:
        check_again(c, claim, m);
        break;
    case CLIENT_DEADLOCK:
        if (claim->stage == CLAIM_ENDING || !claim_ending(c, claim->agent))
            break;
        if (claim->stage == CLAIM_WAITING)
            claim->stage = CLAIM_ASKED; /* the service has taken its place away */
        return CLIENT_AGAIN;            /* C7 */
    default:
        break;
    }
    if (claim->stage == CLAIM_ASKED && claim->n_flying == 0 && !claim->is_doubtful)
        forget(c, claim);
    return a->result;
}

static enum client_result judge_release(struct client *c, struct client_claim *claim,
                                        const struct client_message *m,
                                        const struct client_answer *a)
{
    claim->n_releasing--;
    if (a->result != CLIENT_DONE && a->result != CLIENT_LOST) {
        if (claim->n_releasing == 0)
            heap_set(&c->claim_due, &claim->due, m->sent_us + RETRY_US);
        return a->result;
    }
    claim->is_released = true;
    heap_remove(&c->claim_due, &claim->due);
    return a->result;
}

enum client_result claim_answer(struct client *c, const struct client_message *m,
                                const struct client_answer *a, int64_t now_us)
{
    struct client_claim *claim = claim_of(c, m);
    if (!claim)
        return m->kind == CLIENT_RELEASE ? CLIENT_LOST : CLIENT_AGAIN;
    claim->n_flying--;
    enum client_result result = m->kind == CLIENT_RELEASE ? judge_release(c, claim, m, a)
                                                          : judge_acquire(c, claim, m, a, now_us);
    claim = claim_of(c, m);
    if (claim && claim->is_released && claim->n_flying == 0)
        forget(c, claim);
    return result;
}

/* ---- looking ---- */

bool client_lease_is_waiting(const struct client_lease *l)
{
    return l->claim && l->claim->stage == CLAIM_WAITING;
}

bool client_lease_is_its_turn(const struct client_lease *l)
{
    return client_lease_is_waiting(l) && l->claim->is_its_turn;
}

bool client_lease_is_granted(const struct client_lease *l)
{
    return l->claim && l->claim->stage == CLAIM_HELD;
}

bool client_lease_is_lost(const struct client_lease *l) { return !l->claim; }

int64_t client_lease_end_us(const struct client_lease *l)
{
    if (!client_lease_is_granted(l))
        return 0;
    int64_t end_us = client_end_us(l->client);
    return l->expires_us < end_us ? l->expires_us : end_us;
}

bool client_lease_is_held(const struct client_lease *l, int64_t now_us)
{
    return now_us < client_lease_end_us(l) - client_margin_us(l->client->ttl_ms);
}

int64_t client_lease_fence(const struct client_lease *l) { return l->claim ? l->claim->fence : 0; }

unsigned client_lease_slot(const struct client_lease *l) { return l->claim ? l->claim->slot : 0; }

size_t client_lease_position(const struct client_lease *l)
{
    return client_lease_is_waiting(l) ? l->claim->position : 0;
}

int64_t client_lease_asked_us(const struct client_lease *l) { return l->asked_us; }

void client_lease_set_waiter(struct client_lease *l, void *waiter) { l->waiter = waiter; }

void *client_lease_waiter(const struct client_lease *l) { return l->waiter; }

const uint8_t *client_lease_owner(const struct client_lease *l) { return l->owner; }

const char *client_lease_name(const struct client_lease *l, size_t *ret_len)
{
    *ret_len = l->name_len;
    return l->name;
}

const struct client_lease *client_find_claim(const struct client *c, const char *name,
                                             size_t name_len, const uint8_t owner[LEASE_OWNER_SIZE])
{
    const struct client_claim *claim = claim_owned(c, name, name_len, owner);
    return claim ? claim->leases : NULL;
}
