/* The suite over a real redis-server with a password and without persistence.  Without redis-server
 * it fails. */
#include "conformance.h"

#include <stdio.h>
#include <string.h>

#include "support/redis_server.h"

#define PASSWORD "pass:word/1"
#define PASSWORD_IN_URL "pass%3Aword%2F1"

static struct redis_server server = {.password = PASSWORD};

static void url_at(struct backend *b, int port, char *ret, size_t size)
{
    (void)b;
    snprintf(ret, size, "redis://:%s@127.0.0.1:%d/3", PASSWORD_IN_URL, port);
}

static void start(struct backend *b)
{
    assert_true(redis_server_start(&server)); /* is redis-server installed? */
    b->port = server.port;
    url_at(b, b->port, b->url, sizeof b->url);
    const unsigned bad = 1U << HF_BAD_REQUEST, refused = 1U << HF_UNREACHABLE;
    b->bad_urls[0] = (struct bad_url){"no such port", "redis://127.0.0.1:99999", bad};
    b->bad_urls[1] = (struct bad_url){"port of letters", "redis://127.0.0.1:abc", bad};
    b->bad_urls[2] = (struct bad_url){"database of letters", "redis://127.0.0.1/x", bad};
    b->bad_urls[3] = (struct bad_url){"no path", "unix:", bad};
    b->bad_urls[4] = (struct bad_url){"nobody's path", "unix:/nonexistent/socket", refused};
    b->bad_urls[5] = (struct bad_url){.what = "wrong password", .results = refused};
    snprintf(b->bad_urls[5].url, sizeof b->bad_urls[5].url, "redis://:wrong@127.0.0.1:%d", b->port);
    b->bad_urls[6] = (struct bad_url){.what = "no password", .results = refused};
    snprintf(b->bad_urls[6].url, sizeof b->bad_urls[6].url, "redis://127.0.0.1:%d", b->port);
}

static void stop(struct backend *b)
{
    (void)b;
    redis_server_stop(&server);
}

static void restart(struct backend *b)
{
    (void)b;
    redis_server_kill(&server);
    redis_server_again(&server);
}

static void flush(struct backend *b)
{
    (void)b;
    char answer[64];
    redis_server_ask(&server, "FLUSHALL", answer, sizeof answer);
    assert_string_equal(answer, "+OK\r\n");
}

int main(void)
{
    struct backend b = {.name = "redis",
                        .start = start,
                        .stop = stop,
                        .restart = restart,
                        .flush = flush,
                        .url_at = url_at};
    return conformance_run(&b);
}
