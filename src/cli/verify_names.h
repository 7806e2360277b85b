/* The words of a report's violations, with the ids and names that clients use.
 *
 * The checks speak of rows: `event 3, seat 17: in status held by hold 3298534883329`.  People know
 * `evt_..., seat Stalls-A-12: ... by hold_0000000006j*****************`.  The secrets of holds and
 * bookings are masked, as in the API's lists.  A number that stands for nothing stays a number. */
#ifndef HF_CLI_VERIFY_NAMES_H
#define HF_CLI_VERIFY_NAMES_H

#include "ledger/verify.h"

/* Rewrites the examples of all violations.  Opens the ledger only if there are any, and reads each
 * event that they name.  Examples stay as they are if the ledger cannot be read. */
void verify_names(const char *ledger_url, const struct clock *clock, struct verify_report *report);

#endif
