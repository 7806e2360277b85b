/* What the rules are asked to judge: one struct for each operation, its input and its outcome side
 * by side.  A command (engine/command.h) carries one of them.  Pointers of the input are borrowed
 * from the request that asked; rows of the outcome are closed by the owner of the struct.
 *
 *   life of a hold            renew
 *                            +-----+
 *                            v     |
 *        POST /v1/holds --> ACTIVE-+--- confirm (fence, before expiry) --> CONFIRMED (booking)
 *                            |  |                                             ^
 *                            |  +----- DELETE, evict --> RELEASED             | confirm + rescue,
 *                            +-------- expiry --> EXPIRED --------------------+ every place free
 *
 *   life of a seat:  available <-> held -> booked;  available <-> blocked
 *   of an area's places:  available <-> held -> booked, counted
 *   of an event:  open <-> closed
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

/* Why a claim on places was refused. */
struct shortage {
    uint32_t *taken;    /* room for as many seats as are named: those that are not free */
    uint32_t n_taken;   /* VERDICT_SEAT_TAKEN and VERDICT_SEAT_SOLD: at least one */
    int64_t available;  /* VERDICT_SOLD_OUT: how many places there are */
    int64_t short_area; /* VERDICT_SOLD_OUT: the area that has too few; -1: seats are short */
};

/* POST /v1/holds */
struct hold_create {
    /* in */
    uint32_t *seats;                /* distinct, valid indexes, in the buyer's order; with
                                       best.quantity: room for that many, filled by the rules */
    const struct area_claim *areas; /* distinct, valid */
    uint32_t n_seats, n_areas;
    struct best_want best; /* quantity 0: the seats are named, or none are wanted */
    int64_t ttl_ms;        /* 0: the event's hold_ttl_ms */
    uint64_t client;       /* hash of a keyless buyer's address; 0: not limited */
    const char *owner;     /* NULL: none */
    size_t owner_len;
    const char *metadata; /* JSON text; NULL: none */
    size_t metadata_len;
    /* out */
    struct hold_row hold; /* VERDICT_CREATED */
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
    /* out; read from the ledger before the rules judge if the hold is confirmed already */
    struct booking_row booking;
};

/* POST /v1/events/{e}/block and /unblock */
struct seats_block {
    /* in */
    const uint32_t *seats; /* distinct, valid indexes */
    uint32_t n_seats;
    bool blocks; /* false: puts them back on sale */
    /* out */
    struct shortage shortage;
};

#endif
