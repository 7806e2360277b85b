/* From struct answer to what libmicrohttpd sends. */
#ifndef HF_HTTP_RESPONSE_H
#define HF_HTTP_RESPONSE_H

#include "http/request.h"

/* Queue r->answer on its connection. */
enum MHD_Result response_queue(struct request *r);
/* The same as bytes, head and body, for a connection that libmicrohttpd will not answer. */
void response_write(const struct request *r, struct buf *out);
void response_forget(struct kept_response *kept); /* accepts a zeroed struct */

#endif
