/* The state as bytes, and back.  Equal states have equal bytes: everything is written in an order
 * that the state defines (sessions by key, names by text, holders by fence, waiters by arrival,
 * free names and ended owners by age), and numbers have one form (pack.h).
 *
 *   head       magic and version; epoch, fence, arrival, resigned, master, remaining TTLs
 *   sessions   key, secret, TTL, account, label
 *   names      text, last fence, value and its fence, holders, waiters
 *   free names text, last fence
 *   ended      session, old or not, owner, name
 *
 * Names that only have something below them, and counts, follow from the rest.  The reader accepts
 * any bytes: it checks every field, builds the state, and checks the invariants of the whole. */
#include "base/digest.h"
#include "cell/entry.h"
#include "cell/pack.h"
#include "cell/state_internal.h"

#define MAGIC "HFCELL"
#define SNAPSHOT_VERSION 1

enum { IS_CACHED = 1, IS_DELAYED = 2, IS_PASSED_OVER = 4, HAS_VALUE = 8, HAS_LABEL = 16 };

/* ---- writing ---- */

struct snapshot_writer {
    struct buf *out;
    size_t n;
};

static void save_session(void *context, struct order_node *node)
{
    const struct session *session = heap_item(node, struct session, order);
    struct buf *out = context;
    pack_uint(out, (uint64_t)session->pub.id.key);
    buf_put(out, session->pub.id.secret, ID_SECRET_SIZE);
    pack_uint(out, session->pub.ttl_ms);
    pack_int(out, session->pub.account);
    pack_text(out, session->label, strlen(session->label));
}

static void save_acquisition(struct buf *out, const struct acquisition *a)
{
    const struct cell_acquisition *pub = &a->pub;
    unsigned flags = (pub->cached ? IS_CACHED : 0U) |
                     (pub->stage == CELL_DELAYED ? IS_DELAYED : 0U) |
                     (pub->passed_over ? IS_PASSED_OVER : 0U) | (a->value ? HAS_VALUE : 0U) |
                     (pub->label[0] ? HAS_LABEL : 0U);
    buf_char(out, (char)flags);
    buf_char(out, (char)pub->mode);
    pack_owner(out, &pub->owner);
    if (pub->session) {
        pack_uint(out, (uint64_t)pub->session->id.key);
        pack_text(out, pub->agent, strlen(pub->agent));
    }
    pack_uint(out, pub->slots);
    pack_uint(out, pub->delay_ms);
    pack_int(out, pub->priority);
    pack_uint(out, pub->overtaken);
    pack_uint(out, (uint64_t)pub->arrival);
    if (pub->stage != CELL_WAITING) {
        pack_uint(out, (uint64_t)pub->fence);
        pack_uint(out, pub->slot);
    }
    if (a->value)
        pack_text(out, a->value, a->value_len);
    if (pub->label[0])
        pack_text(out, pub->label, strlen(pub->label));
}

/* Those in the line and those passed over, by arrival. */
static void save_waiters(struct buf *out, const struct cell_name *n)
{
    const struct acquisition *a = n->arrival_first;
    const struct cell_acquisition *p = n->passed_over.first;
    pack_uint(out, n->n_waiting + n->passed_over.n);
    while (a || p) {
        if (a && (!p || a->pub.arrival < p->arrival)) {
            save_acquisition(out, a);
            a = a->arrival_next;
        } else {
            save_acquisition(out, private_of(p));
            p = p->next;
        }
    }
}

static bool is_worth_saving(const struct cell_name *n)
{
    return n->is_live && (n->n_acquisitions || n->last_fence);
}

static void count_name(void *context, struct order_node *node)
{
    struct snapshot_writer *w = context;
    w->n += is_worth_saving(heap_item(node, struct cell_name, order));
}

static void save_name(void *context, struct order_node *node)
{
    struct snapshot_writer *w = context;
    struct buf *out = w->out;
    const struct cell_name *n = heap_item(node, struct cell_name, order);
    if (!is_worth_saving(n))
        return;
    pack_text(out, n->text, n->len);
    pack_uint(out, (uint64_t)n->last_fence);
    pack_uint(out, (uint64_t)n->value_fence);
    if (n->value_fence)
        pack_text(out, n->value, n->value_len);
    pack_uint(out, n->holders.n);
    for (const struct cell_acquisition *a = n->holders.first; a; a = a->next)
        save_acquisition(out, private_of(a));
    save_waiters(out, n);
}

static void save_head(const struct cell_state *s, struct buf *out)
{
    buf_lit(out, MAGIC);
    buf_char(out, SNAPSHOT_VERSION);
    pack_uint(out, (uint64_t)s->epoch);
    pack_uint(out, (uint64_t)s->fence);
    pack_uint(out, (uint64_t)s->arrival);
    buf_char(out, s->is_resigned);
    pack_text(out, s->master, strlen(s->master));
    pack_uint(out, s->ttls.n);
    for (size_t i = 0; i < s->ttls.n; i++) {
        pack_uint(out, (uint64_t)s->ttls.v[i].session);
        pack_uint(out, (uint64_t)s->ttls.v[i].remaining_ms);
    }
}

void cell_state_save(const struct cell_state *s, struct buf *out)
{
    struct cell_order *names = (struct cell_order *)&s->names_by_text;
    struct cell_order *sessions = (struct cell_order *)&s->sessions_by_key;
    struct snapshot_writer w = {.out = out};
    save_head(s, out);
    pack_uint(out, s->sessions.n);
    order_each(sessions, save_session, out);
    order_each(names, count_name, &w);
    pack_uint(out, w.n);
    order_each(names, save_name, &w);
    pack_uint(out, s->n_free);
    for (const struct cell_name *n = s->free_first; n; n = n->free_next) {
        pack_text(out, n->text, n->len);
        pack_uint(out, (uint64_t)n->last_fence);
    }
    pack_uint(out, s->ended.n);
    for (const struct ended *e = s->ended_first; e; e = e->next) {
        pack_uint(out, (uint64_t)e->session->pub.id.key);
        buf_char(out, e->is_old);
        pack_owner(out, &e->owner);
        pack_text(out, e->name, e->name_len);
    }
}

void cell_state_digest(const struct cell_state *s, uint8_t ret[CELL_DIGEST_SIZE])
{
    struct buf bytes = {0};
    cell_state_save(s, &bytes);
    struct iovec part = digest_part(bytes.data, bytes.len);
    digest(&part, 1, ret);
    buf_close(&bytes);
}

/* ---- reading ---- */

struct snapshot_reader {
    struct unpack u;
    struct cell_state *s;
    VEC(struct acquisition *) all; /* acquisitions, to be ordered by arrival */
};

static bool fail(struct snapshot_reader *r, const char *what)
{
    unpack_fail(&r->u, what);
    return false;
}

static bool read_flag(struct snapshot_reader *r)
{
    uint8_t byte = unpack_byte(&r->u);
    if (byte > 1)
        fail(r, "a flag is neither 0 nor 1");
    return byte == 1;
}

static bool has_nul(struct cell_text text) { return text.len && memchr(text.data, 0, text.len); }

static void read_head(struct snapshot_reader *r)
{
    struct cell_state *s = r->s;
    const char *magic = unpack_bytes(&r->u, sizeof MAGIC - 1);
    if (!magic || memcmp(magic, MAGIC, sizeof MAGIC - 1) != 0 ||
        unpack_byte(&r->u) != SNAPSHOT_VERSION) {
        fail(r, "it is no snapshot of this version");
        return;
    }
    s->epoch = (int64_t)unpack_uint(&r->u, INT64_MAX);
    s->fence = (int64_t)unpack_uint(&r->u, 2 * CELL_FENCE_MAX);
    s->arrival = (int64_t)unpack_uint(&r->u, INT64_MAX / 2);
    s->is_resigned = read_flag(r);
    struct cell_text url = unpack_text(&r->u, CELL_URL_MAX);
    if (has_nul(url) || (s->is_resigned && url.len))
        fail(r, "the master's URL is wrong");
    else if (url.len)
        memcpy(s->master, url.data, url.len);
    int64_t last = 0;
    for (uint64_t n = unpack_uint(&r->u, CELL_TTLS_MAX); n > 0 && !r->u.bad; n--) {
        struct cell_ttl *ttl = vec_push(&s->ttls);
        ttl->session = (int64_t)unpack_uint(&r->u, INT64_MAX);
        ttl->remaining_ms = (int64_t)unpack_uint(&r->u, CELL_TTL_MAX_MS);
        if (ttl->session <= last)
            fail(r, "the remaining TTLs are out of order");
        last = ttl->session;
    }
}

static void read_sessions(struct snapshot_reader *r)
{
    int64_t last = 0;
    for (uint64_t n = unpack_uint(&r->u, CELL_SESSIONS_MAX); n > 0 && !r->u.bad; n--) {
        struct id id = {.key = (int64_t)unpack_uint(&r->u, INT64_MAX)};
        const void *secret = unpack_bytes(&r->u, sizeof id.secret);
        uint32_t ttl_ms = (uint32_t)unpack_uint(&r->u, CELL_TTL_MAX_MS);
        int64_t account = unpack_int(&r->u, INT64_MIN, INT64_MAX);
        struct cell_text label = unpack_text(&r->u, CELL_LABEL_MAX);
        if (id.key <= last || ttl_ms == 0 || has_nul(label))
            fail(r, "a session is wrong or out of order");
        if (r->u.bad)
            return;
        memcpy(id.secret, secret, sizeof id.secret);
        session_add(r->s, &id, ttl_ms, account, label);
        last = id.key;
    }
}

/* What an acquisition's bytes say, before it is known whether they are right. */
struct snapshot_fields {
    unsigned flags;
    struct cell_command c; /* as of the CELL_ACQUIRE that made it */
    uint32_t overtaken, slot;
    int64_t arrival, fence;
};

static bool read_fields(struct snapshot_reader *r, struct cell_name *n, bool is_holder,
                        struct snapshot_fields *f)
{
    struct cell_command *c = &f->c;
    *f = (struct snapshot_fields){.flags = unpack_byte(&r->u)};
    c->kind = CELL_ACQUIRE;
    c->name = (struct cell_text){.data = n->text, .len = n->len};
    c->mode = (enum cell_mode)unpack_byte(&r->u);
    c->owner = unpack_owner(&r->u);
    c->session.key = 1; /* of a delayed one; cell_command_check wants a session */
    if (!(f->flags & IS_DELAYED)) {
        c->session.key = (int64_t)unpack_uint(&r->u, INT64_MAX);
        c->agent = unpack_text(&r->u, CELL_AGENT_MAX);
    }
    c->slots = (uint32_t)unpack_uint(&r->u, CELL_SLOTS_MAX);
    c->delay_ms = (uint32_t)unpack_uint(&r->u, CELL_DELAY_MAX_MS);
    c->priority = (int32_t)unpack_int(&r->u, -CELL_PRIORITY_MAX, CELL_PRIORITY_MAX);
    f->overtaken = (uint32_t)unpack_uint(&r->u, CELL_OVERTAKEN_MAX);
    f->arrival = (int64_t)unpack_uint(&r->u, (uint64_t)r->s->arrival);
    if (is_holder) {
        f->fence = (int64_t)unpack_uint(&r->u, (uint64_t)r->s->fence);
        f->slot = (uint32_t)unpack_uint(&r->u, CELL_SLOTS_MAX);
    }
    if (f->flags & HAS_VALUE) {
        c->value = unpack_text(&r->u, CELL_VALUE_MAX);
        c->value.data = c->value.data ? c->value.data : "";
    }
    if (f->flags & HAS_LABEL)
        c->label = unpack_text(&r->u, CELL_LABEL_MAX);
    return !r->u.bad;
}

static bool fields_fit(struct snapshot_reader *r, const struct cell_name *n, bool is_holder,
                       const struct snapshot_fields *f)
{
    const struct cell_command *c = &f->c;
    unsigned allowed =
        IS_CACHED | HAS_VALUE | HAS_LABEL | (is_holder ? IS_DELAYED : IS_PASSED_OVER);
    unsigned delayed = IS_DELAYED | HAS_LABEL;
    const char *wrong = cell_command_check(c);
    if (wrong)
        return fail(r, wrong);
    if (f->flags & ~allowed || (f->flags & IS_CACHED && c->mode != CELL_SHARED))
        return fail(r, "the flags of an acquisition are wrong");
    if (f->flags & HAS_LABEL && !c->label.len)
        return fail(r, "a label is empty");
    if (f->flags & IS_DELAYED && (f->flags & ~delayed || c->delay_ms == 0))
        return fail(r, "a delayed acquisition has something that it cannot have");
    if (c->slots == 0 || (c->mode == CELL_EXCLUSIVE && n->n_exclusive && n->slots != c->slots))
        return fail(r, "the slots of a name differ");
    if (f->arrival == 0)
        return fail(r, "an arrival is out of order");
    if (is_holder && f->slot >= (c->mode == CELL_EXCLUSIVE ? c->slots : 1))
        return fail(r, "a slot is out of range");
    return true;
}

static struct acquisition *add_acquisition(struct snapshot_reader *r, struct cell_name *n,
                                           const struct snapshot_fields *f)
{
    struct cell_state *s = r->s;
    struct acquisition *a;
    struct session *session = NULL;
    if (state_n_acquisitions(s) >= CELL_ACQUISITIONS_MAX) {
        fail(r, "there are too many acquisitions");
        return NULL;
    }
    if (f->flags & IS_DELAYED) {
        a = acquisition_add_delayed(s, n, &f->c.owner);
    } else {
        session = session_find(s, f->c.session.key);
        struct owner_key key = owner_key(session, f->c.name, &f->c.owner);
        if (!session || acquisition_find(s, &key)) {
            fail(r, "an acquisition has no session, or is there twice");
            return NULL;
        }
        a = acquisition_add(s, &key, n, f->c.agent);
    }
    a->pub.mode = f->c.mode;
    a->pub.slots = f->c.slots;
    a->pub.slot = f->slot;
    a->pub.priority = f->c.priority;
    a->pub.delay_ms = f->c.delay_ms;
    a->pub.overtaken = f->overtaken;
    a->pub.arrival = f->arrival;
    a->pub.fence = f->fence;
    a->pub.cached = f->flags & IS_CACHED;
    a->pub.passed_over = f->flags & IS_PASSED_OVER;
    acquisition_set_label(a, f->c.label);
    acquisition_set_value(s, a, f->c.value);
    if (a->pub.mode == CELL_EXCLUSIVE) {
        n->n_exclusive++;
        n->slots = a->pub.slots;
    }
    *vec_push(&r->all) = a;
    return a;
}

static void read_holders(struct snapshot_reader *r, struct cell_name *n, uint64_t count)
{
    struct cell_state *s = r->s;
    int64_t last = 0;
    for (struct snapshot_fields f; count > 0 && read_fields(r, n, true, &f); count--) {
        struct acquisition *a = fields_fit(r, n, true, &f) ? add_acquisition(r, n, &f) : NULL;
        if (!a)
            return;
        a->pub.stage = f.flags & IS_DELAYED ? CELL_DELAYED : CELL_HELD;
        bool has_slot =
            a->pub.mode != CELL_EXCLUSIVE || slots_take_this(&n->slots_held, a->pub.slot);
        holders_add(a);
        s->n_held += a->pub.stage == CELL_HELD;
        s->n_delayed += a->pub.stage == CELL_DELAYED;
        s->n_cached += a->pub.cached;
        if (!has_slot || a->pub.fence <= last || a->pub.fence > n->last_fence)
            fail(r, "a holder's fence or slot is wrong");
        last = a->pub.fence;
    }
}

static void read_waiters(struct snapshot_reader *r, struct cell_name *n, uint64_t count)
{
    int64_t last = 0;
    for (struct snapshot_fields f; count > 0 && read_fields(r, n, false, &f); count--) {
        struct acquisition *a = fields_fit(r, n, false, &f) ? add_acquisition(r, n, &f) : NULL;
        if (!a)
            return;
        line_add(a);
        r->s->n_waiting++;
        if (a->pub.arrival <= last)
            fail(r, "waiters are out of order");
        last = a->pub.arrival;
    }
}

/* A value belongs to one of the holders. */
static bool has_holder(const struct cell_name *n, int64_t fence)
{
    const struct cell_acquisition *a = n->holders.first;
    while (a && (a->fence != fence || a->stage != CELL_HELD))
        a = a->next;
    return a;
}

/* Returns the text of the next name, which is greater than `last`, and its last fence. */
static struct cell_text read_text(struct snapshot_reader *r, int64_t *ret_fence)
{
    struct cell_text text = unpack_text(&r->u, CELL_NAME_MAX);
    *ret_fence = (int64_t)unpack_uint(&r->u, (uint64_t)r->s->fence);
    if (!r->u.bad && cell_name_check(text.data, text.len))
        fail(r, "a name is malformed");
    return text;
}

static bool comes_after(struct cell_text a, struct cell_text b)
{
    size_t len = a.len < b.len ? a.len : b.len;
    int order = len ? memcmp(a.data, b.data, len) : 0;
    return order > 0 || (order == 0 && a.len > b.len);
}

static void read_name(struct snapshot_reader *r, struct cell_text *last)
{
    struct cell_state *s = r->s;
    int64_t fence;
    struct cell_text text = read_text(r, &fence), value = {0};
    int64_t value_fence = (int64_t)unpack_uint(&r->u, (uint64_t)fence);
    if (value_fence) {
        value = unpack_text(&r->u, CELL_VALUE_MAX);
        value.data = value.data ? value.data : "";
    }
    uint64_t n_holders = unpack_uint(&r->u, CELL_ACQUISITIONS_MAX);
    if (!r->u.bad && !comes_after(text, *last))
        fail(r, "names are out of order");
    if (r->u.bad)
        return;
    *last = text;
    /* A name that was not yet made as the ancestor of another: those come later. */
    struct cell_name *n = name_add(s, text.data, text.len);
    n->last_fence = fence;
    if (n_holders)
        name_use(s, text.data, text.len);
    read_holders(r, n, n_holders);
    uint64_t n_waiters = unpack_uint(&r->u, CELL_ACQUISITIONS_MAX);
    if (n_waiters)
        name_use(s, text.data, text.len);
    read_waiters(r, n, n_waiters);
    if (!n->n_acquisitions && !fence)
        fail(r, "there is a name of which nothing is known");
    if (value_fence && !has_holder(n, value_fence))
        fail(r, "a value belongs to nobody");
    if (value_fence && !r->u.bad)
        name_set_value(s, n, value, value_fence);
}

static void read_names(struct snapshot_reader *r)
{
    struct cell_text last = {0};
    for (uint64_t n = unpack_uint(&r->u, UINT64_MAX); n > 0 && !r->u.bad; n--)
        read_name(r, &last);
}

static void read_free_names(struct snapshot_reader *r)
{
    for (uint64_t n = unpack_uint(&r->u, CELL_FREE_NAMES_MAX); n > 0 && !r->u.bad; n--) {
        int64_t fence;
        struct cell_text text = read_text(r, &fence);
        if (!r->u.bad && (fence == 0 || name_find(r->s, text.data, text.len)))
            fail(r, "a free name is there twice, or was never held");
        if (r->u.bad)
            return;
        struct cell_name *name = name_add(r->s, text.data, text.len);
        name->last_fence = fence;
        name_make_free(r->s, name);
    }
}

static void read_ended(struct snapshot_reader *r)
{
    struct cell_state *s = r->s;
    for (uint64_t n = unpack_uint(&r->u, STATE_ENDED_MAX); n > 0 && !r->u.bad; n--) {
        struct session *session = session_find(s, (int64_t)unpack_uint(&r->u, INT64_MAX));
        bool is_old = read_flag(r);
        struct cell_command c = {.kind = CELL_RELEASE, .session.key = 1};
        c.owner = unpack_owner(&r->u);
        c.name = unpack_text(&r->u, CELL_NAME_MAX);
        if (r->u.bad)
            return;
        struct owner_key key = owner_key(session, c.name, &c.owner);
        if (!session || session->n_ended == CELL_ENDED_MAX || cell_command_check(&c) ||
            ended_find(s, &key) || acquisition_find(s, &key) ||
            (is_old && s->ended_last && !s->ended_last->is_old)) {
            fail(r, "an ended owner is wrong");
            return;
        }
        ended_add(s, &key)->is_old = is_old;
    }
}

static int compare_arrivals(const void *a, const void *b)
{
    int64_t x = (*(struct acquisition *const *)a)->pub.arrival;
    int64_t y = (*(struct acquisition *const *)b)->pub.arrival;
    return x < y ? -1 : x > y;
}

/* A session lists its acquisitions by arrival; they were read by name. */
static void order_acquisitions(struct snapshot_reader *r)
{
    if (r->all.n)
        qsort(r->all.v, r->all.n, sizeof *r->all.v, compare_arrivals);
    for (size_t i = 0; i < r->all.n; i++)
        if (r->all.v[i]->pub.session)
            r->all.v[i]->pub.session->first = r->all.v[i]->pub.session->last = NULL;
    for (size_t i = 0; i < r->all.n; i++) {
        struct cell_acquisition *a = &r->all.v[i]->pub;
        if (i > 0 && r->all.v[i - 1]->pub.arrival == a->arrival)
            fail(r, "two acquisitions arrived at once");
        if (!a->session)
            continue;
        a->session_next = NULL;
        a->session_prev = a->session->last;
        *(a->session->last ? &a->session->last->session_next : &a->session->first) = a;
        a->session->last = a;
    }
}

struct cell_state *cell_state_restore(const void *data, size_t len, struct hf_err *err)
{
    struct snapshot_reader r = {.u = {.at = data, .end = (const uint8_t *)data + len}};
    r.s = cell_state_new();
    read_head(&r);
    read_sessions(&r);
    read_names(&r);
    read_free_names(&r);
    read_ended(&r);
    order_acquisitions(&r);
    if (!r.u.bad && r.u.at != r.u.end)
        fail(&r, "something follows its end");
    const char *wrong = r.u.bad ? r.u.bad : state_defect(r.s);
    vec_close(&r.all);
    if (!wrong)
        return r.s;
    cell_state_free(r.s);
    hf_err_set(err, HF_INVALID_REQUEST, "the snapshot cannot be read: %s", wrong);
    return NULL;
}
