/* One HTTP request, from its first byte to the last byte of its answer: the central struct of
 * src/http.
 *
 *   head read (route found) -> body collected -> step -> answer
 *                                                 |  ^
 *             request_wait: pending armed,        v  |  pending_done: back to the connection's
 *             the connection reads no further   another thread    loop, `step` runs again
 *
 * A handler is a step.  It either fills `answer`, or calls request_wait, which names the step that
 * goes on when the pending is done, and then hands the pending to the thread that does the work.  A
 * request belongs to the thread of its connection throughout.  Requests come from a free list of
 * that thread, so that a busy connection allocates none.
 *
 * Nothing here blocks, and nothing here is durable: if the client goes away while its request
 * waits, the work is done all the same.  A handler that wants to know calls request_wait_or_gone.
 */
#ifndef HF_HTTP_REQUEST_H
#define HF_HTTP_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/pending.h"
#include "http/access.h"
#include "http/answer.h"
#include "http/app.h"
#include "http/parse.h"
#include "http/text.h"
#include "http/unsent.h"

#define REQUEST_ID_LEN 22
#define BODY_MAX ((size_t)64 * 1024)
/* A body over its limit is read this much further, so that the client gets to read the refusal. */
#define BODY_DRAIN_MAX ((size_t)1024 * 1024)
#define PARAMETERS_MAX 16 /* of a query; with more it is refused */

struct conn;
struct loop;
struct request;
struct server;
typedef void (*step_fn)(struct request *r);

struct parameter {
    const char *name, *value; /* percent-decoded, but see text.h */
};

/* The headers that the transport looks at, or most handlers. */
struct request_headers {
    struct text key;           /* Idempotency-Key */
    struct text authorization; /* Authorization */
    struct text origin;        /* Origin */
    struct text fetch_site;    /* Sec-Fetch-Site */
    struct text host;          /* of the target, or else of Host; empty: there is none */
    unsigned n_keys;           /* how many Idempotency-Key headers there are */
    unsigned n_authorizations; /* how many Authorization headers */
};

/* How much of the body is kept. */
struct upload {
    size_t max;     /* of the route */
    size_t counted; /* of the budget of bodies */
    size_t drained; /* bytes read beyond the limit, and not kept */
    bool discards;  /* the request has been refused, so its body is not kept */
    bool large;     /* has one of the few places of request_admit_large */
};

struct request {
    struct request *next; /* in the free list, or among those that are done */
    struct server *server;
    struct conn *conn;

    /* what came */
    const char *method, *path; /* the path is percent-decoded */
    struct request_headers headers;
    unsigned n_parameters; /* in the query */
    struct buf body;
    struct upload upload;
    int64_t arrived_us; /* when the head was whole; 0: it never was */

    /* where it goes */
    const struct route *route; /* NULL: there is none, 404 */
    struct text segment;       /* what the first `*` of the route stands for */
    struct text segment2;      /* what the second `*` stands for */
    struct text segment3;      /* and the third */
    enum scope needs; /* to use this route with this method; unset: 404, 405 and preflights */
    struct caller caller;
    const char *cors_origin; /* for Access-Control-Allow-Origin; NULL: none */

    /* where it stands */
    step_fn step;   /* the next to run */
    step_fn gone;   /* see request_wait_or_gone; NULL: nobody wants to know, or does already */
    bool accepted;  /* arrived whole */
    bool waits;     /* for its pending */
    bool completed; /* answered, or given up */

    /* what will be sent */
    struct answer answer;

    /* What follows survives the request, or is written before it is read. */
    char id[REQUEST_ID_LEN + 1];
    struct buf out;         /* where answers are written */
    struct buf answer_head; /* status line and headers of the answer */
    struct buf name;        /* see request_name */
    struct unsent unsent;   /* while its client does not take it, see unsent.h */
    struct parameter parameters[PARAMETERS_MAX];
    struct body body_state;
    char *text;       /* the bytes that `head` is about */
    struct head head; /* last, since most of it is not used */
};

/* Arms `pending`: pending_done, on whichever thread, brings the request back to its connection's
 * thread, where `then` runs.  The caller hands `pending` over afterwards; if it cannot, it calls
 * pending_done itself. */
void request_wait(struct request *r, struct pending *pending, step_fn then);
/* As request_wait.  If the client closes the connection, or ends its sending direction, while the
 * request waits, `gone` is called once, on the connection's thread.  Bytes of following requests do
 * not count.  The request stays until its pending is done, and `then` still runs if the client has
 * only ended its sending direction: it may read the answer. */
void request_wait_or_gone(struct request *r, struct pending *pending, step_fn then, step_fn gone);

/* A query parameter by name, or NULL.  The route lists it.  A parameter without `=` has an empty
 * value. */
const char *request_query(const struct request *r, const char *name);
/* Returns true if the route lists every parameter of the request's query and none is there twice.
 * Otherwise `detail` says which is at fault. */
bool request_check_query(const struct request *r, char *detail, size_t size);
/* A header by name, or NULL; of several, the first. */
const char *request_header(const struct request *r, const char *name);
/* The values of all headers of a name, in order, but at most the last `max` of them.  Returns how
 * many there are in `out`. */
size_t request_headers(const struct request *r, const char *name, const char **out, size_t max);
/* Completes the percent-decoding of a name in a path (see text.h).  The result is in
 * r->name until the next call. */
const struct buf *request_name(struct request *r, const char *text, size_t len);
const struct address *request_peer(const struct request *r); /* NULL: its family is not known */
/* A request that takes much memory (a body beyond BODY_MAX, say) needs one of a few places, so that
 * the memory of all of them is bounded.  It keeps the place until it ends or its answer waits for
 * the client.  Returns false if none is free. */
bool request_admit_large(struct request *r);

/* ---- for the transport ---- */

/* The free list of a thread. */
struct requests {
    const struct http_app *app;
    struct request *free;
    size_t n_free;
    uint64_t prng[2]; /* for ids */
};
void requests_open(struct requests *q, const struct http_app *app);
void requests_close(struct requests *q);
/* Writes an id that no other request has. */
void request_id_write(struct requests *q, char out[REQUEST_ID_LEN + 1]);
/* A new request, with an id of its own. */
struct request *request_take(struct requests *q);
void request_release(struct requests *q, struct request *r);
/* The request has been answered, or given up: counts it, once. */
void request_count_completed(struct request *r);
/* The client of a request that waits is gone: tells its handler, once. */
void request_tell_gone(struct request *r);
/* The body is not needed any more: gives back its places in budgets. */
void request_uncount_body(struct request *r);
/* Fills in the method alone, of a head that is refused. */
void request_read_method(struct request *r, char *text);
/* The head has been read, from `text`, in which names and values may now be ended by NUL.  Fills in
 * method, path, query and r->headers. */
void request_read_head(struct request *r, char *text);

#endif
