/* Values in PostgreSQL's binary format: the parameters of a statement, and the columns of an
 * answer. Pure.  Internal to src/db/postgres*.c. */
#ifndef HF_DB_POSTGRES_VALUES_H
#define HF_DB_POSTGRES_VALUES_H

#include <libpq-fe.h>

#include "db/template.h"

/* Returns the server's type of a parameter, or of an array of them. */
Oid pg_type(enum db_type type, bool array);

/* The parameters of one call, as places in a buffer. */
struct pg_bound {
    int n;
    bool null[TEMPLATE_PARAMS_MAX + 1];
    size_t at[TEMPLATE_PARAMS_MAX + 1];
    int lens[TEMPLATE_PARAMS_MAX + 1];
};
/* Writes n_rows rows of parameters to `out`: one array per parameter if the statement has
 * rows(...), else the values of the only row.  `with_count` adds the number of rows as the last
 * parameter. */
void pg_bind(const struct template_params *params, const struct db_value *args, size_t n_rows,
             bool with_count, struct buf *out, struct pg_bound *ret);

/* Returns false, with `err` set, if a column has a type that is not read here: our mistake. */
bool pg_check_types(const PGresult *result, struct hf_err *err);
/* Reads an integer or boolean of any size; NULL is 0. */
int64_t pg_value_int(const PGresult *result, int row, int column);

#endif
