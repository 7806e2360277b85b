/* JSON in: strict readers of fields.  Every failure fills `err` with HF_INVALID_REQUEST and a
 * sentence that begins with the field's path, and returns false.  No state, any thread. */
#ifndef HF_API_PARSE_H
#define HF_API_PARSE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/status.h"
#include "model/rows.h"

/* An object being read, and where it stands in the body: "" or "sections[2]." */
struct fields {
    const json_t *object;
    const char *path;
    struct hf_err *err;
};

enum need { OPTIONAL, REQUIRED, NULLABLE }; /* NULLABLE: optional, and null means absent */

/* The body's object; NULL when it is not one.  An empty body is {} if `empty_ok`.  The caller
 * gives it back with json_decref. */
HF_MUST_USE json_t *parse_body(const struct buf *body, bool empty_ok, struct hf_err *err);

/* Every key is one of `known`, which ends with NULL. */
HF_MUST_USE bool fields_known(const struct fields *f, const char *const *known);

/* The outputs are left alone when the field is absent. */
HF_MUST_USE bool field_int(const struct fields *f, const char *name, enum need need, int64_t min,
                           int64_t max, int64_t *ret);
HF_MUST_USE bool field_bool(const struct fields *f, const char *name, enum need need, bool *ret);
/* Lengths are in characters; *ret_len in bytes.  The text is borrowed from the object. */
HF_MUST_USE bool field_text(const struct fields *f, const char *name, enum need need,
                            size_t chars_min, size_t chars_max, const char **ret, size_t *ret_len);
HF_MUST_USE bool field_array(const struct fields *f, const char *name, enum need need,
                             const json_t **ret);
/* A flat object of strings, numbers, booleans and nulls, as compact JSON text for free(). */
HF_MUST_USE bool field_metadata(const struct fields *f, const char *name, char **ret);

/* Fail: "<path><name> <what>". */
bool field_fail(const struct fields *f, const char *name, const char *what);

/* All of the text is a number of at most 18 digits. */
bool parse_digits(const char *text, size_t len, int64_t *ret);
/* RFC 3339 with any offset and up to nine decimals, to milliseconds since 1970 (rounded down). */
bool parse_time(const char *text, int64_t *ret_ms);

/* The definition in a POST /v1/events, its seats numbered.  For event_def_free. */
HF_MUST_USE bool parse_event(const json_t *json, struct event_def **ret, struct hf_err *err);

#endif
