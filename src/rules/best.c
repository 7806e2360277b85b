/* Best available; see best.h for what is chosen and seat_index.h for how it is found. */
#include "rules/best.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "view/free_seats.h"

/* How many slots a search looks at, beyond the first line that has room, for a group that is nearer
 * yet, or for one that leaves no orphan. */
#define SLOTS_EXAMINED_MAX 8192

struct range {
    uint32_t first, end; /* lines */
};

/* One question.  Lines are looked at in sets, one after another: those of the dearest categories,
 * then those of the next price, and in the end whole rows. */
struct best_search {
    const struct event *e;
    const struct best_want *want;
    const struct index *rows, *categories;
    struct range *allowed; /* room for all blocks of either */
    uint32_t *next;        /* of each allowed range: the next line with room; see next_nearest */

    /* The categories that have sets, and how many of them have had their turn. */
    const struct category_price *list;
    uint32_t n_list, n_done;
    bool rows_done; /* whole rows have had their turn, or get none */

    /* The set at hand: ranges ascend and are apart. */
    const struct index *x;
    uint32_t n_allowed;
};

/* ---- where to look ---- */

static bool tier_fits(const struct section_def *section, const struct best_want *want)
{
    return !want->tier || (section->tier && strlen(section->tier) == want->tier_len &&
                           memcmp(section->tier, want->tier, want->tier_len) == 0);
}

/* Zones of a plan may have the same name; whoever asks for one means all of them. */
static bool section_fits(const struct event_def *def, size_t section, const struct best_want *want)
{
    if (want->section >= 0 && (size_t)want->section != section &&
        !(def->venue &&
          strcmp(def->sections.v[section].name, def->sections.v[want->section].name) == 0))
        return false;
    return tier_fits(&def->sections.v[section], want);
}

/* Ranges that follow one another are one, if the ranks of their lines ascend. */
static void allow(struct best_search *s, uint32_t first, uint32_t end)
{
    const struct lines *lines = s->x->lines;
    bool ascend = !lines->distances && !lines->block_section;
    if (s->n_allowed && s->allowed[s->n_allowed - 1].end == first && ascend)
        s->allowed[s->n_allowed - 1].end = end;
    else
        s->allowed[s->n_allowed++] = (struct range){.first = first, .end = end};
}

static void allow_blocks(struct best_search *s, uint32_t first, uint32_t end)
{
    const struct lines *lines = s->x->lines;
    for (uint32_t b = first; b < end; b++)
        if (section_fits(s->e->def, lines->block_section ? lines->block_section[b] : b, s->want))
            allow(s, lines->block_first[b], lines->block_first[b + 1]);
}

static void allow_rows(struct best_search *s)
{
    const struct lines *lines = s->rows->lines;
    s->x = s->rows;
    s->n_allowed = 0;
    if (s->want->section < 0 && !s->want->tier && !lines->distances)
        allow(s, 0, lines->n);
    else
        allow_blocks(s, 0, lines->n_blocks);
}

/* The next line with room in [from, end), or NO_LINE. */
static uint32_t line_within(const struct index *x, uint32_t from, uint32_t end,
                            enum index_room room, uint32_t q)
{
    uint32_t line = from < end ? index_line_after(x, from, room, q) : NO_LINE;
    return line < end ? line : NO_LINE;
}

/* Adds the lines of the category, unless none has room. */
static void allow_category(struct best_search *s, uint32_t category, enum index_room room,
                           uint32_t q)
{
    const struct lines *lines = s->x->lines;
    const uint32_t *first = lines->category_first;
    uint32_t b = first ? first[category] : category, end = first ? first[category + 1] : b + 1;
    if (line_within(s->x, lines->block_first[b], lines->block_first[end], room, q) != NO_LINE)
        allow_blocks(s, b, end);
}

/* Begins with the first set again, of seats of this kind. */
static void sets_begin(struct best_search *s, enum seat_kind kind)
{
    const struct best_want *want = s->want;
    s->n_done = 0;
    s->rows_done = want->category != 0;
    s->rows = free_seats_index(s->e, kind, false);
    s->categories = s->n_list ? free_seats_index(s->e, kind, true) : s->rows;
    size_t n = (size_t)s->rows->lines->n_blocks + s->categories->lines->n_blocks + 1;
    if (!s->allowed)
        s->allowed = hf_alloc(n * sizeof *s->allowed);
    if (!s->next)
        s->next = hf_alloc(n * sizeof *s->next);
}

/* Goes on to the next set, and leaves out those in which no line has room. */
static bool next_set(struct best_search *s, enum index_room room, uint32_t q)
{
    s->x = s->categories;
    s->n_allowed = 0;
    if (s->n_done < s->n_list && index_line_after(s->x, 0, room, q) == NO_LINE)
        s->n_done = s->n_list;
    while (s->n_done < s->n_list && !s->n_allowed) {
        int64_t price = s->list[s->n_done].price;
        while (s->n_done < s->n_list && s->list[s->n_done].price == price)
            allow_category(s, s->list[s->n_done++].category, room, q);
    }
    if (s->n_allowed)
        return true;
    if (s->rows_done)
        return false;
    s->rows_done = true;
    allow_rows(s);
    return true;
}

/* Of the lines in s->next the best-ranked; NO_LINE if there is none left.  *ret_range is its range.
 * O(ranges). */
static uint32_t next_nearest(const struct best_search *s, uint32_t *ret_range)
{
    const struct index_line *list = s->x->lines->list;
    uint32_t line = NO_LINE;
    for (uint32_t i = 0; i < s->n_allowed; i++)
        if (s->next[i] != NO_LINE &&
            (line == NO_LINE || list[s->next[i]].nearest < list[line].nearest)) {
            line = s->next[i];
            *ret_range = i;
        }
    return line;
}

static void start_nearest(struct best_search *s, enum index_room room, uint32_t q)
{
    for (uint32_t i = 0; i < s->n_allowed; i++)
        s->next[i] = line_within(s->x, s->allowed[i].first, s->allowed[i].end, room, q);
}

/* The best-ranked allowed line with room, or NO_LINE. */
static uint32_t first_allowed(struct best_search *s, enum index_room room, uint32_t q)
{
    uint32_t range;
    start_nearest(s, room, q);
    return next_nearest(s, &range);
}

/* ---- which slots of a line ---- */

/* The best choice of a line so far: `span` slots from `at`.  `off` is how far it is from where it
 * should be: by how many half slots its middle is beside the line's, or the sum of its seats'
 * distances to the focus. */
struct choice {
    uint32_t at, span;
    double off;
    bool found;
};

/* By how many half slots the middle of `span` slots from `at` is beyond the line's middle. */
static double off_middle(const struct index_line *line, uint32_t at, uint32_t span)
{
    return 2 * ((double)at - line->first) + span - line->n_slots;
}

/* Offers come with ascending `at`, so that of equals the first stays. */
static void offer_off(struct choice *c, uint32_t at, uint32_t span, double off)
{
    if (!c->found || span < c->span || (span == c->span && off < c->off))
        *c = (struct choice){.at = at, .span = span, .off = off, .found = true};
}

static void offer(struct choice *c, const struct index_line *line, uint32_t at, uint32_t span)
{
    offer_off(c, at, span, fabs(off_middle(line, at, span)));
}

/* A group of q may begin anywhere in [low, high]: offers the place nearest the middle. */
static void offer_within(struct choice *c, const struct index_line *line, uint32_t low,
                         uint32_t high, uint32_t q)
{
    uint32_t at = line->first + (line->n_slots - q) / 2;
    at = at < low ? low : at > high ? high : at;
    offer(c, line, at, q);
}

/* Chooses q slots together by the line's middle, in a line that has room for them. */
static struct choice choose_by_middle(const struct index *x, const struct index_line *line,
                                      enum index_room room, uint32_t q)
{
    struct choice c = {0};
    uint32_t end = line->first + line->n_slots, stop = line->first, at;
    while ((at = index_seek_run(x, stop, end, q, &stop)) < end) {
        uint32_t low = at, high = stop - q;
        if (c.found && off_middle(line, low, q) >= c.off)
            break; /* all further places are farther from the middle */
        if (room == ROOM_TOGETHER) {
            offer_within(&c, line, low, high, q);
        } else if (high - low != 1) { /* begin at an end of the run or two seats from it */
            offer(&c, line, low, q);
            if (high - low >= 4)
                offer_within(&c, line, low + 2, high - 2, q);
            offer(&c, line, high, q);
        }
    }
    return c;
}

/* Would q seats from `low` leave a free neighbour in their row alone? */
static bool leaves_orphan(const struct index *x, const struct index_line *line, uint32_t low,
                          uint32_t q)
{
    const uint64_t *free = x->rows ? x->rows->free : x->free;
    uint32_t first = line->row_first, end = first + line->n_slots;
    uint32_t at = first + (low - line->first), stop = at + q;
    bool left = at > first && bits_has(free, at - 1);
    bool right = stop < end && bits_has(free, stop);
    return (left && (at - 1 == first || !bits_has(free, at - 2))) ||
           (right && (stop + 1 == end || !bits_has(free, stop + 1)));
}

/* The distances of the seats of a line to the focus, by slot from the line's first one on; NULL:
 * rank is as listed. */
static const float *distances_of(const struct best_search *s, const struct index_line *line)
{
    const float *distances = s->rows->lines->distances;
    return distances ? distances + line->row_first : NULL;
}

/* Offers every place in the run [at, stop) that will do. */
static void offer_run(struct choice *c, const struct best_search *s, const struct index_line *line,
                      uint32_t at, uint32_t stop, enum index_room room, uint32_t q)
{
    const struct index *x = s->x;
    const float *distances = distances_of(s, line);
    uint32_t high = stop - q, needed = at; /* the next slot that x->needs has */
    double sum = 0;
    for (uint32_t i = at; distances && i < at + q; i++)
        sum += (double)distances[i - line->first];
    for (uint32_t low = at;; low++) {
        bool orphan = room == ROOM_NO_ORPHAN && (line->is_part ? leaves_orphan(x, line, low, q)
                                                               : low - at == 1 || high - low == 1);
        if (x->needs && needed <= low)
            needed = bits_seek(x->needs->free, low, stop, true);
        if (!orphan && (!x->needs || needed < low + q))
            offer_off(c, low, q, distances ? sum : fabs(off_middle(line, low, q)));
        if (low == high)
            break;
        if (distances)
            sum += (double)distances[low - line->first + q] - (double)distances[low - line->first];
    }
}

/* Chooses q slots together, in a line that has room for them.  O(slots). */
static struct choice choose_by_place(const struct best_search *s, const struct index_line *line,
                                     enum index_room room, uint32_t q)
{
    struct choice c = {0};
    uint32_t end = line->first + line->n_slots, stop = line->first, at;
    while ((at = index_seek_run(s->x, stop, end, q, &stop)) < end)
        offer_run(&c, s, line, at, stop, room, q);
    return c;
}

/* Writes the slot of the line as that of its row. */
static uint32_t row_slot(const struct index_line *line, uint32_t slot)
{
    return line->row_first + (slot - line->first);
}

/* Finds q slots together in the set at hand, the best-ranked ones.  A line whose nearest seat is
 * farther than the best group so far cannot have a better one, and neither can the lines behind
 * it.  Where rank is as listed, the lines of one row are compared. */
static bool find_together(struct best_search *s, enum index_room room, uint32_t q,
                          uint32_t *ret_slots)
{
    const struct index *x = s->x;
    struct choice best = {0};
    const struct index_line *best_line = NULL;
    uint32_t line, range = 0, examined = 0;
    bool is_placed = s->rows->lines->distances;
    start_nearest(s, room, q);
    while ((line = next_nearest(s, &range)) != NO_LINE && examined < SLOTS_EXAMINED_MAX) {
        const struct index_line *l = &x->lines->list[line];
        if (best.found &&
            (is_placed ? (double)l->nearest * q >= best.off : l->nearest > best_line->nearest))
            break;
        struct choice c = is_placed || l->is_part || x->needs ? choose_by_place(s, l, room, q)
                                                              : choose_by_middle(x, l, room, q);
        hf_check(c.found);
        if (!best.found || c.off < best.off ||
            (c.off == best.off && !is_placed && row_slot(l, c.at) < row_slot(best_line, best.at))) {
            best = c;
            best_line = l;
        }
        examined += l->n_slots;
        s->next[range] = line_within(x, line + 1, s->allowed[range].end, room, q);
    }
    for (uint32_t i = 0; best.found && i < q; i++)
        ret_slots[i] = row_slot(best_line, best.at + i);
    return best.found;
}

/* Chooses the q slots of smallest span, in a line that has at least q free.  Returns false if all
 * leave an orphan, and none may. */
static bool pick_closest(const struct best_search *s, const struct index_line *line, uint32_t q,
                         bool no_orphan, uint32_t *ret_slots)
{
    struct choice c = {0};
    const uint64_t *free = s->x->free;
    const float *distances = distances_of(s, line);
    uint32_t end = line->first + line->n_slots;
    uint32_t at = bits_seek(free, line->first, end, true), last = at;
    for (uint32_t i = 1; i < q; i++)
        last = bits_seek(free, last + 1, end, true);
    for (; last < end; last = bits_seek(free, last + 1, end, true)) {
        bool ok = !no_orphan || !leaves_orphan(s->x, line, at, last - at + 1);
        if (ok && distances)
            offer_off(&c, at, last - at + 1,
                      (double)distances[at - line->first] + (double)distances[last - line->first]);
        else if (ok)
            offer(&c, line, at, last - at + 1);
        at = bits_seek(free, at + 1, end, true);
    }
    hf_check(c.found || no_orphan);
    at = c.at;
    for (uint32_t i = 0; c.found && i < q; i++, at = bits_seek(free, at + 1, end, true))
        ret_slots[i] = row_slot(line, at);
    return c.found;
}

/* Finds q slots of one row in the set at hand. */
static bool find_in_row(struct best_search *s, uint32_t q, bool no_orphan, uint32_t *ret_slots)
{
    uint32_t line, range = 0, examined = 0;
    bool found = false;
    start_nearest(s, ROOM_APART, q);
    while (!found && (line = next_nearest(s, &range)) != NO_LINE && examined < SLOTS_EXAMINED_MAX) {
        const struct index_line *l = &s->x->lines->list[line];
        found = pick_closest(s, l, q, no_orphan, ret_slots);
        examined += l->n_slots;
        s->next[range] = line_within(s->x, line + 1, s->allowed[range].end, ROOM_APART, q);
    }
    return found;
}

/* ---- from several lines ---- */

/* A walk over lines with free seats, outwards from where it starts. */
struct walk {
    const struct range *ranges; /* ascending, apart */
    uint32_t n, down, up;       /* the ranges that [.., low) and [high, ..) are in */
    uint32_t low, high;         /* the walk has passed lines [low, high) */
};

static void walk_start(struct walk *w, const struct range *ranges, uint32_t n, uint32_t low,
                       uint32_t high)
{
    *w = (struct walk){.ranges = ranges, .n = n, .up = 0, .low = low, .high = high};
    while (w->up < n && ranges[w->up].end <= high)
        w->up++;
    w->down = w->up < n ? w->up + 1 : n;
}

/* The next line with a free seat below and above; NO_LINE if there is none. */
static uint32_t walk_down(const struct index *x, struct walk *w)
{
    for (; w->down > 0; w->down--) {
        const struct range *range = &w->ranges[w->down - 1];
        uint32_t end = w->low < range->end ? w->low : range->end;
        uint32_t line = index_line_before(x, end, ROOM_APART, 1);
        if (line != NO_LINE && line >= range->first)
            return line;
    }
    return NO_LINE;
}

static uint32_t walk_up(const struct index *x, struct walk *w)
{
    for (; w->up < w->n; w->up++) {
        const struct range *range = &w->ranges[w->up];
        uint32_t from = w->high > range->first ? w->high : range->first;
        uint32_t line = line_within(x, from, range->end, ROOM_APART, 1);
        if (line != NO_LINE)
            return line;
    }
    return NO_LINE;
}

/* Takes from lines around `centre`, nearest first, until q slots are found or the walk ends.
 * Returns how many are.  O(log lines) for each line taken from. */
static uint32_t take_around(const struct best_search *s, struct walk *w, uint32_t centre,
                            uint32_t had, uint32_t q, uint32_t *slots)
{
    const struct index *x = s->x;
    while (had < q) {
        uint32_t down = walk_down(x, w), line = walk_up(x, w);
        if (down == NO_LINE && line == NO_LINE)
            break;
        if (line == NO_LINE || (down != NO_LINE && centre - down <= line - centre))
            line = w->low = down;
        else
            w->high = line + 1;
        uint32_t n = index_line_free(x, line);
        n = n < q - had ? n : q - had;
        const struct index_line *l = &x->lines->list[line];
        if (!pick_closest(s, l, n, s->want->avoids_orphans, slots + had))
            (void)pick_closest(s, l, n, false, slots + had);
        had += n;
    }
    return had;
}

/* Counts the free seats of the set at hand, and of its line that has the most. */
static uint32_t count_set(const struct best_search *s, uint32_t *ret_most)
{
    uint32_t available = 0, most = 0;
    for (uint32_t i = 0; i < s->n_allowed; i++)
        index_count(s->x, s->allowed[i].first, s->allowed[i].end, &available, &most);
    *ret_most = most;
    return available;
}

/* Finds q slots of several rows in the set at hand, where no row has as many. */
static bool find_in_rows(struct best_search *s, uint32_t q, uint32_t *ret_slots)
{
    uint32_t most, had = 0;
    if (count_set(s, &most) < q)
        return false;
    uint32_t centre = first_allowed(s, ROOM_APART, most);
    hf_check(centre != NO_LINE);
    const uint32_t *block = &s->x->lines->block_first[s->x->lines->list[centre].block];
    struct range own = {.first = block[0], .end = block[1]};
    struct walk w;
    walk_start(&w, &own, 1, centre, centre);
    had = take_around(s, &w, centre, had, q, ret_slots);
    walk_start(&w, s->allowed, s->n_allowed, own.first, own.end);
    had = take_around(s, &w, centre, had, q, ret_slots);
    hf_check(had == q);
    return true;
}

/* ---- the choices in order of preference; see best.h ---- */

static bool find_together_in_sets(struct best_search *s, enum seat_kind kind, enum index_room room,
                                  uint32_t *ret_slots)
{
    sets_begin(s, kind);
    while (next_set(s, room, s->want->quantity))
        if (find_together(s, room, s->want->quantity, ret_slots))
            return true;
    return false;
}

static bool find_apart(struct best_search *s, enum seat_kind kind, uint32_t *ret_slots)
{
    uint32_t q = s->want->quantity;
    for (int avoids = s->want->avoids_orphans; avoids >= 0; avoids--) {
        sets_begin(s, kind);
        while (next_set(s, ROOM_APART, q))
            if (find_in_row(s, q, avoids, ret_slots))
                return true;
    }
    sets_begin(s, kind);
    while (next_set(s, ROOM_APART, 1))
        if (find_in_rows(s, q, ret_slots))
            return true;
    return false;
}

/* How many free seats of this kind there are. */
static uint32_t count_available(struct best_search *s, enum seat_kind kind)
{
    uint32_t most;
    sets_begin(s, kind);
    if (!s->want->category) {
        allow_rows(s);
        return count_set(s, &most);
    }
    return next_set(s, ROOM_APART, 1) ? count_set(s, &most) : 0;
}

static bool find(struct best_search *s, uint32_t *ret_slots, uint32_t *ret_available)
{
    bool accessible = s->want->accessible;
    enum seat_kind kind = accessible ? SEATS_ACCESSIBLE : SEATS_ORDINARY;
    uint32_t available = *ret_available = count_available(s, kind);
    if (s->want->quantity <= available &&
        (find_together_in_sets(s, kind, ROOM_NO_ORPHAN, ret_slots) ||
         find_together_in_sets(s, kind, ROOM_TOGETHER, ret_slots) ||
         (!s->want->adjacent && find_apart(s, kind, ret_slots))))
        return true;
    return accessible && available > 0 &&
           find_together_in_sets(s, SEATS_WITH_COMPANIONS, ROOM_TOGETHER, ret_slots);
}

static int seat_order(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Does the event have categories that its creator named?  The prices of sections alone say nothing:
 * these rank as they are listed. */
static bool names_categories(const struct event_def *def)
{
    for (size_t i = 0; i < def->categories.n; i++)
        if (!def->categories.v[i].of_section)
            return true;
    return false;
}

bool best_find(const struct event *e, const struct best_want *want, uint32_t *ret_seats,
               uint32_t *ret_available)
{
    uint32_t q = want->quantity;
    hf_check(q >= 1);
    const struct category_price named = {.category = want->category - 1};
    struct best_search s = {.e = e, .want = want};
    if (want->category) {
        s.list = &named;
        s.n_list = 1;
    } else if (names_categories(e->def)) {
        s.list = free_seats_by_price(e, &s.n_list);
        if (s.n_list && s.list[0].price == s.list[s.n_list - 1].price)
            s.n_list = 0; /* prices say nothing */
    }
    bool found = find(&s, ret_seats, ret_available);
    free(s.allowed);
    free(s.next);
    if (!found)
        return false;
    const uint32_t *seat_of = s.rows->lines->seat_of;
    for (uint32_t i = 0; seat_of && i < q; i++)
        ret_seats[i] = seat_of[ret_seats[i]];
    qsort(ret_seats, q, sizeof *ret_seats, seat_order);
    for (uint32_t i = 0; i < q; i++) /* otherwise a change was made without free_seats_changed */
        hf_check(e->seats[ret_seats[i]].status == SEAT_AVAILABLE);
    return true;
}
