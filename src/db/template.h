/* Turns the shared text of a statement (see db.h) into that of one database.  Used by the drivers
 * only. */
#ifndef HF_DB_TEMPLATE_H
#define HF_DB_TEMPLATE_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/status.h"
#include "db/db.h"

#define TEMPLATE_PARAMS_MAX 32

/* What replaces a word in braces.  A `%` in the text stands for the word's argument. */
struct template_fragment {
    const char *name, *text;
};

struct dialect {
    const struct template_fragment *fragments; /* ends with a NULL name */
    /* If true, rows(...) and args(...) vanish and r.x becomes ?n.  If false, for a database that
     * takes arrays, rows(...) becomes (SELECT unnest($1::bigint[]) AS ..., ...) AS r, and each r.x
     * of args(...) becomes $n::bigint. */
    bool row_at_a_time;
};

struct template_params {
    int n;
    enum db_type types[TEMPLATE_PARAMS_MAX];
    bool rows; /* it has rows(...) or values(...), not args(...) */
    bool slow; /* it has {slow} */
};

/* Appends the statement to `out`.  Fails with HF_INTERNAL if the text is wrong. */
HF_MUST_USE enum hf_status template_expand(const char *sql, const struct dialect *dialect,
                                           struct buf *out, struct template_params *ret_params,
                                           struct hf_err *err);

#endif
