/* Keys are hashed with the caller's scope, so that the ledger stores no secret and two callers
 * never meet; requests are hashed so that a key's second use can be told from a repeat (I8). */
#include "api/idempotency.h"

#include <string.h>

#include "base/digest.h"
#include "api/answer.h"

#define KEY_LEN_MAX 255
#define KEY_LEN_MIN_PUBLIC 16 /* a shared scope: short keys would be guessed or met by chance */

/* What a hash begins with, so that the two kinds of scope cannot meet; the NUL is part of it. */
static const char scope_public[] = "public", scope_keyed[] = "keyed";

static bool has_control(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
            return true;
    return false;
}

bool idempotency_read(struct request *r)
{
    const char *key = r->key;
    size_t len = r->key_len;
    if (!key)
        return true;
    const char *fault = r->n_keys > 1 ? "Idempotency-Key must be given once" : NULL;
    bool quoted = len > 0 && key[0] == '"';
    if (!fault && quoted && (len < 2 || key[len - 1] != '"')) {
        fault = "Idempotency-Key has an opening quote but no closing one";
    } else if (!fault && quoted) {
        key++;
        len -= 2;
    }
    if (!fault && (len < 1 || len > KEY_LEN_MAX))
        fault = "Idempotency-Key must have 1 to 255 characters";
    else if (!fault && !r->caller.key && len < KEY_LEN_MIN_PUBLIC)
        fault = "Idempotency-Key must have at least 16 characters without an access key";
    else if (!fault && has_control(key, len))
        fault = "Idempotency-Key has a control character";
    if (fault) {
        answer_problem(r, HF_INVALID_REQUEST, fault);
        return false;
    }
    const struct access_key *own = r->caller.key;
    if (own)
        digest((struct iovec[]){digest_part(scope_keyed, sizeof scope_keyed),
                                digest_part(own->digest, sizeof own->digest),
                                digest_part(key, len)},
               3, r->command.key_hash);
    else
        digest(
            (struct iovec[]){digest_part(scope_public, sizeof scope_public), digest_part(key, len)},
            2, r->command.key_hash);
    r->command.has_key = true;
    return true;
}

void idempotency_hash_request(struct request *r)
{
    if (!r->command.has_key)
        return;
    digest((struct iovec[]){digest_part(r->method, strlen(r->method) + 1),
                            digest_part(r->path, strlen(r->path) + 1),
                            digest_part(r->body.data, r->body.len)},
           3, r->command.request_hash);
}
