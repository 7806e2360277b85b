/* Claims about the names of variables (variables.h), the file of settings and the environment
 * (settings.h), secrets (secret.h) and the service manager's watchdog (notify.h).  The server's
 * suite has the rest: service.test.mjs. */
#include "support/fixtures.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/secret.h"
#include "base/settings.h"
#include "base/variables.h"
#include "setup/notify.h"

static const char *nearest(const char *name)
{
    const char *found = variables_nearest(name, strlen(name));
    return found ? found : "-";
}

static void a_misspelt_variable_is_near_to_the_one_that_was_meant(void **state)
{
    (void)state;
    assert_string_equal(nearest("HOLDFAST_LISTN"), "HOLDFAST_LISTEN");
    assert_string_equal(nearest("HOLDFAST_LEGDER"), "HOLDFAST_LEDGER");
    assert_string_equal(nearest("HOLDFAST_LOGLEVEL"), "HOLDFAST_LOG_LEVEL");
    assert_string_equal(nearest("HOLDFAST_ADMIN_KEYS"), "HOLDFAST_ADMIN_KEY");
    assert_string_equal(nearest("HOLDFAST_TRUSTED_PROXIES"), "HOLDFAST_TRUSTED_PROXY");
    assert_string_equal(nearest("HOLDFAST_LOCK_ULR"), "HOLDFAST_LOCK_URL");
}

static void a_variable_of_another_program_is_near_to_none(void **state)
{
    (void)state;
    assert_string_equal(nearest("HOLDFAST_"), "-");
    assert_string_equal(nearest("HOLDFAST_SERVICE_HOST"), "-");
    assert_string_equal(nearest("HOLDFAST_SHOP_COLOUR"), "-");
    char name[200] = "HOLDFAST_";
    memset(name + strlen(name), 'L', sizeof name - strlen(name) - 1);
    name[sizeof name - 1] = '\0';
    assert_string_equal(nearest(name), "-");
}

static void unknown_variables_are_found_in_an_environment(void **state)
{
    char *environment[] = {
        "PATH=/bin",        "HOLDFAST_LISTEN=x", "HOLDFAST_LISTN=y", "HOLDFASTD=program",
        "HOLDFAST_FENCE=7", "HOLDFAST_=",        "HOLDFAST_NOTHING", NULL};
    static const char *const expected[] = {"HOLDFAST_LISTN", "HOLDFAST_", "HOLDFAST_NOTHING"};
    size_t at = 0, len, n = 0;
    (void)state;
    for (; n < sizeof expected / sizeof *expected; n++) {
        const char *entry = variables_next_unknown(environment, &at, &len);
        assert_non_null(entry);
        assert_int_equal(len, strlen(expected[n]));
        assert_memory_equal(entry, expected[n], len);
    }
    assert_null(variables_next_unknown(environment, &at, &len));
}

static bool read_text(const char *text, struct settings *ret, struct hf_err *err)
{
    struct temp_dir dir;
    temp_dir_make(&dir);
    FILE *file = fopen(dir.db, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(dir.db, 0600), 0);
    bool good = settings_read(dir.db, ret, err);
    temp_dir_remove(&dir);
    return good;
}

static void a_value_is_what_stands_between_blanks_and_one_pair_of_quotes(void **state)
{
    static const struct {
        const char *line, *value;
    } rows[] = {{"HOLDFAST_DATA=/var", "/var"},       {"  HOLDFAST_DATA =\t/var \r", "/var"},
                {"HOLDFAST_DATA='a b'", "a b"},       {"HOLDFAST_DATA=\" a \"", " a "},
                {"HOLDFAST_DATA=\"'a'\"", "'a'"},     {"HOLDFAST_DATA=a=b#c", "a=b#c"},
                {"HOLDFAST_DATA='a", "'a"},           {"HOLDFAST_DATA='", "'"},
                {"#HOLDFAST_DATA=a", NULL},           {"HOLDFAST_DATA=", NULL},
                {"HOLDFAST_DATA=''", NULL},           {"", NULL},
                {"\n\n \nHOLDFAST_DATA=last", "last"}};
    (void)state;
    (void)unsetenv("HOLDFAST_DATA");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct settings s = {0};
        struct hf_err err = {0};
        if (!read_text(rows[i].line, &s, &err))
            fail_msg("%s: %s", rows[i].line, err.msg);
        const char *value = settings_get(&s, "HOLDFAST_DATA");
        if (rows[i].value)
            assert_string_equal(value, rows[i].value);
        else
            assert_null(value);
        settings_close(&s);
    }
}

static void a_file_has_the_keys_of_the_payment_provider(void **state)
{
    struct settings s = {0};
    struct hf_err err = {0};
    (void)state;
    assert_true(read_text("STRIPE_SECRET_KEY=sk_test_a\nSTRIPE_PUBLISHABLE_KEY=pk_test_a\n"
                          "STRIPE_WEBHOOK_SECRET=whsec_a,whsec_b\n",
                          &s, &err));
    assert_string_equal(settings_get(&s, "STRIPE_SECRET_KEY"), "sk_test_a");
    assert_string_equal(settings_get(&s, "STRIPE_WEBHOOK_SECRET"), "whsec_a,whsec_b");
    settings_close(&s);
    assert_false(read_text("STRIPE_KEY=sk_test_a\n", &s, &err));
}

static void a_file_wins_over_the_environment_even_with_an_empty_value(void **state)
{
    (void)state;
    struct settings s = {0};
    struct hf_err err = {0};
    assert_int_equal(setenv("HOLDFAST_DATA", "/environment", 1), 0);
    assert_string_equal(settings_get(&s, "HOLDFAST_DATA"), "/environment");
    assert_true(read_text("HOLDFAST_DATA=/file\n", &s, &err));
    assert_string_equal(settings_get(&s, "HOLDFAST_DATA"), "/file");
    settings_close(&s);
    assert_true(read_text("HOLDFAST_DATA=\n", &s, &err));
    assert_null(settings_get(&s, "HOLDFAST_DATA"));
    settings_close(&s);
    (void)unsetenv("HOLDFAST_DATA");
}

static void a_file_that_is_refused_changes_nothing(void **state)
{
    (void)state;
    struct settings s = {0};
    struct hf_err err = {0};
    assert_true(read_text("HOLDFAST_DATA=/file\n", &s, &err));
    assert_false(read_text("HOLDFAST_DATA=/other\nnonsense\n", &s, &err));
    assert_non_null(strstr(err.msg, "line 2"));
    assert_string_equal(settings_get(&s, "HOLDFAST_DATA"), "/file");
    settings_close(&s);
    char *large = hf_alloc(SETTINGS_FILE_MAX + 2);
    memset(large, '#', SETTINGS_FILE_MAX + 1);
    assert_false(read_text(large, &s, &err));
    large[SETTINGS_FILE_MAX] = '\0';
    assert_true(read_text(large, &s, &err));
    settings_close(&s);
    free(large);
}

static void a_watchdog_is_for_the_process_that_it_names(void **state)
{
    (void)state;
    assert_int_equal(notify_watchdog_us("30000000", NULL, 7), 30000000);
    assert_int_equal(notify_watchdog_us("30000000", "7", 7), 30000000);
    assert_int_equal(notify_watchdog_us("30000000", "8", 7), 0);
    assert_int_equal(notify_watchdog_us(NULL, "7", 7), 0);
    assert_int_equal(notify_watchdog_us("", NULL, 7), 0);
    assert_int_equal(notify_watchdog_us("30s", NULL, 7), 0);
    assert_int_equal(notify_watchdog_us("-1", NULL, 7), 0);
}

static void what_may_be_a_password_of_a_url_is_masked(void **state)
{
    static const struct {
        const char *text, *masked;
    } rows[] = {{"--ledger=postgres://me:word@host/db", "--ledger=postgres://xxxxxxx@host/db"},
                {"redis://:wo@rd@host:1/3", "redis://xxxxxx@host:1/3"},
                {"redis://host/?sentinel_password=word", "redis://host/?xxxxxxxxxxxxxxxxxxxxxx"},
                {"postgres://me@host/db?password=word@", "postgres://xxxxxxxxxxxxxxxxxxxxxxxx@"},
                {"http://host/path", "http://host/path"},
                {"me:word@host?x", "me:word@host?x"},
                {"", ""}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[64];
        (void)snprintf(text, sizeof text, "%s", rows[i].text);
        secret_mask_url(text);
        assert_string_equal(text, rows[i].masked);
    }
}

static void the_copy_of_arguments_has_what_is_masked_in_the_originals(void **state)
{
    char program[] = "holdfastd", flag[] = "--gate", url[] = "redis://:word@host";
    char *arguments[] = {program, flag, url, NULL};
    (void)state;
    size_t size;
    char **copy = secret_take_arguments(arguments, &size);
    assert_string_equal(copy[0], "holdfastd");
    assert_string_equal(copy[1], "--gate");
    assert_string_equal(copy[2], "redis://:word@host");
    assert_null(copy[3]);
    assert_string_equal(arguments[2], "redis://xxxxx@host");
    secret_free(copy, size);
}

static void secrets_of_the_environment_are_moved_and_still_found(void **state)
{
    (void)state;
    assert_int_equal(setenv("HOLDFAST_ADMIN_KEY", "the-key", 1), 0);
    assert_int_equal(setenv("HOLDFAST_LISTEN", "somewhere", 1), 0);
    char *entry = getenv("HOLDFAST_ADMIN_KEY");
    settings_take_environment();
    assert_null(getenv("HOLDFAST_ADMIN_KEY"));
    assert_memory_equal(entry, "\0\0\0\0\0\0\0", 7);
    assert_string_equal(settings_environment("HOLDFAST_ADMIN_KEY"), "the-key");
    assert_string_equal(settings_get(&(struct settings){0}, "HOLDFAST_ADMIN_KEY"), "the-key");
    assert_null(settings_environment("HOLDFAST_ADMIN"));
    assert_string_equal(settings_environment("HOLDFAST_LISTEN"), "somewhere");
    assert_string_equal(getenv("HOLDFAST_LISTEN"), "somewhere");
    settings_wipe_environment();
    assert_null(settings_environment("HOLDFAST_ADMIN_KEY"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_misspelt_variable_is_near_to_the_one_that_was_meant),
        cmocka_unit_test(a_variable_of_another_program_is_near_to_none),
        cmocka_unit_test(unknown_variables_are_found_in_an_environment),
        cmocka_unit_test(a_value_is_what_stands_between_blanks_and_one_pair_of_quotes),
        cmocka_unit_test(a_file_has_the_keys_of_the_payment_provider),
        cmocka_unit_test(a_file_wins_over_the_environment_even_with_an_empty_value),
        cmocka_unit_test(a_file_that_is_refused_changes_nothing),
        cmocka_unit_test(a_watchdog_is_for_the_process_that_it_names),
        cmocka_unit_test(what_may_be_a_password_of_a_url_is_masked),
        cmocka_unit_test(the_copy_of_arguments_has_what_is_masked_in_the_originals),
        cmocka_unit_test(secrets_of_the_environment_are_moved_and_still_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
