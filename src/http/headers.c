/* See headers.h.  On the thread of the request's connection. */
#include "http/headers.h"

#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool name_is(const char *name, size_t len, const char *wanted)
{
    return strlen(wanted) == len && strncasecmp(name, wanted, len) == 0;
}

/* Called for each header: one pass over them all, where a lookup by name is a pass of its own. */
static enum MHD_Result on_header(void *ctx, enum MHD_ValueKind kind, const char *name, size_t len,
                                 const char *value, size_t value_len)
{
    struct request *r = ctx;
    (void)kind;
    if (!value)
        value = "";
    while (value_len && (value[value_len - 1] == ' ' || value[value_len - 1] == '\t'))
        value_len--;
    if (len == 0 || name[len - 1] == ' ' || name[len - 1] == '\t') {
        r->has_odd_name = true; /* `Content-Length : 2` is a length to some and none to others */
    } else if (name_is(name, len, "Idempotency-Key")) {
        r->n_keys++;
        r->key = (struct text){value, value_len};
    } else if (name_is(name, len, MHD_HTTP_HEADER_CONTENT_LENGTH)) {
        r->n_lengths++;
        r->content_length = strtoull(value, NULL, 10);
    } else if (name_is(name, len, MHD_HTTP_HEADER_TRANSFER_ENCODING)) {
        r->n_encodings++;
        r->chunked = name_is(value, value_len, "chunked");
    } else if (name_is(name, len, MHD_HTTP_HEADER_EXPECT)) {
        r->expects = true;
    } else if (name_is(name, len, MHD_HTTP_HEADER_AUTHORIZATION)) {
        r->n_authorizations++;
        r->authorization = (struct text){value, value_len};
    } else if (name_is(name, len, MHD_HTTP_HEADER_ORIGIN)) {
        r->origin = (struct text){value, value_len};
    }
    return MHD_YES;
}

void headers_read(struct request *r)
{
    (void)MHD_get_connection_values_n(r->connection, MHD_HEADER_KIND, on_header, r);
}

bool headers_frame_clearly(const struct request *r)
{
    return !r->has_odd_name && r->n_lengths + r->n_encodings <= 1 &&
           (r->n_encodings == 0 || r->chunked);
}
