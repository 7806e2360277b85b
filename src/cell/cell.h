/* The lock service of a server: one thread that runs a node (node.h) on a journal (journal.h).
 * HTTP threads hand requests over and get them back by pending_done; streams read what the thread
 * published.
 *
 *   HTTP threads --cell_submit--> queue --> node --> journal
 *                                            |
 *   HTTP threads <--pending_done-- answers --+--> topics --> streams */
#ifndef HF_CELL_CELL_H
#define HF_CELL_CELL_H

#include "base/metrics.h"
#include "cell/node.h"
#include "cell/topics.h"

struct cell;

struct cell_config {
    const char *journal_url;
    const struct clock *clock;
    const char *url; /* --advertise: as clients and other servers reach this one */
    int64_t timeout_ms;
    bool may_lose;
    size_t queue_max; /* 0: 16384 */
    struct metrics *metrics;
};

/* Opens the journal and starts the thread.  HF_INVALID_REQUEST: the URL is at fault. */
HF_MUST_USE enum hf_status cell_start(const struct cell_config *config, struct cell **ret,
                                      struct hf_err *err);
/* Resigns, if the server is the master, and refuses what comes from now on.  Returns when it has
 * resigned, at the latest after limit_ms. */
void cell_retire(struct cell *c, int64_t limit_ms);
/* Answers everything, ends the thread and frees.  Accepts NULL. */
void cell_stop(struct cell *c);

/* Any thread.  Never blocks; `r` comes back by pending_done, perhaps within the call. */
void cell_submit(struct cell *c, struct cell_request *r);
/* The client of a submitted request has gone.  Harmless if it has been answered meanwhile, as long
 * as the request still exists. */
void cell_gone(struct cell *c, struct cell_request *r);

/* The URL of the master if this server is not it, "" if none is known; NULL if this server leads.
 * Any thread; a hint that may be out of date. */
const char *cell_redirect(const struct cell *c, char ret[CELL_URL_MAX + 1]);
/* Does the journal answer?  Otherwise `why` says what is wrong.  Any thread. */
bool cell_ready(const struct cell *c, char *why, size_t size);

/* ---- streams: changes of one name, or of one session ---- */

/* The topic of a name, or of a session by its key.  NULL: there are too many topics, or the server
 * does not lead.  Give it back with cell_topic_unref, before cell_stop.  A topic of a session that
 * has ended before is never closed: take the topic first, then look whether the session exists. */
struct cell_topic *cell_topic_of_name(struct cell *c, const char *name, size_t len);
struct cell_topic *cell_topic_of_session(struct cell *c, int64_t session);

#endif
