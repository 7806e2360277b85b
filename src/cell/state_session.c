/* Sessions, the accounts that they count against, their agents and acquisitions, and the owners of
 * acquisitions that have ended. */
#include "base/hash.h"
#include "cell/state_internal.h"

/* ---- sessions ---- */

static struct session *session_of_node(struct table_node *node)
{
    return heap_item(node, struct session, node);
}

struct session *session_find(const struct cell_state *s, int64_t key)
{
    uint64_t hash = hash_int((uint64_t)key);
    for (struct table_node *node = table_chain(&s->sessions, hash); node; node = node->next)
        if (session_of_node(node)->pub.id.key == key)
            return session_of_node(node);
    return NULL;
}

static struct account *account_find(const struct cell_state *s, int64_t account)
{
    uint64_t hash = hash_int((uint64_t)account);
    for (struct table_node *node = table_chain(&s->accounts, hash); node; node = node->next)
        if (((struct account *)node)->account == account)
            return (struct account *)node;
    return NULL;
}

size_t session_n_of_account(const struct cell_state *s, int64_t account)
{
    const struct account *found = account_find(s, account);
    return found ? found->n_sessions : 0;
}

struct session *session_add(struct cell_state *s, const struct id *id, uint32_t ttl_ms,
                            int64_t account, struct cell_text label)
{
    struct session *session = hf_alloc(sizeof *session + label.len + 1);
    struct account *a = account_find(s, account);
    if (!a) {
        a = hf_alloc(sizeof *a);
        a->account = account;
        table_add(&s->accounts, &a->node, hash_int((uint64_t)account));
    }
    a->n_sessions++;
    session->account = a;
    session->pub = (struct cell_session){
        .id = *id, .ttl_ms = ttl_ms, .account = account, .label = session->label};
    if (label.len)
        memcpy(session->label, label.data, label.len);
    table_add(&s->sessions, &session->node, hash_int((uint64_t)id->key));
    order_add(&s->sessions_by_key, &session->order);
    heap_set(&s->sessions_by_ttl, &session->ttl, ttl_ms);
    return session;
}

static void ended_remove(struct cell_state *s, struct ended *e);

void session_remove(struct cell_state *s, struct session *session)
{
    while (session->ended_first)
        ended_remove(s, session->ended_first);
    if (--session->account->n_sessions == 0) {
        table_remove(&s->accounts, &session->account->node);
        free(session->account);
    }
    session->account = NULL;
    table_remove(&s->sessions, &session->node);
    order_remove(&s->sessions_by_key, &session->order);
    heap_remove(&s->sessions_by_ttl, &session->ttl);
    session->dead_next = s->dead_sessions;
    s->dead_sessions = session;
}

/* ---- agents ---- */

static uint64_t agent_hash(const struct session *session, struct cell_text text)
{
    return hash_keyed_with((uint64_t)session->pub.id.key, text.data, text.len);
}

static struct agent *agent_use(struct cell_state *s, struct session *session, struct cell_text text)
{
    uint64_t hash = agent_hash(session, text);
    for (struct table_node *node = table_chain(&s->agents, hash); node; node = node->next) {
        struct agent *agent = (struct agent *)node;
        if (node->hash == hash && agent->session == session && strlen(agent->text) == text.len &&
            (text.len == 0 || memcmp(agent->text, text.data, text.len) == 0))
            return agent;
    }
    struct agent *agent = hf_alloc(sizeof *agent + text.len + 1);
    agent->session = session;
    if (text.len)
        memcpy(agent->text, text.data, text.len);
    table_add(&s->agents, &agent->node, hash);
    return agent;
}

/* ---- acquisitions ---- */

struct owner_key owner_key(struct session *session, struct cell_text name,
                           const struct cell_owner *owner)
{
    struct owner_key key = {.session = session, .name = name, .owner = owner};
    if (session) {
        key.hash = hash_keyed_with((uint64_t)session->pub.id.key, name.data, name.len);
        key.hash = hash_keyed_with(key.hash, owner->bytes, sizeof owner->bytes);
    }
    return key;
}

static struct acquisition *acquisition_of_node(struct table_node *node)
{
    return heap_item(node, struct acquisition, node);
}

struct acquisition *acquisition_find(const struct cell_state *s, const struct owner_key *key)
{
    struct table_node *node = table_chain(&s->acquisitions, key->hash);
    for (; node; node = node->next) {
        struct acquisition *a = acquisition_of_node(node);
        if (node->hash == key->hash && a->pub.session == &key->session->pub &&
            cell_owner_equal(&a->pub.owner, key->owner) && a->pub.name->len == key->name.len &&
            memcmp(a->pub.name->text, key->name.data, key->name.len) == 0)
            return a;
    }
    return NULL;
}

/* The text of acquisitions that have none; nobody writes to it. */
static char none[1];

static struct acquisition *new_acquisition(struct cell_state *s, struct cell_name *name,
                                           const struct cell_owner *owner)
{
    struct acquisition *a = hf_alloc(sizeof *a);
    a->pub.name = name;
    a->pub.owner = *owner;
    a->pub.agent = a->pub.label = none;
    s->n_used_names += name->n_acquisitions++ == 0;
    return a;
}

struct acquisition *acquisition_add_delayed(struct cell_state *s, struct cell_name *name,
                                            const struct cell_owner *owner)
{
    return new_acquisition(s, name, owner);
}

struct acquisition *acquisition_add(struct cell_state *s, const struct owner_key *key,
                                    struct cell_name *name, struct cell_text agent)
{
    struct acquisition *a = new_acquisition(s, name, key->owner);
    struct session *session = key->session;
    a->agent = agent_use(s, session, agent);
    a->agent->n_acquisitions++;
    a->pub.session = &session->pub;
    a->pub.agent = a->agent->text;
    a->pub.session_prev = session->pub.last;
    *(session->pub.last ? &session->pub.last->session_next : &session->pub.first) = &a->pub;
    session->pub.last = &a->pub;
    session->pub.n_acquisitions++;
    table_add(&s->acquisitions, &a->node, key->hash);
    return a;
}

void acquisition_detach(struct cell_state *s, struct acquisition *a)
{
    struct cell_session *session = a->pub.session;
    struct agent *agent = a->agent;
    table_remove(&s->acquisitions, &a->node);
    *(a->pub.session_prev ? &a->pub.session_prev->session_next : &session->first) =
        a->pub.session_next;
    *(a->pub.session_next ? &a->pub.session_next->session_prev : &session->last) =
        a->pub.session_prev;
    a->pub.session_prev = a->pub.session_next = NULL;
    session->n_acquisitions--;
    a->agent = NULL;
    a->pub.agent = none;
    if (--agent->n_acquisitions == 0) {
        table_remove(&s->agents, &agent->node);
        free(agent);
    }
}

void acquisition_set_label(struct acquisition *a, struct cell_text label)
{
    if (label.len)
        a->pub.label = hf_strndup(label.data, label.len);
}

void acquisition_free(struct acquisition *a)
{
    if (a->pub.label != none)
        free(a->pub.label);
    free(a->value);
    free(a);
}

void acquisition_set_value(struct cell_state *s, struct acquisition *a, struct cell_text value)
{
    s->value_bytes -= a->value_len;
    free(a->value);
    a->value = value.data ? hf_strndup(value.data, value.len) : NULL;
    a->value_len = value.len;
    s->value_bytes += a->value_len;
}

void acquisition_bury(struct cell_state *s, struct acquisition *a)
{
    struct cell_name *n = a->pub.name;
    acquisition_set_value(s, a, (struct cell_text){0});
    n->n_exclusive -= a->pub.mode == CELL_EXCLUSIVE;
    s->n_used_names -= --n->n_acquisitions == 0;
    a->dead_next = s->dead_acquisitions;
    s->dead_acquisitions = a;
}

/* ---- ended owners ---- */

struct ended *ended_find(const struct cell_state *s, const struct owner_key *key)
{
    struct table_node *node = table_chain(&s->ended, key->hash);
    for (; node; node = node->next) {
        struct ended *e = (struct ended *)node;
        if (node->hash == key->hash && e->session == key->session &&
            cell_owner_equal(&e->owner, key->owner) && e->name_len == key->name.len &&
            memcmp(e->name, key->name.data, key->name.len) == 0)
            return e;
    }
    return NULL;
}

static void ended_remove(struct cell_state *s, struct ended *e)
{
    struct session *session = e->session;
    table_remove(&s->ended, &e->node);
    *(e->prev ? &e->prev->next : &s->ended_first) = e->next;
    *(e->next ? &e->next->prev : &s->ended_last) = e->prev;
    *(e->session_prev ? &e->session_prev->session_next : &session->ended_first) = e->session_next;
    *(e->session_next ? &e->session_next->session_prev : &session->ended_last) = e->session_prev;
    session->n_ended--;
    free(e);
}

struct ended *ended_add(struct cell_state *s, const struct owner_key *key)
{
    struct session *session = key->session;
    if (session->n_ended == CELL_ENDED_MAX)
        ended_remove(s, session->ended_first);
    if (s->ended.n == STATE_ENDED_MAX)
        ended_remove(s, s->ended_first);
    struct ended *e = hf_alloc(sizeof *e + key->name.len);
    e->session = session;
    e->owner = *key->owner;
    e->name_len = (uint16_t)key->name.len;
    memcpy(e->name, key->name.data, key->name.len);
    e->prev = s->ended_last;
    *(s->ended_last ? &s->ended_last->next : &s->ended_first) = e;
    s->ended_last = e;
    e->session_prev = session->ended_last;
    *(session->ended_last ? &session->ended_last->session_next : &session->ended_first) = e;
    session->ended_last = e;
    session->n_ended++;
    table_add(&s->ended, &e->node, key->hash);
    return e;
}

void ended_forget(struct cell_state *s)
{
    struct ended *e = s->ended_first, *next;
    for (; e && e->is_old; e = next) {
        next = e->next;
        ended_remove(s, e);
    }
    for (; e; e = e->next)
        e->is_old = true;
}
