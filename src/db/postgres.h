/* What tests ask of the PostgreSQL driver beside db.h. */
#ifndef HF_DB_POSTGRES_H
#define HF_DB_POSTGRES_H

#include "db/db.h"

/* How often this connection has waited for an answer to something new. */
int64_t postgres_exchanges(const struct db *db);

#endif
