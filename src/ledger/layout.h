/* A section's rows of seats as one text, so that an event of a hundred thousand rows is created by
 * one INSERT per section, in milliseconds, while other commands wait for the batch.  Pure.
 *
 *   Left-2,7-4      row `Left` of 2 seats, row `7` of 4 seats; a name contains no `-`
 *   -30*20          20 rows of 30 seats, named by their place in the section: A, B, C ...
 *   A1-2,-30*20     one row named A1, then 20 rows whose names go on from the second: B, C, D ...
 */
#ifndef HF_LEDGER_LAYOUT_H
#define HF_LEDGER_LAYOUT_H

#include "base/buf.h"
#include "model/rows.h"

/* Rows that follow one another in a section. */
struct layout_run {
    const char *name; /* of the single row; NULL if the rows are named by row_name */
    size_t name_len;
    uint32_t rows;  /* 1 to EVENT_SEATS_MAX */
    uint32_t seats; /* per row, 1 to EVENT_SEATS_MAX */
};

/* Appends the section's layout to `out`.  Without names it tells of sizes alone, as if row_name had
 * named every row: the names of a venue's rows are in its packed form. */
void layout_write(const struct section_def *section, bool named, struct buf *out);
/* Returns an upper bound of what layout_write appends. */
size_t layout_size_max(const struct section_def *section);
/* Reads the run at *at and moves *at to the next.  Returns false at the end of the text, and where
 * the text is damaged; *at differs from `end` only in the second case. */
bool layout_next(const char **at, const char *end, struct layout_run *ret);

#endif
