/* What the strategies with a counter in Redis share: the job that repairs the counter. */
#ifndef HF_LAB_COUNTER_H
#define HF_LAB_COUNTER_H

#include "lab/strategy.h"

extern const struct strategy strategy_counter;

/* Sets the counter of an event to the number of its available rows, as an operator's job does every
 * minute.  A sale that is between its two steps is counted as a free place; the rows refuse the
 * request too many that the counter then lets through. */
HF_MUST_USE bool counter_reconcile(const struct strategy_settings *settings, const char *event,
                                   struct hf_err *err);

#endif
