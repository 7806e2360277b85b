/* Entries of waiting lists that clients follow.  A topic is the last known state of one entry, shared
 * by all streams of it; the engine's workers tell of changes (engine_config.waits_changed).
 *
 * A topic ends with its entry.  It also ends when what became of it was missed, and after a while, so
 * that clients come back: an entry ends if nobody reads it, and a stream is read when it begins.  Any
 * thread. */
#ifndef HF_API_WAIT_TOPICS_H
#define HF_API_WAIT_TOPICS_H

#include "api/api.h"
#include "view/view.h"

struct wait_topics;
struct wait_topic;

/* The topic of that entry, with one reference; `alive_ms` is wait_alive_ms of its event, 0 where the
 * list was switched off and only offers go on.  The event stays in memory while there is a topic. */
struct wait_topic *wait_topic_take(struct wait_topics *topics, struct event *e, int64_t entry,
                                   int64_t alive_ms);
void wait_topic_give(struct wait_topic *t); /* accepts NULL */
/* The entry had this status as of its row `seq` of the log. */
void wait_topic_note(struct wait_topic *t, int64_t seq, enum wait_status status);

extern const struct stream_source wait_streams;

#endif
