/* The lines of the queues: one a hash of event and seat, in the memory of this process.
 * Thread-safe. */
#ifndef HF_LAB_LINE_H
#define HF_LAB_LINE_H

#include "lab/strategy.h"

/* Stands in the line of each seat until it is at the head of all; the lines, for lines_leave. */
uint64_t lines_enter(const struct strategy_want *want);
void lines_leave(uint64_t mine);

#endif
