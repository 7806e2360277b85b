/* The buyers' end of a race against Holdfast: POST requests on one kept connection, as a load
 * generator sends them.  It knows only what that takes: an address in digits, one request at a
 * time, responses with a Content-Length.  Everything else in the lab that speaks HTTP uses
 * net/http_client.h.
 *
 * Why not here, too: the buyers run on the machine that they measure.  libcurl costs about 20 us
 * of CPU per request and this file 8; on two cores that took Holdfast's row of a race of 10,000
 * users from 48,000 to 30,000 users per second, while the rows beside it, whose clients are libpq
 * and hiredis, stayed as they were.
 *
 * One thread per struct. */
#ifndef HF_LAB_LOAD_CLIENT_H
#define HF_LAB_LOAD_CLIENT_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/status.h"

/* A zeroed struct is a closed client. */
struct load_client {
    int socket;        /* 0 if there is no connection */
    struct buf out;    /* the request */
    struct buf answer; /* the response, header and body */
};

/* Connects to http://ADDRESS:PORT unless there is a connection. */
HF_MUST_USE bool load_client_connect(struct load_client *c, const char *url, int timeout_s,
                                     struct hf_err *err);
/* Returns the HTTP status of the response, or 0 if none came; the connection is then closed. */
int load_client_post(struct load_client *c, const char *path, const struct buf *body);
void load_client_close(struct load_client *c);

#endif
