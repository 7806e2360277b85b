/* A call is one request to the API: src/http's request, the command that it becomes, and what the
 * handlers keep between their steps.  It belongs to the thread of its connection; only `command` is
 * lent to the engine, from call_submit until the next step runs.
 *
 * Handlers are steps that may run again.  If an event or a key has to be looked up for a step
 * (call_event, key_is_unused), that step runs again afterwards, and judges the request anew. */
#ifndef HF_API_CALL_H
#define HF_API_CALL_H

#include <jansson.h>

#include "api/api.h"
#include "api/hold_parse.h"
#include "api/lock_call.h"
#include "api/problems.h"
#include "checkout/checkout.h"
#include "http/request.h"
#include "http/server.h"

enum pace { PACE_HOLDS, PACE_CHANGES, PACES }; /* what callers without a key may do so often */

/* The places that a request names; see call_seat_room. */
struct call_places {
    uint32_t *seats; /* room for indexes of seats: seats_inline or seats_heap */
    uint32_t *taken; /* twice as much room, for those that are refused; see struct shortage */
    uint32_t *seats_heap;
    struct area_claim *areas_heap;
    struct type_run *types_heap;
    uint32_t *sections_heap; /* indexes of sections that are blocked as a whole */
};

/* POST /v1/bookings waits for the intent of the booking that it made. */
struct call_intent {
    struct checkout_wait *wait; /* free() */
    struct id booking;
    uint8_t key[KEY_HASH_SIZE];
    unsigned n_waits;
};

/* GET /v1/bookings: a page that waits until the events of its rows are loaded. */
struct call_bookings {
    struct booking_page *page;
    size_t n_rendered; /* bookings of the page */
};

/* GET /v1/waitlist, and POST /v1/owners/erase: a page that waits until the events of its rows are
 * loaded; and the topic of a stream that has not begun. */
struct call_waits {
    struct wait_page *page;   /* wait_page_free */
    int64_t now;              /* when it was read */
    size_t n_done;            /* entries of the page */
    struct idempotency key;   /* of an erasure, while others go before it */
    struct wait_topic *topic; /* wait_topic_give */
};

/* GET /v1/events/{e}/plan: the document that is being rendered. */
struct call_plan {
    struct event *event;
    struct snapshot *document; /* the result; snapshot_unref */
    bool is_packed;            /* is it compressed? */
};

/* POST /v1/plans/check: what the preparer found. */
struct call_check {
    struct buf body; /* of the answer; of a refusal, the first complaint, a NUL, and the list */
    bool is_refused, lacks_plan;
};

struct call {
    struct request http; /* first: src/http knows the call as this */
    struct command command;
    struct event *event; /* the one that call_event returned last: pinned until call_release */
    json_t *json;        /* the body, where jansson read it; the command may point into it */
    step_fn judge;       /* runs again when nothing is stored under the key; see key_is_unused */
    bool event_tried;    /* the event has been looked up */
    bool key_checked;    /* nothing is stored under the key */
    bool has_spent;      /* `spent`; see pace.h */
    enum pace spent;
    struct call_places places;

    /* what only some routes need */
    struct call_intent intent;
    struct call_bookings bookings;
    struct call_waits waits;
    struct call_plan plan;
    struct call_check check;
    struct webhook *webhook;   /* that is being stored; webhook_close and free() */
    struct creation *creation; /* of an event, by a large body; free() */
    bool has_lock;             /* `lock` is in use */
    struct hold_body hold;     /* of a POST /v1/holds */
    /* call_release does not clear what follows hold.seats_inline */
    uint32_t seats_inline[SEATS_INLINE], taken_inline[2 * SEATS_INLINE];
    char actor[ACTOR_SIZE]; /* of the command, unless it is a constant */
    struct lock_call lock;  /* of a request to the lock service; lock_begin zeroes it */
};

static inline struct call *call_of(struct request *r) { return (struct call *)r; }

static inline const struct api *call_api(const struct call *c)
{
    return server_context(c->http.server);
}

static inline struct engine *call_engine(const struct call *c) { return call_api(c)->engine; }

/* http_app.release */
void call_release(struct request *r);

/* Lends the command to the engine; `then` runs when it comes back, with the verdict in the command.
 * If the engine does not take it, that is the verdict. */
void call_submit(struct call *c, step_fn then);

/* Answers with a rendered document, plain or compressed, and takes over the reference to it.  The
 * caller sets the ETag. */
void answer_snapshot(struct request *r, struct snapshot *s, bool packed);

/* The answer comes from the view: says so in a header if the ledger does not answer, since the view
 * then misses what other servers do, and holds that run out. */
void call_note_stale(struct call *c);

/* Makes room for n seats in c->places.seats, and for twice as many in c->places.taken. */
void call_seat_room(struct call *c, size_t n);

/* The body as an object, which jansson reads once; an empty body is {} if `empty_ok`.  NULL: err
 * says what is wrong. */
const json_t *call_json(struct call *c, bool empty_ok, struct hf_err *err);

/* ---- call_event.c ---- */

/* The event if it is loaded; it stays in memory until the call is released or asks for another.
 * If it is NULL, then either the step that asked will run again once the event has been looked up,
 * or the call has been answered: with `missing`, or because the ledger failed. */
struct event *call_event(struct call *c, int64_t event, enum verdict missing);
/* The event if it is loaded, pinned likewise; NULL: it is not. */
struct event *call_loaded_event(struct call *c, int64_t event);
/* As call_event, for the event whose id is this text. */
struct event *call_event_named(struct call *c, const char *text, size_t len);

/* ---- answer.c ---- */

/* Answers with the problem of a verdict.  `detail` NULL: the problem's usual sentence. */
void call_refuse(struct call *c, enum verdict verdict, const char *detail);
/* Answers with 400 invalid_request and this sentence. */
void call_invalid(struct call *c, const char *detail);

/* The last step of most handlers: answers with what the command's verdict says, a body or a
 * problem. */
void call_answer(struct request *r);

#endif
