/* See signature.h. */
#include "checkout/signature.h"

#include <inttypes.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/hex.h"

#define PREFIX "whsec_"
#define PREFIX_LEN (sizeof PREFIX - 1)
#define SEPARATORS " \t\r\n,"
#define STRIPE_SECRET_MIN 16
#define STANDARD_SECRET_MIN 24
#define STANDARD_SECRET_MAX 64
#define TIMESTAMP_SIZE 24 /* digits of an int64_t and a NUL */

/* ---- secrets ---- */

static bool read_stripe_secret(const char *text, size_t len, struct signature_secret *ret)
{
    if (len < STRIPE_SECRET_MIN || len >= sizeof ret->bytes ||
        memcmp(text, PREFIX, PREFIX_LEN) != 0)
        return false;
    for (size_t i = 0; i < len; i++)
        if (text[i] <= ' ' || text[i] > '~')
            return false;
    memcpy(ret->bytes, text, len);
    ret->len = len;
    return true;
}

/* Decodes base64 with padding, at most STANDARD_SECRET_MAX bytes; nothing else is accepted. */
static bool decode_base64(const char *text, size_t len, struct signature_secret *ret)
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t padding = 0;
    char again[sizeof ret->bytes * 2];
    if (len == 0 || len % 4 || len / 4 * 3 > STANDARD_SECRET_MAX + 2)
        return false;
    while (padding < 2 && text[len - 1 - padding] == '=')
        padding++;
    for (size_t i = 0; i < len - padding; i++)
        if (!memchr(alphabet, text[i], sizeof alphabet - 1))
            return false;
    if (EVP_DecodeBlock(ret->bytes, (const unsigned char *)text, (int)len) < 0)
        return false;
    ret->len = len / 4 * 3 - padding;
    /* Bits that the last character has too many must be zero. */
    EVP_EncodeBlock((unsigned char *)again, ret->bytes, (int)ret->len);
    bool is_canonical = memcmp(again, text, len) == 0;
    explicit_bzero(again, sizeof again);
    return is_canonical;
}

static bool read_standard_secret(const char *text, size_t len, struct signature_secret *ret)
{
    return len > PREFIX_LEN && memcmp(text, PREFIX, PREFIX_LEN) == 0 &&
           decode_base64(text + PREFIX_LEN, len - PREFIX_LEN, ret) &&
           ret->len >= STANDARD_SECRET_MIN && ret->len <= STANDARD_SECRET_MAX;
}

static bool read_secrets(const char *text,
                         bool (*read)(const char *text, size_t len, struct signature_secret *ret),
                         const char *form, struct signature_secrets *ret, struct hf_err *err)
{
    struct signature_secrets secrets = {0};
    bool good = true;
    for (text += strspn(text, SEPARATORS); good && *text; text += strspn(text, SEPARATORS)) {
        size_t len = strcspn(text, SEPARATORS);
        if (secrets.n == SIGNATURE_SECRETS_MAX) {
            (void)hf_err_set(err, HF_INVALID_REQUEST, "there are more than %d secrets",
                             SIGNATURE_SECRETS_MAX);
            good = false;
        } else if (!read(text, len, &secrets.list[secrets.n++])) {
            (void)hf_err_set(err, HF_INVALID_REQUEST, "secret %zu is not %s", secrets.n, form);
            good = false;
        }
        text += len;
    }
    if (good && secrets.n == 0) {
        (void)hf_err_set(err, HF_INVALID_REQUEST, "there is no secret");
        good = false;
    }
    if (good)
        *ret = secrets;
    explicit_bzero(&secrets, sizeof secrets);
    return good;
}

bool signature_read_stripe_secrets(const char *text, struct signature_secrets *ret,
                                   struct hf_err *err)
{
    return read_secrets(text, read_stripe_secret, "whsec_ and at least ten more characters", ret,
                        err);
}

bool signature_read_standard_secrets(const char *text, struct signature_secrets *ret,
                                     struct hf_err *err)
{
    return read_secrets(text, read_standard_secret, "whsec_ and 24 to 64 bytes in base64", ret,
                        err);
}

void signature_secrets_close(struct signature_secrets *secrets)
{
    explicit_bzero(secrets, sizeof *secrets);
}

/* ---- Stripe ---- */

/* A Stripe-Signature header: elements NAME=VALUE, separated by commas. */
struct signature_header {
    const char *at; /* the next element; NULL: there is none */
};
struct element {
    const char *name, *value;
    size_t name_len, value_len;
};

/* Returns false at the end, and for an element without '='; `at` then is not NULL. */
static bool next_element(struct signature_header *header, struct element *ret)
{
    if (!header->at)
        return false;
    size_t len = strcspn(header->at, ",");
    const char *equals = memchr(header->at, '=', len);
    if (!equals)
        return false;
    ret->name = header->at;
    ret->name_len = (size_t)(equals - header->at);
    ret->value = equals + 1;
    ret->value_len = len - ret->name_len - 1;
    header->at = header->at[len] ? header->at + len + 1 : NULL;
    return true;
}

static bool is_named(const struct element *e, const char *name)
{
    return e->name_len == strlen(name) && memcmp(e->name, name, e->name_len) == 0;
}

/* Finds the timestamp, of which there is one; its text is what was signed. */
static bool read_timestamp(const char *text, struct element *ret, int64_t *ret_s)
{
    struct signature_header header = {.at = text};
    struct element e;
    bool found = false;
    while (next_element(&header, &e)) {
        if (!is_named(&e, "t"))
            continue;
        if (found || e.value_len == 0 || e.value_len > 18 ||
            strspn(e.value, "0123456789") != e.value_len)
            return false;
        *ret = e;
        *ret_s = strtoll(e.value, NULL, 10);
        found = true;
    }
    return found && !header.at;
}

/* Constant in time for a text of the right length. */
static bool is_code(const struct element *e, const uint8_t code[DIGEST_SIZE])
{
    char hex[2 * DIGEST_SIZE + 1];
    hex_format(code, DIGEST_SIZE, hex);
    return e->value_len == 2 * DIGEST_SIZE && CRYPTO_memcmp(e->value, hex, e->value_len) == 0;
}

enum signature_verdict signature_check_stripe(const char *header,
                                              const struct signature_secrets *secrets,
                                              const void *body, size_t len, int64_t now_s)
{
    struct element timestamp = {0}, e;
    int64_t signed_s = 0;
    bool has_signature = false, is_good = false;
    if (!header || strlen(header) > SIGNATURE_HEADER_MAX ||
        !read_timestamp(header, &timestamp, &signed_s))
        return SIGNATURE_MALFORMED;
    const struct iovec parts[] = {digest_part(timestamp.value, timestamp.value_len),
                                  digest_part(".", 1), digest_part(body, len)};
    uint8_t codes[SIGNATURE_SECRETS_MAX][DIGEST_SIZE];
    for (size_t i = 0; i < secrets->n; i++)
        digest_hmac(secrets->list[i].bytes, secrets->list[i].len, parts, 3, codes[i]);
    struct signature_header all = {.at = header};
    while (next_element(&all, &e)) {
        if (!is_named(&e, "v1"))
            continue;
        has_signature = true;
        for (size_t i = 0; i < secrets->n; i++)
            is_good |= is_code(&e, codes[i]);
    }
    if (!has_signature)
        return SIGNATURE_MALFORMED;
    if (!is_good)
        return SIGNATURE_WRONG;
    int64_t age_s = now_s - signed_s;
    return age_s > SIGNATURE_TOLERANCE_S || age_s < -SIGNATURE_TOLERANCE_S ? SIGNATURE_STALE
                                                                           : SIGNATURE_GOOD;
}

/* ---- Standard Webhooks ---- */

void signature_write_standard(struct buf *out, const char *id, int64_t timestamp_s,
                              const void *body, size_t len, const struct signature_secrets *secrets)
{
    char timestamp[TIMESTAMP_SIZE];
    int timestamp_len = snprintf(timestamp, sizeof timestamp, "%" PRId64, timestamp_s);
    const struct iovec parts[] = {digest_part(id, strlen(id)), digest_part(".", 1),
                                  digest_part(timestamp, (size_t)timestamp_len),
                                  digest_part(".", 1), digest_part(body, len)};
    for (size_t i = 0; i < secrets->n; i++) {
        uint8_t code[DIGEST_SIZE];
        unsigned char text[4 * ((DIGEST_SIZE + 2) / 3) + 1];
        digest_hmac(secrets->list[i].bytes, secrets->list[i].len, parts, 5, code);
        EVP_EncodeBlock(text, code, sizeof code);
        buf_str(out, i ? " v1," : "v1,");
        buf_str(out, (const char *)text);
    }
}
