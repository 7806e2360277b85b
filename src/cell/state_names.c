/* The tree of names.  A name is live while somebody holds or awaits it, or something below it; a
 * live name has its ancestors above it.  A name that is not live any more is forgotten, unless it
 * was ever held: the newest CELL_FREE_NAMES_MAX of those are kept for their last fence. */
#include "base/hash.h"
#include "cell/state_internal.h"

struct cell_name *name_find(const struct cell_state *s, const char *text, size_t len)
{
    uint64_t hash = hash_keyed(text, len);
    for (struct table_node *node = table_chain(&s->names, hash); node; node = node->next) {
        struct cell_name *n = (struct cell_name *)node;
        if (node->hash == hash && n->len == len && memcmp(n->text, text, len) == 0)
            return n;
    }
    return NULL;
}

struct cell_name *name_add(struct cell_state *s, const char *text, size_t len)
{
    struct cell_name *n = hf_alloc(sizeof *n + len + 1);
    memcpy(n->text, text, len);
    n->len = (uint16_t)len;
    table_add(&s->names, &n->node, hash_keyed(text, len));
    order_add(&s->names_by_text, &n->order);
    return n;
}

static void unlink_free(struct cell_state *s, struct cell_name *n)
{
    *(n->free_prev ? &n->free_prev->free_next : &s->free_first) = n->free_next;
    *(n->free_next ? &n->free_next->free_prev : &s->free_last) = n->free_prev;
    n->free_prev = n->free_next = NULL;
    n->is_free = false;
    s->n_free--;
}

/* The length of the parent's text; 0: there is none. */
static size_t parent_len(const char *text, size_t len)
{
    const char *slash = memrchr(text, '/', len);
    return slash ? (size_t)(slash - text) : 0;
}

struct cell_name *name_use(struct cell_state *s, const char *text, size_t len)
{
    struct cell_name *n = name_find(s, text, len), *result, *below = NULL;
    result = n = n ? n : name_add(s, text, len);
    while (!n->is_live) {
        if (n->is_free)
            unlink_free(s, n);
        n->is_live = true;
        size_t up = parent_len(text, n->len);
        struct cell_name *parent = up ? name_find(s, text, up) : NULL;
        below = n;
        if (up == 0)
            break;
        n = parent ? parent : name_add(s, text, up);
        below->parent = n;
        below->sibling_next = n->children;
        if (n->children)
            n->children->sibling_prev = below;
        n->children = below;
    }
    return result;
}

void name_free(struct cell_name *n)
{
    free(n->slots_held.words);
    free(n->value);
    free(n);
}

static void name_remove(struct cell_state *s, struct cell_name *n)
{
    table_remove(&s->names, &n->node);
    order_remove(&s->names_by_text, &n->order);
    n->free_next = s->dead_names;
    s->dead_names = n;
}

void name_make_free(struct cell_state *s, struct cell_name *n)
{
    n->is_free = true;
    n->free_prev = s->free_last;
    *(s->free_last ? &s->free_last->free_next : &s->free_first) = n;
    s->free_last = n;
    if (++s->n_free <= CELL_FREE_NAMES_MAX)
        return;
    struct cell_name *oldest = s->free_first;
    unlink_free(s, oldest);
    name_remove(s, oldest);
}

void name_settle(struct cell_state *s, struct cell_name *n)
{
    while (n && n->is_live && n->n_acquisitions == 0 && !n->children) {
        struct cell_name *parent = n->parent;
        if (parent) {
            *(n->sibling_prev ? &n->sibling_prev->sibling_next : &parent->children) =
                n->sibling_next;
            if (n->sibling_next)
                n->sibling_next->sibling_prev = n->sibling_prev;
            n->sibling_prev = n->sibling_next = n->parent = NULL;
        }
        n->is_live = false;
        free(n->slots_held.words);
        n->slots_held = (struct slot_map){0};
        if (n->last_fence)
            name_make_free(s, n);
        else
            name_remove(s, n);
        n = parent;
    }
}

void names_settle(struct cell_state *s)
{
    for (size_t i = 0; i < s->touched.n; i++)
        name_settle(s, s->touched.v[i]);
    vec_clear(&s->touched);
}

void name_set_value(struct cell_state *s, struct cell_name *n, struct cell_text value,
                    int64_t fence)
{
    char *copy = value.data ? hf_strndup(value.data, value.len) : NULL;
    s->value_bytes += value.len;
    s->value_bytes -= n->value_len;
    free(n->value);
    n->value = copy;
    n->value_len = value.len;
    n->value_fence = copy ? fence : 0;
}

/* ---- counts ---- */

void name_count_holder(struct cell_name *n, enum cell_mode mode, int change)
{
    enum cell_intent intent = intent_of(mode);
    size_t more = (size_t)change;
    n->held[mode] += more;
    for (struct cell_name *up = n->parent; up; up = up->parent)
        up->below_held[intent] += more;
}

static size_t n_waiters_of_tree(const struct cell_name *n)
{
    return n->n_waiting + n->below_waiting[INTENT_EXCLUSIVE] + n->below_waiting[INTENT_SHARED];
}

static void link_waiting(struct cell_name *n)
{
    struct cell_name *parent = n->parent;
    n->waiting_prev = NULL;
    n->waiting_next = parent->waiting_children;
    if (n->waiting_next)
        n->waiting_next->waiting_prev = n;
    parent->waiting_children = n;
}

static void unlink_waiting(struct cell_name *n)
{
    *(n->waiting_prev ? &n->waiting_prev->waiting_next : &n->parent->waiting_children) =
        n->waiting_next;
    if (n->waiting_next)
        n->waiting_next->waiting_prev = n->waiting_prev;
    n->waiting_prev = n->waiting_next = NULL;
}

void name_count_waiter(struct cell_name *n, enum cell_mode mode, int change)
{
    enum cell_intent intent = intent_of(mode);
    n->n_waiting += (size_t)change;
    for (; n->parent; n = n->parent) {
        size_t left = n_waiters_of_tree(n);
        if (change > 0 && left == 1)
            link_waiting(n);
        else if (change < 0 && left == 0)
            unlink_waiting(n);
        n->parent->below_waiting[intent] += (size_t)change;
    }
}

/* ---- slots ---- */

bool slots_take_this(struct slot_map *m, uint32_t slot)
{
    size_t word = slot / 64;
    uint64_t bit = UINT64_C(1) << slot % 64;
    if (word >= m->n_words) {
        size_t n = m->n_words ? m->n_words : 1;
        while (n <= word)
            n *= 2;
        m->words = hf_realloc(m->words, n * sizeof *m->words);
        memset(m->words + m->n_words, 0, (n - m->n_words) * sizeof *m->words);
        m->n_words = n;
    }
    if (m->words[word] & bit)
        return false;
    m->words[word] |= bit;
    return true;
}

uint32_t slots_take(struct slot_map *m)
{
    while (m->first < m->n_words && m->words[m->first] == UINT64_MAX)
        m->first++;
    uint64_t word = m->first < m->n_words ? m->words[m->first] : 0;
    uint32_t slot = (uint32_t)(m->first * 64) + (uint32_t)__builtin_ctzll(~word);
    hf_check(slots_take_this(m, slot));
    return slot;
}

void slots_give(struct slot_map *m, uint32_t slot)
{
    size_t word = slot / 64;
    m->words[word] &= ~(UINT64_C(1) << slot % 64);
    m->first = word < m->first ? word : m->first;
}
