/* Claims about net/url.h: what the parts of a coordinator's URL are, and which are refused. */
#include "support/fixtures.h"

#include <stdlib.h>
#include <string.h>

#include "net/url.h"

static const struct url_form with_path = {
    .kind = "the URL", .scheme = "x", .tls_scheme = "xs", .port = 7, .has_path = true};
static const struct url_form without_path = {.kind = "the URL", .scheme = "x", .port = 7};

static void assert_part(struct url_part part, const char *text)
{
    assert_int_equal(part.text != NULL, text != NULL);
    assert_int_equal(part.len, text ? strlen(text) : 0);
    if (text)
        assert_memory_equal(part.text, text, part.len);
}

static void a_url_is_cut_into_its_parts(void **state)
{
    (void)state;
    static const struct {
        const char *url, *login, *hosts, *path, *query;
        bool has_path;
    } cases[] = {
        {"x://", NULL, "", NULL, NULL, true},
        {"x://h", NULL, "h", NULL, NULL, true},
        {"x://h/", NULL, "h", "/", NULL, true},
        {"x://u:p@w@h:1,i/a@b/c?d=e/f?g@", "u:p@w", "h:1,i", "/a@b/c", "d=e/f?g@", true},
        {"x://u:p?w@h?a=1", "u:p?w", "h", NULL, "a=1", true},
        {"x://@h?", "", "h", NULL, "", true},
        {"x://u:p/w@h/i?a=b@c", "u:p/w", "h/i", NULL, "a=b@c", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct url u;
        assert_int_equal(
            url_split(cases[i].url, cases[i].has_path ? &with_path : &without_path, &u, NULL),
            HF_DONE);
        assert_false(u.is_tls);
        assert_part(u.login, cases[i].login);
        assert_part(u.hosts, cases[i].hosts);
        assert_part(u.path, cases[i].path);
        assert_part(u.query, cases[i].query);
    }
    struct url u;
    assert_int_equal(url_split("xs://h", &with_path, &u, NULL), HF_DONE);
    assert_true(u.is_tls);
    assert_int_equal(url_split("xs://h", &without_path, &u, NULL), HF_BAD_REQUEST);
    assert_int_equal(url_split("x:/h", &with_path, &u, NULL), HF_BAD_REQUEST);
    assert_int_equal(url_split("", &with_path, &u, NULL), HF_BAD_REQUEST);
}

static enum hf_result hosts_of(const char *url, struct url_host ret[URL_HOSTS_MAX], size_t *ret_n)
{
    struct url u;
    assert_int_equal(url_split(url, &with_path, &u, NULL), HF_DONE);
    return url_hosts(&u, ret, ret_n, NULL);
}

static void hosts_have_ports_and_addresses_of_ipv6_brackets(void **state)
{
    (void)state;
    struct url_host hosts[URL_HOSTS_MAX];
    size_t n;
    assert_int_equal(hosts_of("x://h_1.a-b:65535,[fe80::1%e0],1.2.3.4,h\xc3\xa9", hosts, &n),
                     HF_DONE);
    struct buf text = {0};
    for (size_t i = 0; i < n; i++) {
        url_put_host(&hosts[i], &text);
        buf_char(&text, i + 1 < n ? ' ' : '\0');
    }
    assert_string_equal(text.data, "h_1.a-b:65535 [fe80::1%e0]:7 1.2.3.4:7 h\xc3\xa9:7");
    assert_part(hosts[1].name, "fe80::1%e0");
    buf_close(&text);
    char *origin = url_origin(&hosts[1], true);
    assert_string_equal(origin, "https://[fe80::1%e0]:7");
    free(origin);
    assert_int_equal(hosts_of("x://1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16", hosts, &n), HF_DONE);
    assert_int_equal(n, URL_HOSTS_MAX);
    static const char *const bad[] = {
        "x://",
        "x://,h",
        "x://h,",
        "x://h:",
        "x://h:0",
        "x://h:65536",
        "x://h:1x",
        "x://h:1:2",
        "x://::1",
        "x://[::1",
        "x://[]",
        "x://[::1]x",
        "x://[::1]:",
        "x://h h",
        "x://h]",
        "x://h\x7f",
        "x://h:000001",
        "x://h:-1",
        "x://1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (hosts_of(bad[i], hosts, &n) != HF_BAD_REQUEST)
            fail_msg("%s", bad[i]);
}

static enum hf_result read_all(const char *url, char *ret[4], struct hf_fault *fault)
{
    struct url u;
    const struct url_parameter known[] = {
        {"key", &ret[2], true}, {"cert", &ret[3], true}, {"no", &ret[3], false}};
    memset(ret, 0, 4 * sizeof *ret);
    enum hf_result result = url_split(url, &with_path, &u, fault);
    if (result == HF_DONE)
        result = url_login(&u, &ret[0], &ret[1], fault);
    return result == HF_DONE ? url_parameters(&u, known, 3, "the parameters are key=, cert=", fault)
                             : result;
}

static void free_all(char *texts[4])
{
    for (size_t i = 0; i < 4; i++)
        url_free_secret(texts[i]);
}

static void logins_and_parameters_are_decoded(void **state)
{
    (void)state;
    char *texts[4];
    assert_int_equal(read_all("x://u%3a:p%40:%ff%0A@h?key=a%26=b&cert=c", texts, NULL), HF_DONE);
    assert_string_equal(texts[0], "u:");
    assert_string_equal(texts[1], "p@:\xff\n");
    assert_string_equal(texts[2], "a&=b");
    assert_string_equal(texts[3], "c");
    free_all(texts);
    assert_int_equal(read_all("x://:p@h", texts, NULL), HF_DONE);
    assert_null(texts[0]);
    assert_string_equal(texts[1], "p");
    free_all(texts);
    assert_int_equal(read_all("x://u@h", texts, NULL), HF_DONE);
    assert_string_equal(texts[0], "u");
    assert_null(texts[1]);
    free_all(texts);
    static const char *const bad[] = {
        "x://u:secret%@h",
        "x://u:secret%4@h",
        "x://u:secret%00@h",
        "x://secret%g0:p@h",
        "x://h?",
        "x://h?key=1&cert=1&",
        "x://h?secret=1",
        "x://h?no=1",
        "x://h?key=1",
        "x://h?cert=1",
        "x://h?key&cert=1",
        "x://h?key=&cert=1",
        "x://h?key=%&cert=1",
        "x://h?key=1&cert=1&key=1",
        "x://h?ke=1",
        "x://h?keys=1",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct hf_fault fault = {0};
        if (read_all(bad[i], texts, &fault) != HF_BAD_REQUEST)
            fail_msg("%s", bad[i]);
        assert_non_null(strstr(fault.msg, "the URL: "));
        assert_null(strstr(fault.msg, "secret"));
        free_all(texts);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_url_is_cut_into_its_parts),
        cmocka_unit_test(hosts_have_ports_and_addresses_of_ipv6_brackets),
        cmocka_unit_test(logins_and_parameters_are_decoded),
    };
    return cmocka_run_group_tests_name("url", tests, NULL, NULL);
}
