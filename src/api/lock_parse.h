/* The bodies of requests to the lock service: flat objects of texts, numbers and booleans.  A table
 * says which fields a body may have.  lock_scan reads the plainest bodies, which are nearly all, in
 * one pass and without allocating; lock_parse reads any body with jansson, strictly, and names the
 * reason of every refusal.  Both follow the same table.  No state; any thread. */
#ifndef HF_API_LOCK_PARSE_H
#define HF_API_LOCK_PARSE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/status.h"
#include "http/text.h"
#include "json/fields.h"

struct lock_body {
    struct text session, owner, agent, mode, value, label;
    int64_t ttl_ms, slots, wait_ms, claim_ms, priority, delay_ms, fence;
    bool cache, claim;
    uint32_t given; /* bit i: the body has field i of the table, which may be null */
};

enum lock_field_type { LOCK_TEXT, LOCK_NUMBER, LOCK_BOOL };

struct lock_field {
    const char *name; /* NULL: the table's end */
    enum lock_field_type type;
    enum need need;
    int64_t min, max; /* of a number; of a text, its characters, and at most `max` bytes */
    size_t offset;    /* in struct lock_body */
};

extern const struct lock_field lock_fields_open[], lock_fields_acquire[], lock_fields_release[],
    lock_fields_value[];
#define LOCK_VALUE_GIVEN (1u << 3) /* in lock_fields_value */

/* Returns false for any body that is not plain, right or wrong; *ret may be written to all the
 * same.  `ret` points into `body`. */
bool lock_scan(const struct buf *body, const struct lock_field *table, struct lock_body *ret);
/* `ret` points into *ret_json, which the caller frees with json_decref. */
HF_MUST_USE bool lock_parse(const struct buf *body, const struct lock_field *table,
                            struct lock_body *ret, json_t **ret_json, struct hf_err *err);

#endif
