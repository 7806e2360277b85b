/* See seat_index.h.  Runs on the worker's thread; before an event is installed, on the thread that
 * loads it. */
#include "view/seat_index.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"

/* ---- the tree ---- */

static void add_run(struct index_node *n, uint32_t run)
{
    if (run > n->run) {
        n->run_next = n->run;
        n->run = run;
    } else if (run < n->run && run > n->run_next) {
        n->run_next = run;
    }
}

static struct index_node join(const struct index_node *a, const struct index_node *b)
{
    struct index_node n = *a;
    add_run(&n, b->run);
    add_run(&n, b->run_next);
    n.longest = a->longest > b->longest ? a->longest : b->longest;
    n.line_free = a->line_free > b->line_free ? a->line_free : b->line_free;
    n.free = a->free + b->free;
    return n;
}

/* True if and only if some line below the node has that room. */
static bool has_room(const struct index_node *n, enum index_room room, uint32_t q)
{
    switch (room) {
    case ROOM_NO_ORPHAN:
        return n->run == q || n->run_next == q || n->run >= (uint64_t)q + 2;
    case ROOM_TOGETHER:
        return n->longest >= q;
    case ROOM_APART:
        break;
    }
    return n->line_free >= q;
}

/* Brings the tree up to date after leaves [first, end) changed.  O(end - first + log lines). */
static void rejoin(struct index *x, uint32_t first, uint32_t end)
{
    uint32_t low = x->n_leaves + first, high = x->n_leaves + end - 1;
    while (low > 1) {
        low /= 2;
        high /= 2;
        for (uint32_t i = low; i <= high; i++)
            x->nodes[i] = join(&x->nodes[2 * i], &x->nodes[2 * i + 1]);
    }
}

uint32_t index_line_after(const struct index *x, uint32_t from, enum index_room room, uint32_t q)
{
    if (from >= x->n_leaves)
        return NO_LINE;
    uint32_t i = x->n_leaves + from;
    for (;;) {
        while (i > 1 && i % 2 == 0)
            i /= 2;
        if (has_room(&x->nodes[i], room, q))
            break;
        i++;
        if ((i & (i - 1)) == 0) /* beyond the last node of its level */
            return NO_LINE;
    }
    while (i < x->n_leaves)
        i = 2 * i + !has_room(&x->nodes[2 * i], room, q);
    return i - x->n_leaves;
}

uint32_t index_line_before(const struct index *x, uint32_t end, enum index_room room, uint32_t q)
{
    if (end == 0)
        return NO_LINE;
    uint32_t i = x->n_leaves + end;
    do {
        i--;
        while (i > 1 && i % 2 == 1)
            i /= 2;
        if (!has_room(&x->nodes[i], room, q))
            continue;
        while (i < x->n_leaves)
            i = 2 * i + has_room(&x->nodes[2 * i + 1], room, q);
        return i - x->n_leaves;
    } while ((i & (i - 1)) != 0); /* else it was the first node of its level */
    return NO_LINE;
}

static void count_in(const struct index_node *n, uint32_t *free, uint32_t *line_free)
{
    *free += n->free;
    if (n->line_free > *line_free)
        *line_free = n->line_free;
}

void index_count(const struct index *x, uint32_t first, uint32_t end, uint32_t *free,
                 uint32_t *line_free)
{
    uint32_t low = x->n_leaves + first, high = x->n_leaves + end;
    for (; low < high; low /= 2, high /= 2) {
        if (low % 2 == 1)
            count_in(&x->nodes[low++], free, line_free);
        if (high % 2 == 1)
            count_in(&x->nodes[--high], free, line_free);
    }
}

/* ---- bits ---- */

uint32_t bits_seek(const uint64_t *set, uint32_t at, uint32_t end, bool is_set)
{
    if (at >= end)
        return end;
    uint64_t flip = is_set ? 0 : UINT64_MAX;
    uint32_t word = at / WORD_BITS;
    uint64_t bits = (set[word] ^ flip) & UINT64_MAX << at % WORD_BITS;
    while (!bits) {
        if (++word * WORD_BITS >= end)
            return end;
        bits = set[word] ^ flip;
    }
    at = word * WORD_BITS + (uint32_t)__builtin_ctzll(bits);
    return at < end ? at : end;
}

/* The places among the 64 of `low` where `len` free seats in a row begin; `high` follows `low`.
 * len <= 64; O(log len). */
static uint64_t run_starts(uint64_t low, uint64_t high, uint32_t len)
{
    for (uint32_t had = 1, step; had < len; had += step) {
        step = had <= len - had ? had : len - had;
        low &= low >> step | high << (WORD_BITS - step);
        high &= high >> step;
    }
    return low;
}

uint32_t index_seek_run(const struct index *x, uint32_t at, uint32_t end, uint32_t len,
                        uint32_t *ret_stop)
{
    while (at < end) {
        uint32_t word = at / WORD_BITS;
        uint64_t starts = run_starts(x->free[word] & UINT64_MAX << at % WORD_BITS,
                                     x->free[word + 1], len < WORD_BITS ? len : WORD_BITS);
        if (!starts) {
            at = (word + 1) * WORD_BITS;
            continue;
        }
        at = word * WORD_BITS + (uint32_t)__builtin_ctzll(starts);
        if (at >= end)
            break;
        *ret_stop = bits_seek(x->free, at, end, false);
        if (*ret_stop - at >= len)
            return at;
        at = *ret_stop;
    }
    return end;
}

static uint32_t count_free(const struct index *x, uint32_t first, uint32_t end)
{
    uint32_t n = 0;
    for (uint32_t at = first, next; at < end; at = next) {
        next = (at / WORD_BITS + 1) * WORD_BITS;
        uint64_t bits = x->free[at / WORD_BITS] & UINT64_MAX << at % WORD_BITS;
        if (next > end) {
            next = end;
            bits &= UINT64_MAX >> (WORD_BITS - end % WORD_BITS);
        }
        n += (uint32_t)__builtin_popcountll(bits);
    }
    return n;
}

static bool counts(const struct index *x, uint32_t at, uint32_t stop)
{
    return !x->needs || bits_seek(x->needs->free, at, stop, true) < stop;
}

/* How many seats of the row are free beyond one end of the run, up to two: `at` is the first of
 * them, `step` leads away from the run. */
static uint32_t free_beyond(const struct index *x, const struct index_line *line, uint32_t at,
                            int step)
{
    uint32_t n = 0, end = line->row_first + line->n_slots;
    for (; n < 2 && at >= line->row_first && at < end && bits_has(x->rows->free, at); n++)
        at += (uint32_t)step;
    return n;
}

/* Adds the run [at, stop) of the line. */
static void add_run_of(struct index_node *n, const struct index *x, const struct index_line *line,
                       uint32_t at, uint32_t stop)
{
    uint32_t run = stop - at, row_at = line->row_first + (at - line->first);
    uint32_t left = line->is_part ? free_beyond(x, line, row_at - 1, -1) : 0;
    uint32_t right = line->is_part ? free_beyond(x, line, row_at + run, 1) : 0;
    n->longest = run > n->longest ? run : n->longest;
    if (left || right) {
        uint32_t singles = (left == 1 ? 1u : 0u) + (right == 1 ? 1u : 0u);
        run = run > singles ? run - singles : 0;
        add_run(n, run);
        run = run ? run - 1 : 0;
    }
    add_run(n, run);
}

static struct index_node look_at(const struct index *x, const struct index_line *line)
{
    struct index_node n = {0};
    uint32_t end = line->first + line->n_slots, stop = line->first, at;
    while ((at = index_seek_run(x, stop, end, n.run_next + 1, &stop)) < end)
        if (counts(x, at, stop))
            add_run_of(&n, x, line, at, stop);
    n.free = n.line_free = count_free(x, line->first, end);
    return n;
}

uint32_t lines_find(const struct lines *lines, uint32_t slot)
{
    uint32_t low = 0, high = lines->n;
    while (high - low > 1) {
        uint32_t mid = low + (high - low) / 2;
        if (lines->list[mid].first <= slot)
            low = mid;
        else
            high = mid;
    }
    return low;
}

/* ---- keeping it up to date ---- */

/* Looks again at each marked line, once, in stretches. */
void index_refresh(struct index *x)
{
    const struct lines *lines = x->lines;
    uint32_t limit = x->dirty_end, done = 0, clean;
    if (limit == 0)
        return;
    for (uint32_t word = x->dirty_first; word < limit;
         word = bits_seek(x->dirty, clean, limit, true)) {
        clean = bits_seek(x->dirty, word, limit, false);
        uint32_t last = clean * WORD_BITS - 1;
        if (last >= lines->n_slots)
            last = lines->n_slots - 1;
        uint32_t first = lines_find(lines, word * WORD_BITS), end = lines_find(lines, last) + 1;
        if (first < done)
            first = done;
        if (first >= end)
            continue;
        for (uint32_t l = first; l < end; l++)
            x->nodes[x->n_leaves + l] = look_at(x, &lines->list[l]);
        rejoin(x, first, end);
        done = end;
    }
    uint32_t mark = x->dirty_first / WORD_BITS;
    memset(x->dirty + mark, 0, ((limit - 1) / WORD_BITS - mark + 1) * sizeof *x->dirty);
    x->dirty_first = UINT32_MAX;
    x->dirty_end = 0;
}

void index_mark(struct index *x, uint32_t slot)
{
    uint32_t word = slot / WORD_BITS;
    x->dirty[word / WORD_BITS] |= UINT64_C(1) << word % WORD_BITS;
    if (word < x->dirty_first)
        x->dirty_first = word;
    if (word >= x->dirty_end)
        x->dirty_end = word + 1;
}

void index_set(struct index *x, uint32_t slot, bool is_free)
{
    uint64_t bit = UINT64_C(1) << slot % WORD_BITS;
    if (is_free == ((x->free[slot / WORD_BITS] & bit) != 0))
        return;
    x->free[slot / WORD_BITS] ^= bit;
    index_mark(x, slot);
}

void index_fill(struct index *x)
{
    uint32_t n_words = (x->lines->n_slots + WORD_BITS - 1) / WORD_BITS;
    memset(x->free, 0xff, ((size_t)n_words + 1) * sizeof *x->free);
    for (uint32_t word = 0; word < n_words; word++)
        index_mark(x, word * WORD_BITS);
}

struct index *index_new(const struct lines *lines)
{
    struct index *x = hf_alloc(sizeof *x);
    size_t n_words = lines->n_slots / WORD_BITS + 2; /* index_seek_run reads one beyond the last */
    x->lines = lines;
    x->free = hf_alloc(n_words * sizeof *x->free);
    x->dirty = hf_alloc((n_words / WORD_BITS + 1) * sizeof *x->dirty);
    x->dirty_first = UINT32_MAX;
    x->n_leaves = 1;
    while (x->n_leaves < lines->n)
        x->n_leaves *= 2;
    x->nodes = hf_alloc(2 * (size_t)x->n_leaves * sizeof *x->nodes);
    return x;
}

void index_free(struct index *x)
{
    if (!x)
        return;
    free(x->free);
    free(x->dirty);
    free(x->nodes);
    free(x);
}
