/* What a handler answers with.  The request's answer begins empty; a handler fills it in by itself
 * or by one of these functions, and response.h writes its head.  On the thread of the request's
 * connection. */
#ifndef HF_HTTP_ANSWER_H
#define HF_HTTP_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "http/problem.h"

#define ETAG_SIZE 32

struct pin;
struct request;
struct stream_source;

/* The HTTP statuses that are not problems. */
enum {
    HTTP_OK = 200,
    HTTP_CREATED = 201,
    HTTP_NO_CONTENT = 204,
    HTTP_NOT_MODIFIED = 304,
    HTTP_TEMPORARY_REDIRECT = 307
};

/* Header lines that few answers have. */
struct answer_headers {
    const char *allow;      /* Allow; NULL: none */
    const char *location;   /* Location; NULL: none */
    const char *challenge;  /* WWW-Authenticate; NULL: none */
    const char *policy;     /* Content-Security-Policy of a page; NULL: nothing may load */
    const char *more;       /* further lines, each of which ends in CRLF; NULL: none */
    char etag[ETAG_SIZE];   /* ETag; empty: none */
    int64_t retry_after_ms; /* Retry-After; 0: none */
    bool replayed;          /* Idempotency-Replayed */
    bool stale;             /* Holdfast-Stale: the server may have missed changes */
    bool varies;            /* the body depends on Accept-Encoding */
    bool outlasts_settings; /* the answer may be kept while --cors-origin changes */
    bool gzipped;           /* the body is compressed */
    bool preflight;         /* the answer to a browser's OPTIONS */
};

/* What keeps a body that is not in r->out. */
struct answer_keeper {
    void (*sent)(void *owner); /* called when the body is not needed any more; or NULL */
    void *owner;
    struct pin *pin; /* of a body that other answers share; NULL: it is the request's own */
    size_t pinned;   /* bytes that are alive while such a body is being sent */
};

/* What a stream begins with; see stream.h. */
struct stream_start {
    void *topic; /* the answer is a stream of its changes; NULL: it is not one */
    const struct stream_source *source;
    int64_t after; /* where the stream begins */
};

/* What will be sent.  Status 0: the request has not been answered yet. */
struct answer {
    int status;
    const char *type; /* Content-Type; NULL: no body */
    const void *data; /* the body, valid until the request is released or keeper.sent is called */
    size_t len;       /* of the body */
    struct answer_keeper keeper;
    struct answer_headers headers;
    struct stream_start stream;
    const char *why; /* for the log: the reason of a 500; NULL: not known */
    bool close;      /* the connection ends with this answer */
    bool reset;      /* nothing is sent: the connection is reset instead */
};

/* Answers with what is in r->out.  `type` NULL: without a body. */
void answer_out(struct request *r, int status, const char *type);
/* Compresses an answer of answer_out if the client accepts gzip.  On the HTTP thread, so it is for
 * answers of moderate size. */
void answer_pack(struct request *r);
/* Answers with a problem.  `detail` NULL: the problem's usual sentence. */
void answer_problem(struct request *r, const struct problem *problem, const char *detail);
/* Answers with a problem whose Retry-After is not the usual second. */
void answer_too_soon(struct request *r, const struct problem *problem, int64_t wait_us);
/* The same in two parts, for problems with members of their own: problem_open, then
 * `,"seats":[...]` into r->out, then problem_close. */
void problem_open(struct request *r, const struct problem *problem, const char *detail);
void problem_close(struct request *r);

/* Is the answer's body sent, or only told about? */
bool answer_has_body(const struct request *r);

extern const char type_json[]; /* application/json */

#endif
