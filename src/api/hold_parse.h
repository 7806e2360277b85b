/* The body of a POST /v1/holds or /v1/waitlist, and the readers of them.  hold_parse reads any body: with jansson,
 * strictly, with a reason for every refusal.  hold_scan reads the plainest bodies, which are nearly
 * all, with the same result and a fifth less CPU for the whole request.  No state; any thread. */
#ifndef HF_API_HOLD_PARSE_H
#define HF_API_HOLD_PARSE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/status.h"
#include "engine/command.h"
#include "http/text.h"

struct area_text {
    struct text name;
    uint32_t quantity;
};

/* The ticket types that a request names, in the order of the places that they are of. */
struct type_names {
    VEC(struct type_run) runs;
};

struct hold_body {
    struct text event, owner, channel;
    bool resume;
    struct text metadata;  /* compact JSON */
    int64_t ttl_ms;        /* 0: not given */
    int64_t until;         /* of POST /v1/waitlist; 0: not given */
    int64_t best_quantity; /* 0: best_available was not given */
    struct text best_section, best_tier, best_category;
    bool best_split; /* "adjacent": false */
    bool best_accessible;
    struct area_text *areas; /* for free() */
    size_t n_areas;
    struct type_names types; /* of seats, or of best_available, and then of areas; vec_close.  None:
                                no type is named */
    struct text *seats;      /* seats_inline or seats_heap */
    size_t n_seats;
    struct text *seats_heap;                /* for free() */
    char *metadata_heap;                    /* for free() */
    struct text seats_inline[SEATS_INLINE]; /* last, and not part of what has to be zeroed */
};

#define HOLD_OWNER_CHARS_MAX 128

/* Reads a plain body in one pass and without allocating: the known fields at most once each,
 * strings of printable ASCII without escapes, few seats, everything in range.  Returns false for
 * any other body, right or wrong, which hold_parse then reads.  `ret` points into `body`. */
bool hold_scan(const struct buf *body, struct hold_body *ret);

/* Reads any body; `ret` points into *ret_json.  On failure `err` says what is wrong, as in parse.h.
 */
HF_MUST_USE bool hold_parse(const struct buf *body, struct hold_body *ret, json_t **ret_json,
                            struct hf_err *err);

/* The same for the body of a POST /v1/waitlist, which names best_available or places of one area. */
HF_MUST_USE bool wait_parse(const struct buf *body, struct hold_body *ret, json_t **ret_json,
                            struct hf_err *err);

void hold_body_close(struct hold_body *body); /* accepts a zeroed struct */

#endif
