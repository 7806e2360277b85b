/* GET /v1/events/{e}/seats?at=: the map of an event at a past moment, by the reader of long reads.
 *
 * It takes the map that the view shows and takes back what the log has after the moment (see
 * view/past.h), a page at a time.  A log may have millions of rows, so the reader serves others
 * between two pages; and it works on one such map at a time, the others wait, so that there is the
 * memory of one. */
#ifndef HF_ENGINE_PAST_H
#define HF_ENGINE_PAST_H

#include "engine/command.h"

struct engine;

/* Maps that wait while another is made; what comes then is told that the server is overloaded. */
#define PAST_WAITING_MAX 16

/* The maps that a reader has to make: `first` is in work, the others follow by command.next. */
struct past_queue {
    struct command *first, **end; /* end NULL: the same as &first */
    size_t n;
    struct past_work *work; /* what has been done for `first`; NULL: nothing yet */
};

/* Takes a CMD_MAP_PAST.  If there are too many, it is finished with VERDICT_OVERLOADED. */
void past_queue_put(struct past_queue *q, struct command *c);
/* Reads the next page for the first map, and finishes the command after the last. */
void past_queue_turn(struct past_queue *q, struct engine *e, struct ledger *l);
/* The server stops: finishes all commands with VERDICT_DRAINING. */
void past_queue_close(struct past_queue *q);

#endif
