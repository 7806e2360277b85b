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
 *                            |  +----- DELETE --> RELEASED                    | confirm + rescue,
 *                            +-------- expiry --> EXPIRED --------------------+ every seat free
 *
 *   life of a seat:  available <-> held -> booked;  available <-> blocked
 */
#ifndef HF_ENGINE_COMMAND_H
#define HF_ENGINE_COMMAND_H

#include "base/buf.h"
#include "engine/view.h"
#include "ledger/rows.h"

/* Which thread serves it: W the worker, R a reader, L the loader. */
enum command_kind {
    CMD_EVENT_CREATE, /* W in: def. out: def->id, created_at */
    CMD_EVENT_LOAD,   /* L in: event_key. out: event, or HF_NO_SUCH_EVENT */
    CMD_EVENT_LIST,   /* L in: list.before, list.limit. out: list.events (loaded), list.more */
    CMD_HOLD_CREATE,  /* W in: event, create.*  out: hold | taken */
    CMD_HOLD_GET,     /* R in: event, id.  out: hold (status judged at `now`) */
    CMD_HOLD_RENEW,   /* W in: event, id, ttl_ms (0: the event's).  out: hold */
    CMD_HOLD_RELEASE, /* W in: event, id */
    CMD_HOLD_CONFIRM, /* W in: event, id, fence, reference, rescue.  out: booking */
    CMD_BOOKING_GET,  /* R in: event, id.  out: booking */
};

#define EVENTS_LIST_MAX 100
#define SEATS_INLINE 16

struct event_list {
    int64_t before; /* key: events created before this one; 0: from the newest */
    size_t limit, n;
    struct event *events[EVENTS_LIST_MAX];
    bool more;
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
    const uint32_t *seats; /* CREATE: distinct, valid indexes, as named by the buyer */
    uint32_t n_seats;
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
    struct hold_row hold;       /* hold_row_close by the owner of the command */
    struct booking_row booking; /* booking_row_close likewise */
    struct event_list *list;    /* LIST; given by the caller */
    /* Set when the answer is already bytes: stored under a key, or replayed from one. */
    bool rendered, replayed;
    int http_status;
    struct buf body; /* buf_close by the owner of the command */

    int64_t submitted_us; /* monotonic, for holdfast_hold_seconds */
};

#endif
