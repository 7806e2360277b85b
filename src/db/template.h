/* Turns the shared statement text (see db.h) into one database's own.  Used by the drivers only. */
#ifndef HF_DB_TEMPLATE_H
#define HF_DB_TEMPLATE_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/status.h"

#define TEMPLATE_PARAMS_MAX 24

struct template_fragment {
    const char *name, *text;
};

struct dialect {
    const struct template_fragment *fragments; /* ended by a NULL name */
    /* True: rows(...) and args(...) vanish and r.x becomes ?n.  (False, for a database that takes
     * arrays, will write unnest.) */
    bool row_at_a_time;
};

/* Appends the statement to `out` and sets *ret_params.  HF_INTERNAL when the text is wrong. */
HF_MUST_USE enum hf_status template_expand(const char *sql, const struct dialect *dialect,
                                           struct buf *out, int *ret_params, struct hf_err *err);

#endif
