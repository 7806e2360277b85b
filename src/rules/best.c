/* Best available; see best.h for what is chosen.  Runs on the worker's thread, in decide; before an
 * event is installed, on the thread that loads it.
 *
 * Three layers, each a summary of the one below:
 *   e->seats[].status   the truth
 *   b->free             one bit per seat, kept by best_changed: a row of 1000 seats is 16 words
 *   b->nodes            a tree over the rows; node 1 is the root, row r is leaf b->n_leaves + r
 * A changed bit marks its word in b->dirty; best_find brings the tree up to date first.
 *
 * A node knows the two longest lengths of free runs below it.  That is enough to answer exactly,
 * for any quantity q, whether some row has room for q together without an orphan, which is: has a
 * run of q, or of q + 2 or more.  For if the longest is q + 1, a run of q can only be the second.
 */
#include "rules/best.h"

#include <stdlib.h>
#include <string.h>

#define WORD_BITS 64u
#define NO_ROW UINT32_MAX

/* What a node of the tree knows of all rows below it; a leaf stands for one row. */
struct node {
    uint32_t run, run_next; /* the longest free run, and the longest of any other length; 0: none */
    uint32_t row_free;      /* free seats of the row that has the most */
    uint32_t free;          /* free seats */
};

struct range {
    uint32_t first, end; /* rows */
};

struct best {
    uint64_t *free;                  /* one bit per seat */
    uint64_t *dirty;                 /* one bit per word of `free` */
    uint32_t dirty_first, dirty_end; /* the range that has marks; dirty_end 0: no marks */
    struct node *nodes;
    uint32_t n_leaves;       /* a power of two */
    uint32_t *section_first; /* the first row of each section, and the end of the last section */
    struct range *allowed; /* of the best_find under way: ascending, apart; room for all sections */
    uint32_t n_allowed;
};

/* What to look for in a row. */
enum room { ROOM_NO_ORPHAN, ROOM_TOGETHER, ROOM_APART };

/* ---- the tree ---- */

static void add_run(struct node *n, uint32_t run)
{
    if (run > n->run) {
        n->run_next = n->run;
        n->run = run;
    } else if (run < n->run && run > n->run_next) {
        n->run_next = run;
    }
}

static struct node join(const struct node *a, const struct node *b)
{
    struct node n = *a;
    add_run(&n, b->run);
    add_run(&n, b->run_next);
    n.row_free = a->row_free > b->row_free ? a->row_free : b->row_free;
    n.free = a->free + b->free;
    return n;
}

/* True if and only if some row below the node has that room. */
static bool has_room(const struct node *n, enum room room, uint32_t q)
{
    switch (room) {
    case ROOM_NO_ORPHAN:
        return n->run == q || n->run_next == q || n->run >= (uint64_t)q + 2;
    case ROOM_TOGETHER:
        return n->run >= q;
    case ROOM_APART:
        break;
    }
    return n->row_free >= q;
}

/* Brings the tree up to date after leaves [first, end) changed.  O(end - first + log rows). */
static void rejoin(struct best *b, uint32_t first, uint32_t end)
{
    uint32_t low = b->n_leaves + first, high = b->n_leaves + end - 1;
    while (low > 1) {
        low /= 2;
        high /= 2;
        for (uint32_t i = low; i <= high; i++)
            b->nodes[i] = join(&b->nodes[2 * i], &b->nodes[2 * i + 1]);
    }
}

/* The first row at or after `from` with room, or NO_ROW.  O(log rows). */
static uint32_t row_after(const struct best *b, uint32_t from, enum room room, uint32_t q)
{
    if (from >= b->n_leaves)
        return NO_ROW;
    uint32_t i = b->n_leaves + from;
    for (;;) {
        while (i > 1 && i % 2 == 0)
            i /= 2;
        if (has_room(&b->nodes[i], room, q))
            break;
        i++;
        if ((i & (i - 1)) == 0) /* beyond the last node of its level */
            return NO_ROW;
    }
    while (i < b->n_leaves)
        i = 2 * i + !has_room(&b->nodes[2 * i], room, q);
    return i - b->n_leaves;
}

/* The last row before `end` with room, or NO_ROW.  O(log rows). */
static uint32_t row_before(const struct best *b, uint32_t end, enum room room, uint32_t q)
{
    if (end == 0)
        return NO_ROW;
    uint32_t i = b->n_leaves + end;
    do {
        i--;
        while (i > 1 && i % 2 == 1)
            i /= 2;
        if (!has_room(&b->nodes[i], room, q))
            continue;
        while (i < b->n_leaves)
            i = 2 * i + has_room(&b->nodes[2 * i + 1], room, q);
        return i - b->n_leaves;
    } while ((i & (i - 1)) != 0); /* else it was the first node of its level */
    return NO_ROW;
}

static void count_in(const struct node *n, uint32_t *free, uint32_t *row_free)
{
    *free += n->free;
    if (n->row_free > *row_free)
        *row_free = n->row_free;
}

/* Adds the free seats of a range of rows, and raises row_free to what the emptiest row has.
 * O(log rows). */
static void count_rows(const struct best *b, const struct range *rows, uint32_t *free,
                       uint32_t *row_free)
{
    uint32_t low = b->n_leaves + rows->first, high = b->n_leaves + rows->end;
    for (; low < high; low /= 2, high /= 2) {
        if (low % 2 == 1)
            count_in(&b->nodes[low++], free, row_free);
        if (high % 2 == 1)
            count_in(&b->nodes[--high], free, row_free);
    }
}

/* ---- bits ---- */

/* The first bit in [at, end) that is set (or not), or `end`. */
static uint32_t seek(const uint64_t *set, uint32_t at, uint32_t end, bool is_set)
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

/* The first whole run of `len` or more free seats in [at, end); `end` when there is none.  `at` is
 * not within a run.  Passes over shorter runs a word at a time. */
static uint32_t seek_run(const struct best *b, uint32_t at, uint32_t end, uint32_t len,
                         uint32_t *ret_stop)
{
    while (at < end) {
        uint32_t word = at / WORD_BITS;
        uint64_t starts = run_starts(b->free[word] & UINT64_MAX << at % WORD_BITS,
                                     b->free[word + 1], len < WORD_BITS ? len : WORD_BITS);
        if (!starts) {
            at = (word + 1) * WORD_BITS;
            continue;
        }
        at = word * WORD_BITS + (uint32_t)__builtin_ctzll(starts);
        if (at >= end)
            break;
        *ret_stop = seek(b->free, at, end, false);
        if (*ret_stop - at >= len)
            return at;
        at = *ret_stop;
    }
    return end;
}

static uint32_t count_free(const struct best *b, const struct row *row)
{
    uint32_t n = 0, end = row->first + row->n_seats;
    for (uint32_t at = row->first, next; at < end; at = next) {
        next = (at / WORD_BITS + 1) * WORD_BITS;
        uint64_t bits = b->free[at / WORD_BITS] & UINT64_MAX << at % WORD_BITS;
        if (next > end) {
            next = end;
            bits &= UINT64_MAX >> (WORD_BITS - end % WORD_BITS);
        }
        n += (uint32_t)__builtin_popcountll(bits);
    }
    return n;
}

static struct node look_at(const struct best *b, const struct row *row)
{
    struct node n = {0};
    uint32_t end = row->first + row->n_seats, stop = row->first, at;
    while ((at = seek_run(b, stop, end, n.run_next + 1, &stop)) < end)
        add_run(&n, stop - at);
    n.free = n.row_free = count_free(b, row);
    return n;
}

static uint32_t row_of(const struct event *e, uint32_t seat)
{
    return (uint32_t)(event_row_of(e, seat) - e->rows);
}

/* Looks again at each marked row, once, in stretches: a few marks cost O(log rows) each, a mark
 * everywhere (an event just loaded) O(seats / 64 + rows) in all. */
static void refresh(const struct event *e, struct best *b)
{
    uint32_t limit = b->dirty_end, done = 0, clean;
    if (limit == 0)
        return;
    for (uint32_t word = b->dirty_first; word < limit; word = seek(b->dirty, clean, limit, true)) {
        clean = seek(b->dirty, word, limit, false);
        uint32_t last = clean * WORD_BITS - 1;
        if (last >= e->def->n_seats)
            last = e->def->n_seats - 1;
        uint32_t first = row_of(e, word * WORD_BITS), end = row_of(e, last) + 1;
        if (first < done)
            first = done;
        if (first >= end)
            continue;
        for (uint32_t r = first; r < end; r++)
            b->nodes[b->n_leaves + r] = look_at(b, &e->rows[r]);
        rejoin(b, first, end);
        done = end;
    }
    uint32_t mark = b->dirty_first / WORD_BITS;
    memset(b->dirty + mark, 0, ((limit - 1) / WORD_BITS - mark + 1) * sizeof *b->dirty);
    b->dirty_first = UINT32_MAX;
    b->dirty_end = 0;
}

void best_changed(struct event *e, uint32_t seat)
{
    struct best *b = e->best;
    uint32_t word = seat / WORD_BITS;
    uint64_t bit = UINT64_C(1) << seat % WORD_BITS;
    bool is_free = e->seats[seat].status == SEAT_AVAILABLE;
    if (is_free == ((b->free[word] & bit) != 0))
        return;
    b->free[word] ^= bit;
    b->dirty[word / WORD_BITS] |= UINT64_C(1) << word % WORD_BITS;
    if (word < b->dirty_first)
        b->dirty_first = word;
    if (word >= b->dirty_end)
        b->dirty_end = word + 1;
}

struct best *best_new(const struct event *e)
{
    struct best *b = hf_alloc(sizeof *b);
    size_t n_sections = e->def->sections.n;
    size_t n_words = e->def->n_seats / WORD_BITS + 2; /* seek_run reads one word beyond the last */
    b->free = hf_alloc(n_words * sizeof *b->free);
    memset(b->free, 0xff, n_words * sizeof *b->free);
    b->dirty = hf_alloc((n_words / WORD_BITS + 1) * sizeof *b->dirty);
    b->dirty_first = UINT32_MAX;
    b->n_leaves = 1;
    while (b->n_leaves < e->n_rows)
        b->n_leaves *= 2;
    b->nodes = hf_alloc(2 * (size_t)b->n_leaves * sizeof *b->nodes);
    for (uint32_t r = 0; r < e->n_rows; r++) {
        uint32_t n = e->rows[r].n_seats;
        b->nodes[b->n_leaves + r] = (struct node){.run = n, .row_free = n, .free = n};
    }
    rejoin(b, 0, b->n_leaves);
    b->section_first = hf_alloc((n_sections + 1) * sizeof *b->section_first);
    for (size_t s = 0; s < n_sections; s++)
        b->section_first[s + 1] = b->section_first[s] + (uint32_t)e->def->sections.v[s].rows.n;
    b->allowed = hf_alloc((n_sections + 1) * sizeof *b->allowed);
    return b;
}

void best_free(struct best *b)
{
    if (!b)
        return;
    free(b->free);
    free(b->dirty);
    free(b->nodes);
    free(b->section_first);
    free(b->allowed);
    free(b);
}

/* ---- where to look ---- */

static bool tier_fits(const struct section_def *section, const struct best_want *want)
{
    return !want->tier || (section->tier && strlen(section->tier) == want->tier_len &&
                           memcmp(section->tier, want->tier, want->tier_len) == 0);
}

static void allow(struct best *b, uint32_t first, uint32_t end)
{
    if (b->n_allowed && b->allowed[b->n_allowed - 1].end == first)
        b->allowed[b->n_allowed - 1].end = end;
    else
        b->allowed[b->n_allowed++] = (struct range){.first = first, .end = end};
}

static void allow_wanted(const struct event *e, struct best *b, const struct best_want *want)
{
    size_t n = e->def->sections.n;
    b->n_allowed = 0;
    if (want->section < 0 && !want->tier) {
        allow(b, 0, e->n_rows);
        return;
    }
    for (size_t s = want->section < 0 ? 0 : (size_t)want->section; s < n; s++) {
        if (tier_fits(&e->def->sections.v[s], want))
            allow(b, b->section_first[s], b->section_first[s + 1]);
        if (want->section >= 0)
            break;
    }
}

/* The best-ranked allowed row with room, or NO_ROW. */
static uint32_t first_allowed(const struct best *b, enum room room, uint32_t q)
{
    for (uint32_t i = 0; i < b->n_allowed; i++) {
        uint32_t row = row_after(b, b->allowed[i].first, room, q);
        if (row == NO_ROW)
            break;
        if (row < b->allowed[i].end)
            return row;
    }
    return NO_ROW;
}

/* ---- which seats ---- */

/* The best choice of a row so far: `span` seats from `at`, their middle `off` half seats away from
 * the row's. */
struct choice {
    uint32_t at, span;
    int64_t off;
    bool found;
};

/* By how many half seats the middle of `span` seats from `at` is beyond the row's middle. */
static int64_t off_middle(const struct row *row, uint32_t at, uint32_t span)
{
    return 2 * (int64_t)at + span - row->n_seats;
}

/* `at` counts from the row's first seat.  Offers come with ascending `at`, so that of equals the
 * first stays. */
static void offer(struct choice *c, const struct row *row, uint32_t at, uint32_t span)
{
    int64_t off = llabs(off_middle(row, at, span));
    if (!c->found || span < c->span || (span == c->span && off < c->off))
        *c = (struct choice){.at = at, .span = span, .off = off, .found = true};
}

/* A group of q may begin anywhere in [low, high]: offers the place nearest the middle. */
static void offer_within(struct choice *c, const struct row *row, uint32_t low, uint32_t high,
                         uint32_t q)
{
    uint32_t at = (row->n_seats - q) / 2;
    at = at < low ? low : at > high ? high : at;
    offer(c, row, at, q);
}

/* Chooses q seats together, in a row that has room for them. */
static void pick_together(const struct best *b, const struct row *row, enum room room, uint32_t q,
                          uint32_t *ret_seats)
{
    struct choice c = {0};
    uint32_t end = row->first + row->n_seats, stop = row->first, at;
    while ((at = seek_run(b, stop, end, q, &stop)) < end) {
        uint32_t low = at - row->first, high = stop - q - row->first;
        if (c.found && off_middle(row, low, q) >= c.off)
            break; /* all further places are farther from the middle */
        if (room == ROOM_TOGETHER) {
            offer_within(&c, row, low, high, q);
        } else if (high - low != 1) { /* begin at an end of the run or two seats from it */
            offer(&c, row, low, q);
            if (high - low >= 4)
                offer_within(&c, row, low + 2, high - 2, q);
            offer(&c, row, high, q);
        }
    }
    hf_check(c.found);
    for (uint32_t i = 0; i < q; i++)
        ret_seats[i] = row->first + c.at + i;
}

/* Chooses the q seats of smallest span, in a row that has at least q free. */
static void pick_closest(const struct best *b, const struct row *row, uint32_t q,
                         uint32_t *ret_seats)
{
    struct choice c = {0};
    uint32_t end = row->first + row->n_seats;
    uint32_t at = seek(b->free, row->first, end, true), last = at;
    for (uint32_t i = 1; i < q; i++)
        last = seek(b->free, last + 1, end, true);
    for (; last < end; last = seek(b->free, last + 1, end, true)) {
        offer(&c, row, at - row->first, last - at + 1);
        at = seek(b->free, at + 1, end, true);
    }
    hf_check(c.found);
    at = row->first + c.at;
    for (uint32_t i = 0; i < q; i++, at = seek(b->free, at + 1, end, true))
        ret_seats[i] = at;
}

/* ---- from several rows ---- */

/* A walk over rows with free seats, outwards from where it starts. */
struct walk {
    const struct range *ranges; /* ascending, apart */
    uint32_t n, down, up;       /* the ranges that [.., low) and [high, ..) are in */
    uint32_t low, high;         /* the walk has passed rows [low, high) */
};

static void walk_start(struct walk *w, const struct range *ranges, uint32_t n, uint32_t low,
                       uint32_t high)
{
    *w = (struct walk){.ranges = ranges, .n = n, .up = 0, .low = low, .high = high};
    while (w->up < n && ranges[w->up].end <= high)
        w->up++;
    w->down = w->up < n ? w->up + 1 : n;
}

/* The next row with a free seat below and above; NO_ROW if there is none. */
static uint32_t walk_down(const struct best *b, struct walk *w)
{
    for (; w->down > 0; w->down--) {
        const struct range *range = &w->ranges[w->down - 1];
        uint32_t end = w->low < range->end ? w->low : range->end;
        uint32_t row = row_before(b, end, ROOM_APART, 1);
        if (row != NO_ROW && row >= range->first)
            return row;
    }
    return NO_ROW;
}

static uint32_t walk_up(const struct best *b, struct walk *w)
{
    for (; w->up < w->n; w->up++) {
        const struct range *range = &w->ranges[w->up];
        uint32_t from = w->high > range->first ? w->high : range->first;
        uint32_t row = row_after(b, from, ROOM_APART, 1);
        if (row != NO_ROW && row < range->end)
            return row;
    }
    return NO_ROW;
}

/* Takes from rows around `centre`, nearest first, until q seats are found or the walk ends. Returns
 * how many are.  O(log rows) for each row taken from. */
static uint32_t take_around(const struct event *e, const struct best *b, struct walk *w,
                            uint32_t centre, uint32_t had, uint32_t q, uint32_t *seats)
{
    while (had < q) {
        uint32_t down = walk_down(b, w), row = walk_up(b, w);
        if (down == NO_ROW && row == NO_ROW)
            break;
        if (row == NO_ROW || (down != NO_ROW && centre - down <= row - centre))
            row = w->low = down;
        else
            w->high = row + 1;
        uint32_t n = b->nodes[b->n_leaves + row].free;
        n = n < q - had ? n : q - had;
        pick_closest(b, &e->rows[row], n, seats + had);
        had += n;
    }
    return had;
}

static int seat_order(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* No row has q free, all allowed ones together have; the emptiest has `most`. */
static void pick_rows(const struct event *e, const struct best *b, uint32_t most, uint32_t q,
                      uint32_t *ret_seats)
{
    uint32_t centre = first_allowed(b, ROOM_APART, most), had = 0;
    hf_check(centre != NO_ROW);
    const uint32_t *section = &b->section_first[e->rows[centre].section];
    struct range own = {.first = section[0], .end = section[1]};
    struct walk w;
    walk_start(&w, &own, 1, centre, centre);
    had = take_around(e, b, &w, centre, had, q, ret_seats);
    walk_start(&w, b->allowed, b->n_allowed, own.first, own.end);
    had = take_around(e, b, &w, centre, had, q, ret_seats);
    hf_check(had == q);
    qsort(ret_seats, q, sizeof *ret_seats, seat_order);
}

bool best_find(struct event *e, const struct best_want *want, uint32_t *ret_seats,
               uint32_t *ret_available)
{
    struct best *b = e->best;
    uint32_t q = want->quantity, available = 0, most = 0, row;
    hf_check(q >= 1);
    refresh(e, b);
    allow_wanted(e, b, want);
    for (uint32_t i = 0; i < b->n_allowed; i++)
        count_rows(b, &b->allowed[i], &available, &most);
    *ret_available = available;
    if (q > available)
        return false;
    if ((row = first_allowed(b, ROOM_NO_ORPHAN, q)) != NO_ROW)
        pick_together(b, &e->rows[row], ROOM_NO_ORPHAN, q, ret_seats);
    else if ((row = first_allowed(b, ROOM_TOGETHER, q)) != NO_ROW)
        pick_together(b, &e->rows[row], ROOM_TOGETHER, q, ret_seats);
    else if (want->adjacent)
        return false;
    else if ((row = first_allowed(b, ROOM_APART, q)) != NO_ROW)
        pick_closest(b, &e->rows[row], q, ret_seats);
    else
        pick_rows(e, b, most, q, ret_seats);
    for (uint32_t i = 0; i < q; i++) /* otherwise a change was made without best_changed */
        hf_check(e->seats[ret_seats[i]].status == SEAT_AVAILABLE);
    return true;
}
