/* What the strategies sell: the tables, and the seats of an event in them. */
#ifndef HF_LAB_STAGE_H
#define HF_LAB_STAGE_H

#include "lab/strategy.h"

/* Drops and makes the tables. */
HF_MUST_USE bool stage_build(const struct strategy_settings *settings, struct hf_err *err);

/* Seats SECTION-ROW-1 ... SECTION-ROW-n of each of the rows, all available.  May be called again
 * for more of the same event; the counter in Redis (counter.c) counts them all. */
struct stage_section {
    const char *event, *section;
    const char *const *rows;
    size_t n_rows;
    int seats_per_row;
};
HF_MUST_USE bool stage_seats(const struct strategy_settings *settings,
                             const struct stage_section *section, struct hf_err *err);

#endif
