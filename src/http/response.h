/* From struct answer to what libmicrohttpd sends. */
#ifndef HF_HTTP_RESPONSE_H
#define HF_HTTP_RESPONSE_H

#include <microhttpd.h>

#include "http/request.h"

/* Queues r->answer on its connection. */
enum MHD_Result response_queue(struct request *r);
/* Appends head and body as bytes, for a connection on which libmicrohttpd takes no answer. */
void response_write(const struct request *r, struct buf *out);
void response_forget(struct kept_response *kept); /* accepts a zeroed struct */

#endif
