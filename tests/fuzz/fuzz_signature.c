/* Headers and secrets of signatures.  A signature is good only for the body that it was made for,
 * and every list of secrets that is read can be used. */
#include "fuzz.h"

#include "base/digest.h"
#include "base/hex.h"
#include "checkout/signature.h"

#define SECRET "whsec_0123456789abcdef"

static void a_foreign_header_is_never_good(const char *text)
{
    struct signature_secrets secrets;
    hf_check(signature_read_stripe_secrets(SECRET, &secrets, NULL));
    hf_check(signature_check_stripe(text, &secrets, "body", 4, 1790000000) != SIGNATURE_GOOD);
}

/* Whatever else the header has, if it can be read, its own signature makes it good. */
static void a_header_with_our_signature_is_good(const char *text)
{
    static const char signed_text[] = "1790000000.body";
    struct signature_secrets secrets;
    struct iovec part = digest_part(signed_text, sizeof signed_text - 1);
    uint8_t code[DIGEST_SIZE];
    char hex[2 * DIGEST_SIZE + 1];
    struct buf header = {0};
    hf_check(signature_read_stripe_secrets(SECRET, &secrets, NULL));
    digest_hmac(SECRET, sizeof SECRET - 1, &part, 1, code);
    hex_format(code, sizeof code, hex);
    buf_printf(&header, "t=1790000000,v1=%s,", hex);
    buf_str(&header, text);
    buf_char(&header, '\0');
    enum signature_verdict verdict =
        signature_check_stripe(header.data, &secrets, "body", 4, 1790000000);
    hf_check(verdict == SIGNATURE_GOOD || verdict == SIGNATURE_MALFORMED);
    buf_close(&header);
}

static void secrets_that_are_read_can_be_used(const char *text)
{
    struct signature_secrets secrets;
    struct hf_err err = {0};
    struct buf out = {0};
    if (!signature_read_standard_secrets(text, &secrets, &err)) {
        hf_check(err.msg[0]);
        return;
    }
    hf_check(secrets.n >= 1 && secrets.n <= SIGNATURE_SECRETS_MAX);
    for (size_t i = 0; i < secrets.n; i++)
        hf_check(secrets.list[i].len >= 24 && secrets.list[i].len <= 64);
    signature_write_standard(&out, "msg_1", 1, text, strlen(text), &secrets);
    hf_check(out.len == secrets.n * (3 + 44) + secrets.n - 1);
    buf_close(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    a_foreign_header_is_never_good(text);
    a_header_with_our_signature_is_good(text);
    secrets_that_are_read_can_be_used(text);
    free(text);
    return 0;
}
