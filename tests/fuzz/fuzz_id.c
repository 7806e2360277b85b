/* Ids: every id has one text, and no other text is taken for it. */
#include "fuzz.h"

#include <string.h>

#include "base/id.h"

static const char *const prefixes[] = {"evt_", "hold_", "bkg_"};
#define N_PREFIXES (sizeof prefixes / sizeof *prefixes)

static void text_reads_and_writes_the_same(const char *text, size_t len)
{
    for (size_t i = 0; i < N_PREFIXES; i++) {
        struct id id;
        char again[ID_TEXT_SIZE];
        if (!id_parse(text, len, prefixes[i], &id))
            continue;
        hf_check(id.key > 0);
        hf_check(id_format(again, prefixes[i], &id) == len && memcmp(again, text, len) == 0);
    }
}

static void number_writes_and_reads_the_same(const uint8_t *data)
{
    struct id id, again = {0};
    char text[ID_TEXT_SIZE];
    memcpy(&id.key, data, sizeof id.key);
    memcpy(id.secret, data + sizeof id.key, sizeof id.secret);
    id.key &= INT64_MAX;
    if (id.key == 0)
        return;
    for (size_t i = 0; i < N_PREFIXES; i++) {
        size_t len = id_format(text, prefixes[i], &id);
        hf_check(len == strlen(text) && id_parse(text, len, prefixes[i], &again));
        hf_check(again.key == id.key && id_secret_equal(again.secret, id.secret));
        hf_check(!id_parse(text, len - 1, prefixes[i], &again));
        hf_check(!id_parse(text, len, prefixes[(i + 1) % N_PREFIXES], &again));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    text_reads_and_writes_the_same(text, size);
    free(text);
    if (size >= sizeof(int64_t) + ID_SECRET_SIZE)
        number_writes_and_reads_the_same(data);
    return 0;
}
