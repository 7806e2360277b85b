/* A TCP relay on 127.0.0.1 in front of one server: it counts what passes, and can fall silent, lose
 * answers or close its connections, as a network does that fails.  It runs on a thread of its own;
 * its functions may be called by any thread.  The lab and the C tests use it; what only tests need
 * is marked so.
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
    /* An answer is lost and its connection closed when it arrives: the request was carried out, but
     * the client does not learn it. */
    RELAY_CUT,
    /* for tests */
    RELAY_SWALLOW,      /* answers are lost, and connections stay */
    RELAY_SWALLOW_ONCE, /* makes a black hole of the connection that is answered next, and then
                           becomes RELAY_PASS */
    RELAY_HOLD,         /* requests wait until the mode changes.  Then the server gets them, even if
                           the client has closed its connection by then; the answer to such a
                           request is lost. */
};

struct relay;

/* Listens on a free port and passes everything on to 127.0.0.1:`to_port`.  Returns NULL if it
 * cannot. */
HF_MUST_USE struct relay *relay_start(int to_port, struct hf_err *err);
/* The same to a Unix socket. */
HF_MUST_USE struct relay *relay_start_unix(const char *path, struct hf_err *err);
void relay_stop(struct relay *relay); /* closes everything; accepts NULL */

int relay_port(const struct relay *relay);
/* Takes effect before it returns. */
void relay_set(struct relay *relay, enum relay_mode mode);
/* Only answers to requests that contain this word, or one of several that are separated by '|', are
 * lost; NULL: all.  The text outlives the relay.  If a call takes more than one exchange, the last
 * one counts. */
void relay_lose_only(struct relay *relay, const char *words);

/* For tests: the mode; where new connections go; and for a protocol whose clients send a request
 * before the last one was answered, each with its length in the first four bytes, that requests are
 * passed on one at a time, so that it is certain which of them an answer belongs to. */
enum relay_mode relay_mode(struct relay *relay);
void relay_redirect(struct relay *relay, int to_port);
void relay_take_turns(struct relay *relay);

struct relay_count {
    uint64_t messages, bytes;
    uint64_t lost; /* answers that were kept from clients */
};
/* What has been read since the start. */
struct relay_count relay_count(const struct relay *relay);

#endif
