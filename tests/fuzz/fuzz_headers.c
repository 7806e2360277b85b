/* Headers that are read by hand: Accept-Encoding, If-None-Match, Idempotency-Key.  The first byte
 * of the input picks the header, the rest is its value. */
#include "fuzz.h"

#include "http/gzip.h"
#include "http/idempotency.h"
#include "http/text.h"

static void accept_encoding(const char *value)
{
    bool wanted = gzip_accepted(value);
    hf_check(!wanted || strpbrk(value, "gG*")); /* never where it is not named */
}

static void if_none_match(const char *value)
{
    static const char etag[] = "\"417\"";
    bool listed = text_etag_listed(value, etag);
    hf_check(!listed || strstr(value, etag) || strchr(value, '*'));
}

static void idempotency_key(const char *value, size_t len)
{
    struct request r = {.key = value, .key_len = len, .n_keys = 1, .id = "req_000000000000000000"};
    bool taken = idempotency_read(&r);
    hf_check(taken == (r.answer.status == 0) && taken == r.command.has_key);
    hf_check(taken || r.answer.status == MHD_HTTP_BAD_REQUEST);
    if (taken && value[0] != '"' && len <= 253) { /* the same key in quotes is the same key */
        struct buf quoted = {0};
        buf_char(&quoted, '"');
        buf_put(&quoted, value, len);
        buf_char(&quoted, '"');
        struct request again = {.key = quoted.data, .key_len = quoted.len, .n_keys = 1};
        hf_check(idempotency_read(&again));
        hf_check(memcmp(again.command.key_hash, r.command.key_hash, KEY_HASH_SIZE) == 0);
        buf_close(&quoted);
    }
    buf_close(&r.out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    char *value = fuzz_text(data + 1, size - 1);
    switch (data[0]) {
    case 'A':
        accept_encoding(value);
        break;
    case 'I':
        if_none_match(value);
        break;
    case 'K':
        idempotency_key(value, size - 1);
        break;
    default:
        break;
    }
    free(value);
    return 0;
}
