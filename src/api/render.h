/* The objects of the API as JSON.  Pure functions, called by HTTP threads, by workers for answers
 * that are stored with their effect (I8), so the same rows always give the same bytes, and by the
 * payment thread for notifications. */
#ifndef HF_API_RENDER_H
#define HF_API_RENDER_H

#include "base/json_put.h"
#include "engine/command.h"
#include "view/view.h"

/* An event, and the terms that name the ticket types of its places; NULL: those that are shown. */
struct typed_event {
    struct event *event;
    const struct event_terms *terms;
};
/* That of a command that has been carried out. */
static inline struct typed_event event_of(const struct command *c)
{
    return (struct typed_event){c->event, c->terms};
}

/* `e` NULL: the event as it is created, without the counts of its seats.  `status` 0: the status
 * that the view shows. */
void render_event(const struct event_def *def, const struct event_terms *terms, struct event *e,
                  int status, struct buf *out);
/* The event with its counts and without its layout. */
void render_event_summary(const struct event_summary *s, struct buf *out);
/* `masked`: for callers who may see it but not act on it, without the secrets of its ids. */
void render_hold(struct typed_event e, const struct hold_row *h, int64_t now, bool masked,
                 struct buf *out);
/* `money` has the payment, if there is one.  `shows_secret`: to the buyer, who needs it to pay. */
void render_booking(struct typed_event e, const struct booking_row *b, const struct money *money,
                    bool shows_secret, struct buf *out);
/* How an entry of a waiting list is shown: when, and to whom. */
struct wait_view {
    int64_t now;
    int64_t ahead; /* how many come before it; -1: not told */
    bool masked;   /* as render_hold's */
};
void render_wait(struct typed_event e, const struct wait_row *w, const struct wait_view *view,
                 struct buf *out);
/* The order number, in quotes: twelve characters that are easy to read aloud. */
void render_number(int64_t number, int64_t booking, struct buf *out);
/* `{"Stalls":6500,"Floor":3000}`: what seats of each category and places of each area cost. */
void render_prices(const struct event_def *def, const struct event_terms *terms, struct buf *out);
/* The member `types`, if the event has ticket types. */
void render_types(const struct event_def *def, const struct event_terms *terms, struct buf *out);
/* A row of the log; `masked`: without the secrets of its ids, and without addresses. */
void render_audit(struct event *e, const struct audit_entry *entry, bool masked, struct buf *out);
void render_seat_past(struct event *e, uint32_t seat, const struct seat_past *past,
                      struct buf *out);
/* A member that is an id; `masked`: with asterisks for its secret. */
void render_id(struct buf *out, const char *name, const char *prefix, const struct id *id,
               bool masked);
/* A seat's id in quotes. */
void render_seat(const struct event *e, uint32_t index, struct buf *out);
/* `["Stalls-A-1",...]` */
void render_seats(const struct event *e, const uint32_t *seats, uint32_t n, struct buf *out);
/* The letter of a seat's status in maps and streams: `.`, `h`, `b` or `x`. */
char seat_letter(enum seat_status status);

/* ---- api_texts (api.h) ---- */

/* Appends the body of a successful answer and returns its HTTP status. */
int render_answer(const struct command *command, struct buf *out);
void render_event_map(const struct event *e, const struct seat_map *map, struct buf *out);
bool render_erased(const char *body, size_t len, const struct erasure *x, bool is_own,
                   struct buf *out);

#endif
