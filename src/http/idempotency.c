/* Keys are hashed with the caller's scope, so that the ledger stores no secret and two callers
 * never meet; requests are hashed so that a key's second use can be told from a repeat (I8). */
/* The plain calls cost a third of the EVP ones here, and this is on the path of every refusal. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "http/idempotency.h"

#include <openssl/sha.h>
#include <string.h>
#include <sys/uio.h>

#include "http/answer.h"

#define KEY_LEN_MAX 255
#define KEY_LEN_MIN_PUBLIC 16 /* a shared scope: short keys would be guessed or met by chance */

/* What a hash begins with, so that the two kinds of scope cannot meet; the NUL is part of it. */
static const char scope_public[] = "public", scope_keyed[] = "keyed";

static void hash(const struct iovec *parts, int n, uint8_t out[KEY_HASH_SIZE])
{
    SHA256_CTX ctx;
    SHA256_Init(&ctx);
    for (int i = 0; i < n; i++)
        SHA256_Update(&ctx, parts[i].iov_base, parts[i].iov_len);
    SHA256_Final(out, &ctx);
}

static struct iovec part(const void *data, size_t len)
{
    return (struct iovec){.iov_base = (void *)(uintptr_t)data, .iov_len = len};
}

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
        hash((struct iovec[]){part(scope_keyed, sizeof scope_keyed),
                              part(own->digest, sizeof own->digest), part(key, len)},
             3, r->command.key_hash);
    else
        hash((struct iovec[]){part(scope_public, sizeof scope_public), part(key, len)}, 2,
             r->command.key_hash);
    r->command.has_key = true;
    return true;
}

void idempotency_hash_request(struct request *r)
{
    if (!r->command.has_key)
        return;
    hash((struct iovec[]){part(r->method, strlen(r->method) + 1),
                          part(r->path, strlen(r->path) + 1), part(r->body.data, r->body.len)},
         3, r->command.request_hash);
}
