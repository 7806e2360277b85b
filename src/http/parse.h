/* HTTP/1.1 requests from bytes, by RFC 9112 and no more.  Pure: no socket, no memory of its own,
 * and the caller's bytes are not changed, so that tests and fuzzers feed it directly.
 *
 *   bytes of a connection --head_parse--> method, target, fields, framing
 *                         --body_parse--> pieces of the body, chunks taken apart
 *
 * Both may be called with as little as a byte more each time.  Each byte is looked at a bounded
 * number of times however the bytes arrive: a line is taken apart once, when its end is there.
 *
 * Where a sender and this server could see different requests, the request is refused and never
 * repaired: both a length and an encoding, several lengths, a name followed by white space, a
 * folded line, NUL, a CR or LF by itself, a missing or repeated Host (RFC 9112, 11.2). */
#ifndef HF_HTTP_PARSE_H
#define HF_HTTP_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "http/problem.h"
#include "http/text.h"

#define HEAD_LEN_MAX 16384 /* request line and fields, line ends included */
#define FIELDS_MAX 100
#define CHUNK_DIGITS_MAX 16 /* hexadecimal, of a chunk's length */

enum parse {
    PARSE_MORE,   /* incomplete, and nothing wrong so far */
    PARSE_DONE,   /* complete */
    PARSE_REFUSED /* see `refusal`; whoever goes on reading does not know where he is */
};

/* Why a request is refused: an answer's problem and its sentence. */
struct refusal {
    const struct problem *problem;
    const char *detail;
};

/* A part of the head, as an offset, since the bytes may move while more of them arrive. */
struct span {
    uint16_t at, len;
};

struct field {
    struct span name, value; /* the value without white space at its ends */
};

struct head {
    struct span method;
    struct span target; /* as it was sent: /path?query, http://host/path?query or * */
    struct span path;   /* the target without scheme and host; if it does not begin with a slash,
                         * an empty path (RFC 3986, 6.2.3) or * */
    struct span host;   /* host[:port] of the target, or else the value of Host; may be empty */
    uint64_t length;    /* of the body, if has_length */
    uint32_t len;       /* of the whole head, with the empty line that ends it */
    uint16_t n_fields;
    uint8_t minor;   /* HTTP/1.minor: 0, or 1 for every later one */
    bool has_length; /* Content-Length */
    bool chunked;    /* Transfer-Encoding: chunked */
    bool expects;    /* Expect: 100-continue, from a client of HTTP/1.1 */
    bool persists;   /* the connection may carry another request after this one */
    struct refusal refusal;

    /* where head_parse is */
    uint32_t line;     /* the beginning of the line that is incomplete */
    uint32_t searched; /* no LF before this */
    bool has_request_line;
    bool has_host;
    bool says_close;      /* Connection: close */
    bool says_keep_alive; /* Connection: keep-alive */

    struct field fields[FIELDS_MAX]; /* last: only n_fields of them are written */
};

/* Prepares for the next request.  Does not touch `fields`. */
void head_begin(struct head *h);
/* Takes the request's first `len` bytes; those of earlier calls are the same.  After PARSE_DONE the
 * head is the first h->len of them.  Empty lines before the request line are skipped. */
enum parse head_parse(struct head *h, const char *data, size_t len);

/* The body that follows a head. */
struct body {
    uint64_t left;        /* of the length, or of the present chunk */
    uint16_t ignored_len; /* chunk extensions and trailers so far: at most HEAD_LEN_MAX in all */
    uint8_t n_trailers;
    uint8_t n_digits; /* of the present chunk's length */
    uint8_t state;    /* see parse_body.c */
    struct refusal refusal;
};

/* Returns false if there is no body: neither a length above 0 nor chunks. */
bool body_begin(struct body *b, const struct head *h);
/* Takes the next bytes.  Chunk extensions and trailers are checked and ignored.  *ret_used of them
 * have been consumed, and *ret_part, which may be empty, is a part of the body among them.  Call it
 * again with the rest while it returns PARSE_MORE and has used something.  After PARSE_DONE what
 * has not been used belongs to the next request. */
enum parse body_parse(struct body *b, const char *data, size_t len, size_t *ret_used,
                      struct text *ret_part);

#endif
