/* GET /v1/events/{id}/stream on the main port: a redirect to the streams' port.  On HTTP threads;
 * see http/stream.h for why streams have a port of their own. */
#include <string.h>

#include "api/routes.h"
#include "rules/view.h"

#define HOST_LEN_MAX 255

static bool is_host_char(char c, bool bracketed)
{
    if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F') || c == '.')
        return true;
    if (bracketed)
        return c == ':';
    return (c >= 'g' && c <= 'z') || (c >= 'G' && c <= 'Z') || c == '-' || c == '_';
}

/* The length of the name in `NAME` or `NAME:PORT`; 0 if it is malformed. */
static size_t name_len(const char *host)
{
    bool bracketed = *host == '[';
    size_t n = bracketed;
    while (host[n] && n < HOST_LEN_MAX && is_host_char(host[n], bracketed))
        n++;
    if (n == (size_t)bracketed || (bracketed && host[n++] != ']'))
        return 0;
    if (host[n] == ':')
        return strspn(host + n + 1, "0123456789") == strlen(host + n + 1) ? n : 0;
    return host[n] ? 0 : n;
}

static void put_escaped(struct buf *out, const char *text)
{
    static const char hex[] = "0123456789ABCDEF";
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-')
            buf_char(out, (char)c);
        else
            buf_put(out, (char[]){'%', hex[c >> 4], hex[c & 15]}, 3);
    }
}

/* Redirects to the host that the client used, since the server may be known by many names. */
void events_stream(struct request *r)
{
    struct call *c = call_of(r);
    struct event *e = call_event_named(c, r->segment.data, r->segment.len, events_stream);
    if (!e)
        return;
    const char *address = call_api(c)->stream_address, *port = strrchr(address, ':');
    const char *host = request_header(r, "Host"), *after = request_query(r, "after");
    size_t len = host ? name_len(host) : 0;
    struct buf *out = &r->out;
    buf_lit(out, "http://");
    buf_put(out, len ? host : address, len ? len : (size_t)(port - address));
    buf_str(out, port);
    buf_lit(out, "/v1/events/");
    buf_str(out, event_id_text(e));
    buf_lit(out, "/stream");
    if (after) {
        buf_lit(out, "?after=");
        put_escaped(out, after);
    }
    buf_char(out, '\0');
    r->answer.status = HTTP_TEMPORARY_REDIRECT;
    r->answer.location = out->data;
}
