/* The life of a request between libmicrohttpd (server.c) and the handlers: the free list of each
 * thread, waiting, and the answers that every handler gives.  Each function runs on the thread of
 * the request's connection, but for `resume`. */
#include "http/request.h"

#include <microhttpd.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "http/response.h"
#include "http/server.h"

#define FREE_MAX 256                       /* requests kept per thread */
#define KEPT_BUFFER_MAX ((size_t)8 * 1024) /* larger buffers are not kept with them */

const char type_json[] = "application/json";

/* ---- the threads' free lists ---- */

static pthread_key_t thread_key;
static bool thread_key_made;
static _Thread_local struct http_thread *thread_own;

static void request_free(struct request *r)
{
    buf_close(&r->body);
    buf_close(&r->out);
    buf_close(&r->name);
    response_forget(&r->kept);
    free(r);
}

static void thread_free(void *data)
{
    struct http_thread *t = data;
    for (struct request *r = t->free, *next; r; r = next) {
        next = r->next_free;
        request_free(r);
    }
    free(t);
}

bool http_threads_init(void)
{
    if (!thread_key_made)
        thread_key_made = pthread_key_create(&thread_key, thread_free) == 0;
    return thread_key_made;
}

static struct http_thread *thread_new(void)
{
    struct http_thread *t = hf_alloc(sizeof *t);
    struct random random;
    random_init_system(&random);
    random_bytes(&random, t->prng, sizeof t->prng);
    t->prng[0] |= 1;
    hf_check(pthread_setspecific(thread_key, t) == 0);
    thread_own = t;
    return t;
}

struct http_thread *http_thread(void) { return thread_own ? thread_own : thread_new(); }

void http_thread_close(void)
{
    if (!thread_own)
        return;
    thread_free(thread_own);
    thread_own = NULL;
    (void)pthread_setspecific(thread_key, NULL);
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

static void id_write(struct http_thread *t, char out[REQUEST_ID_LEN + 1])
{
    static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyzHf";
    memcpy(out, "req_", 4);
    char *p = out + 4;
    for (int half = 0; half < 2; half++) {
        uint64_t bits = prng_next(t->prng) >> 10;
        for (int i = 0; i < 9; i++, bits >>= 6)
            *p++ = digits[bits & 63];
    }
    *p = '\0';
}

void request_id_write(char out[REQUEST_ID_LEN + 1]) { id_write(http_thread(), out); }

struct request *request_take(const struct http_app *app)
{
    struct http_thread *t = http_thread();
    struct request *r = t->free;
    if (r) {
        hf_check(t->app == app); /* or it might have another size */
        t->free = r->next_free;
        t->n_free--;
    } else {
        t->app = app;
        r = hf_alloc(app->request_size);
    }
    id_write(t, r->id);
    return r;
}

static void keep(struct buf *b)
{
    if (b->cap > KEPT_BUFFER_MAX)
        buf_close(b);
    b->len = 0;
}

void request_release(struct request *r, const struct http_app *app)
{
    if (r->answer.sent) /* answered, but never queued */
        r->answer.sent(r->answer.owner);
    app->release(r);

    struct http_thread *t = http_thread();
    if (t->n_free >= FREE_MAX) {
        request_free(r);
        return;
    }
    keep(&r->body);
    keep(&r->out);
    buf_close(&r->name);
    struct buf body = r->body, out = r->out;
    memset(r, 0, offsetof(struct request, kept));
    r->body = body;
    r->out = out;
    r->next_free = t->free;
    t->free = r;
    t->n_free++;
}

/* ---- waiting ---- */

/* On whichever thread did the work. */
static void resume(struct pending *pending)
{
    const struct request *r = pending->waiter;
    MHD_resume_connection(r->connection);
}

void request_wait(struct request *r, struct pending *pending, step_fn then)
{
    r->step = then;
    *pending = (struct pending){.done = resume, .waiter = r};
    /* Now, since pending_done may be called before the caller has finished handing it over. */
    MHD_suspend_connection(r->connection);
}

/* ---- what the request says ---- */

const char *request_query(const struct request *r, const char *name)
{
    return MHD_lookup_connection_value(r->connection, MHD_GET_ARGUMENT_KIND, name);
}

const char *request_header(const struct request *r, const char *name)
{
    return MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, name);
}

const struct buf *request_name(struct request *r, const char *text, size_t len)
{
    r->name.len = 0;
    buf_reserve(&r->name, len + 1);
    r->name.len = text_unescape_name(text, len, r->name.data);
    return &r->name;
}

/* ---- answers ---- */

void answer_out(struct request *r, int status, const char *type)
{
    r->answer.status = status;
    r->answer.type = type;
    r->answer.data = r->out.data;
    r->answer.len = r->out.len;
}

void problem_open(struct request *r, const struct problem *problem, const char *detail)
{
    r->out.len = 0;
    problem_write(&r->out, problem, detail, r->id);
    r->answer.retry = problem->retry;
    r->answer.status = problem->status;
}

void problem_close(struct request *r)
{
    buf_char(&r->out, '}');
    answer_out(r, r->answer.status, type_problem);
}

void answer_problem(struct request *r, const struct problem *problem, const char *detail)
{
    problem_open(r, problem, detail);
    problem_close(r);
}
