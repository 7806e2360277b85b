/* Folding what other servers wrote into the view (I11, I13).  On the worker's thread. */
#ifndef HF_VIEW_CATCH_UP_H
#define HF_VIEW_CATCH_UP_H

#include "view/view.h"

/* Do rows that the view has not seen yet say that the event's terms were changed?  The log does not
 * say how; event_set_terms must be called with the new ones first. */
bool catch_up_changes_terms(const struct event *e, const struct log_since *since);
/* Appends the holds whose owners must be known to count what such rows book and free, and that
 * neither the view nor `since` has.  ledger_since_read adds them to `since`; without them, catch_up
 * fails. */
struct hold_keys {
    VEC(int64_t) list; /* one may be listed twice */
};
void catch_up_wants(const struct event *e, const struct log_since *since, struct hold_keys *ret);
/* Folds every row of this event that the view has not seen yet.  Returns false if the rows do not
 * follow on what the view has, or do not fit the event: the event must then be loaded again. */
bool catch_up(struct view *v, struct event *e, const struct log_since *since);

#endif
