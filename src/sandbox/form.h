/* Form-encoded parameters as Stripe's clients send them: `metadata[order]=7&expand[]=customer`.
 * Names keep their brackets, so a nested parameter is found by its whole name.  Reads foreign
 * bytes; pure functions, without a thread of their own. */
#ifndef HF_SANDBOX_FORM_H
#define HF_SANDBOX_FORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/status.h"
#include "base/vec.h"

#define FORM_ENTRIES_MAX 256
#define FORM_NAME_MAX 128

/* Offsets into form.text, since that grows while entries are added.  Both texts end in NUL. */
struct form_entry {
    uint32_t name, value;
};

/* Zeroed, it has no parameters. */
struct form {
    struct buf text;
    VEC(struct form_entry) entries;
};

/* Adds the parameters of a form-encoded text.  Fails on a broken escape, on NUL, on text that is
 * not UTF-8, on names with unbalanced brackets, and beyond the limits above. */
HF_MUST_USE bool form_parse(struct form *f, const char *text, size_t len, struct hf_err *err);
/* Adds one parameter that has been decoded already, with the same checks. */
HF_MUST_USE bool form_add(struct form *f, const char *name, const char *value, struct hf_err *err);
void form_close(struct form *f); /* accepts a zeroed struct */

const char *form_name(const struct form *f, size_t i);
const char *form_value(const struct form *f, size_t i);

/* The value of a parameter, or NULL; of several with this name, the last. */
const char *form_get(const struct form *f, const char *name);
/* Does a name fit a pattern?  In a pattern `[*]` stands for any key, `[]` for any place in a list,
 * empty or a number. */
bool form_matches(const char *pattern, const char *name);
/* The index of the first entry from `from` on whose name fits; the number of entries if none does.
 */
size_t form_find(const struct form *f, const char *pattern, size_t from);
/* The first name that none of the patterns (up to NULL) fits; NULL: all fit. */
const char *form_unknown(const struct form *f, const char *const *patterns);

/* The key of `metadata[key]`, which `out` has FORM_NAME_MAX bytes for. */
void form_key(const char *name, char *out);
/* Reads a whole number without sign, blanks or leading zeros.  Returns false if it is none. */
bool form_parse_int(const char *text, int64_t *ret);
/* Appends `name=value`, percent-encoded, and before it `&` unless `out` is empty. */
void form_encode(struct buf *out, const char *name, const char *value);

/* SHA-256 over the parameters, whatever order they came in. */
void form_digest(const struct form *f, const char *prefix, uint8_t ret[32]);

#endif
