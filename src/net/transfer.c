/* See transfer.h. */
#include "net/transfer.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#define HEADERS_LEN_MAX ((size_t)64 << 10)

/* ---- what libcurl calls ---- */

static curl_socket_t open_socket(void *ctx, curlsocktype purpose, struct curl_sockaddr *at)
{
    (void)ctx, (void)purpose;
    return socket(at->family, at->socktype | SOCK_CLOEXEC, at->protocol);
}

static bool is_repeatable(const struct http_request *request)
{
    return request->is_repeatable || strcmp(request->method, "GET") == 0 ||
           strcmp(request->method, "HEAD") == 0;
}

static int before_sending(void *ctx, char *to, char *from, int to_port, int from_port)
{
    (void)to, (void)from, (void)to_port, (void)from_port;
    struct transfer *t = ctx;
    bool may_send = ++t->times_sent == 1 || is_repeatable(&t->exchange->request);
    return may_send ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT;
}

static size_t take_body(char *data, size_t size, size_t n, void *ctx)
{
    struct transfer *t = ctx;
    const struct http_request *request = &t->exchange->request;
    struct buf *body = &t->exchange->response.body;
    size_t len = size * n;
    long status = 0;
    if (request->on_body &&
        curl_easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &status) == CURLE_OK &&
        status / 100 == 2)
        return request->on_body(request->ctx, data, len) ? len : 0;
    if (len > t->options->body_len_max - body->len) {
        t->too_large = true;
        return 0;
    }
    buf_put(body, data, len);
    return len;
}

/* Called with one line at a time, its end included.  A response may be preceded by others (100
 * Continue), so each status line begins anew. */
static size_t take_header(char *data, size_t size, size_t n, void *ctx)
{
    struct transfer *t = ctx;
    struct buf *headers = &t->exchange->response.headers;
    size_t len = size * n, text_len = len;
    while (text_len > 0 && (data[text_len - 1] == '\n' || data[text_len - 1] == '\r'))
        text_len--;
    if (text_len >= 5 && strncmp(data, "HTTP/", 5) == 0) {
        headers->len = 0;
        t->has_all_headers = false;
        return len;
    }
    if (text_len == 0) {
        t->has_all_headers = true;
        return len;
    }
    if (headers->len + text_len > HEADERS_LEN_MAX) {
        t->too_large = true;
        return 0;
    }
    buf_put(headers, data, text_len);
    buf_char(headers, '\0');
    return len;
}

/* ---- a request ---- */

/* Letters, digits and punctuation, as in the name of a method or a header. */
static bool is_token(const char *text)
{
    size_t len = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                              "!#$%&'*+-.^_`|~");
    return len > 0 && !text[len];
}

static bool is_header_value(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' && *text != '\t')
            return false;
    return true;
}

/* Remembers `text`; returns whether it is what was remembered before. */
static bool is_unchanged(struct buf *remembered, const char *text)
{
    size_t size = strlen(text) + 1;
    if (remembered->len == size && memcmp(remembered->data, text, size) == 0)
        return true;
    remembered->len = 0;
    buf_put(remembered, text, size);
    return false;
}

static enum hf_status set_url(struct transfer *t, const char *text, struct hf_err *err)
{
    struct http_origin origin;
    if (is_unchanged(&t->url, text))
        return HF_OK;
    if (!http_origin_parse(text, &origin)) {
        t->url.len = 0;
        return hf_err_set(err, HF_INVALID_REQUEST, "not an http:// or https:// URL");
    }
    bool direct = origin.is_loopback && !t->options->proxy_even_to_loopback;
    memcpy(t->origin, origin.text, sizeof t->origin);
    curl_easy_setopt(t->curl, CURLOPT_PROXY, direct ? "" : NULL);
    curl_easy_setopt(t->curl, CURLOPT_URL, text);
    return HF_OK;
}

static void add_header(struct curl_slist **list, const char *line)
{
    *list = curl_slist_append(*list, line);
    hf_check(*list);
}

/* libcurl would ask for 100-continue before a large body and call every body a form. */
static struct curl_slist *headers_taken_back(void)
{
    struct curl_slist *list = NULL;
    add_header(&list, "Expect:");
    add_header(&list, "Content-Type:");
    return list;
}

static enum hf_status set_headers(struct transfer *t, struct hf_err *err)
{
    const struct http_request *request = &t->exchange->request;
    struct curl_slist *list = NULL;
    struct buf line = {0};
    bool has_type = false, is_valid = true;
    if (request->n_headers == 0 && !t->headers)
        return HF_OK;
    for (size_t i = 0; is_valid && i < request->n_headers; i++) {
        const struct http_header *header = &request->headers[i];
        is_valid = is_token(header->name) && is_header_value(header->value);
        if (!is_valid) {
            (void)hf_err_set(err, HF_INVALID_REQUEST, "header %.40s is malformed", header->name);
            break;
        }
        has_type |= strcasecmp(header->name, "Content-Type") == 0;
        line.len = 0;
        /* "Name;" is how libcurl is told to send a header without a value. */
        buf_printf(&line, *header->value ? "%s: %s" : "%s;", header->name, header->value);
        buf_char(&line, '\0');
        add_header(&list, line.data);
    }
    buf_close(&line);
    if (list) {
        add_header(&list, "Expect:");
        if (!has_type)
            add_header(&list, "Content-Type:");
    }
    curl_easy_setopt(t->curl, CURLOPT_HTTPHEADER, list ? list : t->no_headers);
    curl_slist_free_all(t->headers);
    t->headers = list;
    return is_valid ? HF_OK : HF_INVALID_REQUEST;
}

static void set_method_and_body(struct transfer *t)
{
    const struct http_request *request = &t->exchange->request;
    const char *method = request->method;
    bool has_body = request->body_len > 0 || strcmp(method, "POST") == 0 ||
                    strcmp(method, "PUT") == 0 || strcmp(method, "PATCH") == 0;
    if (!is_unchanged(&t->method, method) || t->has_body != has_body) {
        bool is_head = strcmp(method, "HEAD") == 0;
        t->has_body = has_body;
        curl_easy_setopt(t->curl, CURLOPT_NOBODY, is_head ? 1L : 0L);
        if (has_body)
            curl_easy_setopt(t->curl, CURLOPT_POST, 1L);
        else if (!is_head)
            curl_easy_setopt(t->curl, CURLOPT_HTTPGET, 1L);
        curl_easy_setopt(t->curl, CURLOPT_CUSTOMREQUEST, method);
    }
    if (has_body) {
        curl_easy_setopt(t->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body_len);
        curl_easy_setopt(t->curl, CURLOPT_POSTFIELDS, request->body_len ? request->body : "");
    }
}

static void set_timeout(struct transfer *t, int64_t timeout_ms, bool streams)
{
    if (t->timeout_ms == timeout_ms && t->streams == streams)
        return;
    curl_easy_setopt(t->curl, CURLOPT_TIMEOUT_MS, streams ? 0L : (long)timeout_ms);
    curl_easy_setopt(t->curl, CURLOPT_LOW_SPEED_LIMIT, streams ? 1L : 0L);
    curl_easy_setopt(t->curl, CURLOPT_LOW_SPEED_TIME,
                     streams ? (long)((timeout_ms + 999) / 1000) : 0L);
    t->timeout_ms = timeout_ms;
    t->streams = streams;
}

static void clear_response(struct http_response *response)
{
    response->status = 0;
    response->body.len = response->headers.len = 0;
    response->is_too_large = false;
}

enum hf_status transfer_begin(struct transfer *t, struct hf_err *err)
{
    const struct http_request *request = &t->exchange->request;
    int64_t timeout_ms = request->timeout_ms ? request->timeout_ms : t->options->timeout_ms;
    clear_response(&t->exchange->response);
    t->times_sent = 0;
    t->too_large = t->has_all_headers = false;
    t->error[0] = '\0';
    if (!is_token(request->method))
        return hf_err_set(err, HF_INVALID_REQUEST, "the method is malformed");
    enum hf_status status = set_url(t, request->url, err);
    if (status == HF_OK)
        status = set_headers(t, err);
    if (status != HF_OK)
        return status;
    set_method_and_body(t);
    set_timeout(t, timeout_ms, request->on_body != NULL);
    return HF_OK;
}

void transfer_end(struct transfer *t, CURLcode code)
{
    struct http_exchange *exchange = t->exchange;
    struct http_response *response = &exchange->response;
    long status = 0;
    curl_easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &status);
    exchange->was_repeated = t->times_sent > 1;
    /* libcurl takes a response that ends within its headers for a complete one. */
    if (code == CURLE_OK && t->has_all_headers) {
        exchange->result = HF_OK;
        response->status = (int)status;
        buf_char(&response->body, '\0');
        response->body.len--;
        return;
    }
    const char *why = t->error[0] ? t->error : curl_easy_strerror(code);
    if (t->too_large)
        why = "the response is too large";
    else if (t->times_sent > 1 || code == CURLE_OK)
        why = "the connection was closed before the response was complete";
    exchange->result =
        hf_err_set(&exchange->err, t->times_sent ? HF_OUTCOME_UNKNOWN : HF_UNAVAILABLE,
                   "%s: %.120s", t->origin, why);
    clear_response(response);
    response->is_too_large = t->too_large;
}

struct transfer *transfer_new(const struct http_client_options *options)
{
    struct transfer *t = hf_alloc(sizeof *t);
    t->options = options;
    t->no_headers = headers_taken_back();
    t->curl = curl_easy_init();
    hf_check(t->curl);
    CURL *curl = t->curl;
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, t->no_headers);
    curl_easy_setopt(curl, CURLOPT_PRIVATE, t);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, t->error);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "holdfast");
    curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(curl, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)options->connect_timeout_ms);
    if (options->ca_file)
        curl_easy_setopt(curl, CURLOPT_CAINFO, options->ca_file);
    if (options->cert_file)
        curl_easy_setopt(curl, CURLOPT_SSLCERT, options->cert_file);
    if (options->key_file)
        curl_easy_setopt(curl, CURLOPT_SSLKEY, options->key_file);
    curl_easy_setopt(curl, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    curl_easy_setopt(curl, CURLOPT_PREREQFUNCTION, before_sending);
    curl_easy_setopt(curl, CURLOPT_PREREQDATA, t);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, t);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, take_header);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, t);
    return t;
}

void transfer_free(struct transfer *t)
{
    curl_easy_cleanup(t->curl);
    curl_slist_free_all(t->headers);
    curl_slist_free_all(t->no_headers);
    buf_close(&t->url);
    buf_close(&t->method);
    free(t);
}
