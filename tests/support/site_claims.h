/* For the tests of connections: a site and a client that each of them begins with, and what an
 * answer must be.  Include this file after fixtures.h. */
#ifndef HF_TESTS_SUPPORT_SITE_CLAIMS_H
#define HF_TESTS_SUPPORT_SITE_CLAIMS_H

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

#endif
