/* The life of a request between libmicrohttpd (server.c) and the handlers: the free list of each
 * thread, the hand-over to the engine, and the answers every handler gives. */
#include "http/request.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "api/answer.h"
#include "api/idempotency.h"
#include "api/parse.h"
#include "http/response.h"
#include "http/server.h"
#include "http/text.h"

#define FREE_MAX 256                       /* requests kept per thread */
#define KEPT_BUFFER_MAX ((size_t)8 * 1024) /* larger buffers are not kept with them */

const char type_json[] = "application/json";

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

/* xoroshiro128+: ids of requests need to differ, not to be secret. */
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

struct request *request_take(void)
{
    struct http_thread *t = http_thread();
    struct request *r = t->free;
    if (r) {
        t->free = r->next_free;
        t->n_free--;
    } else {
        r = hf_alloc(sizeof *r);
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

void request_release(struct request *r)
{
    struct command *c = &r->command;
    if (r->answer.sent) /* answered, but never queued */
        r->answer.sent(r->answer.owner);
    hold_row_close(&c->hold);
    booking_row_close(&c->booking);
    buf_close(&c->body);
    event_def_free(c->def);
    free(c->list);
    page_free(c->page);
    free(c->past);
    snapshot_unref(c->snapshot);
    json_decref(r->json);
    hold_body_close(&r->hold);
    free(r->seats_heap);
    free(r->areas_heap);

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

void request_wait(struct request *r, step_fn then)
{
    r->step = then;
    /* First, since the answer may come on another thread before engine_submit returns. */
    MHD_suspend_connection(r->connection);
    enum hf_status status = engine_submit(request_engine(r), &r->command);
    if (status != HF_OK) {
        r->command.status = status;
        MHD_resume_connection(r->connection);
    }
}

static void key_checked(struct request *r)
{
    enum hf_status status = r->command.status;
    if (r->command.rendered || status != HF_NOT_FOUND)
        answer_command(r);
    else
        r->answer = r->refusal; /* its bytes are still in r->out */
}

bool request_check_key(struct request *r)
{
    struct command *c = &r->command;
    enum hf_status problem = r->answer.problem;
    bool may_wait = problem == HF_TOO_MANY_SEATS || problem == HF_DUPLICATE_SEAT ||
                    hf_status_http(problem) == MHD_HTTP_NOT_FOUND;
    if (!may_wait || r->key_checked || !engine_key_maybe(request_engine(r), c))
        return false;
    r->key_checked = true;
    r->refusal = r->answer;
    r->answer = (struct answer){0};
    c->kind = CMD_KEY_CHECK;
    c->event = NULL;
    idempotency_hash_request(r);
    request_wait(r, key_checked);
    return true;
}

void server_done(struct command *command)
{
    struct request *r = (struct request *)command;
    MHD_resume_connection(r->connection);
}

struct event *request_event(struct request *r, int64_t event, enum hf_status missing, step_fn again)
{
    struct event *e = engine_event(request_engine(r), event);
    if (e)
        return e;
    struct command *c = &r->command;
    if (!r->event_tried && event > 0 && event <= EVENT_KEY_MAX) {
        r->event_tried = true;
        c->kind = CMD_EVENT_LOAD;
        c->event_key = event;
        request_wait(r, again);
        return NULL;
    }
    bool failed = r->event_tried && c->status != HF_OK && c->status != HF_NO_SUCH_EVENT;
    answer_problem(r, failed ? c->status : missing, NULL);
    return NULL;
}

struct event *request_event_named(struct request *r, const char *text, size_t len, step_fn again)
{
    if (!id_parse(text, len, "evt_", &r->event_id)) {
        answer_problem(r, HF_NO_SUCH_EVENT, NULL);
        return NULL;
    }
    struct event *e = request_event(r, r->event_id.key, HF_NO_SUCH_EVENT, again);
    if (e && !id_secret_equal(e->def->id.secret, r->event_id.secret)) {
        answer_problem(r, HF_NO_SUCH_EVENT, NULL);
        return NULL;
    }
    return e;
}

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

bool request_empty_body(struct request *r)
{
    static const char *const none[] = {NULL};
    struct hf_err err = {0};
    if (!idempotency_read(r))
        return false;
    r->json = parse_body(&r->body, true, &err);
    const struct fields f = {.object = r->json, .path = "", .err = &err};
    if (r->json && fields_known(&f, none))
        return true;
    answer_problem(r, HF_INVALID_REQUEST, err.msg);
    return false;
}

bool request_limit(struct request *r, size_t max, size_t *ret)
{
    const char *text = request_query(r, "limit");
    int64_t n = 0;
    if (!text)
        return true;
    if (!parse_digits(text, strlen(text), &n) || n < 1 || (uint64_t)n > max) {
        struct hf_err err;
        (void)hf_err_set(&err, HF_INVALID_REQUEST, "limit must be from 1 to %zu", max);
        answer_problem(r, HF_INVALID_REQUEST, err.msg);
        return false;
    }
    *ret = (size_t)n;
    return true;
}

void answer_out(struct request *r, int status, const char *type)
{
    r->answer.status = status;
    r->answer.type = type;
    r->answer.data = r->out.data;
    r->answer.len = r->out.len;
}

static void answer_taken(struct request *r)
{
    const struct command *c = &r->command;
    problem_open(r, c->status, NULL);
    buf_lit(&r->out, ",\"seats\":");
    render_seats(c->event, c->taken, c->n_taken, &r->out);
    problem_close(r);
}

static void answer_sold_out(struct request *r)
{
    const struct command *c = &r->command;
    bool apart = c->short_area < 0 && c->available >= c->best.quantity;
    problem_open(r, c->status, apart ? "No row has that many free side by side." : NULL);
    buf_lit(&r->out, ",\"available\":");
    buf_int(&r->out, c->available);
    if (c->short_area >= 0) {
        const char *name = c->event->def->areas.v[c->short_area].name;
        buf_lit(&r->out, ",\"area\":");
        buf_json(&r->out, name, strlen(name));
    }
    problem_close(r);
}

/* I14: when the outcome is not known, name what to look up. */
static void answer_unknown(struct request *r)
{
    const struct command *c = &r->command;
    struct id id = c->kind == CMD_HOLD_CREATE ? c->hold.id : c->id;
    problem_open(r, HF_OUTCOME_UNKNOWN, NULL);
    if (id.key > 0) {
        char text[ID_TEXT_SIZE];
        size_t len = id_format(text, "hold_", &id);
        buf_lit(&r->out, ",\"hold\":\"");
        buf_put(&r->out, text, len);
        buf_char(&r->out, '"');
    }
    problem_close(r);
}

void answer_command(struct request *r)
{
    struct command *c = &r->command;
    if (c->rendered) {
        r->answer.status = c->http_status;
        r->answer.type = c->body.len ? type_json : NULL;
        r->answer.data = c->body.data;
        r->answer.len = c->body.len;
        r->answer.replayed = c->replayed;
    } else if (c->status == HF_NO_CONTENT) {
        answer_out(r, hf_status_http(c->status), NULL);
    } else if (c->status == HF_OK || c->status == HF_CREATED) {
        int status = http_render(c, &r->out);
        answer_out(r, status, type_json);
    } else if (c->n_taken > 0 && (c->status == HF_SEAT_TAKEN || c->status == HF_SEAT_SOLD)) {
        answer_taken(r);
    } else if (c->status == HF_SOLD_OUT) {
        answer_sold_out(r);
    } else if (c->status == HF_OUTCOME_UNKNOWN) {
        answer_unknown(r);
    } else {
        answer_problem(r, c->status, NULL);
    }
}
