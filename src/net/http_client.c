/* See http_client.h.  A client is a pool (net/http_pool.h) that is waited for; this file adds what
 * does not depend on how a request is run. */
#include "net/http_client.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "net/http_pool.h"

struct http_client {
    struct http_pool *pool;
};

struct http_client *http_client_new(const struct http_client_options *options)
{
    struct http_client *client = hf_alloc(sizeof *client);
    client->pool = http_pool_new(options);
    return client;
}

void http_client_free(struct http_client *client)
{
    if (!client)
        return;
    http_pool_free(client->pool);
    free(client);
}

void http_client_run(struct http_client *client, struct http_exchange *exchanges, size_t n)
{
    for (size_t i = 0; i < n; i++)
        http_pool_start(client->pool, &exchanges[i], NULL);
    while (http_pool_running(client->pool) > 0)
        http_pool_turn(client->pool, -1);
}

enum hf_status http_client_call(struct http_client *client, const struct http_request *request,
                                struct http_response *ret, struct hf_err *err)
{
    struct http_exchange exchange = {.request = *request, .response = *ret};
    http_client_run(client, &exchange, 1);
    *ret = exchange.response;
    if (exchange.result != HF_OK && err)
        *err = exchange.err;
    return exchange.result;
}

/* ---- responses ---- */

const char *http_response_header(const struct http_response *response, const char *name)
{
    size_t name_len = strlen(name);
    const struct buf *headers = &response->headers;
    for (size_t at = 0; at < headers->len; at += strlen(headers->data + at) + 1) {
        const char *line = headers->data + at;
        if (strncasecmp(line, name, name_len) == 0 && line[name_len] == ':') {
            const char *value = line + name_len + 1;
            return value + strspn(value, " \t");
        }
    }
    return NULL;
}

int64_t http_response_retry_after_ms(const struct http_response *response, int64_t max_ms)
{
    const char *text = http_response_header(response, "Retry-After");
    size_t len = text ? strspn(text, "0123456789") : 0;
    if (len == 0 || text[len])
        return 0;
    int64_t seconds = len > 9 ? INT64_C(999999999) : strtoll(text, NULL, 10);
    return seconds * 1000 < max_ms ? seconds * 1000 : max_ms;
}

void http_response_close(struct http_response *response)
{
    buf_close(&response->body);
    buf_close(&response->headers);
    *response = (struct http_response){0};
}
