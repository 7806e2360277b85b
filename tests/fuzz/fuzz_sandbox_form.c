/* Forms: what is read can be written and reads the same again, and every name that is accepted is
 * found by itself and has its brackets in pairs. */
#include "fuzz.h"

#include "sandbox/form.h"

static void names_are_well_formed(const struct form *f)
{
    for (size_t i = 0; i < f->entries.n; i++) {
        const char *name = form_name(f, i);
        char key[FORM_NAME_MAX];
        size_t len = strlen(name), depth = 0;
        hf_check(len > 0 && len < FORM_NAME_MAX && name[0] != '[');
        for (const char *p = name; *p; p++) {
            depth += *p == '[';
            hf_check(depth <= 1 && (*p != ']' || depth == 1));
            depth -= *p == ']';
        }
        hf_check(depth == 0);
        form_key(name, key);
        hf_check(strlen(key) < len);
        hf_check(form_get(f, name) && form_find(f, name, 0) <= i);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    struct form f = {0}, again = {0};
    struct buf written = {0};
    if (form_parse(&f, text, size, NULL)) {
        uint8_t one[32], two[32];
        names_are_well_formed(&f);
        for (size_t i = f.entries.n; i-- > 0;)
            form_encode(&written, form_name(&f, i), form_value(&f, i));
        hf_check(form_parse(&again, written.data, written.len, NULL));
        hf_check(again.entries.n == f.entries.n);
        for (size_t i = 0; i < f.entries.n; i++) {
            size_t j = f.entries.n - 1 - i;
            hf_check(strcmp(form_name(&f, i), form_name(&again, j)) == 0);
            hf_check(strcmp(form_value(&f, i), form_value(&again, j)) == 0);
        }
        form_digest(&f, "x", one);
        form_digest(&again, "x", two);
        hf_check(memcmp(one, two, sizeof one) == 0);
    }
    buf_close(&written);
    form_close(&f);
    form_close(&again);
    free(text);
    return 0;
}
