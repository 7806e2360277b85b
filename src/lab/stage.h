/* What the strategies sell: tables with the seats of events, and the sales that were made.  These
 * functions are called before and after a race, by one thread. */
#ifndef HF_LAB_STAGE_H
#define HF_LAB_STAGE_H

#include "lab/strategy.h"

/* Drops and creates the tables in settings->postgres and in settings->sqlite, where these are set.
 */
HF_MUST_USE bool stage_build(const struct strategy_settings *settings, struct hf_err *err);

/* Adds the seats SECTION-ROW-1 to SECTION-ROW-n of each of the rows, all available, to an event in
 * PostgreSQL, and their number to its inventory (inventory.c).  If settings->redis is set, also
 * adds their number to the event's counter there (counter.c). Can be called several times for one
 * event. */
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
/* Creates an event with the seats S-A-1 to S-A-n where this strategy sells. */
HF_MUST_USE bool stage_event(const struct strategy *strategy,
                             const struct strategy_settings *settings, int seats,
                             char ret_event[STAGE_EVENT_SIZE], struct hf_err *err);

/* A seat and its buyer, as the tables have them. */
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
