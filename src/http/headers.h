/* The headers that every request is read for, in one pass. */
#ifndef HF_HTTP_HEADERS_H
#define HF_HTTP_HEADERS_H

#include "http/request.h"

/* Fills in the request's part "headers". */
void headers_read(struct request *r);
/* Do the headers leave no doubt where the body ends?  If they did, a proxy and this server could
 * see different requests. */
bool headers_frame_clearly(const struct request *r);

#endif
