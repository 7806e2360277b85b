/* See access.h.  The main thread reads the keys, before any other thread starts and at a reload;
 * the rest runs on HTTP threads as each request begins.  It costs a server without keys one
 * comparison, and a server with keys a lock that is held while the digests are compared.  A wrong
 * key, and one that is used from an address for the first time, cost another lock (quota.h). */
#include "http/access.h"

#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/digest.h"
#include "base/log.h"
#include "base/private_file.h"
#include "http/guesses.h"
#include "http/request.h"
#include "http/server_internal.h"

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

static const char *scope_name(enum scope scope)
{
    return scope == SCOPE_ADMIN ? "admin" : "seller";
}

bool access_add_key(struct access *a, enum scope scope, const char *key, size_t len,
                    const char *where, struct hf_err *err)
{
    struct access_key k = {.scope = scope};
    (void)snprintf(k.name, sizeof k.name, "%s", scope_name(scope));
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
    if (len < KEY_LEN_GOOD) {
        log_write(LOG_WARN, "an access key is short enough to be guessed", "where", where, NULL);
        (void)snprintf(a->short_key, sizeof a->short_key, "%s", where);
    }
    a->keys[a->n_keys++] = k;
    a->has_keys = true;
    return true;
}

static const char *name_fault(const char *name, size_t len, size_t key_len)
{
    static const char allowed[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    bool is_name = len > 0 && len < ACCESS_NAME_SIZE;
    for (size_t i = 0; i < len && is_name; i++)
        is_name = memchr(allowed, name[i], sizeof allowed - 1) != NULL;
    if (!is_name)
        return "the name before an access key must have 1 to 32 letters, digits, dots, "
               "underscores and hyphens";
    return key_len < KEY_LEN_GOOD ? "an access key after a name must have 16 characters" : NULL;
}

/* Adds the key of a line, "KEY" or "NAME KEY".  A short key after a name is more likely a phrase
 * that is meant as one key, so it is refused. */
static bool add_line(struct access *a, enum scope scope, const char *line, size_t len,
                     const char *where, struct hf_err *err)
{
    const char *space = memchr(line, ' ', len);
    if (!space)
        return access_add_key(a, scope, line, len, where, err);
    size_t name_len = (size_t)(space - line), key_len = len - name_len - 1;
    const char *fault = name_fault(line, name_len, key_len);
    if (fault) {
        (void)hf_err_set(err, HF_INVALID_REQUEST, "%.150s: %s", where, fault);
        return false;
    }
    if (!access_add_key(a, scope, space + 1, key_len, where, err))
        return false;
    struct access_key *added = &a->keys[a->n_keys - 1];
    memset(added->name, 0, sizeof added->name);
    memcpy(added->name, line, name_len);
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
        if (used && *p != '#' && !add_line(a, scope, p, used, where, err))
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

/* Where other machines reach the server, no key may be one that can be guessed. */
static bool keys_are_long(const struct access *a, struct hf_err *err)
{
    if (!a->short_key[0])
        return true;
    (void)hf_err_set(err, HF_INVALID_REQUEST,
                     "%.150s: outside loopback an access key must have at least %d characters",
                     a->short_key, KEY_LEN_GOOD);
    return false;
}

bool access_replace_keys(struct access *a, const struct access *from, struct hf_err *err)
{
    if (a->has_keys != from->has_keys) {
        (void)hf_err_set(err, HF_INVALID_REQUEST,
                         a->has_keys ? "a server with access keys cannot give up all of them"
                                     : "a server without access keys gets its first at a restart");
        return false;
    }
    if (a->is_exposed && !keys_are_long(from, err))
        return false;
    lock_take(&a->lock);
    memcpy(a->keys, from->keys, sizeof a->keys);
    a->n_keys = from->n_keys;
    lock_give(&a->lock);
    return true;
}

bool access_may_listen(struct access *a, const struct listen_address *at, struct hf_err *err)
{
    if (listen_is_loopback(at))
        return true;
    a->is_exposed = true;
    for (size_t i = 0; i < a->n_keys; i++)
        if (a->keys[i].scope == SCOPE_ADMIN)
            return keys_are_long(a, err);
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

/* Compares every key with caller->digest, each in constant time.  If it is one of them, the caller
 * gets its scope and name. */
static void find_key(struct access *a, struct caller *caller)
{
    lock_take(&a->lock);
    for (size_t i = 0; i < a->n_keys; i++) {
        const struct access_key *key = &a->keys[i];
        if (CRYPTO_memcmp(key->digest, caller->digest, DIGEST_SIZE) != 0)
            continue;
        caller->has_key = true;
        caller->scope = key->scope;
        memcpy(caller->key_name, key->name, sizeof key->name);
    }
    lock_give(&a->lock);
}

struct caller access_identify(struct access *a, const char *authorization, size_t len,
                              unsigned n_headers)
{
    if (!a->has_keys)
        return (struct caller){.scope = SCOPE_ADMIN};
    struct caller caller = {.scope = a->no_public_buyers ? SCOPE_PUBLIC : SCOPE_BUYER};
    if (n_headers == 0)
        return caller;
    const char *token = n_headers == 1 ? bearer_token(authorization, &len) : NULL;
    if (token) {
        digest((struct iovec[]){digest_part(token, len)}, 1, caller.digest);
        find_key(a, &caller);
    }
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
    return scope_name(caller->scope);
}

/* ---- requests ---- */

static void refuse_keyless(struct request *r, const char *detail)
{
    r->answer.headers.challenge = "Bearer realm=\"holdfast\"";
    answer_problem(r, &problem_unauthorized, detail);
}

static void key_missing(struct request *r) { refuse_keyless(r, NULL); }

/* problem_unauthorized with other words, for a caller who sent something. */
static const struct problem problem_wrong_key =
    PROBLEM(401, "unauthorized", "The access key is not valid",
            "Authorization must be given once, as Bearer and a key of this server.");

static void key_wrong(struct request *r)
{
    r->answer.headers.challenge = "Bearer realm=\"holdfast\", error=\"invalid_token\"";
    answer_problem(r, &problem_wrong_key, NULL);
}

static void scope_too_low(struct request *r) { answer_problem(r, &problem_forbidden, NULL); }

static struct address client_of(const struct request *r)
{
    /* Clients of an unknown address family share one count, rather than have none. */
    struct address client = {0};
    (void)access_address(r, &client);
    return client;
}

static void too_many_wrong_keys(struct request *r)
{
    int64_t wait_us = 0;
    struct address client = client_of(r);
    (void)quota_allows(r->server->quotas, &client, QUOTA_WRONG_KEYS, r->arrived_us, &wait_us);
    counter_add(r->server->traffic.too_soon[QUOTA_WRONG_KEYS], 1);
    r->answer.close = true;
    answer_too_soon(r, &problem_too_many_wrong_keys, wait_us);
}

/* Is the caller's key to be judged?  See guesses.h. */
static bool may_try(struct request *r)
{
    struct guesses *guesses = &r->server->guesses;
    struct quotas *quotas = r->server->quotas;
    int64_t wait_us;
    if (!r->caller.has_key && !r->caller.refused)
        return true;
    struct address client = client_of(r);
    if (r->caller.refused) {
        guesses_note(guesses, &client, r->arrived_us);
        return quota_spend(quotas, &client, QUOTA_WRONG_KEYS, r->arrived_us, &wait_us);
    }
    if (guesses_know(guesses, &client, r->caller.digest))
        return true;
    if (!quota_allows(quotas, &client, QUOTA_WRONG_KEYS, r->arrived_us, &wait_us))
        return false;
    guesses_remember(guesses, &client, r->caller.digest);
    return true;
}

bool access_check(struct request *r)
{
    r->caller = access_identify(server_access(r->server), r->headers.authorization.data,
                                r->headers.authorization.len, r->headers.n_authorizations);
    if (r->needs == SCOPE_UNSET) /* any caller may get a 404, a 405 or an answer to a preflight */
        return true;
    if (!may_try(r)) {
        r->caller = (struct caller){.refused = true}; /* nothing tells a right key from others */
        r->step = too_many_wrong_keys;
        return false;
    }
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

bool access_is_stranger(const struct request *r)
{
    const struct access *a = server_access(r->server);
    return a->counts_clients && a->has_keys && !r->caller.has_key;
}

bool access_has_key(const struct request *r, enum scope scope)
{
    return r->caller.has_key && r->caller.scope >= scope;
}

bool access_spend(const struct request *r, enum quota_rate rate, int64_t *ret_wait_us)
{
    if (!access_is_stranger(r))
        return true;
    struct address client = client_of(r);
    if (quota_spend(r->server->quotas, &client, rate, r->arrived_us, ret_wait_us))
        return true;
    counter_add(r->server->traffic.too_soon[rate], 1);
    return false;
}

void access_unspend(const struct request *r, enum quota_rate rate)
{
    if (!access_is_stranger(r))
        return;
    struct address client = client_of(r);
    quota_unspend(r->server->quotas, &client, rate);
}

uint64_t access_client(const struct request *r)
{
    if (!access_is_stranger(r))
        return 0;
    struct address client = client_of(r);
    return address_client(&client);
}
