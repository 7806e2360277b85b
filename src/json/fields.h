/* Strict readers of JSON bodies and query parameters.  A reader that fails fills `err` with
 * HF_INVALID_REQUEST and a sentence that begins with the field's path, and returns false.  No
 * state; any thread. */
#ifndef HF_JSON_FIELDS_H
#define HF_JSON_FIELDS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/status.h"

/* An object being read. */
struct fields {
    const json_t *object;
    const char *path; /* where it stands in the body: "" or "sections[2]." */
    struct hf_err *err;
};

enum need { OPTIONAL, REQUIRED, NULLABLE }; /* NULLABLE: optional, and null means absent */

/* The body as an object, for json_decref; NULL if it is not one.  An empty body is {} if
 * `empty_ok`.
 */
HF_MUST_USE json_t *parse_body(const struct buf *body, bool empty_ok, struct hf_err *err);

/* What is wrong with a text that is no JSON, such as "is not valid UTF-8". */
const char *json_fault(const json_error_t *error);

/* Counts the objects, lists and values of a text, which need not be JSON, without reading it.
 * Returns false if there are so many that reading it would take much more memory than its length:
 * `max` objects and lists, or four times as many values.  So does a string or a number of more than
 * JSON_TOKEN_MAX bytes, of which the reader makes several copies.  O(length). */
#define JSON_TOKEN_MAX ((size_t)1 << 20)
bool json_is_moderate(const char *text, size_t len, size_t max);

/* Fails if the object is none, or if a key is not one of `known`, which ends with NULL. */
HF_MUST_USE bool fields_known(const struct fields *f, const char *const *known);

/* Readers of one field.  The outputs are left alone if the field is absent. */
HF_MUST_USE bool field_int(const struct fields *f, const char *name, enum need need, int64_t min,
                           int64_t max, int64_t *ret);
/* Reads any finite number. */
HF_MUST_USE bool field_number(const struct fields *f, const char *name, enum need need,
                              double *ret);
HF_MUST_USE bool field_bool(const struct fields *f, const char *name, enum need need, bool *ret);
/* The limits are in characters, *ret_len is in bytes.  The text is borrowed from the object. */
HF_MUST_USE bool field_text(const struct fields *f, const char *name, enum need need,
                            size_t chars_min, size_t chars_max, const char **ret, size_t *ret_len);
/* Reads a text of a list, which is the field `name`.  It has at least one character. */
HF_MUST_USE bool item_text(const struct fields *f, const char *name, const json_t *list,
                           size_t index, size_t chars_max, const char **ret, size_t *ret_len);
HF_MUST_USE bool field_array(const struct fields *f, const char *name, enum need need,
                             const json_t **ret);
/* Reads a flat object of strings, numbers, booleans and nulls, as compact JSON text for free(). */
HF_MUST_USE bool field_metadata(const struct fields *f, const char *name, char **ret);

/* Reads an RFC 3339 time, or null for 0. */
HF_MUST_USE bool field_time(const struct fields *f, const char *name, int64_t *ret_ms);
/* The same with the offset from UTC that it is written with. */
HF_MUST_USE bool field_local_time(const struct fields *f, const char *name, int64_t *ret_ms,
                                  int64_t *ret_offset_min);

/* Appends the shortest text that reads back as the same number: 0.1, not 0.10000000000000001. */
void put_real(struct buf *out, double value);
/* Appends a string, a number, true, false or null. */
void put_scalar(struct buf *out, const json_t *value);

/* Fails with "<path><name> <what>"; always returns false. */
bool field_fail(const struct fields *f, const char *name, const char *what);

/* Returns whether the text is an https URL, or a path of this server: pages use it as an address as
 * it is. */
bool text_is_link(const char *text);

/* Reads a text that is a number of at most 18 digits and nothing else. */
bool parse_digits(const char *text, size_t len, int64_t *ret);
/* Reads an RFC 3339 time with any offset and up to nine decimals, as milliseconds since 1970,
 * rounded down. */
bool parse_time(const char *text, int64_t *ret_ms);
bool parse_local_time(const char *text, int64_t *ret_ms, int64_t *ret_offset_min);

#endif
