/* What the strategies sell: the tables, and the seats of an event in them. */
#ifndef HF_LAB_STAGE_H
#define HF_LAB_STAGE_H

#include "lab/strategy.h"

/* Drops and makes the tables, where settings->postgres says and where settings->sqlite does. */
HF_MUST_USE bool stage_build(const struct strategy_settings *settings, struct hf_err *err);

/* Seats SECTION-ROW-1 ... SECTION-ROW-n of each of the rows, all available, in PostgreSQL.  May be
 * called again for more of the same event; the counter in Redis (counter.c), if there is one,
 * counts them all. */
struct stage_section {
    const char *event, *section;
    const char *const *rows;
    size_t n_rows;
    int seats_per_row;
};
HF_MUST_USE bool stage_seats(const struct strategy_settings *settings,
                             const struct stage_section *section, struct hf_err *err);

#define STAGE_EVENT_SIZE 64
#define STAGE_SEAT_SIZE 24
/* A new event with the seats S-A-1 ... S-A-n, wherever this strategy sells. */
HF_MUST_USE bool stage_event(const struct strategy *strategy,
                             const struct strategy_settings *settings, int seats,
                             char ret_event[STAGE_EVENT_SIZE], struct hf_err *err);

/* Who has what, as the tables say. */
struct stage_sale {
    char seat[STAGE_SEAT_SIZE], holder[32];
};
struct stage_sales {
    struct stage_sale *rows;
    size_t n, cap;
};
HF_MUST_USE bool stage_sales(const struct strategy *strategy,
                             const struct strategy_settings *settings, const char *event,
                             struct stage_sales *ret, struct hf_err *err);
void stage_sales_add(struct stage_sales *sales, const char *seat, const char *holder);
void stage_sales_close(struct stage_sales *sales);

#endif
