/* Server-sent events: a stream is a connection with a position among the messages of a topic
 * (stream_source.h, stream_hub.h).  It lives in the loop that read its request.
 *
 * Pace: rounds of a loop are at least 112 ms apart, so that with the message that opens a stream no
 * client gets more than ten in a second.  Each message of a round adds 100 us to the pause, or 1 us
 * per 300 bytes if that is more, up to 2 s, so that requests keep most of the machine: 10,000
 * readers of a busy topic get a message a second each.  The messages of a round leave in slices,
 * between which requests have their turn.
 *
 * Dead clients: a client that shuts down its sending direction counts as gone.  A client whose
 * machine vanished is found by the comment that is sent within 15 s of silence, which TCP gives up
 * on.  Slow clients: one that takes 30 s for a message, or falls out of the channel's recent
 * messages, is cut off and resumes with Last-Event-ID.  So is the slowest of those that keep
 * messages which nobody else needs, when these use up what is kept for new ones (stream_hub.h).
 *
 * Reconnecting: a stream begins with a `retry:` field and, when the server drains or the topic
 * ends, ends with another, both drawn at random for each stream.  So the readers of a server that
 * is stopped, or lost, come back one after the other: within RETRY_SPREAD_MS, or at RETRIES_A_MS if
 * they are many.
 *
 * Memory: struct conn and struct stream, and up to twice SEND_BUFFER in the kernel while the client
 * does not read.  Messages are shared and bounded, see stream_hub.h. */
#ifndef HF_HTTP_STREAM_H
#define HF_HTTP_STREAM_H

#include "http/request.h"
#include "http/stream_source.h"

/* After how many milliseconds a reader is to reconnect: at least RETRY_MIN_MS, and up to the spread
 * longer. */
#define RETRY_MIN_MS 1000
#define RETRY_SPREAD_MS 4000
#define RETRIES_A_MS 5

/* How often something is encoded for streams of one address alone that begin in the past
 * (QUOTA_REPLAYS). */
#define REPLAYS_PER_MINUTE 60
#define REPLAYS_BURST 60

/* ---- for handlers ---- */

/* Reads where the client wants to begin.  Returns false if the request has been answered with 400.
 */
bool stream_read_place(struct request *r);
/* Answers with the changes of a topic from there on.  The route must say `streams`.  Takes over a
 * reference to the topic, if the source counts them, also if the answer is a refusal. */
void answer_stream(struct request *r, const struct stream_source *source, void *topic);

/* ---- for the loop ---- */

struct conn;
struct loop;
struct stream;

/* The connection's request has been answered with a topic, and the head is in r->answer_head. */
void stream_open(struct conn *c);
void stream_close(struct stream *s); /* with its connection */
void stream_event(struct stream *s, uint32_t events);
void stream_due(struct stream *s);

void streams_open(struct loop *l);
void streams_close(struct loop *l); /* when all connections are closed */
/* Sends some of what there is to send; less if requests are waiting. */
void streams_turn(struct loop *l, bool busy);
/* When streams_turn has something to do; -1: there are no streams. */
int64_t streams_next_us(const struct loop *l);
/* Ends every stream of the loop, now and from now on. */
void streams_end(struct loop *l);

#endif
