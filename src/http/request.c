/* The life of a request between its connection (conn.c) and the handlers: the free list of each
 * thread, waiting, and what the request says.  Each function runs on the thread of the request's
 * connection, but for `done`. */
#include "http/request.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/random.h"
#include "http/conn.h"
#include "http/route.h"
#include "http/server_internal.h"
#include "http/stream_source.h"

#define FREE_MAX 256                       /* requests kept per thread */
#define KEPT_BUFFER_MAX ((size_t)8 * 1024) /* larger buffers are not kept with them */
#define LARGE_MAX 8                        /* requests that may take much memory at once */

/* ---- the threads' free lists ---- */

void requests_open(struct requests *q, const struct http_app *app)
{
    struct random random;
    random_init_system(&random);
    *q = (struct requests){.app = app};
    random_bytes(&random, q->prng, sizeof q->prng);
    q->prng[0] |= 1;
}

static void request_free(struct request *r)
{
    buf_close(&r->body);
    buf_close(&r->out);
    buf_close(&r->answer_head);
    buf_close(&r->name);
    free(r);
}

void requests_close(struct requests *q)
{
    for (struct request *r = q->free, *next; r; r = next) {
        next = r->next;
        request_free(r);
    }
    q->free = NULL;
}

/* xoroshiro128+: the ids of requests need to differ, not to be secret. */
static uint64_t prng_next(uint64_t s[2])
{
    uint64_t a = s[0], b = s[1], result = a + b;
    b ^= a;
    s[0] = (a << 24 | a >> 40) ^ b ^ b << 16;
    s[1] = b << 37 | b >> 27;
    return result;
}

void request_id_write(struct requests *q, char out[REQUEST_ID_LEN + 1])
{
    static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyzHf";
    memcpy(out, "req_", 4);
    char *p = out + 4;
    for (int half = 0; half < 2; half++) {
        uint64_t bits = prng_next(q->prng) >> 10;
        for (int i = 0; i < 9; i++, bits >>= 6)
            *p++ = digits[bits & 63];
    }
    *p = '\0';
}

struct request *request_take(struct requests *q)
{
    struct request *r = q->free;
    if (r) {
        q->free = r->next;
        q->n_free--;
    } else {
        r = hf_alloc(q->app->request_size);
    }
    request_id_write(q, r->id);
    head_begin(&r->head);
    return r;
}

static void keep(struct buf *b)
{
    if (b->cap > KEPT_BUFFER_MAX)
        buf_close(b);
    b->len = 0;
}

/* Gives back what the answer has of others. */
static void release_answer(const struct answer *a)
{
    const struct stream_start *stream = &a->stream;
    if (a->keeper.sent)
        a->keeper.sent(a->keeper.owner);
    if (stream->topic && stream->source->unref) /* nobody reads it: the request was a HEAD */
        stream->source->unref(stream->topic);
}

void request_release(struct requests *q, struct request *r)
{
    release_answer(&r->answer);
    q->app->release(r);
    if (q->n_free >= FREE_MAX) {
        request_free(r);
        return;
    }
    keep(&r->body);
    keep(&r->out);
    keep(&r->answer_head);
    keep(&r->name);
    struct buf body = r->body;
    memset(r, 0, offsetof(struct request, id));
    r->body = body;
    r->next = q->free;
    q->free = r;
    q->n_free++;
}

void request_count_completed(struct request *r)
{
    if (r->accepted && !r->completed)
        counter_add(&r->server->traffic.completed, 1);
    r->completed = true;
}

bool request_admit_large(struct request *r)
{
    if (r->upload.large)
        return true;
    r->upload.large = atomic_fetch_add(&r->server->large, 1) < LARGE_MAX;
    if (!r->upload.large)
        atomic_fetch_sub(&r->server->large, 1);
    return r->upload.large;
}

void request_uncount_body(struct request *r)
{
    if (r->upload.large)
        atomic_fetch_sub(&r->server->large, 1);
    if (r->upload.counted)
        atomic_fetch_sub(&r->server->body_bytes, r->upload.counted);
    r->upload.large = false;
    r->upload.counted = 0;
}

/* ---- waiting ---- */

/* On whichever thread did the work: brings the request back to its loop. */
static void done(struct pending *pending)
{
    struct request *r = pending->waiter;
    inbox_put_done(&r->conn->loop->inbox, r);
}

void request_wait(struct request *r, struct pending *pending, step_fn then)
{
    r->step = then;
    r->gone = NULL;
    r->waits = true;
    *pending = (struct pending){.done = done, .waiter = r};
}

void request_wait_or_gone(struct request *r, struct pending *pending, step_fn then, step_fn gone)
{
    request_wait(r, pending, then);
    r->gone = gone;
}

void request_tell_gone(struct request *r)
{
    step_fn gone = r->gone;
    r->gone = NULL;
    if (gone)
        gone(r);
}

/* ---- what the request says ---- */

/* Ends a part of the head with NUL: what follows it is a separator that has served its purpose. */
static const char *cut(char *text, struct span span)
{
    text[span.at + span.len] = '\0';
    return text + span.at;
}

static bool name_is(const struct request *r, const struct field *f, const char *name, size_t len)
{
    return f->name.len == len && strncasecmp(r->text + f->name.at, name, len) == 0;
}

#define NAME_IS(r, f, literal) name_is((r), (f), (literal), sizeof(literal) - 1)

static void read_field(struct request *r, const struct field *f)
{
    struct request_headers *h = &r->headers;
    struct text value = {cut(r->text, f->value), f->value.len};
    if (NAME_IS(r, f, "Idempotency-Key")) {
        h->n_keys++;
        h->key = value;
    } else if (NAME_IS(r, f, "Authorization")) {
        h->n_authorizations++;
        h->authorization = value;
    } else if (NAME_IS(r, f, "Origin")) {
        h->origin = value;
    } else if (NAME_IS(r, f, "Sec-Fetch-Site")) {
        h->fetch_site = value;
    }
}

/* A parameter's name or value: `+` stands for a space, and a slash ends nothing. */
static void unescape_parameter(char *text)
{
    for (char *plus = text; (plus = strchr(plus, '+')); plus++)
        *plus = ' ';
    text[text_unescape_name(text, text_unescape(text), text)] = '\0';
}

static void read_query(struct request *r, char *rest)
{
    for (char *part; (part = strsep(&rest, "&"));) {
        if (!*part)
            continue;
        if (r->n_parameters++ >= PARAMETERS_MAX)
            return;
        char *value = strchr(part, '=');
        if (value)
            *value++ = '\0';
        else
            value = part + strlen(part);
        unescape_parameter(part);
        unescape_parameter(value);
        r->parameters[r->n_parameters - 1] = (struct parameter){part, value};
    }
}

/* Takes `/path?query` apart. */
static void read_path(struct request *r, char *path)
{
    char *query = strchr(path, '?');
    if (query) {
        *query++ = '\0';
        read_query(r, query);
    }
    (void)text_unescape(path);
    r->path = *path ? path : "/"; /* of `http://host?query` */
}

void request_read_method(struct request *r, char *text)
{
    r->text = text;
    r->method = cut(text, r->head.method);
}

void request_read_head(struct request *r, char *text)
{
    const struct head *h = &r->head;
    request_read_method(r, text);
    text[h->path.at + h->path.len] = '\0';
    read_path(r, text + h->path.at);
    r->headers.host = (struct text){text + h->host.at, h->host.len};
    for (unsigned i = 0; i < h->n_fields; i++)
        read_field(r, &h->fields[i]);
}

/* Does the route list a query parameter of this name?  Only GET and HEAD have parameters. */
static bool takes(const struct request *r, const char *name)
{
    bool reads = strcmp(r->method, "GET") == 0 || strcmp(r->method, "HEAD") == 0;
    for (const char *const *known = reads ? r->route->query : NULL; known && *known; known++)
        if (strcmp(*known, name) == 0)
            return true;
    return false;
}

bool request_check_query(const struct request *r, char *detail, size_t size)
{
    for (unsigned i = 0; i < r->n_parameters && !r->route->any_query; i++) {
        const char *name = r->parameters[i].name;
        bool twice = false;
        for (unsigned before = 0; before < i; before++)
            twice |= strcmp(r->parameters[before].name, name) == 0;
        if (!twice && takes(r, name))
            continue;
        /* The name comes last, since it may be long and may not be UTF-8. */
        (void)snprintf(detail, size, "query must not have %s: %s",
                       twice ? "a parameter twice" : "unknown parameters", name);
        return false;
    }
    return true;
}

const char *request_query(const struct request *r, const char *name)
{
    hf_check(takes(r, name));
    for (unsigned i = 0; i < r->n_parameters; i++)
        if (strcmp(r->parameters[i].name, name) == 0)
            return r->parameters[i].value;
    return NULL;
}

size_t request_headers(const struct request *r, const char *name, const char **out, size_t max)
{
    size_t n = 0, len = strlen(name);
    for (unsigned i = 0; i < r->head.n_fields; i++) {
        const struct field *f = &r->head.fields[i];
        if (!name_is(r, f, name, len))
            continue;
        if (n == max)
            memmove((void *)out, (const void *)(out + 1), (--n) * sizeof *out);
        out[n++] = r->text + f->value.at;
    }
    return n;
}

const char *request_header(const struct request *r, const char *name)
{
    size_t len = strlen(name);
    for (unsigned i = 0; i < r->head.n_fields; i++)
        if (name_is(r, &r->head.fields[i], name, len))
            return r->text + r->head.fields[i].value.at;
    return NULL;
}

/* A name has a length, so %00 can be what it says; as it is it would be the name %2500. */
const struct buf *request_name(struct request *r, const char *text, size_t len)
{
    static const char nul[] = "%00";
    const size_t nul_len = sizeof nul - 1;
    r->name.len = 0;
    buf_reserve(&r->name, len + 1);
    for (const char *end = text + len, *stop; text <= end; text = stop + nul_len) {
        stop = memmem(text, (size_t)(end - text), nul, nul_len);
        size_t part = stop ? (size_t)(stop - text) : (size_t)(end - text);
        r->name.len += text_unescape_name(text, part, r->name.data + r->name.len);
        if (!stop)
            break;
        r->name.data[r->name.len++] = '\0';
    }
    return &r->name;
}

const struct address *request_peer(const struct request *r)
{
    return r->conn->knows_peer ? &r->conn->peer : NULL;
}
