/* I17 on the log of an event, for `holdfast verify`: reads the event, its waiting list and its log
 * on a connection of the caller's, and lets rules/fair.h judge it.  Needs no running engine. */
#ifndef HF_ENGINE_FAIRNESS_H
#define HF_ENGINE_FAIRNESS_H

#include "ledger/ledger.h"
#include "rules/fair.h"

/* Judges what is left of the log, in one transaction that only reads.  *ret_known is false, and
 * *ret is untouched, if the event has no waiting list, or a log that begins too late to tell who
 * waited.  Otherwise fair_close closes *ret.  O(seats + rows), and the log is read twice. */
HF_MUST_USE enum hf_status fairness_judge(struct ledger *l, int64_t event, bool *ret_known,
                                          struct fair *ret, struct hf_err *err);

#endif
