/* See response.h.  While a sale is on, most answers are refusals, so what does not change between
 * answers is copied as one piece. */
#include "http/response.h"

#include "http/conn.h"
#include "http/route.h"
#include "http/server_internal.h"

#define HEAD_ROOM 512 /* of nearly every head */

/* Reasons are for people; clients go by the number. */
static const struct {
    int status;
    const char *reason;
} reasons[] = {{200, "OK"},
               {201, "Created"},
               {204, "No Content"},
               {303, "See Other"},
               {304, "Not Modified"},
               {307, "Temporary Redirect"},
               {400, "Bad Request"},
               {401, "Unauthorized"},
               {402, "Payment Required"},
               {403, "Forbidden"},
               {404, "Not Found"},
               {405, "Method Not Allowed"},
               {408, "Request Timeout"},
               {409, "Conflict"},
               {410, "Gone"},
               {413, "Content Too Large"},
               {417, "Expectation Failed"},
               {421, "Misdirected Request"},
               {422, "Unprocessable Content"},
               {429, "Too Many Requests"},
               {431, "Request Header Fields Too Large"},
               {500, "Internal Server Error"},
               {501, "Not Implemented"},
               {502, "Bad Gateway"},
               {503, "Service Unavailable"},
               {505, "HTTP Version Not Supported"}};

static const char *reason_of(int status)
{
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (reasons[i].status == status)
            return reasons[i].reason;
    return "Unknown";
}

static bool no_store(const struct request *r)
{
    bool private = r->route && (r->route->no_store || r->needs > SCOPE_BUYER);
    return private && (r->answer.status < 300 || r->method[0] != 'P');
}

/* If a list of origins is configured, or if pages of the main port may read this one, answers
 * depend on Origin even where the request has none.  So do answers that may be kept until such a
 * list is configured: without this, a browser would take a copy that it got before for one that
 * the new origin may not read. */
static const char *vary(const struct request *r)
{
    const struct cors *cors = server_cors(r->server);
    bool may_be_listed = cors->origins ? !cors_any(cors) : r->answer.headers.outlasts_settings;
    bool by_origin = r->conn->streams_only || may_be_listed;
    if (r->answer.headers.varies)
        return by_origin ? "Accept-Encoding, Origin" : "Accept-Encoding";
    return by_origin ? "Origin" : NULL;
}

/* `name` ends in a colon and a space. */
static void put(struct buf *out, const char *name, const char *value)
{
    buf_str(out, name);
    buf_str(out, value);
    buf_lit(out, "\r\n");
}

static void put_cors(const struct request *r, struct buf *out)
{
    if (!r->cors_origin)
        return;
    put(out, "Access-Control-Allow-Origin: ", r->cors_origin);
    if (!r->answer.headers.preflight) {
        put(out, "Access-Control-Expose-Headers: ", cors_expose);
        return;
    }
    put(out, "Access-Control-Allow-Methods: ", r->route->allow);
    put(out, "Access-Control-Allow-Headers: ", cors_headers);
    put(out, "Access-Control-Max-Age: ", cors_max_age);
}

static void put_type(const struct answer *a, struct buf *out)
{
    if (!a->type)
        return;
    if (a->headers.policy)
        put(out, "Referrer-Policy: no-referrer\r\nContent-Security-Policy: ", a->headers.policy);
    else
        buf_lit(out, "Referrer-Policy: no-referrer\r\n"
                     "Content-Security-Policy: default-src 'none'; frame-ancestors 'none'\r\n");
    put(out, "Content-Type: ", a->type);
}

/* Headers that few answers have. */
static void put_rare(const struct request *r, struct buf *out)
{
    const struct answer_headers *h = &r->answer.headers;
    const char *varies = vary(r);
    if (varies)
        put(out, "Vary: ", varies);
    put_cors(r, out);
    if (no_store(r))
        buf_lit(out, "Cache-Control: no-store\r\n");
    if (h->etag[0])
        put(out, "ETag: ", h->etag);
    if (h->gzipped)
        buf_lit(out, "Content-Encoding: gzip\r\n");
    if (h->allow)
        put(out, "Allow: ", h->allow);
    if (h->location)
        put(out, "Location: ", h->location);
    if (h->challenge)
        put(out, "WWW-Authenticate: ", h->challenge);
    if (h->replayed)
        buf_lit(out, "Idempotency-Replayed: true\r\n");
    if (h->stale)
        buf_lit(out, "Holdfast-Stale: true\r\n");
    if (h->retry_after_ms) {
        buf_lit(out, "Retry-After: ");
        buf_int(out, (h->retry_after_ms + 999) / 1000);
        buf_lit(out, "\r\n");
    }
    if (h->more)
        buf_str(out, h->more);
}

/* How long the body is, and whether the connection goes on. */
static void put_framing(const struct request *r, struct buf *out)
{
    const struct answer *a = &r->answer;
    if (a->stream.topic) {
        buf_lit(out, "Cache-Control: no-cache, no-store\r\nX-Accel-Buffering: no\r\n");
        if (r->head.minor > 0)
            buf_lit(out, "Transfer-Encoding: chunked\r\n");
    } else if (a->status != HTTP_NO_CONTENT && a->status != HTTP_NOT_MODIFIED) {
        buf_lit(out, "Content-Length: ");
        buf_int(out, (int64_t)a->len);
        buf_lit(out, "\r\n");
    }
    if (a->close)
        buf_lit(out, "Connection: close\r\n");
    else if (r->head.minor == 0)
        buf_lit(out, "Connection: keep-alive\r\n");
}

void response_write_head(struct request *r, const char *date)
{
    struct answer *a = &r->answer;
    struct buf *out = &r->answer_head;
    if (a->stream.topic || !r->head.persists || server_leaving(r->server) ||
        r->conn->place.is_guest)
        a->close = true;
    out->len = 0;
    buf_reserve(out, HEAD_ROOM);
    buf_lit(out, "HTTP/1.1 ");
    buf_int(out, a->status);
    buf_char(out, ' ');
    put(out, reason_of(a->status), "");
    buf_put(out, date, DATE_LEN);
    buf_lit(out, "X-Content-Type-Options: nosniff\r\nX-Request-Id: ");
    buf_put(out, r->id, REQUEST_ID_LEN);
    buf_lit(out, "\r\n");
    put_type(a, out);
    put_rare(r, out);
    put_framing(r, out);
    buf_lit(out, "\r\n");
}
