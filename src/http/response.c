/* Answers on their way out.  A response of libmicrohttpd is a dozen allocations, and refusals come
 * by the ten thousand: a request keeps the response of its last plain problem, and the next problem
 * of the same length is written into it; only the bytes and the X-Request-Id change.  Requests stay
 * on their thread and carry one answer at a time, so nothing else can be reading it. */
#include "http/response.h"

#include <stdlib.h>
#include <string.h>

#include "http/routes.h"
#include "http/server.h"

#define KEPT_LEN_MAX 1024

static struct MHD_Response *response_new(struct answer *a)
{
    void *data = (void *)(uintptr_t)(a->data ? a->data : "");
    void (*sent)(void *) = a->sent;
    a->sent = NULL; /* libmicrohttpd's business from here on */
    if (sent)
        return MHD_create_response_from_buffer_with_free_callback_cls(a->len, data, sent, a->owner);
    return MHD_create_response_from_buffer(a->len, data, MHD_RESPMEM_PERSISTENT);
}

/* Three headers on a refusal: each costs libmicrohttpd three allocations. */
static void headers_add(struct MHD_Response *m, const struct request *r)
{
    const struct answer *a = &r->answer;
    (void)MHD_add_response_header(m, "X-Request-Id", r->id);
    if (a->type)
        (void)MHD_add_response_header(m, MHD_HTTP_HEADER_CONTENT_TYPE, a->type);
    if (r->route && r->route->no_store && (a->status < 300 || r->method[0] != 'P'))
        (void)MHD_add_response_header(m, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    if (a->etag[0])
        (void)MHD_add_response_header(m, MHD_HTTP_HEADER_ETAG, a->etag);
    if (a->varies)
        (void)MHD_add_response_header(m, MHD_HTTP_HEADER_VARY, MHD_HTTP_HEADER_ACCEPT_ENCODING);
    if (a->gzipped)
        (void)MHD_add_response_header(m, MHD_HTTP_HEADER_CONTENT_ENCODING, "gzip");
    if (a->allow)
        (void)MHD_add_response_header(m, MHD_HTTP_HEADER_ALLOW, a->allow);
    if (a->location)
        (void)MHD_add_response_header(m, MHD_HTTP_HEADER_LOCATION, a->location);
    if (a->replayed)
        (void)MHD_add_response_header(m, "Idempotency-Replayed", "true");
    if (a->retry)
        (void)MHD_add_response_header(m, MHD_HTTP_HEADER_RETRY_AFTER, "1");
    if (a->close || server_draining(r->server))
        (void)MHD_add_response_header(m, MHD_HTTP_HEADER_CONNECTION, "close");
}

/* A problem with nothing but its type and id in the headers. */
static bool is_plain(const struct request *r)
{
    const struct answer *a = &r->answer;
    bool store = r->route && r->route->no_store && r->method[0] != 'P';
    return a->status >= MHD_HTTP_BAD_REQUEST && a->len > 0 && a->len <= KEPT_LEN_MAX && a->type &&
           !a->sent && !a->etag[0] && !a->varies && !a->allow && !a->replayed && !a->retry &&
           !a->close && !store && !server_draining(r->server);
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
    return MHD_add_response_header(kept->response, MHD_HTTP_HEADER_CONTENT_TYPE, a->type);
}

static enum MHD_Result queue_plain(struct request *r)
{
    const struct answer *a = &r->answer;
    struct kept_response *kept = &r->kept;
    if (kept->response && kept->len == a->len && kept->type == a->type)
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
    headers_add(m, r);
    enum MHD_Result result = MHD_queue_response(r->connection, (unsigned)r->answer.status, m);
    MHD_destroy_response(m);
    return result;
}
