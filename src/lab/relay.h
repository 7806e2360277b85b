/* A TCP relay on 127.0.0.1 in front of one server of the lab: it counts what passes, and can fall
 * silent or close its connections, as a network does that fails.  It runs on a thread of its own;
 * its functions may be called by any thread.
 *
 * A message is what one read returns, in either direction.  Requests that a client sends at once
 * count as one, and so do answers that arrive together. */
#ifndef HF_LAB_RELAY_H
#define HF_LAB_RELAY_H

#include <stdint.h>

#include "base/status.h"

#define RELAY_CONNECTIONS_MAX 2048

enum relay_mode {
    RELAY_PASS,
    RELAY_SILENT, /* nothing passes, as if a cable were cut; what was sent passes later */
    RELAY_CLOSED, /* connections are closed, also new ones */
};

struct relay;

/* Listens on a free port and passes everything on to 127.0.0.1:`to_port`.  Returns NULL if it
 * cannot. */
HF_MUST_USE struct relay *relay_start(int to_port, struct hf_err *err);
void relay_stop(struct relay *relay); /* closes everything; accepts NULL */

int relay_port(const struct relay *relay);
/* Takes effect before it returns. */
void relay_set(struct relay *relay, enum relay_mode mode);

struct relay_count {
    uint64_t messages, bytes;
};
/* What has passed since the start. */
struct relay_count relay_count(const struct relay *relay);

#endif
