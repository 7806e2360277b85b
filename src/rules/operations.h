/* What the rules are asked to judge: one struct for each operation, its input and its outcome side
 * by side.  A command (engine/command.h) carries one of them.  Pointers of the input are borrowed
 * from the request that asked; rows of the outcome are closed by the owner of the struct.
 *
 *   life of a hold        renew, PATCH
 *                            +-----+
 *                            v     |
 *        POST /v1/holds --> ACTIVE-+--- confirm (fence, before expiry) --> CONFIRMED (booking)
 *                            |  |                                             ^
 *                            |  +----- DELETE, evict --> RELEASED             | confirm + rescue,
 *                            +-------- expiry --> EXPIRED --------------------+ every place free,
 *                                                                               room for the owner
 *
 *   life of a seat:  available <-> held -> booked;  available <-> blocked
 *                    blocked for a channel <-> held by a hold of that channel -> booked
 *                    booked -> available or blocked, when its booking is cancelled
 *   of an area's places:  the same, counted
 *   of a booking:  PENDING -> CONFIRMED, FAILED or CANCELLED;  CONFIRMED -> CANCELLED
 *                  (a booking that needs no payment is CONFIRMED at once)
 *   of an entry of the waiting list:  see model/waitlist.h
 *   of an event:  open <-> closed;  open or closed -> cancelled;  all of them -> archived
 */
#ifndef HF_RULES_OPERATIONS_H
#define HF_RULES_OPERATIONS_H

#include "base/buf.h"
#include "model/rows.h"
#include "rules/best.h"

/* The Idempotency-Key of a request, and the answer that is stored under it (I8).  The answer is the
 * renderer's: a number and bytes that mean nothing here. */
struct idempotency {
    /* in */
    bool present;                   /* the request came with a key */
    uint8_t hash[KEY_HASH_SIZE];    /* of the caller's scope and the key */
    uint8_t request[KEY_HASH_SIZE]; /* of method, path and body */
    /* out */
    bool rendered; /* `answer` is the answer, to be sent as it is */
    bool replayed; /* the answer was stored by an earlier request */
    int answer_code;
    struct buf answer; /* buf_close by the owner */
};

/* Ticket types of the places of a claim, its seats and then those of its areas, as a request names
 * them: `n` places one after another.  Places behind the last run are of the first type. */
struct type_run {
    const char *id; /* NULL: the first type, or none where the event has none */
    size_t id_len;
    uint32_t n;
    uint32_t type; /* out: its index in event_terms.types */
};

/* Why a claim on places was refused. */
struct shortage {
    uint32_t *taken;    /* room for twice as many seats as are named: those that are not free, or
                           would be left single */
    uint32_t n_taken;   /* VERDICT_SEAT_TAKEN, VERDICT_SEAT_SOLD, VERDICT_LONE_SEAT: at least one */
    int64_t available;  /* VERDICT_SOLD_OUT: how many places there are */
    int64_t short_area; /* VERDICT_SOLD_OUT: the area that has too few; -1: seats are short */
    int64_t limit;      /* VERDICT_TOO_MANY_SEATS, VERDICT_OWNER_LIMIT: how many there may be */
    int64_t opens_at, closes_at;    /* VERDICT_EVENT_CLOSED: when sales open and close; both 0: the
                                    seller has closed the event */
    bool is_early;                  /* VERDICT_EVENT_CLOSED: sales have not opened yet */
    const struct type_run *unknown; /* VERDICT_NO_SUCH_TYPE: the first that the event lacks */
};

#define NO_CHANNEL UINT32_MAX /* the channel does not exist, so nothing is blocked for it */

/* POST /v1/holds */
struct hold_create {
    /* in */
    uint32_t *seats;                /* distinct, valid indexes, in the buyer's order; with
                                       best.quantity: room for that many, filled by the rules */
    const struct area_claim *areas; /* distinct, valid */
    struct type_run *types;         /* of all places */
    uint32_t n_seats, n_areas, n_types;
    struct best_want best; /* quantity 0: the seats are named, or none are wanted */
    int64_t ttl_ms;        /* 0: the event's hold_ttl_ms */
    uint64_t client;       /* hash of a keyless buyer's address; 0: not limited */
    uint32_t channel;      /* seats may also be blocked for this channel, and places of areas must
                              be; 0: none; NO_CHANNEL: one that nothing was ever blocked for */
    bool is_box_office;    /* the caller has a seller's key, and may leave single seats */
    bool resume;           /* if the owner holds exactly this already, that hold is the outcome */
    const char *owner;     /* NULL: none */
    size_t owner_len;
    const char *metadata; /* JSON text; NULL: none */
    size_t metadata_len;
    /* Only of an offer of the waiting list, which the rules make: its entry, owner_hash() of the
     * entry's owner, and that the hold cannot be extended. */
    int64_t wait;
    uint64_t owner_number;
    /* out */
    struct hold_row hold;     /* VERDICT_CREATED; VERDICT_OK: the hold that is resumed */
    struct price_run *prices; /* of `hold`; free() by the owner */
    int64_t resumes;          /* key of the hold to read before this is judged again; 0: none */
    struct shortage shortage;
};

/* The hold that an operation names.  `row` is read from the ledger before the rules judge (id.key
 * 0: there is no such row); afterwards it says how the hold stands now. */
struct named_hold {
    struct id id;
    struct hold_row row;
};

/* POST /v1/holds/{h}/renew */
struct hold_renew {
    struct named_hold hold;
    int64_t ttl_ms; /* in; 0: the event's hold_ttl_ms */
};

/* DELETE /v1/holds/{h}, and POST /v1/holds/{h}/evict by an admin */
struct hold_release {
    struct named_hold hold;
    bool evicts; /* in; true if an admin, not the buyer, gives it back */
};

/* POST /v1/holds/{h}/confirm */
struct hold_confirm {
    struct named_hold hold;
    /* in */
    int64_t fence;
    bool rescue;           /* sell an expired hold if all its places are still free */
    const char *reference; /* NULL: none */
    size_t reference_len;
    /* out */
    struct shortage shortage;   /* VERDICT_OWNER_LIMIT */
    struct booking_row booking; /* read from the ledger before the rules judge if the hold is
                                   confirmed already */
};

/* PATCH /v1/holds/{h} */
struct hold_change {
    struct named_hold hold; /* out: as it is afterwards */
    /* in */
    int64_t fence;
    /* Distinct, valid indexes of seats.  The last n_retyped seats of `add` are the first of
     * `remove`: the hold keeps them as another type, at today's price, unless they are of that type
     * already.  No other seat is in both. */
    const uint32_t *add, *remove;
    /* Distinct, valid areas.  An area that is in both loses places of one type and gets places of
     * another. */
    const struct area_claim *add_areas, *remove_areas;
    struct type_run *add_types;    /* of the places that are added */
    struct type_run *remove_types; /* of the places of areas that are removed; not of seats */
    uint32_t n_add, n_remove, n_retyped, n_add_areas, n_remove_areas, n_add_types, n_remove_types;
    bool is_seller;     /* the caller may take places of the hold's channel */
    bool is_box_office; /* the caller has a seller's key, and may leave single seats */
    uint64_t client;    /* hash of a keyless caller's address; 0: not limited */
    /* out */
    struct shortage shortage; /* VERDICT_NOT_HELD: `taken` are the seats that it does not have */
    const char *conflict;     /* VERDICT_INVALID_REQUEST: what is wrong */
    void *owned;              /* the places of `hold`; free() by the owner */
};

/* POST /v1/bookings/{b}/cancel */
struct booking_cancel {
    struct named_hold hold; /* the hold of the booking; only its key is known beforehand */
    /* in */
    struct id id;
    const char *reason; /* NULL: none */
    size_t reason_len;
    /* in and out: read from the ledger before the rules judge */
    struct booking_row booking;
    struct money money;
};

/* Another hold that is booked together with booking_create.hold, and what is read with it. */
struct booked_hold {
    struct named_hold hold;
    struct booking_row booking;
    struct money money;
};

/* POST /v1/bookings.  Several holds are merged into one of them, the carrier, which is booked: the
 * others are released, and the carrier takes over their places at the prices that they were held
 * at.  So a booking has one hold, with one expiry and one fence, however many it began with. */
struct booking_create {
    struct named_hold hold; /* out: the carrier */
    struct booked_hold others[HOLDS_PER_BOOKING_MAX - 1];
    /* in */
    size_t n_others;
    const char *reference; /* NULL: none */
    size_t reference_len;
    const char *email; /* NULL: none */
    size_t email_len;
    int64_t amount_min;    /* the least that the provider takes; -1: there is no provider */
    bool captures_by_hand; /* see payment_row */
    /* out; a booking that failed is read from the ledger before the rules judge */
    struct booking_row booking;
    struct payment_row payment;       /* number 0: there is nothing to pay */
    const struct named_hold *refused; /* the one of several holds that the verdict is about; NULL:
                                         it is about all of them */
    const char *conflict;             /* VERDICT_INVALID_REQUEST: what is wrong */
    struct shortage shortage;         /* VERDICT_TOO_MANY_SEATS */
    void *owned;                      /* the places of the carrier; free() by the owner */
    struct id *merged;                /* booking.merged; free() by the owner */
    struct money money;               /* read from the ledger before the rules judge */
};

/* POST /v1/bookings/{b}/refund */
struct booking_refund {
    struct named_hold hold; /* only its key is known beforehand */
    /* in */
    struct id id;
    int64_t amount; /* 0: all that is left */
    /* out */
    int64_t available; /* VERDICT_NOT_REFUNDABLE: how much may be given back */
    /* in and out: read from the ledger before the rules judge */
    struct booking_row booking;
    struct money money;
};

/* A fact about a payment, what became of a job, or both. */
struct payment_update {
    struct named_hold hold; /* only its key, the booking's, is known beforehand */
    /* in */
    bool has_payment;           /* false: the report is that of a notification */
    struct id payment;          /* its secret says which of the booking's payments is meant */
    struct fact fact;           /* fact_close by the owner */
    struct job_report report;   /* job 0: none */
    struct payment_event event; /* the webhook that brought the fact; empty id: none */
    /* out */
    bool is_unknown; /* the ledger has no such payment */
    bool is_repeat;  /* the webhook was stored before */
    bool alarms;     /* the provider did something that it should not have done */
    enum booking_status booking_before;
    /* in and out: read from the ledger before the rules judge */
    bool event_known;
    struct booking_row booking;
    struct money money;
};

/* POST /v1/waitlist */
struct wait_join {
    /* in */
    struct wait_wish wish;  /* valid indexes; its types are set by the rules */
    struct type_run *types; /* of all places */
    uint32_t n_types;
    int64_t until;     /* 0: none */
    uint64_t client;   /* hash of a keyless buyer's address; 0: not limited */
    const char *owner; /* NULL: none */
    size_t owner_len;
    const char *metadata; /* JSON text; NULL: none */
    size_t metadata_len;
    /* out */
    struct wait_row wait; /* VERDICT_CREATED */
    struct shortage shortage;
    const char *conflict; /* VERDICT_INVALID_REQUEST: what is wrong */
};

/* DELETE /v1/waitlist/{w}, POST /v1/waitlist/{w}/first and /evict, and what the server itself does
 * to an entry. */
enum wait_change_kind {
    WAIT_LEAVES,
    WAIT_EVICTS,
    WAIT_COMES_FIRST,
    WAIT_IS_READ,  /* the buyer has looked; stored at most eight times per wait_alive_ms */
    WAIT_IS_ERASED /* its owner is erased */
};
struct wait_change {
    /* in */
    enum wait_change_kind kind;
    struct id id;
    bool is_internal; /* the secret of `id` is not known */
    /* in and out: read from the ledger before the rules judge (id.key 0: there is no such row) */
    struct wait_row wait;
};

/* POST /v1/events/{e}/block and /unblock */
struct seats_block {
    /* in */
    const uint32_t *seats;          /* distinct, valid indexes */
    const struct area_claim *areas; /* distinct, valid */
    uint32_t n_seats, n_areas;
    bool blocks;      /* false: puts them back on sale */
    uint32_t n_named; /* of the seats; the others are those of `sections`.  For the answer */
    const uint32_t *sections;
    uint32_t n_sections;
    const char *channel; /* blocks them for this channel, which may be new, or puts back only what
                            is blocked for it; NULL: for none, or whatever seats are blocked for */
    size_t channel_len;
    /* out */
    struct shortage shortage;
};

/* PATCH /v1/events/{e}: `terms` has the new values of the fields that are given. */
struct price_change {
    uint32_t index; /* in event_terms.prices */
    int64_t price;
};
struct event_change {
    /* in */
    unsigned given;                  /* enum event_field */
    struct event_terms terms;        /* event_terms_close by the owner */
    VEC(struct price_change) prices; /* vec_close by the owner */
    VEC(struct ticket_type) types; /* changed or new; each is closed, and the list, by the owner */
    /* out */
    const struct event_terms *after; /* event_terms_give by the owner; see view.h */
    enum event_status status;
    const char *conflict; /* VERDICT_INVALID_REQUEST: what is wrong */
};

#endif
