/* Messages to the lock service as HTTP has them (docs/api.md, "Locks"), and its answers.  Pure
 * functions; any thread. */
#ifndef HF_LEASE_HOLDFAST_WIRE_H
#define HF_LEASE_HOLDFAST_WIRE_H

#include <jansson.h>

#include "lease/holdfast/client.h"
#include "net/http_client.h"

/* Writes path and body, each with a NUL that is not counted; returns the method. */
const char *wire_request(const struct client_message *m, struct buf *ret_path,
                         struct buf *ret_body);

/* What a response is, besides an answer. */
enum wire_kind {
    WIRE_ANSWER,   /* *ret is filled */
    WIRE_REDIRECT, /* to another server */
    WIRE_LATER,    /* nothing was done; this server, or another, may do it later */
    WIRE_UNKNOWN,  /* it may have been done */
};
struct wire_answer {
    struct client_answer answer;
    json_t *json; /* what the texts of `answer` are borrowed from */
    const char *wanted[CLIENT_WANTED_MAX];
    struct hf_fault fault; /* if it is no answer, or one that refuses */
};
enum wire_kind wire_answer(const struct client_message *m, const struct http_response *response,
                           struct wire_answer *ret);
void wire_answer_close(struct wire_answer *a);

/* The same for requests that are no messages: GET, break. */
enum wire_kind wire_judge(const struct http_response *response, struct hf_fault *ret_fault);

#endif
