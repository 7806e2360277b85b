/* What has happened to names and sessions lately, for the streams that follow them.  Only a
 * thread that has the cell's node_lock (cell.c) writes:
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

#include "cell/state.h"

#define TOPICS_MAX 100000
#define TOPICS_BYTES_MAX ((size_t)64 << 20)
#define TOPIC_EVENTS_MAX 256
#define TOPIC_BYTES_MAX ((size_t)256 << 10)

/* ---- topics: changes of one name, or of one session ----
 * A topic is what a stream follows.  It keeps its recent events.  Any thread.
 *
 *   a name      CELL_EFFECT_GRANTED, RELEASED, LOST, VALUE
 *   a session   CELL_EFFECT_GRANTED, RELEASED, LOST, WANTED
 *
 * A topic is made when somebody first asks for it, so it knows what happened from then on.  Its seq
 * is the index of the journal: all events of an entry have the same one and appear together. */

struct cell_topic;

struct cell_event {
    int64_t index; /* of the journal */
    enum cell_effect_kind kind;
    char name[CELL_NAME_MAX + 1];
    char label[CELL_LABEL_MAX + 1];
    char owner[CELL_OWNER_TEXT_SIZE]; /* "": none */
    enum cell_mode mode;
    int64_t fence;
    char *value; /* of CELL_EFFECT_VALUE; NULL: none */
    size_t value_len;
};

/* Gives a topic back.  Accepts NULL. */
void cell_topic_unref(struct cell_topic *t);
/* The seq of its last event or, if there was none, of the moment it was made. */
int64_t cell_topic_seq(const struct cell_topic *t);
/* The server was deposed, or the session has ended: no event will follow. */
bool cell_topic_is_closed(const struct cell_topic *t);
/* Calls `each` with the events after `seq`, oldest first, in one step.  Returns false without
 * calling it if some of them are not remembered, or if the journal does not go as far as `seq`. */
bool cell_topic_events(struct cell_topic *t, int64_t seq,
                       void (*each)(void *context, const struct cell_event *e), void *context);

/* ---- all topics of a cell ---- */

struct topics;

struct topics *topics_new(void);
void topics_free(struct topics *t); /* every topic has been given back */

/* The topic of a name (`session` 0) or of a session.  NULL: there are too many, or the server does
 * not lead.  Any thread. */
struct cell_topic *topics_get(struct topics *t, int64_t session, const char *name, size_t len);

/* ---- with the cell's node_lock ---- */

/* Topics can be had from now on, or not any more: then all that there are close, after what was
 * collected. */
void topics_lead(struct topics *t, bool leads);
/* An entry of the journal has had this effect.  Costs next to nothing if there are no topics. */
void topics_collect(struct topics *t, int64_t index, const struct cell_effect *e);
/* All entries up to `index` have been applied: their events appear. */
void topics_publish(struct topics *t, int64_t index);

#endif
