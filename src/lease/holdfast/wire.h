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

struct wire_answer {
    struct client_answer answer;
    json_t *json; /* the body; the texts of `answer` are borrowed from it */
    const char *wanted[CLIENT_WANTED_MAX];
    struct hf_fault fault; /* if the answer refuses, or is none */
};
/* Reads the response to a message; `m` NULL: to a request that is none (GET, break).  A redirection
 * is CLIENT_NOT_DONE.  Returns the result of the answer. */
enum client_result wire_answer(const struct client_message *m, const struct http_response *response,
                               struct wire_answer *ret);
void wire_answer_close(struct wire_answer *a);

#endif
