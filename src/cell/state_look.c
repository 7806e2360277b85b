/* What others may ask about the state.  Nothing here changes the state; ordered looks complete an
 * index, which is not part of it. */
#include "cell/state_internal.h"

/* ---- the cell ---- */

int64_t cell_state_epoch(const struct cell_state *s) { return s->epoch; }
bool cell_state_is_resigned(const struct cell_state *s) { return s->is_resigned; }
size_t cell_state_n_sessions(const struct cell_state *s) { return s->sessions.n; }
size_t cell_state_n_names(const struct cell_state *s) { return s->n_used_names; }
size_t cell_state_n_held(const struct cell_state *s) { return s->n_held; }
size_t cell_state_n_waiting(const struct cell_state *s) { return s->n_waiting; }

int64_t cell_state_remaining_ms(const struct cell_state *s, int64_t session)
{
    size_t low = 0, high = s->ttls.n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (s->ttls.v[middle].session < session)
            low = middle + 1;
        else
            high = middle;
    }
    bool found = low < s->ttls.n && s->ttls.v[low].session == session;
    return found ? s->ttls.v[low].remaining_ms : -1;
}

uint32_t cell_state_shortest_ttl_ms(const struct cell_state *s)
{
    const struct heap_node *first = heap_first(&s->sessions_by_ttl);
    return first ? (uint32_t)first->key : 0;
}

/* ---- sessions and acquisitions ---- */

struct cell_session *cell_session_find(const struct cell_state *s, int64_t key)
{
    struct session *session = session_find(s, key);
    return session ? &session->pub : NULL;
}

/* An index is completed when somebody looks; that does not change the state. */
static struct cell_order *looked_at(const struct cell_order *o) { return (struct cell_order *)o; }

struct cell_session *cell_session_next(const struct cell_state *s, int64_t after)
{
    struct order_key key = {.number = after};
    struct order_node *node = order_after(looked_at(&s->sessions_by_key), key, false);
    return node ? &heap_item(node, struct session, order)->pub : NULL;
}

struct cell_acquisition *cell_acquisition_find(const struct cell_state *s, int64_t session,
                                               const char *name, size_t name_len,
                                               const struct cell_owner *owner)
{
    struct session *found = session_find(s, session);
    if (!found)
        return NULL;
    struct owner_key key = owner_key(found, (struct cell_text){name, name_len}, owner);
    struct acquisition *a = acquisition_find(s, &key);
    return a ? &a->pub : NULL;
}

/* Searched from the ends of the lines, since those who ask are mostly new. */
uint32_t cell_acquisition_position(const struct cell_acquisition *a)
{
    size_t before = 0;
    for (int i = 0; i < CELL_MODES; i++) {
        const struct line *line = &a->name->lines[i];
        const struct cell_acquisition *w = line->last;
        before += line->n;
        for (; w && !line_goes_before(w, a); w = w->prev)
            before--;
    }
    return (uint32_t)before + 1;
}

const char *cell_acquisition_label(const struct cell_acquisition *a)
{
    return a->label[0] || !a->session ? a->label : a->session->label;
}

static bool append(void *context, struct cell_acquisition *blocker)
{
    cell_acquisitions *list = context;
    *vec_push(list) = blocker;
    return false;
}

void cell_acquisition_blockers(const struct cell_state *s, const struct cell_acquisition *a,
                               cell_acquisitions *ret)
{
    (void)s;
    if (a->stage == CELL_WAITING && !a->passed_over)
        line_each_blocker(a, true, append, ret);
}

bool cell_acquisition_is_wanted(const struct cell_state *s, const struct cell_acquisition *a)
{
    (void)s;
    return a->stage == CELL_HELD && a->cached && line_is_wanted(a);
}

/* ---- names ---- */

struct cell_name *cell_name_find(const struct cell_state *s, const char *name, size_t len)
{
    return name_find(s, name, len);
}

struct cell_name *cell_name_next(const struct cell_state *s, const char *after, size_t after_len,
                                 const char *prefix, size_t prefix_len)
{
    struct order_key key = {.text = {.data = after, .len = after_len}};
    size_t common = after_len < prefix_len ? after_len : prefix_len;
    int order = common ? memcmp(after, prefix, common) : 0;
    bool inclusive = order < 0 || (order == 0 && after_len < prefix_len);
    if (inclusive)
        key.text = (struct cell_text){.data = prefix, .len = prefix_len};
    for (;;) {
        struct order_node *node = order_after(looked_at(&s->names_by_text), key, inclusive);
        struct cell_name *n = node ? heap_item(node, struct cell_name, order) : NULL;
        if (!n || n->len < prefix_len || (prefix_len && memcmp(n->text, prefix, prefix_len) != 0))
            return NULL;
        if (n->n_acquisitions)
            return n;
        key.text = (struct cell_text){.data = n->text, .len = n->len};
        inclusive = false;
    }
}

void cell_verdict_add_person(struct cell_verdict *v, const struct cell_acquisition *a)
{
    if (v->people.n == CELL_PEOPLE_MAX)
        return;
    struct cell_person *person = vec_push(&v->people);
    memcpy(person->name, a->name->text, a->name->len);
    const char *label = cell_acquisition_label(a);
    memcpy(person->label, label, strlen(label));
}

const char *cell_name_text(const struct cell_name *n, size_t *ret_len)
{
    *ret_len = n->len;
    return n->text;
}

const char *cell_name_value(const struct cell_name *n, size_t *ret_len)
{
    *ret_len = n->value_len;
    return n->value;
}

int64_t cell_name_last_fence(const struct cell_name *n) { return n->last_fence; }

struct cell_acquisition *cell_name_holders(const struct cell_name *n) { return n->holders.first; }

void cell_name_waiters(const struct cell_name *n, cell_acquisitions *ret)
{
    struct cell_acquisition *next[CELL_MODES];
    for (int i = 0; i < CELL_MODES; i++)
        next[i] = n->lines[i].first;
    for (;;) {
        int first = -1;
        for (int i = 0; i < CELL_MODES; i++)
            if (next[i] && (first < 0 || line_goes_before(next[i], next[first])))
                first = i;
        if (first < 0)
            break;
        *vec_push(ret) = next[first];
        next[first] = next[first]->next;
    }
    for (struct cell_acquisition *a = n->passed_over.first; a; a = a->next)
        *vec_push(ret) = a;
}

size_t cell_name_n_waiters(const struct cell_name *n) { return n->n_waiting + n->passed_over.n; }
