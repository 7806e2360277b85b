/* Runs a fuzz target on every file of its corpus, which is one claim.  The builds without libFuzzer
 * link this file with each tests/fuzz/fuzz_NAME.c; the name of the executable says whose corpus to
 * read. */
#include "fuzz.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>

#include "support/leaks.h"

static char folder[PATH_MAX];

static int is_input(const struct dirent *entry) { return entry->d_name[0] != '.'; }

/* The target gets a copy of exactly the input, so that the address sanitizer notices reads beyond
 * it. */
static void run_input(const char *path)
{
    fprintf(stderr, "  %s\n", path); /* the last one printed is the one that failed */
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_int_equal(fseek(f, 0, SEEK_END), 0);
    long size = ftell(f);
    assert_true(size >= 0);
    rewind(f);
    uint8_t *data = hf_alloc((size_t)size);
    assert_int_equal(fread(data, 1, (size_t)size, f), size);
    fclose(f);
    assert_int_equal(LLVMFuzzerTestOneInput(data, (size_t)size), 0);
    free(data);
}

static void every_input_of_the_corpus_passes(void **state)
{
    (void)state;
    struct dirent **entries;
    int n = scandir(folder, &entries, is_input, alphasort);
    assert_true(n > 0);
    size_t before = leaks_now();
    assert_int_equal(LLVMFuzzerTestOneInput((const uint8_t *)"", 0), 0);
    leaks_expect_since(before); /* what a target makes once */
    for (int i = 0; i < n; i++) {
        char path[PATH_MAX + NAME_MAX + 2];
        (void)snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        run_input(path);
        free(entries[i]);
    }
    free(entries);
}

int main(void)
{
    const char *name = program_invocation_short_name;
    hf_check(strncmp(name, "fuzz_", 5) == 0);
    (void)snprintf(folder, sizeof folder, "tests/fuzz/corpus/%s", name + 5);
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_input_of_the_corpus_passes)};
    return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}
