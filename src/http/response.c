/* Answers on their way out, on the thread of their connection.
 *
 * A response of libmicrohttpd is a dozen allocations, and while a sale is on most answers are
 * refusals.  So a request keeps the response of its last plain problem, also in the free list: the
 * next problem of the same length, type and origin is written into it, and only the bytes and
 * X-Request-Id change.  A request stays on its thread and carries one answer at a time, so nothing
 * else can be reading the response. */
#include "http/response.h"

#include <stdlib.h>
#include <string.h>

#include "http/route.h"
#include "http/server.h"

#define KEPT_LEN_MAX 1024

static struct MHD_Response *response_new(struct answer *a)
{
    void *data = (void *)(uintptr_t)(a->data ? a->data : "");
    void (*sent)(void *) = a->sent;
    a->sent = NULL; /* from here on libmicrohttpd calls it */
    if (sent)
        return MHD_create_response_from_buffer_with_free_callback_cls(a->len, data, sent, a->owner);
    return MHD_create_response_from_buffer(a->len, data, MHD_RESPMEM_PERSISTENT);
}

typedef void (*put_fn)(void *ctx, const char *name, const char *value);

static bool no_store(const struct request *r)
{
    bool private = r->route && (r->route->no_store || r->needs > SCOPE_BUYER);
    return private && (r->answer.status < 300 || r->method[0] != 'P');
}

/* If a list of origins is configured, answers depend on Origin even where the request has none. */
static const char *vary(const struct request *r)
{
    const struct cors *cors = server_cors(r->server);
    bool by_origin = cors->origins && !cors_any(cors);
    if (r->answer.varies)
        return by_origin ? "Accept-Encoding, Origin" : "Accept-Encoding";
    return by_origin ? "Origin" : NULL;
}

static void put_cors(const struct request *r, put_fn put, void *ctx)
{
    if (!r->cors_origin)
        return;
    put(ctx, "Access-Control-Allow-Origin", r->cors_origin);
    if (!r->answer.preflight) {
        put(ctx, "Access-Control-Expose-Headers", cors_expose);
        return;
    }
    put(ctx, "Access-Control-Allow-Methods", r->route->allow);
    put(ctx, "Access-Control-Allow-Headers", cors_headers);
    put(ctx, "Access-Control-Max-Age", cors_max_age);
}

/* The headers that a kept response has on every use: they depend on type and origin alone. */
static void put_constant(const struct request *r, put_fn put, void *ctx)
{
    const struct answer *a = &r->answer;
    put(ctx, "X-Content-Type-Options", "nosniff");
    if (a->type) {
        put(ctx, MHD_HTTP_HEADER_CONTENT_TYPE, a->type);
        put(ctx, "Content-Security-Policy",
            a->policy ? a->policy : "default-src 'none'; frame-ancestors 'none'");
        put(ctx, "Referrer-Policy", "no-referrer");
    }
    const char *varies = vary(r);
    if (varies)
        put(ctx, MHD_HTTP_HEADER_VARY, varies);
    put_cors(r, put, ctx);
}

/* Only what is needed: each header costs libmicrohttpd three allocations. */
static void put_headers(const struct request *r, put_fn put, void *ctx)
{
    const struct answer *a = &r->answer;
    put(ctx, "X-Request-Id", r->id);
    put_constant(r, put, ctx);
    if (no_store(r))
        put(ctx, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    if (a->etag[0])
        put(ctx, MHD_HTTP_HEADER_ETAG, a->etag);
    if (a->gzipped)
        put(ctx, MHD_HTTP_HEADER_CONTENT_ENCODING, "gzip");
    if (a->allow)
        put(ctx, MHD_HTTP_HEADER_ALLOW, a->allow);
    if (a->location)
        put(ctx, MHD_HTTP_HEADER_LOCATION, a->location);
    if (a->challenge)
        put(ctx, MHD_HTTP_HEADER_WWW_AUTHENTICATE, a->challenge);
    if (a->replayed)
        put(ctx, "Idempotency-Replayed", "true");
    if (a->retry)
        put(ctx, MHD_HTTP_HEADER_RETRY_AFTER, "1");
    if (a->close || server_draining(r->server))
        put(ctx, MHD_HTTP_HEADER_CONNECTION, "close");
}

static void put_in_response(void *ctx, const char *name, const char *value)
{
    (void)MHD_add_response_header(ctx, name, value);
}

static void put_in_text(void *ctx, const char *name, const char *value)
{
    buf_printf(ctx, "%s: %s\r\n", name, value);
}

void response_write(const struct request *r, struct buf *out)
{
    const struct answer *a = &r->answer;
    buf_printf(out, "HTTP/1.1 %d %s\r\n", a->status,
               MHD_get_reason_phrase_for((unsigned)a->status));
    put_headers(r, put_in_text, out);
    buf_printf(out, "Content-Length: %zu\r\n\r\n", a->len);
    buf_put(out, a->data, a->len);
}

/* Is it a problem without headers beside its id and those of put_constant? */
static bool is_plain(const struct request *r)
{
    const struct answer *a = &r->answer;
    return a->status >= MHD_HTTP_BAD_REQUEST && a->len > 0 && a->len <= KEPT_LEN_MAX && a->type &&
           !a->sent && !a->etag[0] && !a->varies && !a->allow && !a->challenge && !a->policy &&
           !a->replayed && !a->retry && !a->close && !no_store(r) && !server_draining(r->server);
}

void response_forget(struct kept_response *kept)
{
    if (kept->response)
        MHD_destroy_response(kept->response);
    free(kept->data);
    *kept = (struct kept_response){0};
}

static bool keep_new(struct request *r)
{
    const struct answer *a = &r->answer;
    struct kept_response *kept = &r->kept;
    response_forget(kept);
    kept->data = hf_alloc(a->len);
    kept->response = MHD_create_response_from_buffer(a->len, kept->data, MHD_RESPMEM_PERSISTENT);
    if (!kept->response)
        return false;
    kept->len = a->len;
    kept->type = a->type;
    kept->cors_origin = r->cors_origin;
    put_constant(r, put_in_response, kept->response);
    return true;
}

static enum MHD_Result queue_plain(struct request *r)
{
    const struct answer *a = &r->answer;
    struct kept_response *kept = &r->kept;
    if (kept->response && kept->len == a->len && kept->type == a->type &&
        kept->cors_origin == r->cors_origin)
        (void)MHD_del_response_header(kept->response, "X-Request-Id", kept->id);
    else if (!keep_new(r))
        return MHD_NO;
    memcpy(kept->data, a->data, a->len);
    memcpy(kept->id, r->id, sizeof kept->id);
    (void)MHD_add_response_header(kept->response, "X-Request-Id", kept->id);
    return MHD_queue_response(r->connection, (unsigned)a->status, kept->response);
}

enum MHD_Result response_queue(struct request *r)
{
    if (is_plain(r))
        return queue_plain(r);
    struct MHD_Response *m = response_new(&r->answer);
    if (!m)
        return MHD_NO;
    put_headers(r, put_in_response, m);
    enum MHD_Result result = MHD_queue_response(r->connection, (unsigned)r->answer.status, m);
    MHD_destroy_response(m);
    return result;
}
