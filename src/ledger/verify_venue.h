/* Checks what an event with categories of its own stores of them and of its seats, for verify.c:
 * the packed venue is whole and fits the rows of the sections. */
#ifndef HF_LEDGER_VERIFY_VENUE_H
#define HF_LEDGER_VERIFY_VENUE_H

#include "ledger/verify.h"
#include "model/rows.h"

/* What has been read of the event. */
struct venue_check {
    struct event_def *def; /* NULL: it has no categories */
    struct buf packed;
};

/* The event has a category of this number and name. */
void venue_check_category(struct venue_check *c, int64_t number, const char *name, size_t len);
/* It has a section of this layout. */
void venue_check_section(struct venue_check *c, const char *layout, size_t len);
void venue_check_area(struct venue_check *c);
void venue_check_part(struct venue_check *c, const void *data, size_t len);
/* Everything has been read: reports what is wrong, and starts anew. */
void venue_check_end(struct venue_check *c, int64_t event, struct verify_report *report);

#endif
