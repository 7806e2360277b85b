/* I17, for `holdfast verify`: the log of every event that has a waiting list, judged. */
#ifndef HF_CLI_VERIFY_WAITS_H
#define HF_CLI_VERIFY_WAITS_H

#include "ledger/verify.h"

/* Fills VERIFY_TURNS of the report.  Rows that other checks find wrong cannot be replayed, so it
 * does nothing if the report has violations already. */
HF_MUST_USE enum hf_status verify_waits(const char *url, const struct clock *clock,
                                        struct verify_report *report, struct hf_err *err);

#endif
