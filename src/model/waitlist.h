/* The waiting list of an event: people who left what they want of it.  An entry is a row of
 * `waitlist`, with a row of the log for every change, so that other servers and `holdfast verify`
 * see all of them.
 *
 *   POST /v1/waitlist --> WAITING --- a place that fits is free ---> OFFERED
 *                            |                                          |
 *                            +-- DELETE --> LEFT <---- hold released ---+
 *                            |                                          +-- sold ------> ACCEPTED
 *                            +-- evicted, until, unread, no room ...    +-- expired, evicted -> LAPSED
 *                            `-------------> ENDED <- event cancelled --+
 *
 * An offer is a hold like any other.  Whatever ends the hold ends the entry in the same commit, and
 * what it had goes to the next entry in that commit, too. */
#ifndef HF_MODEL_WAITLIST_H
#define HF_MODEL_WAITLIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/id.h"
#include "base/vec.h"
#include "model/limits.h"

enum wait_status {
    WAIT_NONE,
    WAIT_WAITING,
    WAIT_OFFERED,
    WAIT_ACCEPTED, /* the offer was booked */
    WAIT_LAPSED,   /* the offer expired, or was evicted */
    WAIT_LEFT,     /* the buyer left, or released the offer */
    WAIT_ENDED,    /* for a reason */
    WAIT_STATUSES
};
/* Why an entry is WAIT_ENDED. */
enum wait_reason {
    WAIT_REASON_NONE,
    WAIT_REASON_UNTIL,       /* the buyer waits no longer than this */
    WAIT_REASON_UNREAD,      /* nobody has read it for the event's wait_alive_ms */
    WAIT_REASON_OWNER_LIMIT, /* the owner has as many places as the event allows */
    WAIT_REASON_TOO_MANY,    /* it asks for more places than a hold may have by now */
    WAIT_REASON_SALES_ENDED,
    WAIT_REASON_CANCELLED, /* the event was cancelled, or archived */
    WAIT_REASON_OFF,       /* the event has no waiting list any more */
    WAIT_REASON_EVICTED,
    WAIT_REASON_ERASED, /* its owner was erased */
    WAIT_REASONS
};
/* "waiting", and "until"; NULL if the number is none, or WAIT_NONE or WAIT_REASON_NONE. */
const char *wait_status_text(enum wait_status status);
const char *wait_reason_text(enum wait_reason reason);
static inline bool wait_is_live(enum wait_status status)
{
    return status == WAIT_WAITING || status == WAIT_OFFERED;
}

/* What a buyer waits for: seats, chosen as for a hold with best_available, or places of one area.
 * Compared as bytes. */
struct wait_wish {
    uint16_t types[TYPES_MAX]; /* places of each ticket type; all 0: of the first */
    int32_t section;           /* index; -1: any */
    int32_t tier;              /* index of the first section of this tier; -1: any */
    int32_t area;              /* index; -1: seats are wanted */
    uint32_t quantity;         /* >= 1 */
    uint32_t category;         /* 1 + index; 0: any */
    uint16_t accessible;       /* 1: places for wheelchairs, and seats beside them */
    uint16_t adjacent;         /* 0: may be split */
};
bool wait_wish_equal(const struct wait_wish *a, const struct wait_wish *b);
/* The wish without its ticket types: what fits depends on nothing else of it. */
struct wait_wish wait_wish_untyped(const struct wait_wish *wish);
/* Does an event with so many sections, categories and areas have what the wish names, and may a hold
 * have as many places?  The row of an entry may be damaged. */
bool wait_wish_is_sound(const struct wait_wish *wish, size_t n_sections, size_t n_categories,
                        size_t n_areas);

/* The hold that an entry was offered, as some reads tell it. */
struct wait_offer {
    struct id id; /* key 0: none */
    int64_t expires_at;
};

struct wait_row {
    struct id id; /* key: event << 40 | the fence that the entry drew, as those of holds */
    int64_t event;
    int64_t number; /* 1, 2, 3 ... in the order of arrival */
    int64_t rank;   /* the smallest has the first turn: the number, or minus the seq of the row of
                       the log that says that an admin moved it to the front */
    int64_t created_at, ended_at; /* ended_at 0: it is live */
    int64_t read_at;              /* when the buyer last looked */
    int64_t until;                /* 0: the buyer named no end */
    int64_t last_seq;             /* of its last row in the log */
    int64_t hold;                 /* the hold that it was offered; 0: none */
    uint64_t client; /* of a keyless buyer's address, see base/client_number.h; 0: none */
    enum wait_status status;
    enum wait_reason reason;
    struct wait_offer offer; /* only some reads tell it */
    const char *owner;       /* NULL: none */
    size_t owner_len;
    const char *metadata; /* JSON text; NULL: none */
    size_t metadata_len;
    struct wait_wish wish;
    void *owned; /* what wait_row_close frees; NULL when the pointers are borrowed */
};
void wait_row_close(struct wait_row *row);
/* When a waiting entry ends by itself; INT64_MAX: never.  alive_ms 0: it need not be read. */
int64_t wait_due(int64_t until, int64_t read_at, int64_t alive_ms);

/* What becomes of an entry in a batch.  Its row is stored only if its status, rank and last_seq
 * were those before. */
struct wait_write {
    int64_t entry, rank_before, rank, read_before, read_at, hold_before, hold;
    int64_t seq_before, last_seq;
    int64_t ended_at; /* 0: it is live */
    enum wait_status from, to;
    enum wait_reason reason;
};

/* An entry that a commit has changed, for those who follow it.  WAIT_NONE: any entry of its event may
 * have changed, since rows of the log were skipped. */
struct wait_news {
    int64_t entry, seq; /* of its row in the log */
    enum wait_status status;
};

#endif
