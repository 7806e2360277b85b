/* Where free seats stand together: an index over the lines of an event, for best.c.  Internal to
 * src/rules.
 *
 * A line is a row of seats as neighbours see it: its slots are its seats in the order in which they
 * stand, with an empty slot, which is never free, where an aisle is.  Lines are in the order of
 * their sections, and within a section in the order of their rank.
 *
 * An index knows which slots of some kind of seats are free:
 *   free     one bit per slot, kept by index_set: a line of 1000 seats is 16 words
 *   nodes    a tree over the lines; node 1 is the root, line l is leaf n_leaves + l
 * A changed bit marks its word in `dirty`; index_refresh brings the tree up to date.
 *
 * A node knows the two longest lengths of free runs below it.  That is enough to answer exactly,
 * for any quantity q, whether some line has room for q together without an orphan, which is: has a
 * run of q, or of q + 2 or more.  For if the longest is q + 1, a run of q can only be the second.
 */
#ifndef HF_VIEW_SEAT_INDEX_H
#define HF_VIEW_SEAT_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#define WORD_BITS 64u
#define NO_LINE UINT32_MAX
#define NO_SEAT UINT32_MAX

struct index_line {
    uint32_t first, n_slots, section;
    float nearest; /* the smallest distance of its seats to the focus; 0: lines are as listed */
};

/* What all indexes of an event share.  Never changes. */
struct lines {
    struct index_line *list;
    uint32_t n, n_slots;
    uint32_t *section_first; /* the first line of each section, and the end of the last section */
    uint32_t n_sections;
    /* NULL: slots are seats, in the order of their indexes */
    uint32_t *slot_of, *seat_of; /* seat_of has NO_SEAT for an aisle */
    float *distances;            /* of each slot's seat to the focus; NULL: rank is as listed */
};

struct event;
/* Of `e` only the layout (def, rows) has to be there yet.  O(seats log row). */
void lines_init(struct lines *lines, const struct event *e);
void lines_close(struct lines *lines);

/* What a node of the tree knows of all lines below it; a leaf stands for one line. */
struct index_node {
    uint32_t run, run_next; /* the longest free run, and the longest of any other length; 0: none */
    uint32_t line_free;     /* free seats of the line that has the most */
    uint32_t free;          /* free seats */
};

struct index {
    const struct lines *lines;
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

/* The first bit in [at, end) that is set (or not), or `end`. */
uint32_t bits_seek(const uint64_t *set, uint32_t at, uint32_t end, bool is_set);
/* The first whole run of `len` or more free slots in [at, end); `end` when there is none.  `at` is
 * not within a run.  Passes over shorter runs a word at a time. */
uint32_t index_seek_run(const struct index *x, uint32_t at, uint32_t end, uint32_t len,
                        uint32_t *ret_stop);

#endif
