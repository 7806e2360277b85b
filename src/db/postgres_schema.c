/* See postgres_schema.h.
 *
 * Tables are ours if the table of versions says so and their columns are the ones that we made.
 * Their old table of versions stays, with a version that no program knows: a program of an earlier
 * version then refuses to start, instead of creating tables of its own and granting locks that are
 * held here.  A session must not keep numbers of the sequence for later (CACHE 1), since those
 * would be smaller than numbers that others have drawn since. */
#include "db/postgres_schema.h"

#define MOVED_VERSION "1000"
/* Does the table `name` of the schema `old` have these columns? */
#define HAS_COLUMNS(name, n, columns)                                                              \
    "(SELECT count(*) = " n " FROM pg_attribute AS a"                                              \
    " WHERE a.attrelid = to_regclass(format('%I.%I', old, '" name "'))"                            \
    " AND (a.attname, format_type(a.atttypid, NULL)) IN (" columns "))"
#define MOVE(kind, name)                                                                           \
    " EXECUTE format('ALTER " kind " %I.%I SET SCHEMA " PG_SCHEMA "', old, '" name "');"

/* clang-format off */
const char pg_schema_script[] =
    PG_MIGRATION_LOCK
    "DO $do$ DECLARE old text; last bigint; BEGIN"
    " IF to_regnamespace('" PG_SCHEMA "') IS NULL THEN CREATE SCHEMA " PG_SCHEMA "; END IF;"
    " IF to_regclass('" PG_NUMBERS "') IS NOT NULL THEN RETURN; END IF;"
    " SET LOCAL search_path TO DEFAULT;"
    " SELECT n.nspname INTO old FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace"
    " WHERE c.oid = to_regclass('part_version') AND n.nspname <> '" PG_SCHEMA "';"
    " SET LOCAL search_path TO " PG_SEARCH_PATH ";"
    " IF old IS NOT NULL THEN"
    " IF " HAS_COLUMNS("part_version", "2", "('part', 'text'), ('version', 'bigint')")
    " AND " HAS_COLUMNS("leases", "4", "('name', 'bytea'), ('owner', 'bytea'),"
                        " ('fence', 'bigint'), ('expires_at', 'bigint')")
    " AND " HAS_COLUMNS("lease_waiters", "3", "('name', 'bytea'), ('owner', 'bytea'),"
                        " ('ticket', 'bigint')")
    " AND to_regclass(format('%I.holdfast_numbers', old)) IS NOT NULL THEN"
    " EXECUTE format('SELECT max(version) FROM %I.part_version WHERE part = ''leases''', old)"
    " INTO last;"
    " IF last IN (1, 2) THEN"
    MOVE("TABLE", "leases") MOVE("TABLE", "lease_waiters")
    " IF last = 2 THEN" MOVE("TABLE", "lease_fences") " END IF;"
    MOVE("SEQUENCE", "holdfast_numbers")
    " CREATE TABLE " PG_SCHEMA ".part_version (part text NOT NULL, version bigint NOT NULL);"
    " INSERT INTO " PG_SCHEMA ".part_version SELECT 'leases', generate_series(1, last);"
    " EXECUTE format('INSERT INTO %I.part_version VALUES (''leases'', " MOVED_VERSION ")', old);"
    " END IF; END IF; END IF;"
    " CREATE SEQUENCE IF NOT EXISTS " PG_NUMBERS " CACHE 1;"
    " END $do$";
/* clang-format on */
