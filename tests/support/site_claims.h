/* For the tests of connections: a site and a client that each of them begins with, and what an
 * answer must be.  Include this file after fixtures.h. */
#ifndef HF_TESTS_SUPPORT_SITE_CLAIMS_H
#define HF_TESTS_SUPPORT_SITE_CLAIMS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/conn.h"
#include "support/site.h"

#define GET(path) "GET " path " HTTP/1.1\r\nHost: x\r\n\r\n"
#define POST(path, fields) "POST " path " HTTP/1.1\r\nHost: x\r\n" fields "\r\n"
#define SECOND_US INT64_C(1000000)

static struct site site;
static struct client client;

static inline int open_site(void **state)
{
    (void)state;
    site_open(&site);
    client_open(&client, &site, 0);
    return 0;
}

static inline int close_site(void **state)
{
    (void)state;
    client_close(&client);
    site_close(&site);
    return 0;
}

#define SITE_TEST(claim) cmocka_unit_test_setup_teardown(claim, open_site, close_site)

/* The next answer is this one.  `body` NULL: whatever it says. */
static inline struct reply expect(struct client *c, int status, const char *body)
{
    struct reply r;
    if (!client_reply(c, false, &r))
        fail_msg("no answer; expected %d %s", status, body ? body : "");
    assert_int_equal(r.status, status);
    if (body && (r.body.len != strlen(body) || memcmp(r.body.data, body, r.body.len) != 0))
        fail_msg("the body is \"%.*s\" instead of \"%s\"", (int)r.body.len, r.body.data, body);
    return r;
}

static inline void receive(struct client *c)
{
    site_turn(&site, 4);
    while (client_read(c, 65536) > 0)
        ;
}

/* What does not fit the sockets at once. */
static inline void receive_long(struct client *c)
{
    for (int i = 0; i < 200; i++)
        receive(c);
}

/* Takes what has been received, as text. */
static inline const char *received(struct client *c)
{
    receive(c);
    free(c->last);
    c->last = hf_strndup(c->in.data ? c->in.data : "", c->in.len);
    c->in.len = 0;
    return c->last;
}

static inline void assert_open(struct client *c)
{
    receive(c);
    assert_false(c->ended);
}

/* Every connection is gone, and all that it had. */
static inline void assert_gone(void)
{
    site_turn(&site, 4);
    assert_int_equal(site_connections(&site), 0);
    assert_null(site.loop->conns);
    assert_int_equal(site_blocks_in_use(&site), 0);
    assert_int_equal(site.bodies, 0);
}

static inline void assert_header(const struct reply *r, const char *name, const char *value)
{
    struct text got = reply_header(r, name);
    if (!got.data || got.len != strlen(value) || memcmp(got.data, value, got.len) != 0)
        fail_msg("%s is \"%.*s\" instead of \"%s\" in\n%s", name, (int)got.len, got.data, value,
                 r->head.data);
}

static inline void expect_nothing(struct client *c)
{
    struct reply r;
    assert_false(client_reply(c, false, &r));
    assert_int_equal(c->in.len, 0);
}

/* The server has closed, and the connection is gone. */
static inline void expect_closed(struct client *c)
{
    expect_nothing(c);
    assert_true(c->ended);
    assert_false(c->failed);
}

/* An idle connection has nothing but its struct. */
static inline void assert_idle(void)
{
    assert_int_equal(site_blocks_in_use(&site), 0);
    for (const struct conn *c = site.loop->conns; c; c = c->next) {
        assert_null(c->in);
        assert_null(c->request);
        assert_null(c->stream);
        assert_int_equal(c->state, CONN_HEAD);
    }
}

/* A refusal: a problem document with a request id, and the end of the connection. */
static inline void expect_refusal(struct client *c, int status, const char *code)
{
    char wanted[64];
    struct reply r = expect(c, status, NULL);
    assert_true(r.close);
    assert_header(&r, "Content-Type", "application/problem+json");
    struct text id = reply_header(&r, "X-Request-Id");
    assert_int_equal(id.len, REQUEST_ID_LEN);
    assert_non_null(memmem(r.body.data, r.body.len, id.data, id.len));
    (void)snprintf(wanted, sizeof wanted, "\"code\":\"%s\"", code);
    if (!memmem(r.body.data, r.body.len, wanted, strlen(wanted)))
        fail_msg("%s is not in %s", wanted, r.body.data);
    expect_closed(c); /* nothing further is answered */
    assert_int_equal(site_blocks_in_use(&site), 0);
    client_close(c);
    site_turn(&site, 2);
    assert_int_equal(site_connections(&site), 0);
    client_open(c, &site, 0);
}

#endif
