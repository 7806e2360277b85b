/* Which servers a client of the lock service goes to (lease/holdfast/courier.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lease/holdfast/courier.h"

static void announce(struct service *s, const char *text)
{
    json_t *cell = json_loads(text, 0, NULL);
    assert_non_null(cell);
    service_announced(s, cell);
    json_decref(cell);
}

static void a_client_that_uses_tls_goes_to_no_server_without_it(void **state)
{
    (void)state;
    struct service *s = hf_alloc(sizeof *s);
    s->clock = &clock_system;
    service_announce(s, "https://one.example:9000", true);
    announce(s, "{\"master\": {\"url\": \"http://two.example:9000\"}, \"servers\": ["
                "{\"url\": \"http://one.example:9000\"}, {\"url\": \"http://three.example\"},"
                "{\"url\": \"https://four.example:9000\"}]}");
    assert_int_equal(s->n_servers, 2);
    assert_int_equal(service_server(s, "https://one.example:9000"), 0);
    assert_int_equal(service_server(s, "https://four.example:9000"), 1);
    assert_int_equal(s->n_configured, 1);
    free(s);
}

static void a_client_without_tls_goes_to_the_servers_that_are_announced_without_it(void **state)
{
    (void)state;
    struct service *s = hf_alloc(sizeof *s);
    s->clock = &clock_system;
    service_announce(s, "http://one.example:9000", true);
    announce(s, "{\"master\": {\"url\": \"http://two.example:9000\"}, \"servers\": ["
                "{\"url\": \"https://one.example:9000\"}, {\"url\": \"ftp://three.example\"}]}");
    assert_int_equal(s->n_servers, 2);
    assert_int_equal(service_server(s, "http://two.example:9000"), 1);
    free(s);
}

int main(void)
{
    const struct CMUnitTest claims[] = {
        cmocka_unit_test(a_client_that_uses_tls_goes_to_no_server_without_it),
        cmocka_unit_test(a_client_without_tls_goes_to_the_servers_that_are_announced_without_it),
    };
    return cmocka_run_group_tests(claims, NULL, NULL);
}
