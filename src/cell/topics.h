/* What has happened to names and sessions lately, for the streams that follow them (cell.h has the
 * part for readers).  The cell's thread is the only writer:
 *
 *   effects of an applied entry --topics_collect--> held back --topics_publish--> events of topics
 *
 * Effects are held back until the whole entry has been applied, so that a reader never sees a part
 * of an index: the index is what it resumes from.
 *
 * Bounds: TOPICS_MAX topics; TOPIC_EVENTS_MAX events and TOPIC_BYTES_MAX bytes per topic;
 * TOPICS_BYTES_MAX bytes in all, beyond which a topic with news forgets its events. */
#ifndef HF_CELL_TOPICS_H
#define HF_CELL_TOPICS_H

#include "cell/cell.h"

#define TOPICS_MAX 100000
#define TOPICS_BYTES_MAX ((size_t)64 << 20)
#define TOPIC_EVENTS_MAX 256
#define TOPIC_BYTES_MAX ((size_t)256 << 10)

struct topics;

struct topics *topics_new(void);
void topics_free(struct topics *t); /* every topic has been given back */

/* The topic of a name (`session` 0) or of a session.  NULL: there are too many, or the server does
 * not lead.  Any thread. */
struct cell_topic *topics_get(struct topics *t, int64_t session, const char *name, size_t len);

/* ---- on the cell's thread ---- */

/* Topics can be had from now on, or not any more: then all that there are close, after what was
 * collected. */
void topics_lead(struct topics *t, bool leads);
/* An entry of the journal has had this effect.  Costs next to nothing if there are no topics. */
void topics_collect(struct topics *t, int64_t index, const struct cell_effect *e);
/* All entries up to `index` have been applied: their events appear. */
void topics_publish(struct topics *t, int64_t index);

#endif
