/* See idempotency.h.  Keys are hashed together with their scope, so that the ledger stores no
 * secret and the keys of two scopes never meet.  Requests are hashed so that another use of a key
 * can be told from a repeat (I8).  On HTTP threads. */
#include "api/idempotency.h"

#include <string.h>

#include "base/digest.h"
#include "json/fields.h"

#define KEY_LEN_MAX 255
/* Callers without an access key share scopes, where short keys would be guessed or meet by chance.
 */
#define KEY_LEN_MIN_PUBLIC 16
#define KEY_DIFFERENT_MIN 8 /* characters of a stranger's key */
#define KEY_DIGITS_MIN 39   /* of a stranger's key that is a number: 2^128 has as many */

/* A hash begins with one of these, so that no two kinds of scope can meet; the NUL is part of it.
 */
static const char scope_public[] = "public", scope_keyed[] = "keyed", scope_hold[] = "hold",
                  scope_address[] = "address";

static bool has_control(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
            return true;
    return false;
}

/* Could another client have come by the same key: by counting, or by filling it up? */
static bool is_predictable(struct text key)
{
    bool seen[256] = {false};
    size_t n_different = 0, n_digits = 0;
    for (size_t i = 0; i < key.len; i++) {
        unsigned char c = (unsigned char)key.data[i];
        n_different += !seen[c];
        n_digits += c >= '0' && c <= '9';
        seen[c] = true;
    }
    return n_different < KEY_DIFFERENT_MIN || (n_digits == key.len && key.len < KEY_DIGITS_MIN);
}

/* Takes the quotes off, if there are any.  Returns what is wrong with the key, or NULL. */
static const char *read_key(const struct request *r, struct text *ret)
{
    struct text key = r->headers.key;
    if (r->headers.n_keys > 1)
        return "Idempotency-Key must be given once";
    if (key.len > 0 && key.data[0] == '"') {
        if (key.len < 2 || key.data[key.len - 1] != '"')
            return "Idempotency-Key has an opening quote but no closing one";
        key.data++;
        key.len -= 2;
    }
    if (key.len < 1 || key.len > KEY_LEN_MAX)
        return "Idempotency-Key must have 1 to 255 characters";
    if (!r->caller.has_key && key.len < KEY_LEN_MIN_PUBLIC)
        return "Idempotency-Key must have at least 16 characters without an access key";
    if (has_control(key.data, key.len))
        return "Idempotency-Key has a control character";
    if (access_is_stranger(r) && is_predictable(key))
        return "Idempotency-Key must be random without an access key, such as a UUID: at least 8 "
               "different characters, and 39 if all are digits";
    *ret = key;
    return NULL;
}

static void hash_key(struct iovec kind, struct iovec scope, struct text key,
                     uint8_t out[KEY_HASH_SIZE])
{
    digest((struct iovec[]){kind, scope, digest_part(key.data, key.len)}, 3, out);
}

/* A key may look random and be guessed all the same, and the answer to a repeat has the id of the
 * hold, which is worth stealing: so nobody but the address that sent the first request gets it.  A
 * device changes its IPv6 address within its /64 by itself.  From anywhere else a repeat is judged
 * anew. */
struct address_scope {
    uint8_t v4;
    uint8_t bytes[8];
};

static void hash_by_address(struct call *c, struct text key)
{
    struct address from = {0};
    (void)access_address(&c->http, &from);
    struct address_scope scope = {.v4 = from.v4};
    memcpy(scope.bytes, from.bytes, from.v4 ? 4 : sizeof scope.bytes);
    hash_key(digest_part(scope_address, sizeof scope_address), digest_part(&scope, sizeof scope),
             key, c->command.key.hash);
}

/* The secret part of the id counts, too: whoever has only the rest does not get the answer. */
static void hash_by_hold(struct call *c, struct text hold, struct text key)
{
    struct id id = {0};
    uint8_t scope[sizeof id.key + sizeof id.secret];
    if (!id_parse(hold.data, hold.len, "hold_", &id))
        id = (struct id){0}; /* there is no such hold, and nothing will be stored */
    memcpy(scope, &id.key, sizeof id.key);
    memcpy(scope + sizeof id.key, id.secret, sizeof id.secret);
    hash_key(digest_part(scope_hold, sizeof scope_hold), digest_part(scope, sizeof scope), key,
             c->command.key.hash);
}

static void hash_in_scope(struct call *c, struct text hold, struct text key)
{
    const struct caller *caller = &c->http.caller;
    if (caller->has_key)
        hash_key(digest_part(scope_keyed, sizeof scope_keyed),
                 digest_part(caller->digest, sizeof caller->digest), key, c->command.key.hash);
    else if (!access_is_stranger(&c->http))
        hash_key(digest_part(scope_public, sizeof scope_public), digest_part("", 0), key,
                 c->command.key.hash);
    else if (hold.data)
        hash_by_hold(c, hold, key);
    else
        hash_by_address(c, key);
}

bool idempotency_read_for(struct call *c, struct text hold)
{
    const struct request *r = &c->http;
    struct text key;
    if (!r->headers.key.data)
        return true;
    const char *fault = read_key(r, &key);
    if (fault) {
        call_invalid(c, fault);
        return false;
    }
    hash_in_scope(c, hold, key);
    c->command.key.present = true;
    return true;
}

bool idempotency_read(struct call *c)
{
    return c->command.key.present || idempotency_read_for(c, c->http.segment);
}

void idempotency_hash_request(struct call *c)
{
    const struct request *r = &c->http;
    if (!c->command.key.present)
        return;
    digest((struct iovec[]){digest_part(r->method, strlen(r->method) + 1),
                            digest_part(r->path, strlen(r->path) + 1),
                            digest_part(r->body.data, r->body.len)},
           3, c->command.key.request);
}

static void key_looked_up(struct request *r)
{
    struct call *c = call_of(r);
    if (c->command.verdict != VERDICT_KEY_UNUSED) {
        call_answer(r);
        return;
    }
    c->key_checked = true;
    r->step = c->judge;
    r->step(r);
}

bool key_is_unused(struct call *c)
{
    struct command *command = &c->command;
    if (!command->key.present || c->key_checked || !engine_key_maybe(call_engine(c), &command->key))
        return true;
    c->judge = c->http.step;
    command->kind = CMD_KEY_CHECK;
    command->event = NULL;
    idempotency_hash_request(c);
    call_submit(c, key_looked_up);
    return false;
}

bool call_empty_body(struct call *c)
{
    static const char *const none[] = {NULL};
    struct hf_err err = {0};
    if (!idempotency_read(c))
        return false;
    const struct fields f = {.object = call_json(c, true, &err), .path = "", .err = &err};
    if (f.object && fields_known(&f, none))
        return true;
    call_invalid(c, err.msg);
    return false;
}
