/* I12, for `holdfast verify --gate URL`: the gate's entries compared with the ledger. */
#ifndef HF_CLI_VERIFY_GATE_H
#define HF_CLI_VERIFY_GATE_H

#include "ledger/verify.h"

/* Fills VERIFY_GATE of the report.  The gate is read before the ledger, so an entry whose hold has
 * ended by then should have been deleted. */
HF_MUST_USE enum hf_status verify_gate(const char *ledger_url, const char *gate_url,
                                       const struct clock *clock, struct verify_report *report,
                                       struct hf_err *err);

#endif
