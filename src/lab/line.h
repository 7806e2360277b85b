/* Waiting lines for the queue strategies, first come, first served.  A hash of event and seat
 * chooses one of a fixed number of lines, all in the memory of this process.  Thread-safe. */
#ifndef HF_LAB_LINE_H
#define HF_LAB_LINE_H

#include "lab/strategy.h"

/* Waits until the caller is at the head of the line of every seat that it wants.  Returns the set
 * of these lines, for lines_leave. */
uint64_t lines_enter(const struct strategy_want *want);
void lines_leave(uint64_t entered);

#endif
