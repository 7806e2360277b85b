/* The schema of shared connections (PG_SCHEMA): its creation, and the move of what earlier versions
 * created in the default schema of the first role that connected.  Internal to src/db/postgres*.c.
 */
#ifndef HF_DB_POSTGRES_SCHEMA_H
#define HF_DB_POSTGRES_SCHEMA_H

#include "db/postgres_link.h"

/* Whoever has it may be idle for longer than another writer: only those who open the database wait
 * for it, and a start that the server ended would have to be repeated by hand. */
#define PG_MIGRATION_LOCK                                                                          \
    "SET LOCAL lock_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = '1min';"          \
    " SELECT pg_advisory_xact_lock(" PG_LOCK_MIGRATION ");"

/* To be run if the sequence does not exist. */
extern const char pg_schema_script[];

#endif
