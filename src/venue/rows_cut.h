/* A seating plan of a million seats is more than a gigabyte as a tree of JSON values.  So the rows
 * of its zones are cut out of the body first: what is left is read as a whole, and each row by
 * itself.  Pure. */
#ifndef HF_VENUE_ROWS_CUT_H
#define HF_VENUE_ROWS_CUT_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/vec.h"

/* More rows than this are not looked at, so that a body of nothing but commas takes little memory.
 * A plan may have fewer. */
#define ROWS_CUT_MAX 1000000

/* The text of a row, within the body. */
struct row_text {
    const char *text;
    size_t len;
    size_t zone; /* index in plan.zones */
};

struct rows_cut {
    struct buf rest;  /* the body, in which every zone's `rows` is [] */
    const char *from; /* while cutting: what follows has not been copied to `rest` */
    VEC(struct row_text) rows;
    bool is_too_long; /* there are more than ROWS_CUT_MAX rows; nothing else is known then */
};

/* Returns false if the body does not look like one with a plan, or is no JSON that can be cut: it
 * is then to be read as a whole, which finds out what is wrong, unless ret->is_too_long.  `body`
 * must outlive `ret`. */
bool rows_cut_init(struct rows_cut *ret, const struct buf *body);
void rows_cut_close(struct rows_cut *cut); /* accepts a zeroed struct */

#endif
