/* Subscribers of topics, and the messages that they share.  Each loop has a hub and owns all of it:
 * no locks, plain reference counts.
 *
 *   topic's changes --hub_round--> message, encoded once --> recent messages of <-- positions of
 *                                                            the topic's channel     subscribers
 *
 * A subscriber is a position: the number of the next message it needs.  What it missed before it
 * came is one message of its own, or is shared with other subscribers that missed the same.
 * Messages carry states, not differences, so a message that reaches further back than its reader
 * needs does no harm: the messages of a subscriber, applied in turn to the state of the seq it
 * began with, give the state of the last message's seq (I13).
 *
 * Bounds: RECENT_MAX messages and RECENT_BYTES_MAX bytes per channel; MESSAGE_BYTES_MAX per message
 * and MESSAGES_BYTES_MAX for all messages alive in all hubs.  A message that would exceed them
 * becomes `event: reset`, some sixty bytes, and the client reads the whole state again.
 *
 * Slow readers: a message that only they still hold is pinned.  A part of the memory is kept
 * for what is new, so newcomers are reset before it is used, and hub_is_short asks the owner to cut
 * off readers that pin messages.  Encoding what newcomers missed may take a tenth of the time;
 * those who come beyond that are reset, unless they share a message that is there already. */
#ifndef HF_HTTP_STREAM_HUB_H
#define HF_HTTP_STREAM_HUB_H

#include "base/clock.h"
#include "http/stream_source.h"

#define RECENT_MAX 128 /* over ten seconds of a busy topic */
#define RECENT_BYTES_MAX ((size_t)4 << 20)
#define MESSAGE_BYTES_MAX ((size_t)2 << 20)
#define MESSAGES_BYTES_MAX ((size_t)64 << 20)
#define MISSED_MAX 8
#define REPLAYS_PART 10          /* of the time, that encoding for newcomers may take: a tenth */
#define REPLAYS_BURST_US 1000000 /* over which that is reckoned */

struct hub;

struct message {
    struct hub *hub;
    unsigned refs;
    int64_t seq;
    int64_t since_us;  /* no change in it is older; 0: not known, since it is for newcomers */
    struct buf text;   /* a whole server-sent event */
    struct buf packed; /* the same as a block of a gzip stream; empty until a reader wants it */
    bool is_pinned;    /* only readers have it */
};

struct subscriber {
    struct channel *channel; /* NULL: not subscribed */
    struct subscriber *prev, *next;
    struct message *missed; /* to be sent first; NULL: nothing */
    uint64_t next_no;       /* the number of the channel's next message for it */
    int64_t seq;            /* it has everything up to here */
};

#define HUB_BUCKETS 1024
/* A hub in which only `bytes_max` is set is empty. */
struct hub {
    struct channel *buckets[HUB_BUCKETS];
    struct channel *channels; /* those with subscribers */
    size_t bytes, bytes_max;  /* of all messages */
    size_t pinned_bytes;      /* of those that are pinned */
    int64_t looked_us;        /* when the last round was */

    const struct clock *clock; /* measures what replays cost; NULL: they are not rationed */
    int64_t replays_us;        /* when the ration of replays is whole again */
    /* May something be encoded for this newcomer alone?  NULL: yes. */
    bool (*may_replay)(struct subscriber *s);
};

/* Call this when all subscribers have left. */
void hub_close(struct hub *h);

/* Subscribes to a topic, from a seq on or from one of these places: */
#define AFTER_NOW (-1)     /* changes from now on */
#define AFTER_UNKNOWN (-2) /* a place that cannot be found: begins with a reset */
/* Takes over a reference to the topic, if the source counts them. */
void hub_join(struct hub *h, struct subscriber *s, const struct stream_source *source, void *topic,
              int64_t after);
/* Does nothing for a subscriber that is not subscribed. */
void hub_leave(struct hub *h, struct subscriber *s);

/* Why there is no message for a subscriber. */
enum hub_place {
    HUB_WAITS,  /* nothing has changed */
    HUB_BEHIND, /* the message that it needs has been dropped */
    HUB_ENDED   /* it has had the topic's last message */
};
/* The subscriber's next message, to be given back with message_unref; NULL: there is none, and
 * *ret_place says why.  O(1). */
struct message *hub_next(struct subscriber *s, enum hub_place *ret_place);
void message_unref(struct message *m); /* accepts NULL */
/* Are messages pinned that use up what is kept for new ones?  Asked before a round, whose caller
 * then makes subscribers leave that have such messages. */
bool hub_is_short(const struct hub *h);
/* The bytes for a reader of gzip or of plain text.  A message is compressed at most once. */
const struct buf *message_bytes(struct message *m, bool packed);

/* Encodes what has changed since the last round, once per topic, and calls `wake` for each of its
 * subscribers, also if the topic has ended.  Returns how many were woken.  A topic whose seq has
 * not moved costs one comparison. `now_us` is on any one clock; it dates messages (since_us). */
size_t hub_round(struct hub *h, int64_t now_us, void (*wake)(struct subscriber *s));

#endif
