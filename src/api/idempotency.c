/* See idempotency.h.  Keys are hashed together with the caller's scope, so that the ledger stores
 * no secret and the keys of two callers never meet.  Requests are hashed so that another use of a
 * key can be told from a repeat (I8).  On HTTP threads. */
#include "api/idempotency.h"

#include <string.h>

#include "base/digest.h"

#define KEY_LEN_MAX 255
/* Callers without an access key share a scope, where short keys would be guessed or meet by chance.
 */
#define KEY_LEN_MIN_PUBLIC 16

/* A hash begins with one of these, so that the two kinds of scope cannot meet; the NUL is part of
 * it. */
static const char scope_public[] = "public", scope_keyed[] = "keyed";

static bool has_control(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
            return true;
    return false;
}

/* Takes the quotes off, if there are any.  Returns what is wrong with the key, or NULL. */
static const char *read_key(const struct request *r, struct text *ret)
{
    struct text key = r->key;
    if (r->n_keys > 1)
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
    *ret = key;
    return NULL;
}

static void hash_key(const struct caller *caller, struct text key, uint8_t out[KEY_HASH_SIZE])
{
    if (caller->has_key)
        digest((struct iovec[]){digest_part(scope_keyed, sizeof scope_keyed),
                                digest_part(caller->digest, sizeof caller->digest),
                                digest_part(key.data, key.len)},
               3, out);
    else
        digest((struct iovec[]){digest_part(scope_public, sizeof scope_public),
                                digest_part(key.data, key.len)},
               2, out);
}

bool idempotency_read(struct call *c)
{
    const struct request *r = &c->http;
    struct text key;
    if (!r->key.data || c->command.key.present)
        return true;
    const char *fault = read_key(r, &key);
    if (fault) {
        call_invalid(c, fault);
        return false;
    }
    hash_key(&r->caller, key, c->command.key.hash);
    c->command.key.present = true;
    return true;
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
    c->judge(r);
}

bool key_is_unused(struct call *c, step_fn judge)
{
    struct command *command = &c->command;
    if (!command->key.present || c->key_checked || !engine_key_maybe(call_engine(c), &command->key))
        return true;
    c->judge = judge;
    command->kind = CMD_KEY_CHECK;
    command->event = NULL;
    idempotency_hash_request(c);
    call_submit(c, key_looked_up);
    return false;
}
