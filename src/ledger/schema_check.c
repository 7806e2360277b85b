/* See schema_check.h. */
#include "ledger/schema_check.h"

#include <ctype.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "ledger/ledger_internal.h"

/* An empty database in memory, for what our migrations make. */
#define REFERENCE_URL "sqlite::memory:"

/* All catalogue queries give rows of four columns: kind, name, the name as it is shown, and the
 * definition.
 *
 * What SQLite makes itself, and what the lease locks have, is left out if its text creates a table
 * or an index: the other columns of a file that somebody has edited may say anything. */
#define SQLITE_OBJECTS                                                                             \
    "SELECT type, name, name || CASE WHEN tbl_name = name THEN '' ELSE ' on ' || tbl_name END,"    \
    " COALESCE(sql, '') FROM sqlite_master"                                                        \
    " WHERE NOT (type = 'index' AND sql IS NULL)"                                                  \
    " AND NOT (sql LIKE 'CREATE TABLE %' AND name IN ('sqlite_sequence', 'sqlite_stat1',"          \
    " 'sqlite_stat4', 'part_version', 'shared_state', 'leases', 'lease_waiters', 'lease_fences'))" \
    " AND NOT (sql LIKE 'CREATE UNIQUE INDEX %' AND name = 'lease_waiters_owner')"

/* The same schema as PostgreSQL describes it.  Parentheses of indexes are left out, since the
 * databases write them in different places. */
#define POSTGRES_EXPECTED                                                                          \
    "SELECT 'table', name, name, 'table' FROM sqlite_master"                                       \
    " WHERE type = 'table' AND name NOT LIKE 'sqlite%'"                                            \
    " UNION ALL SELECT 'column', m.name || '.' || p.name, m.name || '.' || p.name,"                \
    " CASE lower(p.type) WHEN 'integer' THEN 'bigint' WHEN 'blob' THEN 'bytea'"                    \
    " ELSE lower(p.type) END"                                                                      \
    " || CASE WHEN p.\"notnull\" OR p.pk THEN ' NOT NULL' ELSE '' END"                             \
    " || COALESCE(' DEFAULT ' || p.dflt_value, '')"                                                \
    " FROM sqlite_master AS m, pragma_table_info(m.name) AS p"                                     \
    " WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite%'"                                        \
    " UNION ALL SELECT 'index', name, name || ' on ' || tbl_name,"                                 \
    " replace(replace(sql, '(', ' '), ')', ' ') FROM sqlite_master"                                \
    " WHERE type = 'index' AND sql IS NOT NULL"                                                    \
    " UNION ALL SELECT 'index', name || '_pkey', name || '_pkey on ' || name,"                     \
    " 'CREATE UNIQUE INDEX ' || name || '_pkey ON ' || name || ' ' || columns FROM"                \
    " (SELECT m.name, (SELECT group_concat(k.name, ', ') FROM (SELECT name FROM"                   \
    " pragma_table_info(m.name) WHERE pk > 0 ORDER BY pk) AS k) AS columns"                        \
    " FROM sqlite_master AS m WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite%')"               \
    " WHERE columns IS NOT NULL"

#define POSTGRES_OBJECTS                                                                           \
    "WITH ours AS (SELECT c.oid AS id, c.relname::text AS name, c.relkind::text AS kind,"          \
    " c.relpersistence::text AS persistence, c.relrowsecurity AS secured{ FROM rows(name text)}"   \
    " JOIN pg_class AS c ON c.oid = to_regclass(quote_ident(r.name)))"                             \
    " SELECT 'table', name, name, CASE kind WHEN 'r' THEN 'table' ELSE 'kind ' || kind END"        \
    " || CASE persistence WHEN 'p' THEN '' ELSE ' unlogged' END"                                   \
    " || CASE WHEN secured THEN ' with row security' ELSE '' END FROM ours"                        \
    " UNION ALL SELECT 'column', o.name || '.' || a.attname, o.name || '.' || a.attname,"          \
    " format_type(a.atttypid, a.atttypmod) || CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END" \
    " || COALESCE(' DEFAULT ' || regexp_replace(pg_get_expr(d.adbin, d.adrelid), '::[a-z]+$', "    \
    "''), '')"                                                                                     \
    " || a.attidentity::text || a.attgenerated::text"                                              \
    " FROM ours AS o JOIN pg_attribute AS a"                                                       \
    " ON a.attrelid = o.id AND a.attnum > 0 AND NOT a.attisdropped"                                \
    " LEFT JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum"                  \
    " UNION ALL SELECT 'index', i.relname, i.relname || ' on ' || o.name,"                         \
    " translate(regexp_replace(pg_get_indexdef(x.indexrelid), ' ON .* USING btree ',"              \
    " ' ON ' || o.name || ' '), '()', '  ') || CASE WHEN x.indisvalid THEN '' ELSE ' INVALID' END" \
    " FROM ours AS o JOIN pg_index AS x ON x.indrelid = o.id"                                      \
    " JOIN pg_class AS i ON i.oid = x.indexrelid"                                                  \
    " UNION ALL SELECT 'trigger', t.tgname, t.tgname || ' on ' || o.name, ''"                      \
    " FROM ours AS o JOIN pg_trigger AS t ON t.tgrelid = o.id AND NOT t.tgisinternal"              \
    " UNION ALL SELECT 'rule', w.rulename, w.rulename || ' on ' || o.name, ''"                     \
    " FROM ours AS o JOIN pg_rewrite AS w ON w.ev_class = o.id"                                    \
    " UNION ALL SELECT 'policy', p.polname, p.polname || ' on ' || o.name, ''"                     \
    " FROM ours AS o JOIN pg_policy AS p ON p.polrelid = o.id"                                     \
    " UNION ALL SELECT 'constraint', c.conname, c.conname || ' on ' || o.name, ''"                 \
    " FROM ours AS o JOIN pg_constraint AS c ON o.id IN (c.conrelid, c.confrelid)"                 \
    " AND c.contype NOT IN ('p', 'n') AND NOT (c.contype = 'c' AND c.conname = 'areas_check')"     \
    " UNION ALL SELECT 'heir', h.inhrelid::regclass::text, h.inhrelid::regclass::text"             \
    " || ' of ' || h.inhparent::regclass::text, ''"                                                \
    " FROM ours AS o JOIN pg_inherits AS h ON o.id IN (h.inhrelid, h.inhparent)"

/* ---- what our migrations make ---- */

struct object {
    char kind[16], name[80];
    struct buf definition; /* plain, see put_plainly */
};

/* The schema of one version, as SQLite or as PostgreSQL describes it. */
struct reference {
    VEC(struct object) objects;
};

/* Those of this program's own version, by db_driver.many_writers.  A process keeps what it made;
 * whichever thread is first. */
static struct reference *_Atomic kept[2];

static void reference_free(struct reference *r)
{
    for (size_t i = 0; i < r->objects.n; i++)
        buf_close(&r->objects.v[i].definition);
    vec_close(&r->objects);
    free(r);
}

/* At the end of the process. */
static void free_kept(void)
{
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        struct reference *r = atomic_exchange(&kept[i], NULL);
        if (r)
            reference_free(r);
    }
}

static bool is_word(char c) { return isalnum((unsigned char)c) || c == '_'; }

/* Appends a definition without what does not matter: blanks, and the quotes of plain names. */
static void put_plainly(struct buf *out, const char *text, size_t len)
{
    bool is_blank = false, is_literal = false;
    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        if (c == '\'')
            is_literal = !is_literal;
        if (!is_literal && c == '"') {
            size_t n = 0;
            while (i + 1 + n < len && is_word(text[i + 1 + n]))
                n++;
            if (n && i + 1 + n < len && text[i + 1 + n] == '"') {
                if (out->len && is_word(out->data[out->len - 1]))
                    buf_char(out, ' ');
                buf_put(out, text + i + 1, n);
                i += n + 1;
                is_blank = false;
                continue;
            }
        }
        if (!is_literal && isspace((unsigned char)c)) {
            is_blank = true;
            continue;
        }
        if (is_blank && out->len && is_word(out->data[out->len - 1]) && is_word(c))
            buf_char(out, ' ');
        is_blank = false;
        buf_char(out, c);
    }
}

typedef void object_fn(void *ctx, struct db_stmt *stmt);

static enum hf_status each_object(struct db *db, const char *sql, const struct db_value *args,
                                  size_t n_args, object_fn *object, void *ctx, struct hf_err *err)
{
    struct db_stmt *stmt;
    enum hf_status status = db->driver->prepare(db, sql, &stmt, err);
    if (status == HF_OK)
        status = db->driver->query_many(stmt, args, n_args, err);
    enum db_step step = DB_DONE;
    while (status == HF_OK && (step = db_step(stmt, err)) == DB_ROW)
        object(ctx, stmt);
    return status == HF_OK && step == DB_FAILED ? HF_STORE_UNAVAILABLE : status;
}

/* Copies a column into room of its own, cut to fit, with a question mark for each byte that a
 * terminal would take for something else. */
static void column_name(struct db_stmt *stmt, int column, char *out, size_t size)
{
    size_t len, n = 0;
    const char *text = db_column_data(stmt, column, &len);
    for (; text && n < len && n + 1 < size; n++)
        out[n] = (unsigned char)text[n] < ' ' || text[n] == 127 ? '?' : text[n];
    out[n] = '\0';
}

static void on_reference(void *ctx, struct db_stmt *stmt)
{
    struct reference *r = ctx;
    struct object *o = vec_push(&r->objects);
    size_t len;
    column_name(stmt, 0, o->kind, sizeof o->kind);
    column_name(stmt, 1, o->name, sizeof o->name);
    const char *definition = db_column_data(stmt, 3, &len);
    put_plainly(&o->definition, definition, len);
}

static enum hf_status make_reference(bool of_server, const struct clock *clock, int version,
                                     struct reference *r, struct hf_err *err)
{
    struct db *db = NULL;
    enum hf_status status = db_open(REFERENCE_URL, &(struct db_options){.clock = clock}, &db, err);
    if (status == HF_OK)
        status = ledger_migrate(db, version, err);
    if (status == HF_OK)
        status = each_object(db, of_server ? POSTGRES_EXPECTED : SQLITE_OBJECTS, NULL, 1,
                             on_reference, r, err);
    db_close(db);
    return status;
}

/* One of the program's own version stays with the process.  The caller gives *ret back with
 * put_reference. */
static enum hf_status get_reference(bool of_server, const struct clock *clock, int64_t version,
                                    struct reference **ret, struct hf_err *err)
{
    bool is_kept = version == ledger_migrations_len;
    struct reference *first = is_kept ? atomic_load(&kept[of_server]) : NULL;
    if (first) {
        *ret = first;
        return HF_OK;
    }
    struct reference *r = hf_alloc(sizeof *r);
    enum hf_status status = make_reference(of_server, clock, (int)version, r, err);
    if (status != HF_OK) {
        reference_free(r);
        return status;
    }
    if (is_kept && !atomic_compare_exchange_strong(&kept[of_server], &first, r)) {
        reference_free(r);
        r = first;
    } else if (is_kept) {
        (void)atexit(free_kept);
    }
    *ret = r;
    return HF_OK;
}

static void put_reference(struct reference *r, int64_t version)
{
    if (version != ledger_migrations_len)
        reference_free(r);
}

/* ---- what is there ---- */

struct comparison {
    struct db *db;
    const struct reference *reference;
    bool *is_there;        /* for each of its objects */
    struct buf definition; /* scratch */
    schema_difference_fn *found;
    void *ctx;
};

const char *schema_fault_text(enum schema_fault fault)
{
    static const char *const texts[] = {
        [SCHEMA_FOREIGN] = "is not Holdfast's",
        [SCHEMA_MISSING] = "is missing",
        [SCHEMA_CHANGED] = "is not as Holdfast made it",
    };
    return texts[fault];
}

static bool is_table_kind(const char *kind)
{
    return strcmp(kind, "table") == 0 || strcmp(kind, "column") == 0;
}

static void differ(const struct comparison *c, enum schema_fault fault, bool is_of_table,
                   const char *kind, const char *name)
{
    struct schema_difference d = {.fault = fault, .is_of_table = is_of_table};
    snprintf(d.object, sizeof d.object, "%s %s", kind, name);
    c->found(c->ctx, &d);
}

/* Returns the object's index, or the number of objects if there is none of that name. */
static size_t find(const struct reference *r, const char *kind, const char *name)
{
    size_t i = 0;
    while (i < r->objects.n &&
           (strcmp(r->objects.v[i].kind, kind) != 0 || strcmp(r->objects.v[i].name, name) != 0))
        i++;
    return i;
}

/* A column that is not ours, in a table of ours, makes the table another one. */
static void on_object(void *ctx, struct db_stmt *stmt)
{
    struct comparison *c = ctx;
    char kind[16], name[200], shown[120];
    size_t len;
    column_name(stmt, 0, kind, sizeof kind);
    column_name(stmt, 1, name, sizeof name);
    column_name(stmt, 2, shown, sizeof shown);
    size_t i = find(c->reference, kind, name);
    if (i == c->reference->objects.n) {
        differ(c, SCHEMA_FOREIGN, strcmp(kind, "column") == 0, kind, shown);
        return;
    }
    const struct buf *ours = &c->reference->objects.v[i].definition;
    const char *definition = db_column_data(stmt, 3, &len);
    c->is_there[i] = true;
    c->definition.len = 0;
    put_plainly(&c->definition, definition, len);
    if (c->definition.len != ours->len ||
        (ours->len && memcmp(c->definition.data, ours->data, ours->len) != 0))
        differ(c, SCHEMA_CHANGED, is_table_kind(kind), kind, shown);
}

/* PostgreSQL is asked about our tables alone. */
static enum hf_status compare_server(struct comparison *c, struct hf_err *err)
{
    VEC(struct db_value) names = {0};
    for (size_t i = 0; i < c->reference->objects.n; i++) {
        const struct object *o = &c->reference->objects.v[i];
        if (strcmp(o->kind, "table") == 0)
            *vec_push(&names) = db_text(o->name, strlen(o->name));
    }
    enum hf_status status =
        each_object(c->db, POSTGRES_OBJECTS, names.v, names.n, on_object, c, err);
    vec_close(&names);
    return status;
}

static enum hf_status compare(struct db *db, const struct reference *r, int64_t version,
                              schema_difference_fn *found, void *ctx, struct hf_err *err)
{
    struct comparison c = {.db = db,
                           .reference = r,
                           .is_there = hf_alloc((r->objects.n + 1) * sizeof *c.is_there),
                           .found = found,
                           .ctx = ctx};
    enum hf_status status = db->driver->many_writers
                                ? compare_server(&c, err)
                                : each_object(db, SQLITE_OBJECTS, NULL, 1, on_object, &c, err);
    for (size_t i = 0; i < r->objects.n && status == HF_OK; i++)
        if (version > 0 && !c.is_there[i])
            differ(&c, SCHEMA_MISSING, is_table_kind(r->objects.v[i].kind), r->objects.v[i].kind,
                   r->objects.v[i].name);
    free(c.is_there);
    buf_close(&c.definition);
    return status;
}

enum hf_status schema_compare(struct db *db, const struct clock *clock, int64_t version,
                              schema_difference_fn *found, void *ctx, int64_t *ret_objects,
                              struct hf_err *err)
{
    struct reference *r;
    enum hf_status status = get_reference(db->driver->many_writers, clock, version, &r, err);
    if (status != HF_OK)
        return status;
    status = compare(db, r, version, found, ctx, err);
    if (status == HF_OK)
        *ret_objects = (int64_t)r->objects.n;
    put_reference(r, version);
    return status;
}

/* ---- refusing ---- */

struct schema_refusal {
    struct schema_difference first;
    int64_t n;
};

static void on_difference(void *ctx, const struct schema_difference *difference)
{
    struct schema_refusal *refusal = ctx;
    if (!refusal->n++)
        refusal->first = *difference;
}

static enum hf_status refuse(const struct schema_refusal *r, int64_t version, struct hf_err *err)
{
    char others[40] = "";
    if (r->n > 1)
        snprintf(others, sizeof others, " (and %lld more)", (long long)(r->n - 1));
    if (version == 0)
        return hf_err_set(err, HF_STORE_UNAVAILABLE,
                          "this database is no ledger, and not empty: its %.100s %s%s; name "
                          "another one",
                          r->first.object, schema_fault_text(r->first.fault), others);
    return hf_err_set(
        err, HF_STORE_UNAVAILABLE,
        "the ledger is refused: its %.90s %s%s; `holdfast verify` lists what differs, "
        "%s",
        r->first.object, schema_fault_text(r->first.fault), others,
        r->first.fault == SCHEMA_FOREIGN ? "drop it if you know where it is from"
                                         : "`holdfast restore` makes it anew");
}

/* Compares in a transaction, and under the lock of migrations where there is one, so that version
 * and schema are of one moment.  The reference is made before it, since whoever else opens the
 * ledger waits for that lock.  Compares nothing if *version changes meanwhile. */
static enum hf_status compare_now(struct db *db, const struct clock *clock, int64_t *version,
                                  struct schema_refusal *ret, struct hf_err *err)
{
    int64_t before = *version;
    struct reference *r;
    enum hf_status status = get_reference(db->driver->many_writers, clock, before, &r, err);
    if (status != HF_OK)
        return status;
    status = db->driver->begin(db, err);
    if (status == HF_OK && db->driver->migration_lock)
        status = db->driver->script(db, db->driver->migration_lock, err);
    if (status == HF_OK)
        status = db_schema_version(db, version, err);
    if (status == HF_OK && *version == before)
        status = compare(db, r, before, on_difference, ret, err);
    db->driver->rollback(db);
    put_reference(r, before);
    return status;
}

/* A server's database without a ledger may have tables of others; if one of them has a name of
 * ours, the first migration fails and says so.  db_migrate refuses a ledger of a newer program. */
enum hf_status schema_accept(struct db *db, const struct clock *clock, struct hf_err *err)
{
    struct schema_refusal refusal = {0};
    int64_t version;
    enum hf_status status = db_schema_version(db, &version, err);
    if (status != HF_OK || (version == 0 && db->driver->many_writers))
        return status;
    int64_t before = -1;
    while (status == HF_OK && version != before && version <= ledger_migrations_len) {
        before = version;
        status = compare_now(db, clock, &version, &refusal, err);
    }
    return status == HF_OK && refusal.n ? refuse(&refusal, version, err) : status;
}
