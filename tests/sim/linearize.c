/* See linearize.h.  The model of the state is a list of holders, ordered by owner, so that equal
 * situations have equal bytes.  Costs: without unknown outcomes about one visit per operation and
 * order of overlapping operations; each unknown outcome may double the situations. */
#include "sim/linearize.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

struct holder {
    uint64_t owner;
    const char *name;
    uint64_t mode;
    int64_t fence; /* 0: not known, since the answer was lost */
    int64_t floor; /* the largest fence known when it was granted: its own is larger */
};

struct lock {
    struct holder holders[LINEAR_HOLDERS_MAX];
    size_t n;
    int64_t fence; /* the largest that is known to be given */
};

#define WORDS (LINEAR_OPS_MAX / 64)

struct search {
    const struct linear_op *ops;
    size_t n, n_left;                 /* n_left: operations with answers that have no moment yet */
    size_t first;                     /* all before this one have a moment */
    int64_t now_us;                   /* the last invocation of an operation that has a moment */
    int64_t until_us[LINEAR_OPS_MAX]; /* when an unknown operation cannot happen any more */
    /* 1 + the unknown operation before it that does the same: which of them happens makes no
     * difference, so the first comes first.  0: none. */
    uint16_t twin[LINEAR_OPS_MAX];
    /* 1 + the answered release of the owner of an unknown operation; 0: none. */
    uint16_t ender[LINEAR_OPS_MAX];
    uint64_t done[WORDS];
    struct lock lock;
    /* Situations that led nowhere: two hashes each, in an open table of 2^n slots. */
    uint64_t (*seen)[2];
    size_t n_seen, cap;
    size_t visits, visits_max;
};

/* ---- the model ---- */

static bool modes_conflict(enum cell_mode a, enum cell_mode b)
{
    static const bool table[CELL_MODES][CELL_MODES] = {
        [CELL_EXCLUSIVE] = {true, true, true, true},
        [CELL_SHARED] = {true, false, true, false},
        [CELL_INTENTION_EXCLUSIVE] = {true, true, false, false},
        [CELL_INTENTION_SHARED] = {true, false, false, false},
    };
    return table[a][b];
}

static bool is_below(const char *name, const char *above)
{
    size_t len = strlen(above);
    return strncmp(name, above, len) == 0 && name[len] == '/';
}

/* What a request for a name means for the ancestors of the name. */
static enum cell_mode intention(enum cell_mode mode)
{
    bool reads = mode == CELL_SHARED || mode == CELL_INTENTION_SHARED;
    return reads ? CELL_INTENTION_SHARED : CELL_INTENTION_EXCLUSIVE;
}

bool linear_conflict(const char *name_a, enum cell_mode a, const char *name_b, enum cell_mode b)
{
    if (strcmp(name_a, name_b) == 0)
        return modes_conflict(a, b);
    if (is_below(name_a, name_b))
        return modes_conflict(intention(a), b);
    return is_below(name_b, name_a) && modes_conflict(a, intention(b));
}

static struct holder *find(struct lock *l, uint64_t owner)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->holders[i].owner == owner)
            return &l->holders[i];
    return NULL;
}

static void add(struct lock *l, const struct linear_op *op, int64_t fence)
{
    size_t at = l->n++;
    for (; at > 0 && l->holders[at - 1].owner > op->owner; at--)
        l->holders[at] = l->holders[at - 1];
    l->holders[at] = (struct holder){op->owner, op->name, op->mode, fence, l->fence};
}

static void drop(struct lock *l, struct holder *h)
{
    size_t after = l->n - (size_t)(h - l->holders) - 1;
    memmove(h, h + 1, after * sizeof *h);
    l->holders[--l->n] = (struct holder){0};
}

static bool is_blocked(const struct lock *l, const struct linear_op *op)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->holders[i].owner != op->owner &&
            linear_conflict(l->holders[i].name, (enum cell_mode)l->holders[i].mode, op->name,
                            op->mode))
            return true;
    return l->n == LINEAR_HOLDERS_MAX;
}

static bool acquire(struct lock *l, const struct linear_op *op)
{
    struct holder *h = find(l, op->owner);
    bool known = op->answered_us != LINEAR_NEVER;
    if (known && op->outcome == LINEAR_TAKEN)
        return !h && is_blocked(l, op);
    if (known && op->outcome == LINEAR_LOST)
        return !h;
    int64_t fence = known ? op->fence : 0;
    if (!h) {
        if (is_blocked(l, op) || (known && fence <= l->fence))
            return false;
        add(l, op, fence);
    } else if (known) {
        if (h->fence ? h->fence != fence : fence <= h->floor)
            return false;
        h->fence = fence;
    }
    if (fence > l->fence)
        l->fence = fence;
    return true;
}

static bool release(struct lock *l, const struct linear_op *op)
{
    struct holder *h = find(l, op->owner);
    bool known = op->answered_us != LINEAR_NEVER;
    if (known && op->outcome == LINEAR_LOST)
        return !h;
    if (!h)
        return false; /* one that is not known, and does nothing, need not have happened */
    drop(l, h);
    return true;
}

static bool get(const struct lock *l, const struct linear_op *op)
{
    size_t n = 0, unknown = 0, matched = 0;
    for (size_t i = 0; i < l->n; i++) {
        if (strcmp(l->holders[i].name, op->name) != 0)
            continue;
        n++;
        unknown += l->holders[i].fence == 0;
        for (size_t k = 0; k < op->n_fences; k++)
            matched += op->fences[k] == l->holders[i].fence;
    }
    return n == op->n_fences && matched + unknown == n;
}

static bool step(struct lock *l, const struct linear_op *op)
{
    switch (op->kind) {
    case LINEAR_ACQUIRE:
        return acquire(l, op);
    case LINEAR_RELEASE:
        return release(l, op);
    case LINEAR_GET:
        return get(l, op);
    }
    return false;
}

/* ---- the search ---- */

static bool is_done(const struct search *s, size_t i) { return s->done[i / 64] >> i % 64 & 1; }
static void flip(struct search *s, size_t i) { s->done[i / 64] ^= UINT64_C(1) << i % 64; }

static void seen_put(struct search *s, uint64_t a, uint64_t b)
{
    size_t at = a & (s->cap - 1);
    while (s->seen[at][0])
        at = (at + 1) & (s->cap - 1);
    s->seen[at][0] = a;
    s->seen[at][1] = b;
    s->n_seen++;
}

static void seen_grow(struct search *s)
{
    uint64_t(*old)[2] = s->seen;
    size_t old_cap = s->cap;
    s->cap = old_cap ? old_cap * 2 : 256;
    s->seen = hf_alloc(s->cap * sizeof *s->seen);
    s->n_seen = 0;
    for (size_t i = 0; i < old_cap; i++)
        if (old[i][0])
            seen_put(s, old[i][0], old[i][1]);
    free(old);
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

/* Whether an operation that cannot happen any more has happened makes no difference by itself. */
static uint64_t hash_situation(const struct search *s, uint64_t hash)
{
    uint64_t done[WORDS];
    memcpy(done, s->done, sizeof done);
    for (size_t i = s->first; i < s->n && s->ops[i].invoked_us <= s->now_us; i++)
        if (s->until_us[i] < s->now_us)
            done[i / 64] |= UINT64_C(1) << i % 64;
    for (size_t i = 0; i <= s->n / 64 && i < WORDS; i++)
        hash = mix(hash, done[i]);
    hash = mix(hash, (uint64_t)s->lock.fence);
    for (size_t i = 0; i < s->lock.n; i++) {
        const struct holder *h = &s->lock.holders[i];
        hash = mix(mix(mix(hash, h->owner), (uint64_t)h->fence), (uint64_t)h->floor);
    }
    return hash;
}

/* Returns false if the search was in this situation before.  Two hashes of 64 bits tell situations
 * apart; the owner of a holder tells its name and mode. */
static bool is_new(struct search *s)
{
    uint64_t a = hash_situation(s, HASH_START), b = hash_situation(s, 1);
    a |= 1; /* 0 marks a free slot */
    if (s->n_seen * 2 >= s->cap)
        seen_grow(s);
    for (size_t at = a & (s->cap - 1); s->seen[at][0]; at = (at + 1) & (s->cap - 1))
        if (s->seen[at][0] == a && s->seen[at][1] == b)
            return false;
    seen_put(s, a, b);
    return true;
}

/* The earliest answer among the operations that have no moment yet: whatever was invoked later
 * comes after that operation. */
static int64_t horizon(const struct search *s)
{
    int64_t us = LINEAR_NEVER;
    for (size_t i = s->first; i < s->n && s->ops[i].invoked_us <= us; i++)
        if (!is_done(s, i) && s->ops[i].answered_us < us)
            us = s->ops[i].answered_us;
    return us;
}

static bool explore(struct search *s);

static bool try_op(struct search *s, size_t i)
{
    const struct lock before = s->lock;
    const size_t first = s->first;
    const int64_t now_us = s->now_us;
    bool answered = s->ops[i].answered_us != LINEAR_NEVER;
    if (!step(&s->lock, &s->ops[i]))
        return false;
    flip(s, i);
    s->n_left -= answered;
    while (s->first < s->n && is_done(s, s->first))
        s->first++;
    if (s->ops[i].invoked_us > s->now_us)
        s->now_us = s->ops[i].invoked_us;
    if (explore(s))
        return true;
    s->n_left += answered;
    flip(s, i);
    s->first = first;
    s->now_us = now_us;
    s->lock = before;
    return false;
}

/* An unknown operation that cannot happen any more, or whose twin comes first. */
static bool is_impossible(const struct search *s, size_t i)
{
    return s->until_us[i] < s->now_us || (s->twin[i] && !is_done(s, s->twin[i] - 1U)) ||
           (s->ender[i] && is_done(s, s->ender[i] - 1U));
}

/* Operations with answers are tried first: most histories need few of the unknown ones. */
static bool explore(struct search *s)
{
    if (s->n_left == 0)
        return true;
    if (++s->visits > s->visits_max || !is_new(s))
        return false;
    int64_t until = horizon(s);
    for (int unknown = 0; unknown < 2; unknown++)
        for (size_t i = s->first; i < s->n && s->ops[i].invoked_us <= until; i++)
            if (!is_done(s, i) && (s->ops[i].answered_us == LINEAR_NEVER) == unknown &&
                !is_impossible(s, i) && try_op(s, i))
                return true;
    return false;
}

/* Unknown operations of an owner end when a release of the owner is answered.  A look that nobody
 * saw needs no moment. */
static void find_unknown(struct search *s)
{
    for (size_t i = 0; i < s->n; i++) {
        bool is_nothing = s->ops[i].kind == LINEAR_GET && s->ops[i].answered_us == LINEAR_NEVER;
        s->until_us[i] = is_nothing ? INT64_MIN : LINEAR_NEVER;
        for (size_t k = 0; k < s->n && s->ops[i].answered_us == LINEAR_NEVER; k++) {
            if (k < i && s->ops[k].answered_us == LINEAR_NEVER &&
                s->ops[k].kind == s->ops[i].kind && s->ops[k].owner == s->ops[i].owner)
                s->twin[i] = (uint16_t)(k + 1);
            if (s->ops[k].kind == LINEAR_RELEASE && s->ops[k].owner == s->ops[i].owner &&
                s->ops[k].answered_us < s->until_us[i])
                s->until_us[i] = s->ops[k].answered_us, s->ender[i] = (uint16_t)(k + 1);
        }
    }
}

static int by_invocation(const void *a, const void *b)
{
    const struct linear_op *x = a, *y = b;
    if (x->invoked_us != y->invoked_us)
        return x->invoked_us < y->invoked_us ? -1 : 1;
    return (x->answered_us > y->answered_us) - (x->answered_us < y->answered_us);
}

enum linear_result linear_check(linear_history *history, size_t visits_max)
{
    struct search s = {.n = history->n, .visits_max = visits_max};
    if (history->n > LINEAR_OPS_MAX)
        return LINEAR_TOO_LONG;
    if (history->n == 0)
        return LINEAR_YES;
    qsort(history->v, history->n, sizeof *history->v, by_invocation);
    s.ops = history->v;
    for (size_t i = 0; i < s.n; i++)
        s.n_left += s.ops[i].answered_us != LINEAR_NEVER;
    find_unknown(&s);
    bool found = explore(&s);
    free(s.seen);
    if (found)
        return LINEAR_YES;
    return s.visits > visits_max ? LINEAR_TOO_LONG : LINEAR_NO;
}

/* ---- for people ---- */

void linear_print(const linear_history *history, struct buf *out)
{
    static const char *const kinds[] = {"acquire", "release", "get"};
    static const char *const outcomes[] = {"granted", "taken", "done", "lost", "seen"};
    for (size_t i = 0; i < history->n; i++) {
        const struct linear_op *op = &history->v[i];
        char line[256];
        bool known = op->answered_us != LINEAR_NEVER;
        snprintf(line, sizeof line, "  %10" PRId64 " .. %10" PRId64 "  %-7s %-8s %-19s %016" PRIx64,
                 op->invoked_us, known ? op->answered_us : -1, kinds[op->kind], op->name,
                 op->kind == LINEAR_ACQUIRE ? cell_mode_names[op->mode] : "", op->owner);
        buf_str(out, line);
        snprintf(line, sizeof line, " %s %" PRId64, known ? outcomes[op->outcome] : "unknown",
                 op->fence);
        buf_str(out, line);
        for (size_t k = 0; k < op->n_fences; k++) {
            buf_char(out, ' ');
            buf_int(out, op->fences[k]);
        }
        buf_char(out, '\n');
    }
}
