/* See client.h. */
#include "etcd/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_put.h"
#include "base/status.h"
#include "base/wait.h"

#define ANSWER_LEN_MAX ((size_t)32 << 20)
/* How long one endpoint, and all of them, may take to tell whether there is a leader. */
#define EXPLAIN_MS 200
#define EXPLAIN_ALL_MS 600

/* How one attempt at one endpoint ended. */
enum etcd_outcome {
    ANSWERED,  /* with what was asked for, or with an enum etcd_answer */
    REFUSED,   /* for good; the fault says why */
    NOT_DONE,  /* this endpoint cannot do it now; another may */
    LOST,      /* it may have been done */
    BAD_TOKEN, /* the token has expired */
};

/* ---- what clients share ---- */

struct etcd_shared *etcd_shared_new(struct etcd_address address, void *extra,
                                    void (*extra_free)(void *extra))
{
    struct etcd_shared *s = hf_alloc(sizeof *s);
    s->address = address;
    s->extra = extra;
    s->extra_free = extra_free;
    atomic_init(&s->refs, 1);
    hf_check(pthread_mutex_init(&s->mutex, NULL) == 0);
    return s;
}

static void wipe(char *text)
{
    if (text)
        explicit_bzero(text, strlen(text));
    free(text);
}

void etcd_shared_free(struct etcd_shared *shared)
{
    if (atomic_fetch_sub(&shared->refs, 1) > 1)
        return;
    etcd_address_close(&shared->address);
    wipe(shared->token);
    if (shared->extra_free)
        shared->extra_free(shared->extra);
    pthread_mutex_destroy(&shared->mutex);
    free(shared);
}

/* ---- clients ---- */

/* Goes where another client has found an answer, so that not each of them waits in vain for an
 * endpoint that is gone.  Returns false if none has changed since. */
static bool follow(struct etcd_client *c)
{
    size_t n_moves = atomic_load(&c->shared->n_moves);
    if (n_moves == c->n_moves)
        return false;
    c->n_moves = n_moves;
    c->at = atomic_load(&c->shared->at);
    return true;
}

/* The current endpoint has answered. */
static void stay(struct etcd_client *c)
{
    if (!c->has_left)
        return;
    c->has_left = false;
    atomic_store(&c->shared->at, c->at);
    c->n_moves = atomic_fetch_add(&c->shared->n_moves, 1) + 1;
}

void etcd_client_init(struct etcd_client *c, struct etcd_shared *shared, int64_t timeout_ms)
{
    const struct etcd_address *a = &shared->address;
    atomic_fetch_add(&shared->refs, 1);
    *c = (struct etcd_client){.shared = shared, .timeout_ms = timeout_ms};
    (void)follow(c);
    int64_t connect_ms = timeout_ms / (int64_t)a->n_endpoints;
    c->pool = http_pool_new(&(struct http_client_options){
        .connect_timeout_ms = connect_ms > 1 ? connect_ms : 1,
        .timeout_ms = timeout_ms,
        .body_len_max = ANSWER_LEN_MAX,
        .ca_file = a->ca_file,
        .cert_file = a->cert_file,
        .key_file = a->key_file,
    });
}

void etcd_client_close(struct etcd_client *c)
{
    http_pool_free(c->pool);
    http_response_close(&c->response);
    if (c->token.len)
        explicit_bzero(c->token.data, c->token.len);
    buf_close(&c->token);
    buf_close(&c->body);
    buf_close(&c->url);
    etcd_shared_free(c->shared);
}

void etcd_begin(struct etcd_client *c, int64_t limit_ms)
{
    int64_t ms = limit_ms > 0 && limit_ms < c->timeout_ms ? limit_ms : c->timeout_ms;
    c->until_us = wait_now_us() + 1000 * ms;
    c->explains = limit_ms == 0;
    (void)follow(c);
}

struct buf *etcd_body(struct etcd_client *c)
{
    c->body.len = 0;
    return &c->body;
}

const char *etcd_endpoint(const struct etcd_client *c)
{
    return strstr(c->shared->address.endpoints[c->at], "//") + 2;
}

int64_t etcd_number(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    return json_is_integer(value)  ? json_integer_value(value)
           : json_is_string(value) ? strtoll(json_string_value(value), NULL, 10)
                                   : 0;
}

void etcd_request(struct etcd_client *c, const char *path, struct http_request *ret,
                  struct http_header ret_header[1])
{
    c->url.len = 0;
    buf_str(&c->url, c->shared->address.endpoints[c->at]);
    buf_str(&c->url, path);
    buf_char(&c->url, '\0');
    ret_header[0] = (struct http_header){"Authorization", c->token.data};
    *ret = (struct http_request){.method = "POST",
                                 .url = c->url.data,
                                 .headers = ret_header,
                                 .n_headers = c->token.len > 1,
                                 .body = c->body.data,
                                 .body_len = c->body.len};
}

/* ---- one attempt ---- */

struct transfer_done {
    struct http_exchange exchange; /* the first member */
    bool is_done;
};

static void note_done(struct http_exchange *x)
{
    ((struct transfer_done *)(void *)x)->is_done = true;
}

/* Runs one request; c->response is the answer.  The watch, if there is one, goes on meanwhile. */
static enum hf_status run(struct etcd_client *c, const struct http_request *request,
                          struct hf_err *err)
{
    struct transfer_done t = {.exchange = {.request = *request, .response = c->response}};
    http_pool_start(c->pool, &t.exchange, note_done);
    while (!t.is_done)
        http_pool_turn(c->pool, -1);
    c->response = t.exchange.response;
    if (t.exchange.result != HF_OK)
        *err = t.exchange.err;
    return t.exchange.result;
}

static enum etcd_outcome fail(struct hf_fault *fault, enum etcd_outcome outcome,
                              const char *endpoint, const char *what)
{
    (void)fault_set(fault, HF_UNREACHABLE, "etcd at %s: %s", endpoint, what);
    return outcome;
}

static bool has(const char *text, const char *part) { return strstr(text, part) != NULL; }

/* Does the gRPC code of an error say that nothing was done?  Of the others, and of those that are
 * not known, a write may have been carried out. */
static bool says_not_done(int64_t code)
{
    static const uint8_t codes[] = {3,  /* invalid argument */
                                    5,  /* not found */
                                    6,  /* already exists */
                                    7,  /* permission denied */
                                    8,  /* resource exhausted */
                                    9,  /* failed precondition */
                                    11, /* out of range */
                                    12, /* unimplemented */
                                    16 /* unauthenticated */};
    for (size_t i = 0; i < sizeof codes; i++)
        if (codes[i] == code)
            return true;
    return false;
}

/* Judges an answer of etcd that is an error. */
static enum etcd_outcome judge_error(struct etcd_client *c, const char *text, int64_t code,
                                     enum etcd_answer *ret, struct hf_fault *fault)
{
    const char *at = etcd_endpoint(c);
    if (has(text, "requested lease not found"))
        *ret = ETCD_NO_LEASE;
    else if (has(text, "lease already exists"))
        *ret = ETCD_LEASE_EXISTS;
    if (*ret != ETCD_OK) {
        (void)fault_set(fault, HF_UNREACHABLE, "etcd at %s: %.150s", at, text);
        return ANSWERED;
    }
    if (has(text, "invalid auth token") || has(text, "auth store is old"))
        return fail(fault, BAD_TOKEN, at, text);
    if (has(text, "user name is empty"))
        return fail(fault, REFUSED, at, "it wants a user and a password, and the URL has none");
    if (has(text, "no leader"))
        return fail(fault, NOT_DONE, at,
                    "it has no leader: a majority of the members (the quorum) is not there");
    if (has(text, "too many requests"))
        return fail(fault, NOT_DONE, at, text);
    if (has(text, "database space exceeded")) {
        c->is_full = true;
        return fail(fault, LOST, at,
                    "its database is full (alarm NOSPACE): compact, defragment, disarm the alarm");
    }
    if (has(text, "timed out") || has(text, "leader changed") || has(text, "stopped") ||
        has(text, "transport is closing") || has(text, "onnection")) {
        (void)fault_set(fault, HF_UNREACHABLE,
                        "etcd at %s: %.100s; a majority of the members (the quorum) may be missing",
                        at, text);
        return LOST;
    }
    return fail(fault, says_not_done(code) ? REFUSED : LOST, at, text);
}

/* Does the status of an answer that is not etcd's say that nothing was done?  That of a proxy does
 * if it redirects or refuses. */
static bool status_says_not_done(int status)
{
    return status >= 300 && status < 500 && status != 408;
}

/* Judges the whole answer, which is JSON if an etcd gave it. */
static enum etcd_outcome judge(struct etcd_client *c, enum etcd_answer *ret, struct hf_fault *fault)
{
    const struct http_response *r = &c->response;
    *ret = ETCD_OK;
    if (r->status == 200 && r->body.len > 0 && (r->body.data[0] == '{' || r->body.data[0] == '#'))
        return ANSWERED; /* JSON, or metrics */
    json_t *object = json_loadb(r->body.data, r->body.len, 0, NULL);
    const char *text = json_string_value(json_object_get(object, "error"));
    enum etcd_outcome outcome;
    if (text) {
        outcome = judge_error(c, text, etcd_number(object, "code"), ret, fault);
    } else {
        (void)fault_set(fault, HF_UNREACHABLE,
                        "%s does not answer as etcd 3.4 does (HTTP status %d): is it another "
                        "server, or a proxy?",
                        etcd_endpoint(c), r->status);
        outcome = status_says_not_done(r->status) ? REFUSED : LOST;
    }
    json_decref(object);
    return outcome;
}

/* One request to the current endpoint, with at most this part of the time that is left. */
static enum etcd_outcome attempt(struct etcd_client *c, const char *method, const char *path,
                                 int64_t part, enum etcd_answer *ret, struct hf_fault *fault)
{
    struct http_request request;
    struct http_header header[1];
    struct hf_err err;
    int64_t left_ms = (c->until_us - wait_now_us()) / 1000 / part;
    if (left_ms <= 0)
        return fail(fault, NOT_DONE, etcd_endpoint(c), "no time is left to ask");
    etcd_request(c, path, &request, header);
    request.method = method;
    request.timeout_ms = left_ms;
    switch (run(c, &request, &err)) {
    case HF_OK:
        return judge(c, ret, fault);
    case HF_OUTCOME_UNKNOWN:
        (void)fault_set(fault, HF_UNREACHABLE, "etcd: %s", err.msg);
        return LOST;
    default:
        (void)fault_set(fault, HF_UNREACHABLE, "etcd: %s", err.msg);
        return NOT_DONE;
    }
}

void etcd_leave(struct etcd_client *c)
{
    size_t at = c->at;
    if (!follow(c) || c->at == at)
        c->at = (at + 1) % c->shared->address.n_endpoints;
    c->has_left = true;
}

/* ---- authentication ---- */

static enum etcd_outcome try_endpoints(struct etcd_client *c, const char *method, const char *path,
                                       enum etcd_kind kind, enum etcd_answer *ret,
                                       struct hf_fault *fault);

static void use_token(struct etcd_client *c, const char *token, uint64_t number)
{
    c->token.len = 0;
    buf_put(&c->token, token, strlen(token) + 1);
    c->n_token = number;
}

/* Sends user and password.  Keeps c->body, the request that waits for the token. */
static enum etcd_outcome authenticate(struct etcd_client *c, struct hf_fault *fault)
{
    const struct etcd_address *a = &c->shared->address;
    struct buf waiting = c->body;
    enum etcd_answer answer;
    c->body = (struct buf){0};
    c->token.len = 0;
    buf_char(&c->body, '{');
    json_put_text(&c->body, "name", a->user);
    json_put_text(&c->body, "password", a->password);
    buf_char(&c->body, '}');
    enum etcd_outcome outcome =
        try_endpoints(c, "POST", "/v3/auth/authenticate", ETCD_READ, &answer, fault);
    explicit_bzero(c->body.data, c->body.len);
    buf_close(&c->body);
    c->body = waiting;
    json_t *object = json_loadb(c->response.body.data, c->response.body.len, 0, NULL);
    const char *token = json_string_value(json_object_get(object, "token"));
    const char *error = json_string_value(json_object_get(object, "error"));
    if (error && has(error, "authentication is not enabled")) {
        token = ""; /* anybody may do anything: examine tells */
        outcome = ANSWERED;
    } else if (error && has(error, "authentication failed")) {
        outcome = fail(fault, REFUSED, etcd_endpoint(c), "wrong user or password");
    } else if (outcome == ANSWERED && !token) {
        outcome = fail(fault, REFUSED, etcd_endpoint(c), "no token in the answer to a password");
    }
    if (outcome == ANSWERED) {
        wipe(c->shared->token);
        c->shared->token = hf_strndup(token, strlen(token));
        use_token(c, token, ++c->shared->n_tokens);
    }
    json_decref(object);
    return outcome;
}

/* Has a token if one is needed; `expired`: another one than before.  Other clients that need one
 * wait meanwhile. */
static enum etcd_outcome have_token(struct etcd_client *c, bool expired, struct hf_fault *fault)
{
    struct etcd_shared *s = c->shared;
    enum etcd_outcome outcome = ANSWERED;
    if (!s->address.user || (c->token.len && !expired))
        return ANSWERED;
    pthread_mutex_lock(&s->mutex);
    if (!s->token || (expired && s->n_tokens == c->n_token))
        outcome = authenticate(c, fault);
    else
        use_token(c, s->token, s->n_tokens);
    pthread_mutex_unlock(&s->mutex);
    return outcome;
}

/* ---- calls ---- */

/* Tries the endpoints in turn, as long as it is certain that nothing was done, or if doing it twice
 * does no harm. */
static enum etcd_outcome try_endpoints(struct etcd_client *c, const char *method, const char *path,
                                       enum etcd_kind kind, enum etcd_answer *ret,
                                       struct hf_fault *fault)
{
    int64_t n = (int64_t)c->shared->address.n_endpoints;
    for (int64_t i = 0;; i++) {
        enum etcd_outcome outcome =
            attempt(c, method, path, kind == ETCD_READ ? n - i : 1, ret, fault);
        if (outcome == ANSWERED)
            stay(c);
        if (outcome != NOT_DONE && outcome != LOST)
            return outcome;
        etcd_leave(c);
        if ((outcome == LOST && kind == ETCD_WRITE) || i + 1 == n)
            return outcome;
    }
}

/* Nobody answered in time.  Asks the endpoints, until one answers, whether it has a leader, which
 * needs no quorum, and puts it into the fault. */
static void explain_silence(struct etcd_client *c, struct hf_fault *fault)
{
    struct hf_fault unread;
    enum etcd_answer answer;
    enum etcd_outcome outcome = NOT_DONE;
    int64_t end_us = wait_now_us() + 1000 * EXPLAIN_ALL_MS;
    if (!c->explains)
        return;
    for (size_t i = 0; i < c->shared->address.n_endpoints && wait_now_us() < end_us; i++) {
        c->until_us = wait_now_us() + 1000 * EXPLAIN_MS;
        buf_lit(etcd_body(c), "{}");
        outcome = attempt(c, "POST", "/v3/maintenance/status", 1, &answer, &unread);
        if (outcome == ANSWERED)
            break;
        etcd_leave(c);
    }
    if (outcome != ANSWERED)
        return;
    json_t *status = json_loadb(c->response.body.data, c->response.body.len, 0, NULL);
    if (etcd_number(status, "leader") == 0)
        (void)fault_set(fault, fault->result,
                        "etcd at %s has no leader: a majority of the members (the quorum) is not "
                        "there",
                        etcd_endpoint(c));
    json_decref(status);
}

static enum hf_result call(struct etcd_client *c, const char *method, const char *path,
                           enum etcd_kind kind, enum etcd_answer *ret, struct hf_fault *fault)
{
    struct hf_fault unread;
    fault = fault ? fault : &unread;
    c->is_full = false;
    enum etcd_outcome outcome = have_token(c, false, fault);
    if (outcome == ANSWERED)
        outcome = try_endpoints(c, method, path, kind, ret, fault);
    else if (outcome == LOST)
        outcome = NOT_DONE;
    if (outcome == BAD_TOKEN && c->shared->address.user) {
        outcome = have_token(c, true, fault);
        if (outcome == ANSWERED)
            outcome = try_endpoints(c, method, path, kind, ret, fault);
        else
            outcome = NOT_DONE;
    }
    if (outcome == ANSWERED)
        return HF_DONE;
    fault->result = outcome == LOST && kind == ETCD_WRITE ? HF_UNKNOWN : HF_UNREACHABLE;
    /* Of several endpoints the last one alone says nothing about the others. */
    if ((outcome == LOST && !c->is_full) ||
        (outcome == NOT_DONE && c->shared->address.n_endpoints > 1))
        explain_silence(c, fault);
    return fault->result;
}

enum hf_result etcd_call_text(struct etcd_client *c, const char *path, enum etcd_kind kind,
                              struct hf_fault *fault)
{
    enum etcd_answer answer = ETCD_OK;
    enum hf_result result = call(c, "POST", path, kind, &answer, fault);
    return result == HF_DONE && answer != ETCD_OK ? HF_UNREACHABLE : result;
}

enum hf_result etcd_call(struct etcd_client *c, const char *path, enum etcd_kind kind, json_t **ret,
                         enum etcd_answer *ret_answer, struct hf_fault *fault)
{
    enum etcd_answer answer = ETCD_OK;
    enum hf_result result = call(c, "POST", path, kind, &answer, fault);
    if (result != HF_DONE)
        return result;
    if (answer != ETCD_OK && !ret_answer)
        return HF_UNREACHABLE;
    json_t *object = json_loadb(c->response.body.data, c->response.body.len, 0, NULL);
    bool needs_header = kind == ETCD_WRITE && answer == ETCD_OK;
    if (!json_is_object(object) || (needs_header && !json_object_get(object, "header"))) {
        json_decref(object);
        return fault_set(fault, kind == ETCD_WRITE ? HF_UNKNOWN : HF_UNREACHABLE,
                         "etcd at %s: the answer is none of etcd's", etcd_endpoint(c));
    }
    if (ret_answer)
        *ret_answer = answer;
    *ret = object;
    return HF_DONE;
}

enum hf_result etcd_get_text(struct etcd_client *c, const char *path, struct hf_fault *fault)
{
    enum etcd_answer answer;
    c->body.len = 0;
    return call(c, "GET", path, ETCD_READ, &answer, fault);
}

int64_t etcd_metric(struct etcd_client *c, const char *name)
{
    char line[96];
    etcd_begin(c, 0);
    if (etcd_get_text(c, "/metrics", NULL) != HF_DONE)
        return -1;
    snprintf(line, sizeof line, "\n%s ", name);
    const struct buf *text = &c->response.body;
    const char *at = memmem(text->data, text->len, line, strlen(line));
    if (!at || !memchr(at + 1, '\n', text->len - (size_t)(at + 1 - text->data)))
        return -1;
    double value = strtod(at + strlen(line), NULL);
    return value >= 0 && value < 9e18 ? (int64_t)value : -1;
}

enum hf_result etcd_check_version(struct etcd_client *c, char ret_version[32],
                                  struct hf_fault *fault)
{
    struct hf_fault unread;
    enum etcd_answer answer;
    fault = fault ? fault : &unread;
    c->body.len = 0;
    enum etcd_outcome outcome = try_endpoints(c, "GET", "/version", ETCD_READ, &answer, fault);
    if (outcome != ANSWERED)
        return fault->result = HF_UNREACHABLE;
    json_t *object = json_loadb(c->response.body.data, c->response.body.len, 0, NULL);
    const char *text = json_string_value(json_object_get(object, "etcdserver"));
    int major = 0, minor = 0;
    enum hf_result result = HF_DONE;
    if (!text || sscanf(text, "%d.%d", &major, &minor) != 2)
        result = fault_set(fault, HF_UNREACHABLE,
                           "%s does not answer as etcd does: is it another server, or a proxy?",
                           etcd_endpoint(c));
    else if (major < 3 || (major == 3 && minor < 4))
        result =
            fault_set(fault, HF_UNREACHABLE, "etcd at %s is version %.20s; 3.4 or later is needed",
                      etcd_endpoint(c), text);
    else
        snprintf(ret_version, 32, "%s", text);
    json_decref(object);
    return result;
}
