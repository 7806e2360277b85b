/* One HTTP request, from its headers to its last byte out; http's central struct.
 *
 *   begin (route found) -> body collected -> step -> answer
 *                                             |  ^
 *                  request_wait: suspended,   v  |  server_done: resumed, `step` runs again
 *                                             engine
 *
 * A handler is a step.  It either fills `answer` or calls request_wait, which lends the command to
 * the engine and names the step that goes on when it comes back.  A request belongs to the thread
 * of its connection from begin to completion; only `command` is lent.  Requests come from a free
 * list of their thread, so that a busy connection allocates none.
 *
 * Nothing here blocks, and nothing here is durable: a request that dies with its connection while
 * its command is lent has its effect all the same. */
#ifndef HF_HTTP_REQUEST_H
#define HF_HTTP_REQUEST_H

#include <jansson.h>
#include <microhttpd.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/engine.h"
#include "http/access.h"
#include "api/hold_parse.h"

#define REQUEST_ID_LEN 22
#define BODY_MAX ((size_t)64 * 1024)
#define BODY_EVENT_MAX ((size_t)8 * 1024 * 1024)
/* Read past the limit so that the client gets to read the refusal. */
#define BODY_DRAIN_MAX ((size_t)1024 * 1024)

struct request;
struct server;
typedef void (*step_fn)(struct request *r);

/* What will be sent.  Zero status: not answered yet. */
struct answer {
    int status;
    enum hf_status problem;   /* which one it is, if it is one */
    const char *type;         /* Content-Type; NULL: no body */
    const void *data;         /* valid until the request is released, or until: */
    void (*sent)(void *data); /* called with `owner` when the answer is gone; NULL: nothing */
    void *owner;
    size_t len;
    const char *allow, *location; /* headers; NULL: none */
    const char *challenge;        /* WWW-Authenticate */
    const char *policy; /* Content-Security-Policy; NULL: nothing may load, for what is no page */
    char etag[24];
    bool replayed, retry, close, varies, gzipped;
    bool preflight; /* the answer to an OPTIONS of a browser */
};

/* See response.c. */
struct kept_response {
    struct MHD_Response *response;
    char *data;
    size_t len;
    const char *type, *cors_origin;
    char id[REQUEST_ID_LEN + 1];
};

struct request {
    struct command command; /* first: server_done finds the request by it */
    struct request *next_free;
    struct server *server;
    struct MHD_Connection *connection;
    const struct route *route;
    const char *method, *path; /* libmicrohttpd's, unescaped */
    const char *segment;       /* what the first `*` stood for in the route; not NUL-terminated */
    size_t segment_len;
    struct text segment2; /* and the second */
    step_fn step;
    char id[REQUEST_ID_LEN + 1];
    enum scope needs; /* to use this route with this method; unset: 404, 405 and preflights */
    struct caller caller;
    const char *cors_origin; /* for Access-Control-Allow-Origin; NULL: none */

    /* headers */
    const char *key; /* Idempotency-Key; NULL: none */
    size_t key_len;
    const char *authorization, *origin; /* NULL: none */
    size_t authorization_len, origin_len;
    uint64_t content_length;
    unsigned n_keys, n_lengths,
        n_encodings; /* Idempotency-Key, Content-Length, Transfer-Encoding */
    unsigned n_authorizations;
    bool chunked, expects, unclear; /* unclear: a name with white space */

    /* upload */
    struct buf body;
    size_t body_max;
    size_t drained;
    int64_t arrived_us; /* for the request log; 0: there is none */
    int64_t begun_us;   /* when the first part of an upload in parts came; 0: not yet */
    unsigned timeout_s; /* of the connection while this upload is slow; 0: the usual one */
    bool discards;      /* what comes is not kept: the request has been refused */
    bool hung_up;
    bool large;    /* has one of the few places for what takes much memory */
    bool accepted; /* arrived whole */

    /* what the handlers keep between steps */
    json_t *json;
    struct hold_body hold; /* of a POST /v1/holds */
    struct id event_id;
    bool event_tried;
    uint32_t seats_inline[SEATS_INLINE], taken_inline[SEATS_INLINE];
    uint32_t *seats_heap;
    struct area_claim *areas_heap;

    struct buf out, name;
    bool key_checked;
    struct answer answer, refusal; /* refusal: put aside by request_check_key */
    struct kept_response kept;     /* survives the request */
};

/* What a thread of the server keeps for itself. */
struct http_thread {
    struct request *free;
    size_t n_free;
    uint64_t prng[2];
};
struct http_thread *http_thread(void);
/* Before the first request. */
bool http_threads_init(void);
/* Free the calling thread's part early; others go with their threads. */
void http_thread_close(void);

/* An id that no other request has, for what is no struct request. */
void request_id_write(char out[REQUEST_ID_LEN + 1]);

struct request *request_take(void);
void request_release(struct request *r);

/* Suspend, and lend the command to the engine; `then` runs when it is answered, with the verdict in
 * command.status.  A refusal to take it (overloaded, draining) arrives there too. */
void request_wait(struct request *r, step_fn then);

/* A key that was used with another request is told before what that other request lacks (a seat, an
 * event): so a 404 or a 400 about limits is put aside until the key has been looked up.  True: it
 * is, and the request waits. */
bool request_check_key(struct request *r);

/* The event if it is loaded.  Otherwise NULL: either `again` will run once it has been looked up,
 * or the request has been answered (`missing`, or the ledger's trouble). */
struct event *request_event(struct request *r, int64_t event, enum hf_status missing,
                            step_fn again);

/* The event whose id is `text` (it ends at `len`), likewise. */
struct event *request_event_named(struct request *r, const char *text, size_t len, step_fn again);

struct engine *request_engine(const struct request *r);

/* A body beyond BODY_MAX, or an event of very many rows, needs one of a few places, kept until the
 * request is over, so that memory has a bound.  False: none is free now. */
bool server_admit_large(struct request *r);

/* The last step of most handlers: the body of a 2xx, or the problem. */
void answer_command(struct request *r);
/* answer.data is r->out. */
void answer_out(struct request *r, int status, const char *type);

/* A query parameter or header by name, or NULL. */
const char *request_query(const struct request *r, const char *name);
const char *request_header(const struct request *r, const char *name);
/* The rest of percent-decoding, for a name in a path or query; into r->name, which it returns. */
const struct buf *request_name(struct request *r, const char *text, size_t len);
/* True when the body is empty or {}; else answered with 400. */
bool request_empty_body(struct request *r);
/* ?limit=: false: answered with 400. */
bool request_limit(struct request *r, size_t max, size_t *ret);
/* Names of seats to indexes in command.seats, with room for as many in command.taken.  False:
 * answered with the names that are nobody's. */
bool request_find_seats(struct request *r, const struct event *e, const struct text *names,
                        uint32_t n);
/* The same for one name, as it stands in a path or query. */
bool request_find_seat(struct request *r, const struct event *e, const char *text, size_t len);
/* 400 or 404 that lists seats. */
void answer_seat_list(struct request *r, enum hf_status status, const struct text *const *names,
                      size_t n);
/* The first name that appears twice (I6), or NULL. O(n). */
const struct text *find_duplicate(const struct text *names, size_t n);

extern const char type_json[];

#endif
