/* What the log says of the lock service, besides what the node says of its journal.  Names and
 * labels are in it, ids of sessions and owners are not. */
#ifndef HF_CELL_CELL_LOG_H
#define HF_CELL_CELL_LOG_H

#include "cell/node.h"

/* Logs what has changed between two looks at a node: its role, whom it follows, expired sessions.
 */
void cell_log_changes(const struct node_status *was, const struct node_status *is);
/* Logs a refused cycle.  At most one line in a second: *last_us is when the last one was. */
void cell_log_deadlock(const struct cell_verdict *v, int64_t now_us, int64_t *last_us);

#endif
