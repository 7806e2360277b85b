/* Claims about the simulated ledger and the views over it.  The log is the measure of both: rows
 * are the whole log folded, and a view is the log folded up to the view's seq, however far behind
 * it is.  A claim that does not hold fails the test. */
#ifndef HF_TESTS_SIM_CHECK_H
#define HF_TESTS_SIM_CHECK_H

#include "rules/fair.h"
#include "sim/world.h"

#define FOLDED_SEATS_MAX (3 * SEATS_INLINE) /* of a hold: as many as three booked together have */

struct folded_seat {
    enum seat_status status;
    uint32_t channel;
    int64_t hold, last_seq;
};
struct folded_area {
    int64_t held, booked;
    int64_t blocked[CHANNELS_MAX + 1]; /* by channel */
};
struct folded_hold {
    int64_t key, fence, until, last_seq;
    int64_t payment; /* of its pending booking; 0: none */
    int64_t places;  /* how many it has, as its last row says */
    enum hold_status status;
    enum booking_status booking;
    bool is_capturing; /* the pending booking has its places, and its money is captured */
    /* its places, in the order in which it got them */
    uint32_t seats[FOLDED_SEATS_MAX], n_seats;
    bool is_out[FOLDED_SEATS_MAX]; /* the change being folded takes the seat out, for now */
    struct area_claim areas[ASK_AREAS_MAX];
    uint32_t n_areas;
    uint32_t area_channel; /* that the places of its areas are blocked for otherwise; 0: none */
};
struct folded_payment {
    int64_t payment, amount; /* amount 0: the log has not said */
    enum payment_status status;
};
struct folded_wait {
    int64_t key, rank, read_at, hold, last_seq;
    enum wait_status status;
};
/* The log of one event, folded up to `seq`. */
struct fold {
    const struct event_def *def;
    int64_t event, seq, fence, at;
    enum event_status status;
    struct folded_seat *seats;
    struct folded_area *areas;
    VEC(struct folded_hold) holds; /* ascending by key */
    VEC(struct folded_payment) payments;
    VEC(struct folded_wait) waits; /* ascending by key */
};
void fold_init(struct fold *f, const struct sim_ledger *ledger, int64_t event);
void fold_close(struct fold *f);

/* Folds what was logged since, and claims that the log has no gap (I11) and that every row of it
 * follows from those before. */
void fold_log(struct fold *f, const struct sim_ledger *ledger);
/* The same, and claims: the event's rows are the folded log, every seat has at most one live
 * owner or one buyer (I1), a hold has all its places or none (I6), ends at its expiry (I4), areas
 * are not oversold (I2), and what is taken out of a channel returns to it. */
void check_ledger(struct fold *f, const struct sim_ledger *ledger);
/* Folds up to the view's seq, and claims that the view shows and decides on nothing else, with the
 * terms of that moment or later ones. */
void check_event(struct fold *f, const struct sim_ledger *ledger, const struct view *v,
                 struct event *e);
/* Claims that every hold of the view stands in the heap of deadlines with its own. */
void check_deadlines(const struct view *v);
/* The same for the view of a server.  An event that is marked stale is not looked at: it will be
 * loaded again before it is used. */
void check_view(struct fold *f, const struct sim_ledger *ledger, const struct server *s);
/* Does the server have all of the ledger's log of this event? */
bool is_caught_up(const struct fold *f, const struct sim_ledger *ledger, const struct server *s);
/* The same as check_view, and that it has. */
void check_caught_up(struct fold *f, const struct sim_ledger *ledger, const struct server *s);

/* NULL if the log has not told of it. */
struct folded_hold *folded_hold(const struct fold *f, int64_t key);

/* ---- check_waits.c: the waiting list ---- */

void fold_wait(struct fold *f, const struct audit_row *row);
/* The rows of entries are the folded log, and an entry is offered exactly one live hold, which has
 * the owner and the metadata of the entry. */
void check_waits(const struct fold *f, const struct sim_ledger *ledger);
/* The view has the live entries in their queues, and no others. */
void check_view_waits(const struct fold *f, const struct sim_ledger *ledger, const struct view *v,
                      const struct event *e);
/* Between batches, in a view that is exact: nothing is free that somebody waits for, if it can be
 * offered at `now`. */
void check_served(const struct event *e, int64_t now);

/* ---- check_fair.c: was anybody passed over? ---- */

/* Replays the log of one event for rules/fair.h. */
struct judge {
    struct fair fair;
    int64_t event;
    size_t n_rows, n_terms; /* that were replayed */
};
/* Begins with an event that is new; `turns_max` as in struct fair. */
void judge_init(struct judge *j, const struct sim_ledger *ledger, int64_t event,
                uint32_t turns_max);
void judge_close(struct judge *j);
/* Replays what was logged since, and claims I17 of every claim and offer. */
void judge_log(struct judge *j, const struct sim_ledger *ledger);
/* The same, and that nothing is idle that the last commit could have offered: for when no batch is
 * owed any more. */
void judge_rest(struct judge *j, const struct sim_ledger *ledger);

/* Claims that every captured payment is that of a confirmed booking, or owed back, or has been
 * given back (I9), and that exactly the jobs are owed that the rows call for. */
void check_money(const struct sim_ledger *ledger);
/* When nothing is owed any more: the books of the ledger and of the provider agree, to the cent. */
struct provider;
void check_books(const struct sim_ledger *ledger, const struct provider *provider);

#endif
