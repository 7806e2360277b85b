/* One event while it is verified: what its tables say beside what its log says.  Internal to
 * verify.c, which reads, verify_fold.c, which folds the log, and verify_rows.c, which compares. */
#ifndef HF_LEDGER_VERIFY_STATE_H
#define HF_LEDGER_VERIFY_STATE_H

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
    int64_t head;        /* as stored, minus the last row about it when that was stored */
    uint8_t status;      /* by the log */
    uint8_t channel;     /* by the log: that it is blocked for, or was when a hold took it */
    bool seen;           /* it has a row */
    bool head_folded;    /* rows of the log have been counted against `head` */
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
    int64_t last_seq, log_seq; /* of its last row in the log, as stored and by the log */
    int64_t cancelled;         /* when its booking was: as stored, minus what the log says */
    uint32_t n_seats, log_granted;
    uint64_t ungranted; /* digest of the places it lists, minus those that the log granted it */
    /* Digest of the area places that it has by the log, minus those it was granted if it is live.
     */
    uint64_t astray;
    uint8_t status, booking, log_status, log_booking, channel;
    bool begun;    /* the log has the row that made it */
    bool reported; /* HOLD_STATUS reports each hold at most once */
};

/* One row of seats. */
struct stored_seat {
    int64_t key, hold, fence;
    uint8_t status, channel;
};

/* A live hold owns the seats that it lists.  A cancelled sale has given its seats back and keeps
 * its rows. */
static inline bool hold_live(const struct hold_state *h)
{
    return h->status == HOLD_ACTIVE ||
           (h->status == HOLD_CONFIRMED && h->booking != BOOKING_CANCELLED);
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
    int64_t pruned_seq;  /* the log begins after it */
    uint32_t n_channels; /* that the event names */
    struct seat_state *seats;
    uint32_t n_seats;
    VEC(struct area_state) areas;
    VEC(int64_t) heads_seqs;      /* of each chunk of seats: when its heads were stored; 0: never */
    int status, log_status;       /* enum event_status; 0: none yet */
    VEC(struct hold_state) holds; /* by key */
    VEC(int64_t) later_fences;    /* fences that are not the first of their hold */
    int64_t seq, at;              /* of the last row of the log */
    int64_t grant_fence;          /* of the last grant in the log */
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
/* Returns what is known about the places that the area has blocked for the channel. */
struct block_state *verify_block(struct area_state *a, uint32_t channel);
/* Reports a channel that the event does not have; `what` and `item` say whose it is. */
void verify_channel(struct event_state *e, const char *what, int64_t item, uint32_t channel);
/* Called before the log: its first rows begin at pruned_seq, with seats that are not known. */
void verify_fold_begin(struct event_state *e, int64_t pruned_seq);

/* Folds one row of the log; rows come in order of seq. */
void verify_fold(struct event_state *e, const struct audit_row *row);
/* Called after the last row of the log. */
void verify_fold_end(struct event_state *e);

/* Notes a row of stored heads; before the log. */
void verify_heads(struct event_state *e, int64_t key, int64_t seq, const uint8_t *heads,
                  size_t len);
/* Compares one row of seats with the log and with the hold that claims the seat; after the log. */
void verify_seat(struct event_state *e, const struct stored_seat *row);
/* Called after all rows of seats: a seat without a row is available, or held by a live hold. */
void verify_seats_end(struct event_state *e);
/* Called at the end: compare areas, and holds with their bookings. */
void verify_areas(struct event_state *e);
void verify_holds(struct event_state *e);

#endif
