/* The loader: the thread that brings events into memory on their first use.  It builds an event;
 * the event's worker installs it in the view.  It also lists events, which loads none. */
#ifndef HF_ENGINE_LOAD_H
#define HF_ENGINE_LOAD_H

#include "ledger/ledger.h"
#include "view/view.h"

struct engine;
struct worker;

void *loader_main(void *engine);
/* Reads an event with its seats, holds and waiting list; *ret_event is NULL if there is none.
 * Inside a transaction, so that it is the picture of one moment. */
HF_MUST_USE enum hf_status load_event(struct ledger *l, int64_t key, struct event **ret_event,
                                      struct hf_err *err);
/* Asks the loader for an event that no request has named yet. */
void load_in_background(struct engine *e, int64_t event);
/* Folds what other servers wrote into the view, and reads the event's terms if they changed.  Marks
 * the event as stale if the rows do not follow on what the view has.  Adds to `since` the holds
 * whose owners it has to know.  Tells those who follow entries of the waiting list. */
HF_MUST_USE enum hf_status load_since(struct worker *w, struct event *e, struct log_since *since,
                                      struct hf_err *err);
/* Brings an installed event's terms, seats and holds back in line with the ledger, inside the
 * worker's transaction.  Tells those who follow entries if it skips rows of the log. */
HF_MUST_USE enum hf_status load_again(struct worker *w, struct event *e, struct hf_err *err);

#endif
