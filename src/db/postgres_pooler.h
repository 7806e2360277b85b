/* Notices a connection pooler that gives each transaction to another session of the server
 * (PgBouncer with pool_mode = transaction).  Settings, prepared statements, advisory locks and
 * LISTEN belong to a session, so a lock behind such a pooler would fail now and then, and without
 * saying why.  Internal to src/db/postgres*.c. */
#ifndef HF_DB_POSTGRES_POOLER_H
#define HF_DB_POSTGRES_POOLER_H

#include "db/postgres_link.h"

/* For a new connection, before it is in pipeline mode: HF_STORE_UNAVAILABLE if there is such a
 * pooler.  One exchange; where there is any pooler, one more connection for a moment. */
HF_MUST_USE enum hf_status pg_pooler_check(struct pg_link *l, struct hf_err *err);

#endif
