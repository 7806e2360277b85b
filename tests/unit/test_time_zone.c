/* Names of time zones, with the machine's database, with one of our own, and without any. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/time_zone.h"

static char database[64];

static void write_zone(const char *name, const char *text)
{
    char path[128];
    (void)snprintf(path, sizeof path, "%s/%s", database, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static int make_database(void **state)
{
    (void)state;
    char path[128];
    (void)snprintf(database, sizeof database, "/tmp/holdfast-zones-XXXXXX");
    assert_non_null(mkdtemp(database));
    (void)snprintf(path, sizeof path, "%s/Mars", database);
    assert_int_equal(mkdir(path, 0700), 0);
    write_zone("Mars/Olympus_Mons", "TZif2");
    write_zone("Mars/Notes", "none");
    write_zone("Short", "TZ");
    write_zone("lower", "TZif2");
    return 0;
}

static int remove_database(void **state)
{
    (void)state;
    char command[128];
    (void)snprintf(command, sizeof command, "rm -r %s", database);
    return system(command);
}

static void a_zone_is_a_file_of_the_database(void **state)
{
    (void)state;
    write_zone("UTC", "TZif2");
    assert_true(time_zone_exists(database, "UTC"));
    assert_true(time_zone_exists(database, "Mars/Olympus_Mons"));
    static const char *const none[] = {
        "Venus/Ishtar", "Mars", "Mars/Notes",         "Short", "lower", "Mars/../UTC",
        "/UTC",         "",     "Mars//Olympus_Mons", "Mars/", "UTC ",  "mars/Olympus_Mons"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_false(time_zone_exists(database, none[i]));
}

static void without_a_database_the_name_decides(void **state)
{
    (void)state;
    static const char *const names[] = {"Europe/Berlin", "America/Argentina/Buenos_Aires",
                                        "Etc/GMT+5", "America/Port-au-Prince", "EST5EDT"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_true(time_zone_exists("/nowhere", names[i]));
    static const char *const none[] = {"",   "europe/berlin", "Europe/", "/Europe", "+01:00",
                                       "..", "A.B",           "A B",     "A\nB",    "\xc3\x84"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_false(time_zone_exists("/nowhere", none[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_zone_is_a_file_of_the_database, make_database,
                                        remove_database),
        cmocka_unit_test(without_a_database_the_name_decides),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
