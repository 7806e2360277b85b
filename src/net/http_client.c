/* See http_client.h.
 *
 * libcurl's multi interface tells us which files and which moment it waits for (want_file,
 * want_timer); the waiting itself goes through base/wait.h.  An easy handle is configured once and
 * kept for later requests, so that a request costs only the options that differ.
 *
 * Whether anything was sent is decided by `before_sending`, which libcurl calls when a connection
 * is ready and before the first byte of the request.  It is called a second time when libcurl
 * wants to repeat a request because a kept connection died; requests that must not be repeated are
 * ended there. */
#include "net/http_client.h"

#include <curl/curl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/vec.h"
#include "base/wait.h"

#define CONNECT_TIMEOUT_MS 5000
#define TIMEOUT_MS 30000
#define BODY_LEN_MAX ((size_t)1 << 20)
#define CONNECTIONS_MAX 8
#define HEADERS_LEN_MAX ((size_t)64 << 10)
#define ORIGIN_SIZE 128

struct http_client {
    struct http_client_options options;
    CURLM *multi;
    VEC(struct pollfd) files;      /* what libcurl waits for */
    int64_t due_us;                /* when it wants to be called anyway; -1: not */
    struct curl_slist *no_headers; /* takes back the headers that libcurl adds by itself */
    VEC(struct transfer *) idle;   /* configured handles that no request uses */
};

/* One request on its way, and its libcurl handle. */
struct transfer {
    struct http_client *client;
    CURL *curl;
    struct http_exchange *exchange;
    /* What the handle is configured for; a request that differs in nothing costs no setopt. */
    struct buf url, method;
    bool has_body;
    bool streams; /* timeout_ms is the longest silence */
    int64_t timeout_ms;
    struct curl_slist *headers; /* the request's own; NULL: client->no_headers serves */
    int times_sent;
    bool too_large;
    bool has_all_headers;     /* the empty line after them was received */
    char origin[ORIGIN_SIZE]; /* "http://host:port", for messages: a path may have secrets */
    char error[CURL_ERROR_SIZE];
};

/* ---- what libcurl calls ---- */

static int want_file(CURL *curl, curl_socket_t fd, int what, void *ctx, void *file_ctx)
{
    (void)curl, (void)file_ctx;
    struct http_client *client = ctx;
    size_t i = 0;
    while (i < client->files.n && client->files.v[i].fd != fd)
        i++;
    if (what == CURL_POLL_REMOVE) {
        if (i < client->files.n)
            client->files.v[i] = client->files.v[--client->files.n];
        return 0;
    }
    struct pollfd *file = i < client->files.n ? &client->files.v[i] : vec_push(&client->files);
    file->fd = fd;
    file->events =
        (short)((what & CURL_POLL_IN ? POLLIN : 0) | (what & CURL_POLL_OUT ? POLLOUT : 0));
    return 0;
}

static int want_timer(CURLM *multi, long timeout_ms, void *ctx)
{
    (void)multi;
    struct http_client *client = ctx;
    client->due_us = timeout_ms < 0 ? -1 : wait_now_us() + (int64_t)timeout_ms * 1000;
    return 0;
}

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
    if (len > t->client->options.body_len_max - body->len) {
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

static bool is_loopback(const char *host)
{
    return strcasecmp(host, "localhost") == 0 || strcmp(host, "[::1]") == 0 ||
           (strncmp(host, "127.", 4) == 0 && host[strspn(host, "0123456789.")] == '\0');
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
    if (is_unchanged(&t->url, text))
        return HF_OK;
    CURLU *url = curl_url();
    char *scheme = NULL, *host = NULL, *port = NULL;
    hf_check(url);
    bool good = curl_url_set(url, CURLUPART_URL, text, CURLU_NON_SUPPORT_SCHEME) == CURLUE_OK &&
                curl_url_get(url, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK &&
                (strcmp(scheme, "http") == 0 || strcmp(scheme, "https") == 0) &&
                curl_url_get(url, CURLUPART_HOST, &host, 0) == CURLUE_OK &&
                curl_url_get(url, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) == CURLUE_OK;
    if (good) {
        snprintf(t->origin, sizeof t->origin, "%s://%s:%s", scheme, host, port);
        bool direct = is_loopback(host) && !t->client->options.proxy_even_to_loopback;
        curl_easy_setopt(t->curl, CURLOPT_PROXY, direct ? "" : NULL);
        curl_easy_setopt(t->curl, CURLOPT_URL, text);
    }
    curl_free(scheme);
    curl_free(host);
    curl_free(port);
    curl_url_cleanup(url);
    if (good)
        return HF_OK;
    t->url.len = 0;
    return hf_err_set(err, HF_INVALID_REQUEST, "not an http:// or https:// URL");
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
    curl_easy_setopt(t->curl, CURLOPT_HTTPHEADER, list ? list : t->client->no_headers);
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

static struct transfer *transfer_new(struct http_client *client)
{
    struct transfer *t = hf_alloc(sizeof *t);
    t->client = client;
    t->curl = curl_easy_init();
    hf_check(t->curl);
    CURL *curl = t->curl;
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, client->no_headers);
    curl_easy_setopt(curl, CURLOPT_PRIVATE, t);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, t->error);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "holdfast");
    curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(curl, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)client->options.connect_timeout_ms);
    curl_easy_setopt(curl, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    curl_easy_setopt(curl, CURLOPT_PREREQFUNCTION, before_sending);
    curl_easy_setopt(curl, CURLOPT_PREREQDATA, t);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, t);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, take_header);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, t);
    return t;
}

static void transfer_free(struct transfer *t)
{
    curl_easy_cleanup(t->curl);
    curl_slist_free_all(t->headers);
    buf_close(&t->url);
    buf_close(&t->method);
    free(t);
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

static enum hf_status begin(struct transfer *t, struct hf_err *err)
{
    const struct http_request *request = &t->exchange->request;
    int64_t timeout_ms = request->timeout_ms ? request->timeout_ms : t->client->options.timeout_ms;
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
    hf_check(curl_multi_add_handle(t->client->multi, t->curl) == CURLM_OK);
    return HF_OK;
}

static void clear_response(struct http_response *response)
{
    response->status = 0;
    response->body.len = response->headers.len = 0;
}

/* Ends an exchange and gives its handle back. */
static void end(struct transfer *t, CURLcode code)
{
    struct http_exchange *exchange = t->exchange;
    struct http_response *response = &exchange->response;
    long status = 0;
    curl_easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &status);
    /* libcurl takes a response that ends within its headers for a complete one. */
    if (code == CURLE_OK && t->has_all_headers) {
        exchange->result = HF_OK;
        response->status = (int)status;
        buf_char(&response->body, '\0');
        response->body.len--;
    } else {
        const char *why = t->error[0] ? t->error : curl_easy_strerror(code);
        if (t->too_large)
            why = "the response is too large";
        else if (t->times_sent > 1 || code == CURLE_OK)
            why = "the connection was closed before the response was complete";
        exchange->result =
            hf_err_set(&exchange->err, t->times_sent ? HF_OUTCOME_UNKNOWN : HF_UNAVAILABLE,
                       "%s: %.120s", t->origin, why);
        clear_response(response);
    }
    t->exchange = NULL;
    *vec_push(&t->client->idle) = t;
}

/* ---- the loop ---- */

/* Lets libcurl act on what is ready.  It may change the list of files meanwhile, so we look each
 * one up again. */
static void act_on_files(struct http_client *client)
{
    int running;
    for (size_t i = 0; i < client->files.n; i++) {
        struct pollfd file = client->files.v[i];
        if (!file.revents)
            continue;
        int what = (file.revents & (POLLIN | POLLHUP) ? CURL_CSELECT_IN : 0) |
                   (file.revents & POLLOUT ? CURL_CSELECT_OUT : 0) |
                   (file.revents & (POLLERR | POLLNVAL) ? CURL_CSELECT_ERR : 0);
        client->files.v[i].revents = 0;
        curl_multi_socket_action(client->multi, file.fd, what, &running);
        if (i < client->files.n && client->files.v[i].fd != file.fd)
            i--; /* another took its place */
    }
}

static void wait_and_act(struct http_client *client)
{
    int running;
    int64_t left_us = client->due_us < 0 ? -1 : client->due_us - wait_now_us();
    if (client->due_us >= 0 && left_us <= 0) {
        client->due_us = -1;
        curl_multi_socket_action(client->multi, CURL_SOCKET_TIMEOUT, 0, &running);
        return;
    }
    int n = wait_files(client->files.v, client->files.n, left_us);
    if (n > 0)
        act_on_files(client);
}

void http_client_run(struct http_client *client, struct http_exchange *exchanges, size_t n)
{
    size_t running = 0;
    for (size_t i = 0; i < n; i++) {
        if (client->idle.n == 0)
            *vec_push(&client->idle) = transfer_new(client);
        struct transfer *t = client->idle.v[--client->idle.n];
        t->exchange = &exchanges[i];
        clear_response(&exchanges[i].response);
        exchanges[i].result = begin(t, &exchanges[i].err);
        if (exchanges[i].result == HF_OK) {
            running++;
            continue;
        }
        *vec_push(&client->idle) = t;
    }
    while (running > 0) {
        int left;
        wait_and_act(client);
        for (CURLMsg *msg; (msg = curl_multi_info_read(client->multi, &left));) {
            struct transfer *t = NULL;
            CURLcode code = msg->data.result;
            curl_easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, (char **)&t);
            curl_multi_remove_handle(client->multi, t->curl);
            end(t, code);
            running--;
        }
    }
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

/* ---- clients and responses ---- */

static void init_curl(void) { hf_check(curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK); }

struct http_client *http_client_new(const struct http_client_options *options)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    hf_check(pthread_once(&once, init_curl) == 0);
    struct http_client *client = hf_alloc(sizeof *client);
    if (options)
        client->options = *options;
    struct http_client_options *o = &client->options;
    o->connect_timeout_ms = o->connect_timeout_ms ? o->connect_timeout_ms : CONNECT_TIMEOUT_MS;
    o->timeout_ms = o->timeout_ms ? o->timeout_ms : TIMEOUT_MS;
    o->body_len_max = o->body_len_max ? o->body_len_max : BODY_LEN_MAX;
    o->connections_max = o->connections_max ? o->connections_max : CONNECTIONS_MAX;
    client->due_us = -1;
    client->no_headers = headers_taken_back();
    client->multi = curl_multi_init();
    hf_check(client->multi);
    curl_multi_setopt(client->multi, CURLMOPT_SOCKETFUNCTION, want_file);
    curl_multi_setopt(client->multi, CURLMOPT_SOCKETDATA, client);
    curl_multi_setopt(client->multi, CURLMOPT_TIMERFUNCTION, want_timer);
    curl_multi_setopt(client->multi, CURLMOPT_TIMERDATA, client);
    curl_multi_setopt(client->multi, CURLMOPT_MAXCONNECTS, (long)o->connections_max);
    return client;
}

void http_client_free(struct http_client *client)
{
    if (!client)
        return;
    for (size_t i = 0; i < client->idle.n; i++)
        transfer_free(client->idle.v[i]);
    curl_multi_cleanup(client->multi);
    curl_slist_free_all(client->no_headers);
    vec_close(&client->idle);
    vec_close(&client->files);
    free(client);
}

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

void http_response_close(struct http_response *response)
{
    buf_close(&response->body);
    buf_close(&response->headers);
    *response = (struct http_response){0};
}
