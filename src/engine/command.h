/* Read this first.  A command is one request on its way: an HTTP thread fills it, the engine queues
 * it, a thread of the engine carries it out in place, and `pending` tells the waiter.  The
 * caller of engine_submit owns the command and lends it to the engine from then until pending_done.
 *
 * A command is a small header and one member of a union, which `kind` selects. */
#ifndef HF_ENGINE_COMMAND_H
#define HF_ENGINE_COMMAND_H

#include "base/pending.h"
#include "ledger/ledger.h"
#include "model/verdict.h"
#include "rules/operations.h"
#include "view/heat.h"

struct decision;
struct snapshot;

/* Beside each kind: the thread that carries it out, and its member of the union. */
enum command_kind {
    CMD_NONE,
    CMD_EVENT_CREATE,   /* worker: event_create */
    CMD_EVENT_LOAD,     /* loader: none, so that what a handler has put there already survives.  In:
                           event_key; out: event and pinned, or VERDICT_NO_SUCH_EVENT */
    CMD_EVENT_LIST,     /* loader: event_list */
    CMD_EVENT_OPEN,     /* worker: none */
    CMD_EVENT_CLOSE,    /* worker: none */
    CMD_EVENT_ARCHIVE,  /* worker: none */
    CMD_EVENT_CHANGE,   /* worker: event_change */
    CMD_SEATS_BLOCK,    /* worker: block */
    CMD_SEATS_UNBLOCK,  /* worker: block */
    CMD_SEAT_GET,       /* the reader of long reads: seat_get */
    CMD_SNAPSHOT,       /* drawer: snapshot */
    CMD_PREPARE,        /* preparer: prepare */
    CMD_MAP_PAST,       /* the reader of long reads: map_past, see past.h */
    CMD_HOLD_CREATE,    /* worker: create */
    CMD_HOLD_GET,       /* reader: hold_get */
    CMD_HOLD_LIST,      /* the reader of long reads: hold_list */
    CMD_HOLD_RENEW,     /* worker: renew */
    CMD_HOLD_CHANGE,    /* worker: change */
    CMD_HOLD_RELEASE,   /* worker: release */
    CMD_HOLD_EVICT,     /* worker: release */
    CMD_HOLD_CONFIRM,   /* worker: confirm */
    CMD_BOOKING_GET,    /* reader: booking_get */
    CMD_BOOKING_LIST,   /* the reader of long reads: booking_list */
    CMD_BOOKING_CANCEL, /* worker: cancel */
    CMD_BOOKING_CREATE, /* worker: booking_create */
    CMD_BOOKING_REFUND, /* worker: refund */
    CMD_PAYMENT_UPDATE, /* worker: update */
    CMD_PAYMENT_FIND,   /* reader: payment_find */
    CMD_JOBS_TAKE,      /* the reader of jobs: jobs_take */
    CMD_REFUND_LIST,    /* the reader of long reads: refund_list */
    CMD_NOTICE_LIST,    /* the reader of long reads: notice_list */
    CMD_CANCEL_LIST,    /* the reader of long reads: cancel_list */
    CMD_EVENT_CANCEL,   /* worker: none */
    CMD_EVENT_PROGRESS, /* the reader of long reads: progress */
    CMD_EVENT_HEAT,     /* the reader of long reads: event_heat */
    CMD_EVENT_REVENUE,  /* the reader of long reads: revenue */
    CMD_OWNER_ERASE,    /* the first worker: owner_erase, see chores.h */
    CMD_KEY_CHECK,   /* worker: none.  VERDICT_KEY_UNUSED, or what the key's stored answer says */
    CMD_KEY_GET,     /* reader: none.  VERDICT_OK: key.answer, or VERDICT_KEY_UNUSED */
    CMD_WAIT_JOIN,   /* worker: wait_join */
    CMD_WAIT_CHANGE, /* worker: wait_change */
    CMD_WAIT_PAUSE,  /* worker: none */
    CMD_WAIT_RESUME, /* worker: none */
    CMD_WAIT_GET,    /* reader: wait_get */
    CMD_WAIT_LIST,   /* the reader of long reads: wait_list */
    CMD_AUDIT_LIST,  /* the reader of long reads: audit_list */
    CMD_FOLLOW,      /* worker: none.  Others have changed the event; the view has it then */
    CMD_COMPARE,     /* worker: compare.  The engine's own: the reconciler waits for it */
};

#define SEATS_INLINE 16 /* requests for at most this many seats need no memory of their own */

/* GET /v1/events.  Commands that ask for the same page at the same time get one. */
struct event_list {
    struct events_query query; /* in, but for `now` */
    size_t n;
    bool more;
    struct event_summary events[EVENTS_LIST_MAX + 1]; /* out: the first n */
    _Atomic int n_others;                             /* out: commands that have it, too */
};
/* Accepts NULL.  The last command that has the list frees it, and its events. */
void event_list_free(struct event_list *list);

/* GET /v1/holds: newest first. */
struct hold_page {
    size_t limit;            /* in */
    int64_t before;          /* in: the key of the last hold of the page before; 0: first page */
    enum hold_status status; /* in; HOLD_NONE: any */
    const char *owner;       /* in, borrowed; NULL: any */
    size_t n;
    bool more;
    struct hold_row *holds; /* out */
};
void hold_page_free(struct hold_page *p); /* accepts NULL; frees the rows too */

/* GET /v1/bookings: newest first within an event, and the events from the newest on. */
struct booking_page {
    struct bookings_query query; /* in; its limit is that of the page */
    size_t n;
    bool more;
    struct booking_row *bookings; /* out */
    struct money money;           /* out: of all of them */
};
void booking_page_free(struct booking_page *p); /* accepts NULL; frees the rows too */

/* GET /v1/refunds and /v1/notifications: newest first within an event. */
struct refund_page {
    size_t limit;   /* in */
    int64_t before; /* in: the number of the last one of the page before; 0: first page */
    enum refund_status status; /* in; 0: any */
    size_t n;
    bool more;
    struct refund_entry entries[REFUNDS_LIST_MAX + 1]; /* out */
};
struct notice_page {
    size_t limit;           /* in */
    int64_t before;         /* in: as above */
    enum job_status status; /* in; 0: any */
    size_t n;
    bool more;
    struct notice_entry entries[NOTICES_LIST_MAX + 1]; /* out */
};
/* GET /v1/waitlist: newest first within an event, and the events from the newest on. */
struct wait_page {
    struct waits_query query; /* in; its limit is that of the page */
    size_t n;
    bool more;
    struct wait_row waits[WAITS_LIST_MAX + 1]; /* out */
};
void wait_page_free(struct wait_page *p); /* accepts NULL; frees the rows too */
/* Bookings that a cancelled event still has. */
#define CANCEL_LIST_MAX 100
struct cancel_page {
    int64_t event;         /* out: theirs; 0: no event has any */
    int64_t before;        /* in: only events below this one */
    VEC(int64_t) finished; /* in and out: cancelled events that have none; vec_close by the owner */
    size_t n;
    struct id bookings[CANCEL_LIST_MAX]; /* out: without the secrets of others */
};

/* GET /v1/audit: oldest first. */
struct audit_page {
    size_t limit;   /* in */
    int64_t after;  /* in: rows after this seq */
    int64_t seat;   /* in: rows about this seat; -1: any */
    struct id hold; /* in: rows about this hold; key 0: any */
    size_t n;
    bool more;
    int64_t pruned_seq;          /* out: rows up to this one may have been pruned; 0: none were */
    struct audit_entry *entries; /* out */
};
void audit_page_free(struct audit_page *p); /* accepts NULL; frees the rows too */

/* GET /v1/events/{e}/seats/{s}: a seat at a moment, and how it came to be so. */
struct seat_past {
    int64_t at; /* in; 0: now.  Out: the moment that is told of, never a future one */
    enum seat_status status;
    int64_t hold, fence, until; /* 0: none */
    size_t n;
    bool more;
    bool pruned;                                      /* older rows may have been pruned */
    struct audit_entry history[SEAT_HISTORY_MAX + 1]; /* newest first */
};

/* GET /v1/events/{e}/heat: the most refused seats first. */
struct heat_list {
    size_t limit;             /* in */
    int64_t since;            /* out: when counting began */
    uint64_t total;           /* out: of all seats */
    size_t n;                 /* out */
    struct heat_seat seats[]; /* out; room for `limit` */
};

struct command {
    /* ---- the header ---- */
    enum command_kind kind;
    bool internal;          /* made by the engine for itself: freed when it is done */
    struct command *next;   /* the engine's, while the command is lent */
    struct pending pending; /* pending_done is called when the command has been carried out */
    struct event *event;    /* loaded, and pinned by whoever submits the command; NULL for
                               EVENT_CREATE, EVENT_LOAD, EVENT_LIST, BOOKING_LIST, OWNER_ERASE
                               and KEY_CHECK */
    struct event
        *pinned; /* a pin of the command's own, which command_close gives back; NULL: none */
    const struct event_terms *terms; /* out: those that it was decided by, or that were read with
                                        holds newer than the view, if the event has ticket types,
                                        whose names its answer needs; a reference.  NULL: those
                                        that are shown */
    int64_t event_key;               /* EVENT_LOAD, EVENT_PROGRESS, EVENT_REVENUE */
    struct idempotency key;
    const char *actor; /* in: who asks, for the log; outlives the command.  NULL: ACTOR_SERVER */
    enum verdict verdict;
    struct hf_err err; /* the reason, where the verdict is a failure */
    int64_t now;       /* out: ledger time of the decision */
    int64_t submitted_us;
    bool gate_refused; /* the verdict is the gate's */

    /* ---- what is asked and what came of it ---- */
    union {
        struct event_def *event_create; /* in, with a caller's own id secret unset.  Out: id and
                                           created_at are set.  event_def_free by the owner */
        struct event_list *event_list;  /* event_list_free by the owner */
        struct seats_block block;
        struct {
            uint32_t seat;          /* in */
            struct seat_past *past; /* for free() by the owner */
        } seat_get;
        struct {
            bool packed;               /* in: gzip is wanted */
            int64_t seq;               /* in: the map must be of this seq or a later one */
            struct snapshot *snapshot; /* out: snapshot_unref by the owner */
        } snapshot;
        struct {
            void (*run)(void *context); /* in: work that takes too long for an HTTP thread */
            void *context;              /* in */
        } prepare;
        struct {
            int64_t at;                /* in; out: the moment that is told of, never a future one */
            bool packed;               /* in: gzip is wanted */
            struct snapshot *snapshot; /* out: snapshot_unref by the owner */
        } map_past;
        struct hold_create create;
        struct named_hold hold_get;  /* out: the row, its status judged at `now` */
        struct hold_page *hold_list; /* hold_page_free by the owner */
        struct hold_renew renew;
        struct hold_change change;
        struct event_change event_change;
        struct hold_release release;
        struct hold_confirm confirm;
        struct {
            struct id id;           /* in; its secret may be left out if is_internal */
            bool is_internal;       /* in */
            int64_t payment;        /* in, if is_internal: whose booking; 0: the current one */
            struct booking_row row; /* out */
            struct money money;     /* out: of all bookings of the hold */
        } booking_get;
        struct booking_cancel cancel;
        struct booking_create *booking_create; /* for free() by the owner */
        struct booking_refund refund;
        struct payment_update *update; /* for free() by the owner */
        struct {
            char intent[PROVIDER_ID_SIZE]; /* in */
            struct id payment;             /* out; key 0: there is none */
        } payment_find;
        struct {
            struct jobs_query query; /* in; `now` is set by the reader */
            struct job_row *rows;    /* in: room for calls_max + notices_max; the owner's */
            size_t n;                /* out */
            struct jobs_count counts[JOB_NOTIFY + 1]; /* out, if wants_counts */
            bool wants_counts;                        /* in */
        } jobs_take;
        struct refund_page *refund_list; /* free() by the owner */
        struct notice_page *notice_list; /* free() by the owner */
        struct cancel_page *cancel_list; /* the owner's */
        struct cancel_progress progress; /* out */
        struct event_revenue revenue;    /* in: has_types; out: the rest */
        struct heat_list *event_heat;    /* free() by the owner */
        struct {
            const char *owner; /* in */
            size_t owner_len;
            bool judged, done; /* its key has been judged; nothing is left to erase */
            int64_t holds, bookings, answers; /* out: how many were erased */
        } owner_erase;
        struct booking_page *booking_list; /* booking_page_free by the owner */
        struct audit_page *audit_list;     /* audit_page_free by the owner */
        struct wait_join wait_join;
        struct wait_change wait_change;
        struct {
            struct id id;        /* in; its secret may be left out if is_internal */
            bool is_internal;    /* in */
            struct wait_row row; /* out, with its offer */
            int64_t ahead;       /* out: how many entries that wait have a smaller rank */
        } wait_get;
        struct wait_page *wait_list; /* wait_page_free by the owner */
        struct {
            uint32_t first; /* in: the slice of seats that begins here */
            bool repaired;  /* out: the view differed from the ledger and was loaded again */
        } compare;
    };
};

/* What the batch reads of an entry of a waiting list for the command; NULL: it needs none. */
struct wait_change *command_wants_wait(struct command *c);

/* Gives back what the command's outcome owns.  The command may then be used for another request,
 * once it has been zeroed. */
void command_close(struct command *c);

/* The hold that the command names, or the first of several, or NULL if it is not a command about an
 * existing hold that the worker carries out. */
struct named_hold *command_named_hold(struct command *c);

/* Where the booking of that hold is to be read to, or NULL if the command does not need it;
 * *ret_money likewise. */
struct booking_row *command_wants_booking(struct command *c, struct money **ret_money);

/* Lists what the ledger has to be asked before the rules judge: the rows of the holds that the
 * command names, with their bookings and money where it needs them.  What was read before, for a
 * batch that failed, is given back.  Returns how many there are. */
size_t command_wants(struct command *c, struct hold_wanted ret[HOLDS_PER_BOOKING_MAX]);

/* Judges a command of a batch by the rules, its idempotency key first.  `stored` is what the ledger
 * has under the key.  Returns false if the command must wait for the next batch; otherwise its
 * verdict is set.  Of EVENT_CREATE and KEY_CHECK only the key is judged. */
bool command_decide(struct command *c, struct decision *d, const struct key_row *stored);

#endif
