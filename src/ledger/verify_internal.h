/* One event while it is verified: what its tables say beside what its log says.  Internal to
 * verify.c, which reads, verify_fold.c, which folds the log, and verify_rows.c, verify_money.c and
 * verify_waits.c, which compare. */
#ifndef HF_LEDGER_VERIFY_INTERNAL_H
#define HF_LEDGER_VERIFY_INTERNAL_H

#include "ledger/verify.h"
#include "model/rows.h"

typedef long long ll;

/* What the log of a pruned event does not tell: a status or a channel, and a fence. */
#define NOT_KNOWN 254
#define FENCE_NOT_KNOWN (-1)

/* A seat as the log leaves it, and the hold that claims it.  Its own row is compared when it is
 * read. */
struct seat_state {
    int64_t hold, fence; /* by the log */
    int64_t row_fence;   /* by the log: of the last change that its row shows */
    int64_t claim;       /* the live hold that lists it; 0: none */
    int64_t sold;        /* its booking in sold_seats; 0: none */
    int64_t last_seq;    /* of the last row about it; 0: none */
    int64_t head;        /* as stored; 0: none */
    int64_t head_seq;    /* of the last row about it when that was stored; 0: none */
    uint8_t status;      /* by the log */
    uint8_t channel;     /* by the log: that it is blocked for, or was when a hold took it */
    bool seen;           /* it has a row */
};

/* The places of an area that are blocked for one channel: as stored and by the log. */
struct block_state {
    uint32_t channel;
    int64_t places, log_places;
};

/* An area's counters: as stored, by the log, and summed over its live holds. */
struct area_state {
    int64_t held, booked, log_held, log_booked, claimed_held, claimed_booked;
    int64_t log_free;               /* places that are neither held, booked nor blocked */
    VEC(struct block_state) blocks; /* one per channel */
};

/* A hold and its booking, as stored and as the log leaves them. */
struct hold_state {
    int64_t key, fence, expires_at, booking_fence;
    int64_t log_fence, log_until, log_booking_fence;
    int64_t last_seq, log_seq;        /* of its last row in the log, as stored and by the log */
    int64_t cancelled, log_cancelled; /* when its booking was, as stored and by the log */
    int64_t payment, log_payment;     /* the number of its booking's payment; 0: none */
    int64_t booked_with;              /* the hold that has taken over its places; 0: none */
    int64_t wait; /* by the log: the entry that it was offered to, or OFFERED; 0: none */
    uint32_t n_seats, log_granted;
    uint64_t ungranted; /* digest of the places it lists, minus those that the log granted it */
    uint64_t mistyped;  /* the same, each place times its ticket type */
    /* Digest of the area places that it has by the log, minus those it was granted if it is live.
     */
    uint64_t astray;
    uint8_t status, booking, log_status, log_booking, channel;
    uint8_t payment_status; /* of its booking's payment; 0: none */
    bool begun;             /* the log has the row that made it */
    bool reported;          /* HOLD_STATUS reports each hold at most once */
};

/* The hold was made for the waiting list, and the row of its entry follows. */
#define OFFERED (-1)

/* An entry of the waiting list: as stored, and by the log. */
struct wait_seen {
    int64_t key, number, rank, read_at, last_seq;
    int64_t hold;     /* the last that it was offered; 0: none */
    int64_t ended_at; /* 0: it is live */
    int64_t log_number, log_rank, log_read_at, log_seq, log_hold, log_ended_at;
    uint32_t quantity; /* of its wish; 0: the wish is damaged */
    uint8_t status, reason, log_status;
};

/* A booking that failed before another of the same hold took its place. */
struct past_state {
    int64_t booking, payment, fence;
    uint8_t status;
    bool cancelled; /* which no booking that failed is */
    bool folded;    /* the log has told of its end */
};

/* A payment: as stored, by the log, and with its refunds summed up. */
struct payment_state {
    int64_t booking, payment, amount, received;
    int64_t returned;  /* the provider has accepted to give it back, or has done so */
    int64_t settled;   /* of that, given back */
    int64_t owed;      /* the provider has not been told yet */
    int64_t last_ours; /* the number of the latest refund of ours that the provider knows */
    uint32_t n_failed; /* refunds of ours that failed */
    uint8_t status, log_status;
    uint8_t job;      /* enum job_kind of its intent job; 0: none */
    bool has_poll;    /* a poll of it is owed */
    bool last_failed; /* the refund last_ours has failed */
    bool is_wrong;    /* another amount or currency was captured than the one asked for */
};

struct refund_seen {
    int64_t booking, refund, payment, amount;
    uint8_t status;
    bool has_job;
};

/* Sums of damaged rows stay within these bounds, which no real amount comes near. */
#define MONEY_MAX (INT64_MAX / 8)
static inline int64_t money_bounded(int64_t amount)
{
    return amount > MONEY_MAX ? MONEY_MAX : amount < -MONEY_MAX ? -MONEY_MAX : amount;
}

/* One row of jobs. */
struct stored_job {
    int64_t booking, job, payment, amount, refund;
    uint8_t kind, status, notice;
};

/* What the places of a hold cost. */
struct stored_prices {
    const char *list; /* NULL: all of them cost the same */
    size_t list_len;
    int64_t amount, booked; /* of the hold, and of its booking */
    int64_t places;
};

/* One row of seats. */
struct stored_seat {
    int64_t key, hold, fence;
    uint8_t status, channel;
};

/* A live hold owns the seats that it lists.  A sale that was cancelled or has failed has given its
 * seats back and keeps its rows.  The seats of a pending booking are sold only while its money is
 * being captured. */
static inline bool hold_live(const struct hold_state *h)
{
    if (h->status != HOLD_CONFIRMED)
        return h->status == HOLD_ACTIVE;
    return h->booking == BOOKING_PENDING
               ? h->payment_status == PAYMENT_CAPTURING
               : h->booking != BOOKING_FAILED && h->booking != BOOKING_CANCELLED;
}

/* Digests of places can be added and subtracted in any order; different places almost never have
 * the same sum. */
static inline uint64_t place_digest(enum audit_object object, int64_t item, int64_t quantity)
{
    uint64_t x = (uint64_t)item + ((uint64_t)object << 32) + 1;
    x = (x ^ x >> 31) * 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9u;
    return (x ^ x >> 32) * (uint64_t)quantity;
}

struct event_state {
    struct verify_report *report;
    int64_t event;
    struct clock_row clock;
    int64_t pruned_seq;       /* the log begins after it */
    int64_t holds_pruned_seq; /* up to here the rows of finished holds may be missing */
    uint32_t n_channels;      /* that the event names */
    uint32_t n_types;         /* ticket types that places may have: 1 if the event names none */
    struct seat_state *seats;
    uint32_t n_seats, n_sections, n_categories; /* n_categories 0: each section is one */
    VEC(struct area_state) areas;
    VEC(int64_t) heads_seqs;      /* of each chunk of seats: when its heads were stored; 0: never */
    int status, log_status;       /* enum event_status; 0: none yet */
    VEC(struct price_run) prices; /* of the hold being read */
    VEC(struct hold_state) holds; /* by key */
    VEC(struct wait_seen) waits;  /* by key */
    VEC(struct past_state) past;  /* by booking and payment, like the next one */
    VEC(struct payment_state) payments;
    VEC(struct refund_seen) refunds; /* by booking and refund */
    VEC(int64_t) later_fences;       /* fences that are not the first of their hold */
    int64_t seq, at;                 /* of the last row of the log */
    int64_t grant_fence;             /* of the last grant in the log */
};

/* A word for a status, also of a damaged row. */
static inline const char *word(enum audit_object object, int status)
{
    const char *text = status_text(object, status);
    return text ? text : status ? "of no known status" : "none";
}

static inline bool is_owned(int status) { return status == SEAT_HELD || status == SEAT_BOOKED; }

static inline void verify_count(struct event_state *e, enum verify_id id)
{
    e->report->checks[id].rows++;
}
/* Returns NULL if the event has no such hold. */
struct hold_state *verify_hold(struct event_state *e, int64_t key);
/* Returns NULL if the event has no such entry of its waiting list. */
struct wait_seen *verify_wait(struct event_state *e, int64_t key);
/* Returns NULL if the event has no such payment. */
struct payment_state *verify_payment(struct event_state *e, int64_t booking, int64_t payment);
/* Returns NULL if no booking that failed before had this payment. */
struct past_state *verify_past(struct event_state *e, int64_t booking, int64_t payment);
/* Returns what is known about the places that the area has blocked for the channel. */
struct block_state *verify_block(struct area_state *a, uint32_t channel);
/* Reports a channel that the event does not have; `what` and `item` say whose it is. */
void verify_channel(struct event_state *e, const char *what, int64_t item, uint32_t channel);
/* Reports a ticket type that the event does not have; `what` and `item` say whose it is. */
void verify_type(struct event_state *e, const char *what, int64_t item, uint32_t type);
/* Called before the log: its first rows begin at pruned_seq, with seats that are not known, and up
 * to holds_pruned_seq it has gaps. */
void verify_fold_begin(struct event_state *e, int64_t pruned_seq, int64_t holds_pruned_seq);
/* May a row about a seat have been pruned that was at `seq`, and followed on one at `prev` (0: on
 * none)? */
static inline bool verify_is_pruned(const struct event_state *e, int64_t prev, int64_t seq)
{
    return seq > prev && (seq <= e->pruned_seq || seq <= e->holds_pruned_seq);
}

/* Folds one row of the log; rows come in order of seq. */
void verify_fold(struct event_state *e, const struct audit_row *row);
/* The same, for a row about an entry of the waiting list. */
void verify_fold_wait(struct event_state *e, const struct audit_row *row);
/* A change must begin with the status `was`, in which the one before left the object. */
void verify_chain(struct event_state *e, const struct audit_row *row, const char *object,
                  int64_t item, int was);
/* A row about a seat, a hold or an entry names the row before, which may have been pruned: that of
 * a seat with the hold that it was about, that of another only with all that the log had then. */
void verify_prev(struct event_state *e, const struct audit_row *row, const char *object,
                 int64_t item, int64_t prev);
/* A grant gives a new fence: to a new hold, to one that gets other places, is rescued or was
 * restored, or to a new entry. */
void verify_grant(struct event_state *e, const struct audit_row *row);
/* Called after the last row of the log. */
void verify_fold_end(struct event_state *e);

/* Compares a hold's amount, and that of its booking, with the prices of its places. */
void verify_prices(struct event_state *e, const struct hold_state *h,
                   const struct stored_prices *row);
/* Notes a row of stored heads; before the log. */
void verify_heads(struct event_state *e, int64_t key, int64_t seq, const uint8_t *heads,
                  size_t len);
/* Sums up one row of refunds; after the payments and before the log. */
void verify_refund(struct event_state *e, const struct refund_seen *row, bool is_ours);
/* Compares one row of jobs with what it is about; after the refunds. */
void verify_job(struct event_state *e, const struct stored_job *row);
/* Compares one row of seats with the log and with the hold that claims the seat; after the log. */
void verify_seat(struct event_state *e, const struct stored_seat *row);
/* Called after all rows of seats: a seat without a row is available, or held by a live hold. */
void verify_seats_end(struct event_state *e);
/* Called at the end: compare areas, holds with their bookings, and entries with their holds. */
void verify_areas(struct event_state *e);
void verify_holds(struct event_state *e);
void verify_entries(struct event_state *e);
/* Called at the end, after the holds: compares payments with their bookings, refunds and jobs. */
void verify_money(struct event_state *e);

#endif
