/* See postgres_values.h. */
#include "db/postgres_values.h"

#include <endian.h>
#include <string.h>

/* Types that have the same number in the catalogue of every server. */
#define OID_BOOL 16
#define OID_BYTEA 17
#define OID_INT8 20
#define OID_INT2 21
#define OID_INT4 23
#define OID_TEXT 25
#define OID_VOID 2278
#define OID_BYTEA_ARRAY 1001
#define OID_TEXT_ARRAY 1009
#define OID_INT8_ARRAY 1016

/* ---- parameters ---- */

static void put_u32(struct buf *out, uint32_t value)
{
    value = htobe32(value);
    buf_put(out, &value, sizeof value);
}

static void put_data(struct buf *out, const struct db_value *value)
{
    uint64_t i = htobe64((uint64_t)value->i);
    if (value->type == DB_INT)
        buf_put(out, &i, sizeof i);
    else if (value->len)
        buf_put(out, value->data, value->len);
}

static uint32_t data_len(const struct db_value *value)
{
    return value->type == DB_INT ? 8 : (uint32_t)value->len;
}

Oid pg_type(enum db_type type, bool array)
{
    if (type == DB_INT)
        return array ? OID_INT8_ARRAY : OID_INT8;
    if (type == DB_TEXT)
        return array ? OID_TEXT_ARRAY : OID_TEXT;
    return array ? OID_BYTEA_ARRAY : OID_BYTEA;
}

/* Writes one column of the rows in the server's binary format of arrays: dimensions, whether there
 * are NULLs, type, length and first index; then each element behind its length. */
static void put_array(struct buf *out, enum db_type type, const struct db_value *first,
                      size_t stride, size_t n)
{
    bool nulls = false;
    for (size_t i = 0; i < n; i++)
        nulls = nulls || first[i * stride].type == DB_NULL;
    put_u32(out, 1);
    put_u32(out, nulls);
    put_u32(out, pg_type(type, false));
    put_u32(out, (uint32_t)n);
    put_u32(out, 1);
    for (size_t i = 0; i < n; i++) {
        const struct db_value *value = &first[i * stride];
        hf_check(value->type == type || value->type == DB_NULL);
        put_u32(out, value->type == DB_NULL ? UINT32_MAX : data_len(value));
        if (value->type != DB_NULL)
            put_data(out, value);
    }
}

void pg_bind(const struct template_params *params, const struct db_value *args, size_t n_rows,
             bool with_count, struct buf *out, struct pg_bound *b)
{
    const struct db_value count = db_int((int64_t)n_rows);
    *b = (struct pg_bound){.n = params->n + with_count};
    out->len = 0;
    for (int i = 0; i < b->n; i++) {
        const struct db_value *value = i < params->n ? &args[i] : &count;
        b->at[i] = out->len;
        if (params->rows && i < params->n) {
            put_array(out, params->types[i], value, (size_t)params->n, n_rows);
        } else {
            b->null[i] = value->type == DB_NULL;
            hf_check(b->null[i] || i == params->n || value->type == params->types[i]);
            put_data(out, value);
        }
        b->lens[i] = (int)(out->len - b->at[i]);
    }
    buf_char(out, '\0'); /* so that there is a byte to point to, even if all values are empty */
}

/* ---- columns ---- */

static bool is_readable(Oid type)
{
    switch (type) {
    case OID_BOOL:
    case OID_BYTEA:
    case OID_INT8:
    case OID_INT2:
    case OID_INT4:
    case OID_TEXT:
    case OID_VOID:
        return true;
    default:
        return false;
    }
}

bool pg_check_types(const PGresult *result, struct hf_err *err)
{
    for (int i = 0; i < PQnfields(result); i++)
        if (!is_readable(PQftype(result, i))) {
            (void)hf_err_set(err, HF_INTERNAL, "column %s has a type that is not read here",
                             PQfname(result, i));
            return false;
        }
    return true;
}

int64_t pg_value_int(const PGresult *result, int row, int column)
{
    const char *data = PQgetvalue(result, row, column);
    uint16_t small;
    uint32_t medium;
    uint64_t large;
    switch (PQgetlength(result, row, column)) {
    case 1:
        return *data;
    case sizeof small:
        memcpy(&small, data, sizeof small);
        return (int16_t)be16toh(small);
    case sizeof medium:
        memcpy(&medium, data, sizeof medium);
        return (int32_t)be32toh(medium);
    case sizeof large:
        memcpy(&large, data, sizeof large);
        return (int64_t)be64toh(large);
    default: /* NULL */
        return 0;
    }
}
