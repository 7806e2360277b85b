/* See access.h.  The main thread reads the keys, before any other thread starts and at a reload;
 * the rest runs on HTTP threads as each request begins.  It costs a server without keys one
 * comparison, and a server with keys a lock that is held while the digests are compared. */
#include "http/access.h"

#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/digest.h"
#include "base/log.h"
#include "base/private_file.h"
#include "http/request.h"
#include "http/server.h"

#define KEY_LEN_GOOD 16
#define KEY_LEN_MAX 255
#define FILE_LEN_MAX 16384
#define FORWARDED_VALUES_MAX 8

/* ---- keys ---- */

static const char *key_fault(const char *key, size_t len)
{
    if (len < 1 || len > KEY_LEN_MAX)
        return "an access key must have 1 to 255 characters";
    for (size_t i = 0; i < len; i++)
        if (key[i] <= ' ' || key[i] >= 0x7f)
            return "an access key must be printable ASCII without spaces";
    return NULL;
}

bool access_add_key(struct access *a, enum scope scope, const char *key, size_t len,
                    const char *where, struct hf_err *err)
{
    struct access_key k = {.scope = scope};
    const char *fault = key_fault(key, len);
    if (!fault && a->n_keys == ACCESS_KEYS_MAX)
        fault = "one access key too many";
    digest((struct iovec[]){digest_part(key, len)}, 1, k.digest);
    for (size_t i = 0; i < a->n_keys && !fault; i++)
        if (a->keys[i].scope != scope &&
            CRYPTO_memcmp(a->keys[i].digest, k.digest, sizeof k.digest) == 0)
            fault = "the same access key is given for two scopes";
    if (fault) {
        (void)hf_err_set(err, HF_INVALID_REQUEST, "%.150s: %s", where, fault);
        return false;
    }
    if (len < KEY_LEN_GOOD)
        log_write(LOG_WARN, "an access key is short enough to be guessed", "where", where, NULL);
    a->keys[a->n_keys++] = k;
    a->has_keys = true;
    return true;
}

static bool add_lines(struct access *a, enum scope scope, const char *text, size_t len,
                      const char *path, struct hf_err *err)
{
    size_t n_before = a->n_keys;
    int line = 0;
    for (const char *p = text, *end = text + len; p < end; p++) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        size_t n = (size_t)((stop ? stop : end) - p);
        size_t used = n && p[n - 1] == '\r' ? n - 1 : n;
        char where[160];
        (void)snprintf(where, sizeof where, "%.130s, line %d", path, ++line);
        if (used && *p != '#' && !access_add_key(a, scope, p, used, where, err))
            return false;
        p += n;
    }
    if (a->n_keys > n_before)
        return true;
    (void)hf_err_set(err, HF_INVALID_REQUEST, "%.150s: there is no key in it", path);
    return false;
}

bool access_add_file(struct access *a, enum scope scope, const char *path, struct hf_err *err)
{
    char text[FILE_LEN_MAX];
    size_t len;
    bool added = private_file_read(path, text, sizeof text, &len, err) &&
                 add_lines(a, scope, text, len, path, err);
    OPENSSL_cleanse(text, sizeof text);
    return added;
}

bool access_replace_keys(struct access *a, const struct access *from, struct hf_err *err)
{
    if (a->has_keys != from->has_keys) {
        (void)hf_err_set(err, HF_INVALID_REQUEST,
                         a->has_keys ? "a server with access keys cannot give up all of them"
                                     : "a server without access keys gets its first at a restart");
        return false;
    }
    lock_take(&a->lock);
    memcpy(a->keys, from->keys, sizeof a->keys);
    a->n_keys = from->n_keys;
    lock_give(&a->lock);
    return true;
}

bool access_may_listen(const struct access *a, const struct listen_address *at, struct hf_err *err)
{
    if (listen_is_loopback(at))
        return true;
    for (size_t i = 0; i < a->n_keys; i++)
        if (a->keys[i].scope == SCOPE_ADMIN)
            return true;
    (void)hf_err_set(err, HF_INVALID_REQUEST,
                     "without an admin key only loopback addresses are served; set "
                     "HOLDFAST_ADMIN_KEY or --admin-key-file");
    return false;
}

/* ---- callers ---- */

/* The key in "Bearer KEY", whose length becomes *len; NULL if the value is something else. */
static const char *bearer_token(const char *value, size_t *len)
{
    static const char scheme[] = "Bearer";
    const size_t n = sizeof scheme - 1;
    if (*len <= n || strncasecmp(value, scheme, n) != 0 || value[n] != ' ')
        return NULL;
    value += n;
    *len -= n;
    for (; *len && *value == ' '; value++)
        --*len;
    return value;
}

/* Compares every key, each in constant time.  Returns the scope of the one that it is;
 * SCOPE_UNSET: none of them. */
static enum scope scope_of(struct access *a, const uint8_t presented[DIGEST_SIZE])
{
    enum scope scope = SCOPE_UNSET;
    lock_take(&a->lock);
    for (size_t i = 0; i < a->n_keys; i++)
        if (CRYPTO_memcmp(a->keys[i].digest, presented, DIGEST_SIZE) == 0)
            scope = a->keys[i].scope;
    lock_give(&a->lock);
    return scope;
}

struct caller access_identify(struct access *a, const char *authorization, size_t len,
                              unsigned n_headers)
{
    if (!a->has_keys)
        return (struct caller){.scope = SCOPE_ADMIN};
    struct caller caller = {.scope = a->no_public_buyers ? SCOPE_PUBLIC : SCOPE_BUYER};
    if (n_headers == 0)
        return caller;
    enum scope scope = SCOPE_UNSET;
    const char *token = n_headers == 1 ? bearer_token(authorization, &len) : NULL;
    if (token) {
        digest((struct iovec[]){digest_part(token, len)}, 1, caller.digest);
        scope = scope_of(a, caller.digest);
    }
    caller.has_key = scope != SCOPE_UNSET;
    if (caller.has_key)
        caller.scope = scope;
    caller.refused = !caller.has_key;
    return caller;
}

const struct problem *access_judge(const struct caller *caller, enum scope needed)
{
    if (caller->refused)
        return &problem_unauthorized;
    if (caller->scope >= needed)
        return NULL;
    return caller->has_key ? &problem_forbidden : &problem_unauthorized;
}

const char *access_scope_name(const struct access *a, const struct caller *caller)
{
    if (!a->has_keys)
        return "open";
    if (!caller->has_key)
        return "public";
    return caller->scope == SCOPE_ADMIN ? "admin" : "seller";
}

/* ---- requests ---- */

static void refuse_keyless(struct request *r, const char *detail)
{
    r->answer.challenge = "Bearer realm=\"holdfast\"";
    answer_problem(r, &problem_unauthorized, detail);
}

static void key_missing(struct request *r) { refuse_keyless(r, NULL); }

/* problem_unauthorized with other words, for a caller who sent something. */
static const struct problem problem_wrong_key =
    PROBLEM(401, "unauthorized", "The access key is not valid",
            "Authorization must be given once, as Bearer and a key of this server.");

static void key_wrong(struct request *r)
{
    r->answer.challenge = "Bearer realm=\"holdfast\", error=\"invalid_token\"";
    answer_problem(r, &problem_wrong_key, NULL);
}

static void scope_too_low(struct request *r) { answer_problem(r, &problem_forbidden, NULL); }

bool access_check(struct request *r)
{
    r->caller = access_identify(server_access(r->server), r->authorization.data,
                                r->authorization.len, r->n_authorizations);
    if (r->needs == SCOPE_UNSET) /* any caller may get a 404, a 405 or an answer to a preflight */
        return true;
    const struct problem *problem = access_judge(&r->caller, r->needs);
    if (!problem)
        return true;
    if (problem == &problem_forbidden)
        r->step = scope_too_low;
    else
        r->step = r->caller.refused ? key_wrong : key_missing;
    return false;
}

bool access_require(struct request *r, enum scope needed, const char *detail)
{
    const struct problem *problem = access_judge(&r->caller, needed);
    if (problem == &problem_forbidden)
        answer_problem(r, problem, detail);
    else if (problem)
        refuse_keyless(r, detail);
    return !problem;
}

bool access_address(const struct request *r, struct address *ret)
{
    const struct access *a = server_access(r->server);
    const struct address *peer = request_peer(r);
    if (!peer)
        return false;
    *ret = *peer;
    if (networks_have(&a->trusted, peer)) {
        const char *values[FORWARDED_VALUES_MAX]; /* the last ones, since the walk begins there */
        size_t n = request_headers(r, "X-Forwarded-For", values, FORWARDED_VALUES_MAX);
        *ret = forwarded_client(&a->trusted, peer, values, n);
    }
    return true;
}

uint64_t access_client(const struct request *r)
{
    const struct access *a = server_access(r->server);
    if (!a->counts_clients || !a->has_keys || r->caller.has_key)
        return 0;
    /* Clients of an unknown address family share one count, rather than have none. */
    struct address client = {0};
    (void)access_address(r, &client);
    return address_client(&client);
}
