/* Small readers of what clients write into request lines and headers.  Pure; any thread. */
#ifndef HF_HTTP_TEXT_H
#define HF_HTTP_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Percent-decoding in place, of paths and query values; returns the new length.  %00 stays as it
 * is: decoded, it would end the string early and make two paths one.  %2F and %25 stay for
 * text_unescape_name: decoded, a slash in a seat's name would end its segment. */
size_t text_unescape(char *text);
/* The rest of it, for a name that was found in a path or query: `out` has room for `len`. */
size_t text_unescape_name(const char *text, size_t len, char *out);

/* Does an If-None-Match list name `etag`?  Weak comparison, as RFC 9110 has it for this header. */
bool text_etag_listed(const char *list, const char *etag);

#endif
