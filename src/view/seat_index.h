/* Where free seats stand together: an index over the lines of an event, for best.c.
 *
 * A line is a row of seats as neighbours see it: its slots are its seats in the order in which they
 * stand, with an empty slot, which is never free, where an aisle is.  The lines of a section are a
 * block, in which they are in the order of their rank.
 *
 * There are two sets of lines.  In the second one a line has the seats of one category only: a row
 * with seats of several categories has a line for each, with an empty slot where a seat is of
 * another one.  There a block is the lines of one category in one section, and the blocks of a
 * category follow one another.  Where rows are counted each section is a category, so that one set
 * of lines serves as both.
 *
 * An index knows which slots of some kind of seats are free:
 *   free     one bit per slot, kept by index_set: a line of 1000 seats is 16 words
 *   nodes    a tree over the lines; node 1 is the root, line l is leaf n_leaves + l
 * A changed bit marks its word in `dirty`; index_refresh brings the tree up to date.
 *
 * A node knows the two longest lengths of free runs below it.  That is enough to answer exactly,
 * for any quantity q, whether some line has room for q together without an orphan, which is: has a
 * run of q, or of q + 2 or more.  For if the longest is q + 1, a run of q can only be the second.
 *
 * In a line that is a part of its row the seats beside a run may be free and of another category.
 * Then there is room for any quantity up to the run's length, less one for each side on which a
 * single seat would be left; such a run counts as two, of that length and one less, which say the
 * same.  The seats beside it are those of `rows`. */
#ifndef HF_VIEW_SEAT_INDEX_H
#define HF_VIEW_SEAT_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#define WORD_BITS 64u
#define NO_LINE UINT32_MAX
#define NO_SEAT UINT32_MAX

struct index_line {
    uint32_t first, n_slots, block;
    uint32_t row_first; /* the first slot of its row among the lines of whole rows */
    bool is_part;       /* its row has seats of other categories, too */
    float nearest;      /* its rank, the lowest first: the smallest distance of its seats to the
                           focus, or the number of its row */
};

/* What indexes of an event share.  Never changes. */
struct lines {
    struct index_line *list;
    uint32_t n, n_slots;
    uint32_t *block_first; /* the first line of each block, and the end of the last one */
    uint32_t n_blocks;
    uint32_t *block_section; /* of each block; NULL: blocks are sections */
    /* The first block of each category, and the end of the last one; NULL: block and category have
     * the same number. */
    uint32_t *category_first;
    uint32_t *slot_of; /* of each seat; NULL: slots are seats, in the order of their indexes */
    /* Of whole rows only: */
    uint32_t *seat_of; /* of each slot, NO_SEAT for an aisle; NULL: slots are seats */
    float *distances;  /* of each slot's seat to the focus; NULL: rank is as listed */
};

struct event;
/* The lines of whole rows.  Of `e` only the layout (def, rows) has to be there yet.
 * O(seats log row). */
void lines_init(struct lines *lines, const struct event *e);
/* The lines of one category each, of an event with a venue.  O(seats + slots + lines log lines). */
void lines_init_by_category(struct lines *lines, const struct event *e, const struct lines *whole);
void lines_close(struct lines *lines);
/* The line that the slot is in.  O(log lines). */
uint32_t lines_find(const struct lines *lines, uint32_t slot);

/* What a node of the tree knows of all lines below it; a leaf stands for one line. */
struct index_node {
    uint32_t run, run_next; /* the longest free run, and the longest of any other length, as above;
                               0: none */
    uint32_t longest;       /* the longest free run */
    uint32_t line_free;     /* free seats of the line that has the most */
    uint32_t free;          /* free seats */
};

struct index {
    const struct lines *lines;
    const struct index *rows;  /* of the same kind of seats in whole rows; NULL: this is it */
    const struct index *needs; /* only runs count that contain a free slot of this one; or NULL */
    uint64_t *free;            /* one bit per slot */
    uint64_t *dirty;           /* one bit per word of `free` */
    uint32_t dirty_first, dirty_end; /* the range that has marks; dirty_end 0: no marks */
    struct index_node *nodes;
    uint32_t n_leaves; /* a power of two */
};

/* What to look for in a line. */
enum index_room { ROOM_NO_ORPHAN, ROOM_TOGETHER, ROOM_APART };

/* An index in which nothing is free.  O(slots / 64 + lines). */
struct index *index_new(const struct lines *lines);
void index_free(struct index *x); /* accepts NULL */
/* The slot becomes free, or stops being free; harmless when it does neither.  O(1). */
void index_set(struct index *x, uint32_t slot, bool is_free);
/* Something beside the slot has changed.  O(1). */
void index_mark(struct index *x, uint32_t slot);
/* Every slot becomes free.  O(slots / 64). */
void index_fill(struct index *x);
/* Brings the tree up to date.  A few changes cost O(log lines) each, changes
 * everywhere O(slots / 64 + lines) in all. */
void index_refresh(struct index *x);

/* The first line at or after `from`, or the last one before `end`, with room for q, or NO_LINE.
 * O(log lines). */
uint32_t index_line_after(const struct index *x, uint32_t from, enum index_room room, uint32_t q);
uint32_t index_line_before(const struct index *x, uint32_t end, enum index_room room, uint32_t q);
/* Adds the free seats of lines [first, end), and raises *line_free to what the emptiest of them
 * has.  O(log lines). */
void index_count(const struct index *x, uint32_t first, uint32_t end, uint32_t *free,
                 uint32_t *line_free);
static inline uint32_t index_line_free(const struct index *x, uint32_t line)
{
    return x->nodes[x->n_leaves + line].free;
}

static inline bool bits_has(const uint64_t *set, uint32_t at)
{
    return set[at / WORD_BITS] >> at % WORD_BITS & 1;
}
/* The first bit in [at, end) that is set (or not), or `end`. */
uint32_t bits_seek(const uint64_t *set, uint32_t at, uint32_t end, bool is_set);
/* The first whole run of `len` or more free slots in [at, end); `end` when there is none.  `at` is
 * not within a run.  Passes over shorter runs a word at a time. */
uint32_t index_seek_run(const struct index *x, uint32_t at, uint32_t end, uint32_t len,
                        uint32_t *ret_stop);

#endif
