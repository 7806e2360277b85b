/* A call to the lock service: what it keeps beside struct call, and the steps that the handlers of
 * sessions, locks and the cell share.
 *
 *   handler: lock_begin -> names and body -> lock_submit -> cell's thread -> lock_done -> answer
 *
 * A server that does not lead answers with 307 to the one that does, or with 503.  Everything here
 * runs on HTTP threads; `request` is lent to the cell's thread from lock_submit until the next
 * step. */
#ifndef HF_API_LOCK_CALL_H
#define HF_API_LOCK_CALL_H

#include "api/lock_parse.h"
#include "cell/node.h"
#include "http/request.h"

struct call;
struct cell_topic;

/* A page of GET /v1/locks; the cell's thread reads the first part and writes the second. */
struct lock_page {
    const char *prefix;
    const char *after; /* the name before the page's first; "": none */
    size_t limit;
    bool waiting; /* only names that somebody waits for */
    size_t n;
    bool more;
    char cursor[CELL_NAME_MAX + 1]; /* if there is more: the last name that was looked at */
};

struct lock_call {
    struct cell_request request;
    struct lock_body body;
    struct lock_page page;
    struct cell_topic *topic; /* of a session whose stream is asked for */
    bool session_found;
};

/* Zeroes c->lock.  Returns false if the call has been answered: the lock service is off, or, unless
 * `anywhere`, another server is the master. */
bool lock_begin(struct call *c, bool anywhere);
/* Reads the body into c->lock.body.  Returns false if the call has been answered with 400. */
bool lock_read_body(struct call *c, const struct lock_field *table);
/* Returns false, and has answered with 400, unless the body is empty or {}. */
bool lock_empty_body(struct call *c);
/* Reads the name in the path into the command.  Returns false if the call has been answered with
 * 400. */
bool lock_read_name(struct call *c);
/* Reads a session's id into the command.  A malformed id is an unknown one; returns false if the
 * call has been answered with 404. */
bool lock_read_session(struct call *c, struct text id);
/* Reads body.owner into the command, if there is one.  Returns false if the call has been answered
 * with 400. */
bool lock_read_owner(struct call *c);

/* Lends the request to the cell; `then` runs when it comes back. */
void lock_submit(struct call *c, enum cell_request_kind kind, step_fn then);
/* The same for a command that may wait for a lock: if the client goes away meanwhile, the cell is
 * told. */
void lock_submit_waiting(struct call *c, step_fn then);
/* Hands `look` the state; `then` runs afterwards. */
void lock_look(struct call *c, bool stale, step_fn then,
               void (*look)(struct cell_request *r, const struct node *n,
                            const struct cell_state *s));
/* Returns false, and has answered, unless the cell did what it was asked. */
bool lock_done(struct call *c);
/* Answers that another server is the master (307), or none (503). */
void lock_elsewhere(struct call *c, const char *master_url);

/* Opens the answer with `{"object":"lock","name":...`. */
void lock_put_name(struct call *c);
void lock_put_owner(struct call *c); /* `,"owner":"..."` */

#endif
