/* The body of a POST /v1/holds, whichever way it was read. */
#ifndef HF_API_HOLD_PARSE_H
#define HF_API_HOLD_PARSE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/status.h"
#include "engine/command.h"

struct text {
    const char *data; /* NULL: none; not NUL-terminated */
    size_t len;
};

struct area_text {
    struct text name;
    uint32_t quantity;
};

struct hold_body {
    struct text event, owner, metadata; /* metadata: compact JSON */
    int64_t ttl_ms;                     /* 0: not given */
    int64_t best_quantity;              /* 0: best_available was not given */
    struct text best_section, best_tier;
    bool best_split;         /* "adjacent": false */
    struct area_text *areas; /* for free() */
    size_t n_areas;
    struct text *seats; /* seats_inline, or seats_heap */
    size_t n_seats;
    struct text seats_inline[SEATS_INLINE];
    struct text *seats_heap; /* for free() */
    char *metadata_heap;     /* likewise */
};

#define HOLD_TTL_MS_FLOOR 1000
#define HOLD_TTL_MS_CEILING 86400000
#define HOLD_OWNER_CHARS_MAX 128
#define HOLD_PLACES_MAX 500 /* the largest max_per_hold an event may have */

/* Reads the plainest bodies, and those are nearly all, in one pass and without allocating: the
 * known fields at most once each, strings of printable ASCII without escapes, few seats, everything
 * in range.  False says nothing about the body: read it properly.  What points into `body` stays
 * there.
 */
bool hold_scan(const struct buf *body, struct hold_body *ret);

/* Reads any body; `ret` borrows from *ret_json.  False: err says what is wrong, as in parse.h. */
HF_MUST_USE bool hold_parse(const struct buf *body, struct hold_body *ret, json_t **ret_json,
                            struct hf_err *err);

void hold_body_close(struct hold_body *body); /* accepts a zeroed struct */

#endif
