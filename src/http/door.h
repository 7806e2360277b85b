/* Whether a request may come in, by its head alone, before its body is read:
 *
 *   head read -> Host -> cross-site -> access -> server drains, guest -> query -> body -> handler
 *
 * A server without keys takes orders from every program that reaches it.  Browsers reach it on
 * behalf of every page that they show, so two headers that pages cannot forge are looked at:
 *
 *   Host            must be a name of the server (host.h), else 421 misdirected_request.  Covers
 *                   reading, too: what a page may read depends on the host of its URL.
 *   Origin,         of a request that could change something must be the server's own or listed in
 *   Sec-Fetch-Site  --cors-origin, else 403 cross_site.  A form of another site can be sent without
 *                   asking first, with a body that is JSON for us.
 *
 * Programs send neither Origin nor Sec-Fetch-Site, and are not affected. */
#ifndef HF_HTTP_DOOR_H
#define HF_HTTP_DOOR_H

#include "http/request.h"

/* The origin of the page that may read the answer; NULL: none may, or none asks. */
const char *door_origin(const struct request *r);
/* The step that refuses the request; NULL: it may go on.  The route has been looked up.  Sets
 * r->caller. */
step_fn door_refusal(struct request *r);

#endif
