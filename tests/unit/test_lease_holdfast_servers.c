/* Which servers a client of the lock service goes to, and over how many connections
 * (lease/holdfast/servers.h, service.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lease/holdfast/service.h"
#include "support/port.h"

static void announce(struct server_list *s, const char *text)
{
    json_t *cell = json_loads(text, 0, NULL);
    assert_non_null(cell);
    servers_learn(s, cell, 0);
    json_decref(cell);
}

static void a_client_that_uses_tls_goes_to_no_server_without_it(void **state)
{
    (void)state;
    struct server_list s = {0};
    servers_add(&s, "https://one.example:9000", true);
    announce(&s, "{\"master\": {\"url\": \"http://two.example:9000\"}, \"servers\": ["
                 "{\"url\": \"http://one.example:9000\"}, {\"url\": \"http://three.example\"},"
                 "{\"url\": \"https://four.example:9000\"}]}");
    assert_int_equal(s.n, 2);
    assert_int_equal(servers_find(&s, "https://one.example:9000"), 0);
    assert_int_equal(servers_find(&s, "https://four.example:9000"), 1);
    assert_int_equal(s.n_configured, 1);
}

static void a_client_without_tls_goes_to_the_servers_that_are_announced_without_it(void **state)
{
    (void)state;
    struct server_list s = {0};
    servers_add(&s, "http://one.example:9000", true);
    announce(&s, "{\"master\": {\"url\": \"http://two.example:9000\"}, \"servers\": ["
                 "{\"url\": \"https://one.example:9000\"}, {\"url\": \"ftp://three.example\"}]}");
    assert_int_equal(s.n, 2);
    assert_int_equal(servers_find(&s, "http://two.example:9000"), 1);
}

/* ---- how many connections a client takes ---- */

#define CALLERS 40

/* A server that always says that it cannot serve at the moment, a little later, and counts its
 * connections. */
struct reluctant {
    int fd, port, n_most;
    atomic_int n_answers;
    atomic_bool stop;
    pthread_t thread;
};

static void *refuse(void *arg)
{
    static const char answer[] = "HTTP/1.1 503 Later\r\nContent-Length: 0\r\n\r\n";
    struct reluctant *r = arg;
    struct pollfd fds[1 + 4 * CALLERS] = {{.fd = r->fd, .events = POLLIN}};
    nfds_t n = 1;
    while (!atomic_load(&r->stop)) {
        poll(fds, n, 20);
        usleep(20000); /* so that requests come together */
        for (nfds_t i = n; i-- > 1;) {
            char request[4096];
            if (!fds[i].revents)
                continue;
            if (recv(fds[i].fd, request, sizeof request, 0) > 0) {
                (void)!send(fds[i].fd, answer, sizeof answer - 1, MSG_NOSIGNAL);
                atomic_fetch_add(&r->n_answers, 1);
                continue;
            }
            close(fds[i].fd);
            fds[i] = fds[--n];
        }
        if (fds[0].revents && n < sizeof fds / sizeof *fds)
            fds[n++] =
                (struct pollfd){.fd = accept(r->fd, NULL, NULL), .events = POLLIN | POLLRDHUP};
        int n_open = 0; /* the client closes one whose time is up before it opens another */
        poll(fds, n, 0);
        for (nfds_t i = 1; i < n; i++)
            n_open += !(fds[i].revents & (POLLRDHUP | POLLHUP | POLLERR));
        r->n_most = n_open > r->n_most ? n_open : r->n_most;
    }
    while (n-- > 0)
        close(fds[n].fd);
    return NULL;
}

static void *ask_in_vain(void *arg)
{
    json_t *json = NULL;
    if (service_call(arg, "GET", "/v1/locks", true, &json, &(struct hf_fault){0}) == HF_DONE)
        json_decref(json);
    return NULL;
}

static void requests_that_are_tried_again_do_not_take_more_connections(void **state)
{
    (void)state;
    struct reluctant r = {0};
    struct holdfast_address address = {0};
    struct service *service = NULL;
    struct hf_fault fault = {0};
    const struct lease_options options = {.timeout_ms = 2000, .clock = &clock_system};
    char url[64];
    pthread_t threads[CALLERS];
    r.port = port_free(&r.fd);
    snprintf(url, sizeof url, "holdfast://127.0.0.1:%d", r.port);
    assert_int_equal(holdfast_address_parse(url, &address, &fault), HF_DONE);
    assert_int_equal(service_new(address, &options, &service, &fault), HF_DONE);
    assert_int_equal(pthread_create(&r.thread, NULL, refuse, &r), 0);
    for (int i = 0; i < CALLERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_in_vain, service), 0);
    for (int i = 0; i < CALLERS; i++)
        pthread_join(threads[i], NULL);
    atomic_store(&r.stop, true);
    pthread_join(r.thread, NULL);
    service_unref(service);
    close(r.fd);
    print_message("%d answers, %d connections\n", atomic_load(&r.n_answers), r.n_most);
    assert_true(atomic_load(&r.n_answers) > 0);
    assert_in_range(r.n_most, 1, SERVICE_RUNNING_MAX);
}

int main(void)
{
    const struct CMUnitTest claims[] = {
        cmocka_unit_test(a_client_that_uses_tls_goes_to_no_server_without_it),
        cmocka_unit_test(requests_that_are_tried_again_do_not_take_more_connections),
        cmocka_unit_test(a_client_without_tls_goes_to_the_servers_that_are_announced_without_it),
    };
    return cmocka_run_group_tests(claims, NULL, NULL);
}
