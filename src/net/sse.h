/* A reader of server-sent events: bytes as they arrive become messages.  Fields are those of the
 * HTML standard; lines end with LF or CRLF.  Pure, O(bytes); a reader belongs to the thread that
 * feeds it. */
#ifndef HF_NET_SSE_H
#define HF_NET_SSE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

struct sse {
    /* Set by the caller.  `on_message` returns false to read no further; `event` ("" if there is
     * none) and `data` are texts of this message. */
    bool (*on_message)(void *ctx, const char *event, const char *data);
    void *ctx;
    size_t len_max;   /* of a message */
    int64_t retry_ms; /* becomes what the server asks for */

    char last_id[32];
    struct buf line, event, data; /* that have begun to arrive */
};

/* A connection begins: whatever had begun to arrive is forgotten. */
void sse_begin(struct sse *s);
/* Returns false if no more should be read: on_message said so, or a message is too long. */
bool sse_take(struct sse *s, const char *bytes, size_t len);
void sse_close(struct sse *s); /* accepts a zeroed struct */

#endif
