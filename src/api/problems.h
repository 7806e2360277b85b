/* What a client reads about a verdict: HTTP status, code, title and usual detail.  The map is here
 * and nowhere else.  Constants; any thread. */
#ifndef HF_API_PROBLEMS_H
#define HF_API_PROBLEMS_H

#include "cell/command.h"
#include "http/problem.h"
#include "model/verdict.h"

/* The problem of a verdict that is not a success. */
const struct problem *problem_of(enum verdict verdict);

/* The problem of a result of the lock service that is not CELL_DONE. */
const struct problem *problem_of_cell(enum cell_result result);

/* The request needs an Idempotency-Key and has none.  No rule gives this answer, so it is the
 * problem of no verdict. */
extern const struct problem problem_key_required;
/* Likewise: the first request with the key waits for the payment provider. */
extern const struct problem problem_key_in_flight;
/* Likewise: a webhook is not signed with a secret of ours. */
extern const struct problem problem_bad_signature;
/* Likewise: the id of a session is malformed. */
extern const struct problem problem_no_such_session;

#endif
