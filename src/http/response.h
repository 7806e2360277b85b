/* From struct answer to the bytes before the body. */
#ifndef HF_HTTP_RESPONSE_H
#define HF_HTTP_RESPONSE_H

#include "http/request.h"

/* Writes status line and headers into r->answer_head.  `date` is a whole header line.  Sets
 * r->answer.close if the connection has to end with this answer. */
void response_write_head(struct request *r, const char *date);

#endif
