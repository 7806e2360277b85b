/* Form-encoded parameters as Stripe's clients send them: sandbox/form.h. */
#include "support/fixtures.h"

#include <stdio.h>
#include <string.h>

#include "sandbox/form.h"

static bool parse(struct form *f, const char *text)
{
    form_close(f);
    return form_parse(f, text, strlen(text), NULL);
}

static void assert_value(const struct form *f, const char *name, const char *value)
{
    const char *found = form_get(f, name);
    if (!value) {
        assert_null(found);
        return;
    }
    assert_non_null(found);
    assert_string_equal(found, value);
}

static void names_and_values_are_decoded(void **state)
{
    (void)state;
    struct form f = {0};
    assert_true(parse(&f, "a=1&metadata%5Bkey%5D=x+y%26%3D%C3%A4&&empty=&bare&a=2"));
    assert_int_equal(f.entries.n, 5);
    assert_value(&f, "metadata[key]", "x y&=\xc3\xa4");
    assert_value(&f, "empty", "");
    assert_value(&f, "bare", "");
    assert_value(&f, "a", "2");
    assert_value(&f, "b", NULL);
    assert_true(parse(&f, ""));
    assert_int_equal(f.entries.n, 0);
    form_close(&f);
}

static void broken_texts_are_refused(void **state)
{
    (void)state;
    static const char *const broken[] = {
        "a=%", "a=%4",  "a=%zz", "%4=1",  "a=%00",   "a%00=1",   "a=%ff",   "%c3=1",
        "=1",  "[a]=1", "a[b=1", "a]b=1", "a[b]c=1", "a[[b]]=1", "a[b]]=1", "a=\xc3"};
    struct form f = {0};
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        struct hf_err err = {0};
        form_close(&f);
        if (form_parse(&f, broken[i], strlen(broken[i]), &err))
            fail_msg("%s", broken[i]);
        assert_int_equal(err.code, HF_INVALID_REQUEST);
    }
    form_close(&f);
}

static void there_are_limits(void **state)
{
    (void)state;
    struct form f = {0};
    struct buf text = {0};
    for (int i = 0; i < FORM_ENTRIES_MAX; i++)
        buf_printf(&text, "a%d=1&", i);
    assert_true(form_parse(&f, text.data, text.len, NULL));
    assert_false(form_add(&f, "one", "more", NULL));
    form_close(&f);
    text.len = 0;
    for (int i = 0; i < FORM_NAME_MAX - 1; i++)
        buf_char(&text, 'a');
    assert_true(form_parse(&f, text.data, text.len, NULL));
    buf_char(&text, 'a');
    assert_false(form_parse(&f, text.data, text.len, NULL));
    buf_close(&text);
    form_close(&f);
}

static void patterns_have_any_key_and_any_place(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *name;
        bool fits;
    } cases[] = {
        {"amount", "amount", true},
        {"amount", "amounts", false},
        {"amount", "amoun", false},
        {"expand[]", "expand[]", true},
        {"expand[]", "expand[12]", true},
        {"expand[]", "expand[a]", false},
        {"expand[]", "expand", false},
        {"metadata[*]", "metadata[key]", true},
        {"metadata[*]", "metadata[]", true},
        {"metadata[*]", "metadata[a][b]", false},
        {"metadata[*]", "metadata", false},
        {"a[card][*]", "a[card][number]", true},
        {"a[card][*]", "a[bank][number]", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (form_matches(cases[i].pattern, cases[i].name) != cases[i].fits)
            fail_msg("%s and %s", cases[i].pattern, cases[i].name);
}

static void the_first_unknown_name_is_told(void **state)
{
    (void)state;
    static const char *const patterns[] = {"amount", "metadata[*]", NULL};
    struct form f = {0};
    assert_true(parse(&f, "metadata[a]=1&amount=2"));
    assert_null(form_unknown(&f, patterns));
    assert_true(parse(&f, "amount=2&colour=red&size=9"));
    assert_string_equal(form_unknown(&f, patterns), "colour");
    form_close(&f);
}

static void only_plain_numbers_are_numbers(void **state)
{
    (void)state;
    int64_t n = -1;
    assert_true(form_parse_int("0", &n) && n == 0);
    assert_true(form_parse_int("999999999999999999", &n) && n == INT64_C(999999999999999999));
    static const char *const none[] = {
        "", "-1", "+1", " 1", "1 ", "01", "1.0", "1e3", "1000000000000000000"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        if (form_parse_int(none[i], &n))
            fail_msg("'%s'", none[i]);
}

static void the_digest_knows_no_order_but_every_value(void **state)
{
    (void)state;
    static const char *const others[] = {"a=1&b=3", "a=1", "a=1&b=2&c=", "a=12&b=", "ab=12"};
    struct form f = {0};
    uint8_t one[32], two[32];
    assert_true(parse(&f, "a=1&b=2"));
    form_digest(&f, "create", one);
    form_digest(&f, "cancel", two);
    assert_memory_not_equal(one, two, sizeof one);
    assert_true(parse(&f, "b=2&a=1"));
    form_digest(&f, "create", two);
    assert_memory_equal(one, two, sizeof one);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_true(parse(&f, others[i]));
        form_digest(&f, "create", two);
        assert_memory_not_equal(one, two, sizeof one);
    }
    form_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_values_are_decoded),
        cmocka_unit_test(broken_texts_are_refused),
        cmocka_unit_test(there_are_limits),
        cmocka_unit_test(patterns_have_any_key_and_any_place),
        cmocka_unit_test(the_first_unknown_name_is_told),
        cmocka_unit_test(only_plain_numbers_are_numbers),
        cmocka_unit_test(the_digest_knows_no_order_but_every_value),
    };
    return cmocka_run_group_tests_name("sandbox_form", tests, NULL, NULL);
}
