/* The part of `verify` that comes before the rows: is the schema ours, and is the file sound? */
#ifndef HF_LEDGER_VERIFY_DATABASE_H
#define HF_LEDGER_VERIFY_DATABASE_H

#include "db/db.h"
#include "ledger/verify.h"

/* Inside the transaction, before the rows: what is read of a damaged file, or through a view that
 * has the name of a table, need not be what is stored. */
HF_MUST_USE enum hf_status verify_database(struct db *db, const struct clock *clock,
                                           struct verify_report *report, struct hf_err *err);
/* The rows could not be read, as `status` and *err say.  If the reason is the database itself, says
 * that instead; returns the status that *err has then. */
HF_MUST_USE enum hf_status verify_database_explains(const struct verify_report *report,
                                                    enum hf_status status, struct hf_err *err);

#endif
