/* Best available; see best.h for what is chosen and seat_index.h for how it is found. */
#include "rules/best.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "view/free_seats.h"

/* How many slots a search by distance looks at, beyond the first line that has room, for one that
 * is nearer yet. */
#define SLOTS_EXAMINED_MAX 8192

struct range {
    uint32_t first, end; /* lines */
};

/* One question.  Ranges ascend and are apart. */
struct best_search {
    const struct lines *lines;
    struct range *allowed; /* room for all sections */
    uint32_t n_allowed;
    uint32_t *next; /* of each allowed range: the next line with room; see next_nearest */
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
    if (want->category && !def->venue && want->category - 1 != section)
        return false;
    return tier_fits(&def->sections.v[section], want);
}

/* Ranges that follow one another are one, unless their ranks have to be compared. */
static void allow(struct best_search *s, uint32_t first, uint32_t end)
{
    if (s->n_allowed && s->allowed[s->n_allowed - 1].end == first && !s->lines->distances)
        s->allowed[s->n_allowed - 1].end = end;
    else
        s->allowed[s->n_allowed++] = (struct range){.first = first, .end = end};
}

static void allow_wanted(const struct event *e, struct best_search *s, const struct best_want *want)
{
    const struct lines *lines = s->lines;
    s->n_allowed = 0;
    if (want->section < 0 && !want->tier && !lines->distances &&
        (!want->category || e->def->venue)) {
        allow(s, 0, lines->n);
        return;
    }
    for (size_t i = 0; i < e->def->sections.n; i++)
        if (section_fits(e->def, i, want))
            allow(s, lines->section_first[i], lines->section_first[i + 1]);
}

/* The next line with room in [from, end), or NO_LINE. */
static uint32_t line_within(const struct index *x, uint32_t from, uint32_t end,
                            enum index_room room, uint32_t q)
{
    uint32_t line = from < end ? index_line_after(x, from, room, q) : NO_LINE;
    return line < end ? line : NO_LINE;
}

/* Of the lines in s->next the nearest to the focus; NO_LINE if there is none left.  *ret_range is
 * its range.  O(ranges). */
static uint32_t next_nearest(const struct best_search *s, uint32_t *ret_range)
{
    uint32_t line = NO_LINE;
    for (uint32_t i = 0; i < s->n_allowed; i++)
        if (s->next[i] != NO_LINE && (line == NO_LINE || s->lines->list[s->next[i]].nearest <
                                                             s->lines->list[line].nearest)) {
            line = s->next[i];
            *ret_range = i;
        }
    return line;
}

static void start_nearest(struct best_search *s, const struct index *x, enum index_room room,
                          uint32_t q)
{
    for (uint32_t i = 0; i < s->n_allowed; i++)
        s->next[i] = line_within(x, s->allowed[i].first, s->allowed[i].end, room, q);
}

/* The best-ranked allowed line with room, or NO_LINE. */
static uint32_t first_allowed(struct best_search *s, const struct index *x, enum index_room room,
                              uint32_t q)
{
    uint32_t line = NO_LINE, range;
    if (s->lines->distances) {
        start_nearest(s, x, room, q);
        return next_nearest(s, &range);
    }
    for (uint32_t i = 0; i < s->n_allowed && line == NO_LINE; i++)
        line = line_within(x, s->allowed[i].first, s->allowed[i].end, room, q);
    return line;
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

/* Offers every place in the run [at, stop), or those that leave no orphan. */
static void offer_run(struct choice *c, const struct index *x, uint32_t at, uint32_t stop,
                      enum index_room room, uint32_t q)
{
    const float *distances = x->lines->distances;
    uint32_t high = stop - q, needed = at; /* the next slot that x->needs has */
    double sum = 0;
    for (uint32_t i = at; i < at + q; i++)
        sum += (double)distances[i];
    for (uint32_t low = at;; low++) {
        bool orphan = room == ROOM_NO_ORPHAN && (low - at == 1 || high - low == 1);
        if (x->needs && needed <= low)
            needed = bits_seek(x->needs->free, low, stop, true);
        if (!orphan && (!x->needs || needed < low + q))
            offer_off(c, low, q, sum);
        if (low == high)
            break;
        sum += (double)distances[low + q] - (double)distances[low];
    }
}

/* Chooses q slots together by their distance to the focus.  O(slots). */
static struct choice choose_by_distance(const struct index *x, const struct index_line *line,
                                        enum index_room room, uint32_t q)
{
    struct choice c = {0};
    uint32_t end = line->first + line->n_slots, stop = line->first, at;
    while ((at = index_seek_run(x, stop, end, q, &stop)) < end)
        offer_run(&c, x, at, stop, room, q);
    return c;
}

/* Without positions, a group for which x->needs counts has the wanted slot nearest the middle. */
static struct choice choose_with_needed(const struct index *x, const struct index_line *line,
                                        uint32_t q)
{
    struct choice c = {0};
    uint32_t end = line->first + line->n_slots, stop = line->first, at;
    while ((at = index_seek_run(x, stop, end, q, &stop)) < end)
        for (uint32_t low = at; low + q <= stop; low++)
            if (bits_seek(x->needs->free, low, low + q, true) < low + q)
                offer(&c, line, low, q);
    return c;
}

/* The nearest group of q in the allowed lines.  A line whose nearest seat is farther than the best
 * group so far cannot have a better one, and neither can the lines behind it. */
static struct choice search_by_distance(struct best_search *s, const struct index *x,
                                        enum index_room room, uint32_t q)
{
    struct choice best = {0};
    uint32_t examined = 0, line, range = 0;
    start_nearest(s, x, room, q);
    while ((line = next_nearest(s, &range)) != NO_LINE && examined < SLOTS_EXAMINED_MAX) {
        const struct index_line *l = &s->lines->list[line];
        if (best.found && (double)l->nearest * q >= best.off)
            break;
        struct choice c = choose_by_distance(x, l, room, q);
        if (c.found && (!best.found || c.off < best.off))
            best = c;
        examined += l->n_slots;
        s->next[range] = line_within(x, line + 1, s->allowed[range].end, room, q);
    }
    return best;
}

/* Finds q slots together.  Returns false if no line has room. */
static bool find_together(struct best_search *s, const struct index *x, enum index_room room,
                          uint32_t q, uint32_t *ret_slots)
{
    struct choice c;
    if (s->lines->distances) {
        c = search_by_distance(s, x, room, q);
    } else {
        uint32_t line = first_allowed(s, x, room, q);
        if (line == NO_LINE)
            return false;
        c = x->needs ? choose_with_needed(x, &s->lines->list[line], q)
                     : choose_by_middle(x, &s->lines->list[line], room, q);
        hf_check(c.found);
    }
    for (uint32_t i = 0; c.found && i < q; i++)
        ret_slots[i] = c.at + i;
    return c.found;
}

/* Chooses the q slots of smallest span, in a line that has at least q free. */
static void pick_closest(const struct index *x, const struct index_line *line, uint32_t q,
                         uint32_t *ret_slots)
{
    struct choice c = {0};
    const float *distances = x->lines->distances;
    uint32_t end = line->first + line->n_slots;
    uint32_t at = bits_seek(x->free, line->first, end, true), last = at;
    for (uint32_t i = 1; i < q; i++)
        last = bits_seek(x->free, last + 1, end, true);
    for (; last < end; last = bits_seek(x->free, last + 1, end, true)) {
        if (distances)
            offer_off(&c, at, last - at + 1, (double)distances[at] + (double)distances[last]);
        else
            offer(&c, line, at, last - at + 1);
        at = bits_seek(x->free, at + 1, end, true);
    }
    hf_check(c.found);
    at = c.at;
    for (uint32_t i = 0; i < q; i++, at = bits_seek(x->free, at + 1, end, true))
        ret_slots[i] = at;
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
static uint32_t take_around(const struct index *x, struct walk *w, uint32_t centre, uint32_t had,
                            uint32_t q, uint32_t *slots)
{
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
        pick_closest(x, &x->lines->list[line], n, slots + had);
        had += n;
    }
    return had;
}

/* No line has q free, all allowed ones together have; the emptiest has `most`. */
static void pick_lines(struct best_search *s, const struct index *x, uint32_t most, uint32_t q,
                       uint32_t *ret_slots)
{
    uint32_t centre = first_allowed(s, x, ROOM_APART, most), had = 0;
    hf_check(centre != NO_LINE);
    const uint32_t *section = &s->lines->section_first[s->lines->list[centre].section];
    struct range own = {.first = section[0], .end = section[1]};
    struct walk w;
    walk_start(&w, &own, 1, centre, centre);
    had = take_around(x, &w, centre, had, q, ret_slots);
    walk_start(&w, s->allowed, s->n_allowed, own.first, own.end);
    had = take_around(x, &w, centre, had, q, ret_slots);
    hf_check(had == q);
}

static int seat_order(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* The choices in order of preference; see best.h. */
static bool find_slots(struct best_search *s, const struct index *x, const struct best_want *want,
                       uint32_t most, uint32_t *ret_slots)
{
    uint32_t q = want->quantity, line;
    if (find_together(s, x, ROOM_NO_ORPHAN, q, ret_slots) ||
        find_together(s, x, ROOM_TOGETHER, q, ret_slots))
        return true;
    if (want->adjacent)
        return false;
    if ((line = first_allowed(s, x, ROOM_APART, q)) != NO_LINE)
        pick_closest(x, &s->lines->list[line], q, ret_slots);
    else
        pick_lines(s, x, most, q, ret_slots);
    return true;
}

static bool find(const struct event *e, struct best_search *s, const struct index *x,
                 const struct best_want *want, uint32_t *ret_seats, uint32_t *ret_available)
{
    uint32_t q = want->quantity, available = 0, most = 0;
    allow_wanted(e, s, want);
    for (uint32_t i = 0; i < s->n_allowed; i++)
        index_count(x, s->allowed[i].first, s->allowed[i].end, &available, &most);
    *ret_available = available;
    if (q <= available && find_slots(s, x, want, most, ret_seats))
        return true;
    return want->accessible && available > 0 &&
           find_together(s, free_seats_index(e, SEATS_WITH_COMPANIONS, want->category),
                         ROOM_TOGETHER, q, ret_seats);
}

bool best_find(const struct event *e, const struct best_want *want, uint32_t *ret_seats,
               uint32_t *ret_available)
{
    uint32_t q = want->quantity;
    hf_check(q >= 1);
    const struct index *x =
        free_seats_index(e, want->accessible ? SEATS_ACCESSIBLE : SEATS_ORDINARY, want->category);
    size_t n = x->lines->n_sections + 1;
    struct best_search s = {.lines = x->lines,
                            .allowed = hf_alloc(n * sizeof *s.allowed),
                            .next = hf_alloc(n * sizeof *s.next)};
    bool found = find(e, &s, x, want, ret_seats, ret_available);
    free(s.allowed);
    free(s.next);
    if (!found)
        return false;
    for (uint32_t i = 0; x->lines->seat_of && i < q; i++)
        ret_seats[i] = x->lines->seat_of[ret_seats[i]];
    qsort(ret_seats, q, sizeof *ret_seats, seat_order);
    for (uint32_t i = 0; i < q; i++) /* otherwise a change was made without free_seats_changed */
        hf_check(e->seats[ret_seats[i]].status == SEAT_AVAILABLE);
    return true;
}
