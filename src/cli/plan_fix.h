/* Repairs of seating plans: what editors write beyond pretix's format, or leave out of it, where it
 * is plain what was meant.  What could be meant otherwise (a category that the plan does not have,
 * an id that two seats have, a member whose name looks misspelt) is left for the reader to refuse.
 * Pure functions. */
#ifndef HF_CLI_PLAN_FIX_H
#define HF_CLI_PLAN_FIX_H

#include <jansson.h>

/* Repairs a file that has a plan, or the body of a POST /v1/events with a plan.  Takes over `file`
 * and returns what became of it.  Appends a sentence that begins with the path of the field to the
 * list `said` for each repair; seats side by side in a row share one. */
json_t *plan_fix(json_t *file, json_t *said);

#endif
