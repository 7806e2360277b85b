/* Is the schema of a database the one that our migrations make?  A trigger, a rule or a changed
 * table that somebody else put there would change rows behind our backs, so the server and `verify`
 * refuse such a ledger, and `restore` takes over rows and nothing else.  Any thread.
 *
 * What is ours follows from the migrations, which are run on an empty database in memory, up to the
 * version that the ledger says it has.  A ledger is always of one version as a whole, since each
 * migration is one transaction.
 * - SQLite: every object of the file must be there, with the text that SQLite has kept of its
 *   definition.  Allowed besides are what SQLite makes itself (its own indexes and statistics), and
 *   the tables of the lease locks, which may live in the same file.
 * - PostgreSQL: our tables with their columns and indexes must be there, and nothing else may be
 *   attached to them: no trigger, rule, policy, constraint, index, column, parent or child.  Tables
 *   of others in the same database, and views of ours, cannot change our rows and are allowed. */
#ifndef HF_LEDGER_SCHEMA_CHECK_H
#define HF_LEDGER_SCHEMA_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "db/db.h"

enum schema_fault {
    SCHEMA_FOREIGN, /* the object is not ours */
    SCHEMA_MISSING, /* an object of ours is not there */
    SCHEMA_CHANGED, /* an object of ours is not as we made it */
};

struct schema_difference {
    enum schema_fault fault;
    /* The object is one of our tables, or a column of one: rows cannot be read as ours. */
    bool is_of_table;
    char object[160]; /* "trigger holds_seen on holds", printable */
};
typedef void schema_difference_fn(void *ctx, const struct schema_difference *difference);

/* Calls `found` for each difference between the database and the schema of this version, and counts
 * the objects that were compared.  Version 0, of a database without a ledger, has at most the
 * table of versions.  Reads only; on PostgreSQL the caller keeps others from migrating
 * meanwhile, by a transaction. */
HF_MUST_USE enum hf_status schema_compare(struct db *db, const struct clock *clock, int64_t version,
                                          schema_difference_fn *found, void *ctx,
                                          int64_t *ret_objects, struct hf_err *err);

/* What is wrong, behind the name of the object: "is not Holdfast's". */
const char *schema_fault_text(enum schema_fault fault);

/* Refuses a database whose schema is not ours, before a writer migrates it.  The message says what
 * is wrong and what to do. */
HF_MUST_USE enum hf_status schema_accept(struct db *db, const struct clock *clock,
                                         struct hf_err *err);

#endif
