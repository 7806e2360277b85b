/* Who follows which event, and the messages they share.  Belongs to the streams' thread (stream.c)
 * altogether: no locks, plain reference counts.
 *
 *   event's feed --hub_round--> message, encoded once --> recent of its channel <-- followers'
 *                                                         (a bounded list)          positions
 *
 * A follower is a position: the number of the next message it needs.  What it missed before it came
 * is one message of its own, or of all who missed the same.  Messages carry states, not
 * differences, so one that reaches further back than its reader needs does no harm: each follower's
 * messages, applied in turn to the map of the seq it began with, give the map of the last
 * message's seq (I13).
 *
 * Bounds: RECENT_MAX messages and RECENT_BYTES_MAX bytes a channel; MESSAGE_BYTES_MAX a message and
 * MESSAGES_BYTES_MAX all messages alive, also those that only a slow reader still holds: what would
 * go beyond becomes `event: reset`, some sixty bytes, and the client reads the snapshot. */
#ifndef HF_HTTP_STREAM_HUB_H
#define HF_HTTP_STREAM_HUB_H

#include "rules/view.h"

#define RECENT_MAX 128 /* over ten seconds of a busy event */
#define RECENT_BYTES_MAX ((size_t)4 << 20)
#define MESSAGE_BYTES_MAX ((size_t)2 << 20)
#define MESSAGES_BYTES_MAX ((size_t)64 << 20)
#define MISSED_MAX 8

struct hub;

struct message {
    struct hub *hub;
    unsigned refs;
    int64_t seq;
    struct buf text;   /* a whole server-sent event */
    struct buf packed; /* the same as a block of a gzip stream; empty until somebody wants it */
};

struct follower {
    struct channel *channel; /* NULL: follows nothing */
    struct follower *prev, *next;
    struct message *missed; /* to be sent first; NULL: nothing */
    uint64_t next_no;       /* of the channel's messages */
    int64_t seq;            /* it has everything up to here */
};

#define HUB_BUCKETS 1024
struct hub {
    struct channel *buckets[HUB_BUCKETS], *channels; /* those with followers */
    size_t bytes;                                    /* of all messages */
    struct changes changes;                          /* scratch */
    struct buf name;
};

void hub_close(
    struct hub *h); /* when all have left; accepts a zeroed struct, which is an empty hub */

/* Follow `e`, with everything after a seq, or: */
#define AFTER_NOW (-1)     /* from here on */
#define AFTER_UNKNOWN (-2) /* from a place that cannot be found: reset */
void hub_join(struct hub *h, struct follower *f, struct event *e, int64_t after);
void hub_leave(struct hub *h, struct follower *f); /* does nothing for one that follows nothing */

/* The next message for this follower, to be given back with message_unref; NULL: none yet, or
 * *ret_behind: what it needs is gone.  O(1). */
struct message *hub_next(struct follower *f, bool *ret_behind);
void message_unref(struct message *m);
/* Its bytes for a reader of gzip, or of plain text; packed once. */
const struct buf *message_bytes(struct message *m, bool packed);

/* Encode what has changed since the last round, once an event, and `wake` its followers.  Returns
 * how many were woken.  An event whose seq stands costs one comparison. */
size_t hub_round(struct hub *h, void (*wake)(struct follower *f));

#endif
