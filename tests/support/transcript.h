/* What the request parser makes of the bytes of a connection, as text.  The unit test, the fuzz
 * target and the comparison with Node's parser read the same transcript.
 *
 *   POST http://x/holds 1.1 persists      method, target, version; or closes; then expects
 *   path /holds                           if this is not the target
 *   host x                                if this is not the first value of Host
 *   Host: x                               every field; the value without white space at its ends
 *   body {}                               bytes that are not printable, and backslashes, as \xNN
 *   end                                   the request is complete
 *   refused 400 Host is missing.          the connection ends here, as it does after `closes`
 *   incomplete                            or the bytes end in the middle of a request */
#ifndef HF_TESTS_SUPPORT_TRANSCRIPT_H
#define HF_TESTS_SUPPORT_TRANSCRIPT_H

#include "base/buf.h"
#include "http/parse.h"

struct transcript {
    struct buf out;
    size_t begun; /* how many bytes came before the request that was refused or is incomplete */
    /* Called for each head that is accepted, with its bytes; or NULL. */
    void (*on_head)(const struct head *h, const char *data);

    struct buf in;  /* what has arrived since the head began, or of the body and not been used */
    size_t dropped; /* how many bytes came before those */
    struct head head;
    struct body body;
    struct buf content; /* of the body */
    char *block;        /* where the parser sees it */
    size_t block_size;
    bool has_body; /* the head is complete and the body is not */
    bool ended;    /* refused, or the last request of the connection */
};

void transcript_begin(struct transcript *t);
/* Takes the connection's next bytes.  The parser sees copies at the end of a block of
 * memory, so that the address sanitizer notices reads beyond them. */
void transcript_feed(struct transcript *t, const char *data, size_t len);
/* The connection ends.  `out` is then complete, and NUL-terminated. */
void transcript_end(struct transcript *t);
void transcript_close(struct transcript *t);

#endif
