/* One HTTP request, from its headers to the last byte of its answer: the central struct of
 * src/http.
 *
 *   begin (route found) -> body collected -> step -> answer
 *                                             |  ^
 *             request_wait: connection        v  |  pending_done: connection resumed,
 *             suspended, pending armed   another thread    `step` runs again
 *
 * A handler is a step.  It either fills `answer`, or calls request_wait, which suspends the
 * connection and names the step that goes on when the pending is done, and then hands the pending
 * to the thread that does the work.  A request belongs to the thread of its connection from begin
 * to completion.  Requests come from a free list of that thread, so that a busy connection
 * allocates none.
 *
 * Nothing here blocks, and nothing here is durable: if the client goes away while its request
 * waits, the work is done all the same. */
#ifndef HF_HTTP_REQUEST_H
#define HF_HTTP_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/pending.h"
#include "http/access.h"
#include "http/app.h"
#include "http/problem.h"
#include "http/text.h"

#define REQUEST_ID_LEN 22
#define BODY_MAX ((size_t)64 * 1024)
/* A body over its limit is read this much further, so that the client gets to read the refusal. */
#define BODY_DRAIN_MAX ((size_t)1024 * 1024)

/* The HTTP statuses that are not problems. */
enum {
    HTTP_OK = 200,
    HTTP_CREATED = 201,
    HTTP_NO_CONTENT = 204,
    HTTP_NOT_MODIFIED = 304,
    HTTP_TEMPORARY_REDIRECT = 307
};

struct MHD_Connection;
struct MHD_Response;
struct request;
struct server;
typedef void (*step_fn)(struct request *r);

/* What will be sent.  Status 0: the request has not been answered yet. */
struct answer {
    int status;
    const char *type; /* Content-Type; NULL: no body */
    const void *data; /* the body, valid until the request is released or `sent` is called */
    size_t len;       /* of the body */
    void (*sent)(
        void *data); /* called with `owner` when the body is not needed any more; or NULL */
    void *owner;
    const char *why;       /* for the log: the reason of a 500; NULL: not known */
    const char *allow;     /* header Allow; NULL: none */
    const char *location;  /* header Location; NULL: none */
    const char *challenge; /* header WWW-Authenticate; NULL: none */
    const char *policy;    /* Content-Security-Policy of a page; NULL: nothing may load */
    char etag[24];         /* header ETag; empty: none */
    bool replayed;         /* header Idempotency-Replayed */
    bool retry;            /* header Retry-After */
    bool close;            /* the connection ends with this answer */
    bool varies;           /* the body depends on Accept-Encoding */
    bool gzipped;          /* the body is compressed */
    bool preflight;        /* the answer to a browser's OPTIONS */
};

/* The libmicrohttpd response of the last plain problem; see response.c. */
struct kept_response {
    struct MHD_Response *response;
    char *data;
    size_t len;
    const char *type, *cors_origin;
    char id[REQUEST_ID_LEN + 1];
};

struct request {
    struct request *next_free;
    struct server *server;
    struct MHD_Connection *connection;
    const struct route *route; /* NULL: there is none, 404 */
    const char *method, *path; /* libmicrohttpd's; the path is percent-decoded */
    struct text segment;       /* what the first `*` of the route stands for */
    struct text segment2;      /* what the second `*` stands for */
    step_fn step;              /* the next to run */
    char id[REQUEST_ID_LEN + 1];
    enum scope needs; /* to use this route with this method; unset: 404, 405 and preflights */
    struct caller caller;
    const char *cors_origin; /* for Access-Control-Allow-Origin; NULL: none */

    /* headers */
    struct text key;           /* Idempotency-Key */
    struct text authorization; /* Authorization */
    struct text origin;        /* Origin */
    uint64_t content_length;
    unsigned n_keys;           /* how many Idempotency-Key headers there are */
    unsigned n_lengths;        /* how many Content-Length headers */
    unsigned n_encodings;      /* how many Transfer-Encoding headers */
    unsigned n_authorizations; /* how many Authorization headers */
    bool chunked;              /* Transfer-Encoding: chunked */
    bool expects;              /* Expect: 100-continue */
    bool has_odd_name;         /* a header's name is empty or ends in white space */

    /* upload */
    struct buf body;
    size_t body_max;
    size_t drained;     /* bytes read beyond the limit, and not kept */
    int64_t arrived_us; /* for the request log; 0: there is none */
    int64_t begun_us;   /* when the first part of an upload in parts came; 0: not yet */
    unsigned timeout_s; /* of the connection while this upload is slow; 0: the usual one */
    bool discards;      /* the request has been refused, so its body is not kept */
    bool hung_up;       /* the answer went out in the middle of the body */
    bool large;         /* has one of the few places of server_admit_large */
    bool accepted;      /* arrived whole */

    struct buf out;  /* where answers are written */
    struct buf name; /* see request_name */
    struct answer answer;
    struct kept_response kept; /* last: survives the request */
};

/* What a thread of the server keeps for itself. */
struct http_thread {
    const struct http_app *app; /* whose requests are in the list */
    struct request *free;
    size_t n_free;
    uint64_t prng[2];
};
struct http_thread *http_thread(void);
/* Call this before the first request. */
bool http_threads_init(void);
/* Frees the calling thread's part early; other threads free theirs when they end. */
void http_thread_close(void);

/* Writes an id that no other request has, for requests without a struct request. */
void request_id_write(char out[REQUEST_ID_LEN + 1]);

struct request *request_take(const struct http_app *app);
void request_release(struct request *r, const struct http_app *app);

/* Suspends the request's connection and arms `pending`: pending_done resumes it, on whichever
 * thread it is called, and then `then` runs on the connection's own.  The caller hands `pending`
 * over afterwards; if it cannot, it calls pending_done itself. */
void request_wait(struct request *r, struct pending *pending, step_fn then);

/* A query parameter or header by name, or NULL. */
const char *request_query(const struct request *r, const char *name);
const char *request_header(const struct request *r, const char *name);
/* Completes the percent-decoding of a name in a path or query (see text.h).  The result is in
 * r->name until the next call. */
const struct buf *request_name(struct request *r, const char *text, size_t len);

/* Answers with what is in r->out.  `type` NULL: without a body. */
void answer_out(struct request *r, int status, const char *type);
/* Answers with a problem.  `detail` NULL: the problem's usual sentence. */
void answer_problem(struct request *r, const struct problem *problem, const char *detail);
/* The same in two parts, for problems with members of their own: problem_open, then
 * `,"seats":[...]` into r->out, then problem_close. */
void problem_open(struct request *r, const struct problem *problem, const char *detail);
void problem_close(struct request *r);

extern const char type_json[]; /* application/json */

#endif
