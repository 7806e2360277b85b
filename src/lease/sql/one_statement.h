/* Leases in one exchange, for databases where an exchange is what a lease costs
 * (db_network.run_locked): one statement that excludes others on its name and either does the whole
 * work or nothing.  Then the caller uses a transaction.  Runs on the handle's thread. */
#ifndef HF_LEASE_SQL_ONE_STATEMENT_H
#define HF_LEASE_SQL_ONE_STATEMENT_H

#include "lease/sql/link.h"

/* *ret_done is false if the statement did nothing. */
typedef enum hf_status one_statement(struct sql_lease *s, const struct lease_request *r,
                                     struct lease_verdict *verdict, bool *ret_done,
                                     struct hf_err *err);

/* Serves a single request where the database has db_network.run_locked. */
HF_MUST_USE enum hf_status one_statement_try(struct sql_lease *s, one_statement *call,
                                             const struct lease_request *requests, size_t n,
                                             struct lease_verdict *verdicts, bool *ret_done,
                                             struct hf_err *err);

/* Grants a name that has neither holders nor waiters. */
HF_MUST_USE one_statement one_statement_acquire;
/* Renews the lease, or finds that it is lost: always done. */
HF_MUST_USE one_statement one_statement_renew;
/* Releases the lease, if the owner has one. */
HF_MUST_USE one_statement one_statement_release;

#endif
