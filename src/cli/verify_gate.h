/* I12, for `holdfast verify --gate URL`: what the gate has, against the ledger. */
#ifndef HF_CLI_VERIFY_GATE_H
#define HF_CLI_VERIFY_GATE_H

#include "ledger/verify.h"

/* Fills VERIFY_GATE.  The gate is read first: an entry whose hold is over by then is one too many.
 */
HF_MUST_USE enum hf_status verify_gate(const char *ledger_url, const char *gate_url,
                                       struct verify_report *report, struct hf_err *err);

#endif
