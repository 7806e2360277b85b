/* Commands: what each of them does to the state, and its verdict.  See state.h for the rules and
 * state_internal.h for the parts.  Every command ends with one pass that grants what can be granted
 * since (S2), and forgets names that nobody uses any more. */
#include "cell/state_internal.h"

/* ---- effects ---- */

static void session_effect(struct cell_state *s, enum cell_effect_kind kind,
                           struct session *session)
{
    *vec_push(&s->effects) = (struct cell_effect){.kind = kind, .session = &session->pub};
}

static void touch(struct cell_state *s, struct cell_name *n) { *vec_push(&s->touched) = n; }

/* ---- how an acquisition ends ---- */

static void drop_value(struct cell_state *s, struct cell_acquisition *a)
{
    if (a->name->value_fence != a->fence)
        return;
    name_set_value(s, a->name, (struct cell_text){0}, 0);
    state_effect(s, CELL_EFFECT_VALUE, a);
}

/* A grant ends, and its acquisition is in no list of its name any more. */
static void end_grant(struct cell_state *s, struct acquisition *a, enum cell_effect_kind kind)
{
    holders_remove(a);
    s->n_held--;
    s->n_cached -= a->pub.cached;
    touch(s, a->pub.name);
    state_effect(s, kind, &a->pub);
    drop_value(s, &a->pub);
}

static void end_place(struct cell_state *s, struct acquisition *a)
{
    line_remove(a);
    s->n_waiting--;
    touch(s, a->pub.name);
}

/* The acquisition ends; `remember`: its owner is not accepted again. */
static void finish(struct cell_state *s, struct acquisition *a, bool remember)
{
    const struct owner_key key = {
        .session = (struct session *)a->pub.session,
        .name = {.data = a->pub.name->text, .len = a->pub.name->len},
        .owner = &a->pub.owner,
        .hash = a->node.hash,
    };
    if (remember)
        ended_add(s, &key);
    acquisition_detach(s, a);
    acquisition_bury(s, a);
}

/* A holder whose session is lost blocks its name until CELL_UNDELAY, without a session. */
static void delay(struct cell_state *s, struct acquisition *a)
{
    s->n_held--;
    s->n_cached -= a->pub.cached;
    state_effect(s, CELL_EFFECT_LOST, &a->pub);
    drop_value(s, &a->pub);
    acquisition_detach(s, a);
    acquisition_set_value(s, a, (struct cell_text){0});
    a->pub.stage = CELL_DELAYED;
    a->pub.session = NULL;
    a->pub.cached = false;
    s->n_delayed++;
    state_effect(s, CELL_EFFECT_DELAYED, &a->pub);
}

static void undelay(struct cell_state *s, struct acquisition *a)
{
    holders_remove(a);
    s->n_delayed--;
    touch(s, a->pub.name);
    state_effect(s, CELL_EFFECT_UNDELAYED, &a->pub);
    acquisition_bury(s, a);
}

/* ---- sessions ---- */

/* The session of a command, if the command may act for it. */
static struct session *session_of(const struct cell_state *s, const struct cell_command *c)
{
    struct session *session = session_find(s, c->session.key);
    bool by_master = c->by_master || c->kind == CELL_EXPIRE || c->kind == CELL_CANCEL ||
                     c->kind == CELL_WITHDRAW;
    if (session && !by_master && !id_secret_equal(session->pub.id.secret, c->session.secret))
        return NULL;
    return session;
}

static bool text_equals(const char *text, const struct cell_text *other)
{
    size_t len = strlen(text);
    return len == other->len && (len == 0 || memcmp(text, other->data, len) == 0);
}

static void apply_open(struct cell_state *s, const struct cell_command *c, struct cell_verdict *v)
{
    struct session *session = session_find(s, c->session.key);
    if (session) { /* the answer to the first command was lost */
        bool is_same = id_secret_equal(session->pub.id.secret, c->session.secret) &&
                       session->pub.ttl_ms == c->ttl_ms &&
                       text_equals(session->pub.label, &c->label);
        v->result = is_same ? CELL_DONE : CELL_NO_SESSION;
        v->repeated = is_same;
    } else if (s->sessions.n >= CELL_SESSIONS_MAX ||
               (c->limit && session_n_of_account(s, c->account) >= c->limit)) {
        v->result = CELL_TOO_MANY_SESSIONS;
    } else {
        session = session_add(s, &c->session, c->ttl_ms, c->account, c->label);
        session_effect(s, CELL_EFFECT_OPENED, session);
    }
}

static void apply_close(struct cell_state *s, const struct cell_command *c, struct cell_verdict *v)
{
    struct session *session = session_of(s, c);
    if (!session) {
        v->result = CELL_NO_SESSION;
        return;
    }
    while (session->pub.first) {
        struct acquisition *a = private_of(session->pub.first);
        if (a->pub.stage == CELL_WAITING) {
            end_place(s, a);
            state_effect(s, CELL_EFFECT_CANCELLED, &a->pub);
        } else if (c->kind == CELL_EXPIRE && a->pub.delay_ms) {
            delay(s, a);
            continue;
        } else {
            end_grant(s, a, c->kind == CELL_EXPIRE ? CELL_EFFECT_LOST : CELL_EFFECT_RELEASED);
        }
        finish(s, a, false);
    }
    session_effect(s, CELL_EFFECT_CLOSED, session);
    session_remove(s, session);
}

/* ---- acquiring ---- */

static bool add_holder(void *context, struct cell_acquisition *holder)
{
    struct cell_verdict *v = context;
    cell_verdict_add_person(v, holder);
    return v->people.n == CELL_PEOPLE_MAX;
}

static void say_granted(const struct cell_acquisition *a, struct cell_verdict *v)
{
    v->fence = a->fence;
    v->slot = a->slot;
}

static void say_taken(const struct cell_state *s, const struct cell_acquisition *a, bool has_place,
                      struct cell_verdict *v)
{
    v->result = CELL_TAKEN;
    if (!s->wants_verdict)
        return;
    v->position = has_place ? cell_acquisition_position(a) : 0;
    line_each_blocker(a, false, add_holder, v);
}

/* A waiter is in the line.  If its waiting closes a cycle it leaves again, as if it had not asked.
 */
static bool refuse_deadlock(struct cell_state *s, const struct cell_command *c,
                            struct acquisition *a, struct cell_verdict *v)
{
    if (!graph_closes_cycle(s, a, c->finds_knots, s->wants_verdict ? v : NULL))
        return false;
    v->result = CELL_DEADLOCK;
    end_place(s, a);
    return true;
}

static void repeat_acquire(struct cell_state *s, const struct cell_command *c,
                           struct acquisition *a, struct cell_verdict *v)
{
    bool cached = c->cached && a->pub.mode == CELL_SHARED, was_cached = a->pub.cached;
    v->mode = a->pub.mode;
    v->repeated = true;
    if (c->mode != a->pub.mode) {
        v->result = CELL_MODE_CONFLICT;
        return;
    }
    a->pub.cached = cached;
    if (a->pub.stage == CELL_HELD) {
        s->n_cached = s->n_cached + cached - was_cached;
        if (cached && !was_cached && line_is_wanted(&a->pub))
            state_effect(s, CELL_EFFECT_WANTED, &a->pub);
        say_granted(&a->pub, v);
        return;
    }
    bool returns = a->pub.passed_over;
    if (returns) {
        line_remove(a);
        a->pub.passed_over = false;
        if (!line_is_blocked(&a->pub)) {
            s->n_waiting--;
            grant(s, a);
            say_granted(&a->pub, v);
            return;
        }
        line_add(a);
    }
    /* Edges that appeared since it began to wait may have closed a cycle: a cached lock that is in
     * use now, a waiter that aged. */
    if (c->queue && refuse_deadlock(s, c, a, v)) {
        state_effect(s, CELL_EFFECT_CANCELLED, &a->pub);
        finish(s, a, false);
        return;
    }
    if (returns)
        line_want(s, &a->pub);
    say_taken(s, &a->pub, true, v);
}

static struct acquisition *new_acquisition(struct cell_state *s, const struct cell_command *c,
                                           const struct owner_key *key, struct cell_name *n)
{
    struct acquisition *a = acquisition_add(s, key, n, c->agent);
    a->pub.mode = c->mode;
    a->pub.slots = c->slots ? c->slots : 1;
    a->pub.priority = c->priority;
    a->pub.delay_ms = c->delay_ms;
    a->pub.cached = c->cached && c->mode == CELL_SHARED;
    a->pub.arrival = ++s->arrival;
    acquisition_set_label(a, c->label);
    acquisition_set_value(s, a, c->value);
    if (c->mode == CELL_EXCLUSIVE) {
        n->n_exclusive++;
        n->slots = a->pub.slots;
    }
    return a;
}

/* The request was refused: the acquisition, which is in no list of its name, has never been. */
static void forget_acquisition(struct cell_state *s, struct acquisition *a)
{
    struct cell_name *n = a->pub.name;
    s->arrival--;
    finish(s, a, false);
    name_settle(s, n);
}

/* Returns false, with the verdict, if no request may be made at all. */
static bool may_acquire(const struct cell_state *s, const struct cell_command *c,
                        const struct owner_key *key, struct cell_verdict *v)
{
    const struct cell_name *n = name_find(s, c->name.data, c->name.len);
    uint32_t slots = c->slots ? c->slots : 1;
    if (ended_find(s, key)) {
        v->result = CELL_LOST;
    } else if (n && c->mode == CELL_EXCLUSIVE && n->n_exclusive && n->slots != slots) {
        v->result = CELL_SLOTS_CONFLICT;
        v->slots = n->slots;
    } else if (state_n_acquisitions(s) >= CELL_ACQUISITIONS_MAX || s->names.n >= CELL_NAMES_MAX ||
               (c->value.len && s->value_bytes + 2 * c->value.len > STATE_VALUES_MAX)) {
        v->result = CELL_TOO_MANY_LOCKS;
    } else {
        return true;
    }
    return false;
}

static void apply_acquire(struct cell_state *s, const struct cell_command *c,
                          struct cell_verdict *v)
{
    struct session *session = session_of(s, c);
    v->mode = c->mode;
    if (!session) {
        v->result = CELL_NO_SESSION;
        return;
    }
    struct owner_key key = owner_key(session, c->name, &c->owner);
    struct acquisition *a = acquisition_find(s, &key);
    if (a) {
        repeat_acquire(s, c, a, v);
        return;
    }
    if (!may_acquire(s, c, &key, v))
        return;
    struct cell_name *n = name_use(s, c->name.data, c->name.len);
    a = new_acquisition(s, c, &key, n);
    if (!line_is_blocked(&a->pub)) {
        grant(s, a);
        say_granted(&a->pub, v);
        return;
    }
    if (!c->queue) {
        say_taken(s, &a->pub, false, v);
        forget_acquisition(s, a);
    } else if (n->n_waiting + n->passed_over.n >= CELL_WAITERS_MAX) {
        v->result = CELL_TOO_MANY_WAITERS;
        forget_acquisition(s, a);
    } else {
        line_add(a);
        s->n_waiting++;
        if (refuse_deadlock(s, c, a, v)) {
            forget_acquisition(s, a);
            return;
        }
        state_effect(s, CELL_EFFECT_QUEUED, &a->pub);
        line_want(s, &a->pub);
        say_taken(s, &a->pub, true, v);
    }
}

/* ---- what owners and the master do with an acquisition ---- */

static void release(struct cell_state *s, const struct cell_command *c, struct acquisition *a,
                    struct cell_verdict *v)
{
    if (a->pub.stage == CELL_WAITING) {
        end_place(s, a);
        state_effect(s, CELL_EFFECT_CANCELLED, &a->pub);
        finish(s, a, true);
    } else if (c->fence && c->fence != a->pub.fence) {
        v->result = CELL_STALE_FENCE;
    } else {
        end_grant(s, a, CELL_EFFECT_RELEASED);
        finish(s, a, true);
    }
}

static void cancel(struct cell_state *s, struct acquisition *a, struct cell_verdict *v)
{
    if (a->pub.stage != CELL_WAITING) {
        v->result = CELL_LOST;
        return;
    }
    end_place(s, a);
    state_effect(s, CELL_EFFECT_CANCELLED, &a->pub);
    finish(s, a, true);
}

static void withdraw(struct cell_state *s, const struct cell_command *c, struct acquisition *a,
                     struct cell_verdict *v)
{
    if (a->pub.stage != CELL_HELD) {
        v->result = CELL_LOST;
    } else if (c->fence && c->fence != a->pub.fence) {
        v->result = CELL_STALE_FENCE;
    } else {
        size_t at = s->effects.n;
        end_grant(s, a, CELL_EFFECT_RELEASED);
        s->effects.v[at].withdrawn = true;
        a->pub.stage = CELL_WAITING;
        a->pub.passed_over = true;
        a->pub.fence = 0;
        a->pub.slot = 0;
        line_add(a);
        s->n_waiting++;
    }
}

static void set_value(struct cell_state *s, const struct cell_command *c, struct acquisition *a,
                      struct cell_verdict *v)
{
    if (a->pub.stage != CELL_HELD) {
        v->result = CELL_LOST;
    } else if (c->fence != a->pub.fence) {
        v->result = CELL_STALE_FENCE;
    } else if (c->value.len > a->pub.name->value_len &&
               s->value_bytes + c->value.len > STATE_VALUES_MAX) {
        v->result = CELL_TOO_MANY_LOCKS;
    } else {
        name_set_value(s, a->pub.name, c->value, a->pub.fence);
        state_effect(s, CELL_EFFECT_VALUE, &a->pub);
    }
}

static void apply_to_owner(struct cell_state *s, const struct cell_command *c,
                           struct cell_verdict *v)
{
    struct session *session = session_of(s, c);
    if (!session) {
        v->result = CELL_NO_SESSION;
        return;
    }
    struct owner_key key = owner_key(session, c->name, &c->owner);
    struct acquisition *a = acquisition_find(s, &key);
    if (!a) {
        v->result = CELL_LOST;
        /* Its acquisition may still be on its way: nobody would receive the grant. */
        if (c->kind == CELL_RELEASE && !ended_find(s, &key))
            ended_add(s, &key);
        return;
    }
    v->mode = a->pub.mode;
    if (c->kind == CELL_RELEASE)
        release(s, c, a, v);
    else if (c->kind == CELL_CANCEL)
        cancel(s, a, v);
    else if (c->kind == CELL_WITHDRAW)
        withdraw(s, c, a, v);
    else
        set_value(s, c, a, v);
}

/* ---- what happens to names ---- */

static void apply_undelay(struct cell_state *s, const struct cell_command *c,
                          struct cell_verdict *v)
{
    const struct cell_name *n = name_find(s, c->name.data, c->name.len);
    struct cell_acquisition *a = n ? n->holders.first : NULL;
    while (a && (a->stage != CELL_DELAYED || a->fence != c->fence))
        a = a->next;
    if (a)
        undelay(s, private_of(a));
    else
        v->result = CELL_LOST;
}

/* An operator frees the name: also lock delays end. */
static void apply_break(struct cell_state *s, const struct cell_command *c, struct cell_verdict *v)
{
    struct cell_name *n = name_find(s, c->name.data, c->name.len);
    if (!n || !n->holders.n)
        v->result = CELL_LOST;
    while (n && n->holders.first) {
        struct acquisition *a = private_of(n->holders.first);
        if (a->pub.stage == CELL_DELAYED) {
            undelay(s, a);
            continue;
        }
        end_grant(s, a, CELL_EFFECT_LOST);
        finish(s, a, true);
    }
}

/* ---- masters ---- */

static int compare_ttls(const void *a, const void *b)
{
    int64_t x = ((const struct cell_ttl *)a)->session, y = ((const struct cell_ttl *)b)->session;
    return x < y ? -1 : x > y;
}

/* The TTLs have served whoever is master now. */
static void apply_master(struct cell_state *s, const struct cell_command *c)
{
    vec_clear(&s->ttls);
    s->epoch = c->epoch;
    s->fence = c->fence > s->fence ? c->fence : s->fence;
    if (c->url.len)
        memcpy(s->master, c->url.data, c->url.len);
    s->master[c->url.len] = '\0';
}

static void apply_resign(struct cell_state *s, const struct cell_command *c)
{
    s->master[0] = '\0';
    vec_clear(&s->ttls);
    for (size_t i = 0; i < c->n_ttls; i++)
        *vec_push(&s->ttls) = c->ttls[i];
    if (s->ttls.n > 1)
        qsort(s->ttls.v, s->ttls.n, sizeof *s->ttls.v, compare_ttls);
    size_t n = 0; /* of several for one session the shortest would do; a master writes one */
    for (size_t i = 0; i < s->ttls.n; i++)
        if (n == 0 || s->ttls.v[n - 1].session != s->ttls.v[i].session)
            s->ttls.v[n++] = s->ttls.v[i];
    s->ttls.n = n;
}

static void apply(struct cell_state *s, const struct cell_command *c, struct cell_verdict *v)
{
    switch (c->kind) {
    case CELL_MASTER:
        apply_master(s, c);
        break;
    case CELL_RESIGN:
        apply_resign(s, c);
        break;
    case CELL_OPEN:
        apply_open(s, c, v);
        break;
    case CELL_CLOSE:
    case CELL_EXPIRE:
        apply_close(s, c, v);
        break;
    case CELL_ACQUIRE:
        apply_acquire(s, c, v);
        break;
    case CELL_RELEASE:
    case CELL_CANCEL:
    case CELL_WITHDRAW:
    case CELL_VALUE:
        apply_to_owner(s, c, v);
        break;
    case CELL_UNDELAY:
        apply_undelay(s, c, v);
        break;
    case CELL_BREAK:
        apply_break(s, c, v);
        break;
    case CELL_FORGET:
        ended_forget(s);
        break;
    case CELL_NOTHING:
    case CELL_KINDS:
        hf_check(!"a command has a kind");
    }
}

void cell_state_apply(struct cell_state *s, const struct cell_command *c, struct cell_verdict *ret)
{
    struct cell_verdict unwanted = {0};
    struct cell_verdict *v = ret ? ret : &unwanted, kept = *v;
    *v = (struct cell_verdict){.result = CELL_DONE};
    v->people.v = kept.people.v;
    v->people.cap = kept.people.cap;
    s->wants_verdict = ret != NULL;
    apply(s, c, v);
    s->is_resigned = c->kind == CELL_RESIGN;
    if (s->touched.n) {
        grant_touched(s);
        names_settle(s);
    }
    cell_verdict_close(&unwanted);
}
