/* Claims about answers that etcd gives rarely, and proxies before it do: what they mean for a
 * request.  A server of the test's own gives them, since no etcd can be made to. */
#include "support/fixtures.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lease/lease.h"
#include "support/port.h"

/* Answers every request with the same text, one connection after the other. */
struct parrot {
    int fd, port;
    _Atomic int status;
    const char *_Atomic text;
    pthread_t thread;
};

/* Reads one request with its body. */
static bool read_request(int fd)
{
    char bytes[16384] = {0};
    size_t len = 0;
    for (ssize_t n; (n = read(fd, bytes + len, sizeof bytes - 1 - len)) > 0;) {
        len += (size_t)n;
        const char *end = strstr(bytes, "\r\n\r\n"), *field = strstr(bytes, "Content-Length: ");
        if (end && len >= (size_t)(end + 4 - bytes) + (field ? (size_t)atoi(field + 16) : 0))
            return true;
    }
    return false;
}

static void *parrot_run(void *arg)
{
    struct parrot *p = arg;
    for (int fd; (fd = accept(p->fd, NULL, NULL)) >= 0; close(fd)) {
        char answer[20000];
        if (!read_request(fd))
            continue;
        const char *text = atomic_load(&p->text);
        int len = snprintf(answer, sizeof answer,
                           "HTTP/1.1 %d Text\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n%s",
                           atomic_load(&p->status), strlen(text), text);
        (void)!send(fd, answer, (size_t)len, MSG_NOSIGNAL);
    }
    return NULL;
}

static struct parrot parrot;
static struct lease *handle;

static void says(int status, const char *text)
{
    atomic_store(&parrot.status, status);
    atomic_store(&parrot.text, text);
}

static int start(void **state)
{
    (void)state;
    char url[64];
    struct hf_fault fault = {0};
    struct lease_options options = {.timeout_ms = 20000, .clock = &clock_system};
    parrot.port = port_free(&parrot.fd);
    says(200, "{\"etcdserver\":\"3.4.23\",\"header\":{\"revision\":\"5\",\"raft_term\":\"2\"}}");
    if (pthread_create(&parrot.thread, NULL, parrot_run, &parrot) != 0)
        return -1;
    snprintf(url, sizeof url, "etcd://127.0.0.1:%d", parrot.port);
    if (lease_open(lease_driver_for(url), url, &options, &handle, &fault) != HF_DONE)
        print_error("%s\n", fault.msg);
    return handle ? 0 : -1;
}

static int stop(void **state)
{
    (void)state;
    lease_close(handle);
    shutdown(parrot.fd, SHUT_RDWR);
    pthread_join(parrot.thread, NULL);
    close(parrot.fd);
    return 0;
}

static enum hf_result result_of(int status, const char *text)
{
    struct lease_request r = {
        .key = "name", .key_len = 4, .owner = {1}, .ttl_ms = 30000, .slots = 1};
    struct lease_verdict v = {0};
    struct hf_fault fault = {0};
    says(status, text);
    enum hf_result result = lease_acquire(handle, &r, &v, &fault);
    print_message("%d %s: %d, %s\n", status, text, (int)result, fault.msg);
    return result;
}

static void an_error_says_by_its_code_whether_nothing_was_done(void **state)
{
    (void)state;
    assert_int_equal(result_of(400, "{\"error\":\"new\",\"code\":3}"), HF_UNREACHABLE);
    assert_int_equal(result_of(403, "{\"error\":\"new\",\"code\":7}"), HF_UNREACHABLE);
    assert_int_equal(result_of(501, "{\"error\":\"new\",\"code\":12}"), HF_UNREACHABLE);
    assert_int_equal(result_of(500, "{\"error\":\"new\",\"code\":2}"), HF_UNKNOWN);
    assert_int_equal(result_of(500, "{\"error\":\"new\",\"code\":13}"), HF_UNKNOWN);
    assert_int_equal(result_of(503, "{\"error\":\"new\",\"code\":14}"), HF_UNKNOWN);
    assert_int_equal(result_of(408, "{\"error\":\"context canceled\",\"code\":1}"), HF_UNKNOWN);
    assert_int_equal(result_of(500, "{\"error\":\"new\"}"), HF_UNKNOWN);
}

static void an_answer_that_is_none_of_etcds_leaves_a_write_unknown(void **state)
{
    (void)state;
    assert_int_equal(result_of(200, ""), HF_UNKNOWN);
    assert_int_equal(result_of(200, "<html>"), HF_UNKNOWN);
    assert_int_equal(result_of(200, "{}"), HF_UNKNOWN);
    assert_int_equal(result_of(200, "{\"succeeded\":true"), HF_UNKNOWN);
    assert_int_equal(result_of(502, "bad gateway"), HF_UNKNOWN);
    assert_int_equal(result_of(404, "not found"), HF_UNREACHABLE); /* it refuses */
}

static void a_transaction_without_a_revision_is_no_grant(void **state)
{
    (void)state;
    assert_int_equal(result_of(200, "{\"succeeded\":true}"), HF_UNKNOWN);
    assert_int_equal(result_of(200, "{\"succeeded\":true,\"header\":{}}"), HF_UNKNOWN);
    assert_int_equal(result_of(200, "{\"succeeded\":true,\"header\":{\"revision\":\"-3\"}}"),
                     HF_UNKNOWN);
}

static bool take_name(void *ctx, const char *name)
{
    (void)ctx;
    (void)name;
    return true;
}

/* Such a page would be read again and again. */
static void a_page_of_keys_that_cannot_be_read_ends_a_list(void **state)
{
    (void)state;
    static char text[16384];
    struct hf_fault fault = {0};
    int n = snprintf(text, sizeof text, "{\"header\":{\"revision\":\"5\"},\"kvs\":[");
    for (int i = 0; i < 512; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, "%s{\"key\":\"!\"}", i ? "," : "");
    (void)snprintf(text + n, sizeof text - (size_t)n, "]}");
    says(200, text);
    assert_int_equal(lease_list(handle, "", 0, take_name, NULL, &fault), HF_UNREACHABLE);
    assert_non_null(strstr(fault.msg, "leads nowhere"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_error_says_by_its_code_whether_nothing_was_done),
        cmocka_unit_test(an_answer_that_is_none_of_etcds_leaves_a_write_unknown),
        cmocka_unit_test(a_page_of_keys_that_cannot_be_read_ends_a_list),
        cmocka_unit_test(a_transaction_without_a_revision_is_no_grant),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
