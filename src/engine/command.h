/* Read this first.  A command is one request on its way: filled by an HTTP thread, queued, decided
 * in a batch, answered in place, handed back through `done`.  It is owned by whoever put it in the
 * queue (it is a part of http's struct request), lent to the engine from engine_submit until
 * engine_config.done(command).
 *
 *   life of a hold            renew
 *                            +-----+
 *                            v     |
 *        POST /v1/holds --> ACTIVE-+--- confirm (fence, before expiry) --> CONFIRMED (booking)
 *                            |  |                                             ^
 *                            |  +----- DELETE, evict --> RELEASED             | confirm + rescue,
 *                            +-------- expiry --> EXPIRED --------------------+ every seat free
 *
 *   life of a seat:  available <-> held -> booked;  available <-> blocked
 *   of an area's places:  available <-> held -> booked, counted
 *   of an event:  open <-> closed
 */
#ifndef HF_ENGINE_COMMAND_H
#define HF_ENGINE_COMMAND_H

#include "base/buf.h"
#include "rules/best.h"
#include "rules/view.h"
#include "model/rows.h"

/* Which thread serves it: W the worker, R a reader, A the reader of what may take long, L the
 * loader, S the one that draws maps. */
enum command_kind {
    CMD_EVENT_CREATE, /* W in: def. out: def->id, created_at */
    CMD_EVENT_LOAD,   /* L in: event_key. out: event, or HF_NO_SUCH_EVENT */
    CMD_EVENT_LIST,   /* L in: list.before, list.limit. out: list.events (loaded), list.more */
    CMD_EVENT_OPEN,   /* W in: event.  out: counts are read from the view afterwards */
    CMD_EVENT_CLOSE,  /* W likewise */
    CMD_SEATS_BLOCK,  /* W in: event, seats.  out: taken */
    CMD_SEATS_UNBLOCK,
    CMD_SEAT_GET,     /* A in: event, seats[0], at (0: now).  out: past */
    CMD_SNAPSHOT,     /* S in: event, packed.  out: snapshot, a reference */
    CMD_HOLD_CREATE,  /* W in: event, create.*  out: hold | taken | available, short_area */
    CMD_HOLD_GET,     /* R in: event, id.  out: hold (status judged at `now`) */
    CMD_HOLD_LIST,    /* A in: event, page.  out: holds */
    CMD_HOLD_RENEW,   /* W in: event, id, ttl_ms (0: the event's).  out: hold */
    CMD_HOLD_RELEASE, /* W in: event, id */
    CMD_HOLD_EVICT,   /* W in: event, id.  out: hold */
    CMD_HOLD_CONFIRM, /* W in: event, id, fence, reference, rescue.  out: booking */
    CMD_BOOKING_GET,  /* R in: event, id.  out: booking */
    CMD_KEY_CHECK, /* W in: the key.  out: replayed, HF_KEY_MISMATCH, or HF_NOT_FOUND: not stored */
    CMD_AUDIT_LIST, /* A in: event, page, id if page.hold.  out: audit */
    CMD_FOLLOW,     /* W, the engine's own.  in: event */
    CMD_COMPARE,    /* W, the engine's own.  in: event, first seat.  The reconciler waits for it */
};

#define EVENTS_LIST_MAX 100
#define HOLDS_LIST_MAX 100
#define AUDIT_LIST_MAX 1000
#define SEAT_HISTORY_MAX 100
#define SEATS_INLINE 16

struct event_list {
    int64_t before; /* key: events created before this one; 0: from the newest */
    size_t limit, n;
    struct event *events[EVENTS_LIST_MAX];
    bool more;
};

/* A page of holds or of the log; in and out.  The rows are freed with the page. */
struct page {
    size_t limit;
    int64_t before;          /* HOLD_LIST: key of the last hold of the page before; 0: first */
    enum hold_status status; /* HOLD_LIST: HOLD_NONE: any */
    int64_t after;           /* AUDIT_LIST: seq */
    int64_t seat, hold;      /* AUDIT_LIST: -1 and 0: any */

    size_t n;
    bool more;
    struct hold_row *holds;
    struct audit_entry *audit;
};
void page_free(struct page *p); /* accepts NULL */

/* A seat at a moment, and how it came to be so: rows newest first. */
struct seat_past {
    int64_t at;
    enum seat_status status;
    int64_t hold, fence, until; /* 0: none */
    size_t n;
    bool more;
    struct audit_entry history[SEAT_HISTORY_MAX + 1];
};

struct command {
    enum command_kind kind;
    struct command *next; /* the engine's, while lent */
    bool internal;        /* made by the engine for itself: freed, not handed back */
    /* Where it goes when answered, on an engine thread; NULL: engine_config.done. */
    void (*done)(struct command *command);

    /* ---- in ---- */
    struct event *event; /* loaded; NULL for CREATE, LOAD and LIST */
    int64_t event_key;   /* LOAD */
    struct id id;        /* of the hold or booking named in the path */
    int64_t ttl_ms;      /* CREATE, RENEW; 0: the event's hold_ttl_ms */
    int64_t fence;       /* CONFIRM */
    bool rescue;
    const char *reference, *owner, *metadata; /* borrowed from the request; NULL: none */
    size_t reference_len, owner_len, metadata_len;
    uint32_t *seats; /* distinct, valid indexes, as named by the buyer; CREATE with best.quantity:
                        room for that many, filled by the worker */
    uint32_t n_seats;
    const struct area_claim *areas; /* CREATE: distinct, valid */
    uint32_t n_areas;
    struct best_want best; /* CREATE: quantity 0: seats are named, or none are wanted */
    int64_t at;            /* SEAT_GET */
    bool packed;           /* SNAPSHOT: gzip is wanted too */
    int64_t seq;           /* SNAPSHOT: a map of this seq or later, as seen when asking */
    struct event_def *def; /* EVENT_CREATE */
    uint64_t client;       /* CREATE: hash of a keyless buyer's address; 0: not limited */

    bool has_key; /* an Idempotency-Key came with the request */
    uint8_t key_hash[KEY_HASH_SIZE], request_hash[KEY_HASH_SIZE];

    /* ---- out ---- */
    enum hf_status status; /* HF_OK, HF_CREATED, HF_NO_CONTENT: done.  Otherwise the refusal */
    struct hf_err err;     /* when it is a failure */
    int64_t now;           /* ledger time of the decision */
    uint32_t *taken;       /* room for n_seats, given by the caller: indexes that were taken */
    uint32_t n_taken;
    bool gate_refused;          /* status, taken, available and short_area are the gate's */
    int64_t available;          /* HF_SOLD_OUT: how many there are */
    int64_t short_area;         /* of which area; -1: of seats */
    struct hold_row hold;       /* hold_row_close by the owner of the command */
    struct booking_row booking; /* booking_row_close likewise */
    struct event_list *list;    /* EVENT_LIST; given by the caller, as are page and past */
    struct page *page;
    struct seat_past *past;
    struct snapshot *snapshot; /* snapshot_unref by the owner of the command */
    /* Set when the answer is already bytes: stored under a key, or replayed from one. */
    bool rendered, replayed;
    int http_status;
    struct buf body; /* buf_close by the owner of the command */

    int64_t submitted_us; /* monotonic, for holdfast_hold_seconds */
};

#endif
