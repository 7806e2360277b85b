/* GET /v1/waitlist/{w}/stream: what becomes of an entry (wait_topics.h).  The seq of its changes is
 * that of the event's log.  A stream begins with the status that the entry has, unless it waits, and
 * ends with the entry.  On HTTP threads. */
#include "api/routes.h"
#include "api/wait_topics.h"
#include "http/stream.h"
#include "http/stream_hub.h"

static void begin_stream(struct request *r)
{
    struct call *c = call_of(r);
    struct wait_topic *topic = c->waits.topic;
    c->waits.topic = NULL;
    answer_stream(r, &wait_streams, topic);
}

/* A client that knows that the entry has ended need not come back, which 204 tells a browser.  One
 * that knows of more than the log has followed the entry before a restore, and knows nothing.  So
 * has one that was told something of an entry that waits: it begins with a reset. */
static void entry_read(struct request *r)
{
    struct call *c = call_of(r);
    const struct wait_row *row = &c->command.wait_get.row;
    int64_t *after = &r->answer.stream.after;
    if (c->command.verdict != VERDICT_OK) {
        call_answer(r);
        return;
    }
    if (!wait_is_live(row->status) && *after == row->last_seq) {
        answer_out(r, HTTP_NO_CONTENT, NULL);
        return;
    }
    wait_topic_note(c->waits.topic, row->last_seq, row->status);
    if (row->status == WAIT_WAITING && *after > 0 && *after != row->last_seq)
        *after = AFTER_UNKNOWN;
    else if (*after == AFTER_NOW || *after > row->last_seq)
        *after = row->last_seq - (row->status != WAIT_WAITING);
    if (!wait_note_read(c, row, c->command.now, begin_stream))
        begin_stream(r);
}

/* The topic is taken before the entry is read, so that it hears of every change after that. */
void waits_stream(struct request *r)
{
    struct call *c = call_of(r);
    struct id id;
    if (!stream_read_place(r))
        return;
    struct event *e = path_wait(c, &id);
    if (!e)
        return;
    const struct event_terms *terms = event_terms_take(e);
    c->waits.topic = wait_topic_take(call_api(c)->wait_topics, e, id.key, terms->wait_alive_ms);
    event_terms_give(terms);
    c->command.kind = CMD_WAIT_GET;
    c->command.event = e;
    c->command.wait_get.id = id;
    call_submit(c, entry_read);
}
