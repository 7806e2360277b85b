/* Small readers of what clients write into request lines and headers.  Pure functions, so that
 * tests/fuzz can reach them without a connection. */
#ifndef HF_HTTP_TEXT_H
#define HF_HTTP_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* A part of a larger text. */
struct text {
    const char *data; /* NULL: absent.  Not NUL-terminated */
    size_t len;
};

/* Percent-decodes a path or query value in place and returns the new length.  %00 stays as it is:
 * decoded, it would end the string early and make two paths equal; request_name decodes it.  %2F
 * and %25 stay for text_unescape_name: decoded, a slash in a name would end its segment. */
size_t text_unescape(char *text);
/* Decodes %2F and %25 in a name that was found in a path or query.  `out` has room for `len` bytes,
 * and may be `text`.  Returns the length of the result. */
size_t text_unescape_name(const char *text, size_t len, char *out);

/* Does an If-None-Match list name `etag`?  Weak comparison, as RFC 9110 has it for this header. */
bool text_etag_listed(const char *list, const char *etag);

#endif
