/* Deletes rows of names that are not used any more, and fences that need not be remembered.  Runs
 * on the handle's thread, after a call that succeeded. */
#ifndef HF_LEASE_SQL_SWEEP_H
#define HF_LEASE_SQL_SWEEP_H

#include "lease/sql/link.h"

/* Sweeps if it is time; `verdict` is that of an acquire. */
void sql_sweep(struct sql_lease *s, const struct lease_verdict *verdict);

#endif
